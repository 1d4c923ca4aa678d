//! Room in an object for chunks whose bytes are known only once they are encoded.
//!
//! Rank 0 gives out stretches of the object, one behind the other, whatever else it is at: it answers when it takes what has
//! arrived. Who encodes asks before it needs room, for as many chunks as it sees coming, of the size that they had so far;
//! so nobody waits for rank 0, which may be encoding, nor for the sizes of others. What is lost is about a chunk for each
//! stretch. When all have written, each tells rank 0 where its chunks lie ([`Placing`]).

use crate::inbox::{Inbox, tag};
use crate::party::Party;
use hyperslab_plan::{ChunkOf, StepId};
use hyperslab_world::{Fault, FaultKind, Reader, World, Writer};
use std::collections::VecDeque;

/// Chunks that a rank asks for at once, if it sees as many coming.
const AHEAD_CHUNKS: u64 = 32;
/// Of all that it has had, the part that it asks for at least where it sees no end: very small chunks need few messages so.
const AHEAD_PART: u64 = 32;
/// When there is room for so many chunks and no more, it asks for the next.
const EARLY_CHUNKS: u64 = 4;
/// What is left of so many stretches is kept, for chunks that fit in there.
const STRETCHES_MAX: usize = 4;
/// Chunks that one message tells of.
const TOLD_AT_ONCE: usize = 1 << 15;

/// A chunk that was written where there was room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Which one.
    pub chunk: ChunkOf,
    /// Its first byte in the object \[B\].
    pub at: u64,
    /// Bytes that are stored \[B\].
    pub bytes: u64,
}

/// A stretch of an object: its first byte, and how many there are \[B\].
type Stretch = (u64, u64);

/// Rank 0's side: what is left of the object, and who asks.
#[derive(Default)]
pub(crate) struct Giving {
    /// In which call, and from which byte on.
    open: Option<(u64, u64)>,
    /// Who asks for how many bytes, in which call.
    asking: Vec<(u64, u32, u64)>,
}

impl Giving {
    /// Begins to give out room in a call, from this byte on.
    pub(crate) fn begin(&mut self, call: u64, from: u64) {
        self.open = Some((call, from));
    }

    pub(crate) fn ask(&mut self, call: u64, from: u32, bytes: u64) {
        self.asking.push((call, from, bytes));
    }

    /// The next so many bytes; none after the end of what can be counted.
    fn take(&mut self, call: u64, bytes: u64) -> Option<Stretch> {
        let (of, next) = self.open.as_mut().filter(|open| open.0 == call)?;
        debug_assert_eq!(*of, call);
        let first = *next;
        *next = first.checked_add(bytes)?;
        Some((first, bytes))
    }

    /// Answers those who ask in the call that is open; those of earlier calls nobody waits for.
    pub(crate) fn answer(&mut self, world: &mut dyn World) {
        let Some((open, _)) = self.open else { return };
        for (call, from, bytes) in std::mem::take(&mut self.asking) {
            if call > open {
                self.asking.push((call, from, bytes));
            } else if let Some((first, bytes)) = self.take(call, bytes) {
                let given = Writer::tagged(tag::GIVEN).number(call).number(first).number(bytes);
                world.transport().signal(from, given.0);
            }
        }
    }

    /// Where what was given out in this call ends, if any was.
    fn end(&self, call: u64) -> Option<u64> {
        self.open.filter(|open| open.0 == call).map(|open| open.1)
    }
}

/// What a rank that writes has of the object.
#[derive(Default)]
pub(crate) struct Room {
    /// What is left of the stretches that it was given.
    free: Vec<Stretch>,
    /// Bytes that it has used, and for how many chunks.
    used: (u64, u64),
    /// Whether it has asked, and not heard.
    asked: bool,
    /// Steps that are known and will need room, but do not wait for it yet.
    pub(crate) coming: u64,
    /// Steps whose bytes wait for room, and how many there are.
    pub(crate) waiting: VecDeque<((usize, StepId), u64)>,
    /// What lies where.
    pub(crate) placed: Vec<Placed>,
}

impl Room {
    /// Takes what was given.
    pub(crate) fn hear(&mut self, party: &mut Party) {
        for (first, bytes) in party.inbox.take_given(party.call()) {
            self.add((first, bytes));
            party.progress();
        }
    }

    fn add(&mut self, (first, bytes): Stretch) {
        self.asked = false;
        if let Some(before) = self.free.iter_mut().find(|(at, left)| at + left == first) {
            before.1 += bytes;
            return;
        }
        if self.free.len() == STRETCHES_MAX {
            let least = (0..STRETCHES_MAX).min_by_key(|number| self.free[*number].1).unwrap_or(0);
            self.free.remove(least);
        }
        self.free.push((first, bytes));
    }

    /// Bytes that a chunk will have, as far as known.
    fn usual(&self) -> u64 {
        self.used.0.checked_div(self.used.1).unwrap_or(0)
    }

