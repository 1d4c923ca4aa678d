//! A bucket in the memory of this process.

use super::contract::{Bucket, ObjectHead, Page, Tags, When};
use super::policy::PAGE_MAX;
use super::trouble::{Befalls, BucketProgram, Death, Trouble, unanswered};
use crate::{Fault, Process};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// What absolute names of objects in memory begin with.
pub(super) const SCHEME: &str = "objects://";

/// Buckets of this process, by their names; none is kept alive. Ranks that are threads find the same ones, also those that
/// only serve and never opened one.
static BUCKETS: Mutex<Vec<Weak<BucketShared>>> = Mutex::new(Vec::new());
/// Buckets made so far: each has a name of its own.
static MADE: AtomicU64 = AtomicU64::new(0);

/// An object store in the memory of this process, seen by one program and from one root.
///
/// Clones are the same program. [`ObjectMemory::program`] gives the view of another one, to which other things befall. The
/// objects live until the last of them all is dropped.
#[derive(Clone)]
pub struct ObjectMemory {
    shared: Arc<BucketShared>,
    /// The number of the program.
    program: u64,
    /// What keys begin with, without a slash at the end; empty for the whole bucket.
    pub(super) root: String,
}

struct BucketShared {
    label: String,
    state: Mutex<BucketState>,
    /// Rung when a program is stopped or goes on.
    stopping: Condvar,
}

#[derive(Default)]
struct BucketState {
    objects: BTreeMap<String, StoredObject>,
    /// Versions and tokens given so far.
    given: u64,
    programs: Vec<BucketProgram>,
    late: Vec<BucketChange>,
}

struct StoredObject {
    version: String,
    content: Arc<[u8]>,
    tags: Tags,
}

/// A change that was asked for.
enum BucketChange {
    Put { key: String, content: Arc<[u8]>, tags: Tags, when: When },
    Delete { key: String, version: String },
}

impl BucketChange {
    fn shown(&self, label: &str) -> String {
        match self {
            BucketChange::Put { key, when: When::Absent, .. } => format!("put '{label}/{key}' if absent"),
            BucketChange::Put { key, .. } => format!("put '{label}/{key}' if unchanged"),
            BucketChange::Delete { key, .. } => format!("delete '{label}/{key}'"),
        }
    }
}

impl BucketState {
    fn next(&mut self) -> u64 {
        self.given += 1;
        self.given
    }

    /// Carries out a change; gives the version, if its condition holds.
    fn carry_out(&mut self, change: &BucketChange) -> Option<String> {
        match change {
            BucketChange::Put { key, content, tags, when } => {
                let holds = match (when, self.objects.get(key)) {
                    (When::Absent, found) => found.is_none(),
                    (When::Version(version), found) => found.is_some_and(|kept| kept.version == *version),
                };
                if !holds {
                    return None;
                }
                let version = format!("v{}", self.next());
                let kept = StoredObject { version: version.clone(), content: content.clone(), tags: tags.clone() };
                self.objects.insert(key.clone(), kept);
                Some(version)
            }
            BucketChange::Delete { key, version } => {
                let holds = self.objects.get(key).is_none_or(|kept| kept.version == *version);
                holds.then(|| {
                    self.objects.remove(key);
                    version.clone()
                })
            }
        }
    }
}

impl Default for ObjectMemory {
    fn default() -> ObjectMemory {
        ObjectMemory::new()
    }
}

impl ObjectMemory {
    /// An empty bucket, seen by its first program.
    pub fn new() -> ObjectMemory {
        let label = format!("{SCHEME}{}", MADE.fetch_add(1, Ordering::Relaxed) + 1);
        let state = BucketState { programs: vec![BucketProgram::default()], ..BucketState::default() };
        let shared = Arc::new(BucketShared { label, state: Mutex::new(state), stopping: Condvar::new() });
        let mut buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.retain(|known| known.strong_count() > 0);
        buckets.push(Arc::downgrade(&shared));
        ObjectMemory { shared, program: 0, root: String::new() }
    }

