//! Why a rank cannot even begin a call.

use crate::error::Error;
use hyperslab_world::{Fault, FaultKind};

/// What an error must say when a call cannot even be made ready on this rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unready {
    /// Kind of the error.
    pub kind: FaultKind,
    /// What was being done, the outermost first.
    pub doing: Vec<String>,
    /// What went wrong.
    pub what: String,
    /// The stored object that it is about.
    pub object: Option<String>,
    /// What was expected of it, and what was found instead.
    pub mismatch: Option<(String, String)>,
    /// What the user may do about it.
    pub hint: String,
}

impl From<Unready> for Fault {
    fn from(why: Unready) -> Fault {
        let fault = Fault::new(why.kind, why.what).hint(why.hint);
        let fault = why.object.into_iter().fold(fault, Fault::about);
        let fault = why.mismatch.into_iter().fold(fault, |fault, (expected, found)| fault.expected(expected, found));
        why.doing.into_iter().rev().fold(fault, Fault::context)
    }
}

impl From<Error> for Unready {
    fn from(error: Error) -> Unready {
        let fault = Fault::from(error);
        let mismatch = fault.mismatch.as_ref().map(|both| (both.expected.clone(), both.found.clone()));
        Unready {
            kind: fault.kind,
            doing: fault.doing.clone(),
            what: fault.what.clone(),
            object: fault.object.clone(),
            mismatch,
            hint: fault.hint.clone(),
        }
    }
}
