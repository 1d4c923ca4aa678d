//! Codecs of numcodecs in metadata: those of v2, such as `{"id": "lz4", "acceleration": 1}`, and in v3 the same with a prefix:
//! `{"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}`. See <https://numcodecs.readthedocs.io/>.

use super::blosc::{Blosc, Compressor, Shuffle};
use super::bytes_codec::BytesCodec;
use super::filters::{ArrayFilter, FilterNumber, Filtering};
use super::json::{Named, text};
use super::packed::ChecksumKind;
use crate::error::{Context, Error, excerpt};
use hyperslab_layout::Kind;
use serde_json::Value;

/// What names of these begin with in v3.
pub(super) const PREFIX: &str = "numcodecs.";

/// The codec that is given, with or without the prefix, of elements of this kind.
pub(super) fn parse(given: &mut Named, kind: Kind, context: Context) -> Result<BytesCodec, Error> {
    let name = given.name.strip_prefix(PREFIX).unwrap_or(&given.name).to_owned();
    let element_bytes = kind.bytes() as u32;
    Ok(match name.as_str() {
        "gzip" => BytesCodec::Gzip { level: level(given, context)? },
        "zlib" => BytesCodec::Zlib { level: level(given, context)? },
        "zstd" => {
            let level = i32::try_from(integer(given, "level", 0, context)?).unwrap_or(i32::MAX);
            let checksum = given.take("checksum").and_then(|checksum| checksum.as_bool()).unwrap_or(false);
            BytesCodec::Zstd { level, checksum }
        }
        "blosc" => BytesCodec::Blosc(blosc(given, kind, context)?),
        "lz4" => {
            given.take("acceleration");
            BytesCodec::Lz4
        }
        "bz2" => BytesCodec::Bz2 { level: integer(given, "level", 1, context)?.clamp(1, 9) as u32 },
        "lzma" => lzma(given, context)?,
        "shuffle" => {
            let bytes = integer(given, "elementsize", 4, context)?;
            let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            BytesCodec::Shuffle { element_bytes: bytes.unwrap_or(element_bytes) }
        }
        "fletcher32" => BytesCodec::Fletcher32,
        "crc32" => checksum(ChecksumKind::Crc32, true, given, context)?,
        "adler32" => checksum(ChecksumKind::Adler32, true, given, context)?,
        "crc32c" => checksum(ChecksumKind::Crc32c, false, given, context)?,
        other => match filter(other, given, kind, context)? {
            Some(filter) => BytesCodec::Filter(filter),
            None => return Err(unknown(other, context)),
        },
    })
}

/// Whether a codec in metadata of v3 is a filter, which stands before the codec that makes bytes.
pub(super) fn is_filter(name: &str) -> bool {
    let name = name.strip_prefix(PREFIX);
    name.is_some_and(|name| ["delta", "fixedscaleoffset", "quantize", "astype", "bitround", "packbits"].contains(&name))
}

fn unknown(name: &str, context: Context) -> Error {
    let expected = "blosc, gzip, zlib, zstd, lz4, bz2, lzma, shuffle, fletcher32, crc32, crc32c, adler32, delta, \
                    fixedscaleoffset, quantize, astype, bitround or packbits";
    let error = context.unsupported(expected, format!("codec '{}'", excerpt(name)));
    error.with_hint("read it with zarr-python, and write it with codecs that are expected")
}

fn integer(given: &mut Named, key: &str, usual: i64, context: Context) -> Result<i64, Error> {
    match given.take(key) {
        None | Some(Value::Null) => Ok(usual),
        Some(value) => value.as_i64().ok_or_else(|| context.corrupt(format!("{key} of a compressor"), text(&value))),
    }
}

/// A level of gzip or zlib.
fn level(given: &mut Named, context: Context) -> Result<u32, Error> {
    match integer(given, "level", 1, context)? {
        level @ 0..=9 => Ok(level as u32),
        // As zlib itself chooses.
        -1 => Ok(6),
        other => Err(context.corrupt("level 0 to 9", other.to_string())),
    }
}

fn lzma(given: &mut Named, context: Context) -> Result<BytesCodec, Error> {
    // What encoders need, and streams say.
    for key in ["check", "preset", "filters"] {
        given.take(key);
    }
    match integer(given, "format", 1, context)? {
        1 => Ok(BytesCodec::Lzma { alone: false }),
        2 => Ok(BytesCodec::Lzma { alone: true }),
        other => {
            let error = context.unsupported("lzma of format 1 (xz) or 2 (alone)", format!("format {other}"));
            Err(error.with_hint("read it with zarr-python, and write it in one of these formats"))
        }
    }
}

