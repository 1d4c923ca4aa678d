//! Memberships in communicators, and reports.

use crate::errors::{RawUnready, not_pickled, raise};
use crate::interrupts::{asked, call, stop, unless_of_a_handler, waiting};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// One rank of a communicator.
#[pyclass(frozen, weakref, module = "hyperslab._core")]
#[derive(Clone)]
pub(crate) struct Comm(pub(crate) hyperslab::Comm);

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX / 4)
}

impl Comm {
    fn ready(comm: hyperslab::Comm) -> Comm {
        comm.interrupted_by(Box::new(asked));
        Comm(comm)
    }

    /// Adds a new membership to a list, also where a handler of signals raises something as soon as the other ranks have theirs.
    fn connected(
        py: Python<'_>,
        made: &Bound<'_, PyList>,
        connect: impl FnOnce() -> Result<hyperslab::Comm, hyperslab::Error> + Send,
    ) -> PyResult<()> {
        let mut connected = None;
        let ended = call(py, || connect().map(|comm| connected = Some(comm)));
        connected.map_or(Ok(()), |comm| made.append(Comm::ready(comm)))?;
        ended
    }
}

/// How many ranks a launcher started, at least, and by what that is known; nothing where it is one, or nothing tells.
#[pyfunction]
pub(crate) fn ranks_of_launcher() -> Option<(u32, String)> {
    hyperslab::binding::launched().map(|launched| (launched.ranks, launched.known))
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

    /// Adds to a list a duplicate of an MPI communicator, by its Fortran handle.
    #[staticmethod]
    fn mpi(py: Python<'_>, fortran: i32, path: Option<String>, limit: f64, made: &Bound<'_, PyList>) -> PyResult<()> {
        let path = path.as_deref();
        Comm::connected(py, made, || hyperslab::Comm::mpi(fortran, path, seconds(limit), &mut asked))
    }

    /// Threads of this process, some of which serve the others.
    #[staticmethod]
    fn threads_with_servers(py: Python<'_>, ranks: u32, servers: Vec<u32>) -> PyResult<Vec<Comm>> {
        let comms = hyperslab::Comm::threads_with_servers(ranks, &servers).map_err(|error| raise(py, error))?;
        Ok(comms.into_iter().map(Comm::ready).collect())
    }

    /// Compares on all ranks which of them serve the others. Then adds to a list a duplicate of the communicator of mpi4py that
    /// this one is of, and one of mpi4py that joins the clients, or the servers.
    ///
    /// No handler of signals runs from when all have agreed until they have both, for at most a grace: the others would wait
    /// in MPI, where nobody can tell them.
    fn divide(
        &self,
        py: Python<'_>,
        what: &str,
        of: (Bound<'_, PyAny>, Option<String>),
        servers: Vec<u32>,
        limits: (f64, f64),
        made: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let ((comm, path), (limit, grace)) = (of, limits);
        let fortran: i32 = comm.call_method0("py2f")?.extract()?;
        let rank: u32 = comm.getattr("rank")?.extract()?;
        let connect = || {
            self.0.compare(what, vec![("ranks that serve".into(), format!("{servers:?}"))])?;
            let agreed = Instant::now();
            let mut gives_up = || agreed.elapsed() > seconds(grace) && asked();
            hyperslab::Comm::mpi_with_servers(fortran, path.as_deref(), &servers, seconds(limit), &mut gives_up)
        };
        let before = made.len();
        let connected = Comm::connected(py, made, connect);
        if made.len() > before {
            made.append(comm.call_method1("Split", (u8::from(servers.contains(&rank)), rank))?)?;
        }
        connected
    }

    /// Number of dedicated servers.
    #[getter]
    fn servers(&self) -> u32 {
        self.0.servers()
    }

    /// Serves the clients until they end the service.
    fn serve(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.0.serve())
    }

    /// Ends the service of dedicated servers.
    fn end_service(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.0.end_service())
    }

    /// Leaves dedicated servers, and the other clients, with an error.
    fn leave_service(&self, py: Python<'_>, why: &str) -> PyResult<()> {
        waiting(py, || self.0.leave_service(why))
    }

    /// Compares names and values on all ranks.
    fn compare(&self, py: Python<'_>, what: &str, fields: Vec<(String, String)>) -> PyResult<()> {
        call(py, || self.0.compare(what, fields))
    }

    #[getter]
    fn rank(&self, py: Python<'_>) -> u32 {
        py.detach(|| self.0.rank())
    }

    #[getter]
    fn size(&self, py: Python<'_>) -> u32 {
        py.detach(|| self.0.size())
    }

    #[getter]
    fn description(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.description())
    }

    /// Whether it is alone to MPI, but not to its launcher.
    #[getter]
    fn is_lone(&self) -> bool {
        self.0.is_lone()
    }

    /// What to warn of, once, when something is opened to be read by a process that is alone to MPI, but not to its launcher.
    fn lone_reader(&self) -> Option<String> {
        self.0.lone_reader()
    }

    /// Whether a handler of signals interrupts a call of this thread on it.
    #[getter]
    fn interrupted(&self) -> bool {
        self.0.is_interrupted()
    }

    /// Calls and requests that this rank has begun on it.
    #[getter]
    fn begun(&self) -> u64 {
        self.0.begun()
    }

    #[getter]
    fn poisoned(&self, py: Python<'_>) -> PyResult<bool> {
        waiting(py, || self.0.is_poisoned())
    }

    #[getter]
    fn agreements(&self, py: Python<'_>) -> PyResult<u64> {
        waiting(py, || self.0.agreements())
    }

    /// Calls `observer(done, total)` [B] now and then while a transfer runs.
    fn observed_by(&self, py: Python<'_>, observer: Option<Py<PyAny>>) -> PyResult<()> {
        let wrap = |observer: Py<PyAny>| -> hyperslab::binding::Observer {
            Box::new(move |done, total| {
                // What goes wrong in a progress bar is not worth a transfer; what a handler of signals raises there is.
                Python::attach(|py| {
                    let Err(error) = observer.call1(py, (done, total)) else { return };
                    if let Err(raised) = unless_of_a_handler(py, error) {
                        stop(raised);
                    }
                });
            })
        };
        let observer = observer.map(wrap);
        waiting(py, || self.0.observed_by(observer))
    }

    /// Takes part in a call that this rank cannot make; raises the error that all ranks get.
    fn attend(&self, py: Python<'_>, what: &str, why: RawUnready) -> PyErr {
        let attended: PyResult<()> = call(py, || Err(self.0.attend(what, why.into())));
        attended.expect_err("it ends with an error")
    }

    /// Records all further calls into a directory, or no more.
    #[pyo3(signature = (directory))]
    fn record(&self, py: Python<'_>, directory: Option<PathBuf>) -> PyResult<()> {
        call(py, || self.0.record(directory.as_deref()))
    }

    /// Whether calls are recorded.
    #[getter]
    fn recorded(&self) -> bool {
        self.0.is_recorded()
    }

    /// Records what the application did between two moments of the monotonic clock [ns].
    fn note(&self, what: &str, begin: u64, end: u64, moved: u64) {
        self.0.note(what, (begin, end), moved);
    }

    /// Whether requests move while their ranks compute.
    #[getter]
    fn moves_alone(&self) -> bool {
        self.0.moves_alone()
    }

    /// Waits for all requests at the end of the process or thread; gives up those that do not move for so long [s].
    /// Returns the errors that nobody was told of, and the number of calls given up.
    fn finish(&self, py: Python<'_>, patience: f64) -> PyResult<(Vec<Py<PyAny>>, usize)> {
        let (failures, given_up) = waiting(py, || self.0.finish(seconds(patience)))?;
        Ok((failures.into_iter().map(|error| raise(py, error).into_value(py).into_any()).collect(), given_up))
    }

    /// Lets all other ranks fail, since the program of this one ends with an error.
    fn leave(&self, py: Python<'_>, why: &str) {
        py.detach(|| self.0.end_with_error(why));
    }

    /// Ends a call that others are in, or come to, and that a signal kept this rank from making.
    fn interrupt(&self, py: Python<'_>, what: &str) {
        py.detach(|| self.0.interrupt(what));
    }

    /// Tells other ranks that the program of this one ends.
    fn depart(&self, py: Python<'_>) {
        py.detach(|| self.0.depart());
    }

    /// Ends the membership on all ranks.
    fn close(&self, py: Python<'_>, limit: f64) -> PyResult<()> {
        call(py, || self.0.close(seconds(limit)))
    }
}

/// A call under way.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Request(pub(crate) hyperslab::Request);

#[pymethods]
impl Request {
    /// Waits for the end.
    fn wait(&self, py: Python<'_>) -> PyResult<Report> {
        call(py, || self.0.wait()).map(|(_, report)| Report(report))
    }

    /// Whether it is over.
    fn test(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.test())
    }
}

/// What a transfer did.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Report(pub(crate) hyperslab::Report);

#[pymethods]
impl Report {
    /// Refuses to be pickled.
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a report", "pickle str(report), or the fields that you want"))
    }

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
        self.0.parameters().servers.to_vec()
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
    fn predicted(&self) -> f64 {
        self.0.predicted().iter().sum()
    }

    #[getter]
    fn phases(&self) -> Vec<(&'static str, f64, f64)> {
        self.0.phases().to_vec()
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

    /// For notebooks: a table.
    fn _repr_html_(this: &Bound<'_, Self>) -> PyResult<String> {
        this.py().import("hyperslab._drawing")?.call_method1("draw_report", (this,))?.extract()
    }

    fn __repr__(&self) -> String {
        format!("<Report {}>", self.0)
    }
}
