//! Arrays as Python hands them over: addresses and strides, with the object that owns the memory.

use hyperslab::{ElementType, LocalArray, Memory, Section, Triplet};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// Address of the lowest byte, length \[B\], NumPy type, shape, strides \[B\], offset of the first element \[B\], owner.
pub(crate) type Raw = (usize, u64, String, Vec<u64>, Vec<i64>, i64, Py<PyAny>);

/// Start, stride, count and block of each dimension.
pub(crate) type RawSection = Vec<(u64, u64, u64, u64)>;

pub(crate) fn local((address, bytes, kind, shape, strides, offset, owner): Raw) -> PyResult<LocalArray> {
    let element = element(&kind)?;
    // SAFETY: the Python side takes address and extent from a live array, and `owner` keeps that array alive.
    let memory = unsafe { Memory::foreign(address as *mut u8, bytes, Box::new(owner)) };
    Ok(LocalArray { memory, element, shape, strides, offset })
}

/// The local arrays of one array, one for each piece.
pub(crate) fn locals(raws: Vec<Raw>) -> PyResult<Vec<LocalArray>> {
    raws.into_iter().map(local).collect()
}

pub(crate) fn element(kind: &str) -> PyResult<ElementType> {
    ElementType::from_numpy(kind).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "elements of type {kind} cannot be stored\n  hint: bool, integers, float16/32/64, bfloat16 and complex64/128 can"
        ))
    })
}

pub(crate) fn section(raw: Option<RawSection>) -> Option<Section> {
    let triplet = |(start, stride, count, block)| Triplet { start, stride, count, block };
    raw.map(|dims| Section { dims: dims.into_iter().map(triplet).collect() })
}
