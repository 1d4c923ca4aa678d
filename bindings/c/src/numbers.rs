//! Values of attributes as C has them: numbers, texts, or what is neither.
#![forbid(unsafe_code)]

use crate::foreign::number_of;
use hyperslab::{AttributeValue, Attributes, Elements, Error, Kind, ValueType};

/// The number of texts in the header, and that of what has no type there.
const TEXT: i32 = 17;
const OTHER: i32 = 18;

/// The value of an attribute, as C asks for it.
pub(crate) fn value<'a>(attributes: &'a Attributes, name: &str) -> Result<&'a AttributeValue, Error> {
    attributes.get(name).ok_or_else(|| Error::not_found(format!("there is no attribute '{name}'")))
}

/// The number of its type in the header, and its shape.
pub(crate) fn type_of(value: &AttributeValue) -> (i32, Vec<u64>) {
    if let Some((shape, _)) = value.to_texts() {
        return (TEXT, shape);
    }
    match value.to_elements() {
        Some(Elements {
            of: ValueType::Element(element) | ValueType::Enumeration(element, _),
            shape: Some(shape),
            ..
        }) => (number_of(element), shape),
        _ => (OTHER, Vec::new()),
    }
}

/// Its numbers in the bytes of a kind, of which there must be so many.
pub(crate) fn numbers(value: &AttributeValue, name: &str, kind: Kind, count: u64) -> Result<Vec<u8>, Error> {
    let unfit = || Error::invalid(format!("attribute '{name}' is no {}, or not all of it is", kind.name()));
    let elements = value.to_elements_of(kind).ok_or_else(unfit)?;
    let found = elements.bytes.len() as u64 / kind.bytes();
    if found != count {
        return Err(Error::invalid(format!("attribute '{name}' has {found} values, and {count} are asked for")));
    }
    Ok(elements.bytes)
}

/// One of its texts; of what has no type here, JSON, or what it is.
pub(crate) fn text(value: &AttributeValue, name: &str, number: i64) -> Result<Vec<u8>, Error> {
    let texts = match value {
        AttributeValue::Kept(kept) => vec![kept.what.clone().into_bytes()],
        AttributeValue::Plain(plain) if type_of(value).0 == OTHER => vec![plain.to_string().into_bytes()],
        value => value.to_texts().ok_or_else(|| Error::invalid(format!("attribute '{name}' is no text")))?.1,
    };
    let found = usize::try_from(number).ok().and_then(|number| texts.get(number).cloned());
    found.ok_or_else(|| Error::invalid(format!("attribute '{name}' has {} texts, and no number {number}", texts.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab::Value;

    fn plain(json: &str) -> AttributeValue {
        AttributeValue::Plain(json.parse::<Value>().unwrap())
    }

    #[test]
    fn plain_values_are_numbers_texts_or_neither() {
        for (json, kind, shape) in [
            ("1", 5, vec![]),
            ("[1, -2]", 5, vec![2]),
            ("18446744073709551615", 9, vec![]),
            ("[[1, 2.5], [3, 4]]", 13, vec![2, 2]),
            ("[true]", 1, vec![1]),
            ("\"m\"", 17, vec![]),
            ("[\"a\", \"b\"]", 17, vec![2]),
            ("{\"a\": 1}", 18, vec![]),
            ("[[1], [2, 3]]", 18, vec![]),
            ("null", 18, vec![]),
        ] {
            assert_eq!(type_of(&plain(json)), (kind, shape), "{json}");
        }
        assert_eq!(text(&plain("[\"a\", \"bc\"]"), "x", 1).unwrap(), b"bc");
        assert_eq!(text(&plain("{\"a\":1}"), "x", 0).unwrap(), br#"{"a":1}"#);
        assert!(text(&plain("\"a\""), "x", 1).unwrap_err().is_invalid());
    }

    #[test]
    fn numbers_become_others_that_have_their_values() {
        let three = plain("[1, 2, 3]");
        assert_eq!(numbers(&three, "x", Kind::Int16, 3).unwrap(), [1_i16, 2, 3].map(i16::to_ne_bytes).concat());
        assert_eq!(numbers(&three, "x", Kind::Float32, 3).unwrap(), [1_f32, 2.0, 3.0].map(f32::to_ne_bytes).concat());
        for (json, kind, count) in
            [("300", Kind::Int8, 1), ("-1", Kind::UInt64, 1), ("1.5", Kind::Int32, 1), ("1", Kind::Int32, 2)]
        {
            assert!(numbers(&plain(json), "x", kind, count).unwrap_err().is_invalid(), "{json}");
        }
        let single = Elements::one(hyperslab::ElementType::native(Kind::Float32), &0.5_f32.to_ne_bytes());
        assert_eq!(numbers(&AttributeValue::Elements(single), "x", Kind::Float64, 1).unwrap(), 0.5_f64.to_ne_bytes());
    }
}
