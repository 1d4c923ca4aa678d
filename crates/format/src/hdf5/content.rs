//! What a file holds, as it is found by reading.

use super::datatype::Datatype;
use crate::error::{Context, Error};
use crate::size::NDIM_MAX;

/// An address that means nowhere.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// Where the bytes of a file come from. It is asked for stretches of metadata only, which are short.
pub trait MetadataSource {
    /// Length of the file \[B\].
    fn length(&self) -> u64;

    /// These bytes, all of them.
    ///
    /// # Errors
    /// When the file does not have them, or cannot be read.
    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Error>;
}

/// What a group has under a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// The name, without a path.
    pub name: String,
    /// What it leads to.
    pub member: LinkTarget,
}

/// What a name leads to.
#[derive(Clone, PartialEq, Debug)]
pub enum LinkTarget {
    /// An object of this file, by the address of its header \[B\].
    Object(u64),
    /// Another path of this file.
    Soft(String),
    /// A path of another file.
    External {
        /// The other file, as it was named.
        file: String,
        /// The path in it.
        path: String,
    },
    /// A kind of link that only its maker knows, by its number.
    Unknown(u8),
}

/// What an attribute is, as it is stored.
#[derive(Clone, PartialEq, Debug)]
pub enum StoredValue {
    /// Elements behind each other, as they are stored.
    Elements(Vec<u8>),
    /// Strings of variable length, perhaps in other encodings than UTF-8.
    Texts(Vec<Vec<u8>>),
    /// Lists of variable length, each with the stored bytes of its elements.
    Lists(Vec<Vec<u8>>),
}

/// A named value of a group or a dataset.
#[derive(Clone, PartialEq, Debug)]
pub struct Hdf5Attribute {
    /// Its name.
    pub name: String,
    /// Type of its elements.
    pub datatype: Datatype,
    /// Its shape: `[]` for one element, `None` where it has no elements at all (a null dataspace).
    pub shape: Option<Vec<u64>>,
    /// Its elements.
    pub value: StoredValue,
}

/// A step of the filter pipeline, in the order of encoding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Filter {
    /// Its registered number: 1 deflate, 2 shuffle, 3 fletcher32.
    pub number: u16,
    /// Its name, where the file has it.
    pub name: String,
    /// Whether a chunk may be stored without it.
    pub optional: bool,
    /// What it was set up with.
    pub values: Vec<u32>,
}

/// How the addresses of chunks are found; `at` is where its index, or its first chunk, begins \[B\].
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "what fields are is said above, or with their variant")]
pub enum ChunkIndex {
    /// No chunk exists.
    Empty,
    /// There is one chunk, whole; with its stored bytes and the filters that it lacks, where there are filters.
    Single { at: u64, filtered: Option<(u64, u32)> },
    /// All exist, one after another, unfiltered.
    Implicit { at: u64 },
    /// A fixed array.
    FixedArray { at: u64 },
    /// An extensible array: one dimension is unlimited.
    ExtensibleArray { at: u64 },
    /// A B-tree of version 2: several dimensions are unlimited.
    TreeV2 { at: u64 },
    /// A B-tree of version 1, as files have that are for old libraries, too.
    TreeV1 { at: u64 },
}

/// Where the elements of a dataset lie; `at` is their first byte \[B\].
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "what fields are is said above, or with their variant")]
pub enum DatasetStorage {
    /// In its header, in so many bytes, which a checksum may cover.
    Compact { at: u64, bytes: u64 },
    /// In one stretch; nowhere as long as nothing was written.
    Contiguous { at: Option<u64>, bytes: u64 },
    /// In chunks of this shape, those at the edge stored whole; these perhaps without filters.
    Chunked { chunk: Vec<u64>, index: ChunkIndex, plain_edges: bool },
    /// Somewhere that is not supported, and why: external files, virtual datasets, versions of the future.
    Unsupported(String),
}

