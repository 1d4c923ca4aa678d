//! What went wrong in the last call of a thread that failed, and the statuses that functions return.
#![forbid(unsafe_code)]

use hyperslab::{Error, FaultKind};
use std::cell::RefCell;

/// The status of a call that did what was asked.
pub(crate) const OK: i32 = 0;
/// That of a fault of this library.
const INTERNAL: i32 = 100;

thread_local! {
    static LAST: RefCell<Option<CallFailure>> = const { RefCell::new(None) };
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) enum CallFailure {
    /// As the library says.
    Known(Error),
    /// A fault of this library, which said this when it stopped.
    Internal(String),
}

/// The status for a kind of failure.
fn status(kind: FaultKind) -> i32 {
    match kind {
        FaultKind::Invalid => 1,
        FaultKind::Disagreement => 2,
        FaultKind::Timeout => 3,
        FaultKind::NotFound => 4,
        FaultKind::Exists => 5,
        FaultKind::Storage | FaultKind::Foreign => 6,
        FaultKind::Corrupt => 7,
        FaultKind::Interrupted => 8,
        FaultKind::Unsupported => 9,
        FaultKind::Peer => 10,
        FaultKind::Poisoned => 11,
        FaultKind::Busy => 12,
        FaultKind::Unsynced => 13,
        FaultKind::Outdated => 14,
    }
}

impl From<Error> for CallFailure {
    fn from(error: Error) -> CallFailure {
        CallFailure::Known(error)
    }
}

impl CallFailure {
    /// Keeps it for this thread to ask for, and gives its status.
    pub(crate) fn keep(self) -> i32 {
        let status = self.status();
        LAST.set(Some(self));
        status
    }

    fn status(&self) -> i32 {
        match self {
            CallFailure::Known(error) => status(error.kind()),
            CallFailure::Internal(_) => INTERNAL,
        }
    }

    /// What it says of that.
    pub(crate) fn said(&self, asked: ErrorField) -> String {
        let error = match (self, asked) {
            (CallFailure::Known(error), _) => error,
            (CallFailure::Internal(said), ErrorField::Message | ErrorField::Detail(1)) => {
                return format!("internal error: {said}");
            }
            (CallFailure::Internal(_), _) => return String::new(),
        };
        let found = match asked {
            ErrorField::Message => return error.message(),
            ErrorField::Hint => Some(error.hint()),
            ErrorField::Detail(1) => Some(error.what()),
            ErrorField::Detail(2) => error.object(),
            ErrorField::Detail(3) => error.expected(),
            ErrorField::Detail(4) => error.found(),
            ErrorField::Detail(_) => None,
        };
        found.unwrap_or_default().to_string()
    }
}

/// What is asked of a failure; details by their numbers in the header.
#[derive(Clone, Copy)]
pub(crate) enum ErrorField {
    Message,
    Hint,
    Detail(i32),
}

/// What this thread's last failure says of that; empty where there is none.
pub(crate) fn last(asked: ErrorField) -> String {
    LAST.with_borrow(|last| last.as_ref().map(|failure| failure.said(asked)).unwrap_or_default())
}

/// The status of this thread's last failure.
pub(crate) fn last_status() -> i32 {
    LAST.with_borrow(|last| last.as_ref().map_or(OK, CallFailure::status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_own_last_failure() {
        assert_eq!((last_status(), last(ErrorField::Message)), (OK, String::new()));
        let error = Error::invalid("no such thing").with_hint("leave it");
        assert_eq!(CallFailure::from(error).keep(), 1);
        assert_eq!((last(ErrorField::Message), last(ErrorField::Hint)), ("no such thing".into(), "leave it".into()));
        assert_eq!(last(ErrorField::Detail(1)), "no such thing");
        assert_eq!(last(ErrorField::Detail(9)), "");
        std::thread::spawn(|| assert_eq!(last_status(), OK)).join().unwrap();
        assert_eq!(CallFailure::Internal("a bug".into()).keep(), 100);
        assert_eq!(last(ErrorField::Message), "internal error: a bug");
    }
}
