//! The seams of one rank over the machine.

use crate::desk::Metadata;
use crate::faults::{Harm, Seam, Upcoming};
use crate::machine::{DEAD, Machine, Size, Work};
use crate::names::SimNames;
use crate::policy::{FEW_STEPS, MANY_RANKS};
use hyperslab_pack::{Memory, OutOfMemory};
use hyperslab_walk::Pace;
use hyperslab_world::{
    self as world, Clock, Computation, Compute, Cost, Desk, Event, Exposed, Fault, FaultKind, NamesSpan, Outcome, Part,
    Request, Root, Store, Ticket, Transport, World,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// One rank's seams.
pub struct RankWorld {
    machine: Rc<RefCell<Machine>>,
    rank: u32,
    names: SimNames,
    /// How systems of the time walked.
    pace: Pace,
    /// What is to go wrong.
    watched: Upcoming,
    /// Whether it has died: what it would still do before it is looked after next, it does not.
    dead: bool,
    /// How long it has dozed since it was looked after last \[ns\].
    dozed_ns: u64,
}

impl RankWorld {
    pub(crate) fn new(
        machine: &Rc<RefCell<Machine>>,
        rank: u32,
        names: SimNames,
        pace: Pace,
        watched: Upcoming,
    ) -> RankWorld {
        RankWorld { machine: machine.clone(), rank, names, pace, watched, dead: false, dozed_ns: 0 }
    }

    /// What goes wrong at the next request of this seam; a rank that stops does so now.
    fn harm(&mut self, seam: Seam) -> Option<Harm> {
        let harm = self.watched.next(seam)?.harm;
        let mut machine = self.machine.borrow_mut();
        let now = machine.kernel.now_ns();
        match harm {
            Harm::Stalls(ns) => machine.stop(self.rank, now + ns),
            Harm::Dies => {
                machine.stop(self.rank, DEAD);
                self.names.die();
                self.dead = true;
            }
            _ => {}
        }
        Some(harm)
    }

    /// What went wrong while something was done to names: the desk is late, or answers no more.
    fn suffer(&mut self, harm: Option<Harm>) {
        let mut machine = self.machine.borrow_mut();
        let now = machine.kernel.now_ns();
        match harm {
            Some(Harm::Late(ns)) => machine.hold_desk(self.rank, Some(now + ns)),
            Some(Harm::Lost) => machine.hold_desk(self.rank, None),
            Some(Harm::Stalls(ns)) => machine.stop(self.rank, now + ns),
            Some(Harm::Dies) => {
                machine.stop(self.rank, DEAD);
                self.dead = true;
            }
            Some(Harm::Fails) | None => {}
        }
    }

    /// The ranks of the machine.
    pub fn size(&self) -> Size {
        self.machine.borrow().size
    }

    /// Names of directories and files, as this rank sees them.
    pub fn names(&self) -> SimNames {
        self.names.clone()
    }

    /// How this rank walks a program in which it serves, or not.
    pub fn pace(&self, serves: bool) -> Pace {
        let many = self.size().ranks > MANY_RANKS && !serves;
        Pace { window: self.pace.window.or(many.then_some(FEW_STEPS)), ..self.pace }
    }

    /// It is looked after: its time is that of the machine again.
    pub(crate) fn awake(&mut self) {
        self.dozed_ns = 0;
    }

    /// Whether this rank has stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.machine.borrow().is_stopped(self.rank)
    }

    /// Whether it has died.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead
    }

    /// Has this rank looked after at a moment \[ns\], whatever happens until then.
    pub(crate) fn wake_at(&mut self, at_ns: u64) {
        let rank = self.rank;
        self.machine.borrow_mut().kernel.at(at_ns, move |machine| machine.post(rank, |_| ()));
    }

    /// Virtual time \[ns\].
    pub fn time_ns(&self) -> u64 {
        self.machine.borrow().kernel.now_ns()
    }

    /// Lets the program work for so long on this rank's processor \[ns\].
    pub fn work(&mut self, ns: f64) {
        let (rank, mut machine) = (self.rank, self.machine.borrow_mut());
        let processor = machine.processor(rank);
        let end = machine.work(processor, Work::Application, ns);
        machine.kernel.at(end, move |machine| machine.post(rank, |mail| mail.worked = true));
    }

    /// Whether the program's work is over since this was asked last.
    pub fn has_worked(&mut self) -> bool {
        std::mem::take(&mut self.machine.borrow_mut().mail[self.rank as usize].worked)
    }
}

