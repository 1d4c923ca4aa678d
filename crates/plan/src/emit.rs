//! What strategies share: how a unit is brought from storage into a slot and back.

mod cover;

use crate::program::{Action, After, ChunkOf, Place, Step, StepId, Whole};
use crate::transfer::{Direction, Spread, Transfer, TransferArray};
use crate::units::Unit;
pub(crate) use cover::Cover;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{ElementType, Holes, IndexSet, Kind, Object, Region, View, nests};
use std::collections::VecDeque;
use std::sync::Arc;

/// Steps of one lane as they are emitted.
#[derive(Default)]
pub(crate) struct Emitter {
    next: StepId,
    queue: VecDeque<Step>,
    /// The round that is being emitted.
    pub(crate) round: u64,
}

impl Emitter {
    pub(crate) fn emit(&mut self, after: &After, action: Action) -> StepId {
        let step = self.step(after, action);
        let id = step.id;
        self.queue.push_back(step);
        id
    }

    /// A step that does not wait in the queue, which must be empty: the caller passes it on.
    #[inline]
    pub(crate) fn step(&mut self, after: &After, action: Action) -> Step {
        self.next += 1;
        Step { id: self.next - 1, round: self.round, after: after.clone(), action }
    }

    pub(crate) fn pop(&mut self) -> Option<Step> {
        self.queue.pop_front()
    }

    /// Where the next step will be: what is emitted from here on is [`Emitter::since`]. Also a register that no other step
    /// uses: a unit has no register of its own, because a rank may hold several pieces of it.
    pub(crate) fn mark(&self) -> StepId {
        self.next
    }

    /// All steps emitted since a mark.
    pub(crate) fn since(&self, mark: StepId) -> After {
        After::range(mark, self.next)
    }
}

/// A unit in a slot.
pub(crate) struct Placed {
    transfer: Arc<Transfer>,
    pub(crate) unit: Unit,
    /// Shape of the box stored for it: the chunk's, or what of the subchunk lies inside the array.
    shape: Vec<u64>,
    slot: u32,
    base: u64,
    /// Whether the system's cache shall be bypassed.
    direct: bool,
    /// Whether it follows the one before it, in the slot and in the file, so that both move by one step.
    joins: bool,
    /// Whether what holds its runs is read, and written with all holes.
    sieved: bool,
    section: Arc<View>,
}

/// Where the section has a run for each so many bytes of a file, what lies between its first and its last is read, changed
/// and written as one \[B\]: a call for each run costs as much as copying this there and back. In the same call nobody but
/// its server writes to a unit.
const SIEVED_BYTES_MAX: u64 = 4096;

/// Alignment of units inside a slot that do not follow each other in a file \[B\].
pub(crate) const UNIT_ALIGN: u64 = 64;

/// Puts units into a slot, one behind the other. Those that lie so in a file, like small arrays that are stored together,
/// lie in the slot as they do there.
pub(crate) fn place(
    transfer: &Arc<Transfer>,
    units: impl Iterator<Item = Unit>,
    slot: u32,
    direct: bool,
) -> Vec<Placed> {
    let (mut end, mut last): (u64, Option<(Object, u64)>) = (0, None);
    let placed = units.map(|unit| {
        let stretch = stretch(&transfer.asks[unit.array as usize], &unit);
        let joins = stretch.is_some()
            && stretch.as_ref().map(|(object, start, _)| (object, start))
                == last.as_ref().map(|(object, end)| (object, end));
        let base = if joins { end } else { end.next_multiple_of(UNIT_ALIGN) };
        let placed = Placed { direct, joins, ..Placed::new(transfer, unit, slot, base) };
        let placed = Placed { sieved: placed.is_worth_sieving(), ..placed };
        end = base + placed.bytes();
        last = stretch.map(|(object, start, bytes)| (object, start + bytes));
        placed
    });
    placed.collect()
}

/// The object, the first byte and the number of bytes of a unit that a transfer moves whole to or from a file.
fn stretch(ask: &TransferArray, unit: &Unit) -> Option<(Object, u64, u64)> {
    let (object, _) = ask.stored.object()?;
    let bytes = volume(&unit.extent)? * ask.stored.element.bytes();
    let begin = ask.stored.offset_of(&unit.low)?;
    unit.covered.then_some((object, begin, bytes))
}

