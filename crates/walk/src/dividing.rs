//! Stretches of something that has no numbers yet, one for each rank, of which rank 0 gives each the next.

use crate::inbox::tag;
use crate::limits::{Awaited, Waits};
use crate::party::Party;
use hyperslab_world::{World, Writer};

/// One rank's part in dividing something: it says how much it needs, and learns where that begins. All ranks make one, in the
/// call that they opened last; an agreement after that says where all ends.
pub struct RoomRequest {
    call: u64,
    first: Option<u64>,
}

impl RoomRequest {
    /// Requests so many bytes. Those of rank 0 are the first.
    pub fn new(world: &mut dyn World, party: &mut Party, bytes: u64) -> RoomRequest {
        party.begin_part();
        let call = party.call();
        if party.rank() == 0 {
            party.give_room(world, bytes);
        } else if bytes > 0 {
            world.transport().signal(0, Writer::tagged(tag::WANTED).number(call).number(bytes).0);
        }
        RoomRequest { call, first: (party.rank() == 0 || bytes == 0).then_some(0) }
    }

    /// Where this rank's bytes begin, once that is known.
    pub fn poll(&mut self, party: &mut Party) -> Option<u64> {
        if let Some((first, _)) = party.inbox.take_given(self.call).pop() {
            party.progress();
            self.first = Some(first);
        }
        self.first
    }
}

impl Awaited for RoomRequest {
    fn waits(&self) -> Waits {
        Waits::default()
    }

    fn waits_for(&self) -> String {
        "waits for rank 0 to say where its part begins".into()
    }
}