impl World for RankWorld {
    fn transport(&mut self) -> &mut dyn Transport {
        self
    }

    fn store(&mut self) -> &mut dyn Store {
        self
    }

    fn compute(&mut self) -> &mut dyn Compute {
        self
    }

    fn clock(&mut self) -> &mut dyn Clock {
        self
    }

    fn desk(&mut self) -> &mut dyn Desk {
        self
    }

    /// Payloads without bytes need no memory of their own: all slots of a size share one, which nobody touches.
    fn buffer(&mut self, bytes: u64) -> Result<Memory, OutOfMemory> {
        let mut machine = self.machine.borrow_mut();
        if machine.carries_bytes {
            return Memory::allocate(bytes);
        }
        if let Some(shared) = machine.buffers.get(&bytes) {
            return Ok(shared.clone());
        }
        let shared = Memory::allocate(bytes)?;
        machine.buffers.insert(bytes, shared.clone());
        Ok(shared)
    }

    /// Time of the machine passes between polls only. Who waits within one, as a rank does that gives up, sees his own pass, so
    /// that he waits no longer than his limits.
    fn doze(&mut self, limit: Duration) {
        self.dozed_ns += limit.as_nanos() as u64;
    }
}

impl Desk for RankWorld {
    /// It is done at once, and told of when its time has passed.
    fn begin(&mut self, work: world::Work, _at_once: bool) {
        let told = work();
        let (deeds, harm) = self.names.take_deeds();
        self.suffer(harm);
        self.machine.borrow_mut().at_desk(self.rank, deeds, Some(told));
    }

    fn poll(&mut self) -> Option<Result<Vec<u8>, Fault>> {
        self.machine.borrow_mut().mail[self.rank as usize].named.take()
    }

    fn later(&mut self, work: Box<dyn FnOnce() + Send>, _at_once: bool) {
        work();
        let (deeds, harm) = self.names.take_deeds();
        self.suffer(harm);
        self.machine.borrow_mut().at_desk(self.rank, deeds, None);
    }

    fn is_idle(&self) -> bool {
        self.machine.borrow().desks[self.rank as usize].is_idle()
    }

    fn watch(&mut self, watched: bool) {
        self.machine.borrow_mut().desks[self.rank as usize].watched = watched;
    }

    fn spent(&mut self) -> Vec<NamesSpan> {
        std::mem::take(&mut self.machine.borrow_mut().desks[self.rank as usize].spent)
    }

    fn synced_ns(&self) -> u64 {
        self.machine.borrow().desks[self.rank as usize].synced_ns
    }
}

impl Transport for RankWorld {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.machine.borrow().size.ranks
    }

    fn begin(&mut self, _transfer: u64, arrays: Vec<Exposed>) {
        self.machine.borrow_mut().exposed[self.rank as usize] = arrays;
    }

    fn send(&mut self, ticket: Ticket, to: u32, parts: Vec<Part>) {
        let (harm, rank) = (self.harm(Seam::Pieces), self.rank);
        let mut machine = self.machine.borrow_mut();
        match harm {
            Some(Harm::Late(ns)) => {
                let until = machine.kernel.now_ns() + ns;
                machine.hold_back(rank, to, Some(until));
            }
            Some(Harm::Lost) => machine.hold_back(rank, to, None),
            _ => {}
        }
        if self.dead {
            return;
        }
        machine.send(rank, to, ticket, parts);
    }

    fn recv(&mut self, ticket: Ticket, from: u32, parts: Vec<Part>) {
        self.machine.borrow_mut().recv(from, self.rank, ticket, parts);
    }

    fn end(&mut self) {
        self.machine.borrow_mut().exposed[self.rank as usize] = Vec::new();
    }

    fn signal(&mut self, to: u32, bytes: Vec<u8>) {
        let (harm, rank) = (self.harm(Seam::Signals), self.rank);
        let mut machine = self.machine.borrow_mut();
        match harm {
            Some(Harm::Late(ns)) => {
                let at = machine.kernel.now_ns() + ns;
                machine.kernel.at(at, move |machine| machine.signal(rank, to, bytes));
            }
            _ if self.dead => {}
            _ => machine.signal(rank, to, bytes),
        }
    }

    fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), Fault> {
        events.append(&mut self.machine.borrow_mut().mail[self.rank as usize].events);
        Ok(())
    }
}

