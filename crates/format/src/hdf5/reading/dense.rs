//! Links of a group in a heap and trees, part by part, for those who change them.

use super::fetch::Fetcher;
use super::heap_fractal::FractalHeap;
use super::superblock::Hdf5File;
use super::tree_v2::{ChildNode, StoredNode, TreeV2};
use crate::error::{Context, Error};
use crate::hdf5::content::MetadataSource;

/// Where the heads of the heap and of the trees lie, by name and by order \[B\].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hdf5) struct DensePlaces {
    pub(in crate::hdf5) heap: u64,
    pub(in crate::hdf5) names: u64,
    pub(in crate::hdf5) orders: Option<u64>,
}

/// Links in a heap and trees.
pub(in crate::hdf5) struct StoredDense<'a> {
    fetcher: Fetcher<'a>,
    places: DensePlaces,
}

/// What the head of a heap says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::hdf5) struct StoredHeap {
    pub(in crate::hdf5) object_bytes_max: u64,
    /// Whether it has no huge or tiny objects, no list of free space, checksums, and IDs of 7 B.
    pub(in crate::hdf5) is_plain: bool,
    /// What is free, what tables have room for, what blocks were given, and where the next one begins \[B\].
    pub(in crate::hdf5) free: u64,
    pub(in crate::hdf5) all: u64,
    pub(in crate::hdf5) given: u64,
    pub(in crate::hdf5) next: u64,
    pub(in crate::hdf5) objects: u64,
    /// How its tables are set up, as stored.
    pub(in crate::hdf5) fixed: Vec<u8>,
    pub(in crate::hdf5) root: Option<u64>,
    pub(in crate::hdf5) rows: u64,
}

/// What the head of a tree says.
pub(in crate::hdf5) struct StoredTree {
    pub(in crate::hdf5) kind: u8,
    pub(in crate::hdf5) record_bytes: u64,
    pub(in crate::hdf5) node_bytes: u64,
    pub(in crate::hdf5) root: Option<ChildNode>,
}

impl<'a> StoredDense<'a> {
    /// Those of a group of the file.
    pub(in crate::hdf5) fn of(file: &Hdf5File, source: &'a dyn MetadataSource, places: DensePlaces) -> StoredDense<'a> {
        let context = Context::new("change a group of", "an HDF5 file");
        StoredDense { fetcher: Fetcher::new(source, file.widths, context), places }
    }

    pub(in crate::hdf5) fn places(&self) -> DensePlaces {
        self.places
    }

    /// The head of the heap.
    pub(in crate::hdf5) fn heap(&self) -> Result<StoredHeap, Error> {
        // It is verified where it is read as one.
        FractalHeap::read(&self.fetcher, self.places.heap)?;
        let block = self.fetcher.block(self.places.heap, 146, b"FRHP")?;
        let mut fields = self.fetcher.fields(&block[5..], "fractal heap");
        let is_usual = (fields.two()?, fields.two()?, fields.byte()?) == (7, 0, 2);
        let object_bytes_max = u64::from(fields.four()?);
        let mut is_plain = is_usual && fields.number(8)? == 0 && fields.address()?.is_none();
        let free = fields.number(8)?;
        is_plain &= fields.address()?.is_none();
        let (all, given, next, objects) = (fields.number(8)?, fields.number(8)?, fields.number(8)?, fields.number(8)?);
        for _ in 0..4 {
            is_plain &= fields.number(8)? == 0;
        }
        let fixed = fields.take(22)?.to_vec();
        let (root, rows) = (fields.address()?, fields.two()?.into());
        Ok(StoredHeap { object_bytes_max, is_plain, free, all, given, next, objects, fixed, root, rows })
    }

    /// The head of the tree at this address.
    pub(in crate::hdf5) fn tree(&self, at: u64) -> Result<StoredTree, Error> {
        let tree = TreeV2::read(&self.fetcher, at)?;
        let (node_bytes, root) = (tree.node_bytes(), tree.root());
        Ok(StoredTree { kind: tree.kind, record_bytes: tree.record_bytes, node_bytes, root })
    }

    /// A node of the tree at this address.
    pub(in crate::hdf5) fn node(&self, tree: u64, node: ChildNode) -> Result<StoredNode, Error> {
        TreeV2::read(&self.fetcher, tree)?.opened(node)
    }

    /// The addresses in a table of the heap.
    pub(in crate::hdf5) fn heap_table(&self, at: u64, rows: u64) -> Result<Vec<u64>, Error> {
        let table = FractalHeap::read(&self.fetcher, self.places.heap)?.table(at, rows)?;
        Ok(table.as_chunks::<8>().0.iter().map(|at| u64::from_le_bytes(*at)).collect())
    }

    /// A block of the heap, of so many bytes.
    pub(in crate::hdf5) fn heap_block(&self, at: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        Ok(FractalHeap::read(&self.fetcher, self.places.heap)?.direct(at, bytes)?.to_vec())
    }

    /// The object of the heap with this ID.
    pub(in crate::hdf5) fn object(&self, id: &[u8]) -> Result<Vec<u8>, Error> {
        FractalHeap::read(&self.fetcher, self.places.heap)?.object(id)
    }
}
