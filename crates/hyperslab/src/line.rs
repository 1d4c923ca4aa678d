//! The line in which a rank's calls stand: they are carried out one after another, in the order in which they were made.
//!
//! A call that blocks waits until the line before it is empty and is carried out by its own thread. A call that does
//! not block is left here as a job, and a thread of the line carries jobs out while there are any.

use crate::crew;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, thread, thread_local};
use hyperslab_collective::{LocalArray, Report};
use hyperslab_real::Interrupted;
use hyperslab_real::relay::Pump;
use hyperslab_world::{Fault, FaultKind};
use std::any::Any;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The target of calls that belong to no store.
pub(crate) const NO_TARGET: u64 = 0;
/// All targets.
pub(crate) const ANY_TARGET: u64 = u64::MAX;

/// A number for a store, step or file whose calls are to be told from those of others; only this process knows it.
pub(crate) fn new_target() -> u64 {
    static LAST: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(NO_TARGET);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// How often somebody who waits asks whether the user wants to stop.
const ASK: Duration = Duration::from_millis(50);
/// How long somebody who waits sleeps at a time where messages need his thread.
const PUMP: Duration = Duration::from_micros(200);

thread_local! {
    /// Whether this thread carries out jobs. The user's interpreter must not be asked for anything from it.
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

/// What a call gives: the arrays that it made, and what it did.
pub(crate) type Finished = (Vec<LocalArray>, Report);

/// How far a call is that was left to the line.
pub(crate) struct Outcome {
    /// The store or file that it belongs to.
    pub(crate) target: u64,
    /// Its number among the requests of this rank, from 1 on. Other ranks may count otherwise: of a call that one could not
    /// make, some have a request and some have none.
    pub(crate) number: u64,
    /// Set once the user's arrays may be used again, where that ends the call for him.
    left: OnceLock<Finished>,
    result: OnceLock<Result<Finished, Fault>>,
    /// Whether nobody can ask for the result any more.
    pub(crate) dropped: AtomicBool,
}

impl Outcome {
    fn new(target: u64, number: u64) -> Arc<Outcome> {
        let (left, result) = (OnceLock::new(), OnceLock::new());
        Arc::new(Outcome { target, number, left, result, dropped: AtomicBool::new(false) })
    }

    /// The failure, for somebody who made another call.
    fn told(&self) -> Option<Fault> {
        let fault = self.result.get()?.clone().err()?;
        let left = "a call that had returned, its data having left, failed";
        let dropped = "a request that was not waited for failed";
        Some(fault.context(if self.left.get().is_some() { left } else { dropped }))
    }

    /// What its caller gets: whether it went well, or that his arrays are free. Once they are, only later calls can fail;
    /// otherwise chance would decide which of two calls does, and on each rank anew.
    fn known(&self) -> Option<Result<Finished, Fault>> {
        self.left.get().cloned().map(Ok).or_else(|| self.result.get().cloned())
    }
}

/// What is left to the line.
pub(crate) trait Chore: Any + Send {
    /// Carries it out.
    fn run(self: Box<Self>) -> Result<Finished, Fault>;

    /// How many of those that come next could be carried out with it as one call, and nobody would see a difference.
    fn joins<'a>(&'a self, _next: &mut dyn Iterator<Item = &'a dyn Chore>) -> usize {
        0
    }

    /// Carries it out with those that [join](Chore::joins) it; gives of each what it would give alone.
    fn run_with(self: Box<Self>, next: Vec<Box<dyn Chore>>) -> Vec<Result<Finished, Fault>> {
        let first = self.run();
        [first].into_iter().chain(next.into_iter().map(|task| task.run())).collect()
    }
}

impl<F: FnOnce() -> Result<Finished, Fault> + Send + 'static> Chore for F {
    fn run(self: Box<Self>) -> Result<Finished, Fault> {
        self()
    }
}

struct Job {
    outcome: Arc<Outcome>,
    task: Box<dyn Chore>,
    /// Bytes of copies that go with it \[B\].
    staged: u64,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// The jobs that are being carried out: one, or several as one.
    current: usize,
    /// How many of those that come next are to be carried out as one, which all ranks know.
    agreed: usize,
    /// What is done once there are no jobs.
    last: Vec<Box<dyn FnOnce() + Send>>,
    /// Whether a thread carries out jobs.
    works: bool,
    /// Failures that the user has not been told of.
    failed: Vec<Arc<Outcome>>,
    /// Number of the last request that is over.
    finished: u64,
    /// Bytes of copies of arrays \[B\].
    staged: u64,
}

