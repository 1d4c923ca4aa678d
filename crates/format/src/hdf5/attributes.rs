//! Attributes as JSON, which is how users give and get them.

use super::content::{AttributeValue, Hdf5Attribute};
use super::datatype::{Datatype, TextEnd};
use crate::error::{Context, Error, excerpt};
use crate::zarr::{fill_from_json, fill_to_json};
use hyperslab_layout::{ByteOrder, ElementType, Kind};
use serde_json::{Map, Value as Json};

/// Attributes that by convention have the type of their variable (netCDF User's Guide, appendix "Attribute Conventions").
const TYPED_AS_VARIABLE: [&str; 7] =
    ["_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"];

/// Attributes by which netCDF-4 and HDF5 tell what a dimension is, and that say nothing to users.
pub const OF_DIMENSIONS: [&str; 8] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
];

/// For whom attributes are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// As h5py does it: text has variable length, truth values are an enumeration.
    H5py,
    /// As netCDF-C does it: one text has a fixed length, and truth values are bytes.
    Netcdf,
}

impl Hdf5Attribute {
    /// The attributes that a mapping gives, of a dataset of these elements if of one. Whole numbers are `int64`, others `float64`;
    /// lists have one type. Those that by convention have the type of their dataset get it where they fit.
    ///
    /// # Errors
    /// When there is no place for a value: a nested mapping, a list of nothing, or of unlike things.
    pub fn of_map(
        map: &Map<String, Json>,
        dataset: Option<ElementType>,
        dialect: Dialect,
    ) -> Result<Vec<Hdf5Attribute>, Error> {
        map.iter().map(|(name, value)| Hdf5Attribute::of_json(name, value, dataset, dialect)).collect()
    }

    fn of_json(
        name: &str,
        value: &Json,
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
        let (values, shape) = match value {
            Json::Array(values) => (values.as_slice(), vec![values.len() as u64]),
            one => (std::slice::from_ref(one), Vec::new()),
        };
        let typed = dataset.filter(|_| TYPED_AS_VARIABLE.contains(&name)).and_then(|element| of_type(element, values));
        let found = typed.or_else(|| texts(values, &shape, dialect)).or_else(|| of_usual_type(values, dialect));
        let (datatype, value) = found.filter(|_| !values.is_empty()).ok_or_else(|| {
            let found = excerpt(&value.to_string());
            let error = context.invalid("a text, a number, a truth value, or a list of one of these", found);
            error.with_hint("HDF5 attributes have no mappings; give each value a name of its own")
        })?;
        Ok(Hdf5Attribute { name: name.into(), datatype, shape: Some(shape), value })
    }

    /// The same as JSON: a text, a number, a truth value, or a list, of rows where there are several dimensions. `None` where JSON
    /// has no words for it, such as references.
    pub fn to_json(&self) -> Option<Json> {
        let each: Vec<Json> = match (&self.value, &self.datatype) {
            (AttributeValue::Texts(texts), _) => texts.iter().map(|text| Json::from(text.as_str())).collect(),
            (AttributeValue::Lists(_), _) => return None,
            (AttributeValue::Elements(bytes), Datatype::Text { bytes: each, end, .. }) => {
                bytes.chunks_exact((*each).max(1) as usize).map(|one| Json::from(trimmed(one, *end))).collect()
            }
            (AttributeValue::Elements(bytes), datatype) => {
                let element = datatype.element(&self.name).ok().filter(|element| !element.kind.is_opaque())?;
                let one = |one: &[u8]| fill_to_json(element.kind, &native(one, element)).unwrap_or(Json::Null);
                bytes.chunks_exact(element.bytes() as usize).map(one).collect()
            }
        };
        let shape = self.shape.as_ref()?;
        Some(rows(each, shape))
    }
}

/// A list of lists, as deep as there are dimensions.
fn rows(mut each: Vec<Json>, shape: &[u64]) -> Json {
    match shape {
        [] => each.pop().unwrap_or(Json::Null),
        [_] => Json::Array(each),
        [_, inner @ ..] => {
            let length = inner.iter().product::<u64>().max(1) as usize;
            Json::Array(each.chunks(length).map(|some| rows(some.to_vec(), inner)).collect())
        }
    }
}