    /// What it asks for, besides what is left: for what waits, and for what is coming.
    fn wanted(&self, left: u64) -> u64 {
        let waits: u64 = self.waiting.iter().map(|waiting| waiting.1).sum();
        let seen = self.coming.min(AHEAD_CHUNKS);
        let endless = if seen == AHEAD_CHUNKS { self.used.0 / AHEAD_PART } else { 0 };
        let coming = seen.saturating_mul(self.usual()).max(endless).saturating_sub(left);
        waits.saturating_add(if waits == 0 { coming.max(self.usual()) } else { coming })
    }

    /// Asks for more where there is little.
    fn ask(&mut self, world: &mut dyn World, party: &mut Party) {
        let waits = self.waiting.front().map_or(0, |waiting| waiting.1);
        let soon = self.usual().saturating_mul(EARLY_CHUNKS.min(self.coming));
        let all: u64 = self.free.iter().map(|stretch| stretch.1).sum();
        if self.asked || all >= soon && self.fits(waits).is_some() {
            return;
        }
        let (wanted, call) = (self.wanted(all), party.call());
        if party.rank() > 0 {
            self.asked = true;
            world.transport().signal(0, Writer::tagged(tag::WANTED).number(call).number(wanted).0);
        } else if let Some(stretch) = party.inbox.giving.take(call, wanted) {
            self.add(stretch);
        }
    }

    /// The first stretch with so many bytes.
    fn fits(&self, bytes: u64) -> Option<usize> {
        self.free.iter().position(|stretch| stretch.1 >= bytes)
    }

    /// The next step that has room now, and where; asks for more in time.
    pub(crate) fn next(&mut self, world: &mut dyn World, party: &mut Party) -> Option<((usize, StepId), u64)> {
        self.ask(world, party);
        let &(step, bytes) = self.waiting.front()?;
        let number = self.fits(bytes)?;
        let (at, left) = self.free[number];
        self.free[number] = (at + bytes, left - bytes);
        self.waiting.pop_front();
        self.used = (self.used.0 + bytes, self.used.1 + 1);
        Some((step, at))
    }
}

/// One rank's part in telling rank 0 where chunks lie.
pub struct Placing {
    call: u64,
    /// Messages that rank 0 has not answered.
    missing: usize,
    /// What rank 0 would tell itself.
    own: Vec<Placed>,
}

impl Placing {
    /// Tells rank 0 of these, in the call that all ranks opened last.
    pub fn new(world: &mut dyn World, party: &Party, placed: Vec<Placed>) -> Placing {
        let call = party.call();
        if party.rank() == 0 {
            return Placing { call, missing: 0, own: placed };
        }
        let parts = placed.chunks(TOLD_AT_ONCE);
        let missing = parts.len();
        parts.for_each(|part| world.transport().signal(0, to_bytes(call, part)));
        Placing { call, missing, own: Vec::new() }
    }

    /// Goes on; `true` once rank 0 has heard.
    pub fn poll(&mut self, party: &mut Party) -> bool {
        let heard = party.inbox.take_heard(self.call).len();
        if heard > 0 {
            party.progress();
        }
        self.missing -= heard.min(self.missing);
        self.missing == 0
    }

    /// On rank 0: where all chunks lie, and where the room ends that was given out. Complete once all ranks have agreed that
    /// they have told.
    ///
    /// # Errors
    /// When a message is not valid.
    pub fn heard(self, party: &mut Party) -> Result<(Vec<Placed>, Option<u64>), Fault> {
        let mut all = self.own;
        for (from, bytes) in party.inbox.take_told(self.call) {
            let placed = from_bytes(&bytes).ok_or_else(|| {
                Fault::new(FaultKind::Peer, format!("rank {from} told where chunks lie in a way that makes no sense"))
            })?;
            all.extend(placed);
        }
        Ok((all, party.inbox.giving.end(self.call)))
    }
}

impl Party {
    /// Lets rank 0 give out room from this byte on, in the call that all ranks opened last.
    pub fn give_room(&mut self, world: &mut dyn World, from: u64) {
        if self.rank() == 0 {
            let call = self.call();
            let Inbox { giving, .. } = &mut self.inbox;
            giving.begin(call, from);
            giving.answer(world);
        }
    }
}

fn to_bytes(call: u64, placed: &[Placed]) -> Vec<u8> {
    let tell = |w: Writer, Placed { chunk, at, bytes }: &Placed| {
        w.number(u64::from(chunk.array)).number(chunk.number).number(*at).number(*bytes)
    };
    placed.iter().fold(Writer::tagged(tag::TOLD).number(call), tell).0
}

fn from_bytes(bytes: &[u8]) -> Option<Vec<Placed>> {
    let mut r = Reader::new(bytes);
    let mut placed = Vec::new();
    while let Some(array) = r.number() {
        let chunk = ChunkOf { array: array.try_into().ok()?, number: r.number()? };
        placed.push(Placed { chunk, at: r.number()?, bytes: r.number()? });
    }
    Some(placed)
}
