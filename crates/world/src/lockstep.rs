//! The worst legal transport: it buffers nothing and delivers in any order.
//!
//! All ranks live in one thread and share a [`Hub`]. A message moves only when its send *and* its receive have been
//! submitted, one message at a time, in an order that a seed or a script decides. Whatever runs correctly on it does
//! not lean on buffering or order that a real transport happens to have. With a cost per byte it also keeps virtual
//! time, in which each active side (see [`Here`]) moves one message at a time.

use crate::{
    Clock, Compute, Desk, Event, Exposed, Fault, Here, InlineCompute, InlineDesk, Part, Store, Ticket, Transport, World,
};
use hyperslab_layout::{View, nests};
use hyperslab_pack::{CopyError, Memory, OutOfMemory, copy};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A message end that waits for the other: its ticket and parts.
type End = (Ticket, Vec<Part>);

#[derive(Default)]
struct Rank {
    exposed: Vec<Exposed>,
    events: Vec<Event>,
    /// When this rank can take its next message \[ns\].
    free_at_ns: u64,
}

/// What decides which of several messages moves first.
enum Order {
    Random(fastrand::Rng),
    /// Choices to make, then always the first; and those made, each of how many.
    Scripted(VecDeque<usize>, Vec<(usize, usize)>),
}

impl Order {
    /// One of `count` possibilities.
    fn choose(&mut self, count: usize) -> usize {
        match self {
            Order::Random(random) => random.usize(0..count),
            Order::Scripted(script, made) => {
                let choice = script.pop_front().unwrap_or(0).min(count - 1);
                made.push((choice, count));
                choice
            }
        }
    }
}

/// What the ranks share.
pub struct Hub {
    order: Order,
    ranks: Vec<Rank>,
    /// Per (from, to), in order: sends and receives without a partner.
    sends: Vec<VecDeque<End>>,
    recvs: Vec<VecDeque<End>>,
    signals: Vec<VecDeque<Vec<u8>>>,
    /// Finished events that become visible at a time \[ns\].
    later: Vec<(u64, u32, Event)>,
    now_ns: u64,
    wake_ns: Vec<u64>,
    ns_per_kib: u64,
    /// Messages delivered so far.
    pub messages: u64,
    /// Bytes of elements delivered so far, in the receiver's element type.
    pub bytes: u64,
    /// Signals delivered so far.
    pub signals_delivered: u64,
}

impl Hub {
    /// A hub for this many ranks. A message takes `ns_per_kib` nanoseconds for each KiB.
    pub fn new(ranks: u32, seed: u64, ns_per_kib: u64) -> Rc<RefCell<Hub>> {
        Hub::ordered(ranks, Order::Random(fastrand::Rng::with_seed(seed)), ns_per_kib)
    }

    /// A hub whose messages take no time, in the order of a script of choices; see [`Hub::choices`].
    pub fn scripted(ranks: u32, script: Vec<usize>) -> Rc<RefCell<Hub>> {
        Hub::ordered(ranks, Order::Scripted(script.into(), Vec::new()), 0)
    }

    /// The choices that a scripted hub has made, each of how many, so that a test can go through all scripts.
    pub fn choices(&self) -> &[(usize, usize)] {
        if let Order::Scripted(_, made) = &self.order { made } else { &[] }
    }

    fn ordered(ranks: u32, order: Order, ns_per_kib: u64) -> Rc<RefCell<Hub>> {
        let pairs = (ranks as usize).pow(2);
        Rc::new(RefCell::new(Hub {
            order,
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            sends: (0..pairs).map(|_| VecDeque::new()).collect(),
            recvs: (0..pairs).map(|_| VecDeque::new()).collect(),
            signals: (0..pairs).map(|_| VecDeque::new()).collect(),
            later: Vec::new(),
            now_ns: 0,
            wake_ns: Vec::new(),
            ns_per_kib,
            messages: 0,
            bytes: 0,
            signals_delivered: 0,
        }))
    }

    /// Virtual time \[ns\].
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Asks that time not skip past this moment.
    pub fn wake_at(&mut self, ns: u64) {
        self.wake_ns.push(ns);
    }

    /// Delivers one message or signal, or lets time pass to the next thing that happens. Returns whether anything
    /// did; when not, and no rank has anything to do, the ranks are deadlocked.
    pub fn turn(&mut self) -> bool {
        let ready: Vec<usize> = (0..self.sends.len())
            .filter(|&pair| {
                !self.signals[pair].is_empty() || (!self.sends[pair].is_empty() && !self.recvs[pair].is_empty())
            })
            .collect();
        if !ready.is_empty() {
            let choice = self.order.choose(ready.len());
            self.deliver(ready[choice]);
            return true;
        }
        let next =
            self.later.iter().map(|l| l.0).chain(self.wake_ns.iter().copied()).filter(|&t| t > self.now_ns).min();
        if let Some(next) = next {
            self.now_ns = next;
            self.wake_ns.retain(|&t| t > next);
            self.release();
        }
        next.is_some()
    }

    fn release(&mut self) {
        let now = self.now_ns;
        let (due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.later).into_iter().partition(|l| l.0 <= now);
        self.later = rest;
        for (_, rank, event) in due {
            self.ranks[rank as usize].events.push(event);
        }
    }

