//! Dedicated servers: ranks that hold no elements and only move those of others to storage and back.
//!
//! The communicator joins clients, which have the first numbers, and servers, which have the last. Servers take part in
//! every agreement without a question of their own, and rank 0 tells them what was decided, and the transfer with it.

use crate::comm::{Comm, Member};
use crate::course::{Watched, moved, seen_by, synced};
use crate::holding::{Holding, number_parts};
use crate::planning::Decision;
use crate::recording::Noted;
use crate::telling;
use crate::zarr::{destinations, wanted};
use hyperslab_plan::{Parameters, Transfer};
use hyperslab_real::Machine;
use hyperslab_walk::trace::Kind;
use hyperslab_walk::{Limits, Party, Question};
use hyperslab_world::{Fault, FaultKind, Reader, Root, Writer};
use std::sync::Arc;
use std::time::Duration;

/// What rank 0 tells of a decision: its kind comes first.
mod kind {
    /// Concerns clients only.
    pub(super) const PLAIN: u8 = 0;
    /// Opens a transfer, which an agreement will close.
    pub(super) const TRANSFER: u8 = 1;
    /// Servers make durable what they wrote; an agreement will follow.
    pub(super) const SYNC: u8 = 2;
    /// Ends the service.
    pub(super) const END: u8 = 3;
    /// Begins or ends recording; an agreement will follow.
    pub(super) const RECORD: u8 = 4;
}

/// A decision that concerns clients only.
pub(crate) fn plain(payload: &[u8]) -> Vec<u8> {
    Writer::tagged(kind::PLAIN).bytes(payload).0
}

/// The decision to begin a transfer.
pub(crate) fn opening(payload: &[u8], what: &str, transfer: &Transfer, limits: Limits) -> Vec<u8> {
    let nanos = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let w = Writer::tagged(kind::TRANSFER).bytes(payload).bytes(what.as_bytes()).bytes(&telling::tell(transfer));
    let w = w.number(nanos(limits.arrival)).number(nanos(limits.progress));
    w.number(nanos(limits.storage)).0
}

/// The decision to begin or end recording.
pub(crate) fn recording(payload: &[u8]) -> Vec<u8> {
    Writer::tagged(kind::RECORD).bytes(payload).0
}

fn syncing(below: &str) -> Vec<u8> {
    Writer::tagged(kind::SYNC).bytes(below.as_bytes()).0
}

/// What of a decision is for clients.
pub(crate) fn payload(told: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut r = Reader::new(told);
    r.tag();
    r.bytes().map(<[u8]>::to_vec).ok_or_else(|| senseless("a decision"))
}

fn senseless(what: &str) -> Fault {
    Fault::new(FaultKind::Peer, format!("rank 0 told of {what} in a way that makes no sense"))
        .hint("all ranks must run the same version")
}

impl Comm {
    /// Serves the clients until they [end](Comm::end_service) the service. What fails on this rank is an error of the
    /// clients, and the service goes on.
    ///
    /// # Errors
    /// When the service breaks off: a rank is lost, or was interrupted.
    pub fn serve(&self) -> Result<(), crate::Error> {
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        loop {
            let question = Question { what: "waiting for clients".into(), ..Question::default() };
            let noted = self.begin_note(machine, party, "", Kind::Commit);
            let told = party.agree(machine, question, || Ok(Vec::new()));
            let told = told.map(|told| (noted, told));
            match (told, party.poisoned()) {
                (Ok((noted, told)), _) => match self.serve_noted(machine, party, noted, &told) {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    // Pieces that overlap are refused on all ranks, and the service goes on.
                    Err(fault) if party.poisoned().is_some() => return Err(fault.into()),
                    Err(_) => {}
                },
                (Err(fault), Some(_)) => return Err(fault.into()),
                // The clients know.
                (Err(_), None) => {}
            }
        }
    }

    /// Does what was decided, and records it if that is wanted. Returns whether the service goes on.
    fn serve_noted(&self, machine: &mut Machine, party: &mut Party, noted: Noted, told: &[u8]) -> Result<bool, Fault> {
        let goes_on = self.serve_one(machine, party, told);
        self.end_note(machine, party, noted, goes_on.as_ref().err());
        goes_on
    }

