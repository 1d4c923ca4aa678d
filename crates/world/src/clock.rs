//! Time.

use std::time::Duration;

/// Says what time it is and lets a rank wait.
pub trait Clock {
    /// Nanoseconds since a start that is fixed for this clock. Never falls.
    fn now_ns(&self) -> u64;
    /// Waits until there may be news, at most for `limit`. May return early for no reason.
    fn doze(&mut self, limit: Duration);
    /// Whether the caller wants to stop (Ctrl-C); asked now and then while waiting.
    fn interrupted(&mut self) -> bool;
}
