//! Metadata of groups, and telling groups from arrays.

use super::json::{attributes, document, extensions, required, text};
use crate::error::{Context, Error};
use serde_json::{Map, Value};

/// What a `zarr.json` describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeType {
    /// An array, see [`super::ArrayMetadata`].
    Array,
    /// A group, see [`GroupMetadata`].
    Group,
}

/// What the `zarr.json` in `bytes` describes; `name` is the name of the object in errors.
pub fn node_type(bytes: &[u8], name: &str) -> Result<NodeType, Error> {
    let context = Context::new("read metadata of", name);
    take_node_type(&mut document(bytes, context)?, context)
}

/// Takes the member "node_type".
pub(super) fn take_node_type(members: &mut Map<String, Value>, context: Context) -> Result<NodeType, Error> {
    let value = required(members, "node_type", context)?;
    match value.as_str() {
        Some("array") => Ok(NodeType::Array),
        Some("group") => Ok(NodeType::Group),
        _ => Err(context.corrupt("\"node_type\": \"array\" or \"group\"", text(&value))),
    }
}

/// Metadata of a group.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupMetadata {
    /// Attributes of the user. Numbers keep their digits; NaN and infinities are strings.
    pub attributes: Map<String, Value>,
    /// Members of extensions that readers may ignore, kept as they were.
    pub extensions: Map<String, Value>,
}

impl GroupMetadata {
    /// Parses the `zarr.json` of a group; `name` is the name of the object in errors.
    ///
    /// Consolidated metadata are ignored, and so are not written again by [`GroupMetadata::to_json`].
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self, Error> {
        let context = Context::new("read group metadata of", name);
        let mut members = document(bytes, context)?;
        if take_node_type(&mut members, context)? != NodeType::Group {
            return Err(context.invalid("a group", "an array").with_hint("open it as an array"));
        }
        let attributes = attributes(&mut members, context)?;
        Ok(GroupMetadata { attributes, extensions: extensions(members, context)? })
    }

    /// The `zarr.json` of this group.
    pub fn to_json(&self) -> Vec<u8> {
        let mut members = Map::new();
        members.insert("zarr_format".into(), 3.into());
        members.insert("node_type".into(), "group".into());
        members.insert("attributes".into(), Value::Object(self.attributes.clone()));
        members.extend(self.extensions.clone());
        format!("{:#}", Value::Object(members)).into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn round_trips_with_attributes_to_the_digit() {
        let source = br#"{"zarr_format": 3, "node_type": "group", "attributes":
            {"b": 10000000000000000000000000, "a": [0.1, 1.25e+400, -0.0], "z": {"y": null}}}"#;
        let group = GroupMetadata::parse(source, "g").unwrap();
        assert_eq!(group.attributes.keys().collect::<Vec<_>>(), ["b", "a", "z"]);
        let json = group.to_json();
        for digits in ["10000000000000000000000000", "1.25e+400", "-0.0"] {
            assert!(String::from_utf8_lossy(&json).contains(digits));
        }
        assert_eq!(GroupMetadata::parse(&json, "g").unwrap(), group);
    }

    #[test]
    fn consolidated_metadata_are_ignored() {
        let source = json!({"zarr_format": 3, "node_type": "group", "attributes": {},
            "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"q": {}}}});
        let group = GroupMetadata::parse(source.to_string().as_bytes(), "g").unwrap();
        assert_eq!(group, GroupMetadata::default());
    }

    #[test]
    fn arrays_and_nonsense_are_told_apart() {
        let array = br#"{"zarr_format": 3, "node_type": "array"}"#;
        assert_eq!(node_type(array, "a").unwrap(), NodeType::Array);
        assert_eq!(node_type(&GroupMetadata::default().to_json(), "g").unwrap(), NodeType::Group);
        assert!(GroupMetadata::parse(array, "a").unwrap_err().to_string().contains("found an array"));
        assert!(node_type(br#"{"zarr_format": 3, "node_type": "table"}"#, "t").is_err());
        assert!(node_type(br#"{"zarr_format": 3}"#, "t").is_err());
    }
}
