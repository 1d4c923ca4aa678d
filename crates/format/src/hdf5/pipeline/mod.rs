//! Filters that chunks go through (section IV.A.2.l, and the filters that The HDF Group has registered).

mod bitshuffle;
mod lz;
mod scale_offset;

use super::content::Filter;
use super::policy::FILTERS_MAX;
use crate::deflate::{Wrapped, deflated, inflated};
use crate::error::{Context, Error, excerpt};
use crate::size::likely;
use crate::zarr::{BytesCodec, Codecs, cut, decode_blosc};
use crate::{fletcher, shuffle};
use hyperslab_layout::stored::Coding;
use hyperslab_layout::{ByteOrder, Codec, CodecError, Numbering, ShardIndex};
use scale_offset::ScaleOffset;
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
    /// Bytes of elements of this size; where it is not known, as of texts of any length, nothing is done, and chunks say so \[B\].
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
    ScaleOffset(ScaleOffset),
}

/// What the bytes that tell of a pipeline begin with, so that they are none of another codec.
const TAG: &[u8] = b"hdf5";

impl Pipeline {
    /// What these filters of the dataset called `name` do.
    ///
    /// # Errors
    /// When one of them is not supported; its number and name are said.
    pub fn of(filters: &[Filter], name: &str) -> Result<Pipeline, Error> {
        let context = Context::new("use HDF5 dataset", name);
        let step = |filter: &Filter| {
            let bits = if filter.number == 32008 { bitshuffle::of_values(&filter.values) } else { None };
            let step = match (filter.number, bits) {
                (32008, None) => None,
                (number, Some(value)) => FilterStep::of(number, &[value]),
                (number, None) => FilterStep::of(number, &filter.values),
            };
            step.ok_or_else(|| {
                let known = match filter.number {
                    4 => "szip",
                    5 => "nbit",
                    6 => "scaleoffset by powers of two, or of other elements",
                    307 => "bzip2",
                    32008 => "bitshuffle without LZ4 or Zstandard",
                    32013 => "zfp",
                    32026 => "blosc2",
                    _ => &filter.name,
                };
                let found = format!("filter {} ({})", filter.number, excerpt(known));
                let expected =
                    "filters deflate, shuffle, fletcher32, lzf, blosc, lz4, bitshuffle, scaleoffset and zstd";
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
            let (number, values) = step.number_and_values();
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

    /// Filters that are not applied, as the mask of a chunk says it ([`super::ChunkPlace::lacks`]).
    pub fn lacks(&self) -> u32 {
        let steps = self.0.iter().take(FILTERS_MAX).enumerate();
        steps.fold(0, |mask, (number, step)| mask | u32::from(*step == FilterStep::Shuffle(0)) << number)
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
        let (numbers, rest) = bytes.strip_prefix(TAG)?.as_chunks::<4>();
        let mut numbers = numbers.iter().map(|number| u32::from_le_bytes(*number));
        let mut steps = Vec::new();
        // Of each: its number, how many values it has, and these.
        while let Some(number) = numbers.next() {
            let count = numbers.next()? as usize;
            let values: Vec<u32> = numbers.by_ref().take(count).collect();
            let step = FilterStep::of(u16::try_from(number).ok()?, &values).filter(|_| values.len() == count);
            steps.push(step.filter(|_| steps.len() < FILTERS_MAX)?);
        }
        rest.is_empty().then_some(Pipeline(steps))
    }
}

impl FilterStep {
    /// The filter with this number and these values.
    fn of(number: u16, values: &[u32]) -> Option<FilterStep> {
        let value = values.first().copied();
        Some(match number {
            1 => FilterStep::Deflate(value.unwrap_or(6).min(9)),
            2 => FilterStep::Shuffle(value.unwrap_or(0)),
            3 => FilterStep::Fletcher32,
            6 => FilterStep::ScaleOffset(ScaleOffset::of(values)?),
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
        match self.number_and_values().0 {
            1 => "deflate",
            2 => "shuffle",
            3 => "fletcher32",
            6 => "scaleoffset",
            32000 => "lzf",
            32001 => "blosc",
            32004 => "lz4",
            32008 => "bitshuffle",
            _ => "zstd",
        }
    }

    fn number_and_values(self) -> (u16, Vec<u32>) {
        match self {
            FilterStep::Deflate(level) => (1, vec![level]),
            FilterStep::Shuffle(0) => (2, Vec::new()),
            FilterStep::Shuffle(bytes) => (2, vec![bytes]),
            FilterStep::Fletcher32 => (3, Vec::new()),
            FilterStep::ScaleOffset(scaled) => (6, scaled.values()),
            FilterStep::Lzf => (32000, Vec::new()),
            FilterStep::Blosc => (32001, Vec::new()),
            FilterStep::Lz4(block) => (32004, vec![block]),
            FilterStep::Zstd(level) => (32015, vec![level]),
            FilterStep::Bitshuffle(bytes, inside) => (32008, vec![bytes | (inside as u32) << 24]),
        }
    }

    /// Whether it is done here, and not only undone.
    fn is_written(self) -> bool {
        !matches!(self, FilterStep::Lzf | FilterStep::Blosc | FilterStep::Bitshuffle(..) | FilterStep::ScaleOffset(_))
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
            FilterStep::ScaleOffset(_) => ScaleOffset::bytes_max(bytes),
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
            FilterStep::Lzf | FilterStep::Blosc | FilterStep::Bitshuffle(..) | FilterStep::ScaleOffset(_) => {
                Err(self.not_written(context))
            }
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
            FilterStep::ScaleOffset(scaled) => scaled.decode(&bytes, bound, context)?,
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
            let (number, values) = step.number_and_values();
            [vec![u32::from(number), values.len() as u32], values].concat()
        };
        TAG.iter().copied().chain(self.0.iter().flat_map(one).flat_map(u32::to_le_bytes)).collect()
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
