//! Filters that chunks go through (section IV.A.2.l, and the filters that The HDF Group has registered).

mod bitshuffle;
mod lz;

use super::content::Filter;
use super::policy::FILTERS_MAX;
use crate::deflate::{Wrapped, deflated, inflated};
use crate::error::{Context, Error, excerpt};
use crate::size::likely;
use crate::zarr::{BytesCodec, Codecs, cut, decode_blosc};
use crate::{fletcher, shuffle};
use hyperslab_layout::stored::Coding;
use hyperslab_layout::{ByteOrder, Codec, CodecError, Numbering, ShardIndex};
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

/// Filters in the order of encoding, for those who know no format.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pipeline(Vec<FilterStep>);

/// A filter that is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum FilterStep {
    /// zlib, of this level.
    Deflate(u32),
    /// Bytes of elements of this size \[B\].
    Shuffle(u32),
    Fletcher32,
    /// LZF of h5py and PyTables.
    Lzf,
    /// Blosc, whose chunks say how they were made.
    Blosc,
    /// LZ4, in blocks of this size \[B\].
    Lz4(u32),
    /// Zstandard, of this level.
    Zstd(u32),
    /// Bitshuffle of elements of this size \[B\], and what compresses then.
    Bitshuffle(u32, bitshuffle::InnerCodec),
}

/// What the bytes that tell of a pipeline begin with, so that they are none of another codec.
const TAG: &[u8] = b"hdf5";
/// Bytes that tell of one step: its number, and its value.
const STEP_BYTES: usize = 8;

impl Pipeline {
    /// What these filters of the dataset called `name` do.
    ///
    /// # Errors
    /// When one of them is not supported; its number and name are said.
    pub fn of(filters: &[Filter], name: &str) -> Result<Pipeline, Error> {
        let context = Context::new("use HDF5 dataset", name);
        let step = |filter: &Filter| {
            let first = filter.values.first().copied();
            let value = if filter.number == 32008 { bitshuffle::of_values(&filter.values) } else { first };
            FilterStep::of(filter.number, value).ok_or_else(|| {
                let known = match filter.number {
                    4 => "szip",
                    5 => "nbit",
                    6 => "scaleoffset",
                    307 => "bzip2",
                    32008 => "bitshuffle without LZ4 or Zstandard",
                    32013 => "zfp",
                    32026 => "blosc2",
                    _ => &filter.name,
                };
                let found = format!("filter {} ({})", filter.number, excerpt(known));
                let expected = "filters deflate, shuffle, fletcher32, lzf, blosc, lz4, bitshuffle and zstd";
                context.unsupported(expected, found).with_hint("read it with h5py and hdf5plugin")
            })
        };
        filters.iter().map(step).collect::<Result<_, _>>().map(Pipeline)
    }

    /// What a user asks for by names of codecs, for elements of so many bytes: the filters that do the same.
    ///
    /// # Errors
    /// When a codec is no filter that is written here.
    pub fn of_codecs(codecs: &Codecs, element_bytes: u64, name: &str) -> Result<Pipeline, Error> {
        let context = Context::new("make HDF5 dataset", name);
        let refused = |found: &str| {
            let expected = "codecs gzip, zstd, numcodecs.shuffle and numcodecs.fletcher32";
            context.unsupported(expected, found.to_string()).with_hint("HDF5 has filters: leave the other codecs out")
        };
        match codecs {
            Codecs { shards: Some(_), .. } => return Err(refused("sharding_indexed")),
            Codecs { order, .. } if !order.is_empty() => return Err(refused("transpose")),
            Codecs { endian: ByteOrder::Big, .. } => return Err(refused("bytes with endian big (give dtype instead)")),
            _ => {}
        }
        let step = |codec: &BytesCodec| match *codec {
            BytesCodec::Gzip { level } | BytesCodec::Zlib { level } => Ok(FilterStep::Deflate(level.min(9))),
            BytesCodec::Zstd { level, checksum: false } => match u32::try_from(level) {
                Ok(level) => Ok(FilterStep::Zstd(if level == 0 { 3 } else { level.min(22) })),
                Err(_) => Err(refused("zstd with a level below 0")),
            },
            BytesCodec::Shuffle { element_bytes: 0 } => Ok(FilterStep::Shuffle(element_bytes as u32)),
            BytesCodec::Shuffle { element_bytes } => Ok(FilterStep::Shuffle(element_bytes)),
            // The checksum that HDF5 has.
            BytesCodec::Fletcher32 | BytesCodec::Crc32c => Ok(FilterStep::Fletcher32),
            BytesCodec::Zstd { .. } => Err(refused("zstd with a checksum of its own")),
            BytesCodec::Blosc(_) => Err(refused("blosc")),
            other => Err(refused(&other.name())),
        };
        codecs.chain.iter().map(step).collect::<Result<_, _>>().map(Pipeline)
    }

