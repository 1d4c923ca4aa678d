//! What shows that work with names makes progress, one system call after another, and what it takes its time for.

use crate::monotonic::monotonic_ns;
use hyperslab_world::{NamesChore, NamesSpan};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A number that rises with each call. Nothing is read after it, so that it orders nothing among threads.
pub(crate) type Steps = Arc<AtomicU64>;

/// What the work of one desk takes its time for. One thread at a time is at work.
#[derive(Default)]
pub(crate) struct DeskWatch {
    watched: AtomicBool,
    synced_ns: AtomicU64,
    noted: Mutex<WorkNoted>,
}

#[derive(Default)]
struct WorkNoted {
    /// What the work is at, and since when \[ns\].
    open: Option<(NamesChore, u64)>,
    spent: Vec<NamesSpan>,
}

/// Parts of work that are closer than this are one, if they are alike \[ns\].
const CLOSE_NS: u64 = 5_000;
/// Most parts that are kept until they are asked for.
const SPENT_MAX: usize = 1 << 12;

thread_local! {
    /// Rises with each call that this thread makes, where somebody watches it.
    static STEPS: RefCell<Option<Steps>> = const { RefCell::new(None) };
    /// Where this thread notes what its work takes time for, while it works for a desk.
    static WATCH: RefCell<Option<Arc<DeskWatch>>> = const { RefCell::new(None) };
}

/// Lets somebody watch this thread.
pub(crate) fn watch(steps: Steps) {
    STEPS.set(Some(steps));
}

/// Tells that another call is about to be made.
pub(crate) fn note() {
    STEPS.with_borrow(|steps| {
        if let Some(steps) = steps {
            steps.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Works for a desk on this thread.
pub(crate) fn working<T>(watch: &Arc<DeskWatch>, work: impl FnOnce() -> T) -> T {
    let before = WATCH.replace(Some(watch.clone()));
    let done = work();
    WATCH.set(before);
    done
}

/// Runs what makes something durable, and adds its time to what syncs of this desk have taken.
pub(crate) fn syncing<T>(run: impl FnOnce() -> T) -> T {
    let Some(watch) = WATCH.with_borrow(Clone::clone) else { return run() };
    let begin_ns = monotonic_ns();
    let done = watch.noting(NamesChore::Sync, run);
    watch.synced_ns.fetch_add(monotonic_ns() - begin_ns, Ordering::Relaxed);
    done
}

/// Runs something that is part of a chore, of which one is `doing` this.
pub(crate) fn doing<T>(doing: &str, run: impl FnOnce() -> T) -> T {
    let watch = WATCH.with_borrow(|watch| watch.as_ref().filter(|watch| watch.is_watched()).cloned());
    let chore = match doing {
        "publishing" | "removing" | "linking" => NamesChore::Publish,
        _ => NamesChore::Metadata,
    };
    match watch {
        Some(watch) => watch.noting(chore, run),
        None => run(),
    }
}

impl DeskWatch {
    fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Notes parts of work from now on, or no more.
    pub(crate) fn watch(&self, watched: bool) {
        self.watched.store(watched, Ordering::Relaxed);
        *self.noted() = WorkNoted::default();
    }

    /// What was noted since this was asked last.
    pub(crate) fn spent(&self) -> Vec<NamesSpan> {
        std::mem::take(&mut self.noted().spent)
    }

    /// How long syncs have taken so far \[ns\].
    pub(crate) fn synced_ns(&self) -> u64 {
        self.synced_ns.load(Ordering::Relaxed)
    }

    fn noted(&self) -> MutexGuard<'_, WorkNoted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done inside of something else is no part of that.
    fn noting<T>(&self, chore: NamesChore, run: impl FnOnce() -> T) -> T {
        if !self.is_watched() {
            return run();
        }
        let outer = self.noted().turn_to(Some(chore));
        let done = run();
        self.noted().turn_to(outer);
        done
    }
}

impl WorkNoted {
    /// Ends what the work was at, and begins this; gives what it was.
    fn turn_to(&mut self, chore: Option<NamesChore>) -> Option<NamesChore> {
        let now = monotonic_ns();
        let before = std::mem::replace(&mut self.open, chore.map(|chore| (chore, now)));
        let (chore, begin_ns) = before?;
        let has_room = self.spent.len() < SPENT_MAX;
        match self.spent.last_mut() {
            Some(last) if last.chore == chore && begin_ns - last.end_ns < CLOSE_NS => last.end_ns = now,
            _ if now > begin_ns && has_room => {
                self.spent.push(NamesSpan { chore, begin_ns, end_ns: now });
            }
            _ => {}
        }
        Some(chore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use std::time::Duration;

    #[test]
    fn parts_of_work_are_noted_apart_and_syncs_are_always_counted() {
        let watch = Arc::new(DeskWatch::default());
        let moment = || sleep(Duration::from_millis(2));
        let work = || {
            doing("writing", || {
                moment();
                syncing(moment);
                moment();
            });
            doing("publishing", moment);
        };
        work();
        working(&watch, work);
        assert!(watch.synced_ns() >= 2_000_000 && watch.spent().is_empty(), "it is not watched");
        watch.watch(true);
        working(&watch, work);
        let spent = watch.spent();
        let chores: Vec<NamesChore> = spent.iter().map(|part| part.chore).collect();
        assert_eq!(chores, [NamesChore::Metadata, NamesChore::Sync, NamesChore::Metadata, NamesChore::Publish]);
        assert!(spent.windows(2).all(|two| two[0].end_ns <= two[1].begin_ns));
        assert!(spent.iter().all(|part| part.end_ns - part.begin_ns >= 2_000_000));
        assert!(watch.synced_ns() >= 4_000_000 && watch.spent().is_empty());
        watch.watch(false);
        working(&watch, work);
        assert!(watch.spent().is_empty());
    }
}
