//! The strategies. Each is one file and a pure function from a transfer to a program.

mod independent;
mod root_gather;
mod server_directed;

use crate::program::Program;
use crate::transfer::{Parameters, Transfer};
use hyperslab_layout::View;
use std::fmt;
use std::sync::Arc;

/// The list of strategies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Strategy {
    /// All data pass through rank 0.
    RootGather,
    /// Each rank reads and writes its own pieces.
    Independent,
    /// Servers pull subchunks from clients, or push them.
    ServerDirected,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 3] = [Strategy::RootGather, Strategy::Independent, Strategy::ServerDirected];

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::RootGather => "root-gather",
            Strategy::Independent => "independent",
            Strategy::ServerDirected => "server-directed",
        }
    }

    /// The strategy with this name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// Whether it can carry out the transfer with these parameters.
    ///
    /// # Errors
    /// The reason why not. The answer is the same on all ranks.
    pub fn feasible(self, transfer: &Transfer, parameters: &Parameters) -> Result<(), Infeasible> {
        match self {
            Strategy::RootGather => root_gather::feasible(transfer, parameters),
            Strategy::Independent => independent::feasible(transfer, parameters),
            Strategy::ServerDirected => server_directed::feasible(transfer, parameters),
        }
    }

    /// The program of one rank, whose elements of array i lie where `views[i]` says.
    pub fn program(self, transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32, views: &[Arc<View>]) -> Program {
        match self {
            Strategy::RootGather => root_gather::program(transfer, parameters, rank),
            Strategy::Independent => independent::program(transfer, parameters, rank, views),
            Strategy::ServerDirected => server_directed::program(transfer, parameters, rank),
        }
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
