//! JSON documents as Zarr uses them: bounded, an object at the top, extensions named `{"name", "configuration"}`.

use crate::error::{Context, Error, excerpt};
use crate::words::{standard, with_words};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// Largest metadata document \[B\] that is parsed. Consolidated metadata of thousands of arrays fit.
pub(super) const METADATA_BYTES_MAX: usize = 64 << 20;

/// Parses a metadata document, which must be an object of Zarr version 3.
pub(super) fn document(bytes: &[u8], context: Context) -> Result<Map<String, Value>, Error> {
    let mut members = members_of(bytes, context)?;
    match members.shift_remove("zarr_format") {
        Some(version) if version.as_u64() == Some(3) => Ok(members),
        Some(version) if version.as_u64() == Some(2) => {
            let error = context.unsupported("\"zarr_format\": 3", "\"zarr_format\": 2");
            Err(error.with_hint("convert the metadata with `zarr migrate v3` of zarr-python"))
        }
        Some(version) => {
            let error = context.unsupported("Zarr format 3, or 2", format!("Zarr format {}", text(&version)));
            Err(error.with_hint("read it with a program that knows this format"))
        }
        None => Err(context.corrupt("\"zarr_format\": 3", "a JSON object without that member")),
    }
}

/// Parses a document, which must be an object. Words that are not JSON are numbers in attributes, and texts elsewhere.
pub(super) fn members_of(bytes: &[u8], context: Context) -> Result<Map<String, Value>, Error> {
    parsed(bytes, false, context)
}

/// The same of one that is nothing but attributes.
pub(super) fn attributes_alone(bytes: &[u8], context: Context) -> Result<Map<String, Value>, Error> {
    parsed(bytes, true, context)
}

fn parsed(bytes: &[u8], all_attributes: bool, context: Context) -> Result<Map<String, Value>, Error> {
    if bytes.len() > METADATA_BYTES_MAX {
        return Err(context.unsupported(format!("at most {METADATA_BYTES_MAX} B"), format!("{} B", bytes.len())));
    }
    // Which some editors write before a text.
    let document = standard(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes));
    if let Ok(Members(mut members)) = serde_json::from_slice(&document)
        && std::str::from_utf8(&document).is_ok()
    {
        if matches!(document, Cow::Owned(_)) {
            members.iter_mut().for_each(|(name, member)| with_words(member, name == ATTRIBUTES || all_attributes));
        }
        return Ok(members);
    }
    let value: Value = match serde_json::from_slice(&document) {
        Ok(value) => value,
        Err(error) if error.to_string().starts_with("recursion limit") => {
            let found = format!("more in line {}, column {}", error.line(), error.column());
            return Err(context.unsupported("at most 127 lists and objects in each other", found));
        }
        // JSON can say it, and Python has it, but it is no text in any encoding.
        Err(error) if error.to_string().contains("hex escape") => {
            let found =
                format!("half of a character (a lone surrogate) in line {}, column {}", error.line(), error.column());
            let refused = context.unsupported("texts of whole characters", found);
            return Err(refused.with_hint("read it with zarr-python, and write that name or attribute without it"));
        }
        Err(error) => {
            let found = format!("an error in line {}, column {}", error.line(), error.column());
            let damaged = context.corrupt("a whole JSON document", found);
            return Err(damaged.with_hint("restore the file, which was damaged or cut off, or read an earlier step"));
        }
    };
    match value {
        Value::Object(members) => Ok(members),
        other => Err(context.corrupt("a JSON object", text(&other))),
    }
}

/// Name of what users say of a node.
pub(super) const ATTRIBUTES: &str = "attributes";

/// Name of the copy of what all nodes below a group say.
pub(super) const CONSOLIDATED: &str = "consolidated_metadata";

/// An object whose consolidated metadata were passed over: those of a hundred thousand nodes would take half a gigabyte, and
/// nobody here believes them.
struct Members(Map<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct OfMembers;
        impl<'de> Visitor<'de> for OfMembers {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Members, A::Error> {
                let mut members = Map::new();
                while let Some(name) = all.next_key::<String>()? {
                    let value = match name == CONSOLIDATED {
                        true => all.next_value::<IgnoredAny>().map(|_| Value::Null)?,
                        false => all.next_value()?,
                    };
                    members.insert(name, value);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(OfMembers)
    }
}

/// A value as short text, for errors.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Array(items) if items.len() > 8 => format!("a list of {} items", items.len()),
        Value::Object(members) if members.len() > 8 => format!("an object of {} members", members.len()),
        _ => excerpt(&value.to_string()),
    }
}

/// Takes a member that must be there.
pub(super) fn required(members: &mut Map<String, Value>, key: &str, context: Context) -> Result<Value, Error> {
    members.shift_remove(key).ok_or_else(|| context.corrupt(format!("a member \"{key}\""), "none"))
}

/// A list of numbers that fit in 64 bits without sign.
pub(super) fn lengths(value: &Value, what: &str, context: Context) -> Result<Vec<u64>, Error> {
    let wrong = || context.corrupt(format!("{what} as a list of integers >= 0 below 2^64"), text(value));
    value.as_array().ok_or_else(wrong)?.iter().map(|item| item.as_u64().ok_or_else(wrong)).collect()
}

/// Takes the object "attributes", empty when it is missing.
pub(super) fn attributes(members: &mut Map<String, Value>, context: Context) -> Result<Map<String, Value>, Error> {
    match members.shift_remove(ATTRIBUTES) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(attributes)) => Ok(attributes),
        Some(other) => Err(context.corrupt("\"attributes\" as an object", text(&other))),
    }
}

