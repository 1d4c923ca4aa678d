//! Locks on files of a tree.

use super::nodes::{TreeFile, Why};
use crate::{Fault, Lock};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

/// What a lock knows of the tree that its file is in.
pub(super) trait Locking: Send + Sync {
    /// Numbers of files that somebody has locked.
    fn locked(&self) -> MutexGuard<'_, BTreeSet<u64>>;
    /// Tells the witness what is to be done to a name in the tree.
    fn told(&self, verb: &'static str, name: &str, changes: bool) -> Result<(), Fault>;
    /// The number of what a name means now.
    fn number(&self, inner: &str) -> Option<u64>;
    /// What comes of a change to a file with this name.
    fn changed(&self, file: &TreeFile, doing: (&'static str, &str), result: Result<(), Why>) -> Result<(), Fault>;
}

/// A lock on a file of a tree, whatever its name is by now.
pub(super) struct TreeLock<T: Locking> {
    tree: T,
    /// Its name in the tree when it was locked.
    inner: String,
    file: Arc<TreeFile>,
    /// Whether it rests, so that others may have it.
    rests: AtomicBool,
}

impl<T: Locking> TreeLock<T> {
    /// On a file that is locked already.
    pub(super) fn held(tree: T, inner: String, file: Arc<TreeFile>) -> Box<TreeLock<T>> {
        Box::new(TreeLock { tree, inner, file, rests: AtomicBool::new(false) })
    }

    fn changed(&self, verb: &'static str, result: Result<(), Why>) -> Result<(), Fault> {
        self.tree.changed(&self.file, (verb, &self.inner), result)
    }

    fn unlock(&self) {
        self.rests.store(true, Ordering::Relaxed);
        self.tree.locked().remove(&self.file.number);
    }
}

impl<T: Locking> Lock for TreeLock<T> {
    fn add(&self, note: &[u8]) -> Result<(), Fault> {
        self.tree.told("adding to the note", &self.inner, true)?;
        self.changed("writing", self.file.append(note))
    }

    fn cut(&self, bytes: u64) -> Result<(), Fault> {
        self.tree.told("cutting the note", &self.inner, true)?;
        self.changed("resizing", self.file.resize(bytes))
    }

    fn has_its_name(&self) -> Result<bool, Fault> {
        self.tree.told("looking at", &self.inner, false)?;
        Ok(self.tree.number(&self.inner) == Some(self.file.number))
    }

    fn keeps_others_out(&self) -> bool {
        true
    }

    fn rest(&self, note: &[u8]) -> bool {
        if self.tree.told("noting that it rests", &self.inner, true).is_err() {
            return false;
        }
        self.file.overwrite(0, note);
        let _ = self.changed("writing", Ok(()));
        // Whoever dies between the two leaves his lock free all the same.
        let unlocked = self.tree.told("unlocking", &self.inner, false).is_ok();
        if unlocked {
            self.unlock();
        }
        unlocked
    }

    fn resume(&self, rested: &[u8], note: &[u8]) -> Result<bool, Fault> {
        self.tree.told("locking again", &self.inner, false)?;
        if !self.tree.locked().insert(self.file.number) {
            return Ok(false);
        }
        self.rests.store(false, Ordering::Relaxed);
        if !self.has_its_name().unwrap_or(false) || self.file.read(0, u64::MAX) != rested {
            self.unlock();
            return Ok(false);
        }
        if let Err(fault) = self.tree.told("noting that it goes on", &self.inner, true) {
            self.unlock();
            return Err(fault);
        }
        self.file.overwrite(0, note);
        self.changed("writing", Ok(())).map(|()| true)
    }
}

impl<T: Locking> Drop for TreeLock<T> {
    fn drop(&mut self) {
        if !*self.rests.get_mut() {
            self.unlock();
        }
    }
}
