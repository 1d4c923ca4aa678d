//! Errors as exceptions of `hyperslab.errors`.

use hyperslab::FaultKind;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

const NAMES: [(FaultKind, &str); 15] = [
    (FaultKind::Invalid, "InvalidError"),
    (FaultKind::Disagreement, "DisagreementError"),
    (FaultKind::Timeout, "TimeoutError"),
    (FaultKind::NotFound, "NotFoundError"),
    (FaultKind::Exists, "ExistsError"),
    (FaultKind::Storage, "StorageError"),
    (FaultKind::Corrupt, "CorruptError"),
    (FaultKind::Interrupted, "InterruptedError"),
    (FaultKind::Unsupported, "UnsupportedError"),
    (FaultKind::Peer, "PeerError"),
    (FaultKind::Poisoned, "PoisonedError"),
    (FaultKind::Busy, "BusyError"),
    (FaultKind::Unsynced, "UnsyncedError"),
    (FaultKind::Outdated, "OutdatedError"),
    (FaultKind::Foreign, "StorageError"),
];

/// The kind of failure with this exception name.
pub(crate) fn kind(name: &str) -> FaultKind {
    NAMES.iter().find(|n| n.1 == name).map_or(FaultKind::Peer, |n| n.0)
}

/// Raises an error that all ranks have.
pub(crate) fn raise(py: Python<'_>, error: hyperslab::Error) -> PyErr {
    let raised = raise_alone(py, error);
    // A context that ends with it knows by this mark that all ranks have it.
    match raised.value(py).setattr("_collective", true) {
        Ok(()) => raised,
        Err(error) => error,
    }
}

/// Raises an error of this rank alone as the exception for its kind.
pub(crate) fn raise_alone(py: Python<'_>, error: hyperslab::Error) -> PyErr {
    let text = error.to_string();
    let name = NAMES.iter().find(|n| n.0 == error.kind()).map_or("Error", |n| n.1);
    let class = py.import("hyperslab.errors").and_then(|module| module.getattr(name));
    match class.and_then(|class| with_fields(class.call1((text,))?, &error)) {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Says by themselves the things that the message says.
fn with_fields<'py>(value: Bound<'py, PyAny>, error: &hyperslab::Error) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    value.setattr("what", error.what())?;
    value.setattr("doing", PyTuple::new(py, error.doing())?)?;
    value.setattr("where", error.object())?;
    value.setattr("expected", error.expected())?;
    value.setattr("found", error.found())?;
    value.setattr("ranks", PyTuple::new(py, error.ranks())?)?;
    value.setattr("hint", error.hint())?;
    Ok(value)
}

/// What keeps a rank from making a call, as the public package tells it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RawUnready {
    /// Name of the class of the error.
    name: String,
    doing: Vec<String>,
    what: String,
    #[pyo3(item("where"))]
    object: Option<String>,
    expected: Option<String>,
    found: Option<String>,
    hint: String,
}

impl From<RawUnready> for hyperslab::binding::Unready {
    fn from(raw: RawUnready) -> hyperslab::binding::Unready {
        let RawUnready { name, doing, what, object, expected, found, hint } = raw;
        hyperslab::binding::Unready { kind: kind(&name), doing, what, object, mismatch: expected.zip(found), hint }
    }
}

/// What cannot be pickled, and what to do.
pub(crate) fn not_pickled(what: &str, hint: &str) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(format!("{what} cannot be pickled\n  hint: {hint}"))
}
