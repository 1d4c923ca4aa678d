//! Attributes as HDF5 stores them, of typed values, and the reverse.

use super::content::{Hdf5Attribute, StoredValue};
use super::datatype::{Datatype, TextEnd};
use crate::attribute::{
    AttributeValue, Attributes, Elements, KeptValue, PlainKind, Texts, ValueType, plain_values, shown, typed,
};
use crate::error::{Context, Error, excerpt};
use hyperslab_layout::{ByteOrder, ElementType, Kind, Opaque};

/// Attributes that by convention have the type of their variable (netCDF User's Guide, appendix "Attribute Conventions").
const TYPED_AS_VARIABLE: [&str; 7] =
    ["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"];

/// That which must have it.
const FILL: &str = "_FillValue";

/// Attributes by which netCDF-4 and HDF5 tell what a dimension is, and that say nothing to users.
pub const OF_DIMENSIONS: [&str; 9] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    USED_BY,
    LABELS,
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    CLASSIC_MODEL,
];

/// That by which a dimension says which datasets have it.
pub(super) const USED_BY: &str = "REFERENCE_LIST";

/// That of the root by which a file of netCDF-4 keeps to the classic model (netCDF-C, `NC3_STRICT_ATT_NAME`).
pub(super) const CLASSIC_MODEL: &str = "_nc3_strict";

/// That which names dimensions that are no datasets.
pub(super) const LABELS: &str = "DIMENSION_LABELS";

/// For whom attributes are written and read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// As h5py does it: text has variable length, bytes a fixed one, truth values are an enumeration.
    H5py,
    /// As netCDF-C does it: one text has a fixed length, one number is no list of one, and nothing else is there.
    Netcdf,
}

impl Dialect {
    fn name(self) -> &'static str {
        match self {
            Dialect::H5py => "HDF5",
            Dialect::Netcdf => "netCDF-4",
        }
    }
}

/// What an attribute becomes.
type StoredAttribute = (Datatype, Option<Vec<u64>>, StoredValue);

impl Hdf5Attribute {
    /// The attributes that these values are, of a dataset of these elements if of one. Of plain values, whole numbers are `int64`,
    /// others `float64`, and those that by convention have the type of their dataset get it where they fit.
    ///
    /// # Errors
    /// When there is no place for a value: a nested mapping, a list of unlike things, a text with a zero, a reference.
    pub fn of_values(
        attributes: &Attributes,
        dataset: Option<ElementType>,
        dialect: Dialect,
    ) -> Result<Vec<Hdf5Attribute>, Error> {
        attributes.iter().map(|(name, value)| Hdf5Attribute::of_value(name, value, dataset, dialect)).collect()
    }

    fn of_value(
        name: &str,
        value: &AttributeValue,
        dataset: Option<ElementType>,
        dialect: Dialect,
    ) -> Result<Hdf5Attribute, Error> {
        let context = Context::new("store the attribute", name);
        if name.is_empty() || name.contains('\0') {
            return Err(context.invalid("a name that is not empty, without zeros", excerpt(name)));
        }
        if OF_DIMENSIONS.contains(&name) {
            return Err(context.invalid("a name that HDF5 does not keep for dimensions", name));
        }
        let making = AttributeDraft { name, value, dialect, dataset };
        let (datatype, shape, value) = making.made()?;
        Ok(Hdf5Attribute { name: name.into(), datatype, shape, value })
    }

    /// The value that it is to readers of this kind.
    pub fn to_value(&self, dialect: Dialect) -> AttributeValue {
        let (mut datatype, mut shape) = (&self.datatype, self.shape.clone());
        while let Datatype::Array { shape: inner, base } = datatype {
            shape.iter_mut().for_each(|shape| shape.extend(inner.iter().map(|extent| u64::from(*extent))));
            datatype = base;
        }
        let is_netcdf = dialect == Dialect::Netcdf;
        let shape = match shape {
            None if is_netcdf => Some(vec![0]),
            Some(shape) if is_netcdf && shape == [1] => Some(Vec::new()),
            shape => shape,
        };
        let kept = |what: &str, shape| AttributeValue::Kept(KeptValue { what: what.into(), shape });
        match (&self.value, datatype) {
            (StoredValue::Texts(each), _) => texts(each.clone(), shape, dialect),
            (StoredValue::Lists(_), _) => kept("lists of variable length", shape),
            (StoredValue::Elements(bytes), &Datatype::Text { bytes: each, end, utf8 }) => {
                fixed(bytes, (each, end, utf8), shape, dialect)
            }
            (StoredValue::Elements(bytes), datatype) => match value_type(datatype) {
                Ok(of) => match Elements::new(of, shape.clone(), tidied(bytes, datatype)) {
                    // Files of netCDF have an order of bytes that nobody sees.
                    Some(elements) if is_netcdf => AttributeValue::Elements(elements.native()),
                    Some(elements) => AttributeValue::Elements(elements),
                    None => kept("elements that do not fill their shape", shape),
                },
                Err(what) => kept(&what, shape),
            },
        }
    }

