//! What one rank does, read off a part of its program.

use super::folios;
use super::memories::Memories;
use super::moved::{Copied, Moved};
use super::stretches::Stretches;
use super::terms::Effort;
use super::tiles;
use crate::program::{Action, Lane, Parts, Place, Step};
use crate::rounds::Rounds;
use crate::strategy::Parameters;
use crate::transfer::{Direction, PAGE_BYTES, Spread, Transfer, TransferArray};
use crate::units::Units;
use hyperslab_layout::{Codec, Object, nests};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request to storage.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    /// The file; `None` when it is a chunk's own.
    pub(super) file: Option<Object>,
    pub(super) write: bool,
    pub(super) bytes: u64,
    /// What a copy out of the system's cache moves, straight to where it is wanted: of reads that compare no checksum.
    pub(super) copied: Copied,
    /// Contiguous ranges of the object.
    pub(super) ranges: u64,
    /// What the ranges are joined of: runs that lie together in memory, too.
    pub(super) runs: u64,
    /// Bytes of the object between the ranges \[B\].
    pub(super) gaps: u64,
    /// Folios, over one a range, in which the system's cache keeps what is written.
    pub(super) further_folios: u64,
    /// Stretches of ranges with short gaps between, over which reads go, and the bytes of these gaps \[B\].
    pub(super) stretches: u64,
    pub(super) short_gaps: u64,
    /// Whether the system's cache shall be bypassed.
    pub(super) direct: bool,
    /// Whether it begins where a page of the object does.
    pub(super) at_page: bool,
    /// Whether a reader must see the old object or the new one.
    pub(super) replace: bool,
    /// Whether all of a chunk is moved, and compared with its checksum.
    pub(super) checked: bool,
    /// Whether it moves a slot, when slots stay in the processor's cache.
    pub(super) kept: bool,
    /// Whether its array has one chunk, so that no other rank makes files in the same directory.
    pub(super) alone: bool,
}

/// What a rank does between one use of a buffer and the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Steps and pieces of messages that are derived.
    pub(super) steps: u64,
    pub(super) pieces: u64,
    pub(super) messages: SmallVec<[Moved; 4]>,
    /// Copies on this rank, and copies that take as long as what is filled.
    pub(super) copied: Copied,
    pub(super) filled: Copied,
    /// Bytes of elements that a codec compresses or decompresses, and that one sums, or only moves.
    pub(super) compressed: u64,
    pub(super) summed: u64,
    pub(super) requests: SmallVec<[Request; 2]>,
    /// How many more messages there are than were looked at, in all over those: a round may have very many.
    pub(super) more: f64,
}

impl Round {
    /// A step that encodes or decodes elements.
    fn code(&mut self, bytes: u64, codec: &dyn Codec) {
        self.steps += 1;
        *(if codec.compresses() { &mut self.compressed } else { &mut self.summed }) += bytes;
    }

    /// What it moves of users' arrays: by messages and copies, or straight from memory to storage \[B\].
    fn moved_bytes(&self) -> f64 {
        let sent: u64 = self.messages.iter().map(|moved| moved.bytes).sum();
        let exchanged = sent + self.copied.bytes;
        let straight = || self.requests.iter().map(|request| request.bytes).sum();
        (if exchanged > 0 { exchanged } else { straight() }) as f64
    }
}

/// A part of what a rank does: its first rounds, or some from all over.
pub(super) struct Work {
    pub(super) rank: u32,
    pub(super) rounds: Vec<Round>,
    /// Rounds in all, these among them; of all arrays alike.
    pub(super) total: f64,
    pub(super) slots: u32,
    pub(super) buffer_bytes: u64,
    /// Bytes of slots that are filled, each as far as it is filled most.
    pub(super) touched_bytes: u64,
    /// Whether the rounds are from all over, and not the first.
    pub(super) sampled: bool,
    /// Pieces of each rank's own that were made up for it.
    told: u64,
}

