//! Encoding and decoding of whole chunks in memory.

use super::blosc::{self, Blosc, Compressor, Shuffle};
use super::bytes_codec::BytesCodec;
use super::codecs::Codecs;
use super::filters::{ArrayFilter, FilterNumber, Filtering};
use super::packed::{self, ChecksumKind};
use super::slots;
use crate::deflate::{Wrapped, deflated, inflated};
use crate::error::{Context, Error};
use crate::size::likely;
use crate::{fletcher, shuffle};
use hyperslab_layout::stored::Coding;
use hyperslab_layout::{Codec, CodecError, Numbering, ShardIndex};
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

/// Size \[B\] of a CRC-32C behind a chunk.
pub const CHECKSUM_BYTES: u64 = 4;

/// Codecs of bytes, in the order in which they are applied when writing, for those who know no format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain(Vec<BytesCodec>);

impl Chain {
    /// Of these codecs.
    pub fn of(codecs: &[BytesCodec]) -> Chain {
        Chain(codecs.to_vec())
    }

    /// Its codecs.
    pub fn codecs(&self) -> &[BytesCodec] {
        &self.0
    }

    /// The chain that [`Codec::to_bytes`] wrote; nothing if it is not valid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Chain> {
        let (codecs, rest) = bytes.as_chunks::<CODEC_BYTES>();
        let codec = |&[kind, one, other, more, numbers @ ..]: &[u8; CODEC_BYTES]| {
            let [level, element_bytes, block_bytes, ..] = words(&numbers);
            Some(match kind {
                0 => BytesCodec::Crc32c,
                1 => BytesCodec::Zstd { level: level as i32, checksum: one == 1 },
                2 => BytesCodec::Gzip { level },
                3 => BytesCodec::Zlib { level },
                4 => BytesCodec::Blosc(Blosc {
                    compressor: *Compressor::ALL.get(usize::from(one))?,
                    shuffle: *Shuffle::ALL.get(usize::from(other))?,
                    level: level.try_into().ok()?,
                    element_bytes,
                    block_bytes,
                }),
                5 => BytesCodec::Shuffle { element_bytes: level },
                6 => BytesCodec::Fletcher32,
                7 => BytesCodec::Lz4,
                8 => BytesCodec::Bz2 { level },
                9 => BytesCodec::Lzma { alone: one == 1 },
                10 => BytesCodec::Sum { sum: *ChecksumKind::ALL.get(usize::from(one))?, at_start: other == 1 },
                11 => BytesCodec::Filter(filter_of([one, other, more], words(&numbers))?),
                12 if level > 0 => BytesCodec::Texts { slot_bytes: level },
                _ => return None,
            })
        };
        let chain: Option<Vec<BytesCodec>> = codecs.iter().map(codec).collect();
        chain.filter(|_| rest.is_empty()).map(Chain)
    }
}

/// Bytes that tell of one codec: its kind, three choices, and five numbers, of which the first is its level.
const CODEC_BYTES: usize = 24;

fn words(bytes: &[u8; 20]) -> [u32; 5] {
    let (numbers, _) = bytes.as_chunks::<4>();
    [0, 1, 2, 3, 4].map(|at| u32::from_le_bytes(numbers[at]))
}

fn filter_of([does, stored, plain]: [u8; 3], [a, b, c, d, _]: [u32; 5]) -> Option<ArrayFilter> {
    let wide = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let does = match does {
        0 => Filtering::Delta,
        1 => Filtering::Scale { offset: wide(a, b), scale: wide(c, d) },
        2 => Filtering::Quantize { digits: a as i32 },
        3 => Filtering::Astype,
        4 => Filtering::Round { bits: a },
        5 => Filtering::Pack,
        _ => return None,
    };
    Some(ArrayFilter { does, stored: FilterNumber::of_byte(stored)?, plain: FilterNumber::of_byte(plain)? })
}

/// What [`filter_of`] is told of.
fn told_of(filter: ArrayFilter) -> ([u8; 3], [u32; 5]) {
    let (does, numbers) = match filter.does {
        Filtering::Delta => (0, [0; 4]),
        Filtering::Scale { offset, scale } => {
            (1, [offset as u32, (offset >> 32) as u32, scale as u32, (scale >> 32) as u32])
        }
        Filtering::Quantize { digits } => (2, [digits as u32, 0, 0, 0]),
        Filtering::Astype => (3, [0; 4]),
        Filtering::Round { bits } => (4, [bits, 0, 0, 0]),
        Filtering::Pack => (5, [0; 4]),
    };
    let [a, b, c, d] = numbers;
    ([does, filter.stored.to_byte(), filter.plain.to_byte()], [a, b, c, d, 0])
}

