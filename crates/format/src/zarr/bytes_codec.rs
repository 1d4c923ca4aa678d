//! Codecs from bytes to bytes in metadata.

use super::json::{Named, text};
use crate::error::{Context, Error, excerpt};
use serde_json::{Value, json};

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

/// Names of codecs that follow each other in any order.
pub(super) const NAMES: [&str; 3] = ["crc32c", "zstd", "gzip"];

impl BytesCodec {
    /// The codec that metadata name.
    pub(super) fn parse(codec: &mut Named, context: Context) -> Result<BytesCodec, Error> {
        match codec.name.as_str() {
            "crc32c" => Ok(BytesCodec::Crc32c),
            "zstd" => zstd(codec, context),
            "gzip" => gzip(codec, context),
            other => Err(refused(other, context)),
        }
    }

    /// Refuses levels out of range, which a caller may have set.
    pub(super) fn check(self, context: Context) -> Result<(), Error> {
        match self {
            BytesCodec::Zstd { level, .. } if !zstd_levels().contains(&level.into()) => {
                let (low, high) = zstd_levels().into_inner();
                Err(context.invalid(format!("zstd level {low} to {high}"), level.to_string()))
            }
            BytesCodec::Gzip { level } if level > 9 => Err(context.invalid("gzip level 0 to 9", level.to_string())),
            _ => Ok(()),
        }
    }

    /// It as metadata name it.
    pub(super) fn to_value(self) -> Value {
        match self {
            BytesCodec::Crc32c => json!({"name": "crc32c"}),
            BytesCodec::Zstd { level, checksum } => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": checksum}})
            }
            BytesCodec::Gzip { level } => json!({"name": "gzip", "configuration": {"level": level}}),
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
        "blosc" | "numcodecs.blosc" => "write the array with zstd or gzip instead of blosc",
        "vlen-utf8" | "vlen-bytes" => "strings are not supported: store numbers",
        _ => "write the array with `bytes` and any of `transpose`, `crc32c`, `zstd` and `gzip`",
    };
    let expected = "codecs `transpose`, `bytes`, `crc32c`, `zstd` or `gzip`";
    context.unsupported(expected, format!("codec `{}`", excerpt(name))).with_hint(hint)
}