impl Work {
    /// The same; nothing when it handles no storage.
    pub(super) fn of(
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        memories: &Memories,
        (rank, times): (u32, f64),
        effort: Effort,
    ) -> Option<Work> {
        let strategy = parameters.strategy;
        // One round is looked at to see whether there are more, and one is not looked at whole.
        let facts = tiles::facts(&memories.tiles, transfer, parameters, rank, effort.rounds + 2);
        let told = facts.met.values().map(Vec::len).chain(facts.mine.values().map(Vec::len)).sum::<usize>() as u64;
        let facts = Arc::new(facts);
        let program = strategy.program(transfer, parameters, &facts, rank, &memories.of(rank));
        let (slots, buffer_bytes) = (program.slots, u64::from(program.slots) * program.slot_bytes);
        // In rounds, the first lane is that of the client: what others move in its arrays is their work.
        let clients = usize::from(!strategy.is_own());
        let sampled = Rounds::of(transfer, parameters, rank).and_then(|rounds| rounds.sampled(&facts, effort.rounds));
        let is_sampled = sampled.is_some();
        let lanes = sampled.map_or_else(|| program.lanes.into_iter().skip(clients).collect(), |lane| vec![lane]);
        let kept = buffer_bytes <= memories.cached_bytes();
        let mut reader = Reader { memories, rank, kept, rounds: Vec::new(), number: u64::MAX, filled: BTreeMap::new() };
        let mut cut = false;
        for lane in lanes {
            cut |= reader.read(lane, clients > 0, effort);
        }
        let served = if cut || is_sampled || times > 1.0 { Rounds::of(transfer, parameters, rank) } else { None };
        if cut && reader.rounds.len() > 1 {
            reader.rounds.pop();
        } else if let (true, Some(served)) = (cut, &served) {
            reader.complete(served.storage_steps());
        }
        let cut = cut || is_sampled;
        // Of a program that is cut, not all slots were seen.
        let largest = reader.filled.values().max().copied().unwrap_or(0);
        let touched_bytes = if cut { u64::from(slots) * largest } else { reader.filled.values().sum() };
        let rounds = reader.rounds;
        if rounds.is_empty() {
            return None;
        }
        let seen = rounds.len() as f64;
        let mut work =
            Work { rank, rounds, total: seen, slots, buffer_bytes, touched_bytes, sampled: is_sampled, told };
        if let Some(served) = served {
            work.total = served.served(times).max(seen);
        } else {
            let rounds = || {
                let units = reads_whole_chunks(transfer).then(|| Units::new(transfer, parameters.subchunk_bytes));
                let whole = units.and_then(|units| whole_chunks(transfer, &units, rank));
                whole.map_or_else(|| work.own_rounds(transfer), |chunks| chunks as f64)
            };
            work.total = times * if cut { rounds().max(seen) } else { seen };
        }
        Some(work)
    }

    /// What it moves of users' arrays, as far as the rounds that were looked at stand for all; without what is read or
    /// written besides because it lies between \[B\]. Nothing where a round has more messages than were looked at.
    pub(super) fn moved_bytes(&self) -> Option<f64> {
        let whole = self.rounds.iter().all(|round| round.more == 0.0);
        let seen = self.rounds.iter().map(Round::moved_bytes).sum::<f64>();
        whole.then(|| seen * self.total / self.rounds.len() as f64)
    }

    /// Chunks that it writes, or else reads, as far as the rounds that were looked at stand for all.
    pub(super) fn chunks(&self, write: bool) -> f64 {
        let requests = self.rounds.iter().flat_map(|round| &round.requests);
        // What a write leaves alone of a chunk is read before.
        let seen = requests.filter(|request| request.file.is_none() && request.write == write);
        seen.count() as f64 * self.total / self.rounds.len() as f64
    }

    /// Steps that were looked at, and some for the program itself.
    pub(super) fn looked_at(&self) -> u64 {
        25 + self.told / 4 + self.rounds.iter().map(|round| 2 + round.steps + round.pieces).sum::<u64>()
    }