    /// The bucket of this process in which an absolute name lies, as the program of that name sees it, and the key there.
    pub(super) fn found(absolute: &str) -> Option<(ObjectMemory, &str)> {
        let buckets = BUCKETS.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.iter().filter_map(Weak::upgrade).find_map(|shared| {
            let rest = absolute.strip_prefix(&*shared.label)?;
            // Each program sees it under a name of its own.
            let (program, key) = rest.split_once('/').unwrap_or((rest, ""));
            let program = if program.is_empty() { 0 } else { program.strip_prefix('.')?.parse().ok()? };
            let known = (program as usize) < ObjectMemory::state_of(&shared).programs.len();
            known.then(|| (ObjectMemory { shared, program, root: String::new() }, key))
        })
    }

    /// The same bucket, from a root below this one.
    #[must_use]
    pub fn below(&self, name: &str) -> ObjectMemory {
        let name = name.trim_end_matches('/');
        let root = if self.root.is_empty() { name.to_string() } else { format!("{}/{name}", self.root) };
        ObjectMemory { root, ..self.clone() }
    }

    /// The same bucket and root, as another program sees it.
    #[must_use]
    pub fn program(&self) -> ObjectMemory {
        let mut state = self.state();
        state.programs.push(BucketProgram::default());
        ObjectMemory { program: state.programs.len() as u64 - 1, ..self.clone() }
    }

    /// Lets this program die, from its first change on that is asked for after so many.
    pub fn dies(&self, death: Death) {
        self.of_program(|program| {
            let after = program.changes + death.after;
            program.death = Some(Death { after, ..death });
        });
    }

    /// Stops this program when it asks for a change after so many, from now on: all its changes wait until it
    /// [goes on](ObjectMemory::go_on).
    pub fn stop(&self, after: u64) {
        self.of_program(|program| program.stops_at = Some(program.changes + after));
    }

    /// Waits until this program has been stopped, at most for `limit`; returns whether it was.
    pub fn wait_stopped(&self, limit: Duration) -> bool {
        let is_stopped = |state: &mut BucketState| !state.programs[self.program as usize].stopped;
        let waited = self.shared.stopping.wait_timeout_while(self.state(), limit, is_stopped);
        waited.is_ok_and(|(_, waited)| !waited.timed_out())
    }

    /// Lets this program go on.
    pub fn go_on(&self) {
        self.of_program(|program| program.stops_at = None);
        self.shared.stopping.notify_all();
    }

    /// What shall befall the change of this number, from now on and from 0.
    pub fn disturb(&self, number: u64, trouble: Trouble) {
        self.of_program(|program| {
            let number = program.changes + number;
            program.planned.insert(number, trouble);
        });
    }

    /// Lets so many of a thousand changes be lost or late, by chance.
    pub fn disturb_by_chance(&self, seed: u64, of_thousand: u32) {
        self.of_program(|program| program.chance = Some((fastrand::Rng::with_seed(seed), of_thousand)));
    }

    /// Carries out the changes that are late, of all programs; returns how many.
    pub fn deliver(&self) -> usize {
        let mut state = self.state();
        let late = std::mem::take(&mut state.late);
        for change in &late {
            state.carry_out(change);
        }
        late.len()
    }

    /// What this program asked to change so far, in words.
    pub fn changes(&self) -> Vec<String> {
        self.of_program(|program| program.log.clone())
    }

    /// Whether this program has died.
    pub fn is_dead(&self) -> bool {
        self.of_program(|program| program.dead)
    }

    /// Names below the root and lengths \[B\] of all objects, sorted.
    pub fn lengths(&self) -> Vec<(String, u64)> {
        let prefix = if self.root.is_empty() { String::new() } else { format!("{}/", self.root) };
        let state = self.state();
        let below = state.objects.iter().filter_map(|(key, kept)| Some((key.strip_prefix(&prefix)?, kept)));
        below.map(|(key, kept)| (key.to_string(), kept.content.len() as u64)).collect()
    }

    fn state_of(shared: &BucketShared) -> MutexGuard<'_, BucketState> {
        // What the lock guards is whole after every statement.
        shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, BucketState> {
        ObjectMemory::state_of(&self.shared)
    }

    fn of_program<T>(&self, run: impl FnOnce(&mut BucketProgram) -> T) -> T {
        run(&mut self.state().programs[self.program as usize])
    }

