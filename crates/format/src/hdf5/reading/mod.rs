//! Reading: from the superblock to what a file holds.
//!
//! ```text
//! superblock -> object headers -> messages -> groups, datasets, attributes -> trees, arrays and heaps
//! ```
//!
//! Every call has a [`fetch::Fetcher`], which reads each block once, and so comes to an end whatever a file says.

mod array_extensible;
mod array_fixed;
mod attributes;
mod chunks;
mod datasets;
mod datatypes;
mod dense;
mod drafts;
mod fetch;
mod fields;
mod grid;
mod groups;
mod header;
mod heap_fractal;
mod heap_global;
mod heap_kept;
mod heap_local;
mod layout;
mod messages;
mod search;
mod slots;
mod superblock;
#[cfg(test)]
mod tests;
mod tree_v1;
mod tree_v2;
mod values;

pub use attributes::NamedAttribute;
pub(super) use dense::{DensePlaces, StoredDense, StoredHeap};
pub(super) use drafts::HeaderDraft;
pub(super) use header::MessageKind;
pub use header::ObjectKind;
pub(super) use heap_kept::GlobalHeaps;
pub(super) use slots::ChangedBlock;
pub use superblock::{Hdf5File, SIGNATURE};
pub(super) use tree_v1::{ChunkNodes, TreeNode};
pub(super) use tree_v2::{ChildNode, StoredNode, TreeLevel, tree_levels, width};