    fn deliver(&mut self, pair: usize) {
        let size = self.ranks.len();
        let (from, to) = (pair / size, pair % size);
        let message = !self.sends[pair].is_empty() && !self.recvs[pair].is_empty();
        if !self.signals[pair].is_empty() && (!message || self.order.choose(2) == 0) {
            let bytes = self.signals[pair].pop_front().expect("a signal waits");
            self.signals_delivered += 1;
            self.ranks[to].events.push(Event::Signal(from as u32, bytes));
            return;
        }
        let (send, sent) = self.sends[pair].pop_front().expect("a send waits");
        let (recv, received) = self.recvs[pair].pop_front().expect("a receive waits");
        assert_eq!(sent.len(), received.len(), "message from {from} to {to}: both ends name the same parts");
        let (mut bytes, mut copied) = (0, Ok(()));
        for (a, b) in sent.iter().zip(&received) {
            assert_eq!((a.array, &a.region), (b.array, &b.region), "message from {from} to {to}");
            let passive = usize::from(matches!(a.here, Here::Exposed)) + usize::from(matches!(b.here, Here::Exposed));
            assert_eq!(passive, 1, "one side of a message is in slots, the other exposed");
            let (from_memory, from_view) = self.place(from, a);
            let (to_memory, to_view) = self.place(to, b);
            for nest in nests(&a.region, &from_view, &to_view) {
                let result = copy(&nest, &from_memory, from_view.element, &to_memory, to_view.element);
                assert!(!matches!(result, Err(CopyError::OutOfBounds(_))), "views fit memories: {result:?}");
                copied = copied.and(result.map_err(|error| Fault::of_copy(error, Some(&a.region))));
            }
            bytes += a.region.elements() * to_view.element.bytes();
        }
        self.messages += 1;
        self.bytes += bytes;
        // The link of the active side is busy; both ends end together.
        let active = if matches!(sent.first().map(|p| &p.here), Some(Here::Exposed)) { to } else { from };
        let start = self.ranks[active].free_at_ns.max(self.now_ns);
        let end = start + bytes * self.ns_per_kib / 1024;
        self.ranks[active].free_at_ns = end;
        // Who copies hears of it if that fails.
        let (of_send, of_recv) = if active == from { (copied, Ok(())) } else { (Ok(()), copied) };
        self.later.push((end, from as u32, Event::Done(send, of_send)));
        self.later.push((end, to as u32, Event::Done(recv, of_recv)));
        self.release();
    }

    fn place(&self, rank: usize, part: &Part) -> (Memory, Arc<View>) {
        match &part.here {
            Here::Slot(memory, view) => (memory.clone(), view.clone()),
            Here::Exposed => {
                let exposed = &self.ranks[rank].exposed[part.array as usize];
                (exposed.memory.clone(), exposed.view.clone())
            }
        }
    }
}

/// One rank's link to the hub.
pub struct HubTransport {
    hub: Rc<RefCell<Hub>>,
    rank: u32,
}

impl HubTransport {
    fn pair(&self, from: u32, to: u32) -> usize {
        (from * self.size() + to) as usize
    }
}

impl Transport for HubTransport {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.hub.borrow().ranks.len() as u32
    }

    fn begin(&mut self, _transfer: u64, arrays: Vec<Exposed>) {
        self.hub.borrow_mut().ranks[self.rank as usize].exposed = arrays;
    }

    fn send(&mut self, ticket: Ticket, to: u32, parts: Vec<Part>) {
        let pair = self.pair(self.rank, to);
        self.hub.borrow_mut().sends[pair].push_back((ticket, parts));
    }

    fn recv(&mut self, ticket: Ticket, from: u32, parts: Vec<Part>) {
        let pair = self.pair(from, self.rank);
        self.hub.borrow_mut().recvs[pair].push_back((ticket, parts));
    }

    fn end(&mut self) {
        self.hub.borrow_mut().ranks[self.rank as usize].exposed.clear();
    }

    fn signal(&mut self, to: u32, bytes: Vec<u8>) {
        let pair = self.pair(self.rank, to);
        self.hub.borrow_mut().signals[pair].push_back(bytes);
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), Fault> {
        events.append(&mut self.hub.borrow_mut().ranks[self.rank as usize].events);
        Ok(())
    }
}

/// The hub's virtual time.
pub struct HubClock {
    hub: Rc<RefCell<Hub>>,
}

impl Clock for HubClock {
    fn now_ns(&self) -> u64 {
        self.hub.borrow().now_ns
    }

    fn stamp_ns(&self) -> u64 {
        self.now_ns()
    }

    fn interrupted(&mut self) -> bool {
        false
    }
}

/// The world of one rank over a hub and any store.
pub struct HubWorld<S> {
    transport: HubTransport,
    /// The store.
    pub store: S,
    compute: InlineCompute,
    clock: HubClock,
    desk: InlineDesk,
}

impl<S: Store> HubWorld<S> {
    /// Rank `rank` of the hub, with its store.
    pub fn new(hub: &Rc<RefCell<Hub>>, rank: u32, store: S) -> HubWorld<S> {
        HubWorld {
            transport: HubTransport { hub: hub.clone(), rank },
            store,
            compute: InlineCompute::default(),
            clock: HubClock { hub: hub.clone() },
            desk: InlineDesk::default(),
        }
    }
}

impl<S: Store> World for HubWorld<S> {
    fn transport(&mut self) -> &mut dyn Transport {
        &mut self.transport
    }

    fn store(&mut self) -> &mut dyn Store {
        &mut self.store
    }

    fn compute(&mut self) -> &mut dyn Compute {
        &mut self.compute
    }

    fn clock(&mut self) -> &mut dyn Clock {
        &mut self.clock
    }

    fn desk(&mut self) -> &mut dyn Desk {
        &mut self.desk
    }

    fn buffer(&mut self, bytes: u64) -> Result<Memory, OutOfMemory> {
        Memory::allocate(bytes)
    }

    /// Time passes only in [`Hub::turn`].
    fn doze(&mut self, _limit: Duration) {}
}
