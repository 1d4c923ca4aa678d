//! One rank's part in a communicator over its life: calls in order, limits on waiting, and failure.

use crate::consensus::{Consensus, Question, list};
use crate::inbox::{Inbox, tag};
use crate::pool::Pool;
use hyperslab_world::{Fault, FaultKind, World};
use std::time::Duration;

/// How long a rank waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// For other ranks to reach a call.
    pub arrival: Duration,
    /// For any progress, of any rank, inside a call.
    pub progress: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { arrival: Duration::from_secs(30 * 60), progress: Duration::from_secs(60) }
    }
}

/// Polls without news after which a rank starts to doze.
const EAGER_POLLS: u32 = 16;
/// Longest doze; also bounds how late Ctrl-C is noticed.
const DOZE: Duration = Duration::from_millis(2);

/// One rank of a communicator.
pub struct Party {
    rank: u32,
    size: u32,
    call: u64,
    what: String,
    /// Limits on waiting; may change between calls.
    pub limits: Limits,
    pub(crate) inbox: Inbox,
    pub(crate) pool: Pool,
    progressed: bool,
    /// Neighbours in the tree that said they progress, since the last time they were told.
    heard: Vec<u32>,
    poisoned: Option<Fault>,
    /// Whether all have answered and rank 0 is at work: it cannot say so meanwhile, and may take long.
    pub(crate) patient: bool,
    /// Agreements so far.
    pub agreements: u64,
}

impl Party {
    /// A rank that has made no call yet.
    pub fn new(rank: u32, size: u32, limits: Limits) -> Party {
        Party {
            rank,
            size,
            call: 0,
            what: String::new(),
            limits,
            inbox: Inbox::default(),
            pool: Pool::default(),
            progressed: false,
            heard: Vec::new(),
            poisoned: None,
            patient: false,
            agreements: 0,
        }
    }

    /// Allows buffers, kept and in use, this many bytes from now on \[B\].
    pub fn limit_buffers(&mut self, bytes_max: u64) {
        self.pool.limit(bytes_max);
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
        self.patient = false;
        self.agreements += 1;
        self.what.clone_from(&question.what);
        self.call
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
        mut question: Question,
        mut decide: impl FnMut() -> Result<Vec<u8>, Fault>,
    ) -> Result<Vec<u8>, Fault> {
        if let Some(fault) = &self.poisoned {
            let text = format!(
                "{}: this handle cannot be used any more, since an earlier call failed: {}",
                question.what, fault.text
            );
            return Err(Fault::new(FaultKind::Poisoned, text).hint("open the store again, on a fresh communicator"));
        }
        let number = (self.call + 1).to_string();
        question.fields.insert(0, ("number of the call".into(), number));
        question.fields.insert(1, ("version of hyperslab".into(), env!("CARGO_PKG_VERSION").into()));
        let arrival = question.opens.then_some(self.limits.arrival);
        let mut consensus = Consensus::new(self, question);
        let rank = self.rank;
        let mut result = None;
        self.drive(world, arrival, |world, party| {
            result = consensus.poll(world, party, &mut decide);
            if result.is_some() { None } else { Some(consensus.waits_for(rank)) }
        })?;
        result.expect("driven until it was there")
    }

    /// Polls until there is nothing left to wait for. `step` says what it waits for, or `None` when it is over.
    /// With an arrival limit, that limit holds from the start; otherwise the limit on progress does.
    ///
    /// # Errors
    /// When a limit is reached, the user interrupts, or the link to other ranks breaks; then all ranks fail, and this
    /// party is poisoned.
    pub fn drive(
        &mut self,
        world: &mut dyn World,
        arrival: Option<Duration>,
        mut step: impl FnMut(&mut dyn World, &mut Party) -> Option<String>,
    ) -> Result<(), Fault> {
        let start = world.clock().now_ns();
        let (mut last, mut told, mut quiet) = (start, start, 0);
        let mut advance = world.store().advance();
        // Progress of this rank itself since it last told; what it heard of others must not count, or two ranks that
        // only wait would keep each other waiting.
        let mut own = false;
        loop {
            if let Err(fault) = self.inbox.pump(world) {
                return Err(self.give_up(world, fault, false));
            }
            let Some(waits_for) = step(world, self) else { return Ok(()) };
            let now = world.clock().now_ns();
            self.answer(world, &waits_for);
            let alive = std::mem::take(&mut self.inbox.alive);
            let advanced = std::mem::replace(&mut advance, world.store().advance()) != advance;
            if std::mem::take(&mut self.progressed) || advanced {
                (last, quiet, own) = (now, 0, true);
            } else {
                quiet += 1;
            }
            if !alive.is_empty() {
                last = now;
                self.heard.extend(alive);
            }
            if now - told > nanos(self.limits.progress) / 4 {
                self.tell_alive(world, std::mem::take(&mut own));
                told = now;
            }
            let arrival = arrival.or(self.patient.then_some(self.limits.arrival));
            let (since, limit) = arrival.map_or((last, self.limits.progress), |limit| (start, limit));
            if let Some(fault) = self.inbox.abort.take() {
                return Err(self.poison(fault));
            }
            if world.clock().interrupted() {
                let text = format!("{}: interrupted by the user on rank {}", self.what, self.rank);
                return Err(self.give_up(world, Fault::new(FaultKind::Interrupted, text), false));
            }
            if now - since > nanos(limit) {
                let text = format!("{waits_for}, for {:.1} s without progress", limit.as_secs_f64());
                return Err(self.give_up(world, Fault::new(FaultKind::Timeout, text), arrival.is_some()));
            }
            if let Some((from, fault)) = self.inbox.reports.first().cloned() {
                let late = fault.kind == FaultKind::Timeout;
                let fault = if late { fault } else { fault.context(format!("rank {from} gave up")) };
                return Err(self.give_up(world, fault, arrival.is_some()));
            }
            if quiet > EAGER_POLLS {
                world.doze(DOZE);
            }
        }
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
        let first = u64::from(self.rank) * 4 + 1;
        let children = (first..first + 4).filter(|&c| c < u64::from(self.size)).map(|c| c as u32);
        let parent = (self.rank > 0).then(|| (self.rank - 1) / 4);
        for neighbour in children.chain(parent) {
            if own || heard.iter().any(|&from| from != neighbour) {
                world.transport().signal(neighbour, vec![tag::ALIVE]);
            }
        }
    }

