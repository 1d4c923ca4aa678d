//! What a program leaves undone: new files and steps that nobody closed, requests that failed and that nobody waited for. It is
//! told on the error output, each thing once a process, by whatever door it came in.

use crate::crew::Membership;
use crate::stderr;
use crate::sync::lock;
use hyperslab_collective::attempts::Attempts;
use hyperslab_world::Names;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// All that this process has left, so far.
static LEFT: Mutex<LeftBehind> =
    Mutex::new(LeftBehind { undone: BTreeMap::new(), requests: Vec::new(), told: BTreeSet::new(), untold: None });

struct LeftBehind {
    undone: BTreeMap<u64, Weak<Undone>>,
    /// Memberships with requests.
    requests: Vec<Weak<dyn Membership>>,
    told: BTreeSet<String>,
    /// The process that has told of something since it was last asked.
    untold: Option<u32>,
}

/// Something new of which readers see nothing until it is ended. Whoever drops it before leaves it undone.
#[derive(Clone)]
pub struct Unpublished(Arc<Undone>);

struct Undone {
    number: u64,
    process: u32,
    /// Whether it was ended, or its end was told.
    over: AtomicBool,
    /// Whether a call on it has failed, so that it is not what was meant.
    failed: AtomicBool,
    /// What it lies in, and whether that is all there is of it: that stays, so that it is found where it is told to be.
    lies: Option<(Arc<Attempts>, bool)>,
    /// What it is, and where it lies; nothing where readers see all of it.
    text: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Unpublished {
    /// For what is called so.
    pub fn new(text: impl Fn() -> String + Send + Sync + 'static) -> Unpublished {
        Unpublished::lying(None, move || Some(text()))
    }

    fn lying(
        lies: Option<(Arc<Attempts>, bool)>,
        text: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Unpublished {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let (number, process) = (LAST.fetch_add(1, Ordering::Relaxed), std::process::id());
        let [over, failed] = [(); 2].map(|()| AtomicBool::new(false));
        let undone = Arc::new(Undone { number, process, over, failed, lies, text: Box::new(text) });
        lock(&LEFT).undone.insert(number, Arc::downgrade(&undone));
        Unpublished(undone)
    }

    /// It is published, or was given up: there is nothing to tell.
    pub fn end(&self) {
        if !self.0.over.swap(true, Ordering::Relaxed) {
            lock(&LEFT).undone.remove(&self.0.number);
        }
    }

    /// A call on it has failed: nobody but the program itself ends it.
    pub fn fail(&self) {
        self.0.failed.store(true, Ordering::Relaxed);
    }

    /// Whether a call on it has failed.
    pub fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Relaxed)
    }
}

impl Undone {
    /// Tells of it, where it was dropped, or at the end of the program.
    fn tell(&self, at_end: bool) {
        if !self.over.swap(true, Ordering::Relaxed) && self.process == std::process::id() {
            // What is all seen by now was not left undone.
            let Some(text) = (self.text)() else { return };
            if let Some((attempts, _)) = self.lies.as_ref().filter(|(_, all)| *all || at_end) {
                attempts.let_go();
            }
            tell(&text);
        }
    }
}

impl Drop for Undone {
    fn drop(&mut self) {
        if !*self.over.get_mut() {
            lock(&LEFT).undone.remove(&self.number);
            self.tell(false);
        }
    }
}

/// Tells of something that was left undone, once.
pub fn tell(text: &str) {
    let mut left = lock(&LEFT);
    left.untold = Some(std::process::id());
    if left.told.insert(text.to_string()) {
        stderr::left(text);
    }
}

/// Requests are made on this membership: what becomes of them is told at the end.
pub(crate) fn requests(membership: Arc<dyn Membership>) {
    let mut left = lock(&LEFT);
    left.requests.retain(|one| one.strong_count() > 0);
    left.requests.push(Arc::downgrade(&membership));
}

/// Ends what this program has left: waits for all requests, and gives those up that do not move for `patience`; tells what
/// failed and nobody waited for, and what was never closed. Says whether there was anything to tell since it was last called.
pub fn finalize(patience: Duration) -> bool {
    let with_requests = std::mem::take(&mut lock(&LEFT).requests);
    for (failures, given_up) in with_requests.iter().filter_map(Weak::upgrade).filter_map(|one| one.finish(patience)) {
        // Of hundreds that failed, the first ones say why.
        let (shown, more) = failures.split_at(failures.len().min(20));
        shown.iter().for_each(|error| tell(error));
        if !more.is_empty() {
            tell(&format!("{} more request(s) failed, and no rank waited for them", more.len()));
        }
        if given_up > 0 {
            tell(&format!("{given_up} request(s) were given up at the end of the program"));
        }
    }
    let undone: Vec<_> = lock(&LEFT).undone.values().filter_map(Weak::upgrade).collect();
    undone.iter().for_each(|one| one.tell(true));
    lock(&LEFT).untold.take() == Some(std::process::id())
}

/// That a new file is not published yet. `unseen` says whether something of it is not, and then whether readers see an earlier
/// state of it.
pub(crate) fn new_file(
    (attempts, directory): (&Arc<Attempts>, &Arc<dyn Names>),
    (name, hidden): (&str, &str),
    unseen: impl Fn() -> Option<bool> + Send + Sync + 'static,
) -> Unpublished {
    let (directory, name, hidden) = (directory.clone(), name.to_string(), hidden.to_string());
    Unpublished::lying(Some((attempts.clone(), true)), move || {
        let (path, visible) = (directory.full(&name), unseen()?);
        if visible {
            return Some(format!("'{path}' was never closed: what was written since it was last published is lost"));
        }
        let lies = directory.full(&hidden);
        Some(format!(
            "'{path}' was never closed, and is not published: what was written lies in '{lies}' until it is opened to write"
        ))
    })
}

/// That a step is not published yet: which, and where it lies.
pub(crate) fn step(
    attempts: Option<&Arc<Attempts>>,
    which: impl Fn() -> (String, String) + Send + Sync + 'static,
) -> Unpublished {
    Unpublished::lying(attempts.map(|attempts| (attempts.clone(), false)), move || {
        let (what, lies) = which();
        Some(format!("{what} was never closed, and is not published: what was written lies {lies}"))
    })
}
