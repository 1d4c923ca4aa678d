//! A codec as those see it who know no format: it makes bytes of bytes, and says how many at most.

use crate::numbering::Numbering;
use std::fmt;

/// First byte and number of bytes \[B\].
pub type Stretch = (u64, u64);

/// How the elements of a chunk become the bytes that are stored. Formats implement it.
pub trait Codec: fmt::Debug + Send + Sync {
    /// The bytes to store for a chunk, which holds its elements in stored order; `object` names it in errors.
    ///
    /// # Errors
    /// When the encoder fails.
    fn encode(&self, plain: &[u8], object: &str) -> Result<Vec<u8>, CodecError>;

    /// Exactly `plain_bytes` of elements, out of what was stored, which may be hostile: memory stays within a small multiple of
    /// both.
    ///
    /// # Errors
    /// When it is damaged, or decodes to another number of bytes.
    fn decode(&self, stored: &[u8], plain_bytes: u64, object: &str) -> Result<Vec<u8>, CodecError>;

    /// Most bytes \[B\] that are stored for a chunk of so many.
    fn encoded_bytes_max(&self, plain_bytes: u64) -> u64;

    /// Whether it takes the work of a compressor; without, it sums, swaps or moves bytes, which goes about as fast as copies.
    fn compresses(&self) -> bool;

    /// What its format makes the same codec of, on another rank. Codecs of equal bytes do the same.
    fn to_bytes(&self) -> Vec<u8>;

    /// The index of what it makes, where that is a shard: chunks behind each other, each of which can be read by itself.
    fn index(&self) -> Option<&dyn ShardIndex>;

    /// What makes the elements of chunks, where nothing is stored of them.
    fn numbering(&self) -> Option<&Numbering>;
}

/// The part of a shard that says where its chunks lie. Formats implement it.
pub trait ShardIndex {
    /// Bytes that it has in a shard \[B\].
    fn bytes(&self) -> u64;

    /// Whether it is the last part of a shard, and not the first.
    fn is_at_end(&self) -> bool;

    /// Where the chunks lie, in the order of the index; those that are not there have no bytes. `first` is the index's own
    /// first byte in the shard, and `object` names the shard in errors.
    ///
    /// # Errors
    /// When it is damaged, or puts chunks over each other or over itself.
    fn stretches(&self, index: &[u8], first: u64, object: &str) -> Result<Vec<Stretch>, CodecError>;
}

/// Why a chunk could not be encoded or decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodecError {
    /// The whole message, with its hint, if it has one, as its last line.
    pub text: String,
    /// Whether what is stored is at fault, and not the want of memory.
    pub is_damage: bool,
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CodecError {}

/// Nothing is stored of its chunks, so that none is encoded or decoded.
impl Codec for Numbering {
    fn encode(&self, _plain: &[u8], object: &str) -> Result<Vec<u8>, CodecError> {
        Err(nothing_stored("encode", object))
    }

    fn decode(&self, _stored: &[u8], _plain_bytes: u64, object: &str) -> Result<Vec<u8>, CodecError> {
        Err(nothing_stored("decode", object))
    }

    fn encoded_bytes_max(&self, _plain_bytes: u64) -> u64 {
        0
    }

    fn compresses(&self) -> bool {
        false
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.to_bytes()
    }

    fn index(&self) -> Option<&dyn ShardIndex> {
        None
    }

    fn numbering(&self) -> Option<&Numbering> {
        Some(self)
    }
}

fn nothing_stored(asked: &str, object: &str) -> CodecError {
    let text = format!("internal error: cannot {asked} '{object}', of which nothing is stored");
    CodecError { text, is_damage: false }
}
