//! The codec chain in metadata: how the elements of a chunk become the bytes of its object.

use super::bytes_codec::{ASKED, BytesCodec, NAMES};
use super::json::{Named, lengths, text};
use super::numcodecs::{self, PREFIX, is_filter};
use super::policy::{DEPTH_MAX, SHARD_CHUNKS_MAX};
use super::text_type::{self, is_texts};
use crate::error::{Context, Error};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{ByteOrder, Kind, tuple};
use serde_json::{Value, json};

/// Most codecs in one chain. Real chains have three; each may cost a copy of the chunk.
const CODECS_MAX: usize = 16;

/// How the elements of a chunk become the bytes of its object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Codecs {
    /// Order of dimensions in the stored chunk, outermost first: stored dimension `i` is dimension `order[i]` of the
    /// array. Empty for row-major order, also when it was written out.
    pub order: Vec<usize>,
    /// Order of the bytes of stored numbers, inside of shards if there are any; `Little` when elements have one byte.
    pub endian: ByteOrder,
    /// Where the chunk is a shard, how it holds the chunks inside.
    pub shards: Option<Box<Sharding>>,
    /// Codecs of bytes, in the order in which they are applied when writing; behind those inside of a shard.
    pub chain: Vec<BytesCodec>,
}

impl Codecs {
    /// Row-major, little-endian, uncompressed chunks, with a CRC-32C behind each if `checksum`.
    pub fn plain(checksum: bool) -> Self {
        let chain = if checksum { vec![BytesCodec::Crc32c] } else { Vec::new() };
        Codecs { order: Vec::new(), endian: ByteOrder::Little, shards: None, chain }
    }

    /// Row-major shards that hold chunks like this.
    pub fn sharded(sharding: Sharding) -> Self {
        let endian = sharding.codecs.endian;
        Codecs { endian, shards: Some(Box::new(sharding)), ..Codecs::plain(false) }
    }

    /// As [`Codecs::plain`], with Zstandard at `level` before the checksum.
    pub fn zstd(level: i32, checksum: bool) -> Self {
        let mut codecs = Codecs::plain(checksum);
        codecs.chain.insert(0, BytesCodec::Zstd { level, checksum: false });
        codecs
    }

    /// Codecs as metadata list them, for arrays of any kind: `bytes` may be left out, or its byte order; `name` is for errors.
    pub fn from_json(value: &Value, name: &str) -> Result<Self, Error> {
        let context = Context::new(ASKED, name);
        let mut items = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        let named = |item: &Value| item.as_str().or(item.get("name").and_then(Value::as_str)).unwrap_or("").to_string();
        let first = items.iter().position(|item| named(item) != "transpose").unwrap_or(items.len());
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        match items.get(first).map(named).as_deref() {
            Some("bytes") if items[first]["configuration"]["endian"].is_null() => items[first] = little,
            Some("bytes" | "sharding_indexed") => {}
            _ => items.insert(first, little),
        }
        let order = items.first().and_then(|item| item["configuration"]["order"].as_array());
        let ndim = order.map_or(0, Vec::len);
        let codecs = Codecs::parse(Value::Array(items), ndim, Kind::UInt64, 0, context)?;
        match codecs.only_read() {
            None => Ok(codecs),
            Some(name) => {
                let error = context.unsupported("codecs that are written", format!("'{name}', which is only read"));
                Err(error.with_hint("choose another, such as zstd"))
            }
        }
    }

    /// As metadata list them, of arrays whose elements have a byte order.
    pub fn to_json(&self) -> String {
        self.to_value(Kind::UInt64).to_string()
    }

    /// The name of a codec with which nothing is written, if one of these is such.
    pub fn only_read(&self) -> Option<String> {
        let inside = || self.shards.as_ref().and_then(|sharding| sharding.codecs.only_read());
        self.chain.iter().find_map(|codec| codec.only_read()).or_else(inside)
    }

    /// The same for elements of this kind, which may settle what was left open.
    pub fn of_kind(mut self, kind: Kind) -> Self {
        if kind.swap_bytes() == 1 {
            self.endian = ByteOrder::Little;
        }
        self.chain.iter_mut().for_each(|codec| *codec = codec.of_elements(kind.bytes()));
        if let Some(sharding) = &mut self.shards {
            sharding.codecs = sharding.codecs.clone().of_kind(kind);
        }
        self
    }

