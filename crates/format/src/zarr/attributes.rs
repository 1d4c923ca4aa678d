//! Changing attributes in the metadata of a node: what is not changed stays as it was written.

use super::fill::fill_to_json;
use super::fill_attribute::{FILL_ATTRIBUTE, decode_fill_attribute, encode_fill_attribute};
use super::group::take_node_type;
use super::json::document;
use super::members::{members, with, without};
use crate::attribute::{AttributeEdit, AttributeValue, Attributes, Texts, in_order, plain_values, rows, shown};
use crate::error::{Context, Error, excerpt};
use hyperslab_layout::Kind;
use serde_json::{Map, Value};

const MEMBER: &str = "attributes";

/// Attributes of a node as JSON; those of an array of such elements, if of one, whose name is for errors.
///
/// # Errors
/// When JSON has nothing for a value: complex numbers, bytes, records, texts that are not UTF-8, references.
pub fn attributes_to_json(attributes: &Attributes, array: Option<(Kind, &str)>) -> Result<Map<String, Value>, Error> {
    let each = attributes.iter().map(|(name, value)| Ok((name.to_string(), to_json(name, value, array.is_some())?)));
    let mut made = each.collect::<Result<Map<_, _>, Error>>()?;
    if let Some((kind, name)) = array {
        encode_fill_attribute(kind, &mut made, name)?;
    }
    Ok(made)
}

fn to_json(name: &str, value: &AttributeValue, of_array: bool) -> Result<Value, Error> {
    let found = match value {
        AttributeValue::Plain(value) => Some(value.clone()),
        AttributeValue::Elements(elements) => plain_values(elements).or_else(|| {
            // It is encoded as xarray has it.
            let element = elements.of.element().filter(|_| of_array && name == FILL_ATTRIBUTE)?;
            let one = elements.each().next().filter(|_| element.kind.is_complex())?;
            fill_to_json(element.kind, &in_order(one, element))
        }),
        AttributeValue::Texts(Texts { shape, texts }) => {
            let each = texts.iter().map(|text| std::str::from_utf8(text).ok().map(Value::from));
            each.collect::<Option<Vec<_>>>().and_then(|each| rows(each, shape.as_ref()?))
        }
        AttributeValue::Kept(_) => None,
    };
    found.ok_or_else(|| {
        let expected =
            "what Zarr has attributes of, which is JSON: numbers, truth values, texts in UTF-8, lists, mappings";
        let error = Context::new("store the attribute", name).invalid(expected, excerpt(&shown(value)));
        error.with_hint(match value {
            AttributeValue::Kept(_) => "it can only stay where it is; leave it out of what is written",
            AttributeValue::Texts(_) => {
                "decode it, if its encoding is known: text.encode(\"utf-8\", \"surrogateescape\").decode(\"latin-1\")"
            }
            AttributeValue::Elements(elements) if elements.of.element().is_none() => {
                "decode it, if its encoding is known: value.decode(\"latin-1\")"
            }
            _ => "store it as numbers or as a text, such as the real and the imaginary part, or str(value)",
        })
    })
}

/// The attributes that JSON is; of an array of such elements, if of one, which tells what its fill value is.
pub fn attributes_of_json(map: Map<String, Value>, array: Option<Kind>) -> Attributes {
    let each = map.into_iter().map(|(name, value)| {
        let fill = array.filter(|_| name == FILL_ATTRIBUTE).and_then(|kind| decode_fill_attribute(kind, &value));
        (name, fill.unwrap_or(AttributeValue::Plain(value)))
    });
    each.collect()
}

/// What becomes of attributes, in JSON.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JsonEdit {
    /// Whether all that are there go first.
    pub clear: bool,
    /// Those that go.
    pub removed: Vec<String>,
    /// Those that are set, and to what.
    pub set: Map<String, Value>,
}

