//! The transport of real ranks: one protocol over any wire.
//!
//! One side of a message has its data in a buffer slot and is active; the other has them in a user's array, which is
//! exposed for the whole transfer, and is passive. Once in a transfer and pair of ranks, the passive side tells where
//! its arrays lie. Then the active side decides for each message. If it can reach that memory, and the pieces lie there
//! in runs that are not too short, it moves them itself, in one copy, and the passive side only hears how many messages
//! are done; it may sleep meanwhile. Otherwise the data travel as datagrams, packed and unpacked by the side where
//! they are scattered, and only on the receiver's grant. News about messages arrive in the order of the messages.
//!
//! ```text
//!            passive (exposed array)              active (slot)
//! always     EXPOSE ------------------------->
//! direct            <------------------------- DONE n     after copying straight from or to the array
//! packed,           <------------------------- GRANT      a slot waits for the next message
//!  write     DATA   ------------------------->
//! packed,           <------------------------- DATA       at most CREDITS that are not yet answered
//!  read      CREDIT ------------------------->
//! ```

use crate::courier_bytes::{ELEMENT_BYTES, Letter, Packed, element_bytes, element_from, expose_bytes, exposed_views};
use crate::neighbour::{Crossing, Identity, Reach, reach};
use crate::wire::{Wire, WireError};
use hyperslab_layout::reach::is_worth_reaching;
use hyperslab_layout::{ElementType, Nest, View, dense_strides, nests};
use hyperslab_pack::{CopyError, Memory, copy_region};
use hyperslab_world::{Event, Exposed, Fault, FaultKind, Here, Part, Ticket, Transport};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Messages that a reader lets each server send before it has unpacked them.
const CREDITS: u64 = 2;
/// Finished messages after which a busy active side tells the passive one.
const DONE_BATCH: u64 = 16;

/// What the other end of a pair exposed: where its memory is, and its view of each array.
pub(crate) struct Peek {
    pub(crate) identity: Identity,
    /// Base address, length \[B\] and view of each array; no view where runs are listed and too short to be reached for.
    pub(crate) arrays: Vec<(u64, u64, Option<View>)>,
}

type Op = (Ticket, Vec<Part>);

/// What is between this rank and another in the current transfer.
#[derive(Default)]
struct Pair {
    /// Whether this rank has told where its arrays lie.
    told: bool,
    peek: Option<Peek>,
    reach: Option<Reach>,
    /// Active: receives into slots, sends from slots.
    pulls: VecDeque<Op>,
    pushes: VecDeque<Op>,
    /// Whether the first of these goes straight to its place, once somebody has asked: it may have to wait.
    pushes_directly: Option<bool>,
    /// Messages moved directly and not yet told.
    pulled: u64,
    pushed: u64,
    /// Receives that wait for a datagram, and datagrams that came for them.
    granted: VecDeque<Op>,
    arrived: VecDeque<Packed>,
    /// Datagrams that may still be sent for `pushes`.
    credits: u64,
    /// Passive: sends and receives of exposed arrays.
    offers: VecDeque<Op>,
    awaits: VecDeque<Op>,
    /// News of them, in their order; they may come before the operation is submitted.
    offer_news: VecDeque<OfferNews>,
    await_news: VecDeque<AwaitNews>,
}

/// What the active side says of a message out of an exposed array.
enum OfferNews {
    /// It has taken it.
    Taken,
    /// It wants it sent.
    Wanted,
}

/// What the active side says of a message into an exposed array.
enum AwaitNews {
    /// It has put it there.
    Placed,
    /// Here it is.
    Data(Packed),
}

/// Sends and receives pieces between ranks joined by a wire.
pub struct Courier {
    wire: Box<dyn Wire>,
    identity: Identity,
    transfer: u64,
    exposed: Arc<[Exposed]>,
    pairs: BTreeMap<u32, Pair>,
    /// Letters of transfers that this rank has not begun.
    early: Vec<(u32, Letter)>,
    events: Vec<Event>,
    /// The pair that was served last, so that each gets its turn.
    turn: u32,
    broken: Option<Fault>,
}

impl Courier {
    /// A transport over this wire.
    pub fn new(wire: Box<dyn Wire>) -> Courier {
        Courier {
            wire,
            identity: Identity::mine(),
            transfer: 0,
            exposed: Arc::new([]),
            pairs: BTreeMap::new(),
            early: Vec::new(),
            events: Vec::new(),
            turn: 0,
            broken: None,
        }
    }

