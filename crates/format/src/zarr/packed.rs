//! Compressors and checksums of numcodecs: LZ4, bzip2, LZMA; CRC-32, CRC-32C and Adler-32. See
//! <https://numcodecs.readthedocs.io/>.
//!
//! LZ4 is a block behind its size before, 4 B, little-endian. LZMA is a stream of xz, or of the older `lzma` (format 2). A checksum
//! has 4 B, little-endian, before what it is of, or behind it: `{"id": "crc32", "location": "start"}`.

use super::policy::LZMA_KIB_MAX;
use crate::error::{Context, Error};
use bzip2::bufread::MultiBzDecoder;
use lzma_rust2::{LzmaReader, XzReader};
use std::io::{Error as IoError, Read};

/// What sums up bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ChecksumKind {
    /// CRC-32, as of zlib.
    Crc32,
    /// Adler-32, as of zlib.
    Adler32,
    /// CRC-32C, before the bytes.
    Crc32c,
}

impl ChecksumKind {
    pub(super) const ALL: [ChecksumKind; 3] = [ChecksumKind::Crc32, ChecksumKind::Adler32, ChecksumKind::Crc32c];

    /// Its name in numcodecs.
    pub(super) fn name(self) -> &'static str {
        match self {
            ChecksumKind::Crc32 => "crc32",
            ChecksumKind::Adler32 => "adler32",
            ChecksumKind::Crc32c => "crc32c",
        }
    }

    fn of(self, bytes: &[u8]) -> u32 {
        match self {
            ChecksumKind::Crc32 => libdeflater::crc32(bytes),
            ChecksumKind::Adler32 => libdeflater::adler32(bytes),
            ChecksumKind::Crc32c => crc32c::crc32c(bytes),
        }
    }

    /// The bytes with their checksum.
    pub(super) fn added(self, at_start: bool, bytes: &[u8]) -> Vec<u8> {
        let sum = self.of(bytes).to_le_bytes();
        if at_start { [&sum, bytes].concat() } else { [bytes, &sum].concat() }
    }

    /// The bytes without their checksum, which is compared.
    pub(super) fn verified<'a>(self, at_start: bool, bytes: &'a [u8], context: Context) -> Result<&'a [u8], Error> {
        let parts = match at_start {
            true => bytes.split_first_chunk::<4>().map(|(sum, body)| (body, sum)),
            false => bytes.split_last_chunk::<4>(),
        };
        let (body, sum) =
            parts.ok_or_else(|| context.corrupt("at least a checksum of 4 B", format!("{} B", bytes.len())))?;
        let (stored, computed) = (u32::from_le_bytes(*sum), self.of(body));
        if stored == computed {
            return Ok(body);
        }
        let expected = format!("{} {stored:#010x} as stored", self.name());
        let error = context.corrupt(expected, format!("{computed:#010x} of its {} B", body.len()));
        Err(error.with_hint("the object was damaged or changed by other means: restore it from another copy"))
    }
}

/// A block of LZ4 behind its size before.
pub(super) fn lz4_encoded(bytes: &[u8]) -> Vec<u8> {
    let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&size[..], &lz4_flex::block::compress(bytes)].concat()
}

/// What such a block was made of, at most so many bytes.
pub(super) fn lz4_decoded(bytes: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let cut = || context.corrupt("the size of what LZ4 compressed, 4 B", format!("{} B", bytes.len()));
    let (size, block) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
    let size = u32::from_le_bytes(*size);
    // A byte stands for 255 others at most.
    if u64::from(size) > bound || u64::from(size) > 255 * block.len() as u64 {
        let expected = format!("at most {bound} B in {} B of LZ4", block.len());
        return Err(context.corrupt(expected, format!("a size of {size} B")));
    }
    lz4_flex::block::decompress(block, size as usize)
        .map_err(|cause| context.undecoded("lz4 data", bytes.len(), &IoError::other(cause)))
}

/// What decodes a stream of bzip2, or several.
pub(super) fn bz2_decoder(bytes: &[u8]) -> impl Read {
    MultiBzDecoder::new(bytes)
}

/// What decodes streams of xz, or one of the older format.
pub(super) fn lzma_decoder(bytes: &[u8], alone: bool) -> Result<Box<dyn Read + '_>, IoError> {
    Ok(match alone {
        true => Box::new(LzmaReader::new_mem_limit(bytes, LZMA_KIB_MAX, None)?),
        false => Box::new(XzReader::new_mem_limit(bytes, true, LZMA_KIB_MAX)),
    })
}
