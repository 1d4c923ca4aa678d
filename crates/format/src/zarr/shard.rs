//! Encoding and decoding of shards in memory: chunks behind each other, and an index of where they lie.
//!
//! Elements come in the order in which they lie in a chunk inside, so that a chunk is a box of the shard. Chunks that hold
//! nothing but the fill value are left out, as they are where an array ends inside of a shard.

use super::bytes_codec::BytesCodec;
use super::chain::{
    CHECKSUM_BYTES, Chain, compresses, decode, decode_within, encode, encoded_bytes_max, told, without_checksum,
};
use super::codecs::{Codecs, Sharding};
use super::policy::{DEPTH_MAX, SHARD_CHUNKS_MAX};
use crate::error::{Context, Error};
use hyperslab_layout::mesh::{unravel, volume};
use hyperslab_layout::{ByteOrder, Codec, CodecError, Numbering, ShardIndex, Stretch};
use std::borrow::Cow;
use std::sync::Arc;

/// An entry of an index: first byte and number of bytes.
type IndexEntry = [u64; 2];

/// The entry of a chunk that is not there.
const NO_CHUNK: IndexEntry = [u64::MAX; 2];

/// What makes shards of one shape out of their elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardCodec {
    /// Extents of a shard and of a chunk in it, from the slowest dimension to the fastest.
    shard: Vec<u64>,
    chunk: Vec<u64>,
    /// The same dimensions in the order in which the index counts chunks.
    order: Vec<usize>,
    element_bytes: u64,
    /// One element that was never written, as it is stored.
    fill: Vec<u8>,
    inside: Innards,
    at_end: bool,
    endian: ByteOrder,
    checksum: bool,
    /// What is done to the whole shard.
    chain: Vec<BytesCodec>,
}

/// How a chunk inside of a shard becomes bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Innards {
    Chain(Vec<BytesCodec>),
    Shards(Box<ShardCodec>),
}

/// The codec that [`Codec::to_bytes`] told of; nothing if it is none.
pub fn codec_from_bytes(bytes: &[u8]) -> Option<Arc<dyn Codec>> {
    match bytes.starts_with(TAG) {
        true => Some(Arc::new(ShardCodec::from_bytes(bytes)?)),
        false => Some(Arc::new(Chain::from_bytes(bytes)?)),
    }
}

impl Codecs {
    /// What makes shards of this shape, in an array of as many dimensions, where these are codecs of shards; `fill` is one
    /// element as it is stored. The shape must have been checked.
    pub fn shard_codec(&self, shard: &[u64], fill: &[u8]) -> Option<ShardCodec> {
        let sharding = self.shards.as_deref()?;
        let outer = self.outer_order(shard.len());
        let shard: Vec<u64> = outer.iter().map(|&d| shard[d]).collect();
        Some(ShardCodec::new(sharding, &shard, fill, self.chain.clone()))
    }
}

impl ShardCodec {
    /// Of shards whose shape is given as the codecs before leave it.
    fn new(sharding: &Sharding, shard: &[u64], fill: &[u8], chain: Vec<BytesCodec>) -> ShardCodec {
        let permutation = sharding.codecs.permutation(shard.len());
        let permuted = |extents: &[u64]| -> Vec<u64> { permutation.iter().map(|&d| extents[d]).collect() };
        let mut order = vec![0; shard.len()];
        permutation.iter().enumerate().for_each(|(place, &d)| order[d] = place);
        let inside = match sharding.codecs.shard_codec(&sharding.chunk_shape, fill) {
            Some(nested) => Innards::Shards(Box::new(nested)),
            None => Innards::Chain(sharding.codecs.chain.clone()),
        };
        ShardCodec {
            shard: permuted(shard),
            chunk: permuted(&sharding.chunk_shape),
            order,
            element_bytes: fill.len() as u64,
            fill: fill.to_vec(),
            inside,
            at_end: sharding.index_at_end,
            endian: sharding.index_endian,
            checksum: sharding.index_checksum,
            chain,
        }
    }