impl Codec for Chain {
    fn encode(&self, plain: &[u8], object: &str) -> Result<Vec<u8>, CodecError> {
        encode(&self.0, plain, Context::new("encode chunk", object)).map_err(told)
    }

    fn decode(&self, stored: &[u8], plain_bytes: u64, object: &str) -> Result<Vec<u8>, CodecError> {
        decode(&self.0, stored, plain_bytes, Context::new("decode chunk", object)).map_err(told)
    }

    fn encoded_bytes_max(&self, plain_bytes: u64) -> u64 {
        encoded_bytes_max(&self.0, plain_bytes)
    }

    fn compresses(&self) -> bool {
        compresses(&self.0)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let one = |codec: &BytesCodec| {
            let (kind, [one, other, more], numbers) = match *codec {
                BytesCodec::Crc32c => (0, [0; 3], [0; 5]),
                BytesCodec::Zstd { level, checksum } => (1, [u8::from(checksum), 0, 0], [level as u32, 0, 0, 0, 0]),
                BytesCodec::Gzip { level } => (2, [0; 3], [level, 0, 0, 0, 0]),
                BytesCodec::Zlib { level } => (3, [0; 3], [level, 0, 0, 0, 0]),
                BytesCodec::Blosc(Blosc { compressor, level, shuffle, element_bytes, block_bytes }) => {
                    (4, [compressor as u8, shuffle as u8, 0], [level.into(), element_bytes, block_bytes, 0, 0])
                }
                BytesCodec::Shuffle { element_bytes } => (5, [0; 3], [element_bytes, 0, 0, 0, 0]),
                BytesCodec::Fletcher32 => (6, [0; 3], [0; 5]),
                BytesCodec::Lz4 => (7, [0; 3], [0; 5]),
                BytesCodec::Bz2 { level } => (8, [0; 3], [level, 0, 0, 0, 0]),
                BytesCodec::Lzma { alone } => (9, [u8::from(alone), 0, 0], [0; 5]),
                BytesCodec::Sum { sum, at_start } => (10, [sum as u8, u8::from(at_start), 0], [0; 5]),
                BytesCodec::Filter(filter) => {
                    let (choices, numbers) = told_of(filter);
                    (11, choices, numbers)
                }
                BytesCodec::Texts { slot_bytes } => (12, [0; 3], [slot_bytes, 0, 0, 0, 0]),
            };
            [[kind, one, other, more]].into_iter().chain(numbers.map(u32::to_le_bytes)).flatten()
        };
        self.0.iter().flat_map(one).collect()
    }

    fn index(&self) -> Option<&dyn ShardIndex> {
        None
    }

    fn numbering(&self) -> Option<&Numbering> {
        None
    }
}

/// Whether one of these codecs is a compressor.
pub(super) fn compresses(chain: &[BytesCodec]) -> bool {
    let plain = |codec: &BytesCodec| {
        matches!(
            codec,
            BytesCodec::Crc32c | BytesCodec::Shuffle { .. } | BytesCodec::Fletcher32 | BytesCodec::Sum { .. }
        )
    };
    !chain.iter().all(plain)
}

pub(super) fn told(error: Error) -> CodecError {
    CodecError { text: error.to_string(), is_damage: !error.is_invalid() }
}

impl Codecs {
    /// What those need to know of it who know no format.
    pub fn coding(&self) -> Coding {
        match self.chain.as_slice() {
            [] => Coding::Plain,
            [BytesCodec::Crc32c] => Coding::Trailer,
            chain => Coding::Encoded(Arc::new(Chain(chain.to_vec()))),
        }
    }

    /// Encodes a chunk. `raw` holds its elements in stored order of dimensions ([`Codecs::strides`]) and stored byte
    /// order; `what` names the chunk in errors.
    pub fn encode(&self, raw: &[u8], what: &str) -> Result<Vec<u8>, Error> {
        encode(&self.chain, raw, Context::new("encode chunk", what))
    }

