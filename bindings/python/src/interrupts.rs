//! Signals: Python's handlers run in the call that its main thread is in, and what they raise is what that call raises.
//!
//! Python runs handlers in its main thread alone. So an interrupt is noticed by nobody but the call that this thread is in,
//! and ends with it.

use crate::errors::raise;
use hyperslab::{Error, Request};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::cell::RefCell;

thread_local! {
    /// What a handler raised in the call that this thread is in.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// What the last call of this thread raised for a handler.
    static TRAVELS: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Lets Python handle signals; says whether one asks to stop, for as long as the call lasts.
pub(crate) fn asked() -> bool {
    if RAISED.with_borrow(Option::is_some) {
        return true;
    }
    // Handlers may make calls of their own: nothing is borrowed meanwhile.
    Python::attach(|py| py.check_signals()).map_err(stop).is_err()
}

/// The call that this thread is in ends with this.
pub(crate) fn stop(raised: PyErr) {
    RAISED.set(Some(raised));
}

/// What went wrong in code of Python's that is no call.
///
/// # Errors
/// What a handler of signals, or an exit, raised in it, or while it is looked at.
pub(crate) fn unless_of_a_handler(py: Python<'_>, error: PyErr) -> PyResult<PyErr> {
    if error.traceback(py).is_none() {
        return Ok(error);
    }
    let is_raised = || py.import("hyperslab._signals")?.call_method1("is_raised", (error.value(py),))?.extract();
    if !error.is_instance_of::<PyException>(py) || is_raised()? { Err(error) } else { Ok(error) }
}

/// Makes a call without the interpreter. Gives what came of it, and what a handler of signals raised meanwhile.
fn freely<T: Send>(py: Python<'_>, run: impl FnOnce() -> T + Send) -> (T, Option<PyErr>) {
    drop(TRAVELS.take());
    // A handler that makes a call is itself in the middle of one.
    let outer = RAISED.take();
    let done = py.detach(run);
    (done, RAISED.replace(outer))
}

/// The exception of a handler, as it is; what became of the call is a note of it.
fn travels(py: Python<'_>, raised: PyErr, told: Option<String>) -> PyErr {
    let value = raised.value(py);
    if let Some(told) = told {
        // Whoever forbids notes does without.
        let _ = value.call_method1("add_note", (told,));
    }
    TRAVELS.set(Some(value.clone().into_any().unbind()));
    raised
}

/// Makes a call without the interpreter. What goes wrong is raised by `raised`; what a handler of signals raises comes first.
pub(crate) fn call_with<T: Send>(
    py: Python<'_>,
    run: impl FnOnce() -> Result<T, Error> + Send,
    raised: impl FnOnce(Python<'_>, Error) -> PyErr,
) -> PyResult<T> {
    let (done, signal) = freely(py, run);
    match (done, signal) {
        (done, Some(signal)) => Err(travels(py, signal, done.err().map(|error| error.to_string()))),
        (Ok(done), None) => Ok(done),
        (Err(error), None) => Err(raised(py, error)),
    }
}

/// The same for a collective call: all ranks have its error.
pub(crate) fn call<T: Send>(py: Python<'_>, run: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    call_with(py, run, raise)
}

/// The same for what may wait, and fails by nothing else.
pub(crate) fn waiting<T: Send>(py: Python<'_>, run: impl FnOnce() -> T + Send) -> PyResult<T> {
    call(py, || Ok(run()))
}

/// Makes a request, which stops again where a handler of signals has raised something meanwhile: nobody gets it.
pub(crate) fn later(run: impl FnOnce() -> Request) -> Request {
    let request = run();
    if RAISED.with_borrow(Option::is_some) {
        request.stop();
    }
    request
}

/// Whether the last call of this thread raised this for a handler of signals: it is no failure of the call, and all other ranks
/// have what there is to tell them.
#[pyfunction]
pub(crate) fn is_of_a_signal(error: &Bound<'_, PyAny>) -> bool {
    TRAVELS.with_borrow(|last| last.as_ref().is_some_and(|last| last.is(error)))
}

/// Threads that work for one which waits for them.
#[pyclass(frozen, name = "Crew", module = "hyperslab._core")]
pub(crate) struct ThreadCrew(hyperslab::Crew);

#[pymethods]
impl ThreadCrew {
    #[new]
    fn new() -> ThreadCrew {
        ThreadCrew(hyperslab::Crew::new())
    }

    /// This thread belongs to it from now on.
    fn join(&self) {
        self.0.join();
    }

    /// Ends the calls that its threads are in, or come to, on all ranks.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }

    /// Whether one of its threads is in a call, or has a request under way.
    #[getter]
    fn at_work(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_at_work())
    }
}
