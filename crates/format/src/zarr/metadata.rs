//! Metadata of arrays.

use super::chain::CHECKSUM_BYTES;
use super::codecs::Codecs;
use super::data_type;
use super::fill;
use super::group::{NodeType, take_node_type};
use super::json::{Named, attributes, document, extensions, lengths, required, text};
use super::keys::KeyEncoding;
use crate::error::{Context, Error, excerpt};
use crate::size::{NDIM_MAX, array_bytes};
use hyperslab_layout::{ElementType, Kind, tuple};
use serde_json::{Map, Value};

/// Metadata of an array: all that its `zarr.json` says.
///
/// What [`ArrayMetadata::parse`] and [`ArrayMetadata::new`] return has been checked: the sizes of array and chunk fit
/// in 63 bits, no chunk dimension is zero, and the lists agree in length. Whoever changes fields should
/// [`ArrayMetadata::check`] again; [`ArrayMetadata::to_json`] does.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayMetadata {
    /// Length of each dimension; empty for a 0-d array.
    pub shape: Vec<u64>,
    /// Kind of the elements: a number, or what Zarr has a name for.
    pub element: Kind,
    /// Length of a chunk in each dimension, at least 1; chunks at the upper edges are stored whole.
    pub chunk_shape: Vec<u64>,
    /// How chunk keys are built.
    pub key_encoding: KeyEncoding,
    /// How the elements of a chunk become the bytes of its object.
    pub codecs: Codecs,
    /// Value of elements in chunks that are not stored: one element in native byte order.
    pub fill_value: Vec<u8>,
    /// A name, or none, for each dimension.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Attributes of the user. Numbers keep their digits; NaN and infinities are strings.
    pub attributes: Map<String, Value>,
    /// Members of extensions that readers may ignore, kept as they were.
    pub extensions: Map<String, Value>,
}

impl ArrayMetadata {
    /// Metadata with the default key encoding, fill value zero and no attributes; `name` is for errors.
    pub fn new(name: &str, shape: &[u64], element: Kind, chunk_shape: &[u64], codecs: Codecs) -> Result<Self, Error> {
        data_type::check_named(element)
            .map_err(|unnamed| without_name(unnamed, Context::new("make the array", name)))?;
        ArrayMetadata::of_kind(name, shape, element, chunk_shape, codecs)
    }

    /// The same of elements that may have another byte order than v3 has.
    pub(super) fn of_kind(
        name: &str,
        shape: &[u64],
        element: Kind,
        chunk_shape: &[u64],
        codecs: Codecs,
    ) -> Result<Self, Error> {
        data_type::check_size(element, Context::new("make the array", name))?;
        let metadata = ArrayMetadata {
            shape: shape.to_vec(),
            element,
            chunk_shape: chunk_shape.to_vec(),
            key_encoding: KeyEncoding::default(),
            codecs: codecs.of_kind(element),
            fill_value: fill::fill_usual(element),
            dimension_names: None,
            attributes: Map::new(),
            extensions: Map::new(),
        };
        metadata.check(name)?;
        Ok(metadata)
    }

