//! What of legal metadata is refused, because it would take too much memory.

/// Most chunks in one shard: their index has 16 B for each, and is read as a whole.
pub const SHARD_CHUNKS_MAX: u64 = 1 << 22;

/// Most bytes of one element, as which its fill value lies in memory, and as text in metadata \[B\].
pub(super) const ELEMENT_BYTES_MAX: u64 = 1 << 20;

/// Deepest that shards may lie in shards.
pub(super) const DEPTH_MAX: usize = 4;

/// Most bytes of the texts of one chunk, whose length nothing says before they are decoded [B].
pub const TEXTS_BYTES_MAX: u64 = 1 << 30;

/// Most memory that a stream of LZMA may want for its dictionary \[KiB\]: what xz wants at its highest level, and some.
pub(super) const LZMA_KIB_MAX: u32 = 80 << 10;
