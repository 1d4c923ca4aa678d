//! What dedicated servers are told: ranks that hold no elements and only move those of others to storage and back.
//!
//! The communicator joins clients, which have the first numbers, and servers, which have the last. Servers take part in
//! every agreement without a question of their own, and rank 0 tells them what was decided, and the transfer with it.

use crate::Decode;
use crate::decision::Decision;
use crate::destinations::destinations;
use crate::holding::{Exposure, Ownership, number_parts};
use crate::telling;
use crate::telling::opened::{Announced, hear_opening};
use hyperslab_plan::{Beside, Parameters, Transfer};
use hyperslab_walk::{Limits, Party};
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

/// Whether some ranks only serve.
pub fn has_servers(party: &Party) -> bool {
    party.clients() < party.size()
}

/// A decision that concerns clients only.
pub fn plain(payload: &[u8]) -> Vec<u8> {
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
pub fn recording(payload: &[u8]) -> Vec<u8> {
    Writer::tagged(kind::RECORD).bytes(payload).0
}

/// The decision to end the service.
pub fn end() -> Vec<u8> {
    vec![kind::END]
}

pub(crate) fn syncing(below: &Root) -> Vec<u8> {
    Writer::tagged(kind::SYNC).bytes(&Root::encode(std::slice::from_ref(below))).0
}

/// What of a decision is for clients.
///
/// # Errors
/// When it is not valid.
pub fn payload(told: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut r = Reader::new(told);
    match r.tag() {
        // It has nothing else.
        Some(kind::SYNC | kind::END) => Ok(Vec::new()),
        _ => r.bytes().map(<[u8]>::to_vec).ok_or_else(|| senseless("a decision")),
    }
}

fn senseless(what: &str) -> Fault {
    Fault::new(FaultKind::Peer, format!("what rank 0 told of {what} cannot be decoded"))
        .hint("run the same version on all ranks")
}

/// What a server is to do.
pub enum Service {
    /// Nothing: it concerned clients only.
    Nothing,
    /// Move elements between others and storage.
    Transfer(Box<Served>),
    /// Make durable what it wrote below this root.
    Sync(Root),
    /// Begin or end recording, as this says.
    Record(Vec<u8>),
    /// End.
    End,
}

/// A transfer of others.
pub struct Served {
    /// What is done, for messages.
    pub what: String,
    /// What moves.
    pub transfer: Arc<Transfer>,
    /// How.
    pub parameters: Parameters,
    /// What is written besides.
    pub beside: Arc<[Beside]>,
    /// The limits of the clients.
    pub limits: Limits,
    /// Where objects lie.
    pub roots: Vec<Root>,
}

impl Service {
    /// What rank 0 told.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn of(told: &[u8], decode: Decode) -> Result<Service, Fault> {
        let mut r = Reader::new(told);
        Ok(match r.tag() {
            Some(kind::END) => Service::End,
            Some(kind::RECORD) => Service::Record(payload(told)?),
            Some(kind::SYNC) => {
                let root = r.bytes().and_then(Root::decode).and_then(|mut roots| roots.pop());
                Service::Sync(root.ok_or_else(|| senseless("a sync"))?)
            }
            Some(kind::TRANSFER) => {
                Service::Transfer(Box::new(hear(&mut r, decode).ok_or_else(|| senseless("a transfer"))?))
            }
            _ => Service::Nothing,
        })
    }
}

impl Served {
    /// What a server has of the arrays: nothing.
    ///
    /// # Errors
    /// When there is no memory even for that.
    pub fn exposure(&self, at: (u32, u32)) -> Result<Exposure, Fault> {
        let held: Vec<Ownership> = self.transfer.asks.iter().map(Ownership::of_others).collect();
        let wanted = self.transfer.asks.iter().zip(&held).map(|(ask, held)| (&*ask.name, ask.memory, held));
        Ok(number_parts(destinations(wanted, None, at)?.0))
    }
}

fn hear(r: &mut Reader, decode: Decode) -> Option<Served> {
    let mut payload = Reader::new(r.bytes()?);
    let Announced { decision: Decision { parameters, .. }, roots, beside } = hear_opening(&mut payload)?;
    let (what, transfer) = (r.text()?, Arc::new(telling::hear(r.bytes()?, decode)?));
    let mut limit = || Some(Duration::from_nanos(r.number()?));
    let limits = Limits { arrival: limit()?, progress: limit()?, storage: limit()? };
    Some(Served { what, transfer, parameters, beside, limits, roots })
}
