//! Attributes on their way between Python and the library: what has no type but that of JSON as JSON, the others as bytes with
//! NumPy's codes.

use hyperslab::{AttributeValue, Attributes, Elements, KeptValue, Map, Texts, Value, ValueType, json_from_text};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

/// Name; NumPy's code of the elements, `text`, or `kept`; shape, if there is one; the bytes of all elements, or of each text; names
/// of values, where these have some.
type RawValue = (String, String, Option<Vec<u64>>, Vec<PyBackedBytes>, Vec<(String, PyBackedBytes)>);

/// JSON of all attributes, in which those are nothing that follow.
pub(crate) type RawAttributes = (String, Vec<RawValue>);

/// The attributes that Python gives so.
pub(crate) fn attributes_of((json, typed): RawAttributes) -> PyResult<Attributes> {
    let Some(Value::Object(plain)) = json_from_text(&json) else {
        return Err(PyValueError::new_err("attributes must be a mapping of names to values"));
    };
    let mut all: Attributes = plain.into_iter().collect();
    for (name, code, shape, content, members) in typed {
        let value = value_of(&code, shape, content, members);
        let unknown = || PyValueError::new_err(format!("attribute '{name}' has a type that is not known, '{code}'"));
        all.set(name.clone(), value.ok_or_else(unknown)?);
    }
    Ok(all)
}

fn value_of(
    code: &str,
    shape: Option<Vec<u64>>,
    content: Vec<PyBackedBytes>,
    members: Vec<(String, PyBackedBytes)>,
) -> Option<AttributeValue> {
    let mut content = content.iter().map(|part| part.to_vec());
    Some(match code {
        "text" if shape.as_ref().is_some_and(Vec::is_empty) => AttributeValue::text(content.next()?),
        "text" => AttributeValue::Texts(Texts { shape, texts: content.collect() }),
        "kept" => {
            let what = String::from_utf8(content.next()?).ok()?;
            AttributeValue::Kept(KeptValue { what, shape })
        }
        code => {
            let members = members.into_iter().map(|(name, value)| (name, value.to_vec())).collect();
            let of = ValueType::from_numpy(code, members)?;
            AttributeValue::Elements(Elements::new(of, shape, content.next()?)?)
        }
    })
}

/// Attributes as one piece of bytes, which tells whether those of two arrays are alike.
pub(crate) fn told<'py>(py: Python<'py>, attributes: &Attributes) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &attributes.to_bytes())
}

/// What is in such a piece: JSON of all, in which those are nothing that follow.
#[pyfunction]
pub(crate) fn attributes_in<'py>(py: Python<'py>, told: &[u8]) -> PyResult<(String, Vec<RawOut<'py>>)> {
    let all = Attributes::from_bytes(told);
    let all = all.ok_or_else(|| PyValueError::new_err("these bytes are no attributes"))?;
    let (mut plain, mut typed) = (Map::new(), Vec::new());
    let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
    for (name, value) in all {
        let raw = match value {
            AttributeValue::Plain(value) => {
                plain.insert(name, value);
                continue;
            }
            AttributeValue::Elements(Elements { of, shape, bytes: content }) => {
                let members = match &of {
                    ValueType::Enumeration(_, members) => {
                        members.iter().map(|(name, value)| (name.clone(), bytes(value))).collect()
                    }
                    _ => Vec::new(),
                };
                (name.clone(), of.numpy(), shape, vec![bytes(&content)], members)
            }
            AttributeValue::Texts(Texts { shape, texts }) => {
                let texts = texts.iter().map(|text| bytes(text)).collect();
                (name.clone(), "text".into(), shape, texts, Vec::new())
            }
            AttributeValue::Kept(KeptValue { what, shape }) => {
                (name.clone(), "kept".into(), shape, vec![bytes(what.as_bytes())], Vec::new())
            }
        };
        plain.insert(name, Value::Null);
        typed.push(raw);
    }
    Ok((Value::Object(plain).to_string(), typed))
}

/// The same as [`RawValue`], for Python.
type RawOut<'py> = (String, String, Option<Vec<u64>>, Vec<Bound<'py, PyBytes>>, Vec<(String, Bound<'py, PyBytes>)>);
