//! Directories and files in memory, shared by all ranks of a process.
//!
//! The lock of the tree is held while names are looked up or changed, that of a file (shared) while bytes move, so that
//! ranks copy at the same time, also into one file.

mod lock;
mod nodes;
mod store;
mod witness;

pub use store::TreeStore;
pub use witness::{TreeDeed, Witness};

use crate::{Change, Claim, Fault, FaultKind, Hold, Locked, Locks, Names, Process, Then};
use hyperslab_pack::Memory;
use lock::{Locking, TreeLock};
use nodes::{Node, Numbers, TreeFile, Why, allocate, place};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

/// What absolute names in memory begin with. No name in a file system does, nor a relative name, since none has an
/// empty part.
const SCHEME: &str = "memory://";

/// Trees made by this process so far: each has a name of its own.
static TREES: AtomicU64 = AtomicU64::new(0);

/// A tree of directories and files in memory, seen from one root.
///
/// Clones are the same tree, which lives until the last of them is dropped. Its own root always exists.
#[derive(Clone)]
pub struct MemoryTree {
    tree: Arc<Tree>,
    /// Name of the root in the tree; empty for the tree's own.
    root: String,
    /// Who hears of what is asked of it through this view.
    witness: Option<Arc<dyn Witness>>,
    /// A directory of the tree, by its name and its number: changes below the name are made in it, whatever its name is by
    /// then.
    pin: Option<Arc<(String, u64)>>,
}

struct Tree {
    /// Absolute name of the tree's own root: the scheme and a number.
    label: String,
    numbers: Numbers,
    top: Mutex<Node>,
    /// Numbers of files that somebody has locked.
    locked: Mutex<BTreeSet<u64>>,
    /// Owned while a file is edited that several owners share.
    edits: Mutex<()>,
}

/// A tree that is not kept alive.
struct WeakTree {
    label: String,
    tree: Weak<Tree>,
    witness: Option<Arc<dyn Witness>>,
}

impl Locking for MemoryTree {
    fn locked(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.tree.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, verb: &'static str, name: &str, changes: bool) -> Result<(), Fault> {
        let deed = TreeDeed { verb, name, changes, waits: false };
        self.witness.as_ref().map_or(Ok(()), |witness| witness.before(deed))
    }

    fn number(&self, inner: &str) -> Option<u64> {
        self.top().find(inner).map(Node::number)
    }

    fn changed(
        &self,
        file: &TreeFile,
        (verb, inner): (&'static str, &str),
        done: Result<(), Why>,
    ) -> Result<(), Fault> {
        file.touch(&self.tree.numbers);
        done.map_err(|why| why.fault(verb, &self.absolute(inner)))
    }
}

impl Default for MemoryTree {
    fn default() -> MemoryTree {
        MemoryTree::new()
    }
}

impl MemoryTree {
    /// An empty tree.
    pub fn new() -> MemoryTree {
        let label = format!("{SCHEME}{}", TREES.fetch_add(1, Ordering::Relaxed) + 1);
        let numbers = Numbers::default();
        let top = Mutex::new(Node::directory(&numbers));
        let (locked, edits) = (Mutex::default(), Mutex::default());
        let tree = Arc::new(Tree { label, numbers, top, locked, edits });
        MemoryTree { tree, root: String::new(), witness: None, pin: None }
    }

    /// The same tree, seen from the same root, where this one hears of all that is asked of it.
    #[must_use]
    pub fn watched(&self, witness: Arc<dyn Witness>) -> MemoryTree {
        MemoryTree { witness: Some(witness), ..self.clone() }
    }

    /// The same tree, seen from a root below this one, which need not exist.
    #[must_use]
    pub fn below(&self, name: &str) -> MemoryTree {
        let name = name.trim_end_matches('/');
        let root = if self.root.is_empty() { name.to_string() } else { format!("{}/{name}", self.root) };
        MemoryTree { root, ..self.clone() }
    }

