//! Fill values: the value of elements that nobody wrote, in JSON and in memory.

use super::fill_opaque;
use super::json::text;
use super::text_type::is_texts;
use crate::error::{Context, Error};
use half::{bf16, f16};
use hyperslab_layout::{ByteOrder, Kind};
use serde_json::{Number, Value};

/// The fill value where nothing is said, zero (false) or no date: native-endian bytes of one element.
pub fn fill_usual(kind: Kind) -> Vec<u8> {
    match kind {
        Kind::Opaque(opaque) => fill_opaque::usual(opaque),
        number => vec![0; number.bytes() as usize],
    }
}

/// The fill value that a user gives, who may give one to arrays of several kinds; the result is one element in native
/// byte order. `name` is the name of the object in errors.
///
/// It may be written as Zarr writes it for that kind (see [`super::ArrayMetadata`]), or as any other number of the same
/// value: one without an imaginary part is a complex number and the other way round, one without a fraction is an
/// integer, and 0 and 1 are false and true.
pub fn fill_from_json(kind: Kind, value: &Value, name: &str) -> Result<Vec<u8>, Error> {
    let parsed = parse(kind, value, Context::new("use the fill value of", name));
    parsed.or_else(|error| parse_other(kind, value).ok_or(error))
}

/// The JSON of a fill value given as one element in native byte order, or `None` when `bytes` are not one element
/// (for bool: a byte other than 0 and 1).
pub fn fill_to_json(kind: Kind, bytes: &[u8]) -> Option<Value> {
    if is_texts(kind) {
        return fill_opaque::text_of(bytes);
    }
    if bytes.len() as u64 != kind.bytes() {
        return None;
    }
    match kind {
        Kind::Opaque(opaque) => Some(fill_opaque::to_json(opaque, bytes)),
        Kind::Bool => match bytes[0] {
            0 => Some(false.into()),
            1 => Some(true.into()),
            _ => None,
        },
        Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64 => Some(float_to_value(kind, bytes)),
        Kind::Complex64 | Kind::Complex128 => {
            let (real, imaginary) = bytes.split_at(bytes.len() / 2);
            Some(Value::Array(vec![float_to_value(part(kind), real), float_to_value(part(kind), imaginary)]))
        }
        Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => Some(bits_of(bytes).into()),
        Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => {
            let unused = 64 - 8 * bytes.len() as u32;
            Some((((bits_of(bytes) << unused) as i64) >> unused).into())
        }
    }
}

/// Parses the fill value of stored metadata: as Zarr writes it, or as other programs have written and read it, so numbers in
/// quotes, integers as `0.0`, truth values, and numbers beyond a float's range, which are infinite.
pub(super) fn parse_stored(kind: Kind, value: &Value, context: Context) -> Result<Vec<u8>, Error> {
    parse(kind, value, context).or_else(|error| lenient(kind, value).ok_or(error))
}

fn lenient(kind: Kind, value: &Value) -> Option<Vec<u8>> {
    if let (Kind::Complex64 | Kind::Complex128, Some([real, imaginary])) = (kind, value.as_array().map(Vec::as_slice)) {
        return Some([lenient(part(kind), real)?, lenient(part(kind), imaginary)?].concat());
    }
    let is_float = matches!(kind, Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64);
    let number = |value: &Value| match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    match value {
        // As zarr-python shows such a number.
        Value::Number(number) if is_texts(kind) => Some(number.to_string().into_bytes()),
        _ if is_float && value.as_bool().is_none() => match number(value)? {
            finite if finite.is_finite() => {
                let word = if finite > 0.0 { "Infinity" } else { "-Infinity" };
                parse_float(kind, &finite.into()).or_else(|| parse_float(kind, &word.into()))
            }
            nan if nan.is_nan() => parse_float(kind, &"NaN".into()),
            infinite => parse_float(kind, &if infinite > 0.0 { "Infinity" } else { "-Infinity" }.into()),
        },
        Value::String(text) if kind.is_integer() => in_range(kind, text.trim().parse().ok()?),
        other => parse_other(kind, other),
    }
}

