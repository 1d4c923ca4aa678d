//! The plainest calls: one array of NumPy's, held as a distribution says, of which a section moves at most, and no other option.
//!
//! What the public package asks of arguments before a call takes longer than a small call does, above all where ranks share
//! cores and none of that is in the processor's cache. Of these nothing has to be asked. Whatever is not as plain goes the
//! long way, on this rank alone: what ranks say to each other is the same.

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

impl Plain {
    /// The array of a call with these arguments, if they are so plain.
    pub(crate) fn of(
        name: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        writable: bool,
    ) -> Option<Plain> {
        let name = name.cast_exact::<PyString>().ok()?.to_str().ok()?;
        let core = dist.getattr(intern!(dist.py(), "_core")).ok()?;
        let held = core.cast_exact::<Distribution>().ok()?.get().0.clone();
        let local = usual(array, writable)?;
        Some(Plain { name: name.into(), held, local })
    }

    /// The same where a mapping of names to arrays is given, with the distribution behind it.
    pub(crate) fn of_mapping(
        name: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
    ) -> Option<Plain> {
        let Ok(mapping) = name.cast_exact::<PyDict>() else { return Plain::of(name, dist, array, false) };
        if mapping.len() != 1 || !(array.is_none() || dist.is_none()) {
            return None;
        }
        let (name, value) = mapping.iter().next()?;
        Plain::of(&name, if dist.is_none() { array } else { dist }, &value, false)
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