/// Brings units from storage into their slot: what the section needs of them, or, where `only` says so, less.
pub(crate) fn load(placed: &[Placed], lane: &mut Emitter, after: &After, only: impl Fn(&Unit) -> Option<Vec<Region>>) {
    for run in placed.chunk_by(|_, next| next.joins) {
        match run {
            [one] => {
                one.load(lane, after, &only);
            }
            [first, ..] => {
                let (object, region, to, there) = first.together(run);
                let direct = first.direct;
                lane.emit(
                    after,
                    Action::Read { object, region, to, there, whole: None, part: None, absent: None, direct },
                );
            }
            [] => {}
        }
    }
}

/// Writes units from their slot; of a file, where `only` says so, less than all of them.
pub(crate) fn save(placed: &[Placed], lane: &mut Emitter, after: &After, only: impl Fn(&Unit) -> Option<Vec<Region>>) {
    for run in placed.chunk_by(|_, next| next.joins) {
        match run {
            [one] => one.save(lane, after, &only),
            [first, ..] => {
                let (object, region, from, there) = first.together(run);
                let (replace, direct) = (false, first.direct);
                lane.emit(after, Action::Write { object, region, from, there, whole: None, replace, direct });
            }
            [] => {}
        }
    }
}

impl Placed {
    /// Puts a unit at this byte of a slot.
    pub(crate) fn new(transfer: &Arc<Transfer>, unit: Unit, slot: u32, base: u64) -> Placed {
        let ask = &transfer.asks[unit.array as usize];
        let whole = ask.stored.chunk().filter(|_| ask.stored.summed_bytes().is_none());
        let shape = whole.map_or_else(|| unit.extent.clone(), <[u64]>::to_vec);
        let section = Arc::new(ask.stored.box_view(&ask.section, &unit.low, &shape, base));
        Placed {
            transfer: transfer.clone(),
            unit,
            shape,
            slot,
            base,
            direct: false,
            joins: false,
            sieved: false,
            section,
        }
    }

    pub(crate) fn ask(&self) -> &TransferArray {
        &self.transfer.asks[self.unit.array as usize]
    }

    /// Where the section's elements lie.
    pub(crate) fn section(&self) -> Place {
        Place::Slot(self.slot, self.section.clone())
    }

    /// Bytes that it takes in the slot \[B\].
    fn bytes(&self) -> u64 {
        volume(&self.shape).unwrap_or(u64::MAX).saturating_mul(self.ask().stored.element.bytes())
    }

    /// Units that follow each other, of which this is the first, as plain bytes: their object, and the bytes as an index
    /// space with its places in the slot and in the object.
    fn together(&self, run: &[Placed]) -> (Object, Region, Place, Arc<View>) {
        let (object, start, _) = stretch(self.ask(), &self.unit).expect("only units of a file follow each other");
        let region = Region { dims: [IndexSet::range(0, run.iter().map(Placed::bytes).sum())].into_iter().collect() };
        let bytes_from = |base: u64| Arc::new(View::held(&region, base as i64, &[1], ElementType::native(Kind::UInt8)));
        let (slot, there) = (Place::Slot(self.slot, bytes_from(self.base)), bytes_from(start));
        (object, region, slot, there)
    }

    /// The whole box as its own index space, and where it lies.
    fn whole(&self) -> (Region, Place) {
        let view = self.ask().stored.dense_view(&self.shape, self.base);
        (Region::whole(&self.shape), Place::Slot(self.slot, Arc::new(view)))
    }

    /// Whether the chunk reaches beyond the array.
    fn padded(&self) -> bool {
        self.shape != self.unit.extent
    }

    /// Whether what is written are short runs of a file, with short gaps between them.
    fn is_worth_sieving(&self) -> bool {
        let ask = self.ask();
        let in_file = ask.stored.is_in_one_object();
        let written = self.transfer.direction == Direction::Write;
        let kept = self.transfer.policies.holes == Holes::Kept;
        if !written || kept || self.unit.covered || !in_file || ask.spread == Spread::Explicit {
            return false;
        }
        let bytes = ask.stored.element.bytes();
        let cover = Cover::of(ask, &self.unit, &self.unit.region()).elements() * bytes;
        // The slot has the same runs as the file.
        let runs: u64 =
            nests(&self.unit.region(), &self.section, &self.section).map(|nest| nest.runs(bytes, bytes)).sum();
        runs > 1 && cover / runs <= SIEVED_BYTES_MAX
    }