    /// Number of chunks in a shard along the dimensions of the index.
    fn grid(&self) -> Vec<u64> {
        self.order.iter().map(|&d| self.shard[d] / self.chunk[d]).collect()
    }

    fn count(&self) -> u64 {
        self.grid().iter().product()
    }

    fn plain_bytes(&self, extents: &[u64]) -> u64 {
        extents.iter().product::<u64>() * self.element_bytes
    }

    /// Most bytes of one encoded chunk \[B\].
    fn chunk_bytes_max(&self) -> u64 {
        let plain = self.plain_bytes(&self.chunk);
        match &self.inside {
            Innards::Chain(chain) => encoded_bytes_max(chain, plain),
            Innards::Shards(nested) => nested.encoded_bytes_max(plain),
        }
    }

    /// Most bytes of a shard before its own chain \[B\].
    fn packed_bytes_max(&self) -> u64 {
        self.count().saturating_mul(self.chunk_bytes_max()).saturating_add(self.index_bytes())
    }

    fn index_bytes(&self) -> u64 {
        self.count() * size_of::<IndexEntry>() as u64 + if self.checksum { CHECKSUM_BYTES } else { 0 }
    }

    /// The runs of chunk `number` of the index: first byte in the shard, first byte in the chunk, bytes \[B\].
    fn for_each_run(&self, number: u64, mut run: impl FnMut(usize, usize, usize)) {
        let at = unravel(number, &self.grid());
        let ndim = self.shard.len();
        let mut corner = vec![0; ndim];
        self.order.iter().zip(at).for_each(|(&d, at)| corner[d] = at * self.chunk[d]);
        // Whole dimensions at the fast end are one run.
        let whole = (0..ndim).rev().take_while(|&d| self.chunk[d] == self.shard[d]).count();
        let split = ndim.saturating_sub(whole + 1);
        let mut strides = vec![self.element_bytes; ndim];
        (0..ndim.saturating_sub(1)).rev().for_each(|d| strides[d] = strides[d + 1] * self.shard[d + 1]);
        let bytes = self.plain_bytes(&self.chunk[split..]) as usize;
        let mut index = vec![0; split];
        let first: u64 = corner.iter().zip(&strides).map(|(corner, stride)| corner * stride).sum();
        let (mut from, mut to) = (first, 0);
        loop {
            run(from as usize, to, bytes);
            to += bytes;
            let Some(d) = (0..split).rev().find(|&d| index[d] + 1 < self.chunk[d]) else { return };
            for later in d + 1..split {
                from -= index[later] * strides[later];
                index[later] = 0;
            }
            index[d] += 1;
            from += strides[d];
        }
    }

    /// Whether chunks are their elements, and a checksum at most.
    fn is_bare(&self) -> bool {
        matches!(&self.inside, Innards::Chain(chain) if matches!(chain[..], [] | [BytesCodec::Crc32c]))
    }

    fn is_fill(&self, chunk: &[u8]) -> bool {
        chunk.chunks_exact(self.fill.len()).all(|element| element == self.fill)
    }

