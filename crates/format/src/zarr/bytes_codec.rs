//! Codecs from bytes to bytes in metadata.

use super::blosc::{Blosc, Compressor, Shuffle};
use super::filters::{ArrayFilter, Filtering};
use super::json::{Named, text};
use super::packed::ChecksumKind;
use super::text_type::CODEC;
use crate::error::{Context, Error, excerpt};
use serde_json::{Value, json};

/// What is asked of codecs that a user gives.
pub(super) const ASKED: &str = "use";

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
    /// zlib, which Zarr v2 has.
    Zlib {
        /// From 0 (stored) to 9 (smallest).
        level: u32,
    },
    /// Blosc.
    Blosc(Blosc),
    /// Shuffle, as HDF5 and numcodecs do it: the first bytes of all elements, then the second ones.
    Shuffle {
        /// Bytes of an element; those of the array's, if 0.
        element_bytes: u32,
    },
    /// Appends the Fletcher checksum of HDF5, 4 bytes, little-endian.
    Fletcher32,
    /// A block of LZ4 behind its size.
    Lz4,
    /// bzip2, which is only read.
    Bz2 {
        /// From 1 (fastest) to 9 (smallest).
        level: u32,
    },
    /// LZMA, which is only read.
    Lzma {
        /// Whether in the older format, and not in that of xz.
        alone: bool,
    },
    /// Another checksum.
    Sum {
        /// Which.
        sum: ChecksumKind,
        /// Whether before the bytes, and not behind them.
        at_start: bool,
    },
    /// Makes texts of any length of slots of so many bytes, and comes before all others. Metadata name it among the codecs of elements.
    Texts {
        /// Bytes of a slot.
        slot_bytes: u32,
    },
    /// Makes other numbers of the elements, and is only read. Of these, none is behind another codec.
    Filter(ArrayFilter),
}

/// Names of codecs that follow each other in any order.
pub(super) const NAMES: [&str; 7] =
    ["crc32c", "zstd", "gzip", "blosc", "numcodecs.zlib", "numcodecs.shuffle", "numcodecs.fletcher32"];

impl BytesCodec {
    /// The codec that metadata name.
    pub(super) fn parse(codec: &mut Named, context: Context) -> Result<BytesCodec, Error> {
        match codec.name.as_str() {
            "crc32c" => Ok(BytesCodec::Crc32c),
            "zstd" => zstd(codec, context),
            "gzip" => Ok(BytesCodec::Gzip { level: level(codec, 6, context)? }),
            "numcodecs.zlib" => Ok(BytesCodec::Zlib { level: level(codec, 1, context)? }),
            "blosc" => Ok(BytesCodec::Blosc(blosc(codec, context)?)),
            "numcodecs.shuffle" => Ok(BytesCodec::Shuffle { element_bytes: element_bytes(codec, context)? }),
            "numcodecs.fletcher32" => Ok(BytesCodec::Fletcher32),
            other => Err(refused(other, context)),
        }
    }

    /// The same for elements of so many bytes, where nothing was said of them.
    pub(super) fn of_elements(self, bytes: u64) -> BytesCodec {
        match self {
            BytesCodec::Blosc(blosc) if blosc.element_bytes == 0 => {
                BytesCodec::Blosc(Blosc { element_bytes: bytes as u32, ..blosc })
            }
            BytesCodec::Shuffle { element_bytes: 0 } => BytesCodec::Shuffle { element_bytes: bytes as u32 },
            other => other,
        }
    }