    /// Decodes a stored chunk to exactly `expected_bytes`, in stored order of dimensions and stored byte order.
    ///
    /// Checksums are verified. Memory stays within a small multiple of `expected_bytes` and of what `stored` really
    /// expands to, whatever `stored` claims. `what` names the chunk in errors.
    pub fn decode(&self, stored: &[u8], expected_bytes: u64, what: &str) -> Result<Vec<u8>, Error> {
        decode(&self.chain, stored, expected_bytes, Context::new("decode chunk", what))
    }

    /// Most bytes \[B\] that [`Codecs::encode`] makes of `raw_bytes`; exact when [`Codecs::is_plain`].
    pub fn max_encoded_bytes(&self, raw_bytes: u64) -> u64 {
        encoded_bytes_max(&self.chain, raw_bytes)
    }
}

/// Applies a chain.
pub(super) fn encode(chain: &[BytesCodec], raw: &[u8], context: Context) -> Result<Vec<u8>, Error> {
    let mut bytes = Cow::Borrowed(raw);
    for codec in chain {
        bytes = Cow::Owned(encode_one(*codec, bytes, context)?);
    }
    Ok(bytes.into_owned())
}

/// Exactly so many bytes of elements, out of what a chain made of them.
pub(super) fn decode(
    chain: &[BytesCodec],
    stored: &[u8],
    expected_bytes: u64,
    context: Context,
) -> Result<Vec<u8>, Error> {
    let bytes = decode_within(chain, Cow::Borrowed(stored), expected_bytes, context)?;
    if bytes.len() as u64 != expected_bytes {
        let error = context.corrupt(format!("{expected_bytes} B of elements"), format!("{} B", bytes.len()));
        return Err(error.with_hint("the chunk was cut short, or written with another shape or type"));
    }
    Ok(bytes.into_owned())
}

/// What a chain made its bytes of, which are at most so many.
pub(super) fn decode_within<'a>(
    chain: &[BytesCodec],
    mut bytes: Cow<'a, [u8]>,
    mut bound: u64,
    context: Context,
) -> Result<Cow<'a, [u8]>, Error> {
    // Sizes before each codec, as large as they may legally be.
    let mut bounds = Vec::with_capacity(chain.len());
    for codec in chain {
        bounds.push(bound);
        bound = codec.max_encoded_bytes(bound);
    }
    for (codec, bound) in chain.iter().zip(bounds).rev() {
        bytes = decode_one(*codec, bytes, bound, context)?;
    }
    Ok(bytes)
}

pub(super) fn encoded_bytes_max(chain: &[BytesCodec], raw_bytes: u64) -> u64 {
    chain.iter().fold(raw_bytes, |bytes, codec| codec.max_encoded_bytes(bytes))
}

impl BytesCodec {
    /// Most bytes \[B\] that this codec makes of `bytes`, with room for encoders less careful than ours.
    fn max_encoded_bytes(self, bytes: u64) -> u64 {
        match self {
            BytesCodec::Crc32c | BytesCodec::Fletcher32 | BytesCodec::Sum { .. } => {
                bytes.saturating_add(CHECKSUM_BYTES)
            }
            BytesCodec::Filter(filter) => filter.encoded_bytes_max(bytes),
            BytesCodec::Texts { slot_bytes } => slots::encoded_bytes_max(bytes, slot_bytes),
            BytesCodec::Shuffle { .. } => bytes,
            BytesCodec::Zstd { .. }
            | BytesCodec::Gzip { .. }
            | BytesCodec::Zlib { .. }
            | BytesCodec::Blosc(_)
            | BytesCodec::Lz4
            | BytesCodec::Bz2 { .. }
            | BytesCodec::Lzma { .. } => bytes.saturating_add(bytes / 8).saturating_add(1024),
        }
    }
}