    /// Chunks behind each other, and the index.
    fn pack(&self, plain: &[u8], context: Context) -> Result<Vec<u8>, Error> {
        let expected = self.plain_bytes(&self.shard);
        if plain.len() as u64 != expected {
            return Err(context.invalid(format!("{expected} B of elements"), format!("{} B", plain.len())));
        }
        // What is not compressed has its room at once, since it is moved each time that there is too little.
        let mut out = Vec::with_capacity(if self.is_bare() { self.packed_bytes_max() as usize } else { 0 });
        out.resize(if self.at_end { 0 } else { self.index_bytes() as usize }, 0);
        let mut entries = Vec::with_capacity(self.count() as usize);
        let mut chunk = Vec::with_capacity(self.plain_bytes(&self.chunk) as usize);
        for number in 0..self.count() {
            let first = out.len();
            let to = if self.is_bare() { &mut out } else { &mut chunk };
            let begin = to.len();
            self.for_each_run(number, |from, _, bytes| to.extend_from_slice(&plain[from..from + bytes]));
            if self.is_fill(&to[begin..]) {
                to.truncate(begin);
                entries.push(NO_CHUNK);
                continue;
            }
            match &self.inside {
                Innards::Chain(chain) if chain.is_empty() => {}
                Innards::Chain(_) if self.is_bare() => {
                    let sum = crc32c::crc32c(&out[first..]);
                    out.extend_from_slice(&sum.to_le_bytes());
                }
                Innards::Chain(chain) => out.extend_from_slice(&encode(chain, &chunk, context)?),
                Innards::Shards(nested) => {
                    out.extend_from_slice(&encode(&nested.chain, &nested.pack(&chunk, context)?, context)?);
                }
            }
            chunk.clear();
            entries.push([first as u64, (out.len() - first) as u64]);
        }
        let index = self.index_of(&entries);
        match self.at_end {
            true => out.extend_from_slice(&index),
            false => out[..index.len()].copy_from_slice(&index),
        }
        Ok(out)
    }

    fn index_of(&self, entries: &[IndexEntry]) -> Vec<u8> {
        let number = |number: u64| match self.endian {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        };
        let mut index: Vec<u8> = entries.as_flattened().iter().flat_map(|&one| number(one)).collect();
        if self.checksum {
            index.extend_from_slice(&crc32c::crc32c(&index).to_le_bytes());
        }
        index
    }

    /// The elements of a shard, whose chunks are in `packed`.
    fn unpack(&self, packed: &[u8], context: Context) -> Result<Vec<u8>, Error> {
        let index_bytes = self.index_bytes() as usize;
        let Some(behind) = packed.len().checked_sub(index_bytes) else {
            return Err(context.corrupt(format!("an index of {index_bytes} B"), format!("{} B", packed.len())));
        };
        let first = if self.at_end { behind } else { 0 };
        let stretches = self.read_index(&packed[first..first + index_bytes], first as u64, context)?;
        let mut plain = self.fill.repeat(self.plain_bytes(&self.shard) as usize / self.fill.len());
        let chunk_bytes = self.plain_bytes(&self.chunk);
        for (number, &(first, bytes)) in stretches.iter().enumerate().filter(|(_, stretch)| stretch.1 > 0) {
            let end = first.saturating_add(bytes);
            let Some(stored) = packed.get(first as usize..end.min(usize::MAX as u64) as usize) else {
                let expected = format!("chunk {number} of the shard at bytes {first} to {end}");
                return Err(context.corrupt(expected, format!("a shard of {} B", packed.len())));
            };
            let chunk = match &self.inside {
                Innards::Chain(chain) => decode(chain, stored, chunk_bytes, context)?,
                Innards::Shards(nested) => nested.expand(stored, context)?,
            };
            self.for_each_run(number as u64, |to, from, bytes| {
                plain[to..to + bytes].copy_from_slice(&chunk[from..from + bytes]);
            });
        }
        Ok(plain)
    }

    /// The elements of a shard as it is stored.
    fn expand(&self, stored: &[u8], context: Context) -> Result<Vec<u8>, Error> {
        let packed = decode_within(&self.chain, Cow::Borrowed(stored), self.packed_bytes_max(), context)?;
        self.unpack(&packed, context)
    }

    /// Where chunks lie.
    fn read_index(&self, index: &[u8], begin: u64, context: Context) -> Result<Vec<Stretch>, Error> {
        let bare = match self.checksum {
            true => without_checksum(Cow::Borrowed(index), context)?,
            false => Cow::Borrowed(index),
        };
        let expected = self.count() as usize * size_of::<IndexEntry>();
        if bare.len() != expected {
            return Err(context.corrupt(format!("an index of {expected} B"), format!("{} B", bare.len())));
        }
        let number = |bytes: &[u8; 8]| match self.endian {
            ByteOrder::Little => u64::from_le_bytes(*bytes),
            ByteOrder::Big => u64::from_be_bytes(*bytes),
        };
        let entries = bare.as_chunks::<8>().0.as_chunks::<2>().0;
        let mut stretches = Vec::with_capacity(entries.len());
        for (place, [first, bytes]) in entries.iter().enumerate() {
            let entry = [number(first), number(bytes)];
            stretches.push(self.check_entry(place, entry, begin, context)?);
        }
        apart(&stretches, context)?;
        Ok(stretches)
    }

