//! Stopping the calls of other threads, for the one that waits for them.
//!
//! An interrupt belongs to the thread that gets it, and to the call that this thread is in. Other threads are stopped by it only if
//! they work for that one: such as the ranks that are threads, for whose end it waits.

use crate::sync::lock;
use hyperslab_walk::Party;
use hyperslab_world::{Fault, FaultKind, World};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

thread_local! {
    /// The crew that this thread belongs to.
    static MINE: RefCell<Option<Crew>> = const { RefCell::new(None) };
    /// On which memberships this thread is in calls: in several, if handlers of signals make calls.
    static CALLS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// A membership in a communicator, for those that end its requests.
pub(crate) trait Membership: Send + Sync {
    /// Stops all requests, on all ranks.
    fn stop_requests(&self);
    /// Whether no request is under way.
    fn is_idle(&self) -> bool;
    /// Waits for all requests, as `Comm::finish` does: the failures, and how many were given up. Not in a child made by a fork.
    fn finish(self: Arc<Self>, patience: Duration) -> Option<(Vec<String>, usize)>;
}

/// Tells memberships apart.
fn address<M: ?Sized>(membership: *const M) -> usize {
    membership.cast::<()>() as usize
}

/// Threads that work for one which waits for them. Their calls stop when it says so, those of no other thread do.
#[derive(Clone)]
pub struct Crew(Arc<CrewState>);

#[derive(Default)]
struct CrewState {
    stopped: AtomicBool,
    /// Calls that its threads are in.
    calls: AtomicUsize,
    known: Mutex<KnownCall>,
}

#[derive(Default)]
struct KnownCall {
    /// Memberships on which its threads have made requests.
    with_requests: Vec<Weak<dyn Membership>>,
    /// Crews of its threads.
    below: Vec<Weak<CrewState>>,
}

impl Default for Crew {
    fn default() -> Crew {
        Crew::new()
    }
}

impl Crew {
    /// One that works for this thread, and stops with it where this thread belongs to a crew itself.
    pub fn new() -> Crew {
        let crew = Crew(Arc::default());
        if let Some(above) = mine() {
            lock(&above.0.known).below.push(Arc::downgrade(&crew.0));
            crew.0.stopped.store(above.is_stopped(), Ordering::SeqCst);
        }
        crew
    }

    /// This thread belongs to it from now on.
    pub fn join(&self) {
        MINE.with(|mine| *mine.borrow_mut() = Some(self.clone()));
    }

    /// Ends the calls that its threads are in, or come to, and their requests, as an interrupt does.
    pub fn stop(&self) {
        self.0.stop();
    }

    fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Whether one of its threads is in a call, or a request of theirs is under way.
    pub fn is_at_work(&self) -> bool {
        self.0.is_at_work()
    }
}

impl CrewState {
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let known = lock(&self.known);
        known.with_requests.iter().filter_map(Weak::upgrade).for_each(|one| one.stop_requests());
        known.below.iter().filter_map(Weak::upgrade).for_each(|crew| crew.stop());
    }

    fn is_at_work(&self) -> bool {
        if self.calls.load(Ordering::SeqCst) > 0 {
            return true;
        }
        let known = lock(&self.known);
        known.with_requests.iter().filter_map(Weak::upgrade).any(|one| !one.is_idle())
            || known.below.iter().filter_map(Weak::upgrade).any(|crew| crew.is_at_work())
    }
}

fn mine() -> Option<Crew> {
    MINE.try_with(|mine| mine.borrow().clone()).ok().flatten()
}

/// Whether this thread shall stop.
pub(crate) fn is_stopped() -> bool {
    MINE.try_with(|mine| mine.borrow().as_ref().is_some_and(Crew::is_stopped)).unwrap_or(false)
}

/// This thread has made a request on this membership.
pub(crate) fn requests<M: Membership + 'static>(membership: &Arc<M>) {
    let Some(crew) = mine() else { return };
    let mut known = lock(&crew.0.known);
    let mine = address(Arc::as_ptr(membership));
    if !known.with_requests.iter().any(|one| address(one.as_ptr()) == mine) {
        known.with_requests.retain(|one| one.strong_count() > 0);
        let all: Arc<dyn Membership> = membership.clone();
        known.with_requests.push(Arc::downgrade(&all));
    }
    drop(known);
    if crew.is_stopped() {
        membership.stop_requests();
    }
}

/// Whether this thread is in a call on this membership.
pub(crate) fn is_in_call<M>(membership: &Arc<M>) -> bool {
    CALLS.try_with(|calls| calls.borrow().contains(&address(Arc::as_ptr(membership)))).unwrap_or(false)
}

/// A call that this thread is in.
pub(crate) struct Counted(Option<Crew>);

impl Counted {
    pub(crate) fn new<M>(membership: &Arc<M>) -> Counted {
        CALLS.with(|calls| calls.borrow_mut().push(address(Arc::as_ptr(membership))));
        let crew = mine();
        if let Some(crew) = &crew {
            crew.0.calls.fetch_add(1, Ordering::SeqCst);
        }
        Counted(crew)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        CALLS.with(|calls| calls.borrow_mut().pop());
        if let Some(crew) = &self.0 {
            crew.0.calls.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A call was interrupted on a rank.
pub(crate) fn interrupted(what: &str, rank: u32) -> Fault {
    Fault::new(FaultKind::Interrupted, format!("{what}: interrupted by a signal on rank {rank}"))
}

/// Ends a call of a thread that shall stop, on all ranks, before it begins.
pub(crate) fn refused(world: &mut dyn World, party: &mut Party, what: &str) -> Option<Fault> {
    if !is_stopped() || party.poisoned().is_some() {
        return None;
    }
    let fault = interrupted(what, party.rank());
    party.leave(world, fault.clone());
    Some(fault)
}