fn encode_one(codec: BytesCodec, bytes: Cow<[u8]>, context: Context) -> Result<Vec<u8>, Error> {
    let failed = |cause: std::io::Error| context.invalid("an encoder that succeeds", cause.to_string());
    match codec {
        BytesCodec::Crc32c => {
            let checksum = crc32c::crc32c(&bytes);
            let mut out = match bytes {
                Cow::Owned(owned) => owned,
                Cow::Borrowed(borrowed) => {
                    let mut copy = Vec::with_capacity(borrowed.len() + CHECKSUM_BYTES as usize);
                    copy.extend_from_slice(borrowed);
                    copy
                }
            };
            out.extend_from_slice(&checksum.to_le_bytes());
            Ok(out)
        }
        BytesCodec::Zstd { level, checksum } => {
            let mut compressor = zstd::bulk::Compressor::new(level).map_err(failed)?;
            compressor.set_parameter(zstd::zstd_safe::CParameter::ChecksumFlag(checksum)).map_err(failed)?;
            compressor.compress(&bytes).map_err(failed)
        }
        BytesCodec::Gzip { level } => deflated(&bytes, Wrapped::Gzip, level).map_err(failed),
        BytesCodec::Zlib { level } => deflated(&bytes, Wrapped::Zlib, level).map_err(failed),
        BytesCodec::Blosc(blosc) => blosc.encode(&bytes, context),
        BytesCodec::Shuffle { element_bytes } => Ok(shuffle::shuffled(&bytes, element_bytes as usize)),
        BytesCodec::Fletcher32 => {
            let checksum = fletcher::fletcher32(&bytes).to_le_bytes();
            Ok([&*bytes, &checksum].concat())
        }
        BytesCodec::Lz4 => Ok(packed::lz4_encoded(&bytes)),
        BytesCodec::Sum { sum, at_start } => Ok(sum.added(at_start, &bytes)),
        BytesCodec::Texts { slot_bytes } => slots::of_slots(&bytes, slot_bytes, context),
        BytesCodec::Bz2 { .. } | BytesCodec::Lzma { .. } | BytesCodec::Filter(_) => {
            Err(context.invalid("codecs that are written", codec.only_read().unwrap_or_default()))
        }
    }
}

fn decode_one<'a>(
    codec: BytesCodec,
    bytes: Cow<'a, [u8]>,
    bound: u64,
    context: Context,
) -> Result<Cow<'a, [u8]>, Error> {
    match codec {
        BytesCodec::Crc32c => without_checksum(bytes, context),
        BytesCodec::Zstd { .. } => {
            let decoder = zstd::stream::read::Decoder::with_buffer(&*bytes)
                .map_err(|cause| context.undecoded("zstd data", bytes.len(), &cause))?;
            decompress(decoder, "zstd", bytes.len(), bound, context).map(Cow::Owned)
        }
        // There may be several streams, one after another: no more can come where the first fills the chunk.
        BytesCodec::Gzip { .. } => {
            if let Some(whole) = whole(&bytes, Wrapped::Gzip, bound).filter(|whole| whole.len() as u64 == bound) {
                return Ok(Cow::Owned(whole));
            }
            let decoder = flate2::bufread::MultiGzDecoder::new(&*bytes);
            decompress(decoder, "gzip", bytes.len(), bound, context).map(Cow::Owned)
        }
        BytesCodec::Zlib { .. } => {
            if let Some(whole) = whole(&bytes, Wrapped::Zlib, bound) {
                return Ok(Cow::Owned(whole));
            }
            let decoder = flate2::bufread::ZlibDecoder::new(&*bytes);
            decompress(decoder, "zlib", bytes.len(), bound, context).map(Cow::Owned)
        }
        BytesCodec::Blosc(_) => blosc::decode(&bytes, bound, context).map(Cow::Owned),
        BytesCodec::Shuffle { element_bytes } => Ok(Cow::Owned(shuffle::unshuffled(&bytes, element_bytes as usize))),
        BytesCodec::Fletcher32 => fletcher::verified(&bytes, context).map(|length| cut(bytes, length)),
        BytesCodec::Lz4 => packed::lz4_decoded(&bytes, bound, context).map(Cow::Owned),
        BytesCodec::Bz2 { .. } => {
            decompress(packed::bz2_decoder(&bytes), "bzip2", bytes.len(), bound, context).map(Cow::Owned)
        }
        BytesCodec::Lzma { alone } => {
            let decoder = packed::lzma_decoder(&bytes, alone)
                .map_err(|cause| context.undecoded("lzma data", bytes.len(), &cause))?;
            decompress(decoder, "lzma", bytes.len(), bound, context).map(Cow::Owned)
        }
        BytesCodec::Sum { sum, at_start } => Ok(Cow::Owned(sum.verified(at_start, &bytes, context)?.to_vec())),
        BytesCodec::Filter(filter) => filter.decode(&bytes, bound, context).map(Cow::Owned),
        BytesCodec::Texts { slot_bytes } => slots::to_slots(&bytes, slot_bytes, bound, context).map(Cow::Owned),
    }
}

