//! Limits of what is read: a file that needs more is refused.

/// Most bytes of metadata that are read as one \[B\]: more than the largest local heap of a group with ten million links.
pub(crate) const BLOCK_BYTES_MAX: u64 = 1 << 29;

/// What may be read besides a small multiple of the file, so that short files can be read several times \[B\].
pub(crate) const SLACK_BYTES: u64 = 1 << 20;

/// What is kept of collections of values of variable length while many objects are looked at \[B\].
pub(crate) const KEPT_BYTES_MAX: usize = 16 << 20;

/// How often the bytes of a file may be read in one call. Metadata that are well formed are read once or twice.
pub(crate) const TIMES_MAX: u64 = 4;

/// How many levels types may be nested.
pub(crate) const TYPE_DEPTH_MAX: u32 = 32;

/// How many levels a tree may have: one of 2^64 records in the smallest nodes has fewer.
pub(crate) const TREE_DEPTH_MAX: u32 = 64;

/// What is read of an object's header at once, which most headers do not exceed \[B\].
pub(crate) const HEADER_BYTES_LIKELY: u64 = 512;

/// Filters that a pipeline may have, each with a bit in the mask of those left out.
pub(crate) const FILTERS_MAX: usize = 32;

/// The largest number that any library gave to a kind of message. Others that must be known are refused.
pub(crate) const MESSAGE_KIND_LAST: u16 = 0x18;

/// Blocks of LZ4 unless a pipeline says otherwise \[B\].
pub(crate) const LZ4_BLOCK_BYTES: usize = 1 << 30;

/// Most bytes of the name of an object that is made: tools that list files have room for so many.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// What a disk writes whole or not at all \[B\]. Disks of today have sectors of 4 KiB, older ones of 512 B.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Most bytes of a message that says nothing, a multiple of 8 below 64 KiB \[B\].
pub(crate) const NOTHING_BYTES_MAX: usize = 65_528;
/// Most objects of a file that are looked at.
pub(super) const OBJECTS_MAX: usize = 1 << 21;
/// Most names of objects besides the first of each, and groups that are looked at to see whether one lies in itself.
pub(super) const REPEATS_MAX: usize = 1 << 20;
/// Most soft links of which each leads to the next.
pub(super) const SOFT_LINKS_DEEP_MAX: usize = 16;

/// The list of a dimension is made again when one in so many of the datasets that have it is missing there.
pub(super) const USES_AT_ONCE: usize = 8;

/// Bytes of an element that is a text of any length: its length, an address, and the number of an object there \[B\].
pub const TEXT_ELEMENT_BYTES: u64 = 16;
