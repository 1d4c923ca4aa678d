//! Fill values of elements that are no numbers: dates, texts, floats of 8 bits, structured types, plain bytes.

use super::float8;
use super::policy::ELEMENT_BYTES_MAX;
use crate::base64;
use crate::fields::{Field, FieldType, fields_of_text};
use hyperslab_layout::{ByteOrder, ElementType, Kind, NUMBER_BYTES, Opaque};
use serde_json::Value;

/// Parses the fill value of a field, in native byte order.
type Parse<'a> = &'a dyn Fn(Kind, &Value) -> Option<Vec<u8>>;

/// What elements are that nobody wrote, where nothing is said: no date, and otherwise zeros.
pub(super) fn usual(opaque: Opaque) -> Vec<u8> {
    match opaque {
        date if date.time().is_some() => i64::MIN.to_ne_bytes().to_vec(),
        text if text.is_of_any_length() => Vec::new(),
        other => vec![0; other.bytes() as usize],
    }
}

/// Parses one as Zarr writes it: of dates an integer or `"NaT"`, of floats of 8 bits as of other floats, of plain bytes and
/// fields base64. Of bytes, a list of numbers is read too, and of fields, an object with their fill values.
pub(super) fn parse_opaque(opaque: Opaque, value: &Value, number: Parse) -> Option<Vec<u8>> {
    if opaque.time().is_some() {
        let ticks = if value == "NaT" { Some(i64::MIN) } else { value.as_i64() };
        return ticks.map(|ticks| ticks.to_ne_bytes().to_vec());
    }
    if opaque.is_of_any_length() {
        return value
            .as_str()
            .filter(|text| text.len() as u64 <= ELEMENT_BYTES_MAX)
            .map(|text| text.as_bytes().to_vec());
    }
    if opaque.is_text() {
        return of_text(opaque, value);
    }
    if let Some(name) = opaque.float() {
        return float8::parse(name, value).map(|bits| vec![bits]);
    }
    let bytes = match value {
        Value::String(text) => base64::decode(text),
        Value::Array(items) => {
            items.iter().map(|item| item.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
        }
        Value::Object(_) => of_fields(&fields_of_text(opaque.fields()?).ok()?, value, number),
        _ => None,
    };
    bytes.filter(|bytes| bytes.len() == opaque.bytes() as usize)
}

/// What a user may give besides: zero for all bytes; and of dates, an object that has a number for each unit in which it is
/// a whole one, as `{"M": {"D": 1, "h": 24}}` (`m` for times).
pub(super) fn parse_other(opaque: Opaque, value: &Value) -> Option<Vec<u8>> {
    if let Some((kind, unit)) = opaque.time() {
        let numbers = value.get(&kind[..1])?;
        if let Some(number) = numbers.get(unit) {
            return number.as_i64().map(|number| number.to_ne_bytes().to_vec());
        }
        let digits = unit.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(0);
        let (count, unit) = unit.split_at(digits);
        let (count, number) = (count.parse().unwrap_or(1), numbers.get(unit)?.as_i64()?);
        return (number % count == 0).then(|| (number / count).to_ne_bytes().to_vec());
    }
    let zero = value.as_f64() == Some(0.0) && opaque.time().is_none() && opaque.float().is_none();
    zero.then(|| vec![0; opaque.bytes() as usize])
}

/// Of texts in bytes base64, of others the text itself, without the zeros that fill them up.
fn of_text(opaque: Opaque, value: &Value) -> Option<Vec<u8>> {
    let text = value.as_str()?;
    let mut bytes = match opaque.swap_bytes() {
        1 => base64::decode(text)?,
        _ => text.chars().flat_map(|character| u32::from(character).to_ne_bytes()).collect(),
    };
    (bytes.len() <= opaque.bytes() as usize).then(|| {
        bytes.resize(opaque.bytes() as usize, 0);
        bytes
    })
}

fn text_to_json(opaque: Opaque, bytes: &[u8]) -> Value {
    let used = |each: &[&[u8]]| each.iter().rposition(|one| one.iter().any(|byte| *byte != 0)).map_or(0, |at| at + 1);
    let each: Vec<&[u8]> = bytes.chunks(opaque.swap_bytes() as usize).collect();
    let each = &each[..used(&each)];
    if opaque.swap_bytes() == 1 {
        return base64::encode(&each.concat()).into();
    }
    let character = |one: &&[u8]| {
        let number = one.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    each.iter().map(character).collect::<String>().into()
}

/// The JSON of a text of variable length, which is none where nothing but zeros says where it lies.
pub(super) fn text_of(bytes: &[u8]) -> Option<Value> {
    let bytes = if *bytes == [0; NUMBER_BYTES as usize] { &[] } else { bytes };
    String::from_utf8(bytes.to_vec()).ok().map(Value::from)
}

/// The JSON of one.
pub(super) fn to_json(opaque: Opaque, bytes: &[u8]) -> Value {
    if opaque.is_text() {
        return text_to_json(opaque, bytes);
    }
    match *bytes {
        [bits] if opaque.float().is_some() => format!("{bits:#04x}").into(),
        [a, b, c, d, e, f, g, h] if opaque.time().is_some() => i64::from_ne_bytes([a, b, c, d, e, f, g, h]).into(),
        _ => base64::encode(bytes).into(),
    }
}

/// The form of one, for errors.
pub(super) fn form(opaque: Opaque) -> &'static str {
    if opaque.time().is_some() {
        "an integer, or \"NaT\""
    } else if opaque.float().is_some() {
        "a number in its range, \"NaN\" or bits as \"0x..\""
    } else if opaque.is_of_any_length() {
        "a text of at most 1 MiB"
    } else if opaque.is_text() && opaque.swap_bytes() > 1 {
        "a text that is not longer"
    } else if opaque.fields().is_some() {
        "its bytes in base64, or an object with a value for each field"
    } else {
        "its bytes in base64"
    }
}

/// The bytes of one element, of an object that has a fill value for each field.
fn of_fields(fields: &[Field], value: &Value, parse: Parse) -> Option<Vec<u8>> {
    let members = value.as_object().filter(|members| members.len() == fields.len())?;
    let each = fields.iter().map(|field| of_field(&field.holds, members.get(&field.name)?, parse));
    Some(each.collect::<Option<Vec<_>>>()?.concat())
}

fn of_field(holds: &FieldType, value: &Value, parse: Parse) -> Option<Vec<u8>> {
    let padded = |mut bytes: Vec<u8>, length: u32| {
        (bytes.len() <= length as usize).then(|| {
            bytes.resize(length as usize, 0);
            bytes
        })
    };
    match holds {
        FieldType::Element(ElementType { kind, .. }) => {
            let mut bytes = parse(*kind, value)?;
            if ByteOrder::NATIVE == ByteOrder::Big {
                bytes.chunks_mut(kind.swap_bytes() as usize).for_each(<[u8]>::reverse);
            }
            Some(bytes)
        }
        FieldType::Bytes(length) => padded(base64::decode(value.as_str()?)?, *length),
        FieldType::Characters(length, _) => {
            let characters = value.as_str()?.chars().flat_map(|character| u32::from(character).to_le_bytes());
            padded(characters.collect(), length.checked_mul(4)?)
        }
        FieldType::Fields(fields) => of_fields(fields, value, parse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Context;
    use crate::zarr::fill::{fill_from_json, fill_to_json, parse};
    use serde_json::json;

    fn kind(code: &str) -> Kind {
        ElementType::from_numpy(code).unwrap().kind
    }

    #[test]
    fn fill_values_of_all_types_come_back() {
        let context = Context::new("read", "a/zarr.json");
        let fields = kind("V17[('a', '<i4'), ('p', [('x', '<f4')]), ('s', '|S3'), ('u', '<U1'), ('b', '|V2')]");
        for (kind, value, bytes) in [
            (kind("M8[ns]"), json!(-7), (-7i64).to_ne_bytes().to_vec()),
            (kind("m8[s]"), json!(i64::MIN), i64::MIN.to_ne_bytes().to_vec()),
            (kind("V5"), json!("YWJjZGU="), b"abcde".to_vec()),
            (kind("S5"), json!("YWI="), b"ab\0\0\0".to_vec()),
            (kind("U2"), json!("é"), [233u32, 0].iter().flat_map(|one| one.to_ne_bytes()).collect()),
            (kind("float8_e4m3fn"), json!("0x38"), vec![0x38]),
            (fields, json!("AQAAAAAAgD94AAAAAGEAAAA="), b"\x01\0\0\0\0\0\x80\x3fx\0\0\0\0a\0\0\0".to_vec()),
        ] {
            assert_eq!(parse(kind, &value, context).unwrap(), bytes, "{kind}");
            assert_eq!(fill_to_json(kind, &bytes), Some(value));
            assert_eq!(fill_to_json(kind, &bytes[1..]), None);
        }
        assert_eq!(parse(kind("M8[s]"), &json!("NaT"), context).unwrap(), i64::MIN.to_ne_bytes());
        assert_eq!(parse(kind("V2"), &json!([1, 255]), context).unwrap(), [1, 255]);
        assert_eq!(fill_from_json(fields, &json!(0), "a").unwrap(), [0; 17]);
        let day = json!({"M": {"D": 1, "h": 24, "s": 86400}});
        for (unit, number) in [("D", 1), ("h", 24), ("8h", 3), ("10s", 8640)] {
            let of = kind(&format!("M8[{unit}]"));
            assert_eq!(fill_from_json(of, &day, "a").unwrap(), i64::to_ne_bytes(number));
        }
        assert!(
            fill_from_json(kind("M8[7h]"), &day, "a").is_err() && fill_from_json(kind("m8[h]"), &day, "a").is_err()
        );
        let object = json!({"a": 1, "p": {"x": 1.0}, "s": "eA==", "u": "a", "b": "AAA="});
        assert_eq!(parse(fields, &object, context).unwrap(), b"\x01\0\0\0\0\0\x80\x3fx\0\0a\0\0\0\0\0");
    }

    #[test]
    fn others_are_refused() {
        let fields = kind("V5[('a', '<i4'), ('s', '|S1')]");
        for (kind, value) in [
            (kind("M8[ns]"), json!(1.5)),
            (kind("M8[ns]"), json!("2020-01-01")),
            (kind("V5"), json!("YWJj")),
            (kind("S2"), json!("YWJj")),
            (kind("U2"), json!("abc")),
            (kind("V2"), json!([1, 256])),
            (kind("V2"), json!({"a": 1})),
            (kind("V2"), json!(1)),
            (fields, json!({"a": 1})),
            (fields, json!({"a": 1, "s": "eHg="})),
            (fields, json!({"a": 1.5, "s": "eA=="})),
        ] {
            let error = fill_from_json(kind, &value, "a").unwrap_err().to_string();
            assert!(error.contains("fill value"), "{error}");
        }
    }

    #[test]
    fn no_date_is_what_zarr_python_takes_where_nothing_is_said() {
        assert_eq!(usual(Opaque::from_code("M8[ns]").unwrap()), i64::MIN.to_ne_bytes());
        assert_eq!(usual(Opaque::plain(3)), [0; 3]);
    }
}