    /// Names of dimensions, of which some may have none, as HDF5's dimension scales call them labels.
    pub fn of_labels(names: &[Option<String>]) -> Hdf5Attribute {
        let texts = names.iter().map(|name| name.clone().unwrap_or_default().into_bytes()).collect();
        Hdf5Attribute {
            name: LABELS.into(),
            datatype: Datatype::VariableText { utf8: true },
            shape: Some(vec![names.len() as u64]),
            value: StoredValue::Texts(texts),
        }
    }

    /// The names that it gives to so many dimensions, if it is such.
    pub(super) fn as_labels(&self, ndim: usize) -> Option<Vec<Option<String>>> {
        let StoredValue::Texts(texts) = &self.value else { return None };
        let name = |text: &Vec<u8>| String::from_utf8(text.clone()).ok().filter(|name| !name.is_empty());
        let names: Vec<_> = texts.iter().map(name).collect();
        (self.name == LABELS && names.len() == ndim && names.iter().any(Option::is_some)).then_some(names)
    }

    /// One text, if it is that.
    pub(super) fn as_text(&self) -> Option<String> {
        self.to_value(Dialect::Netcdf).as_text().map(String::from)
    }

    /// One integer, if it is that.
    pub(super) fn as_i64(&self) -> Option<i64> {
        self.to_value(Dialect::Netcdf).as_i64()
    }

    /// Integers, if it is that.
    pub(super) fn as_integers(&self) -> Option<Vec<i64>> {
        let AttributeValue::Elements(elements) = self.to_value(Dialect::H5py) else { return None };
        plain_values(&elements)?.as_array()?.iter().map(serde_json::Value::as_i64).collect()
    }

    /// One of which this is all that can be said.
    pub(super) fn unread(name: String, what: &str) -> Hdf5Attribute {
        let datatype = Datatype::Unsupported { bytes: 1, what: what.into() };
        Hdf5Attribute { name, datatype, shape: None, value: StoredValue::Elements(Vec::new()) }
    }
}

/// Elements without what lies behind the values of texts in records.
fn tidied(bytes: &[u8], datatype: &Datatype) -> Vec<u8> {
    let (texts, mut bytes) = (datatype.texts(), bytes.to_vec());
    if !texts.is_empty() {
        for element in bytes.chunks_exact_mut(datatype.bytes().max(1) as usize) {
            texts.tidy(element);
        }
    }
    bytes
}

/// The type of values whose elements are so, or what they are instead.
fn value_type(datatype: &Datatype) -> Result<ValueType, String> {
    let element = |datatype: &Datatype| datatype.element("").map_err(|error| error.found().to_string());
    Ok(match datatype {
        Datatype::Enumeration { base, members } => match element(datatype)? {
            truth if truth.kind == Kind::Bool => ValueType::Element(truth),
            _ => ValueType::Enumeration(element(base)?, members.clone()),
        },
        Datatype::ObjectReference => return Err("references to objects".into()),
        Datatype::RegionReference => return Err("references to regions of datasets".into()),
        other => ValueType::Element(element(other)?),
    })
}

/// Texts of variable length, or what netCDF has as one.
fn texts(mut each: Vec<Vec<u8>>, shape: Option<Vec<u64>>, dialect: Dialect) -> AttributeValue {
    if shape.as_ref().is_some_and(Vec::is_empty) {
        let text = each.pop().unwrap_or_default();
        return match std::str::from_utf8(&text) {
            // Whether one text has a length in its type or not is the same to netCDF.
            Err(_) if dialect == Dialect::Netcdf => {
                let of = ValueType::Bytes(text.len() as u32);
                AttributeValue::Elements(Elements { of, shape, bytes: text })
            }
            _ => AttributeValue::text(text),
        };
    }
    let strings = || each.iter().map(|text| std::str::from_utf8(text).ok()).collect::<Option<Vec<_>>>();
    let listed = dialect == Dialect::Netcdf && !each.is_empty() && shape.as_ref().is_some_and(|shape| shape.len() == 1);
    match strings().filter(|_| listed) {
        Some(strings) => strings.into(),
        None => AttributeValue::Texts(Texts { shape, texts: each }),
    }
}

