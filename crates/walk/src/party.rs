//! One rank's part in a communicator over its life: calls in order, limits on waiting, and failure.

use crate::closing::{Closing, EndOfCall, abort_of, grace, stalled, unnamed};
use crate::compared::Compared;
use crate::consensus::{Consensus, Question};
use crate::inbox::{Inbox, tag};
use crate::limits::{Awaited, LEAVING, Limits, Pace, RANKS_NAMED_MAX, Waits, nanos};
use crate::names::Names;
use crate::policy::EAGER_POLLS;
use crate::trace::Recorder;
use crate::tree::{ARITY, Tree};
use hyperslab_pack::Memory;
use hyperslab_world::{Fault, FaultKind, World};
use std::time::Duration;

/// What ranks that compare must have in common.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest doze; also bounds how late Ctrl-C is noticed.
const DOZE: Duration = Duration::from_millis(2);

/// How long a rank whose call failed waits for rank 0 to release its locks.
const RELEASE: Duration = Duration::from_secs(1);

/// How long a server waits for those whom it serves.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// What a rank that waits knows of when somebody came forward, in one part of a call. Times are the clock's \[ns\].
struct Watch {
    part: u64,
    start: u64,
    /// When any rank came forward last.
    last: u64,
    /// When this rank did: what others do says nothing of its storage.
    mine: u64,
    /// When it last told others.
    told: u64,
    /// Whether it has come forward since. What it heard of others must not count, or two ranks that only wait would keep each
    /// other waiting.
    own: bool,
    /// Polls without news.
    quiet: u32,
    advance: u64,
    /// When each server was heard of.
    heard: Vec<u64>,
    /// Since when rank 0 is known to have ended while it worked in storage.
    lost: Option<u64>,
}

impl Watch {
    fn new(world: &mut dyn World, party: &Party) -> Watch {
        let start = world.clock().now_ns();
        let heard = vec![start; party.names.servers().len()];
        let advance = world.store().advance();
        let part = party.part;
        Watch { part, start, last: start, mine: start, told: start, own: false, quiet: 0, advance, heard, lost: None }
    }
}

/// A wait for something that is polled, and how the call ends if that cannot go on.
pub struct Driving {
    watch: Watch,
    closing: Option<Closing>,
}

impl Driving {
    /// Whether the call cannot go on: what it waited for is polled no more.
    pub fn ends(&self) -> bool {
        self.closing.is_some()
    }

    /// Whether there was no news for some time.
    fn rests(&self) -> bool {
        self.ends() || self.watch.quiet > EAGER_POLLS
    }

    /// When to look again, though nothing happens until then \[ns\].
    pub fn looks_again_ns(&self, party: &Party, now_ns: u64) -> u64 {
        let usual = now_ns + nanos(party.limits.progress) / 8;
        self.closing.as_ref().and_then(Closing::until_ns).map_or(usual, |until| (until + 1).clamp(now_ns + 1, usual))
    }
}

/// One rank of a communicator.
pub struct Party {
    rank: u32,
    size: u32,
    call: u64,
    /// Number of what is waited for: an agreement, or what moves between two of them. Limits hold for each by itself.
    part: u64,
    what: String,
    /// Limits on waiting; may change between calls.
    pub limits: Limits,
    /// How its programs are walked.
    pub pace: Pace,
    pub(crate) inbox: Inbox,
    /// Buffers kept from one transfer to the next, because fresh pages are slow.
    pub(crate) pool: Vec<Memory>,
    progressed: bool,
    /// Neighbours in the tree that said they progress, since the last time they were told.
    heard: Vec<u32>,
    poisoned: Option<Fault>,
    /// Whether all have answered and rank 0 works in storage: it may not say so meanwhile, and nobody is late any more.
    pub(crate) patient: bool,
    pub(crate) names: Names,
    arity: u32,
    /// Agreements so far.
    pub agreements: u64,
    /// Records what this rank does, if anybody wants to know.
    pub trace: Option<Box<Recorder>>,
}

impl Party {
    /// A rank that has made no call yet.
    pub fn new(rank: u32, size: u32, limits: Limits) -> Party {
        Party {
            rank,
            size,
            call: 0,
            part: 0,
            what: String::new(),
            limits,
            pace: Pace::default(),
            inbox: Inbox::default(),
            pool: Vec::new(),
            progressed: false,
            heard: Vec::new(),
            poisoned: None,
            patient: false,
            names: Names::new(size, Vec::new()),
            arity: ARITY,
            agreements: 0,
            trace: None,
        }
    }

