//! Attributes: names and typed values, the same in all formats.
//!
//! A value is what a format can tell from others: numbers of any type, with every bit of a NaN; truth values, complex numbers,
//! enumerations, records; texts, perhaps in other encodings than UTF-8; bytes; arrays of all these, and empty ones. What is written without a
//! type, as JSON and most programs do (`1`, `0.5`, `"m"`, a list, a mapping), is *plain*, and gets the type that the format gives
//! to such values. What can only be kept is shown as that. Each format says what it cannot hold.

mod bytes;
mod plain;
mod policy;
mod text;
mod value;

pub(crate) use plain::{PlainKind, number_of, plain_values, rows, typed};
pub use text::{shown, shown_plain};
pub(crate) use value::in_order;
pub use value::{AttributeEdit, AttributeValue, Attributes, Elements, KeptValue, Texts, ValueType};
