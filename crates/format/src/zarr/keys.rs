//! Where a chunk is: from its place in the chunk grid to the key of its object.

use super::json::{Named, text};
use crate::error::{Context, Error, excerpt};
use hyperslab_layout::stored::Keys;
use serde_json::{Value, json};
use std::sync::Arc;

/// The two ways in which Zarr names chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyStyle {
    /// `c/0/1`, and `c` for the only chunk of a 0-d array.
    Default,
    /// `0.1`, and `0` for the only chunk of a 0-d array, as in Zarr v2.
    V2,
}

/// What stands between the numbers in a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Separator {
    /// `/`, which makes directories.
    Slash,
    /// `.`
    Dot,
}

impl Separator {
    fn character(self) -> char {
        match self {
            Separator::Slash => '/',
            Separator::Dot => '.',
        }
    }
}

/// How chunk keys are built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyEncoding {
    /// With or without the leading `c`.
    pub style: KeyStyle,
    /// Between the numbers.
    pub separator: Separator,
}

impl Default for KeyEncoding {
    fn default() -> Self {
        KeyEncoding { style: KeyStyle::Default, separator: Separator::Slash }
    }
}

impl KeyEncoding {
    /// Key, relative to the array, of the chunk at `coords` in the chunk grid (one number per dimension, row-major
    /// order of dimensions as in the shape).
    pub fn key(&self, coords: &[u64]) -> String {
        self.keys("").name(coords)
    }

    /// The names of the chunks of an array whose keys begin so.
    pub fn keys(&self, prefix: impl Into<Arc<str>>) -> Keys {
        let head = match self.style {
            KeyStyle::Default => "c",
            KeyStyle::V2 => "",
        };
        Keys { prefix: prefix.into(), head: head.into(), separator: self.separator.character(), single: "0".into() }
    }

    pub(super) fn parse(value: Value, context: Context) -> Result<Self, Error> {
        let mut encoding = Named::parse(value, "chunk_key_encoding", context)?;
        let (style, separator) = match encoding.name.as_str() {
            "default" => (KeyStyle::Default, Separator::Slash),
            "v2" => (KeyStyle::V2, Separator::Dot),
            other => {
                let found = format!("`{}`", excerpt(other));
                return Err(context.unsupported("chunk_key_encoding `default` or `v2`", found));
            }
        };
        let separator = match encoding.take("separator") {
            None => separator,
            Some(value) => match value.as_str() {
                Some("/") => Separator::Slash,
                Some(".") => Separator::Dot,
                _ => return Err(context.corrupt("chunk key separator \"/\" or \".\"", text(&value))),
            },
        };
        encoding.finish(context)?;
        Ok(KeyEncoding { style, separator })
    }

    pub(super) fn to_value(self) -> Value {
        let name = match self.style {
            KeyStyle::Default => "default",
            KeyStyle::V2 => "v2",
        };
        json!({"name": name, "configuration": {"separator": self.separator.character().to_string()}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { asked: "read", object: "zarr.json" };

    #[test]
    fn keys_follow_the_specification() {
        let default = KeyEncoding::default();
        assert_eq!(default.key(&[0, 1]), "c/0/1");
        assert_eq!(default.key(&[]), "c");
        assert_eq!(default.key(&[u64::MAX]), "c/18446744073709551615");
        let dotted = KeyEncoding { separator: Separator::Dot, ..default };
        assert_eq!(dotted.key(&[10, 20, 30]), "c.10.20.30");
        assert_eq!(dotted.key(&[]), "c");
        let v2 = KeyEncoding { style: KeyStyle::V2, separator: Separator::Dot };
        assert_eq!(v2.key(&[3, 4]), "3.4");
        assert_eq!(v2.key(&[]), "0");
        assert_eq!(KeyEncoding { separator: Separator::Slash, ..v2 }.key(&[3, 4]), "3/4");
    }

    #[test]
    fn encodings_round_trip_and_default_their_separator() {
        for style in [KeyStyle::Default, KeyStyle::V2] {
            for separator in [Separator::Slash, Separator::Dot] {
                let encoding = KeyEncoding { style, separator };
                assert_eq!(KeyEncoding::parse(encoding.to_value(), CONTEXT).unwrap(), encoding);
            }
        }
        assert_eq!(KeyEncoding::parse(json!("default"), CONTEXT).unwrap(), KeyEncoding::default());
        let v2 = KeyEncoding::parse(json!({"name": "v2"}), CONTEXT).unwrap();
        assert_eq!(v2, KeyEncoding { style: KeyStyle::V2, separator: Separator::Dot });
    }

    #[test]
    fn other_encodings_are_refused_by_name() {
        let error = KeyEncoding::parse(json!({"name": "fan_out"}), CONTEXT).unwrap_err();
        assert!(error.is_unsupported());
        assert!(error.to_string().contains("`fan_out`"), "{error}");
        let value = json!({"name": "v2", "configuration": {"separator": "//"}});
        assert!(KeyEncoding::parse(value, CONTEXT).unwrap_err().is_corrupt());
    }
}