    /// Refuses to encode chunks of the dataset called `name` by filters that are only undone here.
    ///
    /// # Errors
    /// When one of them is such.
    pub fn check_written(&self, name: &str) -> Result<(), Error> {
        let context = Context::new("change HDF5 dataset", name);
        match self.0.iter().find(|step| !step.is_written()) {
            Some(step) => Err(step.not_written(context)),
            None => Ok(()),
        }
    }

    /// The filters as metadata list them.
    pub fn filters(&self) -> Vec<Filter> {
        let one = |step: &FilterStep| {
            let (number, value) = step.number_and_value();
            let values = if *step == FilterStep::Fletcher32 { Vec::new() } else { vec![value] };
            // What cannot be undone without it is not optional.
            Filter { number, optional: number == 1 || number == 2, name: step.name().into(), values }
        };
        self.0.iter().map(one).collect()
    }

    /// Without the filters that a chunk lacks, by its mask ([`super::Chunk::lacks`]).
    #[must_use]
    pub fn without(&self, lacks: u32) -> Pipeline {
        let kept = self.0.iter().enumerate().filter(|&(number, _)| number >= FILTERS_MAX || lacks >> number & 1 == 0);
        Pipeline(kept.map(|(_, step)| *step).collect())
    }

    /// Names of its filters.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|step| step.name()).collect()
    }

    /// Whether stored chunks are their elements.
    pub fn is_plain(&self) -> bool {
        self.0.is_empty()
    }

    /// What those need to know of it who know no format.
    pub fn coding(&self) -> Coding {
        if self.is_plain() { Coding::Plain } else { Coding::Encoded(Arc::new(self.clone())) }
    }

    /// The pipeline that [`Codec::to_bytes`] told of; nothing if there is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Pipeline> {
        let (steps, rest) = bytes.strip_prefix(TAG)?.as_chunks::<STEP_BYTES>();
        let step = |&[a, b, c, d, value @ ..]: &[u8; STEP_BYTES]| {
            let number = u16::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
            FilterStep::of(number, Some(u32::from_le_bytes(value)))
        };
        let all: Option<Vec<FilterStep>> = steps.iter().map(step).collect();
        all.filter(|all| rest.is_empty() && all.len() <= FILTERS_MAX).map(Pipeline)
    }
}

impl FilterStep {
    /// The filter with this number, and its first value.
    fn of(number: u16, value: Option<u32>) -> Option<FilterStep> {
        Some(match number {
            1 => FilterStep::Deflate(value.unwrap_or(6).min(9)),
            2 => FilterStep::Shuffle(value?),
            3 => FilterStep::Fletcher32,
            32000 => FilterStep::Lzf,
            32001 => FilterStep::Blosc,
            32004 => FilterStep::Lz4(value.unwrap_or(0)),
            32008 => return bitshuffle::of_value(value?),
            32015 => FilterStep::Zstd(value.unwrap_or(3)),
            _ => return None,
        })
    }

    /// Its name, as people call it.
    fn name(self) -> &'static str {
        match self.number_and_value().0 {
            1 => "deflate",
            2 => "shuffle",
            3 => "fletcher32",
            32000 => "lzf",
            32001 => "blosc",
            32004 => "lz4",
            32008 => "bitshuffle",
            _ => "zstd",
        }
    }

    fn number_and_value(self) -> (u16, u32) {
        match self {
            FilterStep::Deflate(level) => (1, level),
            FilterStep::Shuffle(bytes) => (2, bytes),
            FilterStep::Fletcher32 => (3, 0),
            FilterStep::Lzf => (32000, 0),
            FilterStep::Blosc => (32001, 0),
            FilterStep::Lz4(block) => (32004, block),
            FilterStep::Zstd(level) => (32015, level),
            FilterStep::Bitshuffle(bytes, inside) => (32008, bytes | (inside as u32) << 24),
        }
    }

    /// Whether it is done here, and not only undone.
    fn is_written(self) -> bool {
        !matches!(self, FilterStep::Lzf | FilterStep::Blosc | FilterStep::Bitshuffle(..))
    }

    fn not_written(self, context: Context) -> Error {
        let error = context.unsupported("filters that are written here", self.name());
        error.with_hint("use gzip (deflate) or zstd, or write it with h5py")
    }

    /// Most bytes that are stored for so many, with room for encoders less careful than ours \[B\].
    fn bytes_max(self, bytes: u64) -> u64 {
        let usual = bytes.saturating_add(bytes / 8).saturating_add(1024);
        match self {
            FilterStep::Shuffle(_) => bytes,
            FilterStep::Fletcher32 => bytes.saturating_add(4),
            FilterStep::Lz4(block) => usual.saturating_add(lz::lengths_bytes(bytes, block)),
            _ => usual,
        }
    }

    fn encode(self, bytes: &[u8], context: Context) -> Result<Vec<u8>, Error> {
        let failed = |cause: std::io::Error| context.invalid("an encoder that succeeds", cause.to_string());
        match self {
            FilterStep::Deflate(level) => deflated(bytes, Wrapped::Zlib, level).map_err(failed),
            FilterStep::Shuffle(element) => Ok(shuffle::shuffled(bytes, element as usize)),
            FilterStep::Fletcher32 => Ok([bytes, &fletcher::fletcher32(bytes).to_le_bytes()].concat()),
            FilterStep::Lz4(block) => lz::encode_lz4(bytes, block, context),
            FilterStep::Zstd(level) => zstd::bulk::compress(bytes, level.min(22) as i32).map_err(failed),
            FilterStep::Lzf | FilterStep::Blosc | FilterStep::Bitshuffle(..) => Err(self.not_written(context)),
        }
    }

    /// What was encoded, which is at most `bound` bytes.
    fn decode<'a>(self, bytes: Cow<'a, [u8]>, bound: u64, context: Context) -> Result<Cow<'a, [u8]>, Error> {
        let decoded = match self {
            FilterStep::Deflate(_) => of_zlib(&bytes, bound, context)?,
            FilterStep::Shuffle(element) => shuffle::unshuffled(&bytes, element as usize),
            FilterStep::Fletcher32 => {
                let length = fletcher::verified(&bytes, context)?;
                return Ok(cut(bytes, length));
            }
            FilterStep::Lzf => lz::decode_lzf(&bytes, bound, context)?,
            FilterStep::Blosc => decode_blosc(&bytes, bound, context)?,
            FilterStep::Lz4(_) => lz::decode_lz4(&bytes, bound, context)?,
            FilterStep::Bitshuffle(element, inside) => bitshuffle::decode(&bytes, element, inside, bound, context)?,
            FilterStep::Zstd(_) => {
                let decoder = zstd::stream::read::Decoder::with_buffer(&*bytes);
                let decoder = decoder.map_err(|cause| context.corrupt("zstd data", cause.to_string()))?;
                read_all(decoder, bytes.len(), bound, context)?
            }
        };
        Ok(Cow::Owned(decoded))
    }
}

