//! Changing a file that exists: datasets in chunks get new chunks, and grow.
//!
//! Chunks are never overwritten. New ones, and an index of all, lie behind the end of the file; then the superblock says that
//! the file goes that far, and last of all the dataset's header says where the index is. Up to there, everything reads as
//! before. Space that chunks and indexes had before is lost, as it is to HDF5 itself when a file is closed.

use super::content::{Chunk, Dataset, DatasetStorage, MetadataSource};
use super::reading::{ChangedBlock, Hdf5File};
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

/// What is written, and in which order, so that a file has changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hdf5Change {
    /// Bytes behind the end that it had, from the address on that was given.
    pub behind: Vec<u8>,
    /// Bytes in place, each at its address; to be written one after another, once all else is durable.
    pub in_place: Vec<(u64, Vec<u8>)>,
    /// What was there before, to be written in the reverse order if that fails.
    pub before: Vec<(u64, Vec<u8>)>,
}

impl Hdf5Change {
    /// That of these datasets, where what is behind the end begins at this address, which is a multiple of 8.
    ///
    /// # Errors
    /// When the file is damaged, or a header has no place for it.
    pub fn of(
        file: &Hdf5File,
        source: &dyn MetadataSource,
        changed: &[ChangedDataset],
        at: u64,
    ) -> Result<Hdf5Change, Error> {
        let mut behind = Vec::new();
        let mut blocks = Vec::new();
        for dataset in changed {
            let index_at = Some(at + behind.len() as u64).filter(|_| !dataset.places.is_empty());
            if let Some(index_at) = index_at {
                behind.extend(index(file, source, dataset, index_at)?);
                behind.resize(behind.len().next_multiple_of(8), 0);
            }
            blocks.extend(file.header_with(source, dataset.at, (&dataset.shape, index_at))?);
        }
        let end = at + behind.len() as u64;
        let superblock = if behind.is_empty() { None } else { Some(file.ending_at(source, end)?) };
        let blocks: Vec<ChangedBlock> = superblock.into_iter().chain(blocks).collect();
        let in_place = blocks.iter().map(|block| (block.at, block.after.clone())).collect();
        let before = blocks.into_iter().map(|block| (block.at, block.before)).collect();
        Ok(Hdf5Change { behind, in_place, before })
    }

    /// Refuses datasets that cannot be changed so, before anything is written.
    ///
    /// # Errors
    /// As [`Hdf5Change::of`].
    pub fn check(file: &Hdf5File, source: &dyn MetadataSource, dataset: &Dataset) -> Result<(), Error> {
        let shape = dataset.shape.as_deref().unwrap_or_default();
        file.ending_at(source, 0)?;
        file.header_with(source, dataset.at, (shape, Some(0))).map(drop)
    }
}

/// The index of all chunks of a dataset, old and new.
fn index(file: &Hdf5File, source: &dyn MetadataSource, changed: &ChangedDataset, at: u64) -> Result<Vec<u8>, Error> {
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