impl JsonEdit {
    /// The same as this change of typed values, of an array if of one.
    ///
    /// # Errors
    /// As [`attributes_to_json`].
    pub fn of(edit: &AttributeEdit, array: Option<(Kind, &str)>) -> Result<JsonEdit, Error> {
        let set = attributes_to_json(&edit.set, array)?;
        Ok(JsonEdit { clear: edit.clear, removed: edit.removed.clone(), set })
    }

    /// Whether an attribute of this name is there afterwards as it was before.
    fn leaves(&self, name: &str) -> bool {
        !self.clear && !self.set.contains_key(name) && !self.removed.iter().any(|removed| removed == name)
    }

    /// Changes attributes that were parsed.
    pub fn apply(&self, attributes: &mut Map<String, Value>) {
        attributes.retain(|name, _| self.leaves(name));
        attributes.extend(self.set.clone());
    }

    /// The `zarr.json` of a node with other attributes; `name` is the name of the object in errors.
    ///
    /// # Errors
    /// When the bytes are not the metadata of a node.
    pub fn applied(&self, bytes: &[u8], name: &str) -> Result<Vec<u8>, Error> {
        let context = Context::new("change attributes in", name);
        take_node_type(&mut document(bytes, context)?, context)?;
        let found = members(bytes).into_iter().rfind(|member| member.is(MEMBER));
        let before = found.map_or(&b"{}"[..], |member| &bytes[member.value]);
        let kept = members(before).into_iter().filter(|member| member.name.as_deref().is_some_and(|n| self.leaves(n)));
        let kept = kept.map(|member| String::from_utf8_lossy(&before[member.all]).into_owned());
        let set = self.set.iter().map(|(name, value)| format!("{}: {value}", Value::from(name.as_str())));
        let all: Vec<String> = kept.chain(set).collect();
        let text = if all.is_empty() { "{}".into() } else { format!("{{\n    {}\n  }}", all.join(",\n    ")) };
        Ok(with(&without(bytes, MEMBER), MEMBER, &text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zarr::GroupMetadata;
    use serde_json::json;

    const NODE: &str = r#"{"zarr_format": 3, "attributes": {"n": NaN, "b": 10000000000000000000000000, "s": "}],{"},
        "node_type": "group", "x": {"must_understand": false}}"#;

    fn edited(edit: &JsonEdit) -> (String, Map<String, Value>) {
        let bytes = edit.applied(NODE.as_bytes(), "g").unwrap();
        let attributes = GroupMetadata::parse(&bytes, "g").unwrap().attributes;
        (String::from_utf8(bytes).unwrap(), attributes)
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was_written() {
        let set = [("new \"one\"".to_string(), json!([1, 2.5])), ("s".into(), json!("t"))].into_iter().collect();
        let edit = JsonEdit { removed: vec!["n".into(), "none".into()], set, clear: false };
        let (text, attributes) = edited(&edit);
        assert!(text.contains("\"b\": 10000000000000000000000000") && text.contains("must_understand"), "{text}");
        assert_eq!(attributes.keys().collect::<Vec<_>>(), ["b", "new \"one\"", "s"]);
        let mut parsed = GroupMetadata::parse(NODE.as_bytes(), "g").unwrap().attributes;
        edit.apply(&mut parsed);
        assert_eq!(parsed, attributes);
        let (text, _) = edited(&JsonEdit { removed: vec!["b".into()], ..JsonEdit::default() });
        assert!(text.contains("\"n\": NaN"), "{text}");
    }

    #[test]
    fn all_can_go_and_a_node_may_have_had_none() {
        assert!(edited(&JsonEdit { clear: true, ..JsonEdit::default() }).1.is_empty());
        let node = br#"{"zarr_format":3,"node_type":"group"}"#;
        let set: Map<String, Value> = [("a".to_string(), json!(1))].into_iter().collect();
        let bytes = JsonEdit { set: set.clone(), ..JsonEdit::default() }.applied(node, "g").unwrap();
        assert_eq!(GroupMetadata::parse(&bytes, "g").unwrap().attributes, set);
        assert!(JsonEdit::default().applied(b"[]", "g").is_err());
    }
}
