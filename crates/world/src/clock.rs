//! Time.

/// Says what time it is.
pub trait Clock {
    /// Nanoseconds since a start that is fixed for this clock. Never falls.
    fn now_ns(&self) -> u64;
    /// Nanoseconds on a clock that all ranks of a host share, for records of what happened when. Never falls, and goes on
    /// also while a rank is away from its calls.
    fn stamp_ns(&self) -> u64;
    /// Whether the caller wants to stop (Ctrl-C); asked now and then while waiting.
    fn interrupted(&mut self) -> bool;
}