    /// Parses the `zarr.json` of an array; `name` is the name of the object in errors.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self, Error> {
        let context = Context::new("read array metadata of", name);
        let mut members = document(bytes, context)?;
        if take_node_type(&mut members, context)? != NodeType::Array {
            return Err(context.invalid("an array", "a group").with_hint("open it as a group, or name an array in it"));
        }
        let shape = lengths(&required(&mut members, "shape", context)?, "shape", context)?;
        check_ndim(&shape, context)?;
        let element = data_type::parse(required(&mut members, "data_type", context)?, context)?;
        data_type::check_size(element, context)?;
        let chunk_shape = regular_grid(required(&mut members, "chunk_grid", context)?, &shape, context)?;
        let key_encoding = KeyEncoding::parse(required(&mut members, "chunk_key_encoding", context)?, context)?;
        let codecs = Codecs::parse(required(&mut members, "codecs", context)?, shape.len(), element, 0, context)?
            .of_kind(element);
        let fill_value = fill::parse_stored(element, &required(&mut members, "fill_value", context)?, context)?;
        let dimension_names = dimension_names(members.shift_remove("dimension_names"), context)?;
        match members.shift_remove("storage_transformers") {
            None | Some(Value::Null) => {}
            Some(Value::Array(transformers)) if transformers.is_empty() => {}
            Some(other) => return Err(context.unsupported("no storage transformers", text(&other))),
        }
        let attributes = attributes(&mut members, context)?;
        let extensions = extensions(members, context)?;
        let metadata = ArrayMetadata {
            shape,
            element,
            chunk_shape,
            key_encoding,
            codecs,
            fill_value,
            dimension_names,
            attributes,
            extensions,
        };
        metadata.check_in(context)?;
        Ok(metadata)
    }

    /// Checks that the fields agree with each other; `name` is for errors.
    pub fn check(&self, name: &str) -> Result<(), Error> {
        self.check_in(Context::new("make the array", name))
    }

    /// How chunks become bytes, as the metadata list it.
    pub fn codecs_json(&self) -> Value {
        self.codecs.to_value(self.element)
    }

    /// The `zarr.json` of this array; `name` is for errors, which wrong fields cause.
    pub fn to_json(&self, name: &str) -> Result<Vec<u8>, Error> {
        self.check(name)?;
        let fill_value = fill::fill_to_json(self.element, &self.fill_value).unwrap_or(Value::Null);
        let mut members = Map::new();
        members.insert("zarr_format".into(), 3.into());
        members.insert("node_type".into(), "array".into());
        members.insert("shape".into(), self.shape.clone().into());
        members.insert("data_type".into(), data_type::to_value(self.element).unwrap_or(Value::Null));
        let configuration = serde_json::json!({"chunk_shape": self.chunk_shape});
        members.insert("chunk_grid".into(), serde_json::json!({"name": "regular", "configuration": configuration}));
        members.insert("chunk_key_encoding".into(), self.key_encoding.to_value());
        members.insert("fill_value".into(), fill_value);
        members.insert("codecs".into(), self.codecs.to_value(self.element));
        if let Some(names) = &self.dimension_names {
            let names = names.iter().map(|name| name.as_deref().map_or(Value::Null, Value::from)).collect();
            members.insert("dimension_names".into(), Value::Array(names));
        }
        members.insert("attributes".into(), Value::Object(self.attributes.clone()));
        members.extend(self.extensions.clone());
        Ok(format!("{:#}", Value::Object(members)).into_bytes())
    }

    /// Key, relative to the array, of the chunk at `coords` in the chunk grid.
    pub fn chunk_key(&self, coords: &[u64]) -> String {
        self.key_encoding.key(coords)
    }

    /// Number of chunks in each dimension; 0 where the dimension has length 0.
    pub fn grid_shape(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk_shape).map(|(length, chunk)| length.div_ceil(*chunk)).collect()
    }

    /// Size \[B\] of a decoded chunk. All chunks have the same: those at the upper edges are padded.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunk_shape.iter().product::<u64>() * self.element.bytes()
    }

    /// Size \[B\] of a stored chunk, or `None` when it depends on the values.
    pub fn stored_chunk_bytes(&self) -> Option<u64> {
        let trailer = if self.codecs.checksum_trailer() { CHECKSUM_BYTES } else { 0 };
        self.codecs.is_plain().then(|| self.chunk_bytes() + trailer)
    }

    /// Distance \[B\] in a decoded chunk between neighbours along each dimension of the array.
    pub fn chunk_strides(&self) -> Vec<u64> {
        self.codecs.strides(&self.chunk_shape, self.element.bytes())
    }

    /// What one element of a decoded chunk is.
    pub fn stored_element(&self) -> ElementType {
        ElementType { kind: self.element, order: self.codecs.endian }
    }

    fn check_in(&self, context: Context) -> Result<(), Error> {
        let ndim = self.shape.len();
        check_ndim(&self.shape, context)?;
        data_type::to_value(self.element).map_err(|unnamed| without_name(unnamed, context))?;
        if self.chunk_shape.len() != ndim {
            let expected = format!("a chunk shape of {ndim} dimensions, as the shape {}", tuple(&self.shape));
            return Err(context.invalid(expected, tuple(&self.chunk_shape)));
        }
        if self.chunk_shape.contains(&0) {
            let found = tuple(&self.chunk_shape);
            return Err(context.invalid("chunk dimensions of at least 1", found));
        }
        for (what, shape) in [("an array", &self.shape), ("chunks", &self.chunk_shape)] {
            if array_bytes(shape, self.element.bytes()).is_none() {
                let found = format!("shape {} of {}", tuple(shape), self.element);
                return Err(context.invalid(format!("{what} of less than 2^63 B"), found));
            }
        }
        if fill::fill_to_json(self.element, &self.fill_value).is_none() {
            let expected = format!("a fill value that is one {}, {} B", self.element, self.element.bytes());
            return Err(context.invalid(expected, format!("the bytes {:02x?}", self.fill_value)));
        }
        if let Some(names) = self.dimension_names.as_ref().filter(|names| names.len() != ndim) {
            return Err(context.invalid(format!("{ndim} dimension names"), names.len().to_string()));
        }
        self.codecs.check(&self.chunk_shape, context)
    }
}