    fn change(&self, change: BucketChange) -> Result<Option<String>, Fault> {
        let what = change.shown(&self.shared.label);
        let mut state = self.until_it_goes_on();
        match state.programs[self.program as usize].next(what.clone()) {
            Befalls::Now(true) => Ok(state.carry_out(&change)),
            Befalls::Now(false) => {
                state.carry_out(&change);
                Err(unanswered(&what))
            }
            Befalls::Later => {
                state.late.push(change);
                Err(unanswered(&what))
            }
            Befalls::Never => Err(unanswered(&what)),
        }
    }

    /// The state, once this program is not stopped.
    fn until_it_goes_on(&self) -> MutexGuard<'_, BucketState> {
        let mut state = self.state();
        loop {
            let program = &mut state.programs[self.program as usize];
            program.stopped = program.stops_at.is_some_and(|number| number <= program.changes);
            if !program.stopped {
                return state;
            }
            self.shared.stopping.notify_all();
            state = self.shared.stopping.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nobody reads who is dead.
    fn reading(&self, what: &str, key: &str) -> Result<MutexGuard<'_, BucketState>, Fault> {
        let state = self.state();
        match state.programs[self.program as usize].dead {
            true => Err(unanswered(&format!("{what} '{}/{key}'", self.shared.label))),
            false => Ok(state),
        }
    }
}

impl Bucket for ObjectMemory {
    fn label(&self) -> String {
        match self.program {
            0 => self.shared.label.clone(),
            number => format!("{}.{number}", self.shared.label),
        }
    }

    fn put(&self, key: &str, content: &[u8], tags: &Tags, when: &When) -> Result<Option<String>, Fault> {
        self.change(BucketChange::Put {
            key: key.into(),
            content: content.into(),
            tags: tags.clone(),
            when: when.clone(),
        })
    }

    fn get(&self, key: &str, within: Option<(u64, u64)>) -> Result<Option<(ObjectHead, Vec<u8>)>, Fault> {
        let kept = self.reading("get", key)?.objects.get(key).map(|kept| (head_of(kept), kept.content.clone()));
        Ok(kept.map(|(head, content)| {
            let (first, bytes) = within.unwrap_or((0, head.bytes));
            let end = first.saturating_add(bytes).min(head.bytes);
            let part = content[first.min(end) as usize..end as usize].to_vec();
            (head, part)
        }))
    }

    fn head(&self, key: &str) -> Result<Option<ObjectHead>, Fault> {
        Ok(self.reading("head", key)?.objects.get(key).map(head_of))
    }

    fn list(&self, prefix: &str, after: Option<&str>, delimited: bool) -> Result<Page, Fault> {
        let state = self.reading("list", prefix)?;
        let mut page = Page::default();
        for key in state.objects.range(prefix.to_string()..).map(|(key, _)| key) {
            let Some(rest) = key.strip_prefix(prefix) else { break };
            let beginning = rest.find('/').filter(|_| delimited).map(|end| &key[..prefix.len() + end + 1]);
            let one = beginning.unwrap_or(key);
            let is_past =
                after.is_some_and(|after| one <= after) || page.beginnings.last().is_some_and(|last| last == one);
            if is_past {
                continue;
            }
            if page.keys.len() + page.beginnings.len() == PAGE_MAX {
                page.next = page.keys.last().max(page.beginnings.last()).cloned();
                break;
            }
            if beginning.is_some() { &mut page.beginnings } else { &mut page.keys }.push(one.into());
        }
        Ok(page)
    }

    fn delete(&self, key: &str, version: &str) -> Result<bool, Fault> {
        self.change(BucketChange::Delete { key: key.into(), version: version.into() }).map(|done| done.is_some())
    }

    /// The bucket is in one process, in which a count is enough.
    fn token(&self) -> String {
        format!("{:032x}", self.state().next())
    }

    fn process(&self) -> Process {
        let boot = self.shared.label.clone();
        Process { pid: std::process::id(), started: self.program, boot, ..Process::default() }
    }

