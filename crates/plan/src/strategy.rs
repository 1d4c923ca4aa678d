//! Which strategies there are, by name; what they do is in `strategies`.

use std::fmt;

/// The list of strategies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Strategy {
    /// All data pass through rank 0.
    RootGather,
    /// Each rank reads and writes its own pieces.
    Independent,
    /// Each rank reads and writes its own pieces and what lies between them.
    DataSieving,
    /// Data cross into a distribution that conforms to the file, then each aggregator moves its part.
    TwoPhase,
    /// Servers pull subchunks from clients, or push them.
    ServerDirected,
    /// The same in the order of the disk, past the system's cache.
    DiskDirected,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 6] = [
        Strategy::RootGather,
        Strategy::Independent,
        Strategy::DataSieving,
        Strategy::TwoPhase,
        Strategy::ServerDirected,
        Strategy::DiskDirected,
    ];

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::RootGather => "root-gather",
            Strategy::Independent => "independent",
            Strategy::DataSieving => "data-sieving",
            Strategy::TwoPhase => "two-phase",
            Strategy::ServerDirected => "server-directed",
            Strategy::DiskDirected => "disk-directed",
        }
    }

    /// The strategy with this name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a strategy cannot carry out a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Infeasible {
    /// The reason.
    pub reason: String,
    /// What would help.
    pub hint: String,
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  hint: {}", self.reason, self.hint)
    }
}

impl std::error::Error for Infeasible {}