    /// Names and contents of all files below the root, sorted by name.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        if let Some(node) = self.top().find(&self.root) {
            node.files("", &mut found);
        }
        found.into_iter().map(|(name, file)| (name, file.read(0, u64::MAX))).collect()
    }

    /// Names and lengths \[B\] of all files below the root, sorted by name.
    pub fn lengths(&self) -> Vec<(String, u64)> {
        let mut found = Vec::new();
        if let Some(node) = self.top().find(&self.root) {
            node.files("", &mut found);
        }
        found.into_iter().map(|(name, file)| (name, file.length())).collect()
    }

    fn top(&self) -> MutexGuard<'_, Node> {
        // What the lock guards is whole after every statement.
        self.tree.top.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn weak(&self) -> WeakTree {
        let witness = self.witness.clone();
        WeakTree { label: self.tree.label.clone(), tree: Arc::downgrade(&self.tree), witness }
    }

    /// Owns what only one owner at a time edits.
    fn alone(&self, inner: &str) -> Result<MutexGuard<'_, ()>, Fault> {
        let Some(witness) = &self.witness else {
            return Ok(self.tree.edits.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let mut deed = TreeDeed { verb: "editing", name: inner, changes: true, waits: false };
        loop {
            witness.before(deed)?;
            match self.tree.edits.try_lock() {
                Ok(alone) => return Ok(alone),
                Err(TryLockError::Poisoned(alone)) => return Ok(alone.into_inner()),
                Err(TryLockError::WouldBlock) => deed.waits = true,
            }
        }
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

    fn absolute(&self, inner: &str) -> String {
        if inner.is_empty() { self.tree.label.clone() } else { format!("{}/{inner}", self.tree.label) }
    }

    /// Changes the tree at the name in it; what cannot be done is told with the verb.
    fn doing<T>(
        &self,
        verb: &'static str,
        name: &str,
        run: impl FnOnce(&mut Node, &str, &Numbers) -> Result<T, Why>,
    ) -> Result<T, Fault> {
        let inner = self.inner(name);
        self.told(verb, &inner, true)?;
        let mut top = self.top();
        let place = self.pinned_name(&top, &inner);
        let done = place.and_then(|place| run(&mut top, &place, &self.tree.numbers));
        done.map_err(|why| why.fault(verb, &self.absolute(&inner)))
    }

    /// The name that something in the tree has now that was below the pinned directory when it had its own.
    fn pinned_name<'a>(&self, top: &Node, inner: &'a str) -> Result<Cow<'a, str>, Why> {
        let Some((above, number)) = self.pin.as_deref() else { return Ok(inner.into()) };
        let Some(below) = inner.strip_prefix(&**above).filter(|below| below.starts_with('/')) else {
            return Ok(inner.into());
        };
        if top.find(above).is_some_and(|node| node.number() == *number) {
            return Ok(inner.into());
        }
        let now = top.name_of(*number).ok_or(Why::NotFound)?;
        Ok(format!("{now}{below}").into())
    }

    /// Looks at what has the name, if the witness lets.
    fn looking<T>(&self, name: &str, look: impl FnOnce(Option<&Node>) -> T) -> T {
        let inner = self.inner(name);
        let told = self.told("looking at", &inner, false);
        look(self.top().find(&inner).filter(|_| told.is_ok()))
    }

    /// Changes the file with this name.
    fn changing(
        &self,
        verb: &'static str,
        name: &str,
        change: impl FnOnce(&TreeFile) -> Result<(), Why>,
    ) -> Result<(), Fault> {
        let file = self.doing(verb, name, |top, inner, _| found_file(top, inner))?;
        change(&file).map_err(|why| why.fault(verb, &self.full(name)))?;
        file.touch(&self.tree.numbers);
        Ok(())
    }

    /// The tree itself, seen by the same witness.
    fn whole(&self) -> MemoryTree {
        MemoryTree { root: String::new(), ..self.clone() }
    }
}

/// The file of this name.
fn found_file(top: &Node, inner: &str) -> Result<Arc<TreeFile>, Why> {
    match top.find(inner) {
        Some(Node::File(file)) => Ok(file.clone()),
        Some(Node::Directory(_)) => Err(Why::IsDirectory),
        None => Err(Why::NotFound),
    }
}

