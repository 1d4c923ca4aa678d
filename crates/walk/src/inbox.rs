//! Sorts what arrives: a fast rank may already close a call, or start the next, while this one still walks.

use hyperslab_world::{Event, Fault, Reader, Ticket, World};
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
    /// Rank 0 asks whether this rank is here.
    pub(crate) pinged: bool,
    /// Who answered, and what it waits for.
    pub(crate) pongs: Vec<(u32, String)>,
    /// Failures that other ranks report to rank 0.
    pub(crate) reports: Vec<(u32, Fault)>,
    /// The failure that rank 0 decided on for all.
    pub(crate) abort: Option<Fault>,
}

impl Inbox {
    /// Takes what the transport has.
    pub(crate) fn pump(&mut self, world: &mut dyn World) -> Result<(), Fault> {
        let mut events = Vec::new();
        world.transport().poll(&mut events)?;
        for event in events {
            match event {
                Event::Done(ticket, result) => self.done.push((ticket, result)),
                Event::Signal(from, bytes) => self.signal(from, &bytes),
            }
        }
        Ok(())
    }

    fn signal(&mut self, from: u32, bytes: &[u8]) {
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
            Some(tag::REPORT) => self.reports.extend(Fault::from_bytes(reader.rest()).map(|fault| (from, fault))),
            Some(tag::ABORT) => self.abort = self.abort.take().or(Fault::from_bytes(reader.rest())),
            _ => {}
        }
    }

    /// Takes the next signal of agreement number `call`; drops those of earlier ones.
    pub(crate) fn next_consensus(&mut self, call: u64) -> Option<(u32, u8, Vec<u8>)> {
        self.consensus.retain(|signal| signal.2 >= call);
        let at = self.consensus.iter().position(|signal| signal.2 == call)?;
        self.consensus.remove(at).map(|(from, tag, _, contents)| (from, tag, contents))
    }
}
