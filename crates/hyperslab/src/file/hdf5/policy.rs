//! Numbers that somebody may want to change.

/// Where elements begin in a new file \[B\].
pub(super) const DATA_AT: u64 = 2048;

/// Arrays of at least this size \[B\] begin with a page, as direct I/O wants it; others where an element may lie.
pub(super) const LARGE: u64 = 1 << 20;
pub(super) const PAGE: u64 = 4096;

/// Bytes of metadata that are read at once.
pub(super) const READ_BYTES: u64 = 64 << 10;

/// The same where a few blocks of a file are changed, which lie apart.
pub(super) const CHANGE_READ_BYTES: u64 = 2 << 10;

/// How many stretches that were read last are kept: what leads to others, such as headers of heaps, is asked for again and again.
pub(super) const READS_KEPT: usize = 8;

/// Most chunks of an array that one call looks up: where they lie is told to all ranks.
pub(super) const CHUNKS_MAX: u64 = 1 << 20;

/// Chunks that nobody gave a shape have at most so many bytes, since others read them whole \[B\].
pub(super) const USUAL_BYTES_MAX: u64 = 4 << 20;

/// Those of arrays that grow have at least so many, where what there is would make less \[B\].
pub(super) const GROWING_BYTES_MIN: u64 = 4 << 10;