/// Name in a tree of an absolute name, if it is in the tree of this label.
fn inner_of<'a>(label: &str, absolute: &'a str) -> Option<&'a str> {
    let rest = absolute.strip_prefix(label)?;
    if rest.is_empty() { Some(rest) } else { Some(rest.strip_prefix('/')?.trim_end_matches('/')) }
}

impl Names for MemoryTree {
    fn full(&self, name: &str) -> String {
        self.absolute(&self.inner(name))
    }

    fn resolve(&self) -> Result<String, Fault> {
        let root = &self.root;
        if !root.is_empty() && root.split('/').any(|part| matches!(part, "" | "." | "..")) {
            let text = format!("'{root}' cannot be a name in memory: it has an empty part, or '.' or '..'");
            return Err(Fault::new(FaultKind::Invalid, text).hint("give a relative name, like 'runs/a.zarr'"));
        }
        Ok(self.absolute(root))
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        let root = inner_of(&self.tree.label, root).unwrap_or(root).to_string();
        Arc::new(MemoryTree { root, pin: None, ..self.clone() })
    }

    /// All who have a tree could change all of it; a witness may say otherwise.
    fn check_believed(&self, name: &str) -> Result<(), Fault> {
        self.told("believing", &self.inner(name), false)
    }

    fn process(&self) -> Process {
        // A tree belongs to the processes that have it in their memory: this one, and what it forked.
        // Whoever has a witness counts as a program of its own.
        let witness = self.witness.as_ref().map_or(0, |witness| Arc::as_ptr(witness).cast::<()>() as u64);
        Process { pid: std::process::id(), started: witness, ..Process::default() }
    }

    fn above(&self) -> Option<(String, String)> {
        if self.root.is_empty() {
            return None;
        }
        let (above, name) = self.root.rsplit_once('/').unwrap_or(("", &self.root));
        Some((self.absolute(above), name.to_string()))
    }

    /// The tree is in one process, in which a count is enough.
    fn token(&self) -> String {
        static GIVEN: AtomicU64 = AtomicU64::new(1);
        format!("{:032x}", GIVEN.fetch_add(1, Ordering::Relaxed))
    }

    fn exists(&self, name: &str) -> bool {
        self.looking(name, |node| node.is_some())
    }