    /// Whether stored bytes are the bytes of the elements, but for at most a checksum at the end: such chunks can be
    /// addressed element by element.
    pub fn is_plain(&self) -> bool {
        self.shards.is_none() && matches!(self.chain.as_slice(), [] | [BytesCodec::Crc32c])
    }

    /// Whether stored chunks end with a CRC-32C of everything before it.
    pub fn checksum_trailer(&self) -> bool {
        self.chain.last() == Some(&BytesCodec::Crc32c)
    }

    /// The order of `ndim` dimensions, written out: `0, 1, ...` for row-major. Of a shard, that of the index.
    pub fn outer_order(&self, ndim: usize) -> Vec<usize> {
        if self.order.is_empty() { (0..ndim).collect() } else { self.order.clone() }
    }

    /// The order of `ndim` stored dimensions, written out. Of a shard, that of the elements of a chunk inside.
    pub fn permutation(&self, ndim: usize) -> Vec<usize> {
        let outer = self.outer_order(ndim);
        match &self.shards {
            Some(sharding) => sharding.codecs.permutation(ndim).into_iter().map(|d| outer[d]).collect(),
            None => outer,
        }
    }

    /// Distance \[B\] in a decoded chunk of `chunk_shape` between neighbours along each dimension of the array.
    ///
    /// The chunk's size must have been checked, as that of [`super::ArrayMetadata`] is.
    pub fn strides(&self, chunk_shape: &[u64], element_bytes: u64) -> Vec<u64> {
        let mut strides = vec![0; chunk_shape.len()];
        let mut stride = element_bytes;
        for dimension in self.permutation(chunk_shape.len()).into_iter().rev() {
            strides[dimension] = stride;
            stride *= chunk_shape[dimension];
        }
        strides
    }

    /// Parses the member "codecs" of an array of `ndim` dimensions, or of so deeply nested shards.
    pub(super) fn parse(value: Value, ndim: usize, kind: Kind, depth: usize, context: Context) -> Result<Self, Error> {
        let Value::Array(items) = value else {
            return Err(context.corrupt("\"codecs\" as a list", text(&value)));
        };
        if items.len() > CODECS_MAX {
            return Err(context.unsupported(format!("at most {CODECS_MAX} codecs"), items.len().to_string()));
        }
        let mut order: Vec<usize> = (0..ndim).collect();
        let (mut endian, mut shards) = (None, None);
        let (mut chain, mut stored) = (Vec::new(), kind);
        for item in items {
            let mut codec = Named::parse(item, "a codec", context)?;
            match (codec.name.as_str(), endian) {
                (name, None) if is_filter(name) => {
                    let found = numcodecs::parse(&mut codec, stored, context)?;
                    if let BytesCodec::Filter(filter) = found {
                        stored = filter.stored.kind();
                    }
                    chain.push(found);
                }
                ("transpose", None) if !chain.is_empty() => {
                    return Err(context.unsupported("transpose before all filters", "one behind a filter"));
                }
                ("transpose", None) => order = transposed(&order, codec.take("order"), context)?,
                (text_type::CODEC, None) if is_texts(kind) => endian = Some(ByteOrder::Little),
                ("bytes", None) if is_texts(kind) => {
                    return Err(context.unsupported(format!("codec {} of {kind}", text_type::CODEC), "codec 'bytes'"));
                }
                ("bytes", None) => endian = Some(byte_order(codec.take("endian"), stored, context)?),
                ("sharding_indexed", None) => {
                    let sharding = Sharding::parse(&mut codec, ndim, kind, depth, context)?;
                    endian = Some(sharding.codecs.endian);
                    shards = Some(Box::new(sharding));
                }
                ("transpose" | "bytes" | "sharding_indexed", Some(_)) => return Err(misplaced(&codec.name, context)),
                (text_type::CODEC, Some(_)) if is_texts(kind) => return Err(misplaced(&codec.name, context)),
                (other, None) if NAMES.contains(&other) => return Err(misplaced(other, context)),
                (name, Some(_)) if is_filter(name) => return Err(misplaced(name, context)),
                (name, _) if name.starts_with(PREFIX) && !NAMES.contains(&name) => {
                    chain.push(numcodecs::parse(&mut codec, kind, context)?);
                }
                _ => chain.push(BytesCodec::parse(&mut codec, context)?),
            }
            codec.finish(context)?;
        }
        let Some(endian) = endian else {
            let named = if is_texts(kind) { text_type::CODEC } else { "bytes" };
            return Err(context.corrupt(format!("a codec {named}"), "none"));
        };
        let row_major = order.iter().enumerate().all(|(position, &dimension)| position == dimension);
        Ok(Codecs { order: if row_major { Vec::new() } else { order }, endian, shards, chain })
    }