    /// Does what was decided. Returns whether the service goes on.
    fn serve_one(&self, machine: &mut Machine, party: &mut Party, told: &[u8]) -> Result<bool, Fault> {
        let mut r = Reader::new(told);
        let (what, outcome) = match r.tag() {
            Some(kind::END) => return Ok(false),
            Some(kind::RECORD) => {
                let heard = payload(told).and_then(|payload| self.heed(machine, party, &payload));
                ("recording".to_string(), heard)
            }
            Some(kind::SYNC) => {
                let below = r.text().ok_or_else(|| senseless("a sync"));
                let below = below.map_err(|fault| party.abandon(machine, fault))?;
                let outcome = synced(machine, party, &below, Watched::by_nobody("sync", self.line()))?;
                ("sync".to_string(), outcome.map(|_| ()))
            }
            Some(kind::TRANSFER) => {
                let heard = hear(&mut r).ok_or_else(|| senseless("a transfer"));
                let (what, transfer, parameters, limits, roots) =
                    heard.map_err(|fault| party.abandon(machine, fault))?;
                party.limits = limits;
                let roots = seen_by(roots, machine.is_one_process());
                machine.enter(roots.into());
                let outcome = self.move_for_others(machine, party, (&what, transfer, parameters))?;
                (format!("end of {what}"), outcome)
            }
            _ => return Ok(true),
        };
        let question = Question { what, fault: outcome.err(), ..Question::default() };
        match (party.agree(machine, question, || Ok(Vec::new())), party.poisoned()) {
            (Err(fault), Some(_)) => Err(fault),
            _ => Ok(true),
        }
    }

    fn move_for_others(
        &self,
        machine: &mut Machine,
        party: &mut Party,
        (what, transfer, parameters): (&str, Transfer, Parameters),
    ) -> Result<Result<(), Fault>, Fault> {
        let asks: Vec<_> = transfer.asks.iter().map(|ask| (ask.clone(), Holding::of_others(ask))).collect();
        let made = destinations(wanted(&asks), None, (party.rank(), party.size()));
        let (users, mine) = number_parts(made.map_err(|fault| party.abandon(machine, fault.context(what)))?.0);
        let watched = Watched::by_nobody(what, self.line());
        Ok(moved(machine, party, (Arc::new(transfer), users, mine), None, &parameters, watched)?.map(|_| ()))
    }

    /// Ends the service, on all clients; the servers' [`Comm::serve`] returns.
    ///
    /// # Errors
    /// The failure of an earlier call that nobody heard of; the service ends all the same.
    pub fn end_service(&self) -> Result<(), crate::Error> {
        let before = self.settle("end of the service of dedicated servers");
        if self.is_poisoned() {
            return before;
        }
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        let question = Question::opening("end of the service of dedicated servers", Vec::new(), None);
        party.agree(machine, question, || Ok(vec![kind::END]))?;
        before
    }

    /// Leaves without ending the service, since this rank cannot go on: all other ranks get this as their error.
    pub fn leave_service(&self, why: &str) {
        let mut member = self.member();
        let Member { machine, party, .. } = &mut *member;
        if party.poisoned().is_none() {
            let fault = Fault::new(FaultKind::Peer, format!("a rank left its dedicated servers: {why}"));
            party.abandon(machine, fault);
        }
    }
}

/// On clients: lets the servers make durable what they wrote below this name.
pub(crate) fn sync_servers(
    machine: &mut Machine,
    party: &mut Party,
    question: Question,
    below: &str,
) -> Result<(), Fault> {
    party.agree(machine, question, || Ok(syncing(below))).map(|_| ())
}

/// What, the transfer, how, the limits of the clients, and where objects lie.
type Heard = (String, Transfer, Parameters, Limits, Vec<Root>);

fn hear(r: &mut Reader) -> Option<Heard> {
    let mut payload = Reader::new(r.bytes()?);
    let Decision { parameters, .. } = Decision::from_bytes(payload.bytes()?)?;
    let roots = Root::decode(payload.bytes()?)?;
    let (what, transfer) = (r.text()?, telling::hear(r.bytes()?)?);
    let mut limit = || Some(Duration::from_nanos(r.number()?));
    let limits = Limits { arrival: limit()?, progress: limit()?, storage: limit()? };
    Some((what, transfer, parameters, limits, roots))
}