    fn length(&self, name: &str) -> Option<u64> {
        self.looking(name, |node| match node {
            Some(Node::File(file)) => Some(file.length()),
            _ => None,
        })
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        self.looking(name, |node| match node {
            Some(Node::Directory(directory)) => Ok(directory.nodes.keys().cloned().collect()),
            _ => Ok(Vec::new()),
        })
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.read_part(name, 0, bytes_max)
    }

    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let inner = self.inner(name);
        self.told("reading", &inner, false)?;
        let file = match found_file(&self.top(), &inner) {
            Err(Why::NotFound) => return Ok(None),
            found => found.map_err(|why| why.fault("reading", &self.absolute(&inner)))?,
        };
        Ok(Some(file.read(at, bytes_max)))
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        self.doing("making directory", name, Node::make)
    }

    fn make_durable(&self, name: &str) -> Result<(), Fault> {
        self.make(name)
    }

    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        self.doing("making directory", name, |top, inner, numbers| {
            if top.find(inner).is_some() {
                return Ok(false);
            }
            top.parent(inner)?;
            top.make(inner, numbers).map(|()| true)
        })
    }

    fn claim(&self, name: &str, note: &[u8], _sync: bool) -> Result<Claim, Fault> {
        let (file, is_new) = self.doing("claiming", name, |top, inner, numbers| match found_file(top, inner) {
            Err(Why::NotFound) => {
                let file = TreeFile::new(Memory::from_vec(note.to_vec()), numbers);
                // Nobody else sees it before it is locked.
                self.locked().insert(file.number);
                place(top, inner, file.clone(), numbers).map(|()| (file, true))
            }
            found => found.map(|file| (file, false)),
        })?;
        if !is_new && !self.locked().insert(file.number) {
            return Ok(Claim::Busy(file.read(0, u64::MAX)));
        }
        let left = file.read(0, u64::MAX);
        let lock = TreeLock::held(self.whole(), self.inner(name), file);
        Ok(if is_new { Claim::New(lock) } else { Claim::Left(lock, left) })
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let file = self.doing("adding to", name, |top, inner, numbers| match found_file(top, inner) {
            Err(Why::NotFound) => {
                let file = TreeFile::new(Memory::from_vec(Vec::new()), numbers);
                place(top, inner, file.clone(), numbers).map(|()| file)
            }
            found => found,
        })?;
        file.append(bytes).map_err(|why| why.fault("adding to", &self.full(name)))?;
        file.touch(&self.tree.numbers);
        Ok(())
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        let inner = self.inner(name);
        let _alone = self.alone(&inner)?;
        let held = |top: &Node| match found_file(top, &inner) {
            Err(Why::NotFound) => Ok(Vec::new()),
            found => found.map(|file| file.read(0, u64::MAX)),
        };
        let fault = |why: Why| why.fault("editing", &self.absolute(&inner));
        let before = held(&self.top()).map_err(fault)?;
        let read = before.len();
        // It may look at other names.
        let mut after = change(before);
        self.told("editing", &inner, true)?;
        let (mut top, numbers) = (self.top(), &self.tree.numbers);
        // What was added meanwhile stays.
        after.extend(held(&top).map_err(fault)?.iter().skip(read));
        if after.is_empty() {
            top.take(&inner, numbers);
        } else {
            place(&mut top, &inner, TreeFile::new(Memory::from_vec(after), numbers), numbers).map_err(fault)?;
        }
        drop(top);
        then()
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        let inner = self.inner(name);
        self.told("locking", &inner, false)?;
        let file = match found_file(&self.top(), &inner) {
            Err(Why::NotFound) => return Ok(Locked::Absent),
            found => found.map_err(|why| why.fault("locking", &self.absolute(&inner)))?,
        };
        if !self.locked().insert(file.number) {
            return Ok(Locked::Busy);
        }
        Ok(Locked::Ours(TreeLock::held(self.whole(), inner, file)))
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn locks(&self, _name: &str) -> Locks {
        Locks::HostOnly
    }

    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        let inner = self.inner(name);
        let number = self.looking(name, |node| node.map(Node::number));
        let number = number.ok_or_else(|| Why::NotFound.fault("opening", &self.absolute(&inner)))?;
        // No number comes again.
        Ok(Hold { identity: (0, number), keep: Box::new(()) })
    }

    fn pinned(&self, name: &str, held: &Hold) -> Option<Arc<dyn Names>> {
        let pin = Some(Arc::new((self.inner(name), held.identity.1)));
        Some(Arc::new(MemoryTree { pin, ..self.clone() }))
    }

    fn version(&self, name: &str) -> Result<String, Fault> {
        let version = self.looking(name, |node| node.map(Node::version));
        version.ok_or_else(|| Why::NotFound.fault("looking at", &self.full(name)))
    }

    fn is_link(&self, _name: &str) -> bool {
        false
    }

    fn write(&self, name: &str, bytes: &[u8], _sync: bool) -> Result<(), Fault> {
        self.doing("writing", name, |top, inner, numbers| {
            place(top, inner, TreeFile::new(Memory::from_vec(bytes.to_vec()), numbers), numbers)
        })
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        let memory = allocate(bytes.max(prefix.len() as u64)).inspect(|memory| memory.write_bytes(0, prefix));
        self.doing("creating", name, |top, inner, numbers| place(top, inner, TreeFile::new(memory?, numbers), numbers))
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        self.changing("resizing", name, |file| file.resize(bytes))
    }

    fn overwrite(&self, name: &str, prefix: &[u8], _sync: bool) -> Result<(), Fault> {
        self.overwrite_part(name, 0, prefix)
    }

    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.changing("overwriting", name, |file| {
            file.overwrite(at, bytes);
            Ok(())
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        let from = self.inner(from);
        self.doing("publishing", to, |top, to, numbers| {
            let from = self.pinned_name(top, &from)?;
            top.rename(&from, to, numbers)
        })
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault> {
        let from = self.inner(from);
        self.doing("publishing", to, |top, to, numbers| {
            let from = self.pinned_name(top, &from)?;
            if top.find(&from).is_some() && top.find(to).is_some() {
                return Ok(false);
            }
            top.rename(&from, to, numbers).map(|()| true)
        })
    }

    fn has_links(&self) -> bool {
        true
    }

    fn link(&self, from: &str, to: &str) -> Result<bool, Fault> {
        let from = self.inner(from);
        self.doing("linking", to, |top, to, numbers| {
            let from = self.pinned_name(top, &from)?;
            let file = found_file(top, &from)?;
            if top.find(to).is_some() {
                return Ok(false);
            }
            place(top, to, file, numbers).map(|()| true)
        })
    }

    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault> {
        let a = self.inner(a);
        self.doing("publishing", b, |top, b, numbers| {
            let a = self.pinned_name(top, &a)?;
            top.exchange(&a, b, numbers).map(|()| true)
        })
    }

    fn can_rename(&self, from: &str, _to: &str) -> bool {
        // In memory things can be renamed from anywhere to anywhere.
        let inner = self.inner(from);
        inner.is_empty() || self.top().parent(&inner).is_ok()
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        let inner = self.inner(name);
        self.told("removing", &inner, true)?;
        let mut top = self.top();
        // Nothing is left of what was below a directory that has gone.
        let place = self.pinned_name(&top, &inner).ok();
        let removed = place.and_then(|place| top.take(&place, &self.tree.numbers));
        drop(top);
        // Gigabytes may go back to the system, without the lock.
        drop(removed);
        Ok(())
    }

    fn discard(&self, name: &str) {
        // It cannot fail, and nobody holds files open by name.
        let _ = self.remove(name);
    }

    fn remove_empty(&self, name: &str) {
        // What could not be removed stays, as it may.
        let _ = self.doing("removing", name, |top, inner, numbers| {
            if matches!(top.find(inner), Some(Node::Directory(directory)) if directory.nodes.is_empty()) {
                top.take(inner, numbers);
            }
            Ok(())
        });
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        names.iter().try_for_each(|name| self.sync(name))
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        self.doing("syncing", name, |top, inner, _| top.find(inner).map(|_| ()).ok_or(Why::NotFound))
    }
}

impl fmt::Display for MemoryTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.absolute(&self.root))
    }
}

