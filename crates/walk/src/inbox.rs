//! Sorts what arrives: a fast rank may already close a call, or start the next, while this one still walks.

use crate::giving::Giving;
use hyperslab_world::{Event, Fault, Reader, Ticket, World, Writer};
use std::collections::VecDeque;

/// First byte of a signal.
pub(crate) mod tag {
    pub(crate) const UP: u8 = 1;
    pub(crate) const DOWN: u8 = 2;
    pub(crate) const QUERY: u8 = 3;
    pub(crate) const VALUES: u8 = 4;
    pub(crate) const ALIVE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const PONG: u8 = 7;
    pub(crate) const ABORT: u8 = 8;
    pub(crate) const REPORT: u8 = 9;
    pub(crate) const DECIDING: u8 = 10;
    pub(crate) const TOLD: u8 = 11;
    pub(crate) const HEARD: u8 = 12;
    pub(crate) const GONE: u8 = 13;
    pub(crate) const RELEASED: u8 = 14;
    pub(crate) const WANTED: u8 = 15;
    pub(crate) const GIVEN: u8 = 16;
}

/// What has arrived and not been handled.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Finished sends and receives.
    pub(crate) done: Vec<(Ticket, Result<(), Fault>)>,
    /// Signals of agreements: sender, tag, call, contents.
    pub(crate) consensus: VecDeque<(u32, u8, u64, Vec<u8>)>,
    /// Ranks that said that they progress.
    pub(crate) alive: Vec<u32>,
    /// What others told this rank of their pieces: call, sender, contents.
    pub(crate) told: Vec<(u64, u32, Vec<u8>)>,
    /// Who has heard what this rank told: call, rank.
    pub(crate) heard: Vec<(u64, u32)>,
    /// On rank 0: who asks for room in an object.
    pub(crate) giving: Giving,
    /// Room that rank 0 gave: call, first byte, bytes.
    given: Vec<(u64, u64, u64)>,
    /// Rank 0 asks whether this rank is here.
    pub(crate) pinged: bool,
    /// Who answered, and what it waits for.
    pub(crate) pongs: Vec<(u32, String)>,
    /// Failures that other ranks report to rank 0, and whether nobody has to be asked for the cause.
    pub(crate) reports: Vec<(u32, Fault, bool)>,
    /// Neighbours that will make no call any more.
    pub(crate) gone: Vec<u32>,
    /// The failure that rank 0, or a rank that left, decided on for all.
    pub(crate) abort: Option<Fault>,
    /// Rank 0 holds no lock any more of what failed.
    pub(crate) released: bool,
}

impl Inbox {
    /// Takes what the transport has.
    pub(crate) fn pump(&mut self, world: &mut dyn World) -> Result<(), Fault> {
        let mut events = Vec::new();
        world.transport().poll(&mut events)?;
        for event in events {
            match event {
                Event::Done(ticket, result) => self.done.push((ticket, result)),
                Event::Signal(from, bytes) => {
                    if let Some(call) = self.signal(from, &bytes) {
                        world.transport().signal(from, Writer::tagged(tag::HEARD).number(call).0);
                    }
                }
            }
        }
        self.giving.answer(world, tag::GIVEN);
        Ok(())
    }

    /// Tells rank 0, if it asks, that this rank is here, and what it waits for.
    pub(crate) fn answer(&mut self, world: &mut dyn World, waits_for: impl FnOnce() -> String) {
        if std::mem::take(&mut self.pinged) {
            let mut pong = vec![tag::PONG];
            pong.extend(waits_for().as_bytes());
            world.transport().signal(0, pong);
        }
    }

    /// Sorts a signal in. Returns a call in which the sender waits to know that this rank has heard.
    fn signal(&mut self, from: u32, bytes: &[u8]) -> Option<u64> {
        let mut reader = Reader::new(bytes);
        match reader.tag() {
            Some(tag @ (tag::UP | tag::DOWN | tag::QUERY | tag::VALUES | tag::DECIDING)) => {
                if let Some(call) = reader.number() {
                    self.consensus.push_back((from, tag, call, reader.rest().to_vec()));
                }
            }
            Some(tag::ALIVE) => self.alive.push(from),
            Some(tag::PING) => self.pinged = true,
            Some(tag::PONG) => self.pongs.push((from, String::from_utf8_lossy(reader.rest()).into_owned())),
            Some(tag::REPORT) => {
                let known = reader.tag()? == 1;
                self.reports.extend(Fault::from_bytes(reader.rest()).map(|fault| (from, fault, known)));
            }
            Some(tag::ABORT) => self.abort = self.abort.take().or(Fault::from_bytes(reader.rest())),
            Some(tag::TOLD) => {
                let call = reader.number()?;
                self.told.push((call, from, reader.rest().to_vec()));
                return Some(call);
            }
            Some(tag::WANTED) => self.giving.ask(reader.number()?, from, reader.number()?),
            Some(tag::GIVEN) => self.given.push((reader.number()?, reader.number()?, reader.number()?)),
            Some(tag::RELEASED) => self.released = true,
            Some(tag::GONE) => self.gone.push(from),
            Some(tag::HEARD) => self.heard.push((reader.number()?, from)),
            _ => {}
        }
        None
    }

    /// Whether the call cannot succeed any more, since some rank has given it up.
    pub(crate) fn is_lost(&self) -> bool {
        !self.reports.is_empty() || self.abort.is_some()
    }

    /// Takes the ranks that have heard what this rank told in a call.
    pub(crate) fn take_heard(&mut self, call: u64) -> Vec<u32> {
        let of_call = self.heard.iter().filter(|heard| heard.0 == call).map(|heard| heard.1).collect();
        self.heard.retain(|heard| heard.0 > call);
        of_call
    }

    /// Takes the room that rank 0 gave in a call; drops that of earlier ones.
    pub(crate) fn take_given(&mut self, call: u64) -> Vec<(u64, u64)> {
        let given = std::mem::take(&mut self.given).into_iter();
        given.filter(|given| given.0 == call).map(|(_, first, bytes)| (first, bytes)).collect()
    }

    /// Takes what others told this rank in a call; drops what they told in earlier ones.
    pub(crate) fn take_told(&mut self, call: u64) -> Vec<(u32, Vec<u8>)> {
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.told).into_iter().filter(|told| told.0 >= call).partition(|told| told.0 == call);
        self.told = later;
        now.into_iter().map(|(_, from, bytes)| (from, bytes)).collect()
    }

    /// Takes the next signal of agreement number `call`; drops those of earlier ones.
    pub(crate) fn next_consensus(&mut self, call: u64) -> Option<(u32, u8, Vec<u8>)> {
        self.consensus.retain(|signal| signal.2 >= call);
        let at = self.consensus.iter().position(|signal| signal.2 == call)?;
        self.consensus.remove(at).map(|(from, tag, _, contents)| (from, tag, contents))
    }
}
