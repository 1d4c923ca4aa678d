//! When new arrays are put into shards, and into which.

/// Chunks that nobody gave a shape, in shards that somebody did, are cut to at most so many bytes \[B\].
pub(super) const INNER_BYTES_MAX: u64 = 1 << 20;

/// Where nobody says whether chunks shall lie in shards, they do if that saves more files than this: with so many, making them
/// takes longer than what is in them, and other programs list and copy them one by one.
pub(super) const FILES_SAVED_MIN: u64 = 1000;

/// Largest shard that is chosen \[B\]; and of the buffers of a rank, of which coding a shard takes three times as much.
pub(super) const SHARD_BYTES_MAX: u64 = 16 << 20;
pub(super) const SHARD_BUFFERS_PART: u64 = 8;

/// Chunks of texts of any length are cut as if each had at least so many bytes \[B\].
pub(super) const TEXT_BYTES_LIKELY: u64 = 32;
