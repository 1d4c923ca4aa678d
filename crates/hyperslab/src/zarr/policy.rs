//! How new arrays are put into shards.

/// Chunks that nobody gave a shape, in shards that somebody did, are cut to at most so many bytes \[B\].
pub(super) const INNER_BYTES_MAX: u64 = 1 << 20;
