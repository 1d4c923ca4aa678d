//! Blosc: blocks of a chunk, whose bytes are put into another order and then compressed, behind a header.
//!
//! The compressors are libraries; the container, which is a header, offsets of blocks and two orders of bytes, is written here:
//! of what could be linked, one binding wants libclang to be compiled, one wants hand-written unsafe code, and the port to
//! Rust decodes 29 of 1200 chunks of numcodecs to other bytes without an error. Only `blosclz` is never written: what it would
//! compress goes through LZ4, which a header says by itself.
//!
//! Source: the description of its chunks in c-blosc, README_CHUNK_FORMAT.

mod blosclz;
mod order;

use crate::deflate::{Wrapped, deflated, inflate_into};
use crate::error::{Context, Error};
pub(crate) use order::from_bits as unshuffle_bits;
use std::io::Read;

/// What compresses a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compressor {
    /// BloscLZ.
    BloscLz,
    /// LZ4.
    Lz4,
    /// LZ4 that takes longer for smaller blocks; written as [`Compressor::Lz4`] does.
    Lz4Hc,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// All that are supported: Snappy is not.
    pub const ALL: [Compressor; 5] =
        [Compressor::BloscLz, Compressor::Lz4, Compressor::Lz4Hc, Compressor::Zlib, Compressor::Zstd];

    /// What metadata call it.
    pub const fn name(self) -> &'static str {
        match self {
            Compressor::BloscLz => "blosclz",
            Compressor::Lz4 => "lz4",
            Compressor::Lz4Hc => "lz4hc",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    /// Its number in the flags of a header, of what we write.
    const fn flag(self) -> u8 {
        match self {
            Compressor::BloscLz | Compressor::Lz4 | Compressor::Lz4Hc => 1,
            Compressor::Zlib => 3,
            Compressor::Zstd => 4,
        }
    }
}

/// Into which order bytes are put before they are compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// None.
    No,
    /// The first bytes of all elements, then the second ones, and so on.
    Bytes,
    /// The first bits of all elements, then the second ones, and so on.
    Bits,
}

impl Shuffle {
    /// All.
    pub const ALL: [Shuffle; 3] = [Shuffle::No, Shuffle::Bytes, Shuffle::Bits];

    /// What metadata call it.
    pub const fn name(self) -> &'static str {
        match self {
            Shuffle::No => "noshuffle",
            Shuffle::Bytes => "shuffle",
            Shuffle::Bits => "bitshuffle",
        }
    }
}

/// How chunks are encoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Blosc {
    /// What compresses.
    pub compressor: Compressor,
    /// From 0 (stored) to 9 (smallest).
    pub level: u8,
    /// The order of bytes.
    pub shuffle: Shuffle,
    /// Bytes of an element \[B\]; 0 for those of the array.
    pub element_bytes: u32,
    /// Bytes of a block \[B\]; 0 for any.
    pub block_bytes: u32,
}

/// Bytes of a header, and the numbers in it \[B\].
type HeaderBytes = [u8; 16];

/// Flags of a header besides those of an order.
#[derive(Clone, Copy)]
enum Flag {
    /// Nothing is compressed.
    Stored = 2,
    /// Blocks are not cut into streams.
    Whole = 16,
}

impl Flag {
    fn is_in(self, flags: u8) -> bool {
        flags & self as u8 != 0
    }
}

impl Shuffle {
    /// Its flag in a header.
    const fn flag(self) -> u8 {
        match self {
            Shuffle::No => 0,
            Shuffle::Bytes => 1,
            Shuffle::Bits => 4,
        }
    }

    /// The order that flags tell of. Elements of one byte have no order of bytes.
    fn of(flags: u8, element: u8) -> Shuffle {
        let said = Shuffle::ALL.into_iter().find(|one| one.flag() == flags & 5).unwrap_or(Shuffle::No);
        if said == Shuffle::Bytes && element < 2 { Shuffle::No } else { said }
    }
}