    /// All that lies between the first and the last run of the section, with its places in the slot and in its file.
    fn covered(&self) -> (Object, Region, Place, Arc<View>) {
        let stored = &self.ask().stored;
        let (object, _) = stored.object().expect("only units of files are sieved");
        let cover = Cover::of(self.ask(), &self.unit, &self.unit.region());
        let here = Arc::new(cover.in_unit(stored, &self.unit, self.base));
        (object, cover.whole(), Place::Slot(self.slot, here), Arc::new(cover.in_file(stored)))
    }

    /// Makes the slot ready to be filled by a write: brings in what the write leaves alone.
    pub(crate) fn prepare(&self, lane: &mut Emitter, after: &After) -> After {
        if self.sieved {
            let (object, region, to, there) = self.covered();
            let direct = self.direct;
            let read = Action::Read { object, region, to, there, whole: None, part: None, absent: None, direct };
            return After::step(lane.emit(after, read));
        }
        let stored = &self.ask().stored;
        if !stored.is_written_whole() || self.unit.covered && !self.padded() {
            return after.clone();
        }
        if !self.unit.covered && stored.is_replaced() {
            return After::step(self.load_chunk(lane, after));
        }
        let (region, at) = self.whole();
        After::step(lane.emit(after, Action::Fill { region, at, value: stored.fill.clone() }))
    }

    /// Reads what the section needs of the unit; where parts of it can be written, only these regions, when ranks want no
    /// more of it.
    pub(crate) fn load(&self, lane: &mut Emitter, after: &After, only: impl Fn(&Unit) -> Option<Vec<Region>>) -> After {
        let mark = lane.mark();
        let stored = &self.ask().stored;
        if stored.is_read_whole() {
            self.load_chunk(lane, after);
        } else {
            let parts = if stored.is_written_whole() { None } else { only(&self.unit) };
            let regions = parts.unwrap_or_else(|| vec![self.unit.region()]);
            regions.into_iter().for_each(|region| self.load_section(lane, after, region));
        }
        lane.since(mark)
    }

    fn load_section(&self, lane: &mut Emitter, after: &After, region: Region) {
        let (to, direct, stored) = (self.section(), self.direct, &self.ask().stored);
        let (whole, part) = self.read_as(&region);
        let absent = stored.has_object_for_each_chunk().then(|| stored.fill.clone());
        let action = match place_of(self.ask(), &self.unit) {
            Some((object, there)) => Action::Read { object, region, to, there, whole, part, absent, direct },
            None => Action::Fill { region, at: to, value: stored.fill.clone() },
        };
        lane.emit(after, action);
    }

    /// Reads all of a chunk; gives the step after which it is there.
    fn load_chunk(&self, lane: &mut Emitter, after: &After) -> StepId {
        let ask = self.ask();
        let (region, to) = self.whole();
        let absent = ask.stored.fill.clone();
        let Some((object, within)) = ask.stored.extent_of(&self.unit.at) else {
            return lane.emit(after, Action::Fill { region, at: to, value: absent });
        };
        let Some(codec) = ask.stored.codec_at(&self.unit.at) else {
            let there = Arc::new(ask.stored.dense_view(&self.shape, 0));
            let whole = Some(Whole { checksum: ask.stored.has_trailer() });
            let (part, absent, direct) = (None, Some(absent), self.direct);
            return lane.emit(after, Action::Read { object, region, to, there, whole, part, absent, direct });
        };
        let register = lane.mark();
        if let Some(numbering) = codec.numbering() {
            let codec = Arc::new(numbering.of_chunk(&self.unit.at));
            return lane.emit(after, Action::Decode { register, object, codec, region, to, absent });
        }
        let bytes_max = codec.encoded_bytes_max(region.elements() * ask.stored.element.bytes());
        let got = lane.emit(after, Action::Get { object: object.clone(), within, bytes_max, register });
        let codec = codec.clone();
        lane.emit(&After::step(got), Action::Decode { register, object, codec, region, to, absent })
    }

