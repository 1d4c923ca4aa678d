//! Machines that you do not have.

use crate::errors::raise_alone;
use hyperslab_lab::simulate;
use pyo3::prelude::*;

/// Runs a rehearsal: JSON in, JSON out.
#[pyfunction]
pub(crate) fn simulate_json(py: Python<'_>, spec: &str) -> PyResult<String> {
    let mut stopped = None;
    let mut interrupted = || Python::attach(|py| py.check_signals()).map_err(|error| stopped = Some(error)).is_err();
    let done = py.detach(|| simulate::simulate_json(spec, &mut interrupted));
    match (done, stopped) {
        (Err(_), Some(signal)) => Err(signal),
        (done, _) => done.map_err(|error| raise_alone(py, error)),
    }
}

/// How transfers of a rehearsal would be done, and at what price: JSON in, JSON out.
#[pyfunction]
pub(crate) fn plan_json(py: Python<'_>, spec: &str) -> PyResult<String> {
    py.detach(|| simulate::plan_json(spec)).map_err(|error| raise_alone(py, error))
}

/// Machines that come with hyperslab: name and profile.
#[pyfunction]
pub(crate) fn machines() -> Vec<(&'static str, &'static str)> {
    simulate::MACHINES.to_vec()
}

/// The numbers of a machine profile and where they come from, as JSON.
#[pyfunction]
pub(crate) fn profile_constants(py: Python<'_>, file: &str, text: &str) -> PyResult<String> {
    simulate::constants_json(file, text).map_err(|error| raise_alone(py, error))
}
