//! Names that cannot do everything.

use crate::{Change, Claim, Fault, Hold, Locked, Locks, Mount, Names, Process, Then};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Fails from one change on, as after the death of a process or a disk, and cannot exchange names.
#[derive(Clone)]
pub struct FailingNames {
    inner: Arc<dyn Names>,
    /// Changes that still succeed.
    left: Arc<AtomicU64>,
    fault: Fault,
}

impl FailingNames {
    /// Wraps names of which this many changes succeed, and all later ones fail like this.
    pub fn new(inner: Arc<dyn Names>, changes: u64, fault: Fault) -> FailingNames {
        FailingNames { inner, left: Arc::new(changes.into()), fault }
    }

    /// Whether a change has failed, or the next one will.
    pub fn is_dead(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Counts a change.
    fn change(&self) -> Result<(), Fault> {
        let counted = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        counted.map(|_| ()).map_err(|_| self.fault.clone())
    }
}

impl Names for FailingNames {
    fn full(&self, name: &str) -> String {
        self.inner.full(name)
    }

    fn resolve(&self) -> Result<String, Fault> {
        self.inner.resolve()
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        Arc::new(FailingNames { inner: self.inner.at(root), ..self.clone() })
    }

    fn above(&self) -> Option<(String, String)> {
        self.inner.above()
    }

    fn process(&self) -> Process {
        self.inner.process()
    }

    fn is_gone(&self, process: &Process) -> bool {
        self.inner.is_gone(process)
    }

    fn token(&self) -> String {
        self.inner.token()
    }

    fn exists(&self, name: &str) -> bool {
        self.inner.exists(name)
    }

    fn length(&self, name: &str) -> Option<u64> {
        self.inner.length(name)
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        self.inner.list(name)
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.inner.read_prefix(name, bytes_max)
    }

    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.inner.read_part(name, at, bytes_max)
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.make(name))
    }

    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.write(name, bytes, sync))
    }

    fn make_durable(&self, name: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.make_durable(name))
    }

    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        self.change().and_then(|()| self.inner.make_new(name))
    }

    fn claim(&self, name: &str, note: &[u8], sync: bool) -> Result<Claim, Fault> {
        self.change().and_then(|()| self.inner.claim(name, note, sync))
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.inner.note(name)
    }

    fn written_note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.inner.written_note(name)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.append(name, bytes))
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.edit(name, change, then))
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        self.inner.lock(name)
    }

    fn is_shared(&self, name: &str) -> Result<bool, Fault> {
        self.inner.is_shared(name)
    }

    fn followed(&self) -> Result<Option<String>, Fault> {
        self.inner.followed()
    }

    fn is_at_hand(&self) -> bool {
        self.inner.is_at_hand()
    }

    fn mount(&self) -> Option<Mount> {
        self.inner.mount()
    }

    fn await_others(&self, name: &str) -> bool {
        self.inner.await_others(name)
    }

    fn locks(&self, name: &str) -> Locks {
        self.inner.locks(name)
    }

    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        self.inner.hold(name)
    }

    fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        self.inner.identity(name)
    }

    fn parts(&self) -> usize {
        self.inner.parts()
    }

    fn version(&self, name: &str) -> Result<String, Fault> {
        self.inner.version(name)
    }

    fn is_link(&self, name: &str) -> bool {
        self.inner.is_link(name)
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.change().and_then(|()| self.inner.rename_new(from, to))
    }

    fn has_links(&self) -> bool {
        self.inner.has_links()
    }

    fn link(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.change().and_then(|()| self.inner.link(from, to))
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.create(name, prefix, bytes))
    }

    fn create_like(&self, name: &str, prefix: &[u8], bytes: u64, like: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.create_like(name, prefix, bytes, like))
    }

    fn make_new_like(&self, name: &str, like: &str) -> Result<bool, Fault> {
        self.change().and_then(|()| self.inner.make_new_like(name, like))
    }

    fn take_mode(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.take_mode(from, to))
    }

    fn check_believed(&self, name: &str) -> Result<(), Fault> {
        self.inner.check_believed(name)
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.resize(name, bytes))
    }

    fn overwrite(&self, name: &str, prefix: &[u8], sync: bool) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.overwrite(name, prefix, sync))
    }

    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.overwrite_part(name, at, bytes))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.rename(from, to))
    }

    fn complete(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.change().and_then(|()| self.inner.complete(from, to))
    }

    fn check(&self, name: &str) -> Result<(), Fault> {
        self.inner.check(name)
    }

    fn exchange(&self, _a: &str, _b: &str) -> Result<bool, Fault> {
        Ok(false)
    }

    fn can_rename(&self, from: &str, to: &str) -> bool {
        self.inner.can_rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.remove(name))
    }

    fn discard(&self, name: &str) {
        if self.change().is_ok() {
            self.inner.discard(name);
        }
    }

    fn remove_empty(&self, name: &str) {
        if self.change().is_ok() {
            self.inner.remove_empty(name);
        }
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.sync_files(names))
    }

    fn sync_content(&self, name: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.sync_content(name))
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        self.change().and_then(|()| self.inner.sync(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultKind, MemoryTree};

    #[test]
    fn while_nothing_fails_it_keeps_the_contract() {
        let fault = Fault::new(FaultKind::Storage, "dead");
        let names = FailingNames::new(Arc::new(MemoryTree::new()), u64::MAX, fault);
        crate::conformance::names(&names);
    }
}
