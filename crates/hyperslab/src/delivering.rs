//! Packets from ranks to ranks, as a collective call.

use crate::comm::{Comm, Member};
use hyperslab_collective::{Compared, Delivery, Packets, undelivered};
use hyperslab_walk::trace::Kind;
use hyperslab_world::Fault;

impl Comm {
    /// That packets cannot be delivered here, if they cannot.
    pub(crate) fn undelivered(&self, what: &str) -> Option<Fault> {
        let why = match (self.servers(), self.driver().is_some()) {
            (0, false) => return None,
            (0, true) => "they are ranks of a simulated machine",
            _ => "the communicator has dedicated servers",
        };
        Some(undelivered(what, why).hint("open it on a communicator without them"))
    }

    /// Gives each rank the packets that others have for it, at most one of each, in the order of the ranks. Collective.
    pub(crate) fn deliver(
        &self,
        what: &str,
        compared: Compared,
        packets: Result<Packets, Fault>,
    ) -> Result<Packets, Fault> {
        self.check_usable().map_err(|fault| fault.context(what))?;
        if let Some(fault) = self.undelivered(what) {
            return Err(fault);
        }
        self.with_member(what, |member| {
            let Member { machine, party, .. } = member;
            let noted = self.begin_note(machine, party, what, Kind::Plan);
            let mut delivery = Delivery::new(what, compared, packets);
            let (mut result, mut steps) = (None, 0);
            let driven = party.drive(machine, &mut delivery, |delivery, world, party| {
                result = delivery.poll(world, party);
                if std::mem::replace(&mut steps, delivery.walked().steps) != steps {
                    self.line().moves();
                }
                result.is_some()
            });
            let result = driven.and_then(|()| result.expect("driven until it was there"));
            self.end_note(machine, party, noted, result.as_ref().err());
            result
        })
    }
}
