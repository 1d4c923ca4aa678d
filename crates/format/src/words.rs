//! JSON with the words `NaN`, `Infinity` and `-Infinity`, which are not JSON, and which Python's `json` module writes for such numbers.

use serde_json::{Number, Value};
use std::borrow::Cow;

/// The words that are not JSON, and the numbers that stand for them while a document is parsed: zeros, whose digits nobody writes.
///
/// Python's `json` module, and so zarr-python, writes such numbers of attributes as bare words.
const WORDS: [(&str, &str); 3] = [("NaN", "0e-780078001"), ("Infinity", "0e-780078002"), ("-Infinity", "0e-780078003")];

/// The same document with the words `NaN`, `Infinity` and `-Infinity` as the numbers that stand for them.
pub(crate) fn standard(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut out: Vec<u8> = Vec::new();
    let (mut copied, mut at, mut in_string) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'N' | b'I' | b'-' if !in_string => {
                if let Some((word, number)) = WORDS.iter().find(|(word, _)| bytes[at..].starts_with(word.as_bytes())) {
                    out.extend_from_slice(&bytes[copied..at]);
                    out.extend_from_slice(number.as_bytes());
                    at += word.len();
                    copied = at;
                    continue;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if copied == 0 {
        return Cow::Borrowed(bytes);
    }
    out.extend_from_slice(&bytes[copied..]);
    Cow::Owned(out)
}

/// The number that a word is; `None` of other words.
pub(crate) fn odd_number(word: &str) -> Option<Number> {
    WORDS.iter().any(|(known, _)| *known == word).then(|| Number::from_string_unchecked(word.to_string()))
}

/// Puts words back in place of the numbers that stand for them: as numbers that are written so, or as texts.
pub(crate) fn with_words(value: &mut Value, as_numbers: bool) {
    // The parser lets nothing be nested deeper than 128 times.
    match value {
        Value::Number(number) => {
            if let Some((word, _)) = WORDS.iter().find(|(_, stands)| *stands == number.as_str()) {
                *value = match odd_number(word).filter(|_| as_numbers) {
                    Some(number) => Value::Number(number),
                    None => (*word).into(),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| with_words(item, as_numbers)),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| with_words(member, as_numbers)),
        _ => {}
    }
}

/// Parses JSON in which `NaN`, `Infinity` and `-Infinity` may be numbers, as Python writes it. `None` where it is none.
pub fn from_text(text: &str) -> Option<Value> {
    let document = standard(text.as_bytes());
    let mut value = serde_json::from_slice(&document).ok()?;
    if matches!(document, Cow::Owned(_)) {
        with_words(&mut value, true);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_are_numbers_outside_of_strings_only() {
        let source = r#"{"a": NaN, "b": [-Infinity, Infinity], "NaN \"NaN": "Infinity", "c": -1}"#;
        let value = from_text(source).unwrap();
        let written = r#"{"a":NaN,"b":[-Infinity,Infinity],"NaN \"NaN":"Infinity","c":-1}"#;
        assert_eq!(value.to_string(), written);
        assert_eq!(from_text(written), Some(value));
        assert!(matches!(standard(br#"{"a": "NaN\\"}"#), Cow::Borrowed(_)));
        standard(br#"{"a": "\"#);
    }
}