    /// Rounds of a rank that moves its own elements, by how much of them the first ones move.
    fn own_rounds(&self, transfer: &Transfer) -> f64 {
        let own = |ask: &crate::transfer::TransferArray| match &ask.spread {
            Spread::Regular(distribution) => {
                let all = distribution.owned(self.rank).elements() * ask.stored.element.bytes();
                let share = if transfer.direction == crate::Direction::Write { distribution.replication() } else { 1 };
                all / share.max(1)
            }
            Spread::Explicit => ask.stored_bytes() / u64::from(transfer.ranks.max(1)),
        };
        let all: u64 = transfer.asks.iter().map(own).sum();
        let seen: f64 = self.rounds.iter().map(Round::moved_bytes).sum();
        self.rounds.len() as f64 * all as f64 / seen.max(1.0)
    }
}

/// How many chunks a rank reads for itself, where it [reads all of each](reads_whole_chunks); nothing where its pieces have no
/// closed form.
pub(super) fn whole_chunks(transfer: &Transfer, units: &Units, rank: u32) -> Option<u64> {
    let of = |(array, ask): (u32, &TransferArray)| Some(units.count_touched(array, &ask.spread.regular()?.owned(rank)));
    (0..).zip(&transfer.asks).map(of).sum()
}

/// Whether all is read of each chunk, whatever is wanted of it, because it is encoded or has a checksum.
pub(super) fn reads_whole_chunks(transfer: &Transfer) -> bool {
    transfer.direction == Direction::Read && transfer.asks.iter().all(|ask| ask.stored.is_read_whole())
}

/// Reads lanes.
struct Reader<'a> {
    memories: &'a Memories,
    rank: u32,
    /// Whether slots stay in the processor's cache.
    kept: bool,
    rounds: Vec<Round>,
    /// Number of the last round.
    number: u64,
    /// By slot, the most bytes that it holds at a time.
    filled: BTreeMap<u32, u64>,
}

