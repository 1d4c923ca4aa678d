//! Memberships in communicators, and reports.

use crate::errors::{INTERRUPTED, kind, raise};
use hyperslab::Unready;
use pyo3::prelude::*;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One rank of a communicator.
#[pyclass(frozen, module = "hyperslab._core")]
#[derive(Clone)]
pub(crate) struct Comm(pub(crate) hyperslab::Comm);

/// Lets Python handle signals; says whether one asks to stop.
fn interrupted() -> bool {
    let stop = Python::attach(|py| py.check_signals().is_err());
    if stop {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    stop
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX / 4)
}

impl Comm {
    fn ready(comm: hyperslab::Comm) -> Comm {
        comm.interrupted_by(Box::new(interrupted));
        Comm(comm)
    }
}

#[pymethods]
impl Comm {
    /// This process alone.
    #[staticmethod]
    fn alone() -> Comm {
        Comm::ready(hyperslab::Comm::alone())
    }

    /// Threads of this process.
    #[staticmethod]
    fn threads(ranks: u32) -> Vec<Comm> {
        hyperslab::Comm::threads(ranks).into_iter().map(Comm::ready).collect()
    }

    /// A duplicate of an MPI communicator, by its Fortran handle.
    #[staticmethod]
    fn mpi(py: Python<'_>, fortran: i32, path: Option<String>, limit: f64) -> PyResult<Comm> {
        let connect = || hyperslab::Comm::mpi(fortran, path.as_deref(), seconds(limit), &mut interrupted);
        py.detach(connect).map(Comm::ready).map_err(|error| raise(py, error))
    }

    #[getter]
    fn rank(&self) -> u32 {
        self.0.rank()
    }

    #[getter]
    fn size(&self) -> u32 {
        self.0.size()
    }

    #[getter]
    fn description(&self) -> String {
        self.0.description()
    }

    #[getter]
    fn poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    #[getter]
    fn agreements(&self) -> u64 {
        self.0.agreements()
    }

    /// Calls `observer(done, total)` [B] now and then while a transfer runs.
    fn observed_by(&self, observer: Option<Py<PyAny>>) {
        let wrap = |observer: Py<PyAny>| -> hyperslab::Observer {
            Box::new(move |done, total| {
                // What goes wrong in a progress bar is not worth a transfer.
                let _ = Python::attach(|py| observer.call1(py, (done, total)).is_ok());
            })
        };
        self.0.observed_by(observer.map(wrap));
    }

    /// Takes part in a call that this rank cannot make; raises the error that all ranks get.
    fn attend(&self, py: Python<'_>, what: &str, name: &str, text: String, hint: String) -> PyErr {
        let why = Unready { kind: kind(name), text, hint };
        let error = py.detach(|| self.0.attend(what, why));
        raise(py, error)
    }

    /// Ends the membership on all ranks.
    fn close(&self, py: Python<'_>, limit: f64) -> PyResult<()> {
        py.detach(|| self.0.close(seconds(limit))).map_err(|error| raise(py, error))
    }
}

/// What a transfer did.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Report(pub(crate) hyperslab::Report);

#[pymethods]
impl Report {
    #[getter]
    fn what(&self) -> &str {
        self.0.what()
    }

    #[getter]
    fn strategy(&self) -> &'static str {
        self.0.strategy().name()
    }

    #[getter]
    fn servers(&self) -> Vec<u32> {
        self.0.parameters().servers.clone()
    }

    #[getter]
    fn subchunk_bytes(&self) -> u64 {
        self.0.parameters().subchunk_bytes
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds()
    }

    #[getter]
    fn bandwidth(&self) -> f64 {
        self.0.bandwidth()
    }

    #[getter]
    fn buffer_bytes(&self) -> u64 {
        self.0.walked().buffer_bytes
    }

    #[getter]
    fn store_bytes(&self) -> u64 {
        self.0.walked().store_bytes
    }

    #[getter]
    fn store_calls(&self) -> u64 {
        self.0.walked().store_calls
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Report {}>", self.0)
    }
}
