//! What is to be made: groups and datasets, as a tree.

use crate::hdf5::content::{Filter, Hdf5Attribute};
use crate::hdf5::datatype::Datatype;
use std::sync::Arc;

/// A group that is to be made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NewGroup {
    /// Its name; that of the root does not matter.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<Hdf5Attribute>,
    /// What is in it, in the order in which it was made.
    pub members: Vec<NewMember>,
    /// Of the root: whether the file is one of netCDF-4.
    pub netcdf: bool,
    /// Of the root: whether such a file keeps to the classic model.
    pub classic: bool,
}

/// Something in a group that is to be made.
#[derive(Clone, PartialEq, Debug)]
pub enum NewMember {
    /// A group.
    Group(NewGroup),
    /// A dataset.
    Dataset(NewDataset),
}

impl NewMember {
    pub(in crate::hdf5) fn name(&self) -> &str {
        match self {
            NewMember::Group(group) => &group.name,
            NewMember::Dataset(dataset) => &dataset.name,
        }
    }
}

/// A dataset that is to be made.
#[derive(Clone, PartialEq, Debug)]
pub struct NewDataset {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// How far each dimension may grow; `None` without limit. Empty where nothing grows.
    pub limits: Vec<Option<u64>>,
    /// Type of its elements.
    pub datatype: Datatype,
    /// One element for what was never written, as stored.
    pub fill: Option<Vec<u8>>,
    /// Where its elements lie.
    pub storage: NewStorage,
    /// What chunks went through, in the order of encoding.
    pub filters: Vec<Filter>,
    /// Its attributes.
    pub attributes: Vec<Hdf5Attribute>,
    /// Names of its dimensions, each of which is a dimension of netCDF-4 in its group or above; empty where it has none.
    pub dimensions: Vec<String>,
}

impl NewDataset {
    /// Whether any dimension may grow.
    pub(super) fn grows(&self) -> bool {
        self.limits.iter().zip(&self.shape).any(|(limit, extent)| limit.is_none_or(|limit| limit > *extent))
    }
}

/// Where the elements of a new dataset lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewStorage {
    /// In one stretch from this address on; nowhere where nothing was written.
    Contiguous(Option<u64>),
    /// In chunks of this shape, of which some exist.
    Chunked {
        /// Their shape.
        chunk: Vec<u64>,
        /// Where those lie that exist, in the order of their numbers.
        places: Arc<[ChunkPlace]>,
    },
}

/// Where a chunk of a new dataset lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkPlace {
    /// Its number in the grid, of which the last dimension is the fastest.
    pub number: u64,
    /// Its first byte \[B\].
    pub at: u64,
    /// How many bytes are stored.
    pub bytes: u32,
    /// A bit for each filter that it did not go through.
    pub lacks: u32,
}

/// Most bytes that a chunk may have \[B\]: the index counts them with 32 bits.
pub const CHUNK_BYTES_MAX: u64 = u32::MAX as u64;