/// Parses a number that is written as one of another kind.
fn parse_other(kind: Kind, value: &Value) -> Option<Vec<u8>> {
    let zero = |value: &Value| value.as_f64() == Some(0.0);
    let value = match value.as_array().map(Vec::as_slice) {
        Some([real, imaginary]) if !kind.is_complex() && zero(imaginary) => real.clone(),
        Some(_) => return None,
        None => value.clone(),
    };
    let value = value.as_bool().map_or(value, |truth| Value::from(u8::from(truth)));
    match kind {
        Kind::Opaque(opaque) => fill_opaque::parse_other(opaque, &value),
        Kind::Bool => match value.as_f64()? {
            0.0 => Some(vec![0]),
            1.0 => Some(vec![1]),
            _ => None,
        },
        Kind::Complex64 | Kind::Complex128 => {
            Some([parse_float(part(kind), &value)?, parse_float(part(kind), &Value::from(0))?].concat())
        }
        Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64 => parse_float(kind, &value),
        _ => parse_integer(kind, &value).or_else(|| {
            let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
            in_range(kind, number as i128)
        }),
    }
}

/// Parses a fill value as Zarr writes it; the result is one element in native byte order.
///
/// Integers are exact over the whole range of their kind. Floats are numbers, `"NaN"`, `"Infinity"`, `"-Infinity"` or
/// their bits as `"0x7fc00000"`; complex numbers are lists of two such.
pub(super) fn parse(kind: Kind, value: &Value, context: Context) -> Result<Vec<u8>, Error> {
    let parsed = match kind {
        Kind::Opaque(opaque) => {
            fill_opaque::parse_opaque(opaque, value, &|kind, value| parse(kind, value, context).ok())
        }
        Kind::Bool => value.as_bool().map(|value| vec![value.into()]),
        Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64 => parse_float(kind, value),
        Kind::Complex64 | Kind::Complex128 => match value.as_array().map(Vec::as_slice) {
            Some([real, imaginary]) => parse_float(part(kind), real)
                .zip(parse_float(part(kind), imaginary))
                .map(|(real, imaginary)| [real, imaginary].concat()),
            _ => None,
        },
        _ => parse_integer(kind, value),
    };
    parsed.ok_or_else(|| {
        let form = match kind {
            Kind::Opaque(opaque) => fill_opaque::form(opaque),
            Kind::Bool => "true or false",
            Kind::Complex64 | Kind::Complex128 => {
                "a list of two numbers, \"NaN\", \"Infinity\", \"-Infinity\" or bits as \"0x...\""
            }
            Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64 => {
                "a number in its range, \"NaN\", \"Infinity\", \"-Infinity\" or bits as \"0x...\""
            }
            _ => "an integer in its range",
        };
        context.corrupt(format!("a fill value of {kind}: {form}"), text(value))
    })
}

fn parse_integer(kind: Kind, value: &Value) -> Option<Vec<u8>> {
    in_range(kind, value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))?)
}

/// An integer of a kind, if it has this value.
fn in_range(kind: Kind, number: i128) -> Option<Vec<u8>> {
    let bits = 8 * kind.bytes() as u32;
    let range = match kind {
        Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => 0..1_i128 << bits,
        _ => -1_i128 << (bits - 1)..1_i128 << (bits - 1),
    };
    range.contains(&number).then(|| native_bytes(number as u64, kind.bytes()))
}

/// The kind of the two parts of a complex number.
fn part(complex: Kind) -> Kind {
    if complex == Kind::Complex64 { Kind::Float32 } else { Kind::Float64 }
}