    /// The stretch that an entry tells of: no bytes for no chunk.
    fn check_entry(&self, place: usize, entry: IndexEntry, begin: u64, context: Context) -> Result<Stretch, Error> {
        if entry == NO_CHUNK {
            return Ok((0, 0));
        }
        let [first, bytes] = entry;
        let (least, most) = match &self.inside {
            Innards::Chain(chain) if chain.is_empty() => (self.plain_bytes(&self.chunk), self.plain_bytes(&self.chunk)),
            _ => (1, self.chunk_bytes_max()),
        };
        if bytes < least || bytes > most {
            let expected = format!("{least} to {most} B for chunk {place} in the index of a shard");
            return Err(context.corrupt(expected, format!("{bytes} B")));
        }
        // Before the index, or behind it.
        let (low, high) = if self.at_end { (0, begin) } else { (begin + self.index_bytes(), i64::MAX as u64) };
        let end = first.saturating_add(bytes);
        if first < low || end > high {
            let expected = format!("chunk {place} of a shard between its bytes {low} and {high}");
            return Err(context.corrupt(expected, format!("bytes {first} to {end} in the index")));
        }
        Ok((first, bytes))
    }
}

/// Refuses an index in which chunks lie over each other.
fn apart(stretches: &[Stretch], context: Context) -> Result<(), Error> {
    let mut sorted: Vec<Stretch> = stretches.iter().copied().filter(|stretch| stretch.1 > 0).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
        None => Ok(()),
        Some(pair) => {
            let found = format!("chunks of {} and {} B at bytes {} and {}", pair[0].1, pair[1].1, pair[0].0, pair[1].0);
            Err(context.corrupt("chunks that do not overlap in the index of a shard", found))
        }
    }
}

impl ShardIndex for ShardCodec {
    fn bytes(&self) -> u64 {
        self.index_bytes()
    }

    fn is_at_end(&self) -> bool {
        self.at_end
    }

    fn stretches(&self, index: &[u8], first: u64, object: &str) -> Result<Vec<Stretch>, CodecError> {
        self.read_index(index, first, Context::new("read the index of shard", object)).map_err(told)
    }
}

impl Codec for ShardCodec {
    fn encode(&self, plain: &[u8], object: &str) -> Result<Vec<u8>, CodecError> {
        let context = Context::new("encode shard", object);
        self.pack(plain, context).and_then(|packed| encode(&self.chain, &packed, context)).map_err(told)
    }

    fn decode(&self, stored: &[u8], plain_bytes: u64, object: &str) -> Result<Vec<u8>, CodecError> {
        let context = Context::new("decode shard", object);
        if plain_bytes != self.plain_bytes(&self.shard) {
            let expected = format!("{} B of elements", self.plain_bytes(&self.shard));
            return Err(told(context.invalid(expected, format!("{plain_bytes} B"))));
        }
        self.expand(stored, context).map_err(told)
    }

    fn encoded_bytes_max(&self, _plain_bytes: u64) -> u64 {
        encoded_bytes_max(&self.chain, self.packed_bytes_max())
    }

    fn compresses(&self) -> bool {
        let inside = match &self.inside {
            Innards::Chain(chain) => compresses(chain),
            Innards::Shards(nested) => nested.compresses(),
        };
        inside || compresses(&self.chain)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = TAG.to_vec();
        self.write_to(&mut out);
        out
    }

    fn index(&self) -> Option<&dyn ShardIndex> {
        // Of what is coded as a whole, no part can be read.
        self.chain.is_empty().then_some(self)
    }

