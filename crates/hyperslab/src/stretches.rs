//! Stretches of room for what ranks have, one behind another, of which each rank learns where its own begins.

use crate::comm::{Comm, Member};
use hyperslab_walk::RoomRequest;
use hyperslab_world::{Fault, FaultKind};

impl Comm {
    /// Where the bytes of this rank begin, if those of all ranks lie one behind another, those of rank 0 first. Collective,
    /// between two agreements of the same call, of which the second one tells where all end.
    pub(crate) fn stretch_of(&self, what: &str, bytes: u64) -> Result<u64, Fault> {
        if self.size() == 1 {
            return Ok(0);
        }
        if self.driver().is_some() {
            let text = "room cannot be divided among ranks of a simulated machine";
            return Err(Fault::new(FaultKind::Unsupported, text).context(what));
        }
        self.with_member(what, |member| {
            let Member { machine, party, .. } = member;
            let mut asking = RoomRequest::new(machine, party, bytes);
            let mut first = None;
            party.drive(machine, &mut asking, |asking, _, party| {
                first = asking.poll(party);
                first.is_some()
            })?;
            Ok(first.expect("driven until it was there"))
        })
    }
}
