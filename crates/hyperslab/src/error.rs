//! The one public error.

use hyperslab_layout::{DistributionError, SectionError};
use hyperslab_world::{Fault, FaultKind};
use std::fmt;

/// Why a call failed. All ranks of a collective call get an error of the same kind and, unless a rank was lost, the
/// same text: what was asked, of what, what was expected and found, the cause, and often a hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Fault);

impl Error {
    /// That what was asked for cannot be, for the reason that the text gives.
    pub fn invalid(text: impl Into<String>) -> Error {
        Error(Fault::new(FaultKind::Invalid, text))
    }

    /// That what was asked for is not there in this version, or not for this format.
    pub fn unsupported(text: impl Into<String>) -> Error {
        Error(Fault::new(FaultKind::Unsupported, text))
    }

    /// That something named is not there.
    pub fn not_found(text: impl Into<String>) -> Error {
        Error(Fault::new(FaultKind::NotFound, text))
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Error {
        Error(self.0.hint(hint))
    }

    /// Kind of failure.
    pub fn kind(&self) -> FaultKind {
        self.0.kind
    }

    /// The message without its hint.
    pub fn message(&self) -> String {
        self.0.text()
    }

    /// The ranks that it befell, at most some of them; none where that is not known.
    pub fn ranks(&self) -> &[u32] {
        &self.0.ranks
    }

    /// What went wrong, without what was being done.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// What was being done, the outermost first.
    pub fn doing(&self) -> &[String] {
        &self.0.doing
    }

    /// The stored object that it is about: a path, or a name in a store.
    pub fn object(&self) -> Option<&str> {
        self.0.object.as_deref()
    }

    /// What was expected.
    pub fn expected(&self) -> Option<&str> {
        self.0.mismatch.as_ref().map(|mismatch| &*mismatch.expected)
    }

    /// What was found instead.
    pub fn found(&self) -> Option<&str> {
        self.0.mismatch.as_ref().map(|mismatch| &*mismatch.found)
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

    /// Whether this version, or the format, cannot do it.
    pub fn is_unsupported(&self) -> bool {
        self.0.kind == FaultKind::Unsupported
    }

    /// Whether something is there that must not be.
    pub fn is_exists(&self) -> bool {
        self.0.kind == FaultKind::Exists
    }

    /// Whether the storage refused: no space, no permission, an input or output error.
    pub fn is_storage(&self) -> bool {
        self.0.kind == FaultKind::Storage
    }

    /// Whether a user interrupted a rank.
    pub fn is_interrupted(&self) -> bool {
        self.0.kind == FaultKind::Interrupted
    }

    /// Whether another rank failed, or the link to it broke.
    pub fn is_peer(&self) -> bool {
        self.0.kind == FaultKind::Peer
    }

    /// Whether an earlier failure left the handle unusable.
    pub fn is_poisoned(&self) -> bool {
        self.0.kind == FaultKind::Poisoned
    }

    /// Whether another owner changes the same thing in place.
    pub fn is_busy(&self) -> bool {
        self.0.kind == FaultKind::Busy
    }

    /// Whether all is done and visible, but perhaps not durable.
    pub fn is_unsynced(&self) -> bool {
        self.0.kind == FaultKind::Unsynced
    }

    /// Whether it relied on a state that is not there any more; the same call may succeed.
    pub fn is_outdated(&self) -> bool {
        self.0.kind == FaultKind::Outdated
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error(fault)
    }
}

/// What cannot be spread or selected is the caller's fault, as every argument that does not fit.
macro_rules! invalid_from {
    ($($type:ty),*) => {$(
        impl From<$type> for Error {
            fn from(error: $type) -> Error {
                Error(Fault::said_by(FaultKind::Invalid, error))
            }
        }
    )*};
}

invalid_from!(DistributionError, SectionError);

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
    Fault::new(kind, error.cannot())
        .about(error.object())
        .expected(error.expected(), error.found())
        .hint(error.hint().unwrap_or_default())
}
