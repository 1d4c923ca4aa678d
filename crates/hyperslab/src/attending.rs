//! Calls whose arguments a rank may not have.

use crate::comm::Comm;
use crate::error::Error;

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
}
