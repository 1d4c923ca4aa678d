//! What shows that somebody who is at work with names comes forward, one call of the system after another.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that rises with each call. Nothing is read after it, so that it orders nothing among threads.
pub(crate) type Steps = Arc<AtomicU64>;

thread_local! {
    /// Rises with each call that this thread makes, where somebody watches it.
    static STEPS: RefCell<Option<Steps>> = const { RefCell::new(None) };
}

/// Lets somebody watch this thread.
pub(crate) fn watch(steps: Steps) {
    STEPS.set(Some(steps));
}

/// Tells that another call is about to be made.
pub(crate) fn note() {
    STEPS.with_borrow(|steps| {
        if let Some(steps) = steps {
            steps.fetch_add(1, Ordering::Relaxed);
        }
    });
}
