//! What is chosen, and not measured.

/// Bytes of an element that says which one it is: its number, and the mark of its array [B].
pub const NUMBER_BYTES: u64 = 16;

/// Most of these in a chunk.
pub(crate) const NUMBERS_MAX: u64 = 1 << 16;

/// What follows a text in its slot: no text of UTF-8 has such a byte.
pub(crate) const SLOT_END: u8 = 0xff;