impl State {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.current == 0 && self.last.is_empty()
    }
}

/// See the module.
pub(crate) struct Line {
    state: Mutex<State>,
    news: Condvar,
    /// Where messages need the user's thread.
    pump: Option<Pump>,
    /// Whether the user wants to stop; a question only for his own threads.
    interrupted: Mutex<Interrupted>,
    /// Number of the last request that is to stop; those behind it do not hear of that.
    stopped: AtomicU64,
    /// Number of the request that is being carried out.
    running: AtomicU64,
    /// Whether the process is about to end, so that the thread of the line must touch nothing any more.
    frozen: AtomicBool,
    parked: AtomicBool,
    /// Rises while jobs progress.
    activity: AtomicU64,
    /// Number of the last request.
    last: AtomicU64,
    /// Number of the last request of which the program of each rank knows at this place that it is over.
    settled: AtomicU64,
    /// A child of this process has a copy of all this, but none of the threads.
    process: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries out a task, with those that join it.
fn carry_out(first: Box<dyn Chore>, next: Vec<Job>) -> Vec<Result<Finished, Fault>> {
    let all = 1 + next.len();
    let run = || match next.is_empty() {
        true => vec![first.run()],
        false => first.run_with(next.into_iter().map(|job| job.task).collect()),
    };
    let broken = |_| vec![Err(Fault::new(FaultKind::Peer, "a call that was not waited for broke off")); all];
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(broken)
}

impl Line {
    pub(crate) fn new(pump: Option<Pump>) -> Line {
        Line {
            state: Mutex::default(),
            news: Condvar::new(),
            pump,
            interrupted: Mutex::new(Box::new(|| false)),
            stopped: AtomicU64::new(0),
            running: AtomicU64::new(0),
            frozen: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            activity: AtomicU64::new(0),
            last: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            process: std::process::id(),
        }
    }

    /// Whether this is still the process in which it was made.
    ///
    /// # Errors
    /// In a child made by a fork: what is open there is its parent's to use and to end.
    pub(crate) fn check_process(&self) -> Result<(), Fault> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = "this process is a child of the one that opened it, which alone may use it";
        Err(Fault::new(FaultKind::Invalid, text).hint("open it anew in the child"))
    }

    /// Whether messages move only while the user's thread is in a call.
    pub(crate) fn needs_caller(&self) -> bool {
        self.pump.is_some()
    }

    pub(crate) fn ask(&self, interrupted: Interrupted) {
        *lock(&self.interrupted) = interrupted;
    }

    /// Whether the user wants to stop, for one of his own threads.
    pub(crate) fn asks_user(&self) -> bool {
        if crew::is_stopped() {
            return true;
        }
        // What the user's handlers do may come here again: nothing is locked meanwhile.
        let mut ask = std::mem::replace(&mut *lock(&self.interrupted), Box::new(|| false));
        let stops = ask();
        *lock(&self.interrupted) = ask;
        stops
    }

    /// Stops requests up to this number: the one that is being carried out ends on all ranks, and so do those before it.
    pub(crate) fn stop_through(&self, number: u64) {
        self.stopped.fetch_max(number, Ordering::SeqCst);
    }

    /// Stops all requests that were made so far.
    pub(crate) fn stop_all(&self) {
        self.stop_through(self.last.load(Ordering::SeqCst));
    }

    /// Whether to stop, as whoever drives a call asks it now and then.
    pub(crate) fn interrupted(&self) -> bool {
        if !WORKS.with(Cell::get) {
            return self.asks_user();
        }
        while self.frozen.load(Ordering::Relaxed) {
            // The process ends, and with it this thread; it must be in no call of anybody's when it does.
            self.parked.store(true, Ordering::Release);
            std::thread::park();
        }
        self.running.load(Ordering::Relaxed) <= self.stopped.load(Ordering::SeqCst)
    }

