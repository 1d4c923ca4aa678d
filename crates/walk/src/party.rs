//! One rank's part in a communicator over its life: calls in order, limits on waiting, and failure.

use crate::compared::Compared;
use crate::consensus::{Consensus, Question, RANKS_NAMED_MAX};
use crate::inbox::{Inbox, tag};
use crate::limits::{Limits, Pace, Waits};
use crate::names::Names;
use crate::trace::Recorder;
use crate::tree::{ARITY, Tree};
use hyperslab_pack::Memory;
use hyperslab_world::{Fault, FaultKind, World};
use std::time::Duration;

/// Polls without news after which a rank starts to doze. Few: where ranks share cores, each poll keeps from working whom
/// it waits for, and a doze begins with offering the core.
const EAGER_POLLS: u32 = 2;
/// What ranks that compare must have in common.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest doze; also bounds how late Ctrl-C is noticed.
const DOZE: Duration = Duration::from_millis(2);

/// What messages get to leave, before a rank looks after them no more.
const LEAVING: Duration = Duration::from_millis(20);

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
        self.drive(world, |world, party| {
            result = consensus.poll(world, party, &mut decide);
            if result.is_some() { None } else { Some(consensus.waits()) }
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

    /// Polls until there is nothing left to wait for: `step` says what it waits for, or `None` when it is over. The limits on
    /// waiting hold for each [part](Party::begin_part) of what it does.
    ///
    /// # Errors
    /// When a limit is reached, the user interrupts, or the link to other ranks breaks; then all ranks fail, and this
    /// party is poisoned.
    pub fn drive(
        &mut self,
        world: &mut dyn World,
        mut step: impl FnMut(&mut dyn World, &mut Party) -> Option<Waits>,
    ) -> Result<(), Fault> {
        let mut watch = Watch::new(world, self);
        loop {
            let begin_ns = self.trace.is_some().then(|| world.clock().stamp_ns());
            // What an earlier call left may move no more: the others have been told that it failed.
            if let Err(fault) = self.pump_alive(world) {
                return Err(self.give_up(world, fault, false));
            }
            if let (Some(trace), Some(begin_ns)) = (&mut self.trace, begin_ns) {
                trace.moving(begin_ns, world.clock().stamp_ns());
            }
            let Some(waits) = step(world, self) else { return Ok(()) };
            if watch.part != self.part {
                watch = Watch::new(world, self);
            }
            if let Some(fault) = self.look(world, &mut watch, &waits) {
                return Err(fault);
            }
            if watch.quiet > EAGER_POLLS {
                world.doze(DOZE);
            }
        }
    }

    /// Looks whether the others are there and go on, and whether this rank does. Gives the failure of the call once it has
    /// ended.
    fn look(&mut self, world: &mut dyn World, watch: &mut Watch, waits: &Waits) -> Option<Fault> {
        let Waits { text: waits_for, storage, arrival } = waits;
        let now = world.clock().now_ns();
        self.answer(world, waits_for);
        let tells = self.hear_of_progress(world, watch, *storage, now);
        if let Some(fault) = self.watch_servers(world, &mut watch.heard, tells, now) {
            return Some(self.end_call(world, fault, None));
        }
        let (since, limit) = match arrival {
            // Who finds by itself that it took too long comes first.
            _ if self.patient => (watch.last, self.limits.storage.max(self.limits.progress) + self.grace()),
            // Those whom a server serves may come whenever they like.
            true if self.is_server() => (watch.start, FOREVER),
            true => (watch.start, self.limits.arrival),
            false => (watch.last, self.limits.progress),
        };
        if let Some(fault) = self.inbox.abort.take() {
            return Some(self.poison(fault));
        }
        if world.clock().interrupted() {
            let text = format!("{}: interrupted by the user on rank {}", self.what, self.rank);
            return Some(self.give_up(world, Fault::new(FaultKind::Interrupted, text), false));
        }
        if watch.lost.is_some_and(|since| now - since > nanos(self.limits.progress) / 4) {
            // What it said last has arrived by now.
            return Some(self.end_without_rank_0(world));
        }
        if *storage {
            if now - watch.mine > nanos(self.limits.storage) {
                return Some(self.end_stalled(world, self.rank, waits_for, self.limits.storage));
            }
        } else if self.patient && now - since > nanos(limit) {
            return Some(self.end_stalled(world, 0, waits_for, limit));
        } else if now - since > nanos(limit) {
            let text = format!("{waits_for}, for {:.1} s without progress", limit.as_secs_f64());
            return Some(self.give_up(world, Fault::new(FaultKind::Timeout, text), *arrival));
        }
        if let Some(&gone) = self.inbox.gone.first() {
            let text = format!("{}: rank {gone} ended its program without this call", self.what);
            let fault = Fault::new(FaultKind::Peer, text)
                .hint("every rank of the communicator must make the call; look at what that rank printed");
            return Some(self.end_call(world, fault, None));
        }
        let (from, fault, known) = self.inbox.reports.first().cloned()?;
        let late = fault.kind == FaultKind::Timeout;
        let fault = if late { fault } else { fault.context(format!("rank {from} gave up")) };
        Some(match known {
            true => self.end_call(world, fault, None),
            false => self.give_up(world, fault, *arrival),
        })
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

    fn answer(&mut self, world: &mut dyn World, waits_for: &str) {
        if std::mem::take(&mut self.inbox.pinged) {
            let mut pong = vec![tag::PONG];
            pong.extend(waits_for.as_bytes());
            world.transport().signal(0, pong);
        }
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
        self.give_up(world, fault, false)
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
        for neighbour in self.tree().children().chain(self.tree().parent()) {
            world.transport().signal(neighbour, vec![tag::GONE]);
        }
        self.wait(world, Duration::from_millis(5), |_| false);
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

    /// Ends the call on all ranks with one failure. Rank 0 decides which, after asking who is still there; when it
    /// does not answer, each rank is left with its own.
    fn give_up(&mut self, world: &mut dyn World, fault: Fault, arriving: bool) -> Fault {
        let unnamed = fault.kind == FaultKind::Timeout;
        self.end_call(world, fault, unnamed.then_some(arriving))
    }

    /// As [`Party::give_up`]; `arriving` is not there when it is known already who is missing.
    fn end_call(&mut self, world: &mut dyn World, fault: Fault, arriving: Option<bool>) -> Fault {
        let grace = self.grace();
        if self.rank > 0 {
            let mut report = vec![tag::REPORT, u8::from(arriving.is_none())];
            report.extend(fault.to_bytes());
            world.transport().signal(0, report);
            let decided = self.wait(world, grace * 2, |inbox| inbox.abort.is_some());
            let abort = self.inbox.abort.take();
            let silent = || fault.clone().context(format!("rank 0 does not answer; on rank {}", self.rank));
            let fault = if decided { abort.unwrap_or_else(silent) } else { silent() };
            if !decided {
                // Servers, which wait without a limit, must not wait for a rank 0 that is gone.
                self.names.servers().for_each(|server| world.transport().signal(server, abort_of(&fault)));
                self.wait(world, LEAVING, |_| false);
            }
            return self.poison(fault);
        }
        let others = self.size - 1;
        self.inbox.pongs.clear();
        (1..self.size).for_each(|rank| world.transport().signal(rank, vec![tag::PING]));
        self.wait(world, grace, |inbox| inbox.pongs.len() + inbox.reports.len() >= others as usize);
        let fault = match arriving {
            Some(arriving) => self.name_the_missing(fault, arriving),
            None => fault,
        };
        (1..self.size).for_each(|rank| world.transport().signal(rank, abort_of(&fault)));
        // Give the messages a moment to leave.
        self.wait(world, LEAVING, |_| false);
        self.poison(fault)
    }

    /// How long others may take to notice, and to answer.
    fn grace(&self) -> Duration {
        (self.limits.progress / 4).clamp(Duration::from_secs(1), Duration::from_secs(4))
    }

    /// As [`Party::end_call`], since storage does not answer a rank.
    pub(crate) fn end_stalled(&mut self, world: &mut dyn World, rank: u32, waits_for: &str, limit: Duration) -> Fault {
        let text = format!("{waits_for}; storage has not answered rank {rank} for {:.1} s", limit.as_secs_f64());
        let fault = Fault::new(FaultKind::Timeout, text).hint(
            "look at the file system of that rank's node: a server that is down, a mount that hangs; storage_seconds= \
             allows more",
        );
        self.end_call(world, fault, None)
    }

    /// As [`Party::end_call`], since rank 0 has ended while the others waited for what it did in storage. Who knows tells all
    /// others, who may be on another host.
    fn end_without_rank_0(&mut self, world: &mut dyn World) -> Fault {
        let text = format!("{}: rank 0 ended in the middle of the call, while it worked in storage for all", self.what);
        let fault = Fault::new(FaultKind::Timeout, text)
            .hint("the process died; what it was writing is not published, or opening the store to write completes it");
        for rank in (1..self.size).filter(|&rank| rank != self.rank) {
            world.transport().signal(rank, abort_of(&fault));
        }
        self.wait(world, LEAVING, |_| false);
        self.poison(fault)
    }

    fn name_the_missing(&self, fault: Fault, arriving: bool) -> Fault {
        let here =
            |rank: u32| self.inbox.pongs.iter().any(|p| p.0 == rank) || self.inbox.reports.iter().any(|r| r.0 == rank);
        let missing: Vec<u32> = (1..self.size).filter(|&rank| !here(rank)).collect();
        if missing.is_empty() {
            let mut lines: Vec<String> = vec![format!("rank 0: {}", fault.text())];
            lines.extend(self.inbox.pongs.iter().map(|(rank, waits)| format!("rank {rank}: {waits}")));
            lines.extend(self.inbox.reports.iter().map(|(rank, fault, _)| format!("rank {rank}: {}", fault.text())));
            lines.dedup();
            lines.truncate(9);
            let limit = self.limits.progress.as_secs_f64();
            let text = format!("{}: no rank made progress for {limit:.1} s:\n  {}", self.what, lines.join("\n  "));
            return Fault::new(FaultKind::Timeout, text)
                .hint("raise the limit on progress if the storage is that slow");
        }
        let named = &missing[..missing.len().min(RANKS_NAMED_MAX)];
        let more = missing.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let who = format!("{}{more}", self.names.list(named));
        let of = |fault: Fault| Fault::on(fault, named, "").context(&self.what);
        if arriving {
            let limit = self.limits.arrival.as_secs_f64();
            let text = format!("{who} did not arrive at call {} within {limit:.1} s", self.call);
            of(Fault::new(FaultKind::Timeout, text)).hint(
                "every rank of the communicator must make the call; a rank that raised before it, or died, cannot",
            )
        } else {
            let limit = self.limits.progress.as_secs_f64();
            let text = format!("{who} stopped answering in the middle of the call (no progress for {limit:.1} s)");
            of(Fault::new(FaultKind::Timeout, text))
                .hint("the process died or hangs; what it was writing is not published")
        }
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
            self.answer(world, "waits for rank 0 to decide how the call ends");
            world.doze(DOZE);
        }
        true
    }
}

fn abort_of(fault: &Fault) -> Vec<u8> {
    let mut abort = vec![tag::ABORT];
    abort.extend(fault.to_bytes());
    abort
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
