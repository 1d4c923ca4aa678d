//! Values in messages, as they are written in Python.

use hyperslab_collective::Fields;
use hyperslab_format::attribute::{AttributeEdit, AttributeValue, Attributes, shown, shown_plain};
use hyperslab_format::zarr::{Codecs, Value};
use std::fmt::Display;

/// What an option is that a rank leaves out.
pub(crate) const NOT_GIVEN: &str = "not given";

/// A text in quotes.
pub(crate) fn quoted(text: impl Display) -> String {
    format!("'{text}'")
}

/// Yes or no, as Python writes it.
pub(crate) fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A number, text, list or mapping.
pub(crate) fn value(value: &Value) -> String {
    shown_plain(value)
}

/// Attributes of something, one by one, so that those are named which differ between ranks.
pub(crate) fn attributes(given: &Attributes, of: &str) -> Fields {
    let mut fields: Fields =
        given.iter().map(|(name, value)| (format!("attribute '{name}'{of}"), shown_sorted(value))).collect();
    fields.sort();
    fields
}

/// A value as it is compared: the order of what mappings and attributes have is not part of what a rank asks.
fn shown_sorted(value: &AttributeValue) -> String {
    let AttributeValue::Plain(plain) = value else { return shown(value) };
    let mut plain = plain.clone();
    plain.sort_all_objects();
    shown_plain(&plain)
}

/// The same in one text.
pub(crate) fn all_attributes(given: &Attributes) -> String {
    let mut each: Vec<String> =
        given.iter().map(|(name, value)| format!("'{name}': {}", shown_sorted(value))).collect();
    each.sort();
    format!("{{{}}}", each.join(", "))
}

/// What becomes of attributes, so that ranks say the same.
pub(crate) fn attribute_edit(edit: &AttributeEdit) -> Fields {
    let removed = edit.removed.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let fields = vec![
        ("attributes that are removed".to_string(), removed),
        ("whether all are removed".into(), truth(edit.clear).into()),
    ];
    [fields, attributes(&edit.set, " that is set")].concat()
}

/// Codecs by their names, with what of them is not as usual: `[bytes, gzip(level=1), crc32c]`.
pub(crate) fn codecs(codecs: &Codecs) -> String {
    codec_list(&codecs.to_json().parse().unwrap_or_default())
}

fn codec_list(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(codec_list).collect::<Vec<_>>().join(", ")),
        Value::Object(codec) if codec.contains_key("name") => {
            let name = codec["name"].as_str().unwrap_or_default();
            let usual = |of: &Value| *of == Value::Bool(false) || of.as_str() == Some("little");
            let configuration = codec.get("configuration").and_then(Value::as_object);
            let given = configuration.into_iter().flatten().filter(|(_, of)| !usual(of));
            let given: Vec<String> = given.map(|(key, of)| format!("{key}={}", codec_list(of))).collect();
            if given.is_empty() { name.to_string() } else { format!("{name}({})", given.join(", ")) }
        }
        other => self::value(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_in_python() {
        let given: Value = r#"{"a": null, "b": [true, 1.5, "x"]}"#.parse().unwrap();
        assert_eq!(value(&given), "{'a': None, 'b': [True, 1.5, 'x']}");
    }

    #[test]
    fn codecs_are_short() {
        assert_eq!(codecs(&Codecs::plain(true)), "[bytes, crc32c]");
        assert_eq!(codecs(&Codecs::zstd(3, false)), "[bytes, zstd(level=3)]");
        let gzip: Value = r#"[{"name": "gzip", "configuration": {"level": 1}}]"#.parse().unwrap();
        assert_eq!(codecs(&Codecs::from_json(&gzip, "codecs").unwrap()), "[bytes, gzip(level=1)]");
    }
}
