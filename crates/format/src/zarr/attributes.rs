//! Changing attributes in the metadata of a node: what is not changed stays as it was written.

use super::group::take_node_type;
use super::json::document;
use super::members::{members, with, without};
use crate::error::{Context, Error};
use serde_json::{Map, Value};

const MEMBER: &str = "attributes";

/// What becomes of attributes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AttributeEdit {
    /// Whether all that are there go first.
    pub clear: bool,
    /// Those that go.
    pub removed: Vec<String>,
    /// Those that are set, and to what.
    pub set: Map<String, Value>,
}

impl AttributeEdit {
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

    fn edited(edit: &AttributeEdit) -> (String, Map<String, Value>) {
        let bytes = edit.applied(NODE.as_bytes(), "g").unwrap();
        let attributes = GroupMetadata::parse(&bytes, "g").unwrap().attributes;
        (String::from_utf8(bytes).unwrap(), attributes)
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was_written() {
        let set = [("new \"one\"".to_string(), json!([1, 2.5])), ("s".into(), json!("t"))].into_iter().collect();
        let edit = AttributeEdit { removed: vec!["n".into(), "none".into()], set, clear: false };
        let (text, attributes) = edited(&edit);
        assert!(text.contains("\"b\": 10000000000000000000000000") && text.contains("must_understand"), "{text}");
        assert_eq!(attributes.keys().collect::<Vec<_>>(), ["b", "new \"one\"", "s"]);
        let mut parsed = GroupMetadata::parse(NODE.as_bytes(), "g").unwrap().attributes;
        edit.apply(&mut parsed);
        assert_eq!(parsed, attributes);
        let (text, _) = edited(&AttributeEdit { removed: vec!["b".into()], ..AttributeEdit::default() });
        assert!(text.contains("\"n\": NaN"), "{text}");
    }

    #[test]
    fn all_can_go_and_a_node_may_have_had_none() {
        assert!(edited(&AttributeEdit { clear: true, ..AttributeEdit::default() }).1.is_empty());
        let node = br#"{"zarr_format":3,"node_type":"group"}"#;
        let set: Map<String, Value> = [("a".to_string(), json!(1))].into_iter().collect();
        let bytes = AttributeEdit { set: set.clone(), ..AttributeEdit::default() }.applied(node, "g").unwrap();
        assert_eq!(GroupMetadata::parse(&bytes, "g").unwrap().attributes, set);
        assert!(AttributeEdit::default().applied(b"[]", "g").is_err());
    }
}
