//! Room in an object for chunks whose bytes are known only once they are encoded.
//!
//! Rank 0 gives out stretches of the object, one behind the other, whatever else it is at: it answers when it takes what has
//! arrived. Who encodes asks before it needs room, for as many chunks as it sees coming, of the size that they had so far;
//! so nobody waits for rank 0, which may be encoding, nor for the sizes of others. What is lost is about a chunk for each
//! stretch. When all have written, each tells rank 0 where its chunks lie ([`TellingPlaces`]).

use crate::consensus::{Consensus, Question};
use crate::inbox::tag;
use crate::limits::{Awaited, Waits};
use crate::party::Party;
use crate::policy::{AHEAD_CHUNKS, AHEAD_PART, EARLY_CHUNKS, STRETCHES_MAX, TOLD_AT_ONCE};
use hyperslab_layout::stored::Stretch;
use hyperslab_plan::{ChunkOf, StepId};
use hyperslab_world::{Fault, FaultKind, Reader, World, Writer};
use std::collections::VecDeque;

/// A chunk that was written where there was room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacedChunk {
    /// Which one.
    pub chunk: ChunkOf,
    /// Its first byte in the object \[B\].
    pub at: u64,
    /// Bytes that are stored \[B\].
    pub bytes: u64,
}

/// What a rank that writes has of the object.
#[derive(Default)]
pub(crate) struct RoomForChunks {
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
    pub(crate) placed: Vec<PlacedChunk>,
}

impl RoomForChunks {
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

    /// Requests more where there is little.
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

/// One rank's part in telling rank 0 where chunks lie: it tells, and then all agree that they have told.
pub struct TellingPlaces {
    call: u64,
    what: String,
    /// Messages that rank 0 has not answered.
    missing: usize,
    agreeing: Option<Consensus>,
    /// What rank 0 would tell itself.
    own: Vec<PlacedChunk>,
}

/// On rank 0: where chunks lie, and where the room ends that was given out.
pub type ToldPlaces = (Vec<PlacedChunk>, Option<u64>);

impl TellingPlaces {
    /// Tells rank 0 of these, in the call that all ranks opened last.
    pub fn new(world: &mut dyn World, party: &mut Party, what: &str, placed: Vec<PlacedChunk>) -> TellingPlaces {
        party.begin_part();
        let (call, what) = (party.call(), format!("where chunks lie after {what}"));
        if party.rank() == 0 {
            return TellingPlaces { call, what, missing: 0, agreeing: None, own: placed };
        }
        let parts = placed.chunks(TOLD_AT_ONCE);
        let missing = parts.len();
        parts.for_each(|part| world.transport().signal(0, to_bytes(call, part)));
        TellingPlaces { call, what, missing, agreeing: None, own: Vec::new() }
    }

    /// Goes on; what rank 0 knows once all have told. A failure is known to all.
    pub fn poll(&mut self, world: &mut dyn World, party: &mut Party) -> Option<Result<ToldPlaces, Fault>> {
        loop {
            if let Some(consensus) = &mut self.agreeing {
                let agreed = consensus.poll(world, party, &mut || Ok(Vec::new()))?;
                let heard = |_| self.heard(party).map_err(|fault| party.abandon(world, fault));
                return Some(agreed.and_then(heard));
            }
            let heard = party.inbox.take_heard(self.call).len();
            if heard > 0 {
                party.progress();
            }
            self.missing -= heard.min(self.missing);
            if self.missing > 0 {
                return None;
            }
            match party.open(Question { what: self.what.clone(), ..Question::default() }) {
                Ok(consensus) => self.agreeing = Some(consensus),
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    fn heard(&mut self, party: &mut Party) -> Result<ToldPlaces, Fault> {
        let mut all = std::mem::take(&mut self.own);
        for (from, bytes) in party.inbox.take_told(self.call) {
            let placed = from_bytes(&bytes).ok_or_else(|| {
                Fault::new(
                    FaultKind::Peer,
                    format!("rank {from} told where chunks lie in another way than this version"),
                )
            })?;
            all.extend(placed);
        }
        Ok((all, party.inbox.giving.end(self.call)))
    }
}

impl Awaited for TellingPlaces {
    fn waits(&self) -> Waits {
        self.agreeing.as_ref().map_or_else(Waits::default, Awaited::waits)
    }

    fn waits_for(&self) -> String {
        match &self.agreeing {
            Some(consensus) => consensus.waits_for(),
            None => format!("{}: waits for rank 0 to hear", self.what),
        }
    }
}

impl Party {
    /// Lets rank 0 give out room from this byte on, in the call that all ranks opened last.
    pub fn give_room(&mut self, world: &mut dyn World, from: u64) {
        if self.rank() == 0 {
            let call = self.call();
            let giving = &mut self.inbox.giving;
            giving.begin(call, from);
            giving.answer(world, tag::GIVEN);
        }
    }
}

fn to_bytes(call: u64, placed: &[PlacedChunk]) -> Vec<u8> {
    let tell = |w: Writer, PlacedChunk { chunk, at, bytes }: &PlacedChunk| {
        w.number(u64::from(chunk.array)).number(chunk.number).number(*at).number(*bytes)
    };
    placed.iter().fold(Writer::tagged(tag::TOLD).number(call), tell).0
}

fn from_bytes(bytes: &[u8]) -> Option<Vec<PlacedChunk>> {
    let mut r = Reader::new(bytes);
    let mut placed = Vec::new();
    while let Some(array) = r.number() {
        let chunk = ChunkOf { array: array.try_into().ok()?, number: r.number()? };
        placed.push(PlacedChunk { chunk, at: r.number()?, bytes: r.number()? });
    }
    Some(placed)
}
