//! Time.

/// Says what time it is.
pub trait Clock {
    /// Nanoseconds since a start that is fixed for this clock. Never falls.
    fn now_ns(&self) -> u64;
    /// Whether the caller wants to stop (Ctrl-C); asked now and then while waiting.
    fn interrupted(&mut self) -> bool;
}