    /// Refuses orders that are no permutations and levels out of range, which a caller may have set.
    /// Of shards, also chunks that do not fit `chunk`, the shape of what is coded.
    pub(super) fn check(&self, chunk: &[u64], context: Context) -> Result<(), Error> {
        let ndim = chunk.len();
        if !self.order.is_empty() && !is_permutation(&self.order, ndim) {
            let expected = format!("a storage order that is a permutation of 0..{ndim}");
            return Err(context.invalid(expected, format!("{:?}", self.order)));
        }
        if self.chain.len() > CODECS_MAX - 2 {
            return Err(context.invalid(format!("at most {} codecs", CODECS_MAX - 2), self.chain.len().to_string()));
        }
        self.chain.iter().try_for_each(|codec| codec.check(context))?;
        let Some(sharding) = &self.shards else { return Ok(()) };
        if sharding.codecs.endian != self.endian {
            return Err(context.invalid("the byte order of the chunks inside of a shard", self.endian.name()));
        }
        let shard: Vec<u64> = self.outer_order(ndim).into_iter().map(|d| chunk[d]).collect();
        sharding.check(&shard, context)
    }

    /// The member "codecs" of metadata.
    pub(super) fn to_value(&self, kind: Kind) -> Value {
        let mut items = Vec::with_capacity(self.chain.len() + 2);
        if !self.order.is_empty() {
            items.push(json!({"name": "transpose", "configuration": {"order": self.order}}));
        }
        // The bytes of fields have an order, which is said, though it is always the same.
        let fields = matches!(kind, Kind::Opaque(opaque) if opaque.fields().is_some());
        let filters = self.chain.iter().take_while(|codec| matches!(codec, BytesCodec::Filter(_)));
        items.extend(filters.clone().map(|codec| codec.to_value()));
        items.push(match &self.shards {
            Some(sharding) => sharding.to_value(kind),
            None if is_texts(kind) => json!({"name": text_type::CODEC, "configuration": {}}),
            None if kind.swap_bytes() == 1 && !fields => json!({"name": "bytes"}),
            None => json!({"name": "bytes", "configuration": {"endian": self.endian.name()}}),
        });
        items.extend(self.chain.iter().skip(filters.count()).map(|codec| codec.to_value()));
        Value::Array(items)
    }
}

/// How a shard holds chunks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sharding {
    /// Shape of a chunk inside, whose dimensions are those of the shard as the codecs before leave it.
    pub chunk_shape: Vec<u64>,
    /// How the elements of a chunk inside become bytes.
    pub codecs: Codecs,
    /// Where the index lies: behind all chunks, or before them.
    pub index_at_end: bool,
    /// Order of the bytes of the index's numbers.
    pub index_endian: ByteOrder,
    /// Whether a CRC-32C follows the index.
    pub index_checksum: bool,
}

impl Sharding {
    /// Chunks of this shape, with an index at the end that has a checksum, as zarr-python writes them.
    pub fn new(chunk_shape: &[u64], codecs: Codecs) -> Sharding {
        Sharding {
            chunk_shape: chunk_shape.to_vec(),
            codecs,
            index_at_end: true,
            index_endian: ByteOrder::Little,
            index_checksum: true,
        }
    }

    /// How many chunks there are along each dimension of a shard, where they divide it.
    pub fn chunks_in(&self, shard: &[u64]) -> Option<Vec<u64>> {
        let divided = |(&shard, &chunk): (&u64, &u64)| (chunk > 0 && shard % chunk == 0).then(|| shard / chunk);
        (shard.len() == self.chunk_shape.len())
            .then(|| shard.iter().zip(&self.chunk_shape).map(divided).collect())
            .flatten()
    }

