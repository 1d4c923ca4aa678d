//! Reading by a key in brackets, as in `array[3, :10]`, where all that it needs is at rest.
//!
//! What may be in a key is said in Python, and asking for it takes longer than reading an element. Here only indices, slices and
//! `...` are looked at; whatever else there is, or is wrong, goes the long way.

use crate::any_target::AnyTarget;
use crate::arrays::usual;
use crate::errors::raise_alone;
use crate::interrupts::call_with;
use hyperslab::{LocalArray, Section, Triplet};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyAny, PyInt, PySlice, PySliceMethods, PyTuple, PyType};

/// An array's name, shape, and the type of its elements in memory.
pub(crate) type ArrayAsked<'py> = (String, Vec<u64>, Bound<'py, PyAny>);
/// An array, or an element.
pub(crate) type Read<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// Reads what a key selects of an array of this name, shape and type; `None` where it is not as plain as that, or not at rest.
///
/// # Errors
/// Only NumPy's own.
pub(crate) fn read<'py>(
    target: &AnyTarget,
    (name, shape, dtype): &ArrayAsked<'py>,
    key: &Bound<'py, PyAny>,
) -> Read<'py> {
    let Some(keyed) = Keyed::of(key, shape) else { return Ok(None) };
    let Some((array, into)) = keyed.made(dtype) else { return Ok(None) };
    let read = key.py().detach(|| target.arrays().read_at_rest(name, shape, &keyed.section, &into));
    if read { keyed.given(array).map(Some) } else { Ok(None) }
}

/// Reads elements of an array by their numbers, which are 8 B each; `None` where it is not at rest.
///
/// # Errors
/// NumPy's own, and what a handler of signals raises meanwhile.
pub(crate) fn read_elements<'py>(
    target: &AnyTarget,
    (name, shape, dtype): &ArrayAsked<'py>,
    numbers: &Bound<'py, PyAny>,
) -> Read<'py> {
    let Some(numbers) = usual(numbers, false).filter(|numbers| numbers.element.bytes() == 8) else { return Ok(None) };
    let count = numbers.shape.iter().product::<u64>();
    let whole = Keyed { section: Section { dims: vec![Triplet::whole(count)] }, dropped: vec![false] };
    let Some((array, into)) = whole.made(dtype) else { return Ok(None) };
    let read = call_with(
        dtype.py(),
        || {
            let bytes = numbers.memory.to_vec(0, count * 8);
            let (words, _) = bytes.as_chunks::<8>();
            let numbers: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
            Ok(target.arrays().read_elements_at_rest(name, shape, &numbers, &into))
        },
        raise_alone,
    )?;
    Ok(read.then_some(array))
}

/// What a key selects of an array.
struct Keyed {
    section: Section,
    /// Which dimensions go, since one index of each is read.
    dropped: Vec<bool>,
}

impl Keyed {
    /// If it is as plain as that.
    fn of(key: &Bound<'_, PyAny>, shape: &[u64]) -> Option<Keyed> {
        let mut keyed = Keyed { section: Section { dims: Vec::with_capacity(shape.len()) }, dropped: Vec::new() };
        let Ok(parts) = key.cast_exact::<PyTuple>() else {
            keyed.add(key, shape, 1)?;
            return keyed.completed(shape);
        };
        let dots = key.py().Ellipsis();
        if parts.iter_borrowed().filter(|part| part.is(&dots)).nth(1).is_some() {
            return None;
        }
        for part in parts.iter_borrowed() {
            keyed.add(&part, shape, parts.len())?;
        }
        keyed.completed(shape)
    }

    /// One of so many parts of a key.
    fn add(&mut self, part: &Bound<'_, PyAny>, shape: &[u64], parts: usize) -> Option<()> {
        let extent = || shape.get(self.dropped.len()).copied();
        let (triplet, dropped) = if let Ok(index) = part.cast_exact::<PyInt>() {
            (one(index.extract().ok()?, extent()?)?, true)
        } else if let Ok(slice) = part.cast_exact::<PySlice>() {
            let extent = extent()?;
            let found = slice.indices(extent.try_into().ok()?).ok()?;
            let (start, count) = (u64::try_from(found.start).ok()?, u64::try_from(found.slicelength).ok()?);
            let step = u64::try_from(found.step).ok().filter(|step| *step > 0)?;
            let range = Triplet { start, stride: count.max(1), count: 1, block: count };
            (if step == 1 { range } else { Triplet { start, stride: step, count, block: 1 } }, false)
        } else if part.is(part.py().Ellipsis()) {
            let left = (shape.len() + 1).checked_sub(parts)?;
            for _ in 0..left {
                self.whole(shape)?;
            }
            return Some(());
        } else if part.is_instance(integer(part.py())?).ok()? {
            (one(part.extract().ok()?, extent()?)?, true)
        } else {
            return None;
        };
        self.section.dims.push(triplet);
        self.dropped.push(dropped);
        Some(())
    }

    fn whole(&mut self, shape: &[u64]) -> Option<()> {
        self.section.dims.push(Triplet::whole(*shape.get(self.dropped.len())?));
        self.dropped.push(false);
        Some(())
    }

    /// With all of the dimensions that are left out; nothing where nothing is selected.
    fn completed(mut self, shape: &[u64]) -> Option<Keyed> {
        while self.dropped.len() < shape.len() {
            self.whole(shape)?;
        }
        (self.dropped.len() == shape.len() && self.section.dims.iter().all(|dim| !dim.is_empty())).then_some(self)
    }

    /// A new array for what is selected, and where its elements lie, dimension by dimension of the stored one.
    fn made<'py>(&self, dtype: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, LocalArray)> {
        static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = dtype.py();
        let lengths: Vec<u64> = self.section.dims.iter().map(Triplet::len).collect();
        let kept = lengths.iter().zip(&self.dropped).filter(|(_, dropped)| !**dropped).map(|(length, _)| *length);
        let mut extents: Vec<u64> = kept.collect();
        if extents.is_empty() {
            // An array without dimensions shows no buffer.
            extents.push(1);
        }
        let empty = EMPTY.import(py, "numpy", "empty").ok()?;
        let array = empty.call1((PyTuple::new(py, extents).ok()?, dtype)).ok()?;
        let local = usual(&array, true)?;
        let mut strides = local.strides.iter().copied();
        let along = |dropped: &bool| if *dropped { Some(0) } else { strides.next() };
        let strides = self.dropped.iter().map(along).collect::<Option<_>>()?;
        Some((array, LocalArray { shape: lengths, strides, ..local }))
    }

    /// What NumPy gives: an element, if there is no dimension left.
    fn given<'py>(&self, array: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if self.dropped.iter().all(|dropped| *dropped) { array.get_item(0) } else { Ok(array) }
    }
}

/// One index of an extent, perhaps counted from its end.
fn one(index: i64, extent: u64) -> Option<Triplet> {
    let start = if index < 0 { extent.checked_sub(index.unsigned_abs())? } else { index.unsigned_abs() };
    (start < extent).then_some(Triplet { start, stride: 1, count: 1, block: 1 })
}

/// NumPy's class of whole numbers.
fn integer(py: Python<'_>) -> Option<&Bound<'_, PyType>> {
    static INTEGER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    INTEGER.import(py, "numpy", "integer").ok()
}
