//! Stores that wrap another: one counts, one fails, one takes its time, one loses the order. And names that fail.

mod names;

pub use names::FailingNames;

use crate::lockstep::Hub;
use crate::{Fault, Outcome, Request, Root, Store, Ticket};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What a wrapper leaves to the store inside.
macro_rules! forwarded {
    () => {
        fn advance(&self) -> u64 {
            self.inner.advance()
        }

        fn enter(&mut self, roots: Arc<[Root]>) {
            self.inner.enter(roots);
        }

        fn roots(&self) -> Arc<[Root]> {
            self.inner.roots()
        }

        fn release(&mut self) {
            self.inner.release();
        }

        fn leave_to_rank_0(&mut self, below: &Root) -> bool {
            self.inner.leave_to_rank_0(below)
        }

        fn pause(&mut self) {
            self.inner.pause();
        }

        fn owes(&self, released: bool) -> bool {
            self.inner.owes(released)
        }

        fn replaces_by_syncs(&self) -> bool {
            self.inner.replaces_by_syncs()
        }

        fn cut(&mut self) {
            self.inner.cut();
        }
    };
}

/// Counts requests.
#[derive(Debug)]
pub struct Recording<S> {
    inner: S,
    /// Requests so far, by name, in order.
    pub requests: Vec<&'static str>,
}

impl<S> Recording<S> {
    /// Wraps a store.
    pub fn new(inner: S) -> Recording<S> {
        Recording { inner, requests: Vec::new() }
    }
}

fn name(request: &Request) -> &'static str {
    match request {
        Request::Write { .. } => "write",
        Request::WriteWhole { .. } => "write whole",
        Request::Put { .. } => "put",
        Request::Read { .. } => "read",
        Request::ReadPart { .. } => "read part",
        Request::ReadWhole { .. } => "read whole",
        Request::Get { .. } => "get",
        Request::Sync { .. } => "sync",
    }
}

impl<S: Store> Store for Recording<S> {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        self.requests.push(name(&request));
        self.inner.submit(ticket, request);
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        self.inner.poll(done);
    }

    forwarded!();
}

/// Fails one request, and does not carry it out.
#[derive(Debug)]
pub struct Failing<S> {
    inner: S,
    /// Requests until the one that fails.
    countdown: u64,
    fault: Fault,
    failed: Vec<Ticket>,
}

impl<S> Failing<S> {
    /// Wraps a store whose request number `nth` (from 0) shall fail like this.
    pub fn new(inner: S, nth: u64, fault: Fault) -> Failing<S> {
        Failing { inner, countdown: nth, fault, failed: Vec::new() }
    }
}

impl<S: Store> Store for Failing<S> {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        if self.countdown == 0 {
            self.failed.push(ticket);
        } else {
            self.inner.submit(ticket, request);
        }
        self.countdown = self.countdown.wrapping_sub(1);
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        done.extend(self.failed.drain(..).map(|ticket| (ticket, Err(self.fault.clone()))));
        self.inner.poll(done);
    }

    forwarded!();
}

/// Serves one request at a time, each at a cost per byte, in the hub's virtual time.
pub struct Delaying<S> {
    inner: S,
    hub: Rc<RefCell<Hub>>,
    ns_per_kib: u64,
    free_at_ns: u64,
    held: Vec<(u64, Ticket, Result<Outcome, Fault>)>,
    /// Time spent serving \[ns\].
    pub busy_ns: u64,
}

impl<S> Delaying<S> {
    /// Wraps a store that takes `ns_per_kib` nanoseconds for each KiB.
    pub fn new(inner: S, hub: &Rc<RefCell<Hub>>, ns_per_kib: u64) -> Delaying<S> {
        Delaying { inner, hub: hub.clone(), ns_per_kib, free_at_ns: 0, held: Vec::new(), busy_ns: 0 }
    }
}

impl<S: Store> Store for Delaying<S> {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        self.inner.submit(ticket, request);
        let mut done = Vec::new();
        self.inner.poll(&mut done);
        for (ticket, outcome) in done {
            let bytes = if let Ok(Outcome::Done(moved)) = &outcome { moved.bytes } else { 0 };
            let takes = bytes * self.ns_per_kib / 1024;
            self.busy_ns += takes;
            self.free_at_ns = self.free_at_ns.max(self.hub.borrow().now_ns()) + takes;
            self.hub.borrow_mut().wake_at(self.free_at_ns);
            self.held.push((self.free_at_ns, ticket, outcome));
        }
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        let now = self.hub.borrow().now_ns();
        let (due, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.held).into_iter().partition(|h| h.0 <= now);
        self.held = rest;
        done.extend(due.into_iter().map(|(_, ticket, outcome)| (ticket, outcome)));
    }

    forwarded!();
}

/// Carries requests out late and in an order that a seed decides, one for each poll: the worst legal store.
#[derive(Debug)]
pub struct Shuffling<S> {
    /// The store that carries them out.
    pub inner: S,
    random: fastrand::Rng,
    held: Vec<(Ticket, Request)>,
}

impl<S> Shuffling<S> {
    /// Wraps a store.
    pub fn new(inner: S, seed: u64) -> Shuffling<S> {
        Shuffling { inner, random: fastrand::Rng::with_seed(seed), held: Vec::new() }
    }
}

impl<S: Store> Store for Shuffling<S> {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        self.held.push((ticket, request));
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        if !self.held.is_empty() {
            let (ticket, request) = self.held.swap_remove(self.random.usize(0..self.held.len()));
            self.inner.submit(ticket, request);
        }
        self.inner.poll(done);
    }

    forwarded!();
}
