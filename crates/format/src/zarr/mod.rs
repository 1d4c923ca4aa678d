//! Zarr v3: one directory or key prefix per array, one object per chunk.
//!
//! Follows the Zarr core specification, version 3.1, for regular chunk grids. Written metadata are what zarr-python 3
//! reads; read metadata may come from any writer.

mod attributes;
mod blosc;
mod bytes_codec;
mod chain;
mod codecs;
pub mod consolidated;
mod data_type;
mod fill;
mod fill_attribute;
mod fill_opaque;
mod filters;
mod float8;
mod group;
mod json;
mod keys;
mod members;
mod metadata;
mod numcodecs;
mod packed;
mod places;
mod policy;
mod shard;
mod slots;
mod text_type;
mod texts;
pub mod v2;

pub use attributes::{JsonEdit, attributes_of_json, attributes_to_json};
pub use blosc::{Blosc, Compressor, Shuffle};
pub(crate) use blosc::{decode as decode_blosc, unshuffle_bits};
pub use bytes_codec::BytesCodec;
pub(crate) use chain::cut;
pub use chain::{CHECKSUM_BYTES, Chain, verified};
pub use codecs::{Codecs, Sharding};
pub use fill::{fill_from_json, fill_to_json, fill_usual};
pub use filters::{ArrayFilter, FilterNumber, Filtering};
pub use group::{GroupMetadata, NodeType, node_type};
pub use keys::{KeyEncoding, KeyStyle, Separator};
pub use metadata::ArrayMetadata;
pub use packed::ChecksumKind;
pub use places::InnerChunks;
pub use policy::{SHARD_CHUNKS_MAX, TEXTS_BYTES_MAX};
pub use serde_json::{Map, Value};
pub use shard::{ShardCodec, codec_from_bytes};

/// Name of the metadata object within the directory of an array or group.
pub const METADATA_KEY: &str = "zarr.json";