    /// Writes the unit from its slot; where parts of it can be written, only these regions, when ranks hold no more of it.
    pub(crate) fn save(&self, lane: &mut Emitter, after: &After, only: impl Fn(&Unit) -> Option<Vec<Region>>) {
        let ask = self.ask();
        if self.sieved {
            let (object, region, from, there) = self.covered();
            let (replace, direct) = (false, self.direct);
            lane.emit(after, Action::Write { object, region, from, there, whole: None, replace, direct });
            return;
        }
        if !ask.stored.is_written_whole() {
            let regions = only(&self.unit).unwrap_or_else(|| vec![self.unit.region()]);
            regions.into_iter().for_each(|region| self.save_section(lane, after, region));
            return;
        }
        let object = target(ask, &self.unit).0;
        let (region, from) = self.whole();
        // What gets other room than it had takes nobody's place yet.
        let replace = ask.stored.is_replaced() && ask.stored.allotted_from().is_none();
        let direct = self.direct;
        let Some(codec) = ask.stored.codec() else {
            let there = Arc::new(ask.stored.dense_view(&self.shape, 0));
            let whole = Some(Whole { checksum: ask.stored.has_trailer() });
            lane.emit(after, Action::Write { object, region, from, there, whole, replace, direct });
            return;
        };
        let register = lane.mark();
        let encoded = lane.emit(after, Action::Encode { region, from, codec: codec.clone(), register });
        let chunk = ask
            .stored
            .allotted_from()
            .map(|_| ChunkOf { array: self.unit.array, number: ask.stored.chunk_number(&self.unit.at) });
        lane.emit(&After::step(encoded), Action::Put { object, register, replace, chunk });
    }

    /// Writes elements of a unit of which parts can be written from its slot.
    fn save_section(&self, lane: &mut Emitter, after: &After, region: Region) {
        let (object, there) = target(self.ask(), &self.unit);
        let (from, direct) = (self.section(), self.direct);
        lane.emit(after, Action::Write { object, region, from, there, whole: None, replace: false, direct });
    }

    /// Whether these elements of the unit are all that its object holds.
    fn is_all(&self, region: &Region) -> bool {
        region.elements() == self.shape.iter().product::<u64>()
    }

    /// How elements of the unit are read from its object into a slot: of one whose parts add up to a checksum, as all that it
    /// holds, or as such a part.
    pub(crate) fn read_as(&self, region: &Region) -> (Option<Whole>, Option<u64>) {
        match self.ask().stored.summed_bytes() {
            Some(bytes) if region.elements() * self.ask().stored.element.bytes() == bytes => {
                (Some(Whole { checksum: true }), None)
            }
            part => (None, part),
        }
    }

    /// Whether a rank that holds these elements of the unit may move them between its memory and the object without a
    /// slot. A checksum covers all of a chunk, and a chunk is only written whole.
    pub(crate) fn goes_direct(&self, region: &Region, write: bool) -> bool {
        let stored = &self.ask().stored;
        let whole = if write { stored.is_written_whole() } else { stored.is_read_whole() };
        stored.codec().is_none() && (!whole || self.is_all(region)) && (write || stored.has_place(&self.unit.at))
    }

    /// Reads or writes the unit's object straight from or to the user's array with this number.
    pub(crate) fn straight(&self, lane: &mut Emitter, after: &After, exposed: u32, region: Region, write: bool) {
        let (object, there) = target(self.ask(), &self.unit);
        let place = Place::User(exposed);
        let stored = &self.ask().stored;
        let chunked = stored.has_object_for_each_chunk();
        let absent = chunked.then(|| stored.fill.clone());
        let (replace, direct) = (stored.is_replaced(), self.direct);
        let all = chunked && self.is_all(&region) && stored.summed_bytes().is_none();
        let whole = all.then(|| Whole { checksum: stored.has_trailer() });
        let action = if write {
            Action::Write { object, region, from: place, there, whole, replace, direct }
        } else {
            let (summed, part) = self.read_as(&region);
            Action::Read { object, region, to: place, there, whole: whole.or(summed), part, absent, direct }
        };
        lane.emit(after, action);
    }
}

/// The object that holds a unit, and the view of the section's index space in it; nothing for a chunk that does not exist.
fn place_of(ask: &TransferArray, unit: &Unit) -> Option<(Object, Arc<View>)> {
    let (object, there) = ask.stored.place(&ask.section, &unit.at, &unit.low)?;
    Some((object, Arc::new(there)))
}

/// The same of a unit that exists, as all do that are written.
pub(crate) fn target(ask: &TransferArray, unit: &Unit) -> (Object, Arc<View>) {
    place_of(ask, unit).expect("a chunk that is written has an address")
}
