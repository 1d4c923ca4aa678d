//! Names in virtual time: what is done to them is done at once, to a tree in memory, and noted; the machine charges for what
//! was noted before whoever asked for it hears that it is done.

use crate::faults::{Harm, Seam, Upcoming};
use hyperslab_world::{Change, Claim, Fault, FaultKind, Hold, Lock, Locked, Locks, MemoryTree, Names, Process, Then};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was done to a name, as far as it costs time or changes where bytes lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    /// Something was opened, made or renamed, which changes a directory or looks it up.
    Open,
    /// Something was closed.
    Close,
    /// Something was asked about.
    Query,
    /// So many bytes from the beginning of a small file on were read or written \[B\].
    Bytes(String, u64, bool),
    /// What this rank wrote was made durable.
    Sync,
    /// Something got another name.
    Renamed(String, String),
    /// Something went, with all below.
    Removed(String),
}

/// What all ranks of a machine see.
struct AllNames {
    tree: MemoryTree,
    state: Mutex<LongFiles>,
}

struct LongFiles {
    random: fastrand::Rng,
    /// Lengths of files of which the tree has only the beginning \[B\].
    long: BTreeMap<String, u64>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the lock guards is whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The names of an imagined machine, before anybody looks at them from a rank.
#[derive(Clone)]
pub(crate) struct Directories(Arc<AllNames>);

impl Directories {
    pub(crate) fn new(tree: MemoryTree, seed: u64) -> Directories {
        let random = fastrand::Rng::with_seed(seed ^ 0x004E_A3E5);
        Directories(Arc::new(AllNames { tree, state: Mutex::new(LongFiles { random, long: BTreeMap::new() }) }))
    }

    /// As a rank sees them.
    pub(crate) fn on(&self, rank: u32, watched: Upcoming) -> SimNames {
        let watched = Arc::new(Mutex::new(Endangered { watched, ..Endangered::default() }));
        SimNames {
            shared: self.0.clone(),
            rank,
            root: String::new(),
            deeds: Arc::default(),
            held: Arc::default(),
            watched,
        }
    }

    /// The name that an object has in the tree for bytes.
    pub(crate) fn in_tree(&self, name: &str) -> String {
        let name = name.trim_start_matches('/');
        if name.is_empty() { self.0.tree.full("") } else { self.0.tree.full(name) }
    }
}

/// Names as one rank of an imagined machine sees them. Absolute names begin with `/`.
#[derive(Clone)]
pub struct SimNames {
    shared: Arc<AllNames>,
    rank: u32,
    /// The root, without the `/` that it begins with.
    root: String,
    deeds: Arc<Mutex<Vec<Deed>>>,
    held: Arc<Mutex<Vec<Hold>>>,
    watched: Arc<Mutex<Endangered>>,
}

/// What is to go wrong with a rank's changes of names, and what has since somebody asked.
#[derive(Default)]
struct Endangered {
    watched: Upcoming,
    harm: Option<Harm>,
    /// Whether the rank has died: it changes nothing more.
    dead: bool,
}

impl SimNames {
    /// Keeps something open that the program of this rank has opened.
    pub fn keep(&self, held: Hold) {
        locked(&self.held).push(held);
    }

    /// What the program of this rank has opened last and keeps open.
    pub fn let_go(&self) -> Option<Hold> {
        locked(&self.held).pop()
    }

    /// What was done since this was asked last.
    pub(crate) fn take_deeds(&self) -> (Vec<Deed>, Option<Harm>) {
        let harm = locked(&self.watched).harm.take();
        (std::mem::take(&mut locked(&self.deeds)), harm)
    }

    /// The rank has died: it changes nothing more.
    pub(crate) fn die(&self) {
        locked(&self.watched).dead = true;
    }

    /// Before a change: whether it can be made.
    fn change(&self) -> Result<(), Fault> {
        let mut watched = locked(&self.watched);
        let error = || Err(Fault::new(FaultKind::Storage, "an imagined error of the file system"));
        if watched.dead {
            return error();
        }
        let Some(mishap) = watched.watched.next(Seam::Names) else { return Ok(()) };
        watched.harm = Some(mishap.harm);
        watched.dead = mishap.harm == Harm::Dies;
        if matches!(mishap.harm, Harm::Fails | Harm::Dies) { error() } else { Ok(()) }
    }

