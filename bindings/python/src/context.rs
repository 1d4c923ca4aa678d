//! Contexts: what `with` enters and leaves.

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// The base of what is used as a context. Python runs handlers of signals where a function of Python's begins, so in one what is
/// entered could still be kept from its caller by an exception, and what is left could stay open. Here are none.
///
/// A class has `_exit(error)`, which ends its context, and `_give_up(error)`, which ends it where that raised.
#[pyclass(subclass, frozen, name = "Context", module = "hyperslab._core")]
pub(crate) struct Entered;

#[pymethods]
impl Entered {
    #[new]
    #[pyo3(signature = (*_args, **_keywords))]
    fn new(_args: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Entered {
        Entered
    }

    /// Use it as a context.
    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// End it; after an exception on this rank, what is not published is given up.
    #[pyo3(signature = (_kind, error, _trace, /))]
    fn __exit__(
        this: &Bound<'_, Self>,
        _kind: &Bound<'_, PyAny>,
        error: Option<&Bound<'_, PyBaseException>>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let Err(raised) = this.call_method1("_exit", (error,)) else { return Ok(()) };
        this.call_method1("_give_up", (raised.value(this.py()),))?;
        Err(raised)
    }
}
