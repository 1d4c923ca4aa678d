//! New arrays whose chunks lie in shards: objects that hold many, so that small chunks do not make very many files.

use super::policy::INNER_BYTES_MAX;
use super::shapes::separator;
use crate::error::format_fault;
use crate::options::{ShardShape, WriteOptions};
use hyperslab_format::zarr::{ArrayMetadata, Codecs, Sharding};
use hyperslab_layout::Kind;
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