    /// The wire beneath.
    pub fn wire(&mut self) -> &mut dyn Wire {
        &mut *self.wire
    }

    /// Whether an operation is under way, so that news of it may arrive.
    pub(crate) fn expects(&self) -> bool {
        let waits = |pair: &Pair| {
            [&pair.pulls, &pair.pushes, &pair.granted, &pair.offers, &pair.awaits].iter().any(|ops| !ops.is_empty())
        };
        self.pairs.values().any(waits)
    }

    /// Gives the wire back, for closing it.
    pub fn into_wire(self) -> Box<dyn Wire> {
        self.wire
    }

    fn post(&mut self, to: u32, letter: Letter) {
        let posted = self.wire.send(to, letter.into_bytes());
        self.heed(posted);
    }

    fn heed(&mut self, posted: Result<(), WireError>) {
        if let Err(error) = posted {
            self.broken.get_or_insert_with(|| broken(&error.0));
        }
    }

    /// Tells a peer, once, where this rank's arrays lie.
    fn introduce(&mut self, peer: u32) {
        if !std::mem::replace(&mut self.pairs.entry(peer).or_default().told, true) {
            let letter = Letter::Expose(self.transfer, expose_bytes(&self.identity, &self.exposed));
            self.post(peer, letter);
        }
    }

    fn receive(&mut self) -> Result<(), Fault> {
        while let Some((from, bytes)) = self.wire.poll().map_err(|error| broken(&error.0))? {
            let Some(letter) = Letter::from_bytes(bytes) else {
                return Err(broken(&format!("a message from rank {from} cannot be decoded")));
            };
            match letter.transfer() {
                Some(transfer) if transfer > self.transfer => self.early.push((from, letter)),
                Some(transfer) if transfer < self.transfer => {}
                _ => self.handle(from, letter)?,
            }
        }
        Ok(())
    }

    fn handle(&mut self, from: u32, letter: Letter) -> Result<(), Fault> {
        if let Letter::Signal(bytes) = letter {
            self.events.push(Event::Signal(from, bytes));
            return Ok(());
        }
        let pair = self.pairs.entry(from).or_default();
        match letter {
            Letter::Signal(_) => {}
            Letter::Expose(_, bytes) => {
                let peek = exposed_views(&bytes)
                    .ok_or_else(|| broken(&format!("what rank {from} told of its arrays cannot be decoded")))?;
                pair.reach = Some(reach(&peek.identity));
                pair.credits = CREDITS;
                pair.peek = Some(peek);
            }
            Letter::Pulled(_, count) => pair.offer_news.extend((0..count).map(|_| OfferNews::Taken)),
            Letter::Pushed(_, count) => pair.await_news.extend((0..count).map(|_| AwaitNews::Placed)),
            Letter::Grant(_, count) => pair.offer_news.extend((0..count).map(|_| OfferNews::Wanted)),
            Letter::Credit(_, count) => pair.credits += count,
            Letter::ForSlot(_, bytes) => pair.arrived.push_back(bytes),
            Letter::ForExposed(_, bytes) => pair.await_news.push_back(AwaitNews::Data(bytes)),
        }
        self.passive(from)
    }

    /// Ends passive operations of which there are news, sending and placing datagrams.
    fn passive(&mut self, peer: u32) -> Result<(), Fault> {
        let (transfer, exposed) = (self.transfer, self.exposed.clone());
        let pair = self.pairs.entry(peer).or_default();
        let mut letters = Vec::new();
        while !pair.offers.is_empty() {
            let Some(news) = pair.offer_news.pop_front() else { break };
            let (ticket, parts) = pair.offers.pop_front().expect("just seen");
            if let OfferNews::Wanted = news {
                letters.push(Letter::ForSlot(transfer, gather(&parts, &exposed, &mut *self.wire)?));
            }
            self.events.push(Event::Done(ticket, Ok(())));
        }
        while !pair.awaits.is_empty() {
            let Some(news) = pair.await_news.pop_front() else { break };
            let (ticket, parts) = pair.awaits.pop_front().expect("just seen");
            let mut result = Ok(());
            if let AwaitNews::Data(bytes) = news {
                result = scatter(bytes, &parts, &exposed).map(|bytes| self.wire.reuse(bytes));
                letters.push(Letter::Credit(transfer, 1));
            }
            self.events.push(Event::Done(ticket, result));
        }
        letters.into_iter().for_each(|letter| self.post(peer, letter));
        Ok(())
    }