/// The elements of a chunk that a CRC-32C follows, which is verified; `object` names it in errors.
///
/// # Errors
/// When they do not belong together.
pub fn verified(stored: Vec<u8>, object: &str) -> Result<Vec<u8>, CodecError> {
    without_checksum(stored.into(), Context::new("decode chunk", object)).map(Cow::into_owned).map_err(told)
}

/// Verifies the CRC-32C at the end, and takes it off.
pub(super) fn without_checksum<'a>(bytes: Cow<'a, [u8]>, context: Context) -> Result<Cow<'a, [u8]>, Error> {
    let Some((body, trailer)) = bytes.split_last_chunk::<{ CHECKSUM_BYTES as usize }>() else {
        return Err(context.corrupt("at least a checksum of 4 B", format!("{} B", bytes.len())));
    };
    let (stored, computed) = (u32::from_le_bytes(*trailer), crc32c::crc32c(body));
    if stored != computed {
        let expected = format!("CRC-32C {stored:#010x} as stored");
        let error = context.corrupt(expected, format!("CRC-32C {computed:#010x} of its {} B", body.len()));
        return Err(error.with_hint("the object was damaged or changed by other means: restore it from another copy"));
    }
    let length = body.len();
    Ok(cut(bytes, length))
}

/// The first so many bytes.
pub(crate) fn cut(bytes: Cow<[u8]>, length: usize) -> Cow<[u8]> {
    match bytes {
        Cow::Borrowed(borrowed) => Cow::Borrowed(&borrowed[..length]),
        Cow::Owned(mut owned) => {
            owned.truncate(length);
            Cow::Owned(owned)
        }
    }
}

/// What can be decoded at once, into as much room as the metadata say.
fn whole(bytes: &[u8], wrapped: Wrapped, bound: u64) -> Option<Vec<u8>> {
    Some(bound).filter(|bound| *bound <= likely(bytes.len())).and_then(|bound| inflated(bytes, wrapped, bound))
}