impl Blosc {
    /// Encodes a chunk.
    pub(super) fn encode(self, plain: &[u8], context: Context) -> Result<Vec<u8>, Error> {
        let Ok(bytes) = i32::try_from(plain.len() + size_of::<HeaderBytes>()) else {
            let error = context.invalid("at most 2 GiB for blosc", format!("{} B", plain.len()));
            return Err(error.with_hint("store smaller chunks"));
        };
        let element = u8::try_from(self.element_bytes).unwrap_or(1).max(1);
        let order = Shuffle::of(self.shuffle.flag(), element);
        let packed = if self.level == 0 || plain.is_empty() { None } else { self.pack(plain, element, context)? };
        let header = |flags: u8, block: usize, all: u32| -> Vec<u8> {
            let (plain, block) = ((plain.len() as u32).to_le_bytes(), (block as u32).to_le_bytes());
            [&[2, 1, flags, element][..], &plain, &block, &all.to_le_bytes()].concat()
        };
        match packed.filter(|packed| packed.len() < plain.len()) {
            Some(packed) => {
                let flags = order.flag() | Flag::Whole as u8 | self.compressor.flag() << 5;
                let all = packed.len() as u32 + size_of::<HeaderBytes>() as u32;
                Ok([header(flags, self.block(plain.len(), element), all), packed].concat())
            }
            None => {
                let flags = order.flag() | Flag::Stored as u8 | self.compressor.flag() << 5;
                Ok([&header(flags, plain.len().max(1), bytes as u32)[..], plain].concat())
            }
        }
    }

    /// Bytes of a block of a chunk of so many: a whole number of groups of eight elements.
    fn block(self, plain: usize, element: u8) -> usize {
        let wanted = if self.block_bytes == 0 { 1 << 18 } else { self.block_bytes as usize };
        let group = 8 * usize::from(element);
        (wanted / group * group).max(group).min(plain)
    }

    /// Offsets of blocks, and the blocks, each with its length before it.
    fn pack(self, plain: &[u8], element: u8, context: Context) -> Result<Option<Vec<u8>>, Error> {
        let blocks = plain.chunks(self.block(plain.len(), element));
        let mut out = vec![0; 4 * blocks.len()];
        for (number, block) in blocks.enumerate() {
            let begin = (out.len() + size_of::<HeaderBytes>()) as u32;
            out[4 * number..4 * number + 4].copy_from_slice(&begin.to_le_bytes());
            let ordered = match Shuffle::of(self.shuffle.flag(), element) {
                Shuffle::Bytes => &order::by_bytes(block, element.into()),
                Shuffle::Bits => &order::by_bits(block, element.into()),
                Shuffle::No => block,
            };
            let packed = self.compress(ordered).map_err(|cause| context.invalid("an encoder that succeeds", cause))?;
            let shorter = if packed.len() < block.len() { &packed } else { ordered };
            out.extend_from_slice(&(shorter.len() as u32).to_le_bytes());
            out.extend_from_slice(shorter);
            if out.len() >= plain.len() {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    fn compress(self, block: &[u8]) -> Result<Vec<u8>, String> {
        match self.compressor {
            Compressor::BloscLz | Compressor::Lz4 | Compressor::Lz4Hc => Ok(lz4_flex::block::compress(block)),
            Compressor::Zlib => deflated(block, Wrapped::Zlib, self.level.into()).map_err(|cause| cause.to_string()),
            Compressor::Zstd => {
                // As c-blosc stretches its levels over those of Zstandard.
                let level = if self.level < 9 { i32::from(self.level) * 2 - 1 } else { 22 };
                zstd::bulk::compress(block, level).map_err(|cause| cause.to_string())
            }
        }
    }
}

/// The chunk that something encoded, of at most so many bytes.
pub(crate) fn decode(stored: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let wrong = |found: String| context.corrupt("blosc data", found);
    let Some((&[version, _, flags, element, ref sizes @ ..], _)) = stored.split_first_chunk::<16>() else {
        return Err(wrong(format!("{} B, without a header", stored.len())));
    };
    let [plain, block, all] =
        [0, 4, 8].map(|at| u32::from_le_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]));
    if version > 2 {
        return Err(context.unsupported("blosc data of format 2", format!("format {version}")));
    }
    if u64::from(plain) > bound {
        return Err(context.corrupt(format!("at most {bound} B from blosc"), format!("{plain} B in its header")));
    }
    if all as usize > stored.len() || (all as usize) < size_of::<HeaderBytes>() || element == 0 {
        return Err(wrong(format!("a header that tells of {all} B, in {} B", stored.len())));
    }
    let (stored, plain) = (&stored[..all as usize], plain as usize);
    if Flag::Stored.is_in(flags) {
        let content = stored.get(size_of::<HeaderBytes>()..size_of::<HeaderBytes>() + plain);
        return content.map(<[u8]>::to_vec).ok_or_else(|| wrong(format!("{all} B that hold {plain} B")));
    }
    let blocks = Blocked { stored, flags, element: element.into(), block: block as usize };
    blocks.decode(plain).ok_or_else(|| wrong(format!("{all} B that do not decode")))
}

/// A chunk in blocks.
struct Blocked<'a> {
    stored: &'a [u8],
    flags: u8,
    element: usize,
    block: usize,
}

