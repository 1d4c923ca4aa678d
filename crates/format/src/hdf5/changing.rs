//! The index of a dataset in chunks of a file that exists, where some chunks are new.

use super::content::{Chunk, DatasetStorage, MetadataSource};
use super::reading::Hdf5File;
use super::writing::{ChunkPlace, chunk_index};
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

/// The index of all chunks of a dataset, old and new.
pub(super) fn index(
    file: &Hdf5File,
    source: &dyn MetadataSource,
    changed: &ChangedDataset,
    at: u64,
) -> Result<Vec<u8>, Error> {
    let context = Context::new("change an HDF5 dataset of", file.name());
    let dataset = file.dataset_at(source, changed.at)?;
    let DatasetStorage::Chunked { chunk, .. } = &dataset.storage else {
        return Err(context.invalid("a dataset in chunks", "one that is stored otherwise"));
    };
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
    Ok(chunk_index(&changed.shape, (chunk, dataset.datatype.bytes().into()), &places, at))
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
