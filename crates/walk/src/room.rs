//! Room in an object for chunks whose bytes are known only once they are encoded.
//!
//! Rank 0 gives out stretches of the object, one behind the other, whatever else it is at: it answers when it takes what has
//! arrived. Who encodes asks for what waits, and, once that is several chunks, for a small part of all that it has had so far.
//! So many small chunks need few messages, what nobody uses in the end is a small part of the whole, and no rank waits for
//! the sizes of others. When all have written, each tells rank 0 where its chunks lie ([`Placing`]).

use crate::inbox::{Inbox, tag};
use crate::party::Party;
use hyperslab_plan::{ChunkOf, StepId};
use hyperslab_world::{Fault, FaultKind, Reader, World, Writer};
use std::collections::VecDeque;

/// What a rank asks for besides what it needs: one of so many parts of what it has had.
const AHEAD: u64 = 32;
/// Chunks that this must have room for, since what is left where the next one does not fit is lost.
const AHEAD_CHUNKS: u64 = 4;
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
    free: Stretch,
    /// Bytes that it has used \[B\].
    used: u64,
    /// Whether it has asked, and not heard.
    asked: bool,
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

    /// What is left of the stretch before is left alone, unless this one goes on from it.
    fn add(&mut self, (first, bytes): Stretch) {
        self.asked = false;
        let (free, left) = self.free;
        self.free = if free + left == first { (free, left + bytes) } else { (first, bytes) };
    }

    /// The next step that has room now, and where; asks for more if there is none.
    pub(crate) fn next(&mut self, world: &mut dyn World, party: &mut Party) -> Option<((usize, StepId), u64)> {
        let &(step, bytes) = self.waiting.front()?;
        if self.free.1 < bytes && !self.asked {
            let waits: u64 = self.waiting.iter().map(|waiting| waiting.1).sum();
            let ahead = Some(self.used / AHEAD).filter(|ahead| *ahead / AHEAD_CHUNKS >= bytes).unwrap_or(0);
            let wanted = waits.saturating_add(ahead);
            let call = party.call();
            if party.rank() > 0 {
                self.asked = true;
                world.transport().signal(0, Writer::tagged(tag::WANTED).number(call).number(wanted).0);
            } else if let Some(stretch) = party.inbox.giving.take(call, wanted) {
                self.add(stretch);
            }
        }
        if self.free.1 < bytes {
            return None;
        }
        self.waiting.pop_front();
        let at = self.free.0;
        self.free = (at + bytes, self.free.1 - bytes);
        self.used += bytes;
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