impl Blocked<'_> {
    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.stored.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    }

    fn decode(&self, plain: usize) -> Option<Vec<u8>> {
        if plain == 0 {
            return Some(Vec::new());
        }
        let count = (self.block > 0).then(|| plain.div_ceil(self.block))?;
        // Each block has an offset; more cannot be.
        self.stored.get(size_of::<HeaderBytes>()..count.checked_mul(4)?.checked_add(size_of::<HeaderBytes>())?)?;
        let mut out = vec![0; plain];
        let mut ordered = Vec::new();
        for (number, out) in out.chunks_mut(self.block).enumerate() {
            let begin = self.number(size_of::<HeaderBytes>() + 4 * number)?;
            ordered.resize(out.len(), 0);
            self.decode_block(begin, out.len() < self.block, &mut ordered)?;
            match Shuffle::of(self.flags, self.element as u8) {
                Shuffle::Bytes => order::from_bytes(&ordered, self.element, out),
                Shuffle::Bits => order::from_bits(&ordered, self.element, out),
                Shuffle::No => out.copy_from_slice(&ordered),
            }
        }
        Some(out)
    }

    /// Decompresses a block, which may be in as many streams as an element has bytes.
    fn decode_block(&self, begin: usize, is_rest: bool, out: &mut [u8]) -> Option<()> {
        let streams = if Flag::Whole.is_in(self.flags) || is_rest { 1 } else { self.element };
        let each = out.len().is_multiple_of(streams).then_some(out.len() / streams)?;
        let mut at = begin;
        for out in out.chunks_mut(each.max(1)) {
            let bytes = self.number(at)?;
            at += 4;
            let packed = self.stored.get(at..at.checked_add(bytes)?)?;
            at += bytes;
            match self.flags >> 5 {
                _ if bytes == out.len() => out.copy_from_slice(packed),
                0 => blosclz::decompress(packed, out)?,
                1 => (lz4_flex::block::decompress_into(packed, out).ok()? == out.len()).then_some(())?,
                3 if inflate_into(packed, Wrapped::Zlib, out) == Some(out.len()) => {}
                // It may hold more than there is room for.
                3 => flate2::read::ZlibDecoder::new(packed).read_exact(out).ok()?,
                4 => (zstd::bulk::decompress_to_buffer(packed, out).ok()? == out.len()).then_some(())?,
                _ => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { asked: "decode chunk", object: "c" };

    fn all() -> impl Iterator<Item = Blosc> {
        let each = Compressor::ALL.into_iter().flat_map(|one| Shuffle::ALL.map(|shuffle| (one, shuffle)));
        each.flat_map(|(compressor, shuffle)| {
            [(1, 0), (2, 100), (8, 0), (16, 4096), (300, 7)].into_iter().map(move |(element_bytes, block_bytes)| {
                Blosc { compressor, level: (element_bytes % 10) as u8, shuffle, element_bytes, block_bytes }
            })
        })
    }

    #[test]
    fn chunks_round_trip_within_their_bound() {
        let mut random = fastrand::Rng::with_seed(5);
        for blosc in all() {
            for bytes in [0, 1, 7, 16, 4099, 300_000] {
                let smooth: Vec<u8> = (0..bytes).map(|at| (at / 5 + at % 3 * 7) as u8).collect();
                let noise: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
                for plain in [smooth, noise] {
                    let stored = blosc.encode(&plain, CONTEXT).unwrap();
                    assert!(stored.len() <= plain.len() + 16, "{blosc:?}");
                    assert_eq!(decode(&stored, plain.len() as u64, CONTEXT).unwrap(), plain, "{blosc:?} {bytes}");
                    assert!(bytes == 0 || decode(&stored, plain.len() as u64 - 1, CONTEXT).unwrap_err().is_corrupt());
                }
            }
        }
    }

    #[test]
    fn damaged_chunks_never_panic() {
        let mut random = fastrand::Rng::with_seed(6);
        let plain: Vec<u8> = (0..3000u32).map(|at| (at / 9) as u8).collect();
        let stored: Vec<Vec<u8>> = all().map(|blosc| blosc.encode(&plain, CONTEXT).unwrap()).collect();
        for _ in 0..10_000 {
            let mut bytes = random.choice(&stored).unwrap().clone();
            for _ in 0..random.usize(1..4) {
                let most = if random.bool() { 40.min(bytes.len()) } else { bytes.len() };
                let at = random.usize(..most);
                bytes[at] = random.u8(..);
            }
            bytes.truncate(random.usize(bytes.len() / 2..=bytes.len()));
            if let Ok(decoded) = decode(&bytes, 1 << 20, CONTEXT) {
                assert!(decoded.len() <= 1 << 20);
            }
        }
    }
}