impl Reader<'_> {
    /// Reads the beginning of a lane. Returns whether it goes on.
    fn read(&mut self, lane: Lane, serves: bool, effort: Effort) -> bool {
        self.number = u64::MAX;
        for (seen, step) in lane.enumerate() {
            if matches!(step.action, Action::Sync { .. }) {
                continue;
            }
            if step.round != self.number || self.rounds.is_empty() {
                if self.rounds.len() > effort.rounds {
                    return true;
                }
                self.number = step.round;
                self.rounds.push(Round::default());
            }
            if seen > effort.steps && !(serves && self.has_only_stored()) {
                return true;
            }
            self.step(step);
        }
        false
    }

    /// Whether of the first two rounds hardly anything was seen but steps between storage and a slot, of many small chunks, and
    /// copies: what other ranks have of them comes later.
    fn has_only_stored(&self) -> bool {
        self.rounds.len() <= 2 && self.rounds.last().is_some_and(|round| round.messages.len() < 2)
    }

    /// Completes the only round, whose clients were too many to look at all of them.
    fn complete(&mut self, storage: Vec<Step>) {
        let Some(cut) = self.rounds.pop() else { return };
        self.rounds.push(Round { requests: SmallVec::new(), compressed: 0, summed: 0, ..cut });
        storage.into_iter().for_each(|step| self.step(step));
        let Some(round) = self.rounds.last_mut() else { return };
        let stored: u64 = round.requests.iter().map(|request| request.bytes).sum();
        let sent: u64 = round.messages.iter().map(|moved| moved.bytes).sum();
        round.more = (stored.saturating_sub(round.copied.bytes) as f64 / sent.max(1) as f64 - 1.0).max(0.0);
    }

    fn step(&mut self, step: Step) {
        let moved = self.moved(&step.action);
        let request = self.request(&step.action);
        let part_lines = moved.as_ref().map_or(0, |moved| self.part_lines(&step.action, moved));
        let shared = self.shared_object(&step.action);
        self.fill(&step.action);
        let Some(round) = self.rounds.last_mut() else { return };
        match &step.action {
            Action::Send { parts, .. } | Action::Recv { parts, .. } => {
                let pieces = |array: &u32| self.memories.tiles(*array).map_or(1, |tiles| tiles.pieces);
                round.pieces += parts.iter().map(|(array, ..)| pieces(array)).sum::<u64>();
                round.messages.extend(moved);
            }
            Action::Copy { .. } => {
                round.steps += 1;
                let moved = moved.unwrap_or(Moved::nothing(self.rank));
                round.copied.add(&moved, part_lines);
                // What is written from slots has a rate of its own for this, and what calls read into them was measured so.
                if !self.kept && self.memories.maps_files && self.memories.transfer.direction == Direction::Read {
                    round.copied.spilled += moved.bytes;
                }
            }
            Action::Fill { region, at, .. } => {
                round.steps += 1;
                let bytes = if let Place::Slot(_, view) = at { region.elements() * view.element.bytes() } else { 0 };
                // Nothing is read.
                round.filled.bytes += bytes / 2;
                round.filled.runs += 1;
            }
            // Encoded objects are taken to be as large as their elements.
            Action::Encode { region, from: Place::Slot(_, view), codec, .. } => {
                let bytes = region.elements() * view.element.bytes();
                round.code(bytes, codec.as_ref());
                round.requests.push(Request::object(bytes, true, self.memories.single));
            }
            Action::Decode { region, to: Place::Slot(_, view), codec, .. } => {
                let bytes = region.elements() * view.element.bytes();
                round.code(bytes, codec.as_ref());
                round.requests.push(Request { file: shared, ..Request::object(bytes, false, self.memories.single) });
            }
            Action::Put { replace, .. } => {
                round.steps += 1;
                // Puts follow the encoding of what they write.
                if let Some(last) = round.requests.last_mut() {
                    (last.replace, last.file) = (*replace, shared);
                }
            }
            _ => round.steps += 1,
        }
        round.requests.extend(request);
    }

    /// Notes how much of a slot is filled.
    fn fill(&mut self, action: &Action) {
        if let Action::Read { region, to: Place::Slot(slot, view), .. }
        | Action::Decode { region, to: Place::Slot(slot, view), .. }
        | Action::Write { region, from: Place::Slot(slot, view), .. }
        | Action::Encode { region, from: Place::Slot(slot, view), .. } = action
        {
            let filled = self.filled.entry(*slot).or_default();
            *filled = (*filled).max(region.elements() * view.element.bytes());
        }
    }

    /// What a message or copy moves between a slot and a user's array.
    fn moved(&self, action: &Action) -> Option<Moved> {
        match action {
            Action::Send { to: peer, parts } | Action::Recv { from: peer, parts } => Some(self.message(*peer, parts)),
            Action::Copy { region, from, to } => {
                let view = |place: &Place| match place {
                    Place::User(array) => self.memories.view(self.rank, *array),
                    Place::Slot(_, view) => Some(view.clone()),
                };
                let (array, slot) = if matches!(from, Place::Slot(..)) { (to, from) } else { (from, to) };
                let mut moved = Moved::nothing(self.rank);
                moved.add(region, &*view(array)?, (&*view(slot)?, self.kept));
                Some(moved)
            }
            _ => None,
        }
    }

    /// What a copy or a read moves only in part of the lines of the user's array that it goes to or comes from.
    fn part_lines(&self, action: &Action, moved: &Moved) -> u64 {
        match action {
            Action::Copy { region, from: Place::User(array), .. }
            | Action::Copy { region, to: Place::User(array), .. }
            | Action::Read { region, to: Place::User(array), .. } => {
                self.memories.part_lines(moved, region, (self.rank, *array))
            }
            _ => 0,
        }
    }

    fn message(&self, peer: u32, parts: &Parts) -> Moved {
        let mut moved = Moved::nothing(peer);
        for (array, region, place) in parts {
            let Place::Slot(_, here) = place else { continue };
            let there = self.memories.view(peer, *array);
            moved.add(region, there.as_deref().unwrap_or(here), (here, self.kept));
        }
        moved
    }

    fn request(&self, action: &Action) -> Option<Request> {
        let (object, region, place, there, whole, direct, replace, write) = match action {
            Action::Read { object, region, to, there, whole, direct, .. } => {
                (object, region, to, there, whole, *direct, false, false)
            }
            Action::Write { object, region, from, there, whole, direct, replace } => {
                (object, region, from, there, whole, *direct, *replace, true)
            }
            _ => return None,
        };
        let here = match place {
            Place::User(array) => self.memories.view(self.rank, *array)?,
            Place::Slot(_, view) => view.clone(),
        };
        let each = there.element.bytes();
        let bytes = region.elements() * each;
        let mut moved = Moved::nothing(self.rank);
        moved.add(region, &here, (there, false));
        let (runs, copied) = (moved.runs, self.copied(action, moved));
        let (mut ranges, mut hull, mut stretches, mut short_gaps) = (0, (i64::MAX, i64::MIN), 0, 0);
        let mut further_folios = 0;
        for nest in nests(region, there, there) {
            ranges += nest.runs(each, each);
            further_folios += if write { folios::further(&nest, each) } else { 0 };
            let found = Stretches::of(nest.loops.iter().map(|l| (l.count, l.b)), each, PAGE_BYTES);
            (stretches, short_gaps) = (stretches + found.count, short_gaps + found.gaps);
            let (low, high) = nest.hull_b(each).unwrap_or_default();
            hull = (hull.0.min(low), hull.1.max(high));
        }
        let gaps = u64::try_from(hull.1.saturating_sub(hull.0)).unwrap_or(0).saturating_sub(bytes);
        let (chunk, checked) = (whole.is_some() || self.in_chunks(object), whole.is_some());
        let file = (!chunk).then(|| object.clone());
        let at_page = hull.0 % PAGE_BYTES as i64 == 0;
        // While a rank waits for messages, others that share its core fill the cache with what they have.
        let undisturbed =
            self.memories.sharers == 1 || self.rounds.last().is_some_and(|round| round.messages.is_empty());
        let kept = self.kept && undisturbed && matches!(place, Place::Slot(..));
        let alone = self.memories.single;
        let ranged = Request {
            ranges,
            runs,
            gaps,
            further_folios,
            stretches,
            short_gaps,
            copied,
            ..Request::object(bytes, write, alone)
        };
        Some(Request { file, direct, at_page, replace, checked, kept, ..ranged })
    }

    /// What a copy moves out of the system's cache, where a read may be one: lines of the file are not changed.
    fn copied(&self, action: &Action, mut moved: Moved) -> Copied {
        let mut copied = Copied::default();
        if let Action::Read { to, whole: None, part: None, direct: false, .. } = action {
            moved.slot_part_lines = moved.slot_part_lines.div_ceil(2);
            let straight = matches!(to, Place::User(_));
            copied.add(&moved, self.part_lines(action, &moved));
            // Lines of a slot that has left the cache come back to be filled, and leave again.
            copied.spilled = if straight || self.kept { 0 } else { 2 * moved.bytes };
        }
        copied
    }

    /// The object of an encoded chunk, where it holds others, too.
    fn shared_object(&self, action: &Action) -> Option<Object> {
        match action {
            Action::Put { object, .. } | Action::Decode { object, .. } if !self.in_chunks(object) => {
                Some(object.clone())
            }
            _ => None,
        }
    }

    /// Whether an object is one of many.
    fn in_chunks(&self, object: &Object) -> bool {
        let mut asks = self.memories.transfer.asks.iter();
        !asks.any(|ask| !ask.stored.has_object_for_each_chunk() && ask.stored.below() == *object)
    }
}

impl Request {
    /// An object that is moved whole.
    fn object(bytes: u64, write: bool, alone: bool) -> Request {
        Request { write, bytes, ranges: 1, runs: 1, stretches: 1, at_page: true, alone, ..Request::default() }
    }
}
