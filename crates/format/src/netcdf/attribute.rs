//! Attributes: a name, and one or more values of one type.

use super::names::{FILL_VALUE, check_name};
use super::types::{Type, Version};
use crate::attribute::{
    AttributeValue, Attributes, Elements, PlainKind, Texts, ValueType, in_order, plain_values, shown, typed,
};
use crate::error::{Context, Error, excerpt};

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

    /// The attributes that these values are, of a variable of this type if of one. Of plain values, whole numbers are `int`, or
    /// `int64` where they are larger; others `double`; and those that by convention have the type of their variable get it where
    /// they fit.
    ///
    /// # Errors
    /// When the format has no place for a value: a nested mapping, a truth value, a list of texts, a text with a zero.
    pub fn of_values(attributes: &Attributes, variable: Option<Type>) -> Result<Vec<Attribute>, Error> {
        attributes.iter().map(|(name, value)| Attribute::of_value(name, value, variable)).collect()
    }

    fn of_value(name: &str, value: &AttributeValue, variable: Option<Type>) -> Result<Attribute, Error> {
        check_name(name)?;
        let refused = |hint: &str| {
            let expected = "what NetCDF has attributes of: a text, a number, or a list of numbers";
            let error = Context::new("store the attribute", name).invalid(expected, excerpt(&shown(value)));
            error.with_hint(hint)
        };
        let text = |text: &[u8]| match text {
            text if text.contains(&0) => Err(refused("a text ends with its first zero; give an array of int8")),
            text => Ok(Attribute::of_bytes(name.into(), Type::Char, text.to_vec())),
        };
        let elements = match value {
            AttributeValue::Plain(value) => {
                if let Some(given) = value.as_str() {
                    return text(given.as_bytes());
                }
                let found = typed(value).filter(|(_, kind)| !matches!(kind, PlainKind::Truth | PlainKind::Text));
                let nested = "store truth values as numbers, and mappings and lists of strings in one string";
                let (array, kind) = found.ok_or_else(|| refused(nested))?;
                let of_variable = variable.filter(|_| TYPED_AS_VARIABLE.contains(&name));
                let as_variable = of_variable.and_then(|of| array.elements(of.element()));
                let found = as_variable.or_else(|| array.elements(usual(kind).element()));
                found.ok_or_else(|| refused("give it a NumPy type"))?
            }
            AttributeValue::Elements(elements) => match (&elements.of, elements.shape.as_deref()) {
                (ValueType::Bytes(_), Some([])) => {
                    let end = if elements.bytes == [0] { 0 } else { elements.bytes.len() };
                    return text(&elements.bytes[..end]);
                }
                _ => elements.clone(),
            },
            AttributeValue::Texts(Texts { shape, texts }) => match (shape.as_deref(), texts.as_slice()) {
                (Some([]), [one]) => return text(one),
                _ => return Err(refused("store lists of strings in one string")),
            },
            AttributeValue::Kept(_) => {
                return Err(refused("it can only stay where it is; leave it out of what is written"));
            }
        };
        let Some([] | [_]) = elements.shape.as_deref() else {
            return Err(refused("give array.ravel(), or write an array"));
        };
        let must_be = variable.filter(|of| name == FILL_VALUE && elements.of.element() != Some(of.element()));
        let elements = match must_be {
            None => elements,
            Some(of) => {
                let plain = plain_values(&elements);
                let found = plain.as_ref().and_then(typed).and_then(|(array, _)| array.elements(of.element()));
                found.ok_or_else(|| refused(&format!("_FillValue is of the type of its variable, {}", of.name())))?
            }
        };
        let ValueType::Element(element) = elements.of else { return Err(refused("store it as numbers, or as a text")) };
        let kind = Type::of(element.kind)
            .ok_or_else(|| refused("give a number of another type, such as int8 for a truth value"))?;
        let kind = variable.filter(|of| must_be.is_some() && of.kind() == kind.kind()).unwrap_or(kind);
        let bytes = in_order(&in_order(&elements.bytes, element), kind.element());
        Ok(Attribute::of_bytes(name.into(), kind, bytes))
    }

    /// The attribute that says what was never written of a variable: one element, in native byte order.
    pub(super) fn of_fill(kind: Type, native: &[u8]) -> Attribute {
        Attribute::of_bytes(FILL_VALUE.into(), kind, big(native, kind.bytes()))
    }

    /// Its value: a text without the zeros that Fortran programs end it with, or bytes where it is not UTF-8; one number, or an
    /// array of them.
    pub fn to_value(&self) -> AttributeValue {
        if self.kind == Type::Char {
            let end = self.bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
            let text = &self.bytes[..end];
            return match std::str::from_utf8(text) {
                Ok(text) => text.into(),
                Err(_) => AttributeValue::Elements(Elements {
                    of: ValueType::Bytes(end as u32),
                    shape: Some(Vec::new()),
                    bytes: text.to_vec(),
                }),
            };
        }
        let shape = if self.count() == 1 { Vec::new() } else { vec![self.count()] };
        let of = ValueType::Element(self.kind.element());
        AttributeValue::Elements(Elements { of, shape: Some(shape), bytes: self.bytes.clone() }.native())
    }

    /// The first version that has values of this type.
    pub(super) fn since(&self) -> Version {
        self.kind.since()
    }
}

/// The type of plain numbers.
fn usual(kind: PlainKind) -> Type {
    match kind {
        PlainKind::Integer(least, most) if i32::try_from(least).is_ok() && i32::try_from(most).is_ok() => Type::Int,
        PlainKind::Integer(_, most) if most > i128::from(i64::MAX) => Type::UInt64,
        PlainKind::Integer(..) => Type::Int64,
        _ => Type::Double,
    }
}

/// Big-endian of native bytes, or the reverse.
fn big(one: &[u8], bytes: u64) -> Vec<u8> {
    debug_assert_eq!(one.len() as u64, bytes);
    if cfg!(target_endian = "big") { one.to_vec() } else { one.iter().rev().copied().collect() }
}
