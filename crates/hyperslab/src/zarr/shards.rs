//! New arrays whose chunks lie in shards: objects that hold many, so that small chunks do not make very many files.

use super::policy::{FILES_SAVED_MIN, INNER_BYTES_MAX, SHARD_BUFFERS_PART, SHARD_BYTES_MAX};
use super::shapes::{Open, separator};
use crate::error::format_fault;
use crate::options::{ShardShape, WriteOptions};
use hyperslab_format::zarr::{ArrayMetadata, Codecs, SHARD_CHUNKS_MAX, Sharding};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Kind, cut, tuple};
use hyperslab_plan::{Parameters, Use};
use hyperslab_world::{Fault, FaultKind};

/// Metadata of a new array in chunks of this shape, coded and put into shards as the options say.
pub(super) fn new_array(
    name: &str,
    shape: &[u64],
    kind: Kind,
    chunks: &[u64],
    new: &WriteOptions,
) -> Result<ArrayMetadata, Fault> {
    let codecs = new.codecs.clone().unwrap_or_else(|| Codecs::plain(true));
    let ShardShape::Given(shard) = &new.shards else {
        return ArrayMetadata::new(name, shape, kind, chunks, codecs).map_err(format_fault);
    };
    if codecs.shards.is_some() {
        let text = format!("shards of '{name}' are given twice: as a shape, and as a codec");
        return Err(Fault::new(FaultKind::Invalid, text).hint("leave one of them out"));
    }
    let inner = match &new.chunks {
        Some(chunks) => chunks.clone(),
        None => divided(shard, kind.bytes()),
    };
    let metadata = ArrayMetadata::new(name, shape, kind, &inner, codecs).map_err(format_fault)?;
    in_shards(name, &metadata, shard)
}

/// The same array, its chunks in shards of this shape.
pub(super) fn in_shards(name: &str, metadata: &ArrayMetadata, shard: &[u64]) -> Result<ArrayMetadata, Fault> {
    let sharding = Sharding::new(&metadata.chunk_shape, metadata.codecs.clone());
    let mut metadata =
        ArrayMetadata { chunk_shape: shard.to_vec(), codecs: Codecs::sharded(sharding), ..metadata.clone() };
    metadata.key_encoding.separator = separator(&metadata);
    metadata.check(name).map_err(format_fault)?;
    Ok(metadata)
}

/// The same as `metadata` in shards, and a word on it, where nobody says whether a new array shall be in shards, they save many
/// files, and it can be written so. `natural` is the shape of what ranks write at once, and `budget` that of a rank's buffers \[B\].
pub(super) fn choose_shards(
    open: &Open<'_>,
    new: &WriteOptions,
    metadata: &ArrayMetadata,
    natural: &[u64],
    budget: Option<u64>,
    possible: impl FnOnce(&Use) -> bool,
) -> Option<(ArrayMetadata, String)> {
    if new.shards != ShardShape::Chosen || metadata.codecs.shards.is_some() {
        return None;
    }
    let budget = budget.unwrap_or(Parameters::default().buffer_bytes_max);
    let saving = saving_files(&open.ask.name, metadata, natural, budget)?;
    possible(&open.write(&saving.0)).then_some(saving)
}

/// The same array in shards, and a word on it, where that saves many files and a rank has buffers for them. `natural` is the
/// shape of what ranks write at once: shards are made of the chunks that fit it, so that most have one owner.
fn saving_files(
    name: &str,
    metadata: &ArrayMetadata,
    natural: &[u64],
    buffer_bytes_max: u64,
) -> Option<(ArrayMetadata, String)> {
    let chunk = &metadata.chunk_shape;
    let most = SHARD_BYTES_MAX.min(buffer_bytes_max / SHARD_BUFFERS_PART);
    let fitting = natural.iter().zip(chunk).map(|(natural, chunk)| (natural / chunk).max(1)).collect();
    let counts = cut(fitting, metadata.chunk_bytes(), most);
    let shard: Vec<u64> = chunk.iter().zip(&counts).map(|(chunk, count)| chunk * count).collect();
    let files = |extents: &[u64]| -> u64 {
        let each = metadata.shape.iter().zip(extents).map(|(length, extent)| length.div_ceil(*extent));
        each.fold(1, u64::saturating_mul)
    };
    let (before, after) = (files(chunk), files(&shard));
    if before - after <= FILES_SAVED_MIN || volume(&counts)? > SHARD_CHUNKS_MAX {
        return None;
    }
    let sharded = in_shards(name, metadata, &shard).ok()?;
    let said = format!(
        "; chunks {chunk} of '{name}' lie in shards {shard}, since {before} files become {after}",
        chunk = tuple(chunk),
        shard = tuple(&shard)
    );
    Some((sharded, said))
}

