//! Limits of what is shown and listed.

/// Most elements that are shown; of more, a checksum of all.
pub(super) const SHOWN_MAX: usize = 16;

/// Most empty lists that an array of no elements becomes.
pub(super) const EMPTY_ROWS_MAX: u64 = 1 << 16;