    fn note(&self, deed: Deed) {
        locked(&self.deeds).push(deed);
    }

    /// The tree, seen from the root.
    fn tree(&self) -> MemoryTree {
        if self.root.is_empty() { self.shared.tree.clone() } else { self.shared.tree.below(&self.root) }
    }

    /// Name in the tree.
    fn inner(&self, name: &str) -> String {
        let name = name.trim_end_matches('/');
        match (self.root.is_empty(), name.is_empty()) {
            (true, _) => name.to_string(),
            (_, true) => self.root.clone(),
            _ => format!("{}/{name}", self.root),
        }
    }

    fn long(&self) -> MutexGuard<'_, LongFiles> {
        locked(&self.shared.state)
    }

    /// What lies below gets other names.
    fn moved(&self, from: &str, to: &str) {
        let (from, to) = (self.inner(from), self.inner(to));
        let mut state = self.long();
        state.long.retain(|name, _| !is_below(name, &to));
        let all = std::mem::take(&mut state.long).into_iter();
        state.long = all
            .map(|(name, bytes)| match is_below(&name, &from) {
                true => (format!("{to}{}", &name[from.len()..]), bytes),
                false => (name, bytes),
            })
            .collect();
        drop(state);
        self.note(Deed::Open);
        self.note(Deed::Renamed(format!("/{from}"), format!("/{to}")));
    }

    fn gone(&self, name: &str) {
        let inner = self.inner(name);
        self.long().long.retain(|name, _| !is_below(name, &inner));
        self.note(Deed::Removed(format!("/{inner}")));
    }

    fn wrote(&self, name: &str, bytes: usize, sync: bool) {
        self.long().long.remove(&self.inner(name));
        self.note(Deed::Open);
        if bytes > 0 {
            self.note(Deed::Bytes(self.full(name), bytes as u64, true));
        }
        if sync {
            self.note(Deed::Sync);
        }
        self.note(Deed::Close);
    }
}

/// Whether a name is this one, or that of something in this directory.
pub(crate) fn is_below(name: &str, above: &str) -> bool {
    name.strip_prefix(above).is_some_and(|rest| rest.is_empty() || above.is_empty() || rest.starts_with('/'))
}

/// A lock on a small file, whose note is changed at a price.
struct SimLock {
    names: SimNames,
    name: String,
    inner: Box<dyn Lock>,
}

impl Lock for SimLock {
    fn add(&self, note: &[u8]) -> Result<(), Fault> {
        self.names.note(Deed::Bytes(self.names.full(&self.name), note.len() as u64, true));
        self.inner.add(note)
    }

    fn cut(&self, bytes: u64) -> Result<(), Fault> {
        self.names.note(Deed::Query);
        self.inner.cut(bytes)
    }

    fn has_its_name(&self) -> Result<bool, Fault> {
        self.names.note(Deed::Query);
        self.inner.has_its_name()
    }

    fn keeps_others_out(&self) -> bool {
        self.inner.keeps_others_out()
    }

    fn rest(&self, note: &[u8]) -> bool {
        self.names.note(Deed::Bytes(self.names.full(&self.name), note.len() as u64, true));
        self.inner.rest(note)
    }

    fn resume(&self, rested: &[u8], note: &[u8]) -> Result<bool, Fault> {
        self.names.note(Deed::Bytes(self.names.full(&self.name), note.len() as u64, true));
        self.inner.resume(rested, note)
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.names.note(Deed::Close);
    }
}

/// Something that is held open.
struct KeptOpen(Arc<Mutex<Vec<Deed>>>);

impl Drop for KeptOpen {
    fn drop(&mut self) {
        locked(&self.0).push(Deed::Close);
    }
}

impl SimNames {
    fn overwritten(&self, name: &str, at: u64, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        self.change()?;
        let long = self.long().long.get(&self.inner(name)).copied();
        let needed = at + bytes.len() as u64;
        if self.tree().length(name).unwrap_or(0) < needed && long.is_some_and(|long| needed <= long) {
            // Of a long file the tree has only as much as it needed so far.
            self.tree().resize(name, needed)?;
        }
        self.tree().overwrite_part(name, at, bytes)?;
        self.wrote(name, bytes.len(), sync);
        if let Some(long) = long {
            self.long().long.insert(self.inner(name), long);
        }
        Ok(())
    }
}