    pub(super) fn parse(
        codec: &mut Named,
        ndim: usize,
        kind: Kind,
        depth: usize,
        context: Context,
    ) -> Result<Sharding, Error> {
        if depth >= DEPTH_MAX {
            return Err(context.unsupported(format!("at most {DEPTH_MAX} shards in each other"), "more"));
        }
        let chunk_shape = lengths(&codec.take("chunk_shape").unwrap_or(Value::Null), "chunk_shape of shards", context)?;
        let inner = codec.take("codecs").unwrap_or_else(|| json!([]));
        let codecs = Codecs::parse(inner, ndim, kind, depth + 1, context)?;
        let index_codecs = codec.take("index_codecs").unwrap_or_else(|| json!([]));
        let (index_endian, index_checksum) = index_coding(&index_codecs, context)?;
        let index_at_end = match codec.take("index_location") {
            None => true,
            Some(Value::String(at)) if at == "end" => true,
            Some(Value::String(at)) if at == "start" => false,
            Some(other) => return Err(context.corrupt("index_location \"start\" or \"end\"", text(&other))),
        };
        Ok(Sharding { chunk_shape, codecs, index_at_end, index_endian, index_checksum })
    }

    /// Refuses chunks that do not fit their shard, whose shape is given as the codecs before leave it.
    pub(super) fn check(&self, shard: &[u64], context: Context) -> Result<(), Error> {
        let Some(chunks) = self.chunks_in(shard) else {
            let expected = format!("chunks that divide their shard of shape {}", tuple(shard));
            return Err(context.invalid(expected, tuple(&self.chunk_shape)));
        };
        let count = volume(&chunks).unwrap_or(u64::MAX);
        if count > SHARD_CHUNKS_MAX {
            return Err(context.unsupported(format!("at most {SHARD_CHUNKS_MAX} chunks in a shard"), count.to_string()));
        }
        self.codecs.check(&self.chunk_shape, context)
    }

    pub(super) fn to_value(&self, kind: Kind) -> Value {
        let mut index_codecs = vec![json!({"name": "bytes", "configuration": {"endian": self.index_endian.name()}})];
        if self.index_checksum {
            index_codecs.push(json!({"name": "crc32c"}));
        }
        let configuration = json!({
            "chunk_shape": self.chunk_shape,
            "codecs": self.codecs.to_value(kind),
            "index_codecs": index_codecs,
            "index_location": if self.index_at_end { "end" } else { "start" },
        });
        json!({"name": "sharding_indexed", "configuration": configuration})
    }
}

/// Byte order and checksum of an index. All that its codecs may be must have a size that is known before.
fn index_coding(value: &Value, context: Context) -> Result<(ByteOrder, bool), Error> {
    let expected = "index_codecs bytes, or bytes and crc32c";
    let wrong = || context.unsupported(expected, text(value));
    let (first, rest) = value.as_array().and_then(|items| items.split_first()).ok_or_else(wrong)?;
    let mut bytes = Named::parse(first.clone(), "a codec of an index", context)?;
    if bytes.name != "bytes" {
        return Err(wrong());
    }
    let endian = byte_order(bytes.take("endian"), Kind::UInt64, context)?;
    bytes.finish(context)?;
    let checksum = match rest {
        [] => false,
        [one] => {
            let checksum = Named::parse(one.clone(), "a codec of an index", context)?;
            if checksum.name != "crc32c" {
                return Err(wrong());
            }
            checksum.finish(context)?;
            true
        }
        _ => return Err(wrong()),
    };
    Ok((endian, checksum))
}

/// The storage order when a chunk in `order` is transposed once more.
fn transposed(order: &[usize], value: Option<Value>, context: Context) -> Result<Vec<usize>, Error> {
    let value = value.unwrap_or(Value::Null);
    // Names that TensorStore knows, and earlier drafts had.
    match value.as_str() {
        Some("C") => return Ok(order.to_vec()),
        Some("F") => return Ok(order.iter().rev().copied().collect()),
        _ => {}
    }
    let wrong = || context.corrupt(format!("transpose order as a permutation of 0..{}", order.len()), text(&value));
    let items = value.as_array().ok_or_else(wrong)?;
    let next: Option<Vec<usize>> = items.iter().map(|item| item.as_u64().and_then(|n| n.try_into().ok())).collect();
    let next = next.filter(|next| is_permutation(next, order.len())).ok_or_else(wrong)?;
    Ok(next.into_iter().map(|dimension| order[dimension]).collect())
}

