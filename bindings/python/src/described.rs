//! What an array is, as it is told to Python.

use crate::attributes::told;
use hyperslab::{ElementType, Info};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Type, shape, chunks, shards if there are any, dimension names, attributes; fill value and codecs as JSON.
pub(crate) type RawInfo =
    (String, Vec<u64>, Vec<u64>, Option<Vec<u64>>, Option<Vec<Option<String>>>, Py<PyBytes>, String, String);

pub(crate) fn raw_info(py: Python<'_>, info: Info) -> RawInfo {
    let Info { shape, element, chunks, shards, dimension_names, attributes, fill_value, codecs } = info;
    // Of Zarr arrays nobody asks for a byte order.
    let plain = element == ElementType::native(element.kind) && !element.kind.is_opaque();
    let kind = if plain { element.kind.numpy_code().into() } else { element.numpy() };
    let attributes = told(py, &attributes).unbind();
    (kind, shape, chunks, shards, dimension_names, attributes, fill_value.to_string(), codecs.to_string())
}