    /// Tells that a job progresses.
    pub(crate) fn moves(&self) {
        self.activity.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that is about to be left to the line.
    pub(crate) fn outcome(&self, target: u64) -> Arc<Outcome> {
        Outcome::new(target, self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A collective call that blocks has come: all requests before it are over, on all ranks.
    pub(crate) fn settle(&self) {
        let finished = lock(&self.state).finished;
        self.settled.fetch_max(finished, Ordering::AcqRel);
    }

    /// Up to which request the program of each rank knows, at the same place, that they are over: what they made is shown.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Acquire)
    }

    /// Whether a request is not over yet.
    pub(crate) fn is_under_way(&self, request: u64) -> bool {
        lock(&self.state).finished < request
    }

    /// Leaves a job; `line` is this line and all that must live while the job does.
    pub(crate) fn submit<K: AsRef<Line> + Send + 'static>(
        keep: K,
        outcome: Arc<Outcome>,
        staged: u64,
        task: Box<dyn Chore>,
    ) {
        let line = keep.as_ref();
        if let Err(fault) = line.check_process() {
            let _ = outcome.result.set(Err(fault));
            return;
        }
        let mut state = lock(&line.state);
        state.jobs.push_back(Job { outcome, task, staged });
        if std::mem::replace(&mut state.works, true) {
            return;
        }
        drop(state);
        let run = move || {
            WORKS.with(|works| works.set(true));
            keep.as_ref().work();
        };
        let started = thread::Builder::new().name("hyperslab-calls".into()).spawn(run);
        started.expect("the system starts a thread");
    }

    /// Does something when no job is left; nothing where the thread of the line is not at work.
    pub(crate) fn act_at_end(&self, act: Box<dyn FnOnce() + Send>) {
        let mut state = lock(&self.state);
        if state.works {
            state.last.push(act);
        }
    }

    fn work(&self) {
        loop {
            let mut state = lock(&self.state);
            let Some(first) = state.jobs.pop_front() else {
                let Some(act) = state.last.pop() else {
                    state.works = false;
                    return;
                };
                state.current = 1;
                drop(state);
                let _ = catch_unwind(AssertUnwindSafe(act));
                self.end(Vec::new(), Vec::new(), Vec::new());
                continue;
            };
            let joined = std::mem::take(&mut state.agreed).clamp(1, state.jobs.len() + 1) - 1;
            let next: Vec<Job> = state.jobs.drain(..joined).collect();
            state.current = 1 + joined;
            self.running.store(first.outcome.number, Ordering::Relaxed);
            drop(state);
            let (outcomes, staged) =
                [&first].into_iter().chain(&next).map(|job| (job.outcome.clone(), job.staged)).unzip();
            let results = carry_out(first.task, next);
            self.moves();
            self.end(outcomes, staged, results);
        }
    }

    /// The calls are over.
    fn end(&self, outcomes: Vec<Arc<Outcome>>, staged: Vec<u64>, results: Vec<Result<Finished, Fault>>) {
        // Who sees the result finds the failure in the list, to take it out: both change under one lock.
        let mut state = lock(&self.state);
        state.current = 0;
        state.staged -= staged.iter().sum::<u64>();
        for (outcome, result) in outcomes.into_iter().zip(results) {
            state.finished = state.finished.max(outcome.number);
            if result.is_err() {
                state.failed.push(outcome.clone());
            }
            let _ = outcome.result.set(result);
        }
        self.news.notify_all();
    }

    /// How many jobs wait that could follow the one that is being carried out, as one.
    pub(crate) fn waiting(&self) -> u32 {
        let state = lock(&self.state);
        // What went wrong and was not told of is brought to the next call, alone.
        let Some(first) = state.jobs.front().filter(|_| state.failed.is_empty()) else { return 0 };
        let joined = first.task.joins(&mut state.jobs.iter().skip(1).map(|job| &*job.task));
        u32::try_from(1 + joined).unwrap_or(u32::MAX)
    }

    /// All ranks know that so many jobs wait on each that could follow as one.
    pub(crate) fn agree(&self, waiting: u32) {
        lock(&self.state).agreed = waiting as usize;
    }

    /// Whether several jobs are being carried out as one.
    pub(crate) fn is_joined(&self) -> bool {
        lock(&self.state).current > 1
    }

    /// Tells that the arrays of a call may be used again, though it is not over.
    pub(crate) fn leave(&self, outcome: &Outcome, report: Report) {
        let state = lock(&self.state);
        let _ = outcome.left.set((Vec::new(), report));
        drop(state);
        self.news.notify_all();
    }

    /// Lets messages move that need this thread.
    fn pump(&self) {
        if let Some(pump) = &self.pump {
            pump.pump();
        }
    }

    /// Waits until something is so. An interrupt of the user stops requests up to this number, for which he waits.
    fn wait(&self, through: u64, done: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        if self.check_process().is_err() {
            return lock(&self.state);
        }
        let (mut asked, mut pumped) = (Instant::now(), false);
        loop {
            self.pump();
            let state = lock(&self.state);
            // Once more after it is done: what the last job sent is to leave, too.
            if done(&state) && (pumped || self.pump.is_none()) {
                return state;
            }
            pumped = done(&state);
            let pause = if self.pump.is_some() { PUMP } else { ASK };
            // Whatever ends this, it is looked at again.
            if !pumped {
                drop(self.news.wait_timeout(state, pause));
            } else {
                drop(state);
            }
            if asked.elapsed() >= ASK {
                asked = Instant::now();
                if self.asks_user() {
                    self.stop_through(through);
                }
            }
        }
    }

    /// Waits until all calls before this one are over.
    pub(crate) fn drain(&self) {
        drop(self.wait(self.last.load(Ordering::Acquire), State::is_empty));
    }

    /// Whether there is no call before the next one.
    pub(crate) fn is_idle(&self) -> bool {
        lock(&self.state).is_empty()
    }

    /// Sets bytes aside for a copy. Copies share `most`; a larger one is taken alone. This waits for calls before it as
    /// far as that needs.
    pub(crate) fn admit(&self, bytes: u64, most: u64) {
        let fits = |state: &State| state.is_empty() || state.staged.saturating_add(bytes) <= most;
        let mut state = self.wait(self.last.load(Ordering::Acquire), fits);
        state.staged += bytes;
    }

    /// Gives back what [`Line::admit`] set aside.
    pub(crate) fn forgo(&self, bytes: u64) {
        lock(&self.state).staged -= bytes;
        self.news.notify_all();
    }

    /// Waits for the result of a call, or until its arrays are free. The user knows it then.
    pub(crate) fn result(&self, outcome: &Arc<Outcome>) -> Result<Finished, Fault> {
        let mut state = self.wait(outcome.number, |_| outcome.known().is_some());
        let known = outcome.known().unwrap_or_else(|| self.check_process().map(|()| unreachable!("waited for")));
        if known.is_err() {
            state.failed.retain(|failed| !Arc::ptr_eq(failed, outcome));
        }
        // Requests are over in their order; one whose data have left may still fail.
        let over = outcome.number - u64::from(outcome.left.get().is_some());
        self.settled.fetch_max(over, Ordering::AcqRel);
        known
    }

    /// Whether a call is over, or its arrays are free.
    pub(crate) fn is_over(&self, outcome: &Outcome) -> bool {
        self.pump();
        let known = outcome.known().is_some();
        if known {
            self.pump();
        }
        known
    }

    /// Takes a failure that nobody was told of: of a request that was dropped or whose data had left, or of any
    /// that belongs to `target`.
    pub(crate) fn take_failure(&self, target: u64) -> Option<Fault> {
        let mut state = lock(&self.state);
        let ours = |outcome: &Arc<Outcome>| {
            let named = target == ANY_TARGET || (target != NO_TARGET && outcome.target == target);
            named || outcome.left.get().is_some() || outcome.dropped.load(Ordering::Relaxed)
        };
        let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut state.failed).into_iter().partition(ours);
        state.failed = left;
        taken.first()?.told()
    }

