//! What is chosen, and not measured.

/// Bytes of an element that says which one it is: its number, and the mark of its array [B].
pub const NUMBER_BYTES: u64 = 16;

/// Most of these in a chunk.
pub(crate) const NUMBERS_MAX: u64 = 1 << 16;
