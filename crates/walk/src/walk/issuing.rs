//! What steps become: work for the processor, and requests to storage.

use super::{Walk, join};
use crate::party::Party;
use crate::room::PlacedChunk;
use hyperslab_layout::{CodecError, ElementType, IndexSet, Kind, Region, View, nests};
use hyperslab_pack::{Memory, fill};
use hyperslab_plan::Action;
use hyperslab_world::{Computation, Cost, Exposed, Fault, FaultKind, Moves, Request, Root, World};
use std::sync::Arc;

impl Walk {
    /// Writes encoded chunks that wait for room, as far as there is some. After a failure they are let go.
    pub(super) fn put_where_there_is_room(&mut self, world: &mut dyn World, party: &mut Party) {
        if self.fault.is_some() {
            for ((lane, id), _) in std::mem::take(&mut self.room.waiting) {
                self.finish(party, lane, id, Ok(()));
            }
        }
        while let Some(((lane, id), at)) = self.room.next(world, party) {
            let Action::Put { object, register, chunk: Some(chunk), .. } =
                self.lanes[lane].pending[&id].step.action.clone()
            else {
                unreachable!("only chunks that share an object wait for room")
            };
            let content = self.registers.remove(&register).expect("an encode filled the register");
            let bytes = content.len() as u64;
            self.room.placed.push(PlacedChunk { chunk, at, bytes });
            let region = Region { dims: [IndexSet::range(0, bytes)].into_iter().collect() };
            let bytes_from =
                |base: u64| Arc::new(View::held(&region, base as i64, &[1], ElementType::native(Kind::UInt8)));
            let (here, there) = (bytes_from(0), bytes_from(at));
            let moves = Moves { region, memory: Memory::from_vec(content), here, there };
            let request = Request::Write { object, moves, direct: false, durability: self.durability };
            self.at_store += 1;
            world.store().submit(join(lane, id), request);
        }
    }

    pub(super) fn computation(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        action: Action,
    ) -> Result<Computation, Fault> {
        match action {
            Action::Copy { region, from, to } => {
                let mut exposed =
                    |place| self.place(world, party, place).map(|(memory, view)| Exposed { memory, view });
                Ok(Computation::Copy { region, from: exposed(&from)?, to: exposed(&to)? })
            }
            Action::Fill { region, at, value } => {
                let (memory, view) = self.place(world, party, &at)?;
                Ok(filling(region, memory, view, value))
            }
            Action::Encode { region, from, codec, .. } => {
                let (memory, view) = self.place(world, party, &from)?;
                let bytes = region.elements() * view.element.bytes();
                let cost = Cost::Code { bytes, compresses: codec.compresses() };
                let job = move || codec.encode(&memory.to_vec(view.base as u64, bytes), "a chunk").map_err(coding);
                Ok(Computation::Other(cost, Box::new(job)))
            }
            Action::Decode { register, object, codec, region, to, absent } => {
                let (memory, view) = self.place(world, party, &to)?;
                let bytes = region.elements() * view.element.bytes();
                if let Some(numbering) = codec.numbering().cloned() {
                    let job = move || {
                        memory.write_bytes(view.base as u64, &numbering.elements());
                        Ok(Vec::new())
                    };
                    return Ok(Computation::Other(Cost::Fill { bytes }, Box::new(job)));
                }
                let Some(encoded) = self.registers.remove(&register) else {
                    return Ok(filling(region, memory, view, absent));
                };
                let object = Root::full_of(&self.roots, &object);
                let cost = Cost::Code { bytes, compresses: codec.compresses() };
                let job = move || {
                    let decoded = codec.decode(&encoded, bytes, &object).map_err(coding)?;
                    memory.write_bytes(view.base as u64, &decoded);
                    Ok(Vec::new())
                };
                Ok(Computation::Other(cost, Box::new(job)))
            }
            other => unreachable!("{other:?} is not work for the processor"),
        }
    }

    pub(super) fn request(
        &mut self,
        world: &mut dyn World,
        party: &mut Party,
        action: Action,
    ) -> Result<Request, Fault> {
        let durability = self.durability;
        Ok(match action {
            Action::Read { object, region, to, there, whole, part, direct, .. } => {
                let moves = self.moves(world, party, &region, &to, &there)?;
                match (whole, part) {
                    (Some(whole), _) => Request::ReadWhole { object, moves, checksum: whole.checksum },
                    (None, Some(total)) => Request::ReadPart { object, moves, total },
                    (None, None) => Request::Read { object, moves, direct },
                }
            }
            Action::Write { object, region, from, there, whole, replace, direct } => {
                let moves = self.moves(world, party, &region, &from, &there)?;
                match whole {
                    Some(whole) => Request::WriteWhole { object, moves, checksum: whole.checksum, replace, durability },
                    None => Request::Write { object, moves, direct, durability },
                }
            }
            Action::Get { object, within, bytes_max, .. } => Request::Get { object, within: within.into(), bytes_max },
            Action::Put { object, register, replace, .. } => {
                let bytes = self.registers.remove(&register).expect("an encode filled the register");
                Request::Put { object, bytes, replace, durability }
            }
            Action::Make { object, bytes } => {
                Request::Put { object, bytes: bytes.to_vec(), replace: false, durability }
            }
            Action::Sync { below } => Request::Sync { below },
            other => unreachable!("{other:?} is not work for the store"),
        })
    }
}

/// Writing one value over elements.
pub(super) fn filling(region: Region, memory: Memory, view: Arc<View>, value: Arc<[u8]>) -> Computation {
    let cost = Cost::Fill { bytes: region.elements() * view.element.bytes() };
    let job = move || {
        for nest in nests(&region, &view, &view) {
            fill(&nest, &memory, &value).map_err(|error| Fault::of_copy(error, Some(&region)))?;
        }
        Ok(Vec::new())
    };
    Computation::Other(cost, Box::new(job))
}

fn coding(error: CodecError) -> Fault {
    Fault::said_by(if error.is_damage { FaultKind::Corrupt } else { FaultKind::Invalid }, error)
}