/// Texts of a fixed length. What NumPy calls bytes are those of no character set that zeros fill up; others are texts where they
/// are UTF-8.
fn fixed(
    bytes: &[u8],
    (length, end, utf8): (u32, TextEnd, bool),
    shape: Option<Vec<u64>>,
    dialect: Dialect,
) -> AttributeValue {
    let each: Vec<&[u8]> = bytes.chunks_exact(length.max(1) as usize).map(|one| trimmed(one, end)).collect();
    let is_text = (dialect == Dialect::Netcdf || utf8 || end != TextEnd::Zeros)
        && each.iter().all(|one| std::str::from_utf8(one).is_ok());
    if is_text {
        return texts(each.into_iter().map(<[u8]>::to_vec).collect(), shape, dialect);
    }
    let filled = each.into_iter().flat_map(|one| {
        let mut one = one.to_vec();
        one.resize(length as usize, 0);
        one
    });
    let bytes = filled.collect();
    AttributeValue::Elements(Elements { of: ValueType::Bytes(length), shape, bytes })
}

/// Text without what fills it up.
fn trimmed(bytes: &[u8], end: TextEnd) -> &[u8] {
    let without = |last: u8| &bytes[..bytes.iter().rposition(|byte| *byte != last).map_or(0, |at| at + 1)];
    match end {
        TextEnd::Terminated => bytes.split(|byte| *byte == 0).next().unwrap_or_default(),
        TextEnd::Zeros => without(0),
        TextEnd::Spaces => without(b' '),
    }
}

/// An attribute that is being made.
struct AttributeDraft<'a> {
    name: &'a str,
    value: &'a AttributeValue,
    dialect: Dialect,
    dataset: Option<ElementType>,
}