fn misplaced(name: &str, context: Context) -> Error {
    let expected = "codecs in this order: any transpose, one bytes or sharding_indexed, then others in any order";
    context.corrupt(expected, format!("'{name}' out of order"))
}

fn is_permutation(order: &[usize], ndim: usize) -> bool {
    let mut seen = vec![false; ndim];
    order.len() == ndim
        && order.iter().all(|&dimension| dimension < ndim && !std::mem::replace(&mut seen[dimension], true))
}

pub(super) fn byte_order(value: Option<Value>, kind: Kind, context: Context) -> Result<ByteOrder, Error> {
    match value.as_ref().map(|value| value.as_str()) {
        Some(Some("little")) => Ok(ByteOrder::Little),
        Some(Some("big")) if kind.swap_bytes() > 1 => Ok(ByteOrder::Big),
        Some(Some("big")) if matches!(kind, Kind::Opaque(opaque) if opaque.fields().is_some()) => {
            let error = context.unsupported("little-endian fields of structured elements", "\"endian\": \"big\"");
            Err(error.with_hint("rewrite the array with \"endian\": \"little\""))
        }
        // Elements without a byte order: one spelling for all of them. zarr-python leaves it out for structured ones.
        Some(Some("big")) => Ok(ByteOrder::Little),
        None if kind.swap_bytes() == 1 => Ok(ByteOrder::Little),
        _ => {
            let expected = format!("codec bytes of {kind} with \"endian\": \"little\" or \"big\"");
            Err(context.corrupt(expected, value.as_ref().map_or("none".to_owned(), text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { asked: "read", object: "zarr.json" };

    fn parse(value: Value, ndim: usize) -> Result<Codecs, Error> {
        Codecs::parse(value, ndim, Kind::Float64, 0, CONTEXT)
    }

    #[test]
    fn chains_round_trip() {
        let mut all = Codecs::zstd(-5, true);
        all.order = vec![2, 0, 1];
        all.endian = ByteOrder::Big;
        all.chain.push(BytesCodec::Gzip { level: 9 });
        for codecs in [all, Codecs::plain(true), Codecs::plain(false)] {
            assert_eq!(parse(codecs.to_value(Kind::Float64), 3).unwrap(), codecs);
        }
        let bytes = Codecs::plain(false).to_value(Kind::UInt8);
        assert_eq!(bytes, json!([{"name": "bytes"}]));
        assert_eq!(Codecs::parse(bytes, 1, Kind::UInt8, 0, CONTEXT).unwrap(), Codecs::plain(false));
    }

    #[test]
    fn transpositions_compose_and_give_strides() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let by = |order: Value| json!({"name": "transpose", "configuration": {"order": order}});
        let once = parse(json!([by(json!([2, 0, 1])), little]), 3).unwrap();
        assert_eq!(once.order, [2, 0, 1]);
        // Stored shape (4, 2, 3): the last dimension of the array is the slowest in the chunk.
        assert_eq!(once.strides(&[2, 3, 4], 8), [24, 8, 48]);
        let twice = parse(json!([by(json!([2, 0, 1])), by(json!([1, 0, 2])), little]), 3).unwrap();
        assert_eq!(twice.order, [0, 2, 1]);
        let back = parse(json!([by(json!([1, 0])), by(json!([1, 0])), little]), 2).unwrap();
        assert!(back.order.is_empty());
        assert_eq!(back.strides(&[2, 3], 8), [24, 8]);
        assert_eq!(back.strides(&[], 8), Vec::<u64>::new());
        for order in [json!([0, 0]), json!([0, 2]), json!([0]), json!("A"), json!(null), json!([0, 1, 2])] {
            assert!(parse(json!([by(order), little]), 2).unwrap_err().is_corrupt());
        }
    }

    #[test]
    fn plain_means_addressable() {
        assert!(Codecs::plain(true).is_plain());
        assert!(Codecs::plain(true).checksum_trailer());
        assert!(Codecs::plain(false).is_plain());
        assert!(!Codecs::plain(false).checksum_trailer());
        assert!(!Codecs::zstd(3, true).is_plain());
        assert!(Codecs::zstd(3, true).checksum_trailer());
        let twice = Codecs { chain: vec![BytesCodec::Crc32c; 2], ..Codecs::plain(true) };
        assert!(!twice.is_plain());
    }

    #[test]
    fn unknown_codecs_are_refused_by_name_with_a_hint() {
        for name in ["numcodecs.zfpy", "numcodecs.jenkins_lookup3", "vlen-utf8", "lz4"] {
            let error = parse(json!([{"name": "bytes", "configuration": {"endian": "little"}}, name]), 1).unwrap_err();
            assert!(error.is_unsupported());
            assert!(error.to_string().contains(name.trim_start_matches(PREFIX)), "{error}");
            assert!(error.hint().is_some());
        }
    }

    #[test]
    fn malformed_chains_are_refused() {
        let little = json!({"name": "bytes", "configuration": {"endian": "little"}});
        for value in [
            json!([]),
            json!({}),
            json!(["bytes"]),
            json!([little, little]),
            json!(["crc32c", little]),
            json!([little, {"name": "transpose", "configuration": {"order": [0]}}]),
            json!([little, {"name": "zstd", "configuration": {"level": 23}}]),
            json!([little, {"name": "zstd", "configuration": {"level": 1.5}}]),
            json!([little, {"name": "gzip", "configuration": {"level": 10}}]),
            json!([little, 7]),
        ] {
            assert!(parse(value.clone(), 1).unwrap_err().is_corrupt(), "{value}");
        }
        let long = Value::Array(std::iter::once(little).chain(vec![json!("crc32c"); 99]).collect());
        assert!(parse(long, 1).unwrap_err().is_unsupported());
    }

    fn shards(change: impl Fn(&mut serde_json::Map<String, Value>)) -> Value {
        let mut value = Sharding::new(&[2, 3], Codecs::zstd(3, true)).to_value(Kind::Float64);
        change(value["configuration"].as_object_mut().unwrap());
        json!([value])
    }

    #[test]
    fn shards_round_trip() {
        let inner = Sharding {
            index_at_end: false,
            index_endian: ByteOrder::Big,
            ..Sharding::new(&[1, 3], Codecs::plain(false))
        };
        let nested = Sharding { index_checksum: false, ..Sharding::new(&[2, 3], Codecs::sharded(inner)) };
        for sharding in [Sharding::new(&[2, 3], Codecs::zstd(3, true)), nested] {
            let codecs = Codecs { order: vec![1, 0], ..Codecs::sharded(sharding) };
            assert_eq!(parse(codecs.to_value(Kind::Float64), 2).unwrap(), codecs);
            assert!(codecs.check(&[6, 4], CONTEXT).is_ok(), "transposed first");
            assert!(codecs.check(&[4, 6], CONTEXT).unwrap_err().is_invalid());
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let fits = |value| parse(value, 2).and_then(|codecs| codecs.check(&[4, 6], CONTEXT));
        assert!(fits(shards(|_| ())).is_ok());
        for (member, value) in [
            ("chunk_shape", json!([2])),
            ("chunk_shape", json!([0, 3])),
            ("chunk_shape", json!([3, 3])),
            ("chunk_shape", json!("2")),
            ("codecs", json!([])),
            ("index_codecs", json!([])),
            ("index_codecs", json!([{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c", "crc32c"])),
            ("index_codecs", json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}])),
            ("index_location", json!("middle")),
            ("surprise", json!(1)),
        ] {
            let error = fits(shards(|members| drop(members.insert(member.into(), value.clone()))));
            assert!(error.is_err(), "{member}: {value}");
        }
        let many = Codecs::sharded(Sharding::new(&[1, 1], Codecs::plain(false)));
        assert!(many.check(&[1 << 20, 1 << 20], CONTEXT).unwrap_err().is_unsupported());
        let mut deep = Codecs::plain(false);
        for _ in 0..=DEPTH_MAX {
            deep = Codecs::sharded(Sharding::new(&[2, 2], deep));
        }
        assert!(parse(deep.to_value(Kind::Float64), 2).unwrap_err().is_unsupported());
    }
}