impl Names for SimNames {
    fn full(&self, name: &str) -> String {
        format!("/{}", self.inner(name))
    }

    fn resolve(&self) -> Result<String, Fault> {
        self.tree().resolve().map(|_| self.full(""))
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        Arc::new(SimNames { root: root.trim_matches('/').to_string(), ..self.clone() })
    }

    fn above(&self) -> Option<(String, String)> {
        let (above, name) = self.root.rsplit_once('/').unwrap_or(("", &self.root));
        (!self.root.is_empty()).then(|| (format!("/{above}"), name.to_string()))
    }

    fn process(&self) -> Process {
        Process { host: "imagined".into(), pid: 1 + self.rank, ..Process::default() }
    }

    fn token(&self) -> String {
        let mut state = self.long();
        format!("{:016x}{:016x}", state.random.u64(..), state.random.u64(..))
    }

    fn exists(&self, name: &str) -> bool {
        self.note(Deed::Query);
        self.tree().exists(name)
    }

    fn length(&self, name: &str) -> Option<u64> {
        self.note(Deed::Query);
        let long = self.long().long.get(&self.inner(name)).copied();
        long.or_else(|| self.tree().length(name))
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        self.note(Deed::Query);
        self.tree().list(name)
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let mut found = self.tree().read_prefix(name, bytes_max)?;
        let long = self.long().long.get(&self.inner(name)).copied();
        if let (Some(bytes), Some(long)) = (&mut found, long) {
            // The rest is zero, as far as anybody knows.
            bytes.resize(bytes.len().max(long.min(bytes_max) as usize), 0);
        }
        match &found {
            None => self.note(Deed::Query),
            Some(bytes) => {
                self.note(Deed::Open);
                self.note(Deed::Bytes(self.full(name), bytes.len() as u64, false));
                self.note(Deed::Close);
            }
        }
        Ok(found)
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        self.change()?;
        self.note(Deed::Open);
        self.tree().make(name)
    }