/// Parses a float.
fn parse_float(kind: Kind, value: &Value) -> Option<Vec<u8>> {
    let width = kind.bytes();
    let number = match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite())?,
        Value::String(word) => match word.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            bits => {
                let digits = bits.strip_prefix("0x").filter(|digits| digits.len() as u64 == 2 * width)?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                return Some(native_bytes(u64::from_str_radix(digits, 16).ok()?, width));
            }
        },
        _ => return None,
    };
    let (bits, narrowed) = match kind {
        Kind::Float16 if number.is_nan() => (f16::NAN.to_bits().into(), number),
        Kind::Float16 => (f16::from_f64(number).to_bits().into(), f16::from_f64(number).into()),
        Kind::BFloat16 if number.is_nan() => (bf16::NAN.to_bits().into(), number),
        Kind::BFloat16 => (nearest_bf16(number).to_bits().into(), nearest_bf16(number).into()),
        Kind::Float32 if number.is_nan() => (f32::NAN.to_bits().into(), number),
        Kind::Float32 => ((number as f32).to_bits().into(), f64::from(number as f32)),
        _ => (number.to_bits(), number),
    };
    (number.is_nan() || number.is_infinite() == narrowed.is_infinite()).then(|| native_bytes(bits, width))
}

/// Rounds once, ties to even. The crate half looks at the upper half of a double only, so what the lower one holds is
/// told by the last bit of the upper one, far below the bits that are kept.
fn nearest_bf16(number: f64) -> bf16 {
    let (upper, lower) = (number.to_bits() >> 32, number.to_bits() as u32);
    bf16::from_f64(f64::from_bits((upper | u64::from(lower != 0)) << 32))
}

/// A float as the number that reads back to the same bits, a word, or its bits (other NaNs).
fn float_to_value(kind: Kind, bytes: &[u8]) -> Value {
    let bits = bits_of(bytes);
    let (number, nan) = match kind {
        Kind::Float16 => (f64::from(f16::from_bits(bits as u16)), f16::NAN.to_bits().into()),
        Kind::BFloat16 => (f64::from(bf16::from_bits(bits as u16)), bf16::NAN.to_bits().into()),
        Kind::Float32 => (f64::from(f32::from_bits(bits as u32)), f32::NAN.to_bits().into()),
        _ => (f64::from_bits(bits), f64::NAN.to_bits()),
    };
    match Number::from_f64(number) {
        Some(number) => Value::Number(number),
        None if number == f64::INFINITY => "Infinity".into(),
        None if number == f64::NEG_INFINITY => "-Infinity".into(),
        None if bits == nan => "NaN".into(),
        None => format!("0x{bits:0digits$x}", digits = 2 * bytes.len()).into(),
    }
}

