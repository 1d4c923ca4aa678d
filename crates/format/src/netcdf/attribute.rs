//! Attributes: a name, and one or more values of one type.

use super::FILL_VALUE;
use super::names::check_name;
use super::types::{Type, Version};
use crate::error::{Context, Error, excerpt};
use crate::zarr::{fill_from_json, fill_to_json};
use hyperslab_layout::Kind;
use serde_json::{Map, Value};

/// Attributes that by convention have the type of their variable (netCDF User's Guide, appendix "Attribute
/// Conventions", and CF 2.5.1 and 3.5).
const TYPED_AS_VARIABLE: [&str; 7] =
    [FILL_VALUE, "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"];

/// A name and values of one type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Type of the values; text is of [`Type::Char`].
    pub kind: Type,
    /// The values, big-endian, without what pads them.
    bytes: Vec<u8>,
}

impl Attribute {
    /// One with these values, big-endian; whole values only.
    pub(super) fn of_bytes(name: String, kind: Type, bytes: Vec<u8>) -> Attribute {
        debug_assert_eq!(bytes.len() as u64 % kind.bytes(), 0);
        Attribute { name, kind, bytes }
    }

    /// The values, big-endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many values it has; of text, how many bytes.
    pub fn count(&self) -> u64 {
        self.bytes.len() as u64 / self.kind.bytes()
    }

    /// The attributes that a mapping gives, of a variable of this type if of one. Texts are text; whole numbers `int`, or
    /// `int64` where they are larger; others `double`; lists of numbers have as many values. Those that by convention have the
    /// type of their variable get it where they fit.
    ///
    /// # Errors
    /// When the format has no place for a value: a nested mapping, a truth value, a list of texts.
    pub fn of_map(map: &Map<String, Value>, variable: Option<Type>) -> Result<Vec<Attribute>, Error> {
        map.iter().map(|(name, value)| Attribute::of_json(name, value, variable)).collect()
    }

    fn of_json(name: &str, value: &Value, variable: Option<Type>) -> Result<Attribute, Error> {
        check_name(name)?;
        let context = Context::new("store the attribute", name);
        let as_variable = variable.filter(|_| TYPED_AS_VARIABLE.contains(&name));
        let real = as_variable.filter(|kind| matches!(kind, Type::Float | Type::Double));
        // JSON has no other words for them.
        let odd = |text: &str| matches!(text, "NaN" | "Infinity" | "-Infinity") && real.is_some();
        if let Some(text) = value.as_str().filter(|text| !odd(text)) {
            return Ok(Attribute::of_bytes(name.into(), Type::Char, text.as_bytes().to_vec()));
        }
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        let is_number = |value: &Value| value.is_number() || value.as_str().is_some_and(odd);
        if values.is_empty() || !values.iter().all(is_number) {
            let found = excerpt(&value.to_string());
            let error = context.invalid("a text, a number, or a list of numbers", found);
            return Err(
                error.with_hint("store truth values as numbers, and mappings and lists of strings in one string")
            );
        }
        let whole = |limit: i64| values.iter().all(|v| v.as_i64().is_some_and(|v| (-limit - 1..=limit).contains(&v)));
        let positive = values.iter().all(Value::is_u64);
        let usual = [
            (Type::Int, whole(i64::from(i32::MAX))),
            (Type::Int64, whole(i64::MAX)),
            (Type::UInt64, positive),
            (Type::Double, true),
        ];
        let kinds = as_variable.into_iter().chain(usual.into_iter().filter(|(_, fits)| *fits).map(|(kind, _)| kind));
        let found = kinds.into_iter().find_map(|kind| Some((kind, bytes_of(kind, values, name)?)));
        let (kind, bytes) = found.ok_or_else(|| context.invalid("numbers of one type", excerpt(&value.to_string())))?;
        Ok(Attribute::of_bytes(name.into(), kind, bytes))
    }

    /// The attribute that says what was never written of a variable: one element, in native byte order.
    pub(super) fn of_fill(kind: Type, native: &[u8]) -> Attribute {
        Attribute::of_bytes(FILL_VALUE.into(), kind, big(native, kind.bytes()))
    }

    /// The same as JSON: a text, a number, or a list. Floats that JSON has no words for are the texts `NaN`, `Infinity` and
    /// `-Infinity`; bytes that are no UTF-8 are replaced.
    pub fn to_json(&self) -> Value {
        if self.kind == Type::Char {
            let text = String::from_utf8_lossy(&self.bytes);
            // Fortran programs end texts with a zero.
            return text.trim_end_matches('\0').into();
        }
        let each = self.bytes.chunks_exact(self.kind.bytes() as usize);
        let mut values = each.map(|one| json_of(self.kind.kind(), one)).collect::<Vec<_>>();
        if values.len() == 1 { values.remove(0) } else { Value::Array(values) }
    }

    /// The first version that has values of this type.
    pub(super) fn since(&self) -> Version {
        self.kind.since()
    }
}

/// A value as JSON, of its big-endian bytes.
pub(super) fn json_of(kind: Kind, one: &[u8]) -> Value {
    fill_to_json(kind, &big(one, kind.bytes())).unwrap_or(Value::Null)
}

/// Values as big-endian bytes, where all fit the type.
fn bytes_of(kind: Type, values: &[Value], name: &str) -> Option<Vec<u8>> {
    let each = values.iter().map(|value| fill_from_json(kind.kind(), value, name).ok());
    Some(each.collect::<Option<Vec<_>>>()?.iter().flat_map(|one| big(one, kind.bytes())).collect())
}

/// Big-endian of native bytes, or the reverse.
fn big(one: &[u8], bytes: u64) -> Vec<u8> {
    debug_assert_eq!(one.len() as u64, bytes);
    if cfg!(target_endian = "big") { one.to_vec() } else { one.iter().rev().copied().collect() }
}
