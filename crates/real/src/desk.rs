//! Where rank 0's work with names is done: by a thread of its own, so that limits of time and Ctrl-C hold while the system
//! does not answer; or at once, where nothing but a disk of this host is waited for.

use crate::progress::{self, DeskWatch, Steps};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use crate::sync::{Arc, Mutex, MutexGuard, lock, thread};
use crate::wire::Bell;
use hyperslab_world::{Fault, FaultKind, NamesSpan, Work};
use std::sync::TryLockError;

/// One piece of work after another. Clones are the same desk.
#[derive(Clone)]
pub struct Desk {
    bell: Bell,
    /// Rises with each call that the worker makes.
    steps: Steps,
    /// What the work takes its time for.
    watch: std::sync::Arc<DeskWatch>,
    state: Arc<Mutex<State>>,
    /// Locked by whoever is at work. Several threads may have the desk, and each may do something at once.
    at_work: Arc<Mutex<()>>,
}

#[derive(Default)]
struct State {
    worker: Option<Worker>,
    /// Pieces of work that the worker has, or will have.
    left: Arc<AtomicU64>,
    /// What is to be asked for.
    outcome: Option<Outcome>,
}

enum Outcome {
    Done(Result<Vec<u8>, Fault>),
    Awaited,
}

struct Worker {
    work: Sender<(Work, bool)>,
    done: Receiver<Result<Vec<u8>, Fault>>,
}

fn gone() -> Fault {
    Fault::new(FaultKind::Peer, "the thread that works with names is gone, or the system gives none")
}

impl Desk {
    /// The bell rings whenever something is done.
    pub(crate) fn new(bell: Bell) -> Desk {
        Desk {
            bell,
            steps: Steps::default(),
            watch: Default::default(),
            state: Arc::default(),
            at_work: Arc::default(),
        }
    }

    /// Begins; at once, on this thread, where the caller says that it waits for nothing far away and nothing is under way.
    pub fn begin(&self, work: Work, at_once: bool) {
        let outcome = match self.free(at_once) {
            Some(_at_work) => Outcome::Done(progress::working(&self.watch, work)),
            None => self.submit(work, true),
        };
        lock(&self.state).outcome = Some(outcome);
    }

    /// Does something after all that was begun; nobody asks what came of it.
    pub fn later(&self, work: impl FnOnce() + Send + 'static, at_once: bool) {
        if let Some(_at_work) = self.free(at_once) {
            return progress::working(&self.watch, work);
        }
        let quiet = move || {
            work();
            Ok(Vec::new())
        };
        self.submit(Box::new(quiet), false);
    }

    /// What came of what was begun last, once it is known.
    pub fn poll(&self) -> Option<Result<Vec<u8>, Fault>> {
        let mut state = lock(&self.state);
        match state.outcome.take()? {
            Outcome::Done(result) => Some(result),
            Outcome::Awaited => match state.worker.as_ref().map(|worker| worker.done.try_recv()) {
                Some(Ok(result)) => Some(result),
                Some(Err(TryRecvError::Empty)) => {
                    state.outcome = Some(Outcome::Awaited);
                    None
                }
                Some(Err(TryRecvError::Disconnected)) | None => Some(Err(gone())),
            },
        }
    }

    /// The desk for this thread, if it shall do something at once and nobody is at work or waits for it.
    fn free(&self, at_once: bool) -> Option<MutexGuard<'_, ()>> {
        if !at_once {
            return None;
        }
        let at_work = match self.at_work.try_lock() {
            Ok(at_work) => at_work,
            Err(TryLockError::Poisoned(panicked)) => panicked.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.is_idle().then_some(at_work)
    }

    /// Whether somebody will ask for what the worker does.
    pub(crate) fn is_awaited(&self) -> bool {
        let state = lock(&self.state);
        matches!(state.outcome, Some(Outcome::Awaited)) && state.left.load(Ordering::Acquire) > 0
    }

    /// Whether all that was begun is over.
    pub fn is_idle(&self) -> bool {
        lock(&self.state).left.load(Ordering::Acquire) == 0
    }

