//! Directories and files in memory, shared by all ranks of a process.
//!
//! The lock of the tree is held while names are looked up or changed, that of a file (shared) while bytes move, so that
//! ranks copy at the same time, also into one file.

mod nodes;
mod store;

pub use store::TreeStore;

use crate::{Change, Claim, Fault, FaultKind, Hold, Lock, Locked, Locks, Names, Process, Then};
use hyperslab_pack::Memory;
use nodes::{Node, TreeFile, Why, allocate, place};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

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
}

struct Tree {
    /// Absolute name of the tree's own root: the scheme and a number.
    label: String,
    top: Mutex<Node>,
    /// Names of files that somebody has locked.
    locked: Mutex<BTreeSet<String>>,
    /// Owned while a file is edited that several owners share.
    edits: Mutex<()>,
}

/// A lock on a file of a tree.
struct TreeLock {
    tree: MemoryTree,
    inner: String,
}

impl Lock for TreeLock {
    fn add(&self, note: &[u8]) -> Result<(), Fault> {
        let mut all = self.tree.read_prefix(&self.inner, u64::MAX)?.unwrap_or_default();
        all.extend(note);
        self.tree.write(&self.inner, &all, false)
    }

    fn cut(&self, bytes: u64) -> Result<(), Fault> {
        self.tree.resize(&self.inner, bytes)
    }

    fn has_its_name(&self) -> bool {
        true
    }

    fn keeps_others_out(&self) -> bool {
        true
    }
}

impl Drop for TreeLock {
    fn drop(&mut self) {
        self.tree.locked().remove(&self.inner);
    }
}

