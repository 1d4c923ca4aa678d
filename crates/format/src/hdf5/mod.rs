//! HDF5 files: what their bytes mean, for the part of the format that arrays need.
//!
//! ```text
//! | superblock | elements of datasets, whole or in chunks, and headers, links, indexes, heaps in any order |
//! ```
//!
//! Reading follows addresses from the superblock on, and asks a [`MetadataSource`] for no more than it needs; writing makes the
//! metadata of a file whose elements others put where it was said. What is read may be hostile: sizes are checked before
//! anything is allocated, depth and steps are bounded, and nonsense is an [`crate::Error`]. The format is that of the
//! "HDF5 File Format Specification Version 3.0" of The HDF Group; sections are named where they are carried out.

mod attributes;
mod changing;
mod content;
mod datatype;
mod dense;
mod dimensions;
mod editing;
mod element;
mod listing;
mod lookup3;
mod object_walk;
mod patching;
mod pipeline;
mod policy;
mod reading;
mod text_heap;
mod writing;

pub use attributes::{Dialect, OF_DIMENSIONS};
pub use changing::ChangedDataset;
pub use content::{
    Chunk, ChunkIndex, Dataset, DatasetStorage, Filter, Hdf5Attribute, Link, LinkTarget, ListedDimension,
    MetadataSource, StoredValue,
};
pub use datatype::{CompoundField, Datatype, TextEnd};
pub use dimensions::FoundDimensions;
pub use editing::{Hdf5Change, Hdf5Edit};
pub use element::check_netcdf_element;
pub use listing::{Hdf5Listing, ListedDataset};
pub use object_walk::ListedGroup;
pub use pipeline::Pipeline;
pub use policy::TEXT_ELEMENT_BYTES;
pub use reading::{Hdf5File, NamedAttribute, ObjectKind, SIGNATURE};
pub use text_heap::TextHeap;
pub use writing::{
    CHUNK_BYTES_MAX, ChunkPlace, Hdf5Metadata, NewDataset, NewGroup, NewMember, NewStorage, SUPERBLOCK_BYTES,
};
