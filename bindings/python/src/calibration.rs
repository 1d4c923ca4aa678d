//! Measuring this machine, and the profile of it.

use crate::comm::Comm;
use crate::errors::raise_alone;
use crate::interrupts::call;
use hyperslab::profile;
use hyperslab_lab::calibrate::{self, Alone, Effort, Together};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

fn effort(seconds: f64, nbytes: u64) -> PyResult<Effort> {
    let time = Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(Effort { time, bytes: nbytes })
}

fn unknown(what: &str) -> PyErr {
    PyValueError::new_err(format!("nothing is measured under the name '{what}'"))
}

/// Measures with this process alone; times as JSON.
#[pyfunction]
pub(crate) fn measure_alone(
    py: Python<'_>,
    what: &str,
    directory: PathBuf,
    seconds: f64,
    nbytes: u64,
) -> PyResult<String> {
    let effort = effort(seconds, nbytes)?;
    let what = Alone::ALL.into_iter().find(|it| it.name() == what).ok_or_else(|| unknown(what))?;
    let mut stopped = None;
    let mut interrupted = || Python::attach(|py| py.check_signals()).map_err(|error| stopped = Some(error)).is_err();
    let done = py.detach(|| calibrate::alone(what, &directory, effort, &mut interrupted));
    match (done, stopped) {
        (Err(_), Some(signal)) => Err(signal),
        (done, _) => done.map_err(|error| raise_alone(py, error)),
    }
}

/// Measures with all ranks, collectively; this rank's times as JSON.
#[pyfunction]
#[pyo3(signature = (comm, what, directory, seconds, nbytes, partner=None))]
pub(crate) fn measure_together(
    py: Python<'_>,
    comm: &Comm,
    what: &str,
    directory: PathBuf,
    seconds: f64,
    nbytes: u64,
    partner: Option<u32>,
) -> PyResult<String> {
    let effort = effort(seconds, nbytes)?;
    let what = Together::ALL.into_iter().find(|it| it.name() == what).ok_or_else(|| unknown(what))?;
    call(py, || calibrate::together(&comm.0, what, &directory, effort, partner))
}

/// Host, processor, system and cores of this machine, and the file system of a path.
#[pyfunction]
pub(crate) fn identity(directory: PathBuf) -> (String, String, String, u32, String) {
    let here = calibrate::host_identity();
    (here.host, here.processor, here.system, here.cores, calibrate::file_system_of(&directory))
}

/// The profile that holds where there is no other.
#[pyfunction]
pub(crate) fn default_profile() -> &'static str {
    profile::DEFAULT
}

/// Where the profile of this process is looked for, if at all.
#[pyfunction]
pub(crate) fn profile_path() -> Option<PathBuf> {
    profile::path()
}

/// The profile that holds on this machine, as TOML; what is wrong with it is told once.
#[pyfunction]
pub(crate) fn profile_in_use() -> String {
    profile::text_at_hand().to_string()
}

/// Name of the profile that holds on this machine, whether it is the default, and what is wrong with the one that was
/// looked for.
#[pyfunction]
pub(crate) fn profile_at_hand() -> (String, bool, Vec<String>) {
    let found = profile::load();
    (found.profile.name.clone(), found.is_default, found.warnings)
}
