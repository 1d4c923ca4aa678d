//! Who carries out the calls of a rank whose machine is not this one.
//!
//! What opens, writes, publishes and reads is the same code whoever does; a simulator thus runs whole programs. Of what this
//! machine is, such a rank knows nothing: names come from its driver, prices from the profile of the machine that it is on.

use hyperslab_collective::{Arguments, Begin, Done};
use hyperslab_plan::profile::Profile;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, Location, Names, Root, Work};
use std::sync::Arc;

/// Carries out the collective calls of one rank, each to its end.
pub trait Driver: Send + Sync {
    /// Names at a place.
    ///
    /// # Errors
    /// When there is no such place.
    fn names(&self, location: &Location) -> Result<Arc<dyn Names>, Fault>;
    /// An agreement, for which rank 0 decides here and now what all others get.
    ///
    /// # Errors
    /// The one failure that all ranks get; so in all that follow.
    fn decide(&self, question: Question, decide: &mut dyn FnMut() -> Result<Vec<u8>, Fault>) -> Result<Vec<u8>, Fault>;
    /// An agreement, for which rank 0 does something in storage.
    ///
    /// # Errors
    /// As above.
    fn agree(&self, question: Question, begin: Begin) -> Result<Vec<u8>, Fault>;
    /// A call that moves arrays.
    ///
    /// # Errors
    /// As above.
    fn transfer(&self, arguments: Arguments) -> Result<Done, Fault>;
    /// A call that makes durable what was written below a root, and in which rank 0 publishes.
    ///
    /// # Errors
    /// As above.
    fn end(&self, question: Question, below: Option<Root>, publish: Option<(Work, bool)>) -> Result<(), Fault>;
    /// Work of this rank with names, for which nobody waits.
    fn later(&self, work: Box<dyn FnOnce() + Send>);
}

/// A rank whose machine is not this one.
pub(crate) struct Elsewhere {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) profile: Arc<Profile>,
}