impl Codec for Pipeline {
    fn encode(&self, plain: &[u8], object: &str) -> Result<Vec<u8>, CodecError> {
        let context = Context::new("encode chunk", object);
        let mut bytes = Cow::Borrowed(plain);
        for step in &self.0 {
            bytes = Cow::Owned(step.encode(&bytes, context).map_err(told)?);
        }
        Ok(bytes.into_owned())
    }

    fn decode(&self, stored: &[u8], plain_bytes: u64, object: &str) -> Result<Vec<u8>, CodecError> {
        let context = Context::new("decode chunk", object);
        // Sizes before each filter, as large as they may be.
        let (mut bound, mut bounds) = (plain_bytes, Vec::with_capacity(self.0.len()));
        for step in &self.0 {
            bounds.push(bound);
            bound = step.bytes_max(bound);
        }
        let mut bytes = Cow::Borrowed(stored);
        for (step, bound) in self.0.iter().zip(bounds).rev() {
            bytes = step.decode(bytes, bound, context).map_err(told)?;
        }
        if bytes.len() as u64 == plain_bytes {
            return Ok(bytes.into_owned());
        }
        let error = context.corrupt(format!("{plain_bytes} B of elements"), format!("{} B", bytes.len()));
        Err(told(error.with_hint("the chunk was cut short, or written with another shape or type")))
    }

    fn encoded_bytes_max(&self, plain_bytes: u64) -> u64 {
        self.0.iter().fold(plain_bytes, |bytes, step| step.bytes_max(bytes))
    }

    fn compresses(&self) -> bool {
        !self.0.iter().all(|step| matches!(step, FilterStep::Shuffle(_) | FilterStep::Fletcher32))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let one = |step: &FilterStep| {
            let (number, value) = step.number_and_value();
            [u32::from(number).to_le_bytes(), value.to_le_bytes()].concat()
        };
        TAG.iter().copied().chain(self.0.iter().flat_map(one)).collect()
    }

    fn index(&self) -> Option<&dyn ShardIndex> {
        None
    }

    fn numbering(&self) -> Option<&Numbering> {
        None
    }
}

fn told(error: Error) -> CodecError {
    CodecError { text: error.to_string(), is_damage: !error.is_invalid() }
}

/// What zlib made its bytes of, which are at most `bound`. They are decoded where they stay if they claim no more than is likely.
fn of_zlib(bytes: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let whole = Some(bound).filter(|bound| *bound <= likely(bytes.len()));
    match whole.and_then(|bound| inflated(bytes, Wrapped::Zlib, bound)) {
        Some(out) => Ok(out),
        None => read_all(flate2::bufread::ZlibDecoder::new(bytes), bytes.len(), bound, context),
    }
}

/// All that a decoder gives, but at most `bound` bytes; memory grows with what really comes.
fn read_all(decoder: impl Read, stored: usize, bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(bound.min(likely(stored)) as usize);
    let read = decoder.take(bound.saturating_add(1)).read_to_end(&mut out);
    read.map_err(|cause| context.undecoded("compressed data", stored, &cause))?;
    if out.len() as u64 > bound {
        return Err(context.corrupt(format!("at most {bound} B"), format!("more, from {stored} B stored")));
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