/// The lowest `width` bytes of `bits`, in native order.
fn native_bytes(bits: u64, width: u64) -> Vec<u8> {
    let mut bytes = bits.to_le_bytes()[..width as usize].to_vec();
    if ByteOrder::NATIVE == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

/// At most 8 native-endian bytes as the lowest bits of a number.
fn bits_of(bytes: &[u8]) -> u64 {
    let fold = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
    match ByteOrder::NATIVE {
        ByteOrder::Little => bytes.iter().rev().fold(0, fold),
        ByteOrder::Big => bytes.iter().fold(0, fold),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fill(kind: Kind, value: Value) -> Result<Vec<u8>, Error> {
        let strictly = parse(kind, &value, Context::new("read", "a/zarr.json"));
        if strictly.is_ok() {
            assert_eq!(fill_from_json(kind, &value, "a"), strictly);
        }
        strictly
    }

    /// Parses a document, so that numbers keep their digits.
    fn number(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn integers_are_exact_to_their_limits() {
        assert_eq!(fill(Kind::Int64, json!(i64::MIN)).unwrap(), i64::MIN.to_ne_bytes());
        assert_eq!(fill(Kind::Int64, json!(i64::MAX)).unwrap(), i64::MAX.to_ne_bytes());
        assert_eq!(fill(Kind::UInt64, json!(u64::MAX)).unwrap(), u64::MAX.to_ne_bytes());
        assert_eq!(fill(Kind::UInt64, json!((1_u64 << 53) + 1)).unwrap(), ((1_u64 << 53) + 1).to_ne_bytes());
        assert_eq!(fill(Kind::Int8, json!(-128)).unwrap(), [0x80]);
        assert_eq!(fill(Kind::Int16, json!(-2)).unwrap(), (-2_i16).to_ne_bytes());
        for (kind, text) in [
            (Kind::Int8, "128"),
            (Kind::Int8, "-129"),
            (Kind::UInt8, "-1"),
            (Kind::UInt8, "256"),
            (Kind::UInt64, "18446744073709551616"),
            (Kind::Int64, "-9223372036854775809"),
            (Kind::Int32, "1.5"),
        ] {
            let error = fill(kind, number(text)).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
            assert!(error.contains(kind.name()), "{error}");
        }
    }

    #[test]
    fn floats_have_words_and_bits() {
        assert_eq!(fill(Kind::Float32, json!("NaN")).unwrap(), 0x7fc0_0000_u32.to_ne_bytes());
        assert_eq!(fill(Kind::Float16, json!("NaN")).unwrap(), 0x7e00_u16.to_ne_bytes());
        assert_eq!(fill(Kind::Float32, json!("0x7fc00001")).unwrap(), 0x7fc0_0001_u32.to_ne_bytes());
        assert_eq!(fill(Kind::Float64, json!("-Infinity")).unwrap(), f64::NEG_INFINITY.to_ne_bytes());
        assert_eq!(fill(Kind::BFloat16, json!("NaN")).unwrap(), 0x7fc0_u16.to_ne_bytes());
        assert_eq!(fill(Kind::BFloat16, json!("-Infinity")).unwrap(), 0xff80_u16.to_ne_bytes());
        assert_eq!(fill(Kind::BFloat16, json!("0x7fc1")).unwrap(), 0x7fc1_u16.to_ne_bytes());
        assert_eq!(fill(Kind::BFloat16, json!(1.00390625)).unwrap(), 0x3f80_u16.to_ne_bytes());
        assert_eq!(fill(Kind::BFloat16, number("1.0039062500000002")).unwrap(), 0x3f81_u16.to_ne_bytes());
        assert_eq!(fill(Kind::Float16, json!(0.1)).unwrap(), 0x2e66_u16.to_ne_bytes());
        assert_eq!(fill(Kind::Float32, json!(7)).unwrap(), 7.0_f32.to_ne_bytes());
        assert_eq!(fill(Kind::Float64, number("-0.0")).unwrap(), (-0.0_f64).to_ne_bytes());
        let complex = [1.5_f32.to_ne_bytes(), f32::INFINITY.to_ne_bytes()].concat();
        assert_eq!(fill(Kind::Complex64, json!([1.5, "Infinity"])).unwrap(), complex);
        for (kind, text) in [
            (Kind::Float32, "1e39"),
            (Kind::Float16, "65520"),
            (Kind::BFloat16, "3.4e38"),
            (Kind::BFloat16, "\"0x7fc00000\""),
            (Kind::Float64, "1e400"),
            (Kind::Float32, "\"0x7fc0\""),
            (Kind::Float32, "\"0x+fc00000\""),
            (Kind::Float32, "\"nan\""),
            (Kind::Float32, "null"),
            (Kind::Complex64, "1.0"),
            (Kind::Complex64, "[1.0]"),
            (Kind::Bool, "0"),
        ] {
            assert!(fill(kind, number(text)).is_err(), "{kind} {text}");
        }
    }

    /// One value, however it is written, is the same element of all kinds that can hold it.
    #[test]
    fn one_value_fits_arrays_of_all_kinds() {
        let real = |kind: Kind, value: f64| {
            let full = match kind {
                Kind::Complex64 => return [(value as f32).to_ne_bytes(), 0f32.to_ne_bytes()].concat(),
                Kind::Complex128 => return [value.to_ne_bytes(), 0f64.to_ne_bytes()].concat(),
                Kind::Float16 => f16::from_f64(value).to_bits().into(),
                Kind::BFloat16 => bf16::from_f64(value).to_bits().into(),
                Kind::Float32 => (value as f32).to_bits().into(),
                Kind::Float64 => value.to_bits(),
                _ => value as i64 as u64,
            };
            native_bytes(full, kind.bytes())
        };
        for (value, texts) in [
            (0.0f64, vec!["0", "0.0", "[0, 0]", "[0.0, 0.0]", "false"]),
            (1.0, vec!["1", "1.0", "1e0", "[1, 0]", "[1.0, 0.0]", "true"]),
            (100.0, vec!["100", "1e2", "[100.0, 0]"]),
            (-3.0, vec!["-3", "-3.0", "[-3, 0]"]),
            (0.5, vec!["0.5", "[0.5, 0.0]", "5e-1"]),
            (1e30, vec!["1e30", "1000000000000000000000000000000"]),
        ] {
            for (kind, text) in Kind::ALL.into_iter().flat_map(|kind| texts.iter().map(move |&text| (kind, text))) {
                let unsigned = (Kind::UInt8..=Kind::UInt64).contains(&kind);
                let fits = match kind {
                    Kind::Bool => value == 0.0 || value == 1.0,
                    Kind::Float16 => value < 65504.0,
                    kind if kind.is_integer() => value.fract() == 0.0 && value < 128.0 && !(unsigned && value < 0.0),
                    _ => true,
                };
                let found = fill_from_json(kind, &number(text), "rho").ok();
                assert_eq!(found, fits.then(|| real(kind, value)), "{kind} {text}");
            }
        }
    }

    #[test]
    fn what_a_kind_cannot_hold_is_refused() {
        for (kind, text) in [
            (Kind::Float64, "[0.0,1.0]"),
            (Kind::Int8, "[1.0,\"NaN\"]"),
            (Kind::UInt8, "256.0"),
            (Kind::UInt64, "1.8446744073709552e19"),
            (Kind::Int64, "-1e19"),
            (Kind::Int32, "\"NaN\""),
            (Kind::Int32, "\"Infinity\""),
            (Kind::Bool, "2"),
            (Kind::Bool, "\"NaN\""),
            (Kind::Complex64, "1e39"),
            (Kind::Complex64, "[1.0]"),
            (Kind::Complex64, "null"),
            (Kind::Float32, "\"\""),
            (Kind::Float32, "{}"),
        ] {
            let error = fill_from_json(kind, &number(text), "rho").unwrap_err().to_string();
            assert!(error.contains("'rho'") && error.ends_with(&format!("found {}", number(text))), "{error}");
        }
        let nan = [f32::NAN.to_ne_bytes(), 0f32.to_ne_bytes()].concat();
        assert_eq!(fill_from_json(Kind::Complex64, &json!("NaN"), "rho").unwrap(), nan);
    }

    #[test]
    fn every_bit_pattern_round_trips() {
        let mut random = fastrand::Rng::with_seed(11);
        for kind in Kind::ALL {
            for _ in 0..2000 {
                let mut bytes = fill_usual(kind);
                bytes.iter_mut().for_each(|byte| *byte = random.u8(..));
                if kind == Kind::Bool {
                    bytes[0] &= 1;
                }
                let text = fill_to_json(kind, &bytes).unwrap().to_string();
                assert_eq!(fill(kind, number(&text)).unwrap(), bytes, "{kind} {text}");
            }
        }
        for (kind, bits) in (0..=u16::MAX).flat_map(|bits| [(Kind::Float16, bits), (Kind::BFloat16, bits)]) {
            let text = fill_to_json(kind, &bits.to_ne_bytes()).unwrap().to_string();
            assert_eq!(fill(kind, number(&text)).unwrap(), bits.to_ne_bytes(), "{kind} {text}");
        }
    }

    #[test]
    fn wrong_sizes_have_no_json() {
        assert_eq!(fill_to_json(Kind::Float64, &[0; 4]), None);
        assert_eq!(fill_to_json(Kind::Bool, &[2]), None);
    }
}