/// What remains when all known members were taken: extensions that say that readers may ignore them are kept,
/// consolidated metadata (a cache, stale once something changes) are dropped, anything else is refused by name.
pub(super) fn extensions(mut members: Map<String, Value>, context: Context) -> Result<Map<String, Value>, Error> {
    members.shift_remove(CONSOLIDATED);
    for (key, value) in &members {
        if value.get("must_understand").and_then(Value::as_bool) != Some(false) {
            let found = format!("member \"{}\": {}", excerpt(key), text(value));
            let expected = "only members of Zarr v3.1 and extensions with \"must_understand\": false";
            return Err(context.unsupported(expected, found));
        }
    }
    Ok(members)
}

/// An extension point: a name with a configuration.
pub(super) struct Named {
    pub(super) name: String,
    configuration: Map<String, Value>,
}

impl Named {
    /// Parses `"name"` or `{"name": ..., "configuration": {...}}`; `what` names the extension point.
    pub(super) fn parse(value: Value, what: &str, context: Context) -> Result<Self, Error> {
        let wrong = |found: &str| {
            context.corrupt(format!("{what} as a name or as {{\"name\", \"configuration\"}}"), found.to_owned())
        };
        let mut members = match value {
            Value::String(name) => return Ok(Named { name, configuration: Map::new() }),
            Value::Object(members) => members,
            other => return Err(wrong(&text(&other))),
        };
        let configuration = match members.shift_remove("configuration") {
            None => Map::new(),
            Some(Value::Object(configuration)) => configuration,
            Some(other) => return Err(wrong(&text(&other))),
        };
        let name = match members.shift_remove("name") {
            Some(Value::String(name)) => name,
            _ => return Err(wrong("no name")),
        };
        // "must_understand" says what readers may do that do not know the name; whoever knows it may drop it.
        members.shift_remove("must_understand");
        match members.keys().next() {
            Some(key) => Err(wrong(&format!("member \"{}\" of `{}`", excerpt(key), excerpt(&name)))),
            None => Ok(Named { name, configuration }),
        }
    }

    /// A codec of v2: a name among what else is said of it.
    pub(super) fn of_v2(value: Value, context: Context) -> Result<Self, Error> {
        let found = text(&value);
        if let Value::Object(mut configuration) = value
            && let Some(Value::String(name)) = configuration.shift_remove("id")
        {
            return Ok(Named { name, configuration });
        }
        Err(context.corrupt("a codec as {\"id\": ...}", found))
    }

    /// Takes a member of the configuration.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.configuration.shift_remove(key)
    }

    /// Refuses members of the configuration that were not taken: they may change what the bytes mean.
    pub(super) fn finish(self, context: Context) -> Result<(), Error> {
        match self.configuration.iter().next() {
            None => Ok(()),
            Some((key, value)) => {
                let expected = format!("only known configuration of `{}`", excerpt(&self.name));
                Err(context.unsupported(expected, format!("\"{}\": {}", excerpt(key), text(value))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CONTEXT: Context = Context { asked: "read", object: "zarr.json" };

    #[test]
    fn bare_words_are_numbers_in_attributes_and_texts_elsewhere() {
        let members = members_of(br#"{"fill_value": NaN, "attributes": {"x": [NaN]}}"#, CONTEXT).unwrap();
        assert_eq!(Value::Object(members).to_string(), r#"{"fill_value":"NaN","attributes":{"x":[NaN]}}"#);
        let members = attributes_alone(br#"{"x": Infinity}"#, CONTEXT).unwrap();
        assert_eq!(Value::Object(members).to_string(), r#"{"x":Infinity}"#);
    }

    #[test]
    fn versions_are_told_apart() {
        assert!(document(b"{\"zarr_format\": 3}", CONTEXT).unwrap().is_empty());
        let two = document(b"{\"zarr_format\": 2}", CONTEXT).unwrap_err();
        assert!(two.is_unsupported());
        assert!(two.hint().unwrap().contains("migrate"));
        assert!(document(b"{}", CONTEXT).unwrap_err().is_corrupt());
        assert!(document(b"[]", CONTEXT).unwrap_err().is_corrupt());
        assert!(document(b"", CONTEXT).unwrap_err().is_corrupt());
        let half = document(br#"{"zarr_format": 3, "attributes": {"x": "\udb88"}}"#, CONTEXT).unwrap_err();
        assert!(half.is_unsupported() && half.to_string().contains("half of a character"), "{half}");
        assert!(document(&b"[".repeat(100_000), CONTEXT).unwrap_err().is_unsupported());
    }

    #[test]
    fn extensions_must_declare_themselves_harmless() {
        let members = json!({"cache": {"must_understand": false, "x": 1}, "consolidated_metadata": null});
        let kept = extensions(members.as_object().unwrap().clone(), CONTEXT).unwrap();
        assert_eq!(Value::Object(kept), json!({"cache": {"must_understand": false, "x": 1}}));
        for value in [json!({"cache": {}}), json!({"cache": 1}), json!({"cache": {"must_understand": true}})] {
            let error = extensions(value.as_object().unwrap().clone(), CONTEXT).unwrap_err();
            assert!(error.to_string().contains("\"cache\""), "{error}");
        }
    }

    #[test]
    fn unknown_configuration_is_refused() {
        let mut named =
            Named::parse(json!({"name": "gzip", "configuration": {"level": 1, "fast": 2}}), "codec", CONTEXT).unwrap();
        assert_eq!(named.take("level"), Some(json!(1)));
        let error = named.finish(CONTEXT).unwrap_err();
        assert!(error.to_string().contains("\"fast\": 2"), "{error}");
    }
}
