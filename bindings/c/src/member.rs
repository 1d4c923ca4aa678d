//! How calls are made: what fails is kept for the caller, or ends the programs of all ranks; a panic goes no further.
#![forbid(unsafe_code)]

use crate::failure::{CallFailure, ErrorField, OK};
use crate::foreign::end_process;
use hyperslab::{Comm, Error};
use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long other ranks leave it to rank 0 to print what befell all.
const PRINTS_AFTER: Duration = Duration::from_secs(2);

/// A membership, and what becomes of its failures.
pub(crate) struct CMember {
    pub(crate) comm: Comm,
    aborts: AtomicBool,
}

/// Whether all ranks have a failure, or this one alone.
#[derive(Clone, Copy, PartialEq)]
enum FailureOf {
    All,
    Own,
}

impl CMember {
    pub(crate) fn new(comm: Comm) -> CMember {
        CMember { comm, aborts: AtomicBool::new(false) }
    }

    /// Whether failures end the programs of all ranks.
    pub(crate) fn set_aborts(&self, aborts: bool) {
        self.aborts.store(aborts, Ordering::Relaxed);
    }

    /// A collective call. What keeps this rank from making it is an error on all ranks.
    pub(crate) fn together<A, T>(
        &self,
        what: &str,
        ready: Result<A, Error>,
        call: impl FnOnce(A) -> Result<T, Error>,
    ) -> Result<T, CallFailure> {
        self.run(FailureOf::All, || self.comm.attending(what, ready, call))
    }

    /// A call of this rank alone.
    pub(crate) fn alone<T>(&self, call: impl FnOnce() -> Result<T, Error>) -> Result<T, CallFailure> {
        self.run(FailureOf::Own, call)
    }

    fn run<T>(&self, whose: FailureOf, call: impl FnOnce() -> Result<T, Error>) -> Result<T, CallFailure> {
        let ended = catch_unwind(AssertUnwindSafe(call));
        let (failure, whose) = match ended {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => (CallFailure::from(error), whose),
            Err(panic) => {
                let failure = CallFailure::Internal(said(&*panic));
                // The others are in the call, or come to it.
                self.comm.end_with_error(&failure.said(ErrorField::Message));
                (failure, FailureOf::Own)
            }
        };
        if self.aborts.load(Ordering::Relaxed) {
            self.abort(&failure, whose);
        }
        Err(failure)
    }

    /// Prints a failure, and ends this program; its launcher ends those of the others.
    fn abort(&self, failure: &CallFailure, whose: FailureOf) -> ! {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        if whose == FailureOf::All && rank > 0 {
            // What befell all is printed once, unless rank 0 is gone.
            std::thread::sleep(PRINTS_AFTER);
        }
        let (message, hint) = (failure.said(ErrorField::Message), failure.said(ErrorField::Hint));
        let shown = if hint.is_empty() { message.clone() } else { format!("{message}\n  hint: {hint}") };
        // By one call, since other ranks print, too; and a program may have closed its error output.
        let _ = std::io::stderr().write_all(format!("hyperslab: rank {rank} of {size}: {shown}\n").as_bytes());
        if whose == FailureOf::Own {
            self.comm.end_with_error(&message);
        }
        end_process(1)
    }
}

/// What a panic says.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic").to_string()
}

/// The border that every function of the header is: the status of what it does.
pub(crate) fn border(run: impl FnOnce() -> Result<(), CallFailure>) -> i32 {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => OK,
        Ok(Err(failure)) => failure.keep(),
        Err(panic) => CallFailure::Internal(said(&*panic)).keep(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::last;

    #[test]
    fn a_panic_stays_inside_and_other_ranks_get_it() {
        let [first, second] = <[Comm; 2]>::try_from(Comm::threads(2)).ok().unwrap();
        let panicking = std::thread::spawn(move || {
            let member = CMember::new(first);
            let status = border(|| member.together("a call", Ok(()), |()| -> Result<(), Error> { panic!("a bug") }));
            (status, last(ErrorField::Message))
        });
        let member = CMember::new(second);
        let ended = member.together("a call", Ok(()), |()| member.comm.compare("a call", Vec::new()));
        assert!(ended.unwrap_err().said(ErrorField::Message).contains("internal error: a bug"));
        assert_eq!(panicking.join().unwrap(), (100, "internal error: a bug".to_string()));
        assert_eq!(border(|| panic!("{}", 1)), 100);
    }

    #[test]
    fn a_wrong_argument_of_one_rank_is_an_error_on_all() {
        let ranks: Vec<_> = Comm::threads(3)
            .into_iter()
            .map(|comm| {
                std::thread::spawn(move || {
                    let ready = if comm.rank() == 1 { Err(Error::invalid("wrong")) } else { Ok(()) };
                    let member = CMember::new(comm);
                    let call = |()| member.comm.compare("a call", Vec::new());
                    border(|| member.together("a call", ready, call))
                })
            })
            .collect();
        assert_eq!(ranks.into_iter().map(|rank| rank.join().unwrap()).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