/// Text without what fills it up.
fn trimmed(bytes: &[u8], end: TextEnd) -> String {
    let bytes = match end {
        TextEnd::Terminated | TextEnd::Zeros => bytes.split(|byte| *byte == 0).next().unwrap_or_default(),
        TextEnd::Spaces => bytes.trim_ascii_end(),
    };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Numbers of this type, where all values are such.
fn of_type(element: ElementType, values: &[Json]) -> Option<(Datatype, AttributeValue)> {
    let datatype = Datatype::of_element(element, "").ok().filter(|_| !element.kind.is_opaque())?;
    let each = values.iter().map(|value| fill_from_json(element.kind, value, "").ok().map(|one| native(&one, element)));
    Some((datatype, AttributeValue::Elements(each.collect::<Option<Vec<_>>>()?.concat())))
}

fn of_usual_type(values: &[Json], dialect: Dialect) -> Option<(Datatype, AttributeValue)> {
    let truth = if dialect == Dialect::H5py { Kind::Bool } else { Kind::Int8 };
    let kind = match values {
        _ if values.iter().all(Json::is_boolean) => truth,
        _ if values.iter().all(Json::is_i64) => Kind::Int64,
        _ if values.iter().all(Json::is_u64) => Kind::UInt64,
        _ if values.iter().all(Json::is_number) => Kind::Float64,
        _ => return None,
    };
    let numbers: Vec<Json> =
        values.iter().map(|value| value.as_bool().map_or(value.clone(), |is| u8::from(is).into())).collect();
    let values = if kind == Kind::Int8 { &numbers } else { values };
    of_type(ElementType { kind, order: ByteOrder::Little }, values)
}

fn texts(values: &[Json], shape: &[u64], dialect: Dialect) -> Option<(Datatype, AttributeValue)> {
    let texts = values.iter().map(|value| value.as_str().map(String::from)).collect::<Option<Vec<_>>>()?;
    let fixed = texts.first().filter(|text| shape.is_empty() && dialect == Dialect::Netcdf && !text.is_empty());
    Some(match fixed {
        Some(text) => {
            let (bytes, utf8) = (text.len() as u32, !text.is_ascii());
            (
                Datatype::Text { bytes, end: TextEnd::Terminated, utf8 },
                AttributeValue::Elements(text.clone().into_bytes()),
            )
        }
        None => (Datatype::VariableText { utf8: true }, AttributeValue::Texts(texts)),
    })
}

/// One element in the order of this machine, of one in the order of the type, or the reverse.
fn native(one: &[u8], element: ElementType) -> Vec<u8> {
    let mut one = one.to_vec();
    if element.order != ByteOrder::NATIVE {
        one.chunks_exact_mut(element.kind.swap_bytes().max(1) as usize).for_each(<[u8]>::reverse);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back() {
        let map = serde_json::json!({
            "title": "Ä trial", "empty": "", "n": -3, "big": u64::MAX, "x": 0.5, "is": true,
            "list": [1, 2, 3], "reals": [1, 2.5], "names": ["a", "", "ccc"], "bits": [true, false],
        });
        let Json::Object(map) = map else { unreachable!() };
        for dialect in [Dialect::H5py, Dialect::Netcdf] {
            for attribute in Hdf5Attribute::of_map(&map, None, dialect).unwrap() {
                let found = attribute.to_json().unwrap();
                let expected = match &map[&attribute.name] {
                    Json::Bool(is) if dialect == Dialect::Netcdf => Json::from(u8::from(*is)),
                    Json::Array(each) if dialect == Dialect::Netcdf && each[0].is_boolean() => {
                        serde_json::json!([1, 0])
                    }
                    Json::Array(each) if each[0] == 1 && each.len() == 2 => serde_json::json!([1.0, 2.5]),
                    other => other.clone(),
                };
                assert_eq!(found, expected, "{}", attribute.name);
            }
        }
    }

    #[test]
    fn fill_values_have_the_type_of_their_dataset() {
        let Json::Object(map) = serde_json::json!({"_FillValue": "NaN", "valid_range": [0, 1]}) else { unreachable!() };
        let element = ElementType { kind: Kind::Float32, order: ByteOrder::Big };
        for attribute in Hdf5Attribute::of_map(&map, Some(element), Dialect::Netcdf).unwrap() {
            assert_eq!(attribute.datatype, Datatype::Float { bytes: 4, order: ByteOrder::Big });
            assert_eq!(
                attribute.to_json().unwrap(),
                if attribute.shape == Some(vec![]) { "NaN".into() } else { serde_json::json!([0.0, 1.0]) }
            );
        }
    }

    #[test]
    fn what_has_no_place_is_refused() {
        for value in [
            serde_json::json!({"a": {}}),
            serde_json::json!({"a": []}),
            serde_json::json!({"a": [1, "x"]}),
            serde_json::json!({"CLASS": "x"}),
            serde_json::json!({"": 1}),
        ] {
            let Json::Object(map) = value else { unreachable!() };
            assert!(Hdf5Attribute::of_map(&map, None, Dialect::H5py).unwrap_err().is_invalid(), "{map:?}");
        }
    }
}