fn checksum(sum: ChecksumKind, usual: bool, given: &mut Named, context: Context) -> Result<BytesCodec, Error> {
    let at_start = match given.take("location") {
        None | Some(Value::Null) => usual,
        Some(at) if at == "start" => true,
        Some(at) if at == "end" => false,
        Some(other) => return Err(context.corrupt("location \"start\" or \"end\" of a checksum", text(&other))),
    };
    Ok(if sum == ChecksumKind::Crc32c && !at_start { BytesCodec::Crc32c } else { BytesCodec::Sum { sum, at_start } })
}

fn filter(name: &str, given: &mut Named, kind: Kind, context: Context) -> Result<Option<ArrayFilter>, Error> {
    let number = |value: Option<Value>| match value.as_ref().and_then(Value::as_str) {
        Some(code) => FilterNumber::of_numpy(code).ok_or_else(|| {
            context.unsupported(format!("{name} of integers, truth values or floats"), format!("'{}'", excerpt(code)))
        }),
        None => Err(context.corrupt(format!("the dtype of {name}"), value.as_ref().map_or("none".into(), text))),
    };
    let of_array = |does| {
        let own = FilterNumber::of_numpy(kind.name());
        let own = own.ok_or_else(|| context.unsupported(format!("{name} of numbers"), kind.to_string()))?;
        Ok(Some(ArrayFilter { does, stored: own, plain: own }))
    };
    let does = match name {
        "delta" => Filtering::Delta,
        "fixedscaleoffset" => {
            let mut bits = |key: &str| {
                let value = given.take(key).unwrap_or_default();
                let number = value.as_f64().filter(|number| number.is_finite());
                let number = number.ok_or_else(|| context.corrupt(format!("{key} of {name}"), text(&value)));
                number.map(f64::to_bits)
            };
            Filtering::Scale { offset: bits("offset")?, scale: bits("scale")? }
        }
        "quantize" => {
            let digits = integer(given, "digits", 0, context)?;
            Filtering::Quantize { digits: digits.clamp(i32::MIN.into(), i32::MAX.into()) as i32 }
        }
        "astype" => {
            let (stored, plain) = (number(given.take("encode_dtype"))?, number(given.take("decode_dtype"))?);
            return Ok(Some(ArrayFilter { does: Filtering::Astype, stored, plain }));
        }
        "bitround" => {
            let bits = integer(given, "keepbits", 0, context)?.clamp(0, u32::MAX.into()) as u32;
            return of_array(Filtering::Round { bits });
        }
        "packbits" => {
            let (stored, plain) = (FilterNumber::of_numpy("|u1"), FilterNumber::of_numpy("|b1"));
            let made = stored.zip(plain).map(|(stored, plain)| ArrayFilter { does: Filtering::Pack, stored, plain });
            return Ok(made.filter(|_| kind == Kind::Bool));
        }
        _ => return Ok(None),
    };
    let plain = number(given.take("dtype"))?;
    let stored = match given.take("astype") {
        None | Some(Value::Null) => plain,
        other => number(other)?,
    };
    Ok(Some(ArrayFilter { does, stored, plain }))
}

fn blosc(given: &mut Named, kind: Kind, context: Context) -> Result<Blosc, Error> {
    let cname = given.take("cname").unwrap_or_else(|| "lz4".into());
    let cname = cname.as_str().unwrap_or("");
    let Some(named) = Compressor::ALL.into_iter().find(|one| one.name() == cname) else {
        return Err(
            context.unsupported("blosc cname blosclz, lz4, lz4hc, zlib or zstd", format!("'{}'", excerpt(cname)))
        );
    };
    let shuffle = match integer(given, "shuffle", 1, context)? {
        0 => Shuffle::No,
        2 => Shuffle::Bits,
        // By the size of elements: bits for those of one byte.
        -1 if kind.bytes() == 1 => Shuffle::Bits,
        _ => Shuffle::Bytes,
    };
    let level = integer(given, "clevel", 5, context)?;
    let level = u8::try_from(level).ok().filter(|&level| level <= 9);
    let level = level.ok_or_else(|| context.corrupt("blosc clevel 0 to 9", "another"))?;
    let block_bytes = u32::try_from(integer(given, "blocksize", 0, context)?).unwrap_or(0);
    given.take("typesize");
    Ok(Blosc { compressor: named, level, shuffle, element_bytes: kind.bytes() as u32, block_bytes })
}