/// The largest part of a shard that divides it and is small enough, cut along its slowest dimensions.
fn divided(shard: &[u64], element_bytes: u64) -> Vec<u64> {
    let mut chunk = shard.to_vec();
    for d in 0..chunk.len() {
        let others = chunk.iter().enumerate().filter(|&(other, _)| other != d).map(|(_, &extent)| extent);
        let each = others.fold(element_bytes, u64::saturating_mul).max(1);
        let room = (INNER_BYTES_MAX / each).max(1);
        let extent = chunk[d];
        if extent > room {
            let parts = extent.div_ceil(room)..=extent.min(1 << 20);
            chunk[d] = parts.into_iter().find(|&parts| extent.is_multiple_of(parts)).map_or(1, |parts| extent / parts);
        }
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_without_chunks_are_cut_evenly() {
        assert_eq!(divided(&[64, 64], 8), [64, 64]);
        assert_eq!(divided(&[4096, 4096], 8), [32, 4096]);
        assert_eq!(divided(&[3, 1 << 20], 8), [1, 1 << 17]);
        assert_eq!(divided(&[7919, 100_000], 8), [1, 100_000]);
        assert_eq!(divided(&[], 8), Vec::<u64>::new());
    }

    #[test]
    fn shards_are_chosen_where_they_save_many_files() {
        let chosen = |shape: &[u64], chunk: &[u64], natural: &[u64], buffers: u64| {
            let metadata = ArrayMetadata::new("a", shape, Kind::Float64, chunk, Codecs::plain(true)).unwrap();
            saving_files("a", &metadata, natural, buffers).map(|(made, said)| (made.chunk_shape, said))
        };
        let (shard, said) = chosen(&[4000, 1000], &[2, 1000], &[1000, 1000], 1 << 28).unwrap();
        assert_eq!(shard, [1000, 1000]);
        assert!(
            said.ends_with("chunks (2, 1000) of 'a' lie in shards (1000, 1000), since 2000 files become 4"),
            "{said}"
        );
        assert!(chosen(&[2004, 1000], &[2, 1000], &[1000, 1000], 1 << 28).is_none(), "999 files are saved");
        // Blocks that are no whole number of chunks; a bound that is smaller than they are.
        assert_eq!(chosen(&[40_000], &[4], &[9999], 1 << 28).unwrap().0, [9996]);
        assert_eq!(chosen(&[40_000], &[4], &[10_000], 8 * 4000).unwrap().0, [500]);
        assert!(chosen(&[40_000], &[4], &[10_000], 8).is_none());
        assert!(chosen(&[0, 4], &[1, 1], &[1, 1], 1 << 28).is_none());
    }

    #[test]
    fn shards_are_given_once_and_fit() {
        let options = |shards: &[u64]| WriteOptions::default().shards(ShardShape::Given(shards.to_vec()));
        let made = |new: &WriteOptions| new_array("a", &[100, 10], Kind::Float64, &[100, 10], new);
        let metadata = made(&options(&[20, 10]).chunks(vec![5, 10])).unwrap();
        assert_eq!((metadata.chunk_shape.clone(), metadata.inner_chunk_shape()), (vec![20, 10], vec![5, 10]));
        assert!(made(&options(&[20, 10]).chunks(vec![6, 10])).unwrap_err().text().contains("divide"));
        assert!(made(&options(&[20])).is_err());
        let twice = options(&[20, 10]).codecs(metadata.codecs);
        assert!(made(&twice).unwrap_err().text().contains("twice"));
    }
}