    /// Before the process ends: waits as long as jobs progress, then stops the thread of the line for good. Gives the
    /// failures that the user was not told of, and how many calls were given up.
    pub(crate) fn finish(&self, patience: Duration) -> (Vec<Fault>, usize) {
        let (mut seen, mut since) = (self.activity.load(Ordering::Relaxed), Instant::now());
        let mut asked = Instant::now();
        loop {
            self.pump();
            let state = lock(&self.state);
            if state.is_empty() {
                break;
            }
            drop(self.news.wait_timeout(state, if self.pump.is_some() { PUMP } else { ASK }));
            let now = self.activity.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            if asked.elapsed() >= ASK {
                asked = Instant::now();
                if self.asks_user() {
                    self.stop_all();
                }
            }
            if since.elapsed() > patience {
                self.frozen.store(true, Ordering::Relaxed);
                let until = Instant::now() + 4 * ASK;
                while !self.parked.load(Ordering::Acquire) && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(1));
                }
                break;
            }
        }
        self.pump();
        let mut state = lock(&self.state);
        let given_up = state.jobs.len() + state.current;
        let failed = std::mem::take(&mut state.failed).into_iter();
        (failed.filter_map(|outcome| outcome.told()).collect(), given_up)
    }
}

#[cfg(all(loom, test))]
mod tests;
