//! How long a rank waits, what for, and how it walks.

use std::time::Duration;

/// How long a rank waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For other ranks to reach a call.
    pub arrival: Duration,
    /// For any progress, of any rank, inside a call.
    pub progress: Duration,
    /// For storage that does not answer. A rank that waits for storage says so to the others, who then wait for it.
    pub storage: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            arrival: Duration::from_secs(30 * 60),
            progress: Duration::from_secs(60),
            storage: Duration::from_secs(600),
        }
    }
}

/// What a rank waits for, as far as limits depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Whether it waits for storage of its own, which has a limit of its own.
    pub storage: bool,
    /// Whether it waits for ranks that may legitimately come late.
    pub arrival: bool,
}

/// Something that is polled until it is over.
pub trait Awaited {
    /// What it waits for: asked at each poll.
    fn waits(&self) -> Waits {
        Waits::default()
    }

    /// The same in words, for messages.
    fn waits_for(&self) -> String;
}

/// How a rank walks programs, where that differs from what walks best.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pace {
    /// Whether a message is handed over only when the last send of its lane is over (`MPI_Send`).
    pub blocking_sends: bool,
    /// Steps that are derived ahead; as many as are best when not given.
    pub window: Option<usize>,
}

/// What messages get to leave, before a rank looks after them no more.
pub(crate) const LEAVING: Duration = Duration::from_millis(20);

/// Ranks named in a message about a difference.
pub(crate) const RANKS_NAMED_MAX: usize = 8;

/// Nanoseconds of a duration.
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
