//! The one public error.

use hyperslab_world::{Fault, FaultKind};
use std::fmt;

/// Why a call failed. All ranks of a collective call get an error of the same kind and, unless a rank was lost, the
/// same text: what was asked, of what, what was expected and found, the cause, and often a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Fault);

impl Error {
    pub(crate) fn invalid(text: impl Into<String>) -> Error {
        Error(Fault::new(FaultKind::Invalid, text))
    }

    /// Kind of failure.
    pub fn kind(&self) -> FaultKind {
        self.0.kind
    }

    /// The message without its hint.
    pub fn message(&self) -> &str {
        &self.0.text
    }

    /// What the user may do about it; empty when there is nothing to say.
    pub fn hint(&self) -> &str {
        &self.0.hint
    }

    /// Whether the caller asked for something impossible.
    pub fn is_invalid(&self) -> bool {
        matches!(self.0.kind, FaultKind::Invalid | FaultKind::Unsupported)
    }

    /// Whether the ranks asked for different things.
    pub fn is_disagreement(&self) -> bool {
        self.0.kind == FaultKind::Disagreement
    }

    /// Whether a limit on waiting was reached.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == FaultKind::Timeout
    }

    /// Whether a named object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == FaultKind::NotFound
    }

    /// Whether stored bytes are not what was written.
    pub fn is_corrupt(&self) -> bool {
        self.0.kind == FaultKind::Corrupt
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error(fault)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        error.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

/// A format error as a fault.
pub(crate) fn format_fault(error: hyperslab_format::Error) -> Fault {
    let kind = if error.is_unsupported() {
        FaultKind::Unsupported
    } else if error.is_invalid() {
        FaultKind::Invalid
    } else {
        FaultKind::Corrupt
    };
    let whole = error.to_string();
    match whole.split_once("\nhint: ") {
        Some((text, hint)) => Fault::new(kind, text).hint(hint),
        None => Fault::new(kind, whole),
    }
}