    /// Refuses levels out of range, which a caller may have set.
    pub(super) fn check(self, context: Context) -> Result<(), Error> {
        match self {
            BytesCodec::Zstd { level, .. } if !zstd_levels().contains(&level.into()) => {
                let (low, high) = zstd_levels().into_inner();
                Err(context.invalid(format!("a zstd level from {low} to {high}"), level.to_string()))
            }
            BytesCodec::Gzip { level } | BytesCodec::Zlib { level } if level > 9 => {
                Err(context.invalid("gzip or zlib level 0 to 9", level.to_string()))
            }
            BytesCodec::Blosc(Blosc { level, .. }) if level > 9 => {
                Err(context.invalid("blosc level 0 to 9", level.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Its name, where nothing is written with it.
    pub(super) fn only_read(self) -> Option<String> {
        let only = matches!(self, BytesCodec::Bz2 { .. } | BytesCodec::Lzma { .. } | BytesCodec::Filter(_));
        only.then(|| self.name())
    }

    /// Its name in metadata.
    pub(crate) fn name(self) -> String {
        self.to_value()["name"].as_str().unwrap_or("").to_string()
    }

    /// It as metadata name it.
    pub(super) fn to_value(self) -> Value {
        match self {
            BytesCodec::Crc32c => json!({"name": "crc32c"}),
            BytesCodec::Zstd { level, checksum } => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": checksum}})
            }
            BytesCodec::Gzip { level } => json!({"name": "gzip", "configuration": {"level": level}}),
            BytesCodec::Zlib { level } => json!({"name": "numcodecs.zlib", "configuration": {"level": level}}),
            BytesCodec::Shuffle { element_bytes } => {
                json!({"name": "numcodecs.shuffle", "configuration": {"elementsize": element_bytes}})
            }
            // zarr-python wants a configuration, though there is none.
            BytesCodec::Fletcher32 => json!({"name": "numcodecs.fletcher32", "configuration": {}}),
            BytesCodec::Lz4 => json!({"name": "numcodecs.lz4", "configuration": {}}),
            BytesCodec::Bz2 { level } => json!({"name": "numcodecs.bz2", "configuration": {"level": level}}),
            BytesCodec::Lzma { alone } => {
                json!({"name": "numcodecs.lzma", "configuration": {"format": if alone { 2 } else { 1 }}})
            }
            BytesCodec::Sum { sum, at_start } => json!({
                "name": format!("numcodecs.{}", sum.name()),
                "configuration": {"location": if at_start { "start" } else { "end" }},
            }),
            BytesCodec::Texts { .. } => json!({"name": CODEC}),
            BytesCodec::Filter(filter) => filter_value(filter),
            BytesCodec::Blosc(Blosc { compressor, level, shuffle, element_bytes, block_bytes }) => json!({
                "name": "blosc",
                "configuration": {
                    "typesize": element_bytes,
                    "cname": compressor.name(),
                    "clevel": level,
                    "shuffle": shuffle.name(),
                    "blocksize": block_bytes,
                },
            }),
        }
    }
}

fn filter_value(filter: ArrayFilter) -> Value {
    let (plain, stored) = (filter.plain.numpy(), filter.stored.numpy());
    let (name, configuration) = match filter.does {
        Filtering::Delta => ("delta", json!({"dtype": plain, "astype": stored})),
        Filtering::Scale { offset, scale } => {
            let [offset, scale] = [offset, scale].map(f64::from_bits);
            ("fixedscaleoffset", json!({"offset": offset, "scale": scale, "dtype": plain, "astype": stored}))
        }
        Filtering::Quantize { digits } => ("quantize", json!({"digits": digits, "dtype": plain, "astype": stored})),
        Filtering::Astype => ("astype", json!({"encode_dtype": stored, "decode_dtype": plain})),
        Filtering::Round { bits } => ("bitround", json!({"keepbits": bits})),
        Filtering::Pack => ("packbits", json!({})),
    };
    json!({"name": format!("numcodecs.{name}"), "configuration": configuration})
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

/// A level of gzip or zlib.
fn level(codec: &mut Named, usual: u32, context: Context) -> Result<u32, Error> {
    match codec.take("level") {
        None => Ok(usual),
        Some(value) => match value.as_u64().filter(|&level| level <= 9) {
            Some(level) => Ok(level as u32),
            None => Err(context.corrupt(format!("{} level 0 to 9", codec.name), text(&value))),
        },
    }
}

/// Bytes of an element, for shuffle; none where nothing is said.
fn element_bytes(codec: &mut Named, context: Context) -> Result<u32, Error> {
    let Some(value) = codec.take("elementsize") else { return Ok(0) };
    let fits = value.as_u64().and_then(|bytes| u32::try_from(bytes).ok());
    fits.ok_or_else(|| context.corrupt("shuffle elementsize in bytes", text(&value)))
}

fn blosc(codec: &mut Named, context: Context) -> Result<Blosc, Error> {
    let cname = codec.take("cname").unwrap_or_else(|| "lz4".into());
    let named = Compressor::ALL.into_iter().find(|one| cname.as_str() == Some(one.name()));
    let Some(compressor) = named else {
        let known = Compressor::ALL.map(Compressor::name).join(", ");
        return Err(context.unsupported(format!("blosc cname {known}"), text(&cname)));
    };
    let shuffle = codec.take("shuffle").unwrap_or_else(|| "noshuffle".into());
    let Some(shuffle) = Shuffle::ALL.into_iter().find(|one| shuffle.as_str() == Some(one.name())) else {
        return Err(context.corrupt("blosc shuffle noshuffle, shuffle or bitshuffle", text(&shuffle)));
    };
    let mut number = |key: &str, usual: u64, range: std::ops::RangeInclusive<u64>| {
        let given = codec.take(key).filter(|value| !value.is_null());
        let value = given.unwrap_or_else(|| usual.into());
        let fits = value.as_u64().filter(|number| range.contains(number));
        fits.ok_or_else(|| context.corrupt(format!("blosc {key} {range:?}"), text(&value)))
    };
    let element_bytes = number("typesize", 0, 0..=u64::from(u32::MAX))? as u32;
    let level = number("clevel", 5, 0..=9)? as u8;
    let block_bytes = number("blocksize", 0, 0..=i32::MAX as u64)? as u32;
    Ok(Blosc { compressor, level, shuffle, element_bytes, block_bytes })
}

fn refused(name: &str, context: Context) -> Error {
    let hint = match name {
        "vlen-utf8" => "it holds texts of variable length, whose data type is string",
        "vlen-bytes" => "write bytes of a fixed length, or texts",
        _ if context.asked == ASKED => "choose among the codecs that are expected",
        _ => "read it with zarr-python, and write it with codecs that are expected",
    };
    let expected = "codecs transpose, bytes, sharding_indexed, crc32c, zstd, gzip, blosc or those of numcodecs";
    context.unsupported(expected, format!("codec '{}'", excerpt(name))).with_hint(hint)
}
