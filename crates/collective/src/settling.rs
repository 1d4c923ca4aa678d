//! Closes what this rank wrote before others are told that it did: a server may accept bytes and say only at their close that
//! it could not keep them.

use hyperslab_walk::Waits;
use hyperslab_world::{Fault, Request, World};

/// That, under way.
#[derive(Default)]
pub(crate) struct Settling {
    asked: bool,
}

impl Settling {
    /// Where closing may say something that nobody knows yet: of all that was written, or of what does not stay open.
    pub(crate) fn owed(world: &mut dyn World, released: bool) -> Option<Settling> {
        world.store().owes(released).then(Settling::default)
    }

    /// Goes on; gives what closing said once it is over.
    pub(crate) fn poll(&mut self, world: &mut dyn World) -> Option<Result<(), Fault>> {
        if !std::mem::replace(&mut self.asked, true) {
            world.store().submit(0, Request::Sync { below: [].into() });
        }
        let mut ended = Vec::new();
        world.store().poll(&mut ended);
        ended.pop().map(|(_, result)| result.map(drop))
    }

    pub(crate) fn waits(&self) -> Waits {
        Waits { storage: true, ..Waits::default() }
    }

    pub(crate) fn waits_for(&self) -> String {
        "waits for files that it wrote to be closed".into()
    }
}
