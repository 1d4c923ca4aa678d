//! What strategies share: how a unit is brought from storage into a slot and back.

use crate::program::{Action, Place, Step, StepId, Whole};
use crate::transfer::{Ask, Placement};
use crate::units::Unit;
use hyperslab_layout::Region;
use std::collections::VecDeque;
use std::sync::Arc;

/// Steps of one lane as they are emitted.
#[derive(Default)]
pub(crate) struct Emitter {
    next: StepId,
    queue: VecDeque<Step>,
}

impl Emitter {
    pub(crate) fn emit(&mut self, after: &[StepId], action: Action) -> StepId {
        let id = self.next;
        self.next += 1;
        self.queue.push_back(Step { id, after: after.to_vec(), action });
        id
    }

    pub(crate) fn pop(&mut self) -> Option<Step> {
        self.queue.pop_front()
    }
}

/// A unit in a slot.
pub(crate) struct Placed<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) unit: &'a Unit,
    /// Shape of the box stored for it: the chunk's, or what of the subchunk lies inside the array.
    shape: Vec<u64>,
    slot: u32,
    base: u64,
}

impl<'a> Placed<'a> {
    /// Puts a unit at this byte of a slot.
    pub(crate) fn new(ask: &'a Ask, unit: &'a Unit, slot: u32, base: u64) -> Placed<'a> {
        let shape = match &ask.stored.placement {
            Placement::Chunks { chunk, .. } => chunk.clone(),
            Placement::File { .. } => unit.extent.clone(),
        };
        Placed { ask, unit, shape, slot, base }
    }

    /// Where the section's elements lie.
    pub(crate) fn section(&self) -> Place {
        let view = self.ask.stored.box_view(&self.ask.section, &self.unit.low, &self.shape, self.base);
        Place::Slot(self.slot, Arc::new(view))
    }

    /// The whole box as its own index space, and where it lies.
    fn whole(&self) -> (Region, Place) {
        let view = self.ask.stored.dense_view(&self.shape, self.base);
        (Region::whole(&self.shape), Place::Slot(self.slot, Arc::new(view)))
    }

    /// Whether the chunk reaches beyond the array.
    fn padded(&self) -> bool {
        self.shape != self.unit.extent
    }

    /// Makes the slot ready to be filled by a write: brings in what the write leaves alone.
    pub(crate) fn prepare(&self, lane: &mut Emitter, after: &[StepId]) -> Vec<StepId> {
        let Placement::Chunks { fresh, .. } = &self.ask.stored.placement else { return after.to_vec() };
        if !self.unit.covered && !fresh {
            return vec![self.load_whole(lane, after)];
        }
        if self.unit.covered && !self.padded() {
            return after.to_vec();
        }
        let (region, at) = self.whole();
        vec![lane.emit(after, Action::Fill { region, at, value: self.ask.stored.fill.clone() })]
    }

    /// Reads what the section needs of the unit.
    pub(crate) fn load(&self, lane: &mut Emitter, after: &[StepId]) -> StepId {
        match &self.ask.stored.placement {
            Placement::File { .. } => self.load_section(lane, after, None),
            Placement::Chunks { codecs, .. } if codecs.is_plain() && !codecs.checksum_trailer() => {
                self.load_section(lane, after, Some(self.ask.stored.fill.clone()))
            }
            Placement::Chunks { .. } => self.load_whole(lane, after),
        }
    }

    fn load_section(&self, lane: &mut Emitter, after: &[StepId], absent: Option<Arc<[u8]>>) -> StepId {
        let (object, there) = target(self.ask, self.unit);
        let region = self.unit.region();
        lane.emit(after, Action::Read { object, region, to: self.section(), there, whole: None, absent, direct: false })
    }

    fn load_whole(&self, lane: &mut Emitter, after: &[StepId]) -> StepId {
        let Placement::Chunks { codecs, .. } = &self.ask.stored.placement else {
            return self.load_section(lane, after, None);
        };
        let (region, to) = self.whole();
        let object = target(self.ask, self.unit).0;
        let absent = self.ask.stored.fill.clone();
        if codecs.is_plain() {
            let there = Arc::new(self.ask.stored.dense_view(&self.shape, 0));
            let whole = Some(Whole { checksum: codecs.checksum_trailer() });
            return lane
                .emit(after, Action::Read { object, region, to, there, whole, absent: Some(absent), direct: false });
        }
        let register = self.unit.number;
        let bytes_max = codecs.max_encoded_bytes(region.elements() * self.ask.stored.element.bytes());
        let got = lane.emit(after, Action::Get { object: object.clone(), bytes_max, register });
        lane.emit(&[got], Action::Decode { register, object, codecs: codecs.clone(), region, to, absent })
    }

    /// Writes the unit from its slot.
    pub(crate) fn save(&self, lane: &mut Emitter, after: &[StepId]) -> StepId {
        let (object, there) = target(self.ask, self.unit);
        let Placement::Chunks { codecs, fresh, .. } = &self.ask.stored.placement else {
            let region = self.unit.region();
            let write = Action::Write {
                object,
                region,
                from: self.section(),
                there,
                whole: None,
                replace: false,
                direct: false,
            };
            return lane.emit(after, write);
        };
        let (region, from) = self.whole();
        let replace = !fresh;
        if codecs.is_plain() {
            let there = Arc::new(self.ask.stored.dense_view(&self.shape, 0));
            let whole = Some(Whole { checksum: codecs.checksum_trailer() });
            return lane.emit(after, Action::Write { object, region, from, there, whole, replace, direct: false });
        }
        let register = self.unit.number;
        let encoded = lane.emit(after, Action::Encode { region, from, codecs: codecs.clone(), register });
        lane.emit(&[encoded], Action::Put { object, register, replace })
    }

    /// Whether these elements of the unit are all that its object holds.
    fn is_all(&self, region: &Region) -> bool {
        region.elements() == self.shape.iter().product::<u64>()
    }

    /// Whether a rank that holds these elements of the unit may move them between its memory and the object without a
    /// slot. A checksum covers all of a chunk, and a chunk is only written whole.
    pub(crate) fn goes_direct(&self, region: &Region, write: bool) -> bool {
        match &self.ask.stored.placement {
            Placement::File { .. } => true,
            Placement::Chunks { codecs, .. } => {
                codecs.is_plain() && (self.is_all(region) || !write && !codecs.checksum_trailer())
            }
        }
    }

    /// Reads or writes the unit's object straight from or to the user's array.
    pub(crate) fn direct(&self, lane: &mut Emitter, after: &[StepId], region: Region, write: bool) -> StepId {
        let (object, there) = target(self.ask, self.unit);
        let place = Place::User(self.unit.array);
        let (whole, absent, replace) = match &self.ask.stored.placement {
            Placement::File { .. } => (None, None, false),
            Placement::Chunks { codecs, fresh, .. } => {
                let whole = self.is_all(&region).then(|| Whole { checksum: codecs.checksum_trailer() });
                (whole, Some(self.ask.stored.fill.clone()), !fresh)
            }
        };
        let action = if write {
            Action::Write { object, region, from: place, there, whole, replace, direct: false }
        } else {
            Action::Read { object, region, to: place, there, whole, absent, direct: false }
        };
        lane.emit(after, action)
    }
}

/// The object that holds a unit, and the view of the section's index space in it.
pub(crate) fn target(ask: &Ask, unit: &Unit) -> (Arc<str>, Arc<hyperslab_layout::View>) {
    match &ask.stored.placement {
        Placement::File { object, offset, .. } => {
            let origin = vec![0; unit.low.len()];
            (object.clone(), Arc::new(ask.stored.box_view(&ask.section, &origin, &ask.stored.shape, *offset)))
        }
        Placement::Chunks { prefix, chunk, keys, .. } => {
            let object = format!("{prefix}{}", keys.key(&unit.at)).into();
            (object, Arc::new(ask.stored.box_view(&ask.section, &unit.low, chunk, 0)))
        }
    }
}