fn without_name(unnamed: String, context: Context) -> Error {
    let error = context.unsupported("a type that Zarr has a name for", unnamed);
    error.with_hint("numpy.lib.recfunctions.repack_fields removes gaps, array.astype changes fields")
}

fn check_ndim(shape: &[u64], context: Context) -> Result<(), Error> {
    if shape.len() > NDIM_MAX {
        return Err(context.unsupported(format!("at most {NDIM_MAX} dimensions"), shape.len().to_string()));
    }
    Ok(())
}

/// Chunk shape of a regular grid. Where the array has length 0, zarr-python may write chunks of length 0; as there is
/// no chunk, any length says the same, and 1 is one that divides.
fn regular_grid(value: Value, shape: &[u64], context: Context) -> Result<Vec<u64>, Error> {
    let mut grid = Named::parse(value, "chunk_grid", context)?;
    if grid.name != "regular" {
        let error = context.unsupported("chunk_grid 'regular'", format!("'{}'", excerpt(&grid.name)));
        return Err(error.with_hint("rewrite the array with chunks of one shape"));
    }
    let chunk_shape = grid.take("chunk_shape").unwrap_or(Value::Null);
    let mut chunk_shape = lengths(&chunk_shape, "chunk_shape", context)?;
    for (chunk, length) in chunk_shape.iter_mut().zip(shape) {
        if *length == 0 {
            *chunk = (*chunk).max(1);
        }
    }
    grid.finish(context)?;
    Ok(chunk_shape)
}