/// A dataset, which elsewhere is called an array.
#[derive(Clone, PartialEq, Debug)]
pub struct Dataset {
    /// Address of its header \[B\].
    pub at: u64,
    /// Type of its elements.
    pub datatype: Datatype,
    /// Its shape; `None` where it has no elements at all (a null dataspace).
    pub shape: Option<Vec<u64>>,
    /// How far each dimension may grow; `None` without limit. Equal to the shape where nothing grows.
    pub limits: Vec<Option<u64>>,
    /// One element for what was never written, as stored; `None` where it is undefined or zero by default.
    pub fill: Option<Vec<u8>>,
    /// Where its elements lie.
    pub storage: DatasetStorage,
    /// What chunks went through, in the order of encoding.
    pub filters: Vec<Filter>,
}

impl Dataset {
    /// The same as readers have it: the extents of arrays that are its elements are dimensions behind its own, as h5py reads
    /// them. `name` is the name of the dataset in errors.
    ///
    /// # Errors
    /// When the elements of one fill value differ, or it would have too many dimensions.
    pub fn unfolded(mut self, name: &str) -> Result<Dataset, Error> {
        while let (Datatype::Array { shape: inner, base }, Some(shape)) = (&self.datatype, &mut self.shape) {
            let context = Context::new("use HDF5 dataset", name);
            if shape.len() + inner.len() > NDIM_MAX {
                return Err(context.unsupported(format!("at most {NDIM_MAX} dimensions"), "more"));
            }
            if let Some(fill) = &mut self.fill {
                let bytes = base.bytes() as usize;
                if fill.chunks(bytes.max(1)).any(|one| one != &fill[..bytes]) {
                    return Err(context.unsupported("one fill value", "an array of several"));
                }
                fill.truncate(bytes);
            }
            let extents: Vec<u64> = inner.iter().map(|extent| u64::from(*extent)).collect();
            self.limits.extend(extents.iter().copied().map(Some));
            if let DatasetStorage::Chunked { chunk, .. } = &mut self.storage {
                chunk.extend(&extents);
            }
            shape.extend(extents);
            self.datatype = (**base).clone();
        }
        Ok(self)
    }
}

/// A dimension of netCDF-4 in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedDimension {
    /// The path of the group that defines it: `/`, or with a `/` at both ends.
    pub group: String,
    /// Its name.
    pub name: String,
    /// How long it is.
    pub length: u64,
    /// Whether it may grow without limit.
    pub unlimited: bool,
    /// The address of the header of its dataset \[B\].
    pub at: u64,
    /// Its number among all, where the file says it.
    pub id: Option<i32>,
    /// Whether there is a variable of it.
    pub has_variable: bool,
}

/// A chunk that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its coordinates in the grid of chunks.
    pub coordinates: Vec<u64>,
    /// Its first byte \[B\].
    pub at: u64,
    /// How many bytes are stored.
    pub bytes: u64,
    /// A bit for each filter that it did not go through.
    pub lacks: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::ByteOrder;

    #[test]
    fn a_fill_value_of_several_numbers_is_refused() {
        let base = Box::new(Datatype::Integer { bytes: 2, signed: true, order: ByteOrder::Little });
        let datatype = Datatype::Array { shape: vec![2, 1], base };
        let dataset = |fill: &[u8]| Dataset {
            at: 0,
            datatype: datatype.clone(),
            shape: Some(vec![3]),
            limits: vec![None],
            fill: Some(fill.to_vec()),
            storage: DatasetStorage::Chunked { chunk: vec![2], index: ChunkIndex::Empty, plain_edges: false },
            filters: Vec::new(),
        };
        let unfolded = dataset(&[1, 2, 1, 2]).unfolded("d").unwrap();
        assert_eq!((unfolded.shape, unfolded.limits), (Some(vec![3, 2, 1]), vec![None, Some(2), Some(1)]));
        assert_eq!(unfolded.fill, Some(vec![1, 2]));
        assert_eq!(
            unfolded.storage,
            DatasetStorage::Chunked { chunk: vec![2, 2, 1], index: ChunkIndex::Empty, plain_edges: false }
        );
        let error = dataset(&[1, 2, 1, 3]).unfolded("d").unwrap_err();
        assert_eq!(error.found(), "an array of several");
    }
}
