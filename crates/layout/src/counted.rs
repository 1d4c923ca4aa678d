//! How many terms were looked at: what tests of growth count instead of time. Without the feature `counted`, and outside of this
//! crate's own tests, nothing is counted.

#[cfg(any(test, feature = "counted"))]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn look() {
        LOOKS.with(|looks| looks.set(looks.get() + 1));
    }

    pub(super) fn looks() -> u64 {
        LOOKS.get()
    }
}

/// Counts one.
#[inline(always)]
pub(crate) fn look() {
    #[cfg(any(test, feature = "counted"))]
    counter::look();
}

/// How many terms this thread has looked at.
#[cfg(any(test, feature = "counted"))]
pub fn looks() -> u64 {
    counter::looks()
}