impl AttributeDraft<'_> {
    fn is_netcdf(&self) -> bool {
        self.dialect == Dialect::Netcdf
    }

    fn refused(&self, hint: &str) -> Error {
        let context = Context::new("store the attribute", self.name);
        let kinds = match self.dialect {
            Dialect::H5py => "a text, a number, a truth value, bytes, a record, or an array of one of these",
            Dialect::Netcdf => "a text, an integer, a float32 or float64, or a list of one of these",
        };
        let expected = format!("what {} has attributes of: {kinds}", self.dialect.name());
        context.invalid(expected, excerpt(&shown(self.value))).with_hint(hint)
    }

    fn made(&self) -> Result<StoredAttribute, Error> {
        let (datatype, shape, value) = match self.value {
            AttributeValue::Plain(value) => {
                let (array, kind) = typed(value).ok_or_else(|| {
                    self.refused("HDF5 attributes have no mappings; give each value a name of its own")
                })?;
                let of_dataset = self.dataset.filter(|_| TYPED_AS_VARIABLE.contains(&self.name));
                let as_dataset = of_dataset.and_then(|element| array.elements(element));
                match as_dataset {
                    Some(elements) => self.elements(&elements)?,
                    None if kind == PlainKind::Text => {
                        self.texts(array.texts().map(|text| text.as_bytes().to_vec()).collect(), Some(array.shape))?
                    }
                    None => {
                        let element = ElementType { kind: usual(kind), order: ByteOrder::Little };
                        let elements = array.elements(element).ok_or_else(|| self.refused("give it a NumPy type"))?;
                        self.elements(&elements)?
                    }
                }
            }
            AttributeValue::Elements(elements) => match self.as_fill(elements)? {
                Some(elements) => self.elements(&elements)?,
                None => self.elements(elements)?,
            },
            AttributeValue::Texts(Texts { shape, texts }) => self.texts(texts.clone(), shape.clone())?,
            AttributeValue::Kept(_) => {
                return Err(self.refused("it can only stay where it is; leave it out of what is written"));
            }
        };
        if self.is_netcdf() && shape.as_ref().is_some_and(|shape| shape.len() > 1) {
            return Err(self.refused("netCDF attributes have one dimension; give array.ravel(), or write an array"));
        }
        // To netCDF, no value is no shape.
        let shape = shape.filter(|shape| !(self.is_netcdf() && shape.contains(&0)));
        Ok((datatype, shape, value))
    }

    /// A fill value of netCDF in the type of its variable, where it has another one.
    fn as_fill(&self, elements: &Elements) -> Result<Option<Elements>, Error> {
        let Some(element) = self.dataset.filter(|_| self.is_netcdf() && self.name == FILL) else { return Ok(None) };
        let is_text = |opaque: Opaque| opaque.is_text() && elements.of == ValueType::Bytes(opaque.bytes());
        let is_same_text = matches!(element.kind, Kind::Opaque(opaque) if is_text(opaque));
        if elements.of == ValueType::Element(element) || is_same_text {
            return Ok(None);
        }
        let plain = plain_values(elements);
        let found = plain.as_ref().and_then(typed).and_then(|(array, _)| array.elements(element));
        found.map(Some).ok_or_else(|| self.refused(&format!("_FillValue is of the type of its variable, {element}")))
    }

    fn elements(&self, elements: &Elements) -> Result<StoredAttribute, Error> {
        let Elements { of, shape, bytes } = elements;
        let stored = |datatype| Ok((datatype, shape.clone(), StoredValue::Elements(bytes.clone())));
        if self.is_netcdf() {
            if shape.is_none() {
                return Err(self.refused("leave it out, or give an array of no elements"));
            }
            return match of {
                ValueType::Element(element) if is_of_netcdf(element.kind) => {
                    stored(Datatype::of_element(*element, "")?)
                }
                ValueType::Bytes(_) if shape.as_ref().is_some_and(Vec::is_empty) => {
                    self.texts(vec![self.without_zeros(bytes)?.to_vec()], shape.clone())
                }
                _ => Err(self.refused("give a number of another type, such as int8 for a truth value, or a text")),
            };
        }
        match of {
            ValueType::Element(element) => {
                let no_type = |error: Error| self.refused(error.hint().unwrap_or("give it another NumPy type"));
                stored(Datatype::of_element(*element, self.name).map_err(no_type)?)
            }
            ValueType::Bytes(length) => {
                if shape.as_ref().is_some_and(Vec::is_empty) {
                    self.without_zeros(bytes)?;
                }
                stored(Datatype::Text { bytes: *length, end: TextEnd::Zeros, utf8: false })
            }
            ValueType::Enumeration(element, members) => {
                let base = Box::new(Datatype::of_element(*element, self.name)?);
                stored(Datatype::Enumeration { base, members: members.clone() })
            }
        }
    }

    /// The bytes, none of which is a zero that would be taken for what fills them up.
    fn without_zeros<'b>(&self, bytes: &'b [u8]) -> Result<&'b [u8], Error> {
        match bytes {
            [0] => Ok(&[]),
            [.., 0] => Err(self.refused("zeros at the end are not kept; give np.void(value), or an array of uint8")),
            bytes if self.is_netcdf() && bytes.contains(&0) => Err(self.refused("give an array of uint8")),
            bytes => Ok(bytes),
        }
    }

    fn texts(&self, texts: Vec<Vec<u8>>, shape: Option<Vec<u64>>) -> Result<StoredAttribute, Error> {
        if texts.iter().any(|text| text.contains(&0)) {
            return Err(self.refused("a text ends with its first zero; give an array of uint8"));
        }
        let utf8 = texts.iter().all(|text| std::str::from_utf8(text).is_ok());
        match texts.as_slice() {
            [text] if self.is_netcdf() && shape.as_ref().is_some_and(Vec::is_empty) => {
                let (mut text, utf8) = (text.clone(), utf8 && !text.is_ascii());
                text.resize(text.len().max(1), 0);
                let datatype = Datatype::Text { bytes: text.len() as u32, end: TextEnd::Terminated, utf8 };
                Ok((datatype, shape, StoredValue::Elements(text)))
            }
            _ => Ok((Datatype::VariableText { utf8 }, shape, StoredValue::Texts(texts))),
        }
    }
}

/// The type of plain numbers.
fn usual(kind: PlainKind) -> Kind {
    match kind {
        PlainKind::Truth => Kind::Bool,
        PlainKind::Integer(_, most) if most > i128::from(i64::MAX) => Kind::UInt64,
        PlainKind::Integer(..) => Kind::Int64,
        PlainKind::Real | PlainKind::Text => Kind::Float64,
    }
}

/// Whether netCDF has numbers of this kind.
fn is_of_netcdf(kind: Kind) -> bool {
    kind.is_integer() || matches!(kind, Kind::Float32 | Kind::Float64)
}
