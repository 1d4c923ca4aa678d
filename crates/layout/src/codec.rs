//! A codec as those see it who know no format: it makes bytes of bytes, and says how many at most.

use std::fmt;

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

    /// What its format makes the same codec of, on another rank. Codecs of equal bytes do the same.
    fn to_bytes(&self) -> Vec<u8>;
}

/// Why a chunk could not be encoded or decoded: the whole message, with its hint, if it has one, as its last line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodecError(pub String);

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CodecError {}