    /// Serves active operations of one pair: one copy, or what can be asked for and sent. Returns whether it copied.
    fn active(&mut self, peer: u32) -> Result<bool, Fault> {
        let (transfer, exposed) = (self.transfer, self.exposed.clone());
        let pair = self.pairs.get_mut(&peer).expect("pairs are never removed inside a transfer");
        let Some(peek) = &pair.peek else { return Ok(false) };
        let near = pair.reach.unwrap_or(Reach::Remote);
        let mut letters = Vec::new();
        let mut copied = false;
        while let (Some(_), false) = (pair.pulls.front(), copied) {
            let (ticket, parts) = pair.pulls.pop_front().expect("just seen");
            if worth_reaching(near, peek, &parts, true) {
                self.events.push(Event::Done(ticket, reach_over(peek, &parts, true)));
                (pair.pulled, copied) = (pair.pulled + 1, true);
            } else {
                tell(&mut letters, Letter::Pulled(transfer, std::mem::take(&mut pair.pulled)));
                letters.push(Letter::Grant(transfer, 1));
                pair.granted.push_back((ticket, parts));
            }
        }
        while let (Some(_), Some(_), false) = (pair.granted.front(), pair.arrived.front(), copied) {
            let (ticket, parts) = pair.granted.pop_front().expect("just seen");
            let bytes = pair.arrived.pop_front().expect("just seen");
            let placed = scatter(bytes, &parts, &exposed).map(|bytes| self.wire.reuse(bytes));
            self.events.push(Event::Done(ticket, placed));
            copied = true;
        }
        while let (Some((_, parts)), false) = (pair.pushes.front(), copied) {
            let direct = *pair.pushes_directly.get_or_insert_with(|| worth_reaching(near, peek, parts, false));
            if !direct && pair.credits == 0 {
                break;
            }
            let (ticket, parts) = pair.pushes.pop_front().expect("just seen");
            pair.pushes_directly = None;
            if direct {
                self.events.push(Event::Done(ticket, reach_over(peek, &parts, false)));
                pair.pushed += 1;
            } else {
                tell(&mut letters, Letter::Pushed(transfer, std::mem::take(&mut pair.pushed)));
                letters.push(Letter::ForExposed(transfer, gather(&parts, &exposed, &mut *self.wire)?));
                self.events.push(Event::Done(ticket, Ok(())));
                pair.credits -= 1;
            }
            copied = true;
        }
        // Tell now if enough is done, or if there is nothing more to do for this peer at the moment.
        let idle = pair.pulls.is_empty() && pair.pushes.is_empty();
        if pair.pulled >= DONE_BATCH || idle {
            tell(&mut letters, Letter::Pulled(transfer, std::mem::take(&mut pair.pulled)));
        }
        if pair.pushed >= DONE_BATCH || idle {
            tell(&mut letters, Letter::Pushed(transfer, std::mem::take(&mut pair.pushed)));
        }
        letters.into_iter().for_each(|letter| self.post(peer, letter));
        Ok(copied)
    }
}

/// Adds a letter that counts something, unless it counts nothing.
fn tell(letters: &mut Vec<Letter>, letter: Letter) {
    if !matches!(letter, Letter::Pulled(_, 0) | Letter::Pushed(_, 0)) {
        letters.push(letter);
    }
}

/// Whether to copy straight from the arrays that a peer exposed, or to them.
fn worth_reaching(near: Reach, peek: &Peek, parts: &[Part], incoming: bool) -> bool {
    match near {
        // Of what lies by lists only its owner knows where.
        _ if parts.iter().any(|part| matches!(peek.arrays.get(part.array as usize), Some((_, _, None)))) => false,
        Reach::SameProcess => true,
        Reach::Remote => false,
        Reach::Neighbour => {
            let (mut bytes, mut runs) = (0, 0);
            for part in parts {
                let Here::Slot(_, here) = &part.here else { return false };
                let Some((_, _, Some(there))) = peek.arrays.get(part.array as usize) else { return true };
                let element = there.element.bytes();
                bytes += part.region.elements() * element;
                let runs_of = |nest: Nest| nest.elements() * element / nest.run_bytes_a(element).max(1);
                runs += nests(&part.region, there, here).map(runs_of).sum::<u64>();
            }
            is_worth_reaching(bytes, runs, incoming)
        }
    }
}