impl fmt::Debug for MemoryTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTree({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_contract_of_names() {
        let tree = MemoryTree::new();
        crate::conformance::names(&tree);
        tree.make("a/b").unwrap();
        crate::conformance::names(&tree.below("a/b"));
        assert_eq!(tree.list("").unwrap(), ["a"], "nothing is left, and nothing went elsewhere");
    }

    #[test]
    fn trees_do_not_share_names() {
        let (a, b) = (MemoryTree::new(), MemoryTree::new());
        assert_ne!(a.full(""), b.full(""));
        a.write("x", b"1", true).unwrap();
        assert!(!b.exists("x"));
        // What users ask for may look like an absolute name: it is a name like any other.
        assert!(!a.exists(&b.full("x")));
    }

    #[test]
    fn files_are_listed_with_all_below() {
        let tree = MemoryTree::new();
        tree.make("d/e").unwrap();
        tree.write("d/e/f", b"12", true).unwrap();
        tree.write("a", b"", true).unwrap();
        assert_eq!(tree.files(), [("a".to_string(), vec![]), ("d/e/f".to_string(), b"12".to_vec())]);
        assert_eq!(tree.below("d").lengths(), [("e/f".to_string(), 2)]);
        assert_eq!(tree.below("d").files(), [("e/f".to_string(), b"12".to_vec())]);
        assert_eq!(tree.below("nothing").files(), []);
    }

    #[test]
    fn absurd_roots_and_lengths_are_errors() {
        let tree = MemoryTree::new();
        for root in ["/a", "a//b", "..", "a/../b", "."] {
            let fault = tree.below(root).resolve().unwrap_err();
            assert!(fault.kind == FaultKind::Invalid && fault.text().contains(root), "{fault}");
        }
        assert_eq!(tree.below("a/b/").resolve().unwrap(), tree.full("a/b"));
        let fault = tree.create("x", b"", 1 << 62).unwrap_err();
        assert!(fault.text().contains("creating") && !fault.hint.is_empty(), "{fault}");
        assert!(!tree.exists("x"));
    }
}