/// A tree that is not kept alive.
struct WeakTree {
    label: String,
    tree: Weak<Tree>,
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
        MemoryTree {
            tree: Arc::new(Tree {
                label,
                top: Mutex::new(Node::directory()),
                locked: Mutex::default(),
                edits: Mutex::default(),
            }),
            root: String::new(),
        }
    }

    /// The same tree, seen from a root below this one, which need not exist.
    #[must_use]
    pub fn below(&self, name: &str) -> MemoryTree {
        let name = name.trim_end_matches('/');
        let root = if self.root.is_empty() { name.to_string() } else { format!("{}/{name}", self.root) };
        MemoryTree { tree: self.tree.clone(), root }
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

    fn locked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tree.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn weak(&self) -> WeakTree {
        WeakTree { label: self.tree.label.clone(), tree: Arc::downgrade(&self.tree) }
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

    /// Runs on the tree and the name in it; what cannot be done is told with the verb.
    fn doing<T>(
        &self,
        verb: &str,
        name: &str,
        run: impl FnOnce(&mut Node, &str) -> Result<T, Why>,
    ) -> Result<T, Fault> {
        let inner = self.inner(name);
        run(&mut self.top(), &inner).map_err(|why| why.fault(verb, &self.absolute(&inner)))
    }

    /// The file with this name, if there is one.
    fn file(&self, name: &str) -> Option<Arc<TreeFile>> {
        match self.top().find(&self.inner(name)) {
            Some(Node::File(file)) => Some(file.clone()),
            _ => None,
        }
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
        Arc::new(MemoryTree { tree: self.tree.clone(), root })
    }

    fn process(&self) -> Process {
        // A tree belongs to the processes that have it in their memory: this one, and what it forked.
        Process { pid: std::process::id(), ..Process::default() }
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
        self.top().find(&self.inner(name)).is_some()
    }

    fn length(&self, name: &str) -> Option<u64> {
        self.file(name).map(|file| file.length())
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        match self.top().find(&self.inner(name)) {
            Some(Node::Directory(nodes)) => Ok(nodes.keys().cloned().collect()),
            _ => Ok(Vec::new()),
        }
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.read_part(name, 0, bytes_max)
    }

    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let file = self.doing("reading", name, |top, inner| match top.find(inner) {
            Some(Node::File(file)) => Ok(Some(file.clone())),
            Some(Node::Directory(_)) => Err(Why::IsDirectory),
            None => Ok(None),
        })?;
        Ok(file.map(|file| file.read(at, bytes_max)))
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        self.doing("making directory", name, Node::make)
    }

    fn make_durable(&self, name: &str) -> Result<(), Fault> {
        self.make(name)
    }

    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        self.doing("making directory", name, |top, inner| {
            if top.find(inner).is_some() {
                return Ok(false);
            }
            top.parent(inner)?;
            top.make(inner).map(|()| true)
        })
    }

    fn claim(&self, name: &str, note: &[u8], sync: bool) -> Result<Claim, Fault> {
        let inner = self.inner(name);
        let mut locked = self.locked();
        let left = self.read_prefix(name, u64::MAX)?;
        if locked.contains(&inner) {
            return Ok(Claim::Busy(left.unwrap_or_default()));
        }
        if left.is_none() {
            self.write(name, note, sync)?;
        }
        locked.insert(inner.clone());
        let tree = MemoryTree { tree: self.tree.clone(), root: String::new() };
        let lock = Box::new(TreeLock { tree, inner });
        Ok(match left {
            None => Claim::New(lock),
            Some(left) => Claim::Left(lock, left),
        })
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let before = self.read_prefix(name, u64::MAX)?.unwrap_or_default();
        self.write(name, &[&before, bytes].concat(), false)
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        let _alone = self.tree.edits.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.read_prefix(name, u64::MAX)?.unwrap_or_default();
        match change(before) {
            after if after.is_empty() => self.remove(name)?,
            after => self.write(name, &after, false)?,
        }
        then()
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        let inner = self.inner(name);
        if !self.exists(name) {
            return Ok(Locked::Absent);
        }
        if !self.locked().insert(inner.clone()) {
            return Ok(Locked::Busy);
        }
        let tree = MemoryTree { tree: self.tree.clone(), root: String::new() };
        Ok(Locked::Ours(Box::new(TreeLock { tree, inner })))
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn locks(&self, _name: &str) -> Locks {
        Locks::HostOnly
    }

    /// Nothing has an identity here but by its name.
    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        self.sync(name)?;
        Ok(Hold { identity: (0, 0), keep: Box::new(()) })
    }

    fn is_link(&self, _name: &str) -> bool {
        false
    }

    fn write(&self, name: &str, bytes: &[u8], _sync: bool) -> Result<(), Fault> {
        let file = TreeFile::new(Memory::from_vec(bytes.to_vec()));
        self.doing("writing", name, |top, inner| place(top, inner, file))
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        let memory = allocate(bytes.max(prefix.len() as u64)).inspect(|memory| memory.write_bytes(0, prefix));
        self.doing("creating", name, |top, inner| place(top, inner, TreeFile::new(memory?)))
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let resized = self.file(name).ok_or(Why::NotFound).and_then(|file| file.resize(bytes));
        resized.map_err(|why| why.fault("resizing", &self.full(name)))
    }

    fn overwrite(&self, name: &str, prefix: &[u8], _sync: bool) -> Result<(), Fault> {
        let overwritten = self.file(name).ok_or(Why::NotFound).map(|file| file.overwrite(0, prefix));
        overwritten.map_err(|why| why.fault("overwriting", &self.full(name)))
    }

    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let overwritten = self.file(name).ok_or(Why::NotFound).map(|file| file.overwrite(at, bytes));
        overwritten.map_err(|why| why.fault("overwriting", &self.full(name)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        let from = self.inner(from);
        self.doing("publishing", to, |top, to| top.rename(&from, to))
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault> {
        let from = self.inner(from);
        self.doing("publishing", to, |top, to| {
            if top.find(&from).is_some() && top.find(to).is_some() {
                return Ok(false);
            }
            top.rename(&from, to).map(|()| true)
        })
    }

    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault> {
        let a = self.inner(a);
        self.doing("publishing", b, |top, b| top.exchange(&a, b).map(|()| true))
    }

    fn can_rename(&self, from: &str, _to: &str) -> bool {
        let inner = self.inner(from);
        let mut top = self.top();
        match top.find(&inner) {
            Some(node) => matches!(node, Node::Directory(_)),
            None => top.parent(&inner).is_ok(),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        let removed = self.doing("removing", name, |top, inner| Ok(top.take(inner)))?;
        // Gigabytes may go back to the system, without the lock.
        drop(removed);
        Ok(())
    }

    fn discard(&self, name: &str) {
        // It cannot fail, and nobody holds files open by name.
        let _ = self.remove(name);
    }

    fn remove_empty(&self, name: &str) {
        let inner = self.inner(name);
        let mut top = self.top();
        if matches!(top.find(&inner), Some(Node::Directory(nodes)) if nodes.is_empty()) {
            top.take(&inner);
        }
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        names.iter().try_for_each(|name| self.sync(name))
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        self.doing("syncing", name, |top, inner| top.find(inner).map(|_| ()).ok_or(Why::NotFound))
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
