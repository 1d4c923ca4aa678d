//! The index of a dataset in chunks of a file that exists, where some chunks are new.

use super::content::{Chunk, ChunkIndex, DatasetStorage, MetadataSource, NOWHERE};
use super::patching::{PatchedTree, patched};
use super::reading::{ChunkNodes, Hdf5File};
use super::writing::{ChunkPlace, chunk_index, past, tree_of_chunks};
use crate::error::{Context, Error};
use hyperslab_layout::mesh;

/// What becomes of a dataset in chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedDataset {
    /// Address of its header \[B\].
    pub at: u64,
    /// Its shape from now on.
    pub shape: Vec<u64>,
    /// Chunks that are new, or have another place than before, in the order of their numbers in the grid of that shape; where
    /// there are none, the index stays.
    pub places: Vec<ChunkPlace>,
}

/// An index that a dataset gets.
pub(super) struct NewIndex {
    /// What is made of it, from the given address on.
    pub(super) behind: Vec<u8>,
    /// Where it begins.
    pub(super) at: u64,
    /// Places of addresses in parts that stay, with what is there, and what shall be.
    pub(super) changed: Vec<(u64, u64, u64)>,
}

/// The index of all chunks of a dataset, old and new: of a tree of version 1, what is on the way to new ones, else all of it.
pub(super) fn index(
    file: &Hdf5File,
    source: &dyn MetadataSource,
    changed: &ChangedDataset,
    at: u64,
) -> Result<NewIndex, Error> {
    let context = Context::new("change an HDF5 dataset of", file.name());
    let dataset = file.dataset_at(source, changed.at)?;
    let DatasetStorage::Chunked { chunk, index, .. } = &dataset.storage else {
        return Err(context.invalid("a dataset in chunks", "one that is stored otherwise"));
    };
    let element = u64::from(dataset.datatype.bytes());
    if let ChunkIndex::TreeV1 { at: root } = index {
        let nodes = ChunkNodes::of(file, source, chunk.len());
        let entries = tree_of_chunks(&changed.shape, chunk, &changed.places);
        let PatchedTree { behind, root, neighbours } =
            patched(&nodes, *root, &entries, &|key| past(key, chunk, element), at)?;
        return Ok(NewIndex { behind, at: root, changed: neighbours });
    }
    let old_shape = dataset.shape.clone().unwrap_or_default();
    let grid = |shape: &[u64]| -> Vec<u64> { shape.iter().zip(chunk).map(|(n, c)| n.div_ceil(*c)).collect() };
    let whole: Vec<_> = grid(&old_shape).into_iter().map(|extent| 0..extent).collect();
    let new_grid = grid(&changed.shape);
    let kept = file.chunks(source, &dataset, &whole)?.into_iter().map(|found| {
        let Chunk { coordinates, at, bytes, lacks } = found;
        let bytes =
            u32::try_from(bytes).map_err(|_| context.corrupt("chunks of less than 4 GiB", bytes.to_string()))?;
        Ok(ChunkPlace { number: mesh::ravel(&coordinates, &new_grid), at, bytes, lacks })
    });
    let kept = kept.collect::<Result<Vec<_>, Error>>()?;
    let places = merged(kept, &changed.places);
    let behind = chunk_index(&changed.shape, (chunk, element), &places, at);
    let at = if behind.is_empty() { NOWHERE } else { at };
    Ok(NewIndex { behind, at, changed: Vec::new() })
}

/// Both, in order; of chunks in both, the new ones.
fn merged(kept: Vec<ChunkPlace>, new: &[ChunkPlace]) -> Vec<ChunkPlace> {
    let mut all = Vec::with_capacity(kept.len() + new.len());
    let mut new = new.iter().peekable();
    for old in kept {
        while let Some(place) = new.next_if(|place| place.number < old.number) {
            all.push(*place);
        }
        if new.peek().is_none_or(|place| place.number != old.number) {
            all.push(old);
        }
    }
    all.extend(new);
    all
}
