//! What of legal metadata is refused, because it would take too much memory.

/// Most chunks in one shard: their index has 16 B for each, and is read as a whole.
pub const SHARD_CHUNKS_MAX: u64 = 1 << 22;

/// Deepest that shards may lie in shards.
pub(super) const DEPTH_MAX: usize = 4;