fn dimension_names(value: Option<Value>, context: Context) -> Result<Option<Vec<Option<String>>>, Error> {
    let items = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(context.corrupt("dimension_names as a list", text(&other))),
    };
    let name = |item| match item {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name)),
        other => Err(context.corrupt("dimension names that are strings or null", text(&other))),
    };
    items.into_iter().map(name).collect::<Result<Vec<_>, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> ArrayMetadata {
        let mut array = ArrayMetadata::new("rho", &[10, 7], Kind::Float32, &[4, 3], Codecs::plain(true)).unwrap();
        array.dimension_names = Some(vec![Some("y".into()), None]);
        array.attributes.insert("units".into(), json!({"name": "kg m-3", "scale": [1, 2.5]}));
        array
    }

    /// The sample with one member replaced (or, with null, removed), parsed.
    fn parse_with(key: &str, value: Value) -> Result<ArrayMetadata, Error> {
        let mut members: Map<String, Value> = serde_json::from_slice(&sample().to_json("rho").unwrap()).unwrap();
        members.insert(key.into(), value.clone());
        if value.is_null() {
            members.shift_remove(key);
        }
        ArrayMetadata::parse(Value::Object(members).to_string().as_bytes(), "rho/zarr.json")
    }

    #[test]
    fn round_trips() {
        let array = sample();
        assert_eq!(ArrayMetadata::parse(&array.to_json("rho").unwrap(), "rho").unwrap(), array);
        assert_eq!(array.grid_shape(), [3, 3]);
        assert_eq!(array.chunk_bytes(), 48);
        assert_eq!(array.stored_chunk_bytes(), Some(52));
        assert_eq!(array.chunk_strides(), [12, 4]);
        assert_eq!(array.chunk_key(&[2, 1]), "c/2/1");
        assert_eq!(array.stored_element().numpy(), "<f4");
    }

    #[test]
    fn scalars_and_empty_arrays_are_arrays() {
        for code in ["|V12", "<M8[ns]", "V12[('a', '<i4'), ('b', '<f8')]", "float8_e5m2"] {
            let kind = ElementType::from_numpy(code).unwrap().kind;
            let opaque = ArrayMetadata::new("o", &[4], kind, &[4], Codecs::plain(false)).unwrap();
            assert_eq!(ArrayMetadata::parse(&opaque.to_json("o").unwrap(), "o").unwrap(), opaque);
        }
        let gap = ElementType::from_numpy("V12[('a', '<i4'), ('', '|V8')]").unwrap().kind;
        let gap = ArrayMetadata::new("o", &[4], gap, &[4], Codecs::plain(false)).unwrap_err();
        assert!(gap.to_string().contains("gaps between fields"), "{gap}");
        let scalar = ArrayMetadata::new("s", &[], Kind::Int64, &[], Codecs::plain(false)).unwrap();
        assert_eq!(ArrayMetadata::parse(&scalar.to_json("s").unwrap(), "s").unwrap(), scalar);
        assert_eq!(scalar.chunk_key(&[]), "c");
        assert_eq!(scalar.chunk_bytes(), 8);
        assert_eq!(scalar.grid_shape(), Vec::<u64>::new());
        let empty = parse_with("shape", json!([0, 7])).unwrap();
        assert_eq!(empty.grid_shape(), [0, 3]);
        let grid = json!({"name": "regular", "configuration": {"chunk_shape": [0, 7]}});
        let value = json!({"zarr_format": 3, "node_type": "array", "shape": [0, 7], "data_type": "int8",
            "chunk_grid": grid, "chunk_key_encoding": "default", "codecs": ["bytes"], "fill_value": 0});
        let empty = ArrayMetadata::parse(value.to_string().as_bytes(), "e").unwrap();
        assert_eq!(empty.chunk_shape, [1, 7]);
    }

    #[test]
    fn hostile_sizes_are_refused() {
        let grid = |chunk_shape: Value| json!({"name": "regular", "configuration": {"chunk_shape": chunk_shape}});
        for (key, value) in [
            ("shape", json!([u64::MAX, 2])),
            ("shape", json!([-1, 2])),
            ("shape", json!([1.5, 2])),
            ("shape", json!([1e30, 2])),
            ("shape", json!("10")),
            ("shape", json!([10])),
            ("shape", Value::Array(vec![json!(1); 65])),
            ("chunk_grid", grid(json!([0, 1]))),
            ("chunk_grid", grid(json!([1_u64 << 32, 1_u64 << 30]))),
            ("chunk_grid", grid(json!([4]))),
            ("chunk_grid", grid(json!(null))),
            ("chunk_grid", json!({"name": "rectangular"})),
        ] {
            let error = parse_with(key, value.clone()).expect_err(&value.to_string());
            assert!(error.object() == "rho/zarr.json");
        }
        assert!(parse_with("shape", json!([1_u64 << 40, 1 << 20])).is_ok());
    }

    #[test]
    fn each_missing_member_is_named() {
        for key in [
            "shape",
            "data_type",
            "chunk_grid",
            "chunk_key_encoding",
            "codecs",
            "fill_value",
            "node_type",
            "zarr_format",
        ] {
            let error = parse_with(key, Value::Null).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
        for key in ["attributes", "dimension_names"] {
            assert!(parse_with(key, Value::Null).is_ok());
        }
    }

    #[test]
    fn unsupported_parts_are_refused_by_name() {
        for (key, value, name) in [
            ("data_type", json!("string"), "vlen-utf8"),
            ("data_type", json!("variable_length_bytes"), "variable_length_bytes"),
            ("data_type", json!("float4_e2m1fn"), "float4_e2m1fn"),
            ("data_type", json!("r12"), "r12"),
            ("storage_transformers", json!([{"name": "x"}]), "transformers"),
            ("surprise", json!({"name": "x"}), "surprise"),
        ] {
            let error = parse_with(key, value).unwrap_err();
            assert!(error.is_unsupported());
            assert!(error.to_string().contains(name), "{error}");
        }
        assert_eq!(parse_with("data_type", json!({"name": "float32"})).unwrap(), sample());
        let brain = parse_with("data_type", json!("bfloat16")).unwrap();
        assert_eq!(brain, ArrayMetadata { element: Kind::BFloat16, fill_value: brain.fill_value.clone(), ..sample() });
        assert_eq!(parse_with("storage_transformers", json!([])).unwrap(), sample());
        let kept = parse_with("cache", json!({"must_understand": false})).unwrap();
        assert!(String::from_utf8(kept.to_json("rho").unwrap()).unwrap().contains("must_understand"));
    }

    #[test]
    fn wrong_fields_are_not_written() {
        let wrong: [fn(&mut ArrayMetadata); 6] = [
            |array| array.chunk_shape[0] = 0,
            |array| array.shape.push(1),
            |array| array.fill_value.push(0),
            |array| array.codecs.order = vec![0, 0],
            |array| array.dimension_names = Some(vec![]),
            |array| array.codecs = Codecs::zstd(99, true),
        ];
        for change in wrong {
            let mut array = sample();
            change(&mut array);
            assert!(array.to_json("rho").unwrap_err().is_invalid());
        }
    }
}