impl Store for RankWorld {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        let (harm, rank) = (self.harm(Seam::Store), self.rank);
        let mut machine = self.machine.borrow_mut();
        match harm {
            Some(Harm::Fails) => {
                let fault = Fault::new(FaultKind::Storage, "an imagined error of the file system");
                machine.post(rank, |mail| mail.stored.push((ticket, Err(fault))));
            }
            Some(Harm::Late(ns)) => {
                let at = machine.kernel.now_ns() + ns;
                machine.kernel.at(at, move |machine| machine.submit(rank, ticket, request));
            }
            Some(Harm::Lost) => {}
            _ if self.dead => {}
            _ => machine.submit(rank, ticket, request),
        }
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        done.append(&mut self.machine.borrow_mut().mail[self.rank as usize].stored);
    }

    fn advance(&self) -> u64 {
        0
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.machine.borrow_mut().files.enter(self.rank, roots);
    }

    fn roots(&self) -> Arc<[Root]> {
        self.machine.borrow().files.roots(self.rank)
    }

    /// Nobody waits until it is closed.
    fn release(&mut self) {
        let mut machine = self.machine.borrow_mut();
        let open = machine.files.close_all(self.rank);
        if open > 0 {
            machine.metadata(Metadata::Close, open, Box::new(|_| ()));
        }
    }
}

impl Compute for RankWorld {
    fn planned(&mut self, steps: u64, pieces: u64) {
        let mut machine = self.machine.borrow_mut();
        let costs = &machine.profile.processor;
        let ns = costs.step_ns * steps as f64 + costs.piece_ns * pieces as f64;
        let processor = machine.processor(self.rank);
        machine.work(processor, Work::Plan, ns);
    }

    /// Nothing that lives here ends before the simulation does.
    fn cut(&mut self) {}

    /// Without payloads the work is not done, only its time passes; what it would have left has a length and no contents.
    fn submit(&mut self, ticket: Ticket, work: Computation) {
        let cost = work.cost();
        let mut machine = self.machine.borrow_mut();
        let (kind, ns) = match cost {
            Cost::Copy { bytes, runs } => (Work::Copy, machine.copying_ns(bytes, runs)),
            Cost::Fill { bytes } => (Work::Copy, machine.copying_ns(bytes, 1)),
            Cost::Code { bytes, compresses } => (Work::Code, machine.profile.processor.coding_ns(bytes, compresses)),
        };
        let processor = machine.processor(self.rank);
        let end = machine.work(processor, kind, ns);
        let rank = self.rank;
        machine.kernel.at(end, move |machine| {
            let result = match cost {
                _ if machine.carries_bytes => work.run(),
                Cost::Code { bytes, .. } => Ok(vec![0; bytes as usize]),
                _ => Ok(Vec::new()),
            };
            machine.note(|| format!("{rank} computed"));
            machine.post(rank, |mail| mail.computed.push((ticket, result)));
        });
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Vec<u8>, Fault>)>) {
        done.append(&mut self.machine.borrow_mut().mail[self.rank as usize].computed);
    }
}

impl Clock for RankWorld {
    fn now_ns(&self) -> u64 {
        self.time_ns() + self.dozed_ns
    }

    fn stamp_ns(&self) -> u64 {
        self.time_ns()
    }

    fn interrupted(&mut self) -> bool {
        false
    }
}