impl Transport for Courier {
    fn rank(&self) -> u32 {
        self.wire.rank()
    }

    fn is_one_process(&mut self) -> bool {
        self.wire.is_one_process()
    }

    fn is_gone(&self, rank: u32) -> bool {
        self.wire.is_gone(rank)
    }

    fn size(&self) -> u32 {
        self.wire.size()
    }

    fn begin(&mut self, transfer: u64, arrays: Vec<Exposed>) {
        self.transfer = transfer;
        self.exposed = arrays.into();
        self.pairs.clear();
        let (now, later) =
            std::mem::take(&mut self.early).into_iter().partition(|(_, l)| l.transfer() == Some(transfer));
        self.early = later;
        for (from, letter) in now {
            if let Err(fault) = self.handle(from, letter) {
                self.broken.get_or_insert(fault);
            }
        }
    }

    fn send(&mut self, ticket: Ticket, to: u32, parts: Vec<Part>) {
        let passive = matches!(parts.first().map(|part| &part.here), None | Some(Here::Exposed));
        let pair = self.pairs.entry(to).or_default();
        if !passive {
            return pair.pushes.push_back((ticket, parts));
        }
        pair.offers.push_back((ticket, parts));
        self.introduce(to);
        if let Err(fault) = self.passive(to) {
            self.broken.get_or_insert(fault);
        }
    }

    fn recv(&mut self, ticket: Ticket, from: u32, parts: Vec<Part>) {
        let passive = matches!(parts.first().map(|part| &part.here), None | Some(Here::Exposed));
        let pair = self.pairs.entry(from).or_default();
        if !passive {
            return pair.pulls.push_back((ticket, parts));
        }
        pair.awaits.push_back((ticket, parts));
        self.introduce(from);
        if let Err(fault) = self.passive(from) {
            self.broken.get_or_insert(fault);
        }
    }

    fn end(&mut self) {
        self.exposed = Arc::new([]);
        self.pairs.clear();
        self.wire.free_spare();
    }

    fn signal(&mut self, to: u32, bytes: Vec<u8>) {
        self.post(to, Letter::Signal(bytes));
    }

    fn note(&mut self, to: u32, bytes: Vec<u8>) {
        let posted = self.wire.note(to, Letter::Signal(bytes).into_bytes());
        self.heed(posted);
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), Fault> {
        self.receive()?;
        let peers: Vec<u32> = self.pairs.keys().copied().collect();
        let start = peers.partition_point(|&peer| peer <= self.turn);
        for &peer in peers[start..].iter().chain(&peers[..start]) {
            if self.active(peer)? {
                // One copy, then back to the walker: a finished write may free a slot meanwhile.
                self.turn = peer;
                break;
            }
        }
        events.append(&mut self.events);
        self.broken.clone().map_or(Ok(()), Err)
    }
}

fn broken(why: &str) -> Fault {
    Fault::new(FaultKind::Peer, format!("the link to the other ranks broke: {why}"))
}

/// Moves the pieces of a message between slots here and the arrays that a peer exposed, those of many arrays by few calls.
fn reach_over(peek: &Peek, parts: &[Part], incoming: bool) -> Result<(), Fault> {
    let lost = |error: std::io::Error| {
        broken(&format!("the memory of a neighbour process cannot be reached any more: {error}"))
            .hint("look whether the process has died; set HYPERSLAB_DIRECT=0 to use messages instead")
    };
    let mut crossing = if incoming { Crossing::pull(&peek.identity) } else { Crossing::push(&peek.identity) };
    for part in parts {
        let Here::Slot(memory, here) = &part.here else { continue };
        let Some((base, bytes, Some(there))) = peek.arrays.get(part.array as usize) else {
            return Err(broken(&format!("a peer did not expose its array number {}", part.array)));
        };
        for nest in nests(&part.region, there, here) {
            check(&nest, *bytes, there.element, memory, here.element)?;
            let Some(address) = memory.host_address() else {
                return Err(Fault::of_copy(CopyError::OutOfReach(memory.kind()), Some(&part.region)));
            };
            let local = (address as *mut u8, here.element);
            // SAFETY: both hulls were checked against the memories; the peer keeps its array until the transfer ends on
            // all ranks, and the slot belongs to this operation until its ticket returns, which is after the end here.
            unsafe { crossing.add(&nest, (*base, there.element), local) }.map_err(lost)?;
        }
    }
    // SAFETY: as above.
    let copied = unsafe { crossing.finish() }.map_err(lost)?;
    // Which of several pieces it was is not known.
    let region = if let [part] = parts { Some(&part.region) } else { None };
    copied.map_err(|error| Fault::of_copy(error, region))
}

