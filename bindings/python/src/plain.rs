//! The plainest calls: arrays of NumPy's, held as distributions say, of one of which a section moves at most, and no other
//! option.
//!
//! What the public package asks of arguments before a call takes longer than a small call does, and of hundreds of arrays longer
//! than they take to move, above all where ranks share cores and none of that is in the processor's cache. Of these nothing has
//! to be asked. Whatever is not as plain goes the long way, on this rank alone: what ranks say to each other is the same.

use crate::arrays::{RawPick, usual};
use crate::layout::Distribution;
use hyperslab::{File, LocalArray, Ownership, Section, Sections};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyString, PyTuple};
use std::sync::Arc;

/// One array.
pub(crate) struct Plain {
    pub(crate) name: String,
    pub(crate) held: Arc<Ownership>,
    pub(crate) local: LocalArray,
}

/// Who holds what, where a distribution says it.
fn spread(dist: &Bound<'_, PyAny>) -> Option<Arc<Ownership>> {
    let core = dist.getattr(intern!(dist.py(), "_core")).ok()?;
    Some(core.cast_exact::<Distribution>().ok()?.get().0.clone())
}

impl Plain {
    /// The array of a call with these arguments, if they are so plain.
    pub(crate) fn of(
        name: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        writable: bool,
    ) -> Option<Plain> {
        Plain::held(name, spread(dist)?, array, writable)
    }

    fn held(name: &Bound<'_, PyAny>, held: Arc<Ownership>, array: &Bound<'_, PyAny>, writable: bool) -> Option<Plain> {
        let name = name.cast_exact::<PyString>().ok()?.to_str().ok()?;
        Some(Plain { name: name.into(), held, local: usual(array, writable)? })
    }

    /// The arrays of a call that writes one, or a mapping of names to arrays, with one distribution behind it or a mapping of
    /// names to such.
    pub(crate) fn each(
        name: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
    ) -> Option<Vec<Plain>> {
        let Ok(arrays) = name.cast_exact::<PyDict>() else { return Some(vec![Plain::of(name, dist, array, false)?]) };
        let dist = match (array.is_none(), dist.is_none()) {
            (true, _) => dist,
            (false, true) => array,
            (false, false) => return None,
        };
        if arrays.is_empty() {
            return None;
        }
        let Ok(dists) = dist.cast_exact::<PyDict>() else {
            let held = spread(dist)?;
            return arrays.iter().map(|(name, array)| Plain::held(&name, held.clone(), &array, false)).collect();
        };
        let of = |(name, array): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Plain::of(&name, &dists.get_item(&name).ok()??, &array, false)
        };
        if dists.len() == arrays.len() { arrays.iter().map(of).collect() } else { None }
    }

    /// What moves of an array of a file, if the file has one of that name: all of it, or a section of slices and indices.
    pub(crate) fn selected(&self, file: &File, section: Option<&Bound<'_, PyAny>>) -> Option<Sections> {
        let shape = file.shape_of(&self.name)?;
        let Some(section) = section.filter(|section| !section.is_none()) else { return Some(Sections::Whole) };
        let picks = match section.cast_exact::<PyTuple>() {
            Ok(each) => each.iter().map(|pick| pick.extract().ok()).collect::<Option<Vec<RawPick>>>()?,
            Err(_) => vec![section.cast_exact::<PySlice>().ok()?.extract().ok()?],
        };
        let picks: Vec<_> = picks.into_iter().map(RawPick::pick).collect();
        let selected =
            if picks.len() == shape.len() { hyperslab::binding::select(&picks, Some(&shape)) } else { return None };
        selected.ok().map(|section: Section| Sections::Each(vec![section]))
    }
}