    /// The same, with a tree for agreements in which each rank has this many others below it, at most. The same on all
    /// ranks. As many as there are ranks: rank 0 tells one after another, as Panda did (Chen et al. 1996, section 2).
    #[must_use]
    pub fn with_arity(self, arity: u32) -> Party {
        Party { arity: arity.max(1), ..self }
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree { rank: self.rank, size: self.size, arity: self.arity }
    }

    /// Lets the last ranks be servers of the others: they ask nothing, so that they agree with whatever the others
    /// agree on, and wait for them without a limit. `servers` are their numbers in the communicator of the user, for
    /// messages.
    pub fn dedicate(&mut self, servers: Vec<u32>) {
        self.names = Names::new(self.size, servers);
    }

    /// Whether this rank only serves.
    pub fn is_server(&self) -> bool {
        self.rank >= self.clients()
    }

    /// Number of the ranks that ask.
    pub fn clients(&self) -> u32 {
        self.names.clients()
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The failure that made this party unusable, if any.
    pub fn poisoned(&self) -> Option<&Fault> {
        self.poisoned.as_ref()
    }

    /// Bytes of buffers that are kept for the next transfer \[B\].
    pub fn pooled_bytes(&self) -> u64 {
        self.pool.iter().map(Memory::bytes).sum()
    }

    /// Lets go of pooled buffers, so that those that stay and the slots of a walk together have no more than `spare` bytes
    /// above what the slots need. Buffers that can be slots stay first, from the smallest on.
    pub(crate) fn trim_pool(&mut self, slots: usize, slot_bytes: u64, mut spare: u64) {
        self.pool.sort_unstable_by_key(Memory::bytes);
        let small = self.pool.partition_point(|memory| memory.bytes() < slot_bytes);
        self.pool.rotate_left(small);
        let mut free = slots;
        self.pool.retain(|memory| {
            let slot = free > 0 && memory.bytes() >= slot_bytes;
            let more = memory.bytes() - if slot { slot_bytes } else { 0 };
            let stays = more <= spare;
            if stays {
                spare -= more;
                free -= usize::from(slot);
            }
            stays
        });
    }

    /// Takes what has arrived from other ranks. [`Party::drive`] does so by itself; who polls a [`Walk`](crate::Walk) or
    /// a [`Consensus`] by hand calls this before each poll.
    ///
    /// # Errors
    /// When the link to other ranks is broken for good.
    pub fn pump(&mut self, world: &mut dyn World) -> Result<(), Fault> {
        self.inbox.pump(world)
    }

    pub(crate) fn next_call(&mut self, question: &Question) -> u64 {
        self.call += 1;
        self.begin_part();
        self.patient = false;
        self.agreements += 1;
        self.what.clone_from(&question.what);
        self.call
    }

    /// Begins another part of a call, for which the limits on waiting hold anew. An agreement does so by itself.
    pub fn begin_part(&mut self) {
        self.part += 1;
    }

    /// Number of the agreement that began last.
    pub(crate) fn call(&self) -> u64 {
        self.call
    }

    pub(crate) fn progress(&mut self) {
        self.progressed = true;
    }

    /// Agrees with all ranks; see [`Consensus::poll`]. Waits.
    ///
    /// # Errors
    /// The one failure that all ranks get.
    pub fn agree(
        &mut self,
        world: &mut dyn World,
        question: Question,
        mut decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        let mut consensus = self.open(question)?;
        let mut result = None;
        self.drive(world, &mut consensus, |consensus, world, party| {
            result = consensus.poll(world, party, &mut decide);
            result.is_some()
        })?;
        result.expect("driven until it was there")
    }

    /// Begins an agreement, in which ranks also compare the number of the call and the version of this library.
    ///
    /// # Errors
    /// When an earlier failure ended the use of this party.
    pub fn open(&mut self, mut question: Question) -> Result<Consensus, Fault> {
        if let Some(fault) = &self.poisoned {
            let text = format!("this handle cannot be used any more, since an earlier call failed: {}", fault.text());
            let fault = Fault::new(FaultKind::Poisoned, text).context(&question.what);
            return Err(fault.hint("open the store again, on a fresh communicator"));
        }
        let number = self.call + 1;
        let call = Compared::of((number, VERSION), move || {
            vec![("number of the call".into(), number.to_string()), ("version of hyperslab".into(), VERSION.into())]
        });
        question.compared = call.before(question.compared);
        Ok(Consensus::new(self, question))
    }

    /// Polls something until `step` says that it is over. Limits on waiting hold for each [part](Party::begin_part) of it.
    ///
    /// # Errors
    /// When a limit is reached, the user interrupts, or the link to other ranks breaks; then all ranks fail, and this
    /// party is poisoned.
    pub fn drive<T: Awaited>(
        &mut self,
        world: &mut dyn World,
        driven: &mut T,
        mut step: impl FnMut(&mut T, &mut dyn World, &mut Party) -> bool,
    ) -> Result<(), Fault> {
        let mut driving = self.driving(world);
        loop {
            if let Some(fault) = self.attend(world, &mut driving) {
                return Err(fault);
            }
            if !driving.ends() {
                if step(driven, world, self) {
                    return Ok(());
                }
                if let Some(fault) = self.look(world, &mut driving, driven) {
                    return Err(fault);
                }
            }
            if driving.rests() {
                world.doze(DOZE);
            }
        }
    }

    /// Begins to wait for something, as [`Party::drive`] does, step by step.
    pub fn driving(&self, world: &mut dyn World) -> Driving {
        Driving { watch: Watch::new(world, self), closing: None }
    }

    /// The first half of a step: takes what has arrived, and ends a call that cannot go on. Gives its failure once it has ended.
    pub fn attend(&mut self, world: &mut dyn World, driving: &mut Driving) -> Option<Fault> {
        if let Some(closing) = driving.closing.take() {
            return match self.ending().go_on(world, closing) {
                Ok(fault) => Some(self.poison(fault)),
                Err(closing) => {
                    driving.closing = Some(closing);
                    None
                }
            };
        }
        let begin_ns = self.trace.is_some().then(|| world.clock().stamp_ns());
        // What an earlier call left may move no more: the others have been told that it failed.
        if let Err(fault) = self.pump_alive(world) {
            let arriving = unnamed(&fault, false);
            driving.closing = Some(self.ending().begin(world, fault, arriving));
            return None;
        }
        if let (Some(trace), Some(begin_ns)) = (&mut self.trace, begin_ns) {
            trace.moving(begin_ns, world.clock().stamp_ns());
        }
        None
    }

    /// The second half, after a poll: looks whether the others are there and go on. Gives the failure of a call that has ended.
    pub fn look(&mut self, world: &mut dyn World, driving: &mut Driving, waiting: &dyn Awaited) -> Option<Fault> {
        if driving.watch.part != self.part {
            driving.watch = Watch::new(world, self);
        }
        match self.look_around(world, &mut driving.watch, waiting)? {
            Closing::Over(fault) => Some(self.poison(fault)),
            closing => {
                driving.closing = Some(closing);
                None
            }
        }
    }

    /// Looks whether the others are there and go on, and whether this rank does. Gives how the call ends once it cannot go on.
    fn look_around(&mut self, world: &mut dyn World, watch: &mut Watch, waiting: &dyn Awaited) -> Option<Closing> {
        let Waits { storage, arrival } = waiting.waits();
        let now = world.clock().now_ns();
        self.inbox.answer(world, || waiting.waits_for());
        let tells = self.hear_of_progress(world, watch, storage, now);
        if let Some(fault) = self.watch_servers(world, &mut watch.heard, tells, now) {
            return Some(self.ending().begin(world, fault, None));
        }
        let (since, limit) = match arrival {
            // Who finds by itself that it took too long comes first.
            _ if self.patient => (watch.last, self.limits.storage.max(self.limits.progress) + grace(self.limits)),
            // Those whom a server serves may come whenever they like.
            true if self.is_server() => (watch.start, FOREVER),
            true => (watch.start, self.limits.arrival),
            false => (watch.last, self.limits.progress),
        };
        if let Some(fault) = self.inbox.abort.take() {
            return Some(Closing::Over(fault));
        }
        if world.clock().interrupted() {
            let text = format!("{}: interrupted by a signal on rank {}", self.what, self.rank);
            return Some(self.ending().begin(world, Fault::new(FaultKind::Interrupted, text), None));
        }
        if watch.lost.is_some_and(|since| now - since > nanos(self.limits.progress) / 4) {
            // What it said last has arrived by now.
            return Some(self.ending().without_rank_0(world));
        }
        if storage {
            if now - watch.mine > nanos(self.limits.storage) {
                let fault = stalled(self.rank, &waiting.waits_for(), self.limits.storage);
                return Some(self.ending().begin(world, fault, None));
            }
        } else if self.patient && now - since > nanos(limit) {
            return Some(self.ending().begin(world, stalled(0, &waiting.waits_for(), limit), None));
        } else if now - since > nanos(limit) {
            let text = format!("{}, for {:.1} s without progress", waiting.waits_for(), limit.as_secs_f64());
            return Some(self.ending().begin(world, Fault::new(FaultKind::Timeout, text), Some(arrival)));
        }
        if let Some(&gone) = self.inbox.gone.first() {
            let text = format!("{}: rank {gone} ended its program without this call", self.what);
            let fault = Fault::new(FaultKind::Peer, text)
                .hint("make the call on every rank of the communicator; look at what that rank printed");
            return Some(self.ending().begin(world, fault, None));
        }
        let (from, fault, known) = self.inbox.reports.first().cloned()?;
        let late = fault.kind == FaultKind::Timeout;
        let fault = if late { fault } else { fault.context(format!("rank {from} gave up")) };
        let arriving = Some(arrival).filter(|_| late && !known);
        Some(self.ending().begin(world, fault, arriving))
    }

    /// Takes note of who came forward since the last look, and says now and then that this rank does. Returns whether it is
    /// time for that.
    fn hear_of_progress(&mut self, world: &mut dyn World, watch: &mut Watch, storage: bool, now: u64) -> bool {
        let alive = std::mem::take(&mut self.inbox.alive);
        let before = std::mem::replace(&mut watch.advance, world.store().advance());
        if std::mem::take(&mut self.progressed) || watch.advance != before {
            (watch.last, watch.mine, watch.quiet, watch.own) = (now, now, 0, true);
        } else {
            watch.quiet += 1;
        }
        if !alive.is_empty() {
            watch.last = now;
            self.heard.extend(alive);
        }
        let tells = now - watch.told > nanos(self.limits.progress) / 4;
        if tells {
            self.tell_alive(world, std::mem::take(&mut watch.own) || storage);
            watch.told = now;
            if self.patient && world.transport().is_gone(0) {
                watch.lost.get_or_insert(now);
            }
        }
        tells
    }

    /// On rank 0: asks the servers now and then whether they are there. Clients may be late for good reasons, but a server
    /// that does not answer is gone.
    fn watch_servers(&mut self, world: &mut dyn World, heard: &mut [u64], asks: bool, now: u64) -> Option<Fault> {
        if self.rank > 0 || heard.is_empty() {
            return None;
        }
        let clients = self.clients();
        for (from, _) in self.inbox.pongs.drain(..).filter(|pong| pong.0 >= clients) {
            heard[(from - clients) as usize] = now;
        }
        if asks {
            self.names.servers().for_each(|server| world.transport().signal(server, vec![tag::PING]));
        }
        let limit = self.limits.progress;
        let silent = |&server: &u32| now - heard[(server - clients) as usize] > nanos(limit);
        let gone: Vec<u32> = self.names.servers().filter(silent).take(RANKS_NAMED_MAX).collect();
        if gone.is_empty() {
            return None;
        }
        let text =
            format!("{}: {} has not answered for {:.1} s", self.what, self.names.list(&gone), limit.as_secs_f64());
        Some(
            Fault::new(FaultKind::Timeout, text)
                .hint("the process died or hangs; what it was writing is not published"),
        )
    }

    /// Tells each neighbour in the tree when this rank, or one on another branch, makes progress. Nobody hears
    /// back what only he said, so ranks that all wait do not keep each other waiting.
    fn tell_alive(&mut self, world: &mut dyn World, own: bool) {
        let heard = std::mem::take(&mut self.heard);
        for neighbour in self.tree().children().chain(self.tree().parent()) {
            if own || heard.iter().any(|&from| from != neighbour) {
                world.transport().signal(neighbour, vec![tag::ALIVE]);
            }
        }
    }

    /// Ends a call that this rank cannot go on with, on all ranks, without waiting for a limit.
    pub fn abandon(&mut self, world: &mut dyn World, fault: Fault) -> Fault {
        let arriving = unnamed(&fault, false);
        let closing = self.ending().begin(world, fault, arriving);
        self.end_by(world, closing)
    }

    /// The same, and waits for that: since storage does not answer a rank.
    pub(crate) fn end_stalled(&mut self, world: &mut dyn World, rank: u32, waits_for: &str, limit: Duration) -> Fault {
        let closing = self.ending().begin(world, stalled(rank, waits_for, limit), None);
        self.end_by(world, closing)
    }

    fn end_by(&mut self, world: &mut dyn World, mut closing: Closing) -> Fault {
        loop {
            match self.ending().go_on(world, closing) {
                Ok(fault) => return self.poison(fault),
                Err(going_on) => closing = going_on,
            }
            world.doze(DOZE);
        }
    }

    /// What of this rank takes part in how a call ends that cannot go on.
    fn ending(&mut self) -> EndOfCall<'_> {
        let Party { rank, size, call, limits, .. } = *self;
        EndOfCall { rank, size, what: &self.what, call, limits, inbox: &mut self.inbox, names: &self.names }
    }