    /// A number that changes when the work comes forward.
    pub(crate) fn advance(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    fn submit(&self, work: Work, told: bool) -> Outcome {
        let mut state = lock(&self.state);
        let left = state.left.clone();
        let of_worker = left.clone();
        let worker = state.worker.get_or_insert_with(|| Worker::start(self, of_worker));
        left.fetch_add(1, Ordering::AcqRel);
        match worker.work.send((work, told)) {
            Ok(()) => Outcome::Awaited,
            Err(_) => {
                left.fetch_sub(1, Ordering::AcqRel);
                Outcome::Done(Err(gone()))
            }
        }
    }
}

impl hyperslab_world::Desk for Desk {
    fn begin(&mut self, work: Work, at_once: bool) {
        Desk::begin(self, work, at_once);
    }

    fn poll(&mut self) -> Option<Result<Vec<u8>, Fault>> {
        Desk::poll(self)
    }

    fn later(&mut self, work: Box<dyn FnOnce() + Send>, at_once: bool) {
        Desk::later(self, work, at_once);
    }

    fn is_idle(&self) -> bool {
        Desk::is_idle(self)
    }

    fn watch(&mut self, watched: bool) {
        self.watch.watch(watched);
    }

    fn spent(&mut self) -> Vec<NamesSpan> {
        self.watch.spent()
    }

    fn synced_ns(&self) -> u64 {
        self.watch.synced_ns()
    }
}

impl Worker {
    /// Ends when its desk does; one that hangs in the system is waited for by nobody.
    fn start(desk: &Desk, left: Arc<AtomicU64>) -> Worker {
        let (bell, at_work) = (desk.bell.clone(), desk.at_work.clone());
        let (steps, watch) = (desk.steps.clone(), desk.watch.clone());
        let (work, inbox) = channel::<(Work, bool)>();
        let (outbox, done) = channel();
        // Without a thread, both ends are dropped, and whoever asks is told.
        let _ = thread::Builder::new().name("hyperslab-names".into()).spawn(move || {
            progress::watch(steps);
            for (work, told) in inbox {
                let this = lock(&at_work);
                let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| progress::working(&watch, work)));
                drop(this);
                let result = caught.unwrap_or_else(|_| Err(gone()));
                left.fetch_sub(1, Ordering::AcqRel);
                if told && outbox.send(result).is_err() {
                    return;
                }
                bell.ring();
            }
        });
        Worker { work, done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn wait(desk: &Desk) -> Result<Vec<u8>, Fault> {
        loop {
            if let Some(result) = desk.poll() {
                return result;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn work_is_done_in_order_and_its_outcome_asked_for() {
        let desk = Desk::new(Bell::default());
        assert!(desk.poll().is_none(), "nothing was begun");
        let order = Arc::new(AtomicU64::new(0));
        let first = order.clone();
        let slow = move || {
            std::thread::sleep(Duration::from_millis(20));
            first.store(7, Ordering::Relaxed);
        };
        desk.later(slow, false);
        assert!(!desk.is_idle());
        while !desk.is_idle() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(order.load(Ordering::Relaxed), 7);
        let seen = order.clone();
        desk.begin(Box::new(move || Ok(vec![seen.load(Ordering::Relaxed) as u8])), false);
        assert_eq!(wait(&desk), Ok(vec![7]));
        desk.begin(Box::new(|| Ok(vec![1])), true);
        assert_eq!(desk.poll(), Some(Ok(vec![1])));
        let (seen, second) = (order.clone(), order.clone());
        let slow = move || {
            std::thread::sleep(Duration::from_millis(20));
            second.store(8, Ordering::Relaxed);
        };
        desk.later(slow, false);
        desk.begin(Box::new(move || Ok(vec![seen.load(Ordering::Relaxed) as u8])), true);
        assert_eq!(wait(&desk), Ok(vec![8]), "what shall be done at once waits for what is under way");
        desk.begin(Box::new(|| panic!("as a bug would")), false);
        assert!(wait(&desk).is_err());
        desk.begin(Box::new(|| Ok(vec![2])), false);
        assert_eq!(wait(&desk), Ok(vec![2]), "one that panicked is not the end");
    }

    #[test]
    fn calls_of_the_system_show_that_it_comes_forward() {
        let desk = Desk::new(Bell::default());
        let before = desk.advance();
        let look = || {
            use hyperslab_world::Names;
            Ok(vec![u8::from(crate::Directory::new("/").exists("nothing of this name"))])
        };
        desk.begin(Box::new(look), false);
        assert_eq!(wait(&desk), Ok(vec![0]));
        assert!(desk.advance() > before);
    }
}
