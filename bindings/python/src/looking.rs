//! What is looked at in storage without reading elements.

use crate::errors::raise_alone;
use crate::target::Target;
use pyo3::prelude::*;

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

/// Raises what each use of something raises that is closed.
#[pyfunction]
pub(crate) fn check_open(target: &Target) -> PyResult<()> {
    target.open().map(drop)
}