/// Reads all that `decoder` gives, but at most `bound` bytes. The buffer grows with what really comes.
fn decompress(
    decoder: impl Read,
    codec: &str,
    stored_bytes: usize,
    bound: u64,
    context: Context,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(bound.min(likely(stored_bytes)) as usize);
    decoder
        .take(bound.saturating_add(1))
        .read_to_end(&mut out)
        .map_err(|cause| context.undecoded(&format!("{codec} data"), stored_bytes, &cause))?;
    if out.len() as u64 > bound {
        let expected = format!("at most {bound} B from {codec}");
        return Err(context.corrupt(expected, format!("more, from {stored_bytes} B stored")));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains() -> Vec<Codecs> {
        let zstd = BytesCodec::Zstd { level: 3, checksum: true };
        let gzip = BytesCodec::Gzip { level: 1 };
        let stored = BytesCodec::Gzip { level: 0 };
        let (compressor, shuffle) = (Compressor::Zstd, Shuffle::Bits);
        let blosc = BytesCodec::Blosc(Blosc { compressor, level: 9, shuffle, element_bytes: 8, block_bytes: 1 << 30 });
        [
            vec![],
            vec![BytesCodec::Crc32c],
            vec![zstd],
            vec![gzip],
            vec![stored],
            vec![zstd, BytesCodec::Crc32c],
            vec![BytesCodec::Zlib { level: 9 }, blosc],
            vec![BytesCodec::Shuffle { element_bytes: 8 }, gzip, BytesCodec::Fletcher32],
            vec![BytesCodec::Crc32c, gzip, zstd, BytesCodec::Crc32c],
        ]
        .map(|chain| Codecs { chain, ..Codecs::plain(false) })
        .into()
    }

    #[test]
    fn chains_that_only_sum_or_move_bytes_do_not_compress() {
        let (shuffle, gzip) = (BytesCodec::Shuffle { element_bytes: 8 }, BytesCodec::Gzip { level: 1 });
        assert!(!compresses(&[]) && !compresses(&[shuffle, BytesCodec::Fletcher32, BytesCodec::Crc32c]));
        assert!(compresses(&[shuffle, gzip, BytesCodec::Crc32c]) && Chain::of(&[gzip]).compresses());
    }

    #[test]
    fn chunks_round_trip_within_their_bound() {
        let mut random = fastrand::Rng::with_seed(7);
        for codecs in chains() {
            for length in [0, 1, 7, 4096, 300_000] {
                let noise: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                for raw in [vec![0; length], noise] {
                    let stored = codecs.encode(&raw, "c/0").unwrap();
                    assert!(stored.len() as u64 <= codecs.max_encoded_bytes(length as u64), "{codecs:?} {length}");
                    assert_eq!(codecs.decode(&stored, length as u64, "c/0").unwrap(), raw, "{codecs:?} {length}");
                    assert!(codecs.decode(&stored, length as u64 + 1, "c/0").unwrap_err().is_corrupt());
                }
            }
        }
    }

    #[test]
    fn chains_travel_unchanged() {
        let odd = BytesCodec::Zstd { level: -131_072, checksum: false };
        for chain in chains().into_iter().map(|codecs| codecs.chain).chain([vec![odd, BytesCodec::Gzip { level: 9 }]]) {
            let bytes = Chain(chain.clone()).to_bytes();
            assert_eq!(Chain::from_bytes(&bytes), Some(Chain(chain)));
            assert!(bytes.is_empty() || Chain::from_bytes(&bytes[1..]).is_none());
        }
        assert_eq!(Chain::from_bytes(&[9; 16]), None, "an unknown codec");
        assert_eq!(Chain::from_bytes(&[2, 0, 255, 255, 255, 255]), None, "a level below 0");
    }

    #[test]
    fn codings_say_what_can_be_addressed() {
        let codings = chains().into_iter().map(|codecs| (codecs.is_plain(), codecs.coding()));
        for (number, (plain, coding)) in codings.enumerate() {
            match coding {
                Coding::Plain => assert_eq!(number, 0),
                Coding::Trailer => assert_eq!(number, 1),
                Coding::Summed => panic!("only reads have it"),
                Coding::Encoded(codec) => {
                    assert!(!plain);
                    let stored = codec.encode(b"123456789", "c").unwrap();
                    assert_eq!(codec.decode(&stored, 9, "c").unwrap(), b"123456789");
                    let error = codec.decode(&stored, 8, "rho/c/0").unwrap_err().to_string();
                    assert!(error.contains("rho/c/0"), "{error}");
                }
            }
        }
    }

    #[test]
    fn checksums_are_the_published_ones() {
        // The check value of CRC-32C, of the nine digits.
        let stored = Codecs::plain(true).encode(b"123456789", "c").unwrap();
        assert_eq!(stored[9..], 0xe306_9283_u32.to_le_bytes());
    }

    #[test]
    fn a_flipped_bit_is_found_and_both_checksums_are_told() {
        let codecs = Codecs::plain(true);
        let mut stored = codecs.encode(b"123456789", "c").unwrap();
        stored[4] ^= 1;
        let error = codecs.decode(&stored, 9, "rho/c/0").unwrap_err();
        assert!(error.is_corrupt());
        let text = error.to_string();
        assert!(text.contains("rho/c/0"), "{text}");
        assert!(text.contains("0xe3069283 as stored"), "{text}");
        let computed = crc32c::crc32c(&stored[..9]);
        assert!(text.contains(&format!("{computed:#010x} of its 9 B")), "{text}");
        assert!(codecs.decode(&stored[..3], 9, "rho/c/0").unwrap_err().is_corrupt());
    }

    #[test]
    fn bombs_do_not_go_off() {
        let zeros = vec![0_u8; 64 << 20];
        for codecs in chains().into_iter().filter(|codecs| !codecs.is_plain()) {
            let bomb = codecs.encode(&zeros, "c").unwrap();
            let error = codecs.decode(&bomb, 1000, "c").unwrap_err();
            assert!(error.is_corrupt(), "{error}");
        }
        // A claim of an exbibyte in the metadata allocates nothing.
        let small = Codecs::zstd(1, false).encode(b"x", "c").unwrap();
        assert!(Codecs::zstd(1, false).decode(&small, 1 << 60, "c").is_err());
    }

    #[test]
    fn damaged_chunks_never_panic() {
        let mut random = fastrand::Rng::with_seed(3);
        let raw: Vec<u8> = (0..2000_u32).map(|n| (n / 7) as u8).collect();
        for codecs in chains() {
            let good = codecs.encode(&raw, "c").unwrap();
            for _ in 0..300 {
                let mut bad = good.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..bad.len());
                    bad[at] = random.u8(..);
                }
                bad.truncate(random.usize(..bad.len() + 1));
                if let Ok(decoded) = codecs.decode(&bad, raw.len() as u64, "c") {
                    assert_eq!(decoded.len(), raw.len());
                }
            }
        }
    }
}
