//! Zarr v2, to be read: its metadata, said as those of v3. Chunks need nothing of their own, since they have the same codecs.

use super::bytes_codec::BytesCodec;
use super::codecs::Codecs;
use super::data_type;
use super::fill;
use super::group::GroupMetadata;
use super::json::{Named, attributes_alone, lengths, members_of, required, text};
use super::keys::{KeyEncoding, KeyStyle, Separator};
use super::metadata::ArrayMetadata;
use super::numcodecs;
use super::text_type;
use crate::error::{Context, Error};
use crate::fields::{FieldType, fields_of, structured};
use crate::npy::literal::Literal;
use hyperslab_layout::{ByteOrder, ElementType, Kind};
use serde_json::{Map, Value};

/// Name of the metadata of an array in its directory.
pub const ARRAY_KEY: &str = ".zarray";
/// Name of the metadata of a group in its directory.
pub const GROUP_KEY: &str = ".zgroup";
/// Name of the attributes of either in its directory.
pub const ATTRIBUTES_KEY: &str = ".zattrs";

/// Where xarray keeps the names of dimensions, which v3 has a member for.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// What the `.zarray` and the `.zattrs` of an array say; `name` is the name of the object in errors.
pub fn array(zarray: &[u8], zattrs: Option<&[u8]>, name: &str) -> Result<ArrayMetadata, Error> {
    let context = Context::new("read v2 array metadata of", name);
    let mut members = document(zarray, context)?;
    let shape = lengths(&required(&mut members, "shape", context)?, "shape", context)?;
    let mut chunk_shape = lengths(&required(&mut members, "chunks", context)?, "chunks", context)?;
    chunk_shape.iter_mut().for_each(|extent| *extent = (*extent).max(1));
    let (filters, dtype) = (filters(&mut members, context)?, required(&mut members, "dtype", context)?);
    let (element, filters) = match filters.split_first() {
        Some((first, others)) if dtype == "|O" && first["id"] == text_type::CODEC => {
            (ElementType::native(text_type::kind()), others)
        }
        _ => (element(&dtype, filters.first(), context)?, &filters[..]),
    };
    data_type::check_size(element.kind, context)?;
    let compressor = members.shift_remove("compressor").unwrap_or(Value::Null);
    let order = match members.shift_remove("order") {
        Some(Value::String(order)) if order == "F" => (0..shape.len()).rev().collect(),
        Some(Value::String(order)) if order == "C" => Vec::new(),
        other => return Err(context.corrupt("\"order\": \"C\" or \"F\"", text(&other.unwrap_or(Value::Null)))),
    };
    let chain = self::chain(filters, compressor, element.kind, context)?;
    let order = if shape.len() < 2 { Vec::new() } else { order };
    let codecs = Codecs { order, endian: element.order, chain, ..Codecs::plain(false) };
    let fill_value = match members.shift_remove("fill_value") {
        None | Some(Value::Null) => fill::fill_usual(element.kind),
        Some(value) => fill::parse_stored(element.kind, &value, context)?,
    };
    let separator = match members.shift_remove("dimension_separator") {
        None | Some(Value::Null) => Separator::Dot,
        Some(Value::String(separator)) if separator == "." => Separator::Dot,
        Some(Value::String(separator)) if separator == "/" => Separator::Slash,
        Some(other) => return Err(context.corrupt("dimension_separator \".\" or \"/\"", text(&other))),
    };
    let mut attributes = attributes(zattrs, context)?;
    let dimension_names = names(&mut attributes, shape.len());
    let mut metadata = ArrayMetadata::of_kind(name, &shape, element.kind, &chunk_shape, codecs)?;
    metadata.key_encoding = KeyEncoding { style: KeyStyle::V2, separator };
    (metadata.fill_value, metadata.dimension_names, metadata.attributes) = (fill_value, dimension_names, attributes);
    metadata.check(name)?;
    Ok(metadata)
}

/// What the `.zgroup` and the `.zattrs` of a group say.
pub fn group(zgroup: &[u8], zattrs: Option<&[u8]>, name: &str) -> Result<GroupMetadata, Error> {
    let context = Context::new("read v2 group metadata of", name);
    document(zgroup, context)?;
    Ok(GroupMetadata { attributes: attributes(zattrs, context)?, ..GroupMetadata::default() })
}