    /// Ends a call that this rank cannot go on with, on all ranks, without waiting for a limit.
    pub fn abandon(&mut self, world: &mut dyn World, fault: Fault) -> Fault {
        self.give_up(world, fault, false)
    }

    fn poison(&mut self, fault: Fault) -> Fault {
        self.poisoned = Some(fault.clone());
        // Slots may still be the target of operations in flight: they are kept for good, never reused.
        self.pool.leak();
        fault
    }

    /// Ends the call on all ranks with one failure. Rank 0 decides which, after asking who is still there; when it
    /// does not answer, each rank is left with its own.
    fn give_up(&mut self, world: &mut dyn World, fault: Fault, arriving: bool) -> Fault {
        let grace = (self.limits.progress / 4).clamp(Duration::from_millis(300), Duration::from_secs(2));
        if self.rank > 0 {
            let mut report = vec![tag::REPORT];
            report.extend(fault.to_bytes());
            world.transport().signal(0, report);
            let decided = self.wait(world, grace * 2, |inbox| inbox.abort.is_some());
            let abort = self.inbox.abort.take();
            let silent = || fault.clone().context(format!("rank 0 does not answer; on rank {}", self.rank));
            let fault = if decided { abort.unwrap_or_else(silent) } else { silent() };
            return self.poison(fault);
        }
        let others = self.size - 1;
        (1..self.size).for_each(|rank| world.transport().signal(rank, vec![tag::PING]));
        self.wait(world, grace, |inbox| inbox.pongs.len() + inbox.reports.len() >= others as usize);
        let fault = if fault.kind == FaultKind::Timeout { self.name_the_missing(fault, arriving) } else { fault };
        let mut abort = vec![tag::ABORT];
        abort.extend(fault.to_bytes());
        (1..self.size).for_each(|rank| world.transport().signal(rank, abort.clone()));
        // Give the messages a moment to leave.
        self.wait(world, Duration::from_millis(20), |_| false);
        self.poison(fault)
    }

    fn name_the_missing(&self, fault: Fault, arriving: bool) -> Fault {
        let here =
            |rank: u32| self.inbox.pongs.iter().any(|p| p.0 == rank) || self.inbox.reports.iter().any(|r| r.0 == rank);
        let missing: Vec<u32> = (1..self.size).filter(|&rank| !here(rank)).collect();
        if missing.is_empty() {
            let mut lines: Vec<String> = vec![format!("rank 0: {}", fault.text)];
            lines.extend(self.inbox.pongs.iter().map(|(rank, waits)| format!("rank {rank}: {waits}")));
            lines.extend(self.inbox.reports.iter().map(|(rank, fault)| format!("rank {rank}: {}", fault.text)));
            lines.dedup();
            lines.truncate(9);
            let limit = self.limits.progress.as_secs_f64();
            let text = format!("{}: no rank made progress for {limit:.1} s:\n  {}", self.what, lines.join("\n  "));
            return Fault::new(FaultKind::Timeout, text)
                .hint("raise the limit on progress if the storage is that slow");
        }
        let named = &missing[..missing.len().min(8)];
        let more = missing.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let who = format!("rank {}{more}", list(named));
        if arriving {
            let limit = self.limits.arrival.as_secs_f64();
            let text = format!("{}: {who} did not arrive at call {} within {limit:.1} s", self.what, self.call);
            Fault::new(FaultKind::Timeout, text).hint(
                "every rank of the communicator must make the call; a rank that raised before it, or died, cannot",
            )
        } else {
            let limit = self.limits.progress.as_secs_f64();
            let text = format!(
                "{}: {who} stopped answering in the middle of the call (no progress for {limit:.1} s)",
                self.what
            );
            Fault::new(FaultKind::Timeout, text).hint("the process died or hangs; what it was writing is not published")
        }
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

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}