    fn lives(&self, process: &Process) -> Option<bool> {
        let here = self.process();
        if (process.pid, &process.boot) != (here.pid, &here.boot) {
            return None;
        }
        let state = self.state();
        let program = state.programs.get(process.started as usize)?;
        match program.dead {
            true => program.death.is_none_or(|death| death.known).then_some(false),
            // Of one that dies on another host nobody here knows whether it lives.
            false => program.death.is_none_or(|death| death.known).then_some(true),
        }
    }

    fn is_at_hand(&self) -> bool {
        true
    }
}

fn head_of(kept: &StoredObject) -> ObjectHead {
    ObjectHead { version: kept.version.clone(), bytes: kept.content.len() as u64, tags: kept.tags.clone() }
}

impl fmt::Display for ObjectMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.label();
        if self.root.is_empty() { f.write_str(&label) } else { write!(f, "{label}/{}", self.root) }
    }
}

impl fmt::Debug for ObjectMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectMemory({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PutOutcome;

    #[test]
    fn it_keeps_the_contract_of_buckets() {
        let memory = ObjectMemory::new();
        crate::conformance::buckets::bucket(&memory, &memory.program());
        assert_eq!(memory.lengths(), []);
    }

    #[test]
    fn it_keeps_the_contract_under_trouble() {
        for seed in 0..20 {
            let (one, other) = (ObjectMemory::new(), ObjectMemory::new());
            one.disturb_by_chance(seed, 300);
            let bucket: &dyn Bucket = &one;
            let tags = Tags::new();
            for number in 0..50 {
                let key = format!("k{}", number % 7);
                let content = [number as u8; 5];
                if bucket.place_last(&key, &content, &tags).is_ok() {
                    (&other as &dyn Bucket).place_last(&key, &content, &tags).unwrap();
                    // What was late comes after what is newer, and changes nothing.
                    one.deliver();
                    assert_eq!(one.get(&key, None).unwrap().unwrap().1, content, "seed {seed}, {number}");
                }
            }
        }
    }

    #[test]
    fn a_lost_reply_is_found_and_a_late_put_changes_nothing() {
        let memory = ObjectMemory::new();
        let bucket: &dyn Bucket = &memory;
        let tags = Tags::from([("a".to_string(), "b".to_string())]);
        memory.disturb(0, Trouble::Lost);
        assert!(matches!(bucket.place("x", b"1", &tags, &When::Absent), Ok(PutOutcome::Ours(_))));
        assert_eq!(memory.changes().len(), 2, "it asked again");
        memory.disturb(0, Trouble::Late);
        assert!(matches!(bucket.place("y", b"2", &tags, &When::Absent), Ok(PutOutcome::Ours(_))));
        bucket.place_last("y", b"3", &tags).unwrap();
        assert_eq!(memory.deliver(), 1);
        let (head, content) = memory.get("y", None).unwrap().unwrap();
        assert_eq!((content, head.tags.get("a").map(String::as_str)), (b"3".to_vec(), Some("b")));
        let other = memory.program();
        other.dies(Death { after: 1, late: true, known: true });
        let dying: &dyn Bucket = &other;
        dying.place_last("z", b"1", &tags).unwrap();
        dying.place_last("z", b"2", &tags).unwrap_err();
        assert_eq!((memory.lives(&other.process()), memory.lives(&memory.process())), (Some(false), Some(true)));
        assert_eq!(memory.get("z", None).unwrap().unwrap().1, b"1");
        memory.deliver();
        assert_eq!(memory.get("z", None).unwrap().unwrap().1, b"2", "the put in which it died was under way");
    }

    #[test]
    fn a_late_delete_takes_nothing_that_came_after_it() {
        let memory = ObjectMemory::new();
        let bucket: &dyn Bucket = &memory;
        bucket.place_last("x", b"1", &Tags::new()).unwrap();
        memory.disturb(0, Trouble::Late);
        bucket.remove("x").unwrap();
        assert_eq!(memory.head("x").unwrap(), None, "it asked again");
        bucket.place_last("x", b"1", &Tags::new()).unwrap();
        assert_eq!(memory.deliver(), 1);
        assert_eq!(memory.get("x", None).unwrap().unwrap().1, b"1");
    }
}