fn document(bytes: &[u8], context: Context) -> Result<Map<String, Value>, Error> {
    let mut members = members_of(bytes, context)?;
    match members.shift_remove("zarr_format") {
        Some(version) if version.as_u64() == Some(2) => Ok(members),
        other => Err(context.corrupt("\"zarr_format\": 2", text(&other.unwrap_or(Value::Null)))),
    }
}

fn attributes(zattrs: Option<&[u8]>, context: Context) -> Result<Map<String, Value>, Error> {
    zattrs.map_or(Ok(Map::new()), |bytes| attributes_alone(bytes, context))
}

/// The names of dimensions that xarray gave, taken out of the attributes.
fn names(attributes: &mut Map<String, Value>, ndim: usize) -> Option<Vec<Option<String>>> {
    let items = attributes.get(DIMENSIONS)?.as_array().filter(|items| items.len() == ndim)?;
    let names: Option<Vec<Option<String>>> =
        items.iter().map(|item| item.as_str().map(|name| Some(name.into()))).collect();
    if names.is_some() {
        attributes.shift_remove(DIMENSIONS);
    }
    names
}

/// The filters, in the order in which they were applied.
fn filters(members: &mut Map<String, Value>, context: Context) -> Result<Vec<Value>, Error> {
    match members.shift_remove("filters") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(filters)) => Ok(filters),
        Some(other) => Err(context.corrupt("filters as a list", text(&other))),
    }
}

/// What elements are that are no texts of variable length; the first filter says what objects are.
fn element(dtype: &Value, filter: Option<&Value>, context: Context) -> Result<ElementType, Error> {
    let found = match dtype {
        Value::String(code) => match FieldType::of_code(&code.replace('|', "<")) {
            Some(FieldType::Element(element)) => Some(element),
            text => text.and_then(|text| text.as_text()),
        },
        Value::Array(_) => described(dtype)
            .and_then(|fields| structured(&fields_of(&fields).ok()?).ok())
            .map(|kind| ElementType { kind, order: ByteOrder::Little }),
        _ => None,
    };
    found.ok_or_else(|| {
        if let (Value::String(code), Some(filter)) = (dtype, filter)
            && code.ends_with('O')
        {
            let error = context.unsupported(format!("objects of filter {}", text_type::CODEC), text(filter));
            return error.with_hint("rewrite the array as texts or numbers");
        }
        let error = context.unsupported(
            "dtype of numbers, dates, texts of a fixed length or fields of these, as '<f8' or '|u1'",
            text(dtype),
        );
        error.with_hint("rewrite the array as numbers, each field by itself")
    })
}

/// Fields in JSON, as NumPy describes them.
fn described(value: &Value) -> Option<Literal> {
    match value {
        Value::String(text) => Some(Literal::Text(text.clone())),
        Value::Number(number) => number.as_u64().map(Literal::Number),
        Value::Array(items) => items.iter().map(described).collect::<Option<_>>().map(Literal::Sequence),
        _ => None,
    }
}