fn check(nest: &Nest, bytes: u64, there: ElementType, memory: &Memory, here: ElementType) -> Result<(), Fault> {
    let fits = |hull: Option<(i64, i64)>, bytes: u64| hull.is_none_or(|(low, high)| low >= 0 && high as u64 <= bytes);
    if fits(nest.hull_a(there.bytes()), bytes) && fits(nest.hull_b(here.bytes()), memory.bytes()) {
        return Ok(());
    }
    let text = format!(
        "a piece would reach outside of its array: bytes {:?} of {bytes} there, {:?} of {} here",
        nest.hull_a(there.bytes()),
        nest.hull_b(here.bytes()),
        memory.bytes()
    );
    Err(Fault::new(FaultKind::Invalid, text).hint("the array is smaller than its declared part"))
}

fn place(part: &Part, exposed: &[Exposed]) -> (Memory, Arc<View>) {
    match &part.here {
        Here::Slot(memory, view) => (memory.clone(), view.clone()),
        Here::Exposed => {
            let exposed = &exposed[part.array as usize];
            (exposed.memory.clone(), exposed.view.clone())
        }
    }
}

/// The dense form in which a piece travels: row-major, in the sender's element type.
fn dense(part: &Part, element: ElementType, base: u64) -> View {
    let order: Vec<usize> = (0..part.region.ndim()).collect();
    let strides = dense_strides(&part.region.shape(), &order, element.bytes());
    View::held(&part.region, base as i64, &strides, element)
}

/// Where the elements of a message of so many pieces begin \[B\]: behind the types of elements of each, at a multiple of what
/// allocators align to.
fn packed_from(parts: usize) -> u64 {
    (Packed::HEAD + ELEMENT_BYTES * parts).next_multiple_of(16) as u64
}

/// The pieces of a message as bytes: the element type of each, and then the elements.
fn gather(parts: &[Part], exposed: &[Exposed], wire: &mut dyn Wire) -> Result<Packed, Fault> {
    let places: Vec<(Memory, Arc<View>)> = parts.iter().map(|part| place(part, exposed)).collect();
    let sizes = parts.iter().zip(&places).map(|(part, (_, view))| part.region.elements() * view.element.bytes());
    let mut at = packed_from(parts.len());
    let total = at + sizes.sum::<u64>();
    let packed = match usize::try_from(total).ok().and_then(|bytes| wire.spare(bytes)) {
        Some(spare) => Memory::from_vec(spare),
        None => Memory::for_vec(total).map_err(|_| Fault::no_memory(format_args!("a message of {total} B")))?,
    };
    let mut types = Vec::with_capacity(ELEMENT_BYTES * parts.len());
    for (part, (memory, view)) in parts.iter().zip(&places) {
        let to = dense(part, view.element, at);
        copy_region(&part.region, (memory, view), (&packed, &to))
            .map_err(|error| Fault::of_copy(error, Some(&part.region)))?;
        types.extend(element_bytes(view.element));
        at += part.region.elements() * view.element.bytes();
    }
    packed.write_bytes(Packed::HEAD as u64, &types);
    Ok(Packed(packed.into_vec()))
}

/// Places what [`gather`] made, converting where types differ; gives its bytes back.
fn scatter(Packed(bytes): Packed, parts: &[Part], exposed: &[Exposed]) -> Result<Vec<u8>, Fault> {
    let short = || broken("a message between ranks is too short");
    let mut types = Vec::with_capacity(parts.len());
    let mut at = packed_from(parts.len());
    if (bytes.len() as u64) < at {
        return Err(short());
    }
    for chunk in bytes[Packed::HEAD..].chunks(ELEMENT_BYTES).take(parts.len()) {
        types.push(element_from(chunk).ok_or_else(short)?);
    }
    let packed = Memory::from_vec(bytes);
    for (part, element) in parts.iter().zip(types) {
        let (memory, view) = place(part, exposed);
        let from = dense(part, element, at);
        copy_region(&part.region, (&packed, &from), (&memory, &view))
            .map_err(|error| Fault::of_copy(error, Some(&part.region)))?;
        at += part.region.elements() * element.bytes();
    }
    Ok(packed.into_vec())
}
