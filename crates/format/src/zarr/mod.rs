//! Zarr v3: one directory or key prefix per array, one object per chunk.
//!
//! Follows the Zarr core specification, version 3.1, for regular chunk grids. Written metadata are what zarr-python 3
//! reads; read metadata may come from any writer.

mod chain;
mod codecs;
pub mod consolidated;
mod fill;
mod group;
mod json;
mod keys;
mod metadata;

pub use chain::{CHECKSUM_BYTES, Chain};
pub use codecs::{BytesCodec, Codecs};
pub use fill::{fill_from_json, fill_to_json, fill_zero};
pub use group::{GroupMetadata, NodeType, node_type};
pub use keys::{KeyEncoding, KeyStyle, Separator};
pub use metadata::ArrayMetadata;
pub use serde_json::{Map, Value};

/// Name of the metadata object within the directory of an array or group.
pub const METADATA_KEY: &str = "zarr.json";
