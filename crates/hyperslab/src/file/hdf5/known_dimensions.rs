//! What is known of the dimensions of a netCDF-4 file that exists: by all ranks, and more of it by rank 0, which adds others.

use hyperslab_format::hdf5::FoundDimensions;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all ranks know of a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KnownDimension {
    pub(super) length: u64,
    pub(super) unlimited: bool,
}

/// Dimensions, by the path of the group that defines them (`/`, or with a `/` at both ends) and their name.
#[derive(Debug, Default)]
pub(super) struct SeenDimensions(HashMap<String, HashMap<String, KnownDimension>>);

impl SeenDimensions {
    /// The one of this name that a group has itself.
    pub(super) fn of_group(&self, group: &str, name: &str) -> Option<KnownDimension> {
        self.0.get(group)?.get(name).copied()
    }

    /// The one of this name that a group sees, and the group that has it: its own, or one of the groups above.
    pub(super) fn seen<'a>(&self, mut group: &'a str, name: &str) -> Option<(&'a str, KnownDimension)> {
        loop {
            if let Some(found) = self.of_group(group, name) {
                return Some((group, found));
            }
            let above = group.trim_end_matches('/');
            group = &above[..=above.rfind('/')?];
        }
    }

    /// Notes one, unless the group has another one of this name.
    pub(super) fn add(&mut self, group: String, name: String, one: KnownDimension) {
        self.0.entry(group).or_default().entry(name).or_insert(one);
    }
}

/// What rank 0 found of the dimensions of a file when it last changed it. A change takes it, and gives back what holds afterwards;
/// it is kept when that change has succeeded, and only then. Of a change that failed stays which lists of dimensions were to be
/// made longer before it.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptDimensions(Arc<Mutex<KeptStates>>);

#[derive(Debug, Default)]
struct KeptStates {
    /// What holds.
    now: Option<FoundDimensions>,
    /// What will hold, if the change succeeds that is under way.
    then: Option<FoundDimensions>,
    /// What held of lists before the last change that succeeded, which may yet be taken back.
    before: Option<FoundDimensions>,
}

impl KeptDimensions {
    fn states(&self) -> MutexGuard<'_, KeptStates> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a change that begins.
    pub(super) fn take(&self) -> Option<FoundDimensions> {
        let mut states = self.states();
        let taken = states.now.take();
        *states = KeptStates { now: taken.as_ref().map(FoundDimensions::unsaid), ..KeptStates::default() };
        taken
    }

    /// Whether lists of dimensions wait to be made longer.
    pub(super) fn is_unsaid(&self) -> bool {
        self.states().now.as_ref().is_some_and(FoundDimensions::is_unsaid)
    }

    /// What will hold after it.
    pub(super) fn put(&self, found: Option<FoundDimensions>) {
        self.states().then = found;
    }

    /// It has succeeded; whether what it gave is kept.
    pub(super) fn settle(&self, kept: bool) {
        let mut states = self.states();
        let (then, now) = (states.then.take(), states.now.take());
        *states = KeptStates { now: then.filter(|_| kept), then: None, before: now };
    }

    /// It was taken back.
    pub(super) fn take_back(&self) {
        let mut states = self.states();
        let held = states.before.take().or_else(|| states.now.take());
        *states = KeptStates { now: held.as_ref().map(FoundDimensions::unsaid), ..KeptStates::default() };
    }

    /// The same file is looked at again.
    pub(super) fn looked_again(&self) -> KeptDimensions {
        let now = self.states().now.as_ref().map(FoundDimensions::unsaid);
        KeptDimensions(Arc::new(Mutex::new(KeptStates { now, ..KeptStates::default() })))
    }
}
