//! Sizes of heaps and trees, and how many links lie where.

/// Bytes of a block of objects \[B\].
pub(super) const BLOCK_BYTES: usize = 2048;

/// What comes before the objects of a block \[B\]: a signature, a version, the address of the heap, an offset, a checksum.
pub(super) const BLOCK_HEAD_BYTES: usize = 4 + 1 + 8 + 4 + 4;

pub(super) const ROOM_BYTES: u64 = (BLOCK_BYTES - BLOCK_HEAD_BYTES) as u64;

/// Blocks in a row of a table.
pub(super) const WIDTH: u64 = 2;

/// Bits of an offset.
pub(super) const OFFSET_BITS: u16 = 32;

/// Bytes of a heap's head \[B\].
pub(super) const HEAP_HEAD_BYTES: usize = 146;

/// Bytes of what an object is found by \[B\]: libraries have room for so many in indexes of links.
pub(super) const ID_BYTES: usize = 7;

/// Most bytes of an object \[B\].
pub(in crate::hdf5) const OBJECT_BYTES_MAX: usize = 2000;

/// Bytes of a node, as libraries make those of links \[B\].
pub(super) const NODE_BYTES: usize = 512;

/// Bytes of a head \[B\].
pub(super) const TREE_HEAD_BYTES: usize = 38;

/// Nodes with fewer records are merged by libraries that remove some [%].
pub(super) const MERGE_PERCENT: usize = 40;

/// Levels that are counted: with so many, a tree has more records than a heap can hold objects.
pub(super) const LEVELS: usize = 7;

/// Most links of a group that lie in its header: more cost less here.
pub(in crate::hdf5) const COMPACT_MAX: usize = 64;

/// Numbers that a header keeps for links to come, so that it is not made anew for each \[links\].
pub(in crate::hdf5) const ORDER_AHEAD: u64 = 1024;

/// Types of records: links by the hash of their names, and by their order; and how many bytes they have \[B\].
pub(super) const BY_NAME: (u8, usize) = (5, 4 + ID_BYTES);

pub(super) const BY_ORDER: (u8, usize) = (6, 8 + ID_BYTES);

/// Bytes of what an attribute is found by in its heap, and most bytes of one that libraries put into blocks \[B\].
pub(super) const ATTRIBUTE_ID_BYTES: usize = 8;

pub(super) const ATTRIBUTE_OBJECT_BYTES_MAX: usize = 4096;

/// Types of records, and their bytes: huge objects by their numbers; attributes by the hash of their names, and by their order.
pub(super) const HUGE: (u8, usize) = (1, 24);

pub(super) const ATTRIBUTE_BY_NAME: (u8, usize) = (8, ATTRIBUTE_ID_BYTES + 9);

pub(super) const ATTRIBUTE_BY_ORDER: (u8, usize) = (9, ATTRIBUTE_ID_BYTES + 5);

/// Where the heads of trees lie in the root block \[B\].
pub(super) const NAMES_AT: u64 = HEAP_HEAD_BYTES.next_multiple_of(8) as u64;

pub(super) const ORDERS_AT: u64 = NAMES_AT + TREE_HEAD_BYTES.next_multiple_of(8) as u64;

/// Bytes of the root block \[B\].
pub(super) const ROOT_BYTES: u64 = ORDERS_AT + TREE_HEAD_BYTES as u64;