    /// Ends whatever all ranks are at, or come to next, since this one's program ends: each is told by this rank itself,
    /// since rank 0 may be at work elsewhere.
    pub fn leave(&mut self, world: &mut dyn World, fault: Fault) {
        if self.poisoned.is_some() {
            return;
        }
        for rank in (0..self.size).filter(|&rank| rank != self.rank) {
            world.transport().signal(rank, abort_of(&fault));
        }
        self.wait(world, LEAVING, |_| false);
        self.poison(fault);
    }

    /// Tells the neighbours in the tree that this rank will make no call any more.
    pub fn depart(&mut self, world: &mut dyn World) {
        if self.poisoned.is_some() || self.size == 1 {
            return;
        }
        let neighbours = self.tree().children().chain(self.tree().parent());
        neighbours.for_each(|neighbour| world.transport().signal(neighbour, vec![tag::GONE]));
        let is_here = world.transport().is_one_process();
        self.wait(world, Duration::from_millis(5), |_| is_here);
    }

    /// Ends a call that reached a limit or was interrupted, once rank 0 has released its locks: the other ranks return only
    /// then, since whoever reopens at once what they were at would else take the failed call for one that is under way. A
    /// rank 0 that hangs or is gone keeps nobody for longer than a second.
    pub fn release(&mut self, world: &mut dyn World, fault: &Fault) {
        if self.poisoned.is_none() || !matches!(fault.kind, FaultKind::Timeout | FaultKind::Interrupted) {
            return;
        }
        if self.rank == 0 {
            (1..self.clients()).for_each(|rank| world.transport().signal(rank, vec![tag::RELEASED]));
            self.wait(world, LEAVING, |_| false);
        } else if !self.is_server() && !world.transport().is_gone(0) {
            self.wait(world, RELEASE, |inbox| inbox.released);
        }
    }

