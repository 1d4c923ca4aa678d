//! Calls that a rank cannot make as the others do: it has no arguments for them, or an interrupt or its end comes before.

use crate::comm::Comm;
use crate::crew;
use crate::error::Error;
use hyperslab_world::{Fault, FaultKind};

impl Comm {
    /// Makes a collective call with arguments that this rank has made `ready`, or could not: then it attends, and all ranks get
    /// its error instead of waiting for it.
    ///
    /// # Errors
    /// That of this rank, or of another, or of the call; the same on all ranks.
    pub fn attending<A, T>(
        &self,
        what: &str,
        ready: Result<A, Error>,
        call: impl FnOnce(A) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match ready {
            Ok(arguments) => call(arguments),
            Err(error) => Err(self.attend(what, error.into())),
        }
    }

    /// Lets all other ranks fail, at what they are at or come to next, since the program of this one ends with an error.
    pub fn end_with_error(&self, why: &str) {
        let why = why.to_string();
        self.without_waiting(move |machine, party| {
            let text = format!("rank {} ended its program with an error: {why}", party.rank());
            let fault = Fault::new(FaultKind::Peer, text).hint("look at what that rank printed");
            party.leave(machine, fault);
        });
    }

    /// Ends a call that other ranks are in, or come to, and that an interrupt kept this one from making.
    pub fn interrupt(&self, what: &str) {
        if self.size() > 1 {
            let what = what.to_string();
            self.without_waiting(move |machine, party| party.leave(machine, crew::interrupted(&what, party.rank())));
        }
    }

    /// Tells other ranks that the program of this one ends: who waits for it, or comes to, fails.
    pub fn depart(&self) {
        self.without_waiting(|machine, party| party.depart(machine));
    }
}
