//! The codec chain in metadata: how the elements of a chunk become the bytes of its object.

use super::json::{Named, text};
use crate::error::{Context, Error, excerpt};
use hyperslab_layout::{ByteOrder, Kind};
use serde_json::{Value, json};

/// Most codecs in one chain. Real chains have three; each may cost a copy of the chunk.
const CODECS_MAX: usize = 16;

/// A codec from bytes to bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BytesCodec {
    /// Appends the CRC-32C of the bytes, 4 bytes, little-endian.
    Crc32c,
    /// Zstandard.
    Zstd {
        /// From -131072 (fastest) to 22 (smallest); 0 stands for Zstandard's own default.
        level: i32,
        /// Whether frames end with a checksum of Zstandard's own.
        checksum: bool,
    },
    /// gzip.
    Gzip {
        /// From 0 (stored) to 9 (smallest).
        level: u32,
    },
}

/// How the elements of a chunk become the bytes of its object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Codecs {
    /// Order of dimensions in the stored chunk, outermost first: stored dimension `i` is dimension `order[i]` of the
    /// array. Empty for row-major order, also when it was written out.
    pub order: Vec<usize>,
    /// Order of the bytes of stored numbers; `Little` when elements have one byte.
    pub endian: ByteOrder,
    /// Codecs of bytes, in the order in which they are applied when writing.
    pub chain: Vec<BytesCodec>,
}

impl Codecs {
    /// Row-major, little-endian, uncompressed chunks, with a CRC-32C behind each if `checksum`.
    pub fn plain(checksum: bool) -> Self {
        let chain = if checksum { vec![BytesCodec::Crc32c] } else { Vec::new() };
        Codecs { order: Vec::new(), endian: ByteOrder::Little, chain }
    }

    /// As [`Codecs::plain`], with Zstandard at `level` before the checksum.
    pub fn zstd(level: i32, checksum: bool) -> Self {
        let mut codecs = Codecs::plain(checksum);
        codecs.chain.insert(0, BytesCodec::Zstd { level, checksum: false });
        codecs
    }

    /// Whether stored bytes are the bytes of the elements, but for at most a checksum at the end: such chunks can be
    /// addressed element by element.
    pub fn is_plain(&self) -> bool {
        matches!(self.chain.as_slice(), [] | [BytesCodec::Crc32c])
    }

    /// Whether stored chunks end with a CRC-32C of everything before it.
    pub fn checksum_trailer(&self) -> bool {
        self.chain.last() == Some(&BytesCodec::Crc32c)
    }

