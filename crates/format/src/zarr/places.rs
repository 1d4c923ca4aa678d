//! What those need to know of an array who know no format: how its chunks are coded, and in which objects they lie.

use super::codecs::Codecs;
use super::metadata::ArrayMetadata;
use hyperslab_layout::stored::{Coding, Shards};
use std::sync::Arc;

/// The chunks inside of shards, as they are read.
#[derive(Clone, Debug)]
pub struct InnerChunks {
    /// Shape of a chunk.
    pub chunk: Vec<u64>,
    /// How its elements are coded.
    pub coding: Coding,
    /// The shards that hold it, of which no index was read.
    pub shards: Shards,
}

impl ArrayMetadata {
    /// How a chunk of the grid is coded: an object; of an array in shards, a shard. `fill` is one element as it is stored.
    pub fn coding(&self, fill: &[u8]) -> Coding {
        let codecs = self.running_codecs();
        match codecs.shard_codec(&self.chunk_shape, fill) {
            Some(codec) => Coding::Encoded(Arc::new(codec)),
            None => codecs.coding(),
        }
    }

    /// Shape of the chunks that are coded by themselves: inside of shards, or of the grid.
    pub fn inner_chunk_shape(&self) -> Vec<u64> {
        let Some(sharding) = &self.codecs.shards else { return self.chunk_shape.clone() };
        let mut shape = vec![0; self.shape.len()];
        let order = self.codecs.outer_order(shape.len());
        order.into_iter().zip(&sharding.chunk_shape).for_each(|(d, &extent)| shape[d] = extent);
        shape
    }

    /// Its chunks, where they lie in shards of which a part can be read.
    pub fn inner(&self, fill: &[u8]) -> Option<InnerChunks> {
        let codec = self.codecs.shard_codec(&self.chunk_shape, fill)?;
        let sharding = self.codecs.shards.as_deref().filter(|_| self.codecs.chain.is_empty())?;
        let chunk = self.inner_chunk_shape();
        let shards = Shards {
            keys: self.key_encoding.keys(""),
            chunks: self.chunk_shape.iter().zip(&chunk).map(|(shard, chunk)| shard / chunk).collect(),
            order: self.codecs.outer_order(chunk.len()),
            codec: Arc::new(codec),
            known: None,
        };
        let Codecs { chain, .. } = &sharding.codecs;
        // In the shape of the chunk, whose dimensions the codecs inside see as those before left them.
        let coding = match (sharding.codecs.shard_codec(&sharding.chunk_shape, fill), chain.as_slice()) {
            (Some(nested), _) => Coding::Encoded(Arc::new(nested)),
            (None, []) => Coding::Plain,
            // A checksum inside of an object is not one of the object.
            (None, chain) => Coding::Encoded(Arc::new(super::chain::Chain::of(chain))),
        };
        Some(InnerChunks { chunk, coding, shards })
    }
}