    fn make_durable(&self, name: &str) -> Result<(), Fault> {
        self.make(name)?;
        self.note(Deed::Sync);
        Ok(())
    }

    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        self.change()?;
        self.note(Deed::Open);
        self.tree().make_new(name)
    }

    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        self.change()?;
        self.tree().write(name, bytes, sync)?;
        self.wrote(name, bytes.len(), sync);
        // It took the place of an older one by a rename.
        self.note(Deed::Open);
        Ok(())
    }

    fn claim(&self, name: &str, note: &[u8], sync: bool) -> Result<Claim, Fault> {
        self.change()?;
        self.note(Deed::Open);
        let lock = |inner| Box::new(SimLock { names: self.clone(), name: name.to_string(), inner });
        Ok(match self.tree().claim(name, note, sync)? {
            Claim::New(inner) => {
                self.note(Deed::Bytes(self.full(name), note.len() as u64, true));
                if sync {
                    self.note(Deed::Sync);
                }
                Claim::New(lock(inner))
            }
            Claim::Left(inner, left) => Claim::Left(lock(inner), left),
            Claim::Busy(left) => Claim::Busy(left),
        })
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.change()?;
        self.tree().append(name, bytes)?;
        self.wrote(name, bytes.len(), false);
        Ok(())
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        self.change()?;
        let mut bytes = 0;
        let mut counted = |before: Vec<u8>| {
            let after = change(before);
            bytes = after.len();
            after
        };
        self.tree().edit(name, &mut counted, then)?;
        self.wrote(name, bytes, false);
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        self.note(Deed::Open);
        Ok(match self.tree().lock(name)? {
            Locked::Ours(inner) => {
                Locked::Ours(Box::new(SimLock { names: self.clone(), name: name.to_string(), inner }))
            }
            other => other,
        })
    }

    fn is_at_hand(&self) -> bool {
        false
    }

    fn locks(&self, name: &str) -> Locks {
        self.tree().locks(name)
    }

    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        self.note(Deed::Open);
        let Hold { identity, .. } = self.tree().hold(name)?;
        Ok(Hold { identity, keep: Box::new(KeptOpen(self.deeds.clone())) })
    }

    fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        self.note(Deed::Query);
        self.tree().identity(name)
    }

    fn is_link(&self, _name: &str) -> bool {
        self.note(Deed::Query);
        false
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        self.change()?;
        self.tree().create(name, prefix, prefix.len() as u64)?;
        self.wrote(name, prefix.len(), false);
        if bytes > prefix.len() as u64 {
            self.long().long.insert(self.inner(name), bytes);
        }
        Ok(())
    }

    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.overwritten(name, at, bytes, false)
    }

    fn overwrite(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        self.overwritten(name, 0, bytes, sync)
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        self.change()?;
        self.note(Deed::Query);
        let kept = self.tree().length(name).unwrap_or(0);
        self.tree().resize(name, kept.min(bytes))?;
        let mut state = self.long();
        match bytes > kept {
            true => state.long.insert(self.inner(name), bytes),
            false => state.long.remove(&self.inner(name)),
        };
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.change()?;
        self.tree().rename(from, to)?;
        self.moved(from, to);
        Ok(())
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.change()?;
        let done = self.tree().rename_new(from, to)?;
        if done {
            self.moved(from, to);
        }
        Ok(done)
    }

    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault> {
        self.change()?;
        let between = format!("{a}.exchanged");
        self.tree().exchange(a, b)?;
        // One change, by which each has the other's bytes.
        let before = locked(&self.deeds).len();
        self.moved(a, &between);
        self.moved(b, a);
        self.moved(&between, b);
        let mut deeds = locked(&self.deeds);
        let mut number = 0;
        deeds.retain(|deed| {
            number += 1;
            number <= before + 1 || *deed != Deed::Open
        });
        Ok(true)
    }

    fn can_rename(&self, from: &str, to: &str) -> bool {
        self.note(Deed::Query);
        self.tree().can_rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.change()?;
        self.tree().remove(name)?;
        self.gone(name);
        Ok(())
    }

    fn discard(&self, name: &str) {
        if self.change().is_err() {
            return;
        }
        self.tree().discard(name);
        self.gone(name);
    }

    fn remove_empty(&self, name: &str) {
        if self.change().is_err() {
            return;
        }
        self.note(Deed::Query);
        self.tree().remove_empty(name);
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        self.change()?;
        self.note(Deed::Sync);
        self.tree().sync_files(names)
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        self.change()?;
        self.note(Deed::Sync);
        self.tree().sync(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_virtual_time_keep_the_contract() {
        let all = Directories::new(MemoryTree::new(), 7);
        hyperslab_world::conformance::names(&all.on(0, Upcoming::default()));
        all.on(0, Upcoming::default()).make("a/b").unwrap();
        hyperslab_world::conformance::names(&*all.on(0, Upcoming::default()).at("/a/b"));
        assert_eq!(
            all.on(0, Upcoming::default()).list("").unwrap(),
            ["a"],
            "nothing is left, and nothing went elsewhere"
        );
    }

    #[test]
    fn what_is_done_is_noted_for_the_rank_that_did_it() {
        let all = Directories::new(MemoryTree::new(), 7);
        let (one, other) = (all.on(0, Upcoming::default()), all.on(1, Upcoming::default()));
        one.create("file", b"head", 1 << 50).unwrap();
        assert_eq!(other.length("file"), Some(1 << 50), "no memory is needed for it");
        one.rename("file", "done").unwrap();
        assert_eq!((other.length("file"), other.length("done")), (None, Some(1 << 50)));
        let written = Deed::Bytes("/file".into(), 4, true);
        let renamed = Deed::Renamed("/file".into(), "/done".into());
        assert_eq!(one.take_deeds().0, [Deed::Open, written, Deed::Close, Deed::Open, renamed]);
        assert_eq!(other.take_deeds().0, vec![Deed::Query; 3]);
    }

    #[test]
    fn one_seed_gives_the_same_tokens() {
        let token = |seed| Directories::new(MemoryTree::new(), seed).on(0, Upcoming::default()).token();
        assert_eq!((token(3).len(), token(3)), (32, token(3)));
        assert_ne!(token(3), token(4));
    }
}