    /// The order of `ndim` stored dimensions, written out: `0, 1, ...` for row-major.
    pub fn permutation(&self, ndim: usize) -> Vec<usize> {
        if self.order.is_empty() { (0..ndim).collect() } else { self.order.clone() }
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

    /// Parses the member "codecs" of an array of `ndim` dimensions.
    pub(super) fn parse(value: Value, ndim: usize, kind: Kind, context: Context) -> Result<Self, Error> {
        let Value::Array(items) = value else {
            return Err(context.corrupt("\"codecs\" as a list", text(&value)));
        };
        if items.len() > CODECS_MAX {
            return Err(context.unsupported(format!("at most {CODECS_MAX} codecs"), items.len().to_string()));
        }
        let mut order: Vec<usize> = (0..ndim).collect();
        let mut endian = None;
        let mut chain = Vec::new();
        for item in items {
            let mut codec = Named::parse(item, "a codec", context)?;
            match (codec.name.as_str(), endian) {
                ("transpose", None) => order = transposed(&order, codec.take("order"), context)?,
                ("bytes", None) => endian = Some(byte_order(codec.take("endian"), kind, context)?),
                ("crc32c", Some(_)) => chain.push(BytesCodec::Crc32c),
                ("zstd", Some(_)) => chain.push(zstd(&mut codec, context)?),
                ("gzip", Some(_)) => chain.push(gzip(&mut codec, context)?),
                ("transpose" | "bytes" | "crc32c" | "zstd" | "gzip", _) => {
                    let expected = "codecs in the order `transpose`s, one `bytes`, then `crc32c`, `zstd` or `gzip`";
                    return Err(context.corrupt(expected, format!("`{}` out of order", codec.name)));
                }
                (other, _) => return Err(refused(other, context)),
            }
            codec.finish(context)?;
        }
        let Some(endian) = endian else {
            return Err(context.corrupt("a codec `bytes`", "none"));
        };
        let row_major = order.iter().enumerate().all(|(position, &dimension)| position == dimension);
        Ok(Codecs { order: if row_major { Vec::new() } else { order }, endian, chain })
    }

    /// Refuses orders that are no permutations and levels out of range, which a caller may have set.
    pub(super) fn check(&self, ndim: usize, context: Context) -> Result<(), Error> {
        if !self.order.is_empty() && !is_permutation(&self.order, ndim) {
            let expected = format!("a storage order that is a permutation of 0..{ndim}");
            return Err(context.invalid(expected, format!("{:?}", self.order)));
        }
        if self.chain.len() > CODECS_MAX - 2 {
            return Err(context.invalid(format!("at most {} codecs", CODECS_MAX - 2), self.chain.len().to_string()));
        }
        for codec in &self.chain {
            match *codec {
                BytesCodec::Zstd { level, .. } if !zstd_levels().contains(&level.into()) => {
                    let (low, high) = zstd_levels().into_inner();
                    return Err(context.invalid(format!("zstd level {low} to {high}"), level.to_string()));
                }
                BytesCodec::Gzip { level } if level > 9 => {
                    return Err(context.invalid("gzip level 0 to 9", level.to_string()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The member "codecs" of metadata.
    pub(super) fn to_value(&self, kind: Kind) -> Value {
        let mut items = Vec::with_capacity(self.chain.len() + 2);
        if !self.order.is_empty() {
            items.push(json!({"name": "transpose", "configuration": {"order": self.order}}));
        }
        let endian = match self.endian {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        };
        items.push(match kind.bytes() {
            1 => json!({"name": "bytes"}),
            _ => json!({"name": "bytes", "configuration": {"endian": endian}}),
        });
        items.extend(self.chain.iter().map(|codec| match codec {
            BytesCodec::Crc32c => json!({"name": "crc32c"}),
            BytesCodec::Zstd { level, checksum } => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": checksum}})
            }
            BytesCodec::Gzip { level } => json!({"name": "gzip", "configuration": {"level": level}}),
        }));
        Value::Array(items)
    }
}

/// The storage order when a chunk in `order` is transposed once more.
fn transposed(order: &[usize], value: Option<Value>, context: Context) -> Result<Vec<usize>, Error> {
    let value = value.unwrap_or(Value::Null);
    let wrong = || context.corrupt(format!("transpose order as a permutation of 0..{}", order.len()), text(&value));
    let items = value.as_array().ok_or_else(wrong)?;
    let next: Option<Vec<usize>> = items.iter().map(|item| item.as_u64().and_then(|n| n.try_into().ok())).collect();
    let next = next.filter(|next| is_permutation(next, order.len())).ok_or_else(wrong)?;
    Ok(next.into_iter().map(|dimension| order[dimension]).collect())
}

fn is_permutation(order: &[usize], ndim: usize) -> bool {
    let mut seen = vec![false; ndim];
    order.len() == ndim
        && order.iter().all(|&dimension| dimension < ndim && !std::mem::replace(&mut seen[dimension], true))
}

fn byte_order(value: Option<Value>, kind: Kind, context: Context) -> Result<ByteOrder, Error> {
    match value.as_ref().map(|value| value.as_str()) {
        Some(Some("little")) => Ok(ByteOrder::Little),
        // One-byte elements have no byte order: one spelling for all of them.
        Some(Some("big")) if kind.bytes() > 1 => Ok(ByteOrder::Big),
        Some(Some("big")) => Ok(ByteOrder::Little),
        None if kind.bytes() == 1 => Ok(ByteOrder::Little),
        _ => {
            let expected = format!("codec `bytes` of {kind} with \"endian\": \"little\" or \"big\"");
            Err(context.corrupt(expected, value.as_ref().map_or("none".to_owned(), text)))
        }
    }
}

fn zstd_levels() -> std::ops::RangeInclusive<i64> {
    let levels = zstd::compression_level_range();
    i64::from(*levels.start())..=i64::from(*levels.end())
}

fn zstd(codec: &mut Named, context: Context) -> Result<BytesCodec, Error> {
    let checksum = match codec.take("checksum") {
        None => false,
        Some(Value::Bool(checksum)) => checksum,
        Some(other) => return Err(context.corrupt("zstd checksum true or false", text(&other))),
    };
    let level = match codec.take("level") {
        None => 0,
        Some(value) => match value.as_i64().filter(|level| zstd_levels().contains(level)) {
            Some(level) => level as i32,
            None => return Err(context.corrupt("zstd level -131072 to 22", text(&value))),
        },
    };
    Ok(BytesCodec::Zstd { level, checksum })
}

fn gzip(codec: &mut Named, context: Context) -> Result<BytesCodec, Error> {
    match codec.take("level") {
        None => Ok(BytesCodec::Gzip { level: 6 }),
        Some(value) => match value.as_u64().filter(|&level| level <= 9) {
            Some(level) => Ok(BytesCodec::Gzip { level: level as u32 }),
            None => Err(context.corrupt("gzip level 0 to 9", text(&value))),
        },
    }
}

fn refused(name: &str, context: Context) -> Error {
    let hint = match name {
        "sharding_indexed" => "write the array without shards; large chunks serve the same end here",
        "blosc" | "numcodecs.blosc" => "write the array with zstd or gzip instead of blosc",
        "vlen-utf8" | "vlen-bytes" => "strings are not supported: store numbers",
        _ => "write the array with `bytes` and any of `transpose`, `crc32c`, `zstd` and `gzip`",
    };
    let expected = "codecs `transpose`, `bytes`, `crc32c`, `zstd` or `gzip`";
    context.unsupported(expected, format!("codec `{}`", excerpt(name))).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { asked: "read", object: "zarr.json" };

    fn parse(value: Value, ndim: usize) -> Result<Codecs, Error> {
        Codecs::parse(value, ndim, Kind::Float64, CONTEXT)
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
        assert_eq!(Codecs::parse(bytes, 1, Kind::UInt8, CONTEXT).unwrap(), Codecs::plain(false));
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
        for order in [json!([0, 0]), json!([0, 2]), json!([0]), json!("F"), json!(null), json!([0, 1, 2])] {
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
        for name in ["blosc", "sharding_indexed", "numcodecs.lz4", "vlen-utf8"] {
            let error = parse(json!([{"name": "bytes", "configuration": {"endian": "little"}}, name]), 1).unwrap_err();
            assert!(error.is_unsupported());
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
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
}