    fn numbering(&self) -> Option<&Numbering> {
        None
    }
}

/// What the bytes of a shard's codec begin with, which no chain does.
const TAG: &[u8] = b"\xff";

/// As bytes.
impl ShardCodec {
    fn write_to(&self, out: &mut Vec<u8>) {
        let list = |out: &mut Vec<u8>, list: &[u64]| {
            out.extend_from_slice(&(list.len() as u64).to_le_bytes());
            list.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        };
        let bytes = |out: &mut Vec<u8>, bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        list(out, &self.shard);
        list(out, &self.chunk);
        list(out, &self.order.iter().map(|&d| d as u64).collect::<Vec<_>>());
        bytes(out, &self.fill);
        out.extend_from_slice(&[
            u8::from(self.at_end),
            u8::from(self.endian == ByteOrder::Big),
            u8::from(self.checksum),
            u8::from(matches!(self.inside, Innards::Shards(_))),
        ]);
        bytes(out, &Chain::of(&self.chain).to_bytes());
        match &self.inside {
            Innards::Chain(chain) => bytes(out, &Chain::of(chain).to_bytes()),
            Innards::Shards(nested) => nested.write_to(out),
        }
    }

    /// The codec that [`Codec::to_bytes`] told of; nothing if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<ShardCodec> {
        let mut rest = bytes.strip_prefix(TAG)?;
        let codec = ShardCodec::read_from(&mut rest, 0)?;
        rest.is_empty().then_some(codec)
    }

    fn read_from(rest: &mut &[u8], depth: usize) -> Option<ShardCodec> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (shard, chunk) = (numbers(rest)?, numbers(rest)?);
        let order: Vec<usize> = numbers(rest)?.into_iter().map(|d| d as usize).collect();
        let fill = part(rest)?.to_vec();
        let [at_end, big, checksum, nested] = *take::<4>(rest)?;
        let chain = Chain::from_bytes(part(rest)?)?.codecs().to_vec();
        let inside = match nested {
            0 => Innards::Chain(Chain::from_bytes(part(rest)?)?.codecs().to_vec()),
            _ => Innards::Shards(Box::new(ShardCodec::read_from(rest, depth + 1)?)),
        };
        let ndim = shard.len();
        let permutation = order.len() == ndim && (0..ndim).all(|d| order.contains(&d));
        let divides = chunk.len() == ndim && shard.iter().zip(&chunk).all(|(&s, &c)| c > 0 && s > 0 && s % c == 0);
        let element_bytes = fill.len() as u64;
        let endian = if big == 1 { ByteOrder::Big } else { ByteOrder::Little };
        let (at_end, checksum) = (at_end == 1, checksum == 1);
        let made = ShardCodec { shard, chunk, order, element_bytes, fill, inside, at_end, endian, checksum, chain };
        (permutation && divides && made.is_sized()).then_some(made)
    }

    /// Whether its sizes are ones that metadata may have.
    fn is_sized(&self) -> bool {
        let bytes = volume(&self.shard).and_then(|elements| elements.checked_mul(self.element_bytes));
        let nested = match &self.inside {
            Innards::Chain(_) => true,
            Innards::Shards(nested) => (&nested.shard, &nested.fill) == (&self.chunk, &self.fill),
        };
        let counted = volume(&self.grid()).is_some_and(|count| count <= SHARD_CHUNKS_MAX);
        nested && counted && self.element_bytes > 0 && bytes.is_some_and(|bytes| bytes <= i64::MAX as u64)
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(first)
}

fn numbers(rest: &mut &[u8]) -> Option<Vec<u64>> {
    let count = u64::from_le_bytes(*take(rest)?);
    (count <= rest.len() as u64).then(|| (0..count).map(|_| Some(u64::from_le_bytes(*take(rest)?))).collect())?
}

fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let count = u64::from_le_bytes(*take(rest)?);
    let (first, behind) = rest.split_at_checked(usize::try_from(count).ok()?)?;
    *rest = behind;
    Some(first)
}

#[cfg(test)]
mod tests;
