//! What is looked at in storage without reading elements.

use crate::comm::Comm;
use crate::errors::raise_alone;
use crate::interrupts::call;
use crate::memory::Place;
use crate::options::{Name, OpenKeywords, mode};
use crate::target::Target;
use hyperslab::binding::{Locks, format_of};
use hyperslab::{File, Format};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::path::PathBuf;

/// Coordinates of chunks that are stored, one behind the other, and whether there may be more.
type RawUnits = (Vec<u64>, bool);

/// Which chunks of an array of a file are stored: at most so many, behind the last ones of before. Nothing where all of the array
/// lies in one stretch.
#[pyfunction]
pub(crate) fn stored_chunks(
    py: Python<'_>,
    target: &Target,
    name: &str,
    after: Option<Vec<u64>>,
    most: usize,
) -> PyResult<Option<RawUnits>> {
    let file = target.file()?;
    let found = py.detach(|| file.stored_chunks(name, after.as_deref(), most.max(1)));
    Ok(found.map_err(|error| raise_alone(py, error))?.map(|units| (units.coordinates, units.more)))
}

/// The format of something whose name says nothing, by its first bytes, as rank 0 finds it. Collective.
#[pyfunction]
pub(crate) fn format_there(
    py: Python<'_>,
    comm: &Comm,
    place: Place,
    mode_name: &str,
    keywords: OpenKeywords,
) -> PyResult<&'static str> {
    let (mode, options, comm) = (mode(py, mode_name)?, keywords.options(py)?, comm.0.clone());
    call(py, || format_of(&comm, &place.into(), mode, &options).map(Format::name))
}

/// Of the file system that a path leads to: its type, what is mounted, options, what other clients see of what this one does, between
/// whom locks hold, and a number that no other mount has.
type RawPlace = (String, String, String, &'static str, &'static str, u64);

/// What the system tells of a path, without a question to a file system that may not answer.
#[pyfunction]
pub(crate) fn place_seen(path: PathBuf) -> Option<RawPlace> {
    let seen = hyperslab::binding::place_seen(&path)?;
    let locks = match seen.locks {
        Locks::HostOnly => "host",
        Locks::Shared => "shared",
        Locks::EachHost => "each host",
    };
    let strength = seen.strength.map_or("coherent", |strength| strength.name());
    Some((seen.kind, seen.source, seen.options, strength, locks, seen.number))
}

/// Raises what each use of something raises that is closed.
#[pyfunction]
pub(crate) fn check_open(target: &Target) -> PyResult<()> {
    target.open().map(drop)
}

/// The texts of variable length that elements of arrays say: as bytes in HDF5, and else as characters, where what is no UTF-8 has
/// what Python calls surrogate escapes.
#[pyfunction]
pub(crate) fn texts<'py>(
    py: Python<'py>,
    target: &Target,
    of: Vec<(Name, Vec<u8>)>,
    together: bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let inner = target.open()?;
    let of: Vec<(&str, &[u8])> = of.iter().map(|(Name(name), elements)| (name.as_str(), &elements[..])).collect();
    let found = call(py, || inner.arrays().texts(&of, together))?;
    let are_characters = inner.file().is_none_or(File::is_netcdf4);
    let shown = |text: &Vec<u8>| match std::str::from_utf8(text) {
        Ok(characters) if are_characters => Ok(PyString::new(py, characters).into_any()),
        Err(_) if are_characters => PyBytes::new(py, text).call_method1("decode", ("utf-8", "surrogateescape")),
        _ => Ok(PyBytes::new(py, text).into_any()),
    };
    found.iter().map(shown).collect()
}