    /// Ends the life of this rank in the communicator; all further calls fail.
    pub fn end(&mut self, why: Fault) {
        self.poisoned.get_or_insert(why);
    }

    fn poison(&mut self, fault: Fault) -> Fault {
        self.poisoned = Some(fault.clone());
        // Slots may still be the target of operations in flight: they are kept for good, never reused.
        self.pool.drain(..).for_each(std::mem::forget);
        fault
    }

    /// Waits, while messages move, until something is over or so much time is; no other limit holds. Returns whether it is
    /// over.
    pub fn linger(
        &mut self,
        world: &mut dyn World,
        limit: Duration,
        mut over: impl FnMut(&mut dyn World) -> bool,
    ) -> bool {
        let start = world.clock().now_ns();
        while !over(world) {
            if world.clock().now_ns() - start > nanos(limit) {
                return false;
            }
            // A link that breaks is for the next call to tell.
            let _ = self.pump_alive(world);
            world.doze(DOZE);
        }
        true
    }

    /// Takes what has arrived, unless the use of this party has ended: what a call that failed left must not go on to move.
    fn pump_alive(&mut self, world: &mut dyn World) -> Result<(), Fault> {
        if self.poisoned.is_some() { Ok(()) } else { self.inbox.pump(world) }
    }

    /// Handles messages until a condition holds or time is up; says which.
    fn wait(&mut self, world: &mut dyn World, limit: Duration, done: impl Fn(&Inbox) -> bool) -> bool {
        let start = world.clock().now_ns();
        while !done(&self.inbox) {
            if world.clock().now_ns() - start > nanos(limit) || self.inbox.pump(world).is_err() {
                return false;
            }
            self.inbox.answer(world, || "waits for rank 0 to decide how the call ends".into());
            world.doze(DOZE);
        }
        true
    }
}