/// The filters and the compressor of an array, in the order in which they are applied.
fn chain(filters: &[Value], compressor: Value, kind: Kind, context: Context) -> Result<Vec<BytesCodec>, Error> {
    let each = filters.iter().cloned().chain(Some(compressor).filter(|compressor| !compressor.is_null()));
    let mut chain = Vec::new();
    for codec in each {
        let mut named = Named::of_v2(codec, context)?;
        let codec = numcodecs::parse(&mut named, kind, context)?;
        let ends = chain.last().is_some_and(|last| !matches!(last, BytesCodec::Filter(_)));
        if ends && matches!(codec, BytesCodec::Filter(_)) {
            return Err(
                context.unsupported("filters of numbers before all other codecs", format!("'{}' behind", named.name))
            );
        }
        chain.push(codec);
    }
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn zarray(change: &[(&str, Value)]) -> Vec<u8> {
        let mut value = json!({"zarr_format": 2, "shape": [10, 7], "chunks": [4, 3], "dtype": ">f4", "order": "F",
            "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
            "fill_value": "NaN", "filters": null, "dimension_separator": "/"});
        change.iter().for_each(|(key, new)| value[*key] = new.clone());
        value.to_string().into_bytes()
    }

    #[test]
    fn an_element_takes_little_memory() {
        for (dtype, is_right) in [("|V1048576", true), ("|V1048577", false), ("|V4000000000", false)] {
            let usual = [("dtype", json!(dtype)), ("fill_value", Value::Null), ("compressor", Value::Null)];
            let found = array(&zarray(&usual), None, "x");
            assert_eq!(found.as_ref().err().is_none_or(|error| !error.is_unsupported()), is_right, "{dtype}");
            let Ok(found) = found else { continue };
            let text = String::from_utf8(found.to_json("x").unwrap()).unwrap();
            let larger = text.replace("1048576", "4000000000");
            assert!(ArrayMetadata::parse(larger.as_bytes(), "x").unwrap_err().is_unsupported());
        }
    }

    #[test]
    fn arrays_are_what_they_would_be_in_v3() {
        let attributes = br#"{"_ARRAY_DIMENSIONS": ["y", "x"], "units": "m", "bad": NaN}"#;
        let read = array(&zarray(&[]), Some(attributes), "rho").unwrap();
        assert_eq!((&read.shape[..], &read.chunk_shape[..], read.element), (&[10, 7][..], &[4, 3][..], Kind::Float32));
        assert_eq!((read.codecs.order.clone(), read.codecs.endian), (vec![1, 0], ByteOrder::Big));
        assert_eq!((read.chunk_key(&[2, 1]), read.chunk_key(&[])), ("2/1".into(), "0".into()));
        assert_eq!(read.dimension_names, Some(vec![Some("y".into()), Some("x".into())]));
        assert_eq!(read.attributes.keys().collect::<Vec<_>>(), ["units", "bad"]);
        assert!(f32::from_ne_bytes(read.fill_value[..].try_into().unwrap()).is_nan());
        // What is said of it as v3 is the same array.
        assert_eq!(ArrayMetadata::parse(&read.to_json("rho").unwrap(), "rho").unwrap(), read);
        let plain = array(&zarray(&[("compressor", json!(null)), ("fill_value", json!(null))]), None, "rho").unwrap();
        assert_eq!((plain.codecs.chain, plain.fill_value), (vec![], vec![0; 4]));
    }

    #[test]
    fn what_is_no_number_is_read() {
        for (dtype, fill, kind) in [
            (json!("<M8[s]"), json!("NaT"), "M8[s]"),
            (json!(">m8[ns]"), json!(-5), "m8[ns]"),
            (json!("|V3"), json!("AAAA"), "V3"),
            (json!("|S3"), json!("YWI="), "S3"),
            (json!("<U3"), json!("ab"), "U3"),
            (
                json!([["a", ">i4"], ["b", "<f8"], ["c", ">U1"], ["d", ">M8[s]"]]),
                json!(null),
                "V24[('a', '>i4'), ('b', '<f8'), ('c', '>U1'), ('d', '>M8[s]')]",
            ),
            (
                json!([["a", "<i4"], ["b", [["x", "|i1"]]]]),
                json!("AAAAAAA="),
                "V5[('a', '<i4'), ('b', [('x', '|i1')])]",
            ),
        ] {
            let read = array(&zarray(&[("dtype", dtype), ("fill_value", fill)]), None, "rho").unwrap();
            assert_eq!(Some(read.element), ElementType::from_numpy(kind).map(|element| element.kind));
            assert_eq!(ArrayMetadata::parse(&read.to_json("rho").unwrap(), "rho").unwrap(), read);
        }
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (key, value, said) in [
            ("dtype", json!("<M8[x]"), "M8[x]"),
            ("dtype", json!([["a", "|O"]]), "dtype of numbers"),
            ("dtype", json!("|O"), "O"),
            ("filters", json!([{"id": "delta"}]), "the dtype of delta"),
            ("filters", json!([{"id": "zfpy"}]), "'zfpy'"),
            ("filters", json!([{"id": "lz4"}, {"id": "delta", "dtype": "<f4"}]), "'delta' behind"),
            ("filters", json!([7]), "a codec as"),
            ("compressor", json!({"id": "lzma", "format": 3}), "format 3"),
            ("compressor", json!({"id": "blosc", "cname": "snappy"}), "snappy"),
            ("compressor", json!({"id": "zlib", "level": 10}), "10"),
            ("order", json!("A"), "order"),
            ("chunks", json!([4]), "chunk shape"),
            ("zarr_format", json!(3), "zarr_format"),
            ("dimension_separator", json!("-"), "dimension_separator"),
            ("shape", json!([-1, 2]), "shape"),
        ] {
            let error = array(&zarray(&[(key, value)]), None, "rho").unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
