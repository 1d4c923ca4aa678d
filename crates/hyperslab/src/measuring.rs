//! The door for who measures this machine with the code that transfers run: agreements, walks of programs that nobody
//! planned, the store. `lab` does so; programs have no use for it.

use crate::comm::{Comm, Member};
use crate::course::run;
use hyperslab_plan::Program;
use hyperslab_walk::{Question, Walk};
use hyperslab_world::{Exposed, Fault, Store, World};

/// What may be measured on a communicator. All of it is collective but [`Measuring::store`] and [`Measuring::sends_on`].
pub struct Measuring<'a>(&'a Comm);

impl Comm {
    /// What may be measured on it.
    pub fn measuring(&self) -> Measuring<'_> {
        Measuring(self)
    }
}

impl Measuring<'_> {
    /// Agrees that all ranks do the same, and gives everybody what rank 0 decides.
    ///
    /// # Errors
    /// The same on all ranks, when they ask for different things, one has a fault, or one does not come.
    pub fn agree(&self, question: Question, decide: impl FnOnce() -> Result<Vec<u8>, Fault>) -> Result<Vec<u8>, Fault> {
        self.0.agree(question, decide)
    }

    /// Walks a program of this rank's. The outer error is one that ended the call on all ranks, the inner one this rank's.
    ///
    /// # Errors
    /// When the communicator becomes unusable.
    pub fn walk(&self, what: &str, program: Program, users: Vec<Exposed>) -> Result<Result<(), Fault>, Fault> {
        let mut member = self.0.member();
        let Member { machine, party, .. } = &mut *member;
        let walked = run(machine, party, (what, Walk::new(program, users)), self.0.line())?;
        Ok(walked.map(drop))
    }

    /// Does something with this rank's store.
    pub fn store<T>(&self, act: impl FnOnce(&mut dyn Store) -> T) -> T {
        act(self.0.member().machine.store())
    }

    /// Whether what is written is sent on to the disk before it must be there.
    pub fn sends_on(&self, sends: bool) {
        self.0.member().machine.sends_on(sends);
    }
}
