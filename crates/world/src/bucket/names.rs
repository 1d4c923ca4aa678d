//! Names in a bucket: keys below a root, as rank 0 sees them. There are no directories: one is there when something lies
//! below it.

use super::contract::{Bucket, ObjectHead, Page, Tags, When};
use super::memory::ObjectMemory;
use super::policy::TURNS_MAX;
use super::sure::PutOutcome;
use crate::{Change, Claim, Fault, FaultKind, Hold, Lock, Locked, Locks, Names, Process, Publishing, Then};
use std::sync::{Arc, Mutex, PoisonError};

/// The objects of a bucket by name.
#[derive(Clone)]
pub struct BucketNames {
    bucket: Arc<dyn Bucket>,
    /// What keys begin with, without a slash at the end; empty for the whole bucket.
    root: String,
}

impl From<&ObjectMemory> for BucketNames {
    fn from(memory: &ObjectMemory) -> BucketNames {
        BucketNames { bucket: Arc::new(memory.clone()), root: memory.root.clone() }
    }
}

impl BucketNames {
    fn key(&self, name: &str) -> String {
        let name = name.trim_end_matches('/');
        match (self.root.is_empty(), name.is_empty()) {
            (true, _) => name.to_string(),
            (_, true) => self.root.clone(),
            _ => format!("{}/{name}", self.root),
        }
    }

    fn absolute(&self, key: &str) -> String {
        let label = self.bucket.label();
        if key.is_empty() { label } else { format!("{label}/{key}") }
    }

    /// What keys of objects below a name begin with.
    fn prefix(&self, name: &str) -> String {
        match self.key(name) {
            key if key.is_empty() => key,
            key => format!("{key}/"),
        }
    }

    fn bucket(&self) -> &dyn Bucket {
        &*self.bucket
    }

    fn cannot(&self, verb: &str, name: &str) -> Fault {
        let text =
            format!("'{}' cannot be {verb}: an object store has whole objects and no directories", self.full(name));
        Fault::new(FaultKind::Unsupported, text).hint("give a path in a file system, or a MemoryStore")
    }

    fn has_below(&self, name: &str) -> Result<bool, Fault> {
        Ok(!self.bucket.list(&self.prefix(name), None, true)?.is_empty())
    }
}

impl Page {
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.beginnings.is_empty()
    }
}

/// A note in an object. It keeps nobody out, but of two who change it at once the second one fails.
struct NoteLock {
    bucket: Arc<dyn Bucket>,
    key: String,
    version: Mutex<String>,
}

impl NoteLock {
    fn change(&self, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Result<(), Fault> {
        let mut version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket: &dyn Bucket = &*self.bucket;
        let taken = || {
            let text = format!("'{}/{}' was taken over by another owner", bucket.label(), self.key);
            Fault::new(FaultKind::Busy, text).hint("look who works on the same; one at a time")
        };
        let (head, note) = bucket.get(&self.key, None)?.ok_or_else(taken)?;
        if head.version != *version {
            return Err(taken());
        }
        let when = When::Version(head.version);
        match bucket.place(&self.key, &change(note), &Tags::new(), &when)? {
            PutOutcome::Ours(new) => *version = new,
            PutOutcome::Other(_) => return Err(taken()),
        }
        Ok(())
    }
}

impl Lock for NoteLock {
    fn add(&self, note: &[u8]) -> Result<(), Fault> {
        self.change(|mut before| {
            before.extend(note);
            before
        })
    }

    fn cut(&self, bytes: u64) -> Result<(), Fault> {
        self.change(|mut before| {
            before.truncate(bytes as usize);
            before
        })
    }

    fn has_its_name(&self) -> Result<bool, Fault> {
        let version = self.version.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.bucket.head(&self.key)?.is_some_and(|head| head.version == *version))
    }

    fn keeps_others_out(&self) -> bool {
        false
    }
}

impl BucketNames {
    fn lock_of(&self, key: String, version: String) -> Box<dyn Lock> {
        Box::new(NoteLock { bucket: self.bucket.clone(), key, version: Mutex::new(version) })
    }
}

impl Names for BucketNames {
    fn full(&self, name: &str) -> String {
        self.absolute(&self.key(name))
    }

    fn resolve(&self) -> Result<String, Fault> {
        let root = &self.root;
        if !root.is_empty() && root.split('/').any(|part| matches!(part, "" | "." | "..")) {
            let text = format!("'{root}' cannot be a key in an object store: it has an empty part, or '.' or '..'");
            return Err(Fault::new(FaultKind::Invalid, text).hint("give a relative name, like 'runs/a.zarr'"));
        }
        Ok(self.absolute(root))
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        let below = root.strip_prefix(&*self.bucket.label()).filter(|key| key.is_empty() || key.starts_with('/'));
        let below = below.map(|key| key.trim_matches('/'));
        Arc::new(BucketNames { bucket: self.bucket.clone(), root: below.unwrap_or(root).to_string() })
    }

    fn above(&self) -> Option<(String, String)> {
        if self.root.is_empty() {
            return None;
        }
        let (above, name) = self.root.rsplit_once('/').unwrap_or(("", &self.root));
        Some((self.absolute(above), name.to_string()))
    }

    fn publishing(&self) -> Publishing {
        Publishing::Metadata(self.bucket.clone())
    }

    fn process(&self) -> Process {
        self.bucket.process()
    }

    fn is_gone(&self, process: &Process) -> bool {
        self.bucket.lives(process) == Some(false)
    }

    fn token(&self) -> String {
        self.bucket.token()
    }

    fn exists(&self, name: &str) -> bool {
        self.key(name).is_empty() || self.length(name).is_some() || self.has_below(name).unwrap_or(false)
    }

    fn length(&self, name: &str) -> Option<u64> {
        self.bucket.head(&self.key(name)).ok().flatten().map(|head| head.bytes)
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        let (prefix, mut names, mut after) = (self.prefix(name), Vec::new(), None);
        loop {
            let page = self.bucket.list(&prefix, after.as_deref(), true)?;
            let below = page.beginnings.iter().map(|beginning| beginning.trim_end_matches('/'));
            names.extend(page.keys.iter().map(|key| &**key).chain(below).map(|key| key[prefix.len()..].to_string()));
            after = page.next;
            if after.is_none() {
                names.sort_unstable();
                return Ok(names);
            }
        }
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.read_part(name, 0, bytes_max)
    }

    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.bucket.get(&self.key(name), Some((at, bytes_max)))?.map(|(_, content)| content))
    }

    /// A directory is there with the first object in it.
    fn make(&self, _name: &str) -> Result<(), Fault> {
        Ok(())
    }

    fn make_durable(&self, _name: &str) -> Result<(), Fault> {
        Ok(())
    }

    /// Nothing is made; the name is free or not.
    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.bucket.head(&self.key(name))?.is_none() && !self.has_below(name)?)
    }

    fn write(&self, name: &str, bytes: &[u8], _sync: bool) -> Result<(), Fault> {
        self.bucket().place_last(&self.key(name), bytes, &Tags::new()).map(drop)
    }

    fn write_new(&self, name: &str, bytes: &[u8], _sync: bool) -> Result<bool, Fault> {
        let placed = self.bucket().place(&self.key(name), bytes, &Tags::new(), &When::Absent)?;
        Ok(matches!(placed, PutOutcome::Ours(_)))
    }

    fn claim(&self, name: &str, note: &[u8], _sync: bool) -> Result<Claim, Fault> {
        let key = self.key(name);
        loop {
            if let PutOutcome::Ours(version) = self.bucket().place(&key, note, &Tags::new(), &When::Absent)? {
                return Ok(Claim::New(self.lock_of(key, version)));
            }
            // Unless it has gone meanwhile.
            if let Some((ObjectHead { version, .. }, left)) = self.bucket.get(&key, None)? {
                return Ok(Claim::Left(self.lock_of(key, version), left));
            }
        }
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        let add = &mut |before: Vec<u8>| [&before, bytes].concat();
        self.edit(name, add, &mut || Ok(()))
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        let key = self.key(name);
        for _ in 0..TURNS_MAX {
            let (when, before) = match self.bucket.get(&key, None)? {
                None => (When::Absent, Vec::new()),
                Some((head, before)) => (When::Version(head.version), before),
            };
            let after = change(before.clone());
            if after == before || self.put_changed(&key, &after, &when)? {
                return then();
            }
        }
        Err(Fault::new(FaultKind::Busy, format!("'{}' is changed by others all the time", self.full(name))))
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        let key = self.key(name);
        Ok(match self.bucket.head(&key)? {
            None => Locked::Absent,
            Some(head) => Locked::Ours(self.lock_of(key, head.version)),
        })
    }

    fn is_at_hand(&self) -> bool {
        self.bucket.is_at_hand()
    }

    fn locks(&self, _name: &str) -> Locks {
        Locks::EachHost
    }

    /// Nothing has an identity here but by its name.
    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        if !name.is_empty() && !self.exists(name) {
            let text = format!("nothing has the name '{}'", self.full(name));
            return Err(Fault::new(FaultKind::Storage, text));
        }
        Ok(Hold { identity: (0, 0), keep: Box::new(()) })
    }

    fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        let key = self.key(name);
        let is_there = key.is_empty() || self.bucket.head(&key)?.is_some() || self.has_below(name)?;
        Ok(is_there.then_some((0, 0)))
    }

    fn version(&self, name: &str) -> Result<String, Fault> {
        Ok(self.bucket.head(&self.key(name))?.map_or(String::new(), |head| head.version))
    }

    fn is_link(&self, _name: &str) -> bool {
        false
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        if bytes != prefix.len() as u64 {
            return Err(self.cannot("made now and filled later", name));
        }
        self.write(name, prefix, false)
    }

    fn overwrite(&self, name: &str, _prefix: &[u8], _sync: bool) -> Result<(), Fault> {
        Err(self.cannot("written in part", name))
    }

    fn overwrite_part(&self, name: &str, _at: u64, _bytes: &[u8]) -> Result<(), Fault> {
        Err(self.cannot("written in part", name))
    }

    fn resize(&self, name: &str, _bytes: u64) -> Result<(), Fault> {
        Err(self.cannot("given another length", name))
    }

    fn replace(&self, name: &str, bytes: &[u8], over: &str) -> Result<bool, Fault> {
        let when = When::Version(over.into());
        let key = self.key(name);
        // What an object tells of who made it stays.
        let tags = self.bucket.head(&key)?.map_or(Tags::new(), |head| head.tags);
        Ok(matches!(self.bucket().place(&key, bytes, &tags, &when)?, PutOutcome::Ours(_)))
    }

    fn rename(&self, from: &str, _to: &str) -> Result<(), Fault> {
        Err(self.cannot("renamed", from))
    }

    fn rename_new(&self, from: &str, _to: &str) -> Result<bool, Fault> {
        Err(self.cannot("renamed", from))
    }

    fn exchange(&self, _a: &str, _b: &str) -> Result<bool, Fault> {
        Ok(false)
    }

    fn can_rename(&self, _from: &str, _to: &str) -> bool {
        false
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.bucket().remove(&self.key(name))?;
        let mut keys = self.bucket().keys(&self.prefix(name))?;
        // What says what the others mean lies above them.
        keys.sort_by_key(|key| key.matches('/').count());
        keys.iter().try_for_each(|key| self.bucket().remove(key))
    }

    fn discard(&self, name: &str) {
        let _ = self.remove(name);
    }

    fn remove_empty(&self, _name: &str) {}

    fn sync_files(&self, _names: &[String]) -> Result<(), Fault> {
        Ok(())
    }

    fn sync(&self, _name: &str) -> Result<(), Fault> {
        Ok(())
    }
}

impl BucketNames {
    /// Puts what an object shall hold from now on; deletes it, if nothing. Returns whether it was still as it was.
    fn put_changed(&self, key: &str, after: &[u8], when: &When) -> Result<bool, Fault> {
        let PutOutcome::Ours(version) = self.bucket().place(key, after, &Tags::new(), when)? else { return Ok(false) };
        if after.is_empty() {
            self.bucket().remove_version(key, &version)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_contract_of_names_without_directories() {
        let memory = ObjectMemory::new();
        crate::conformance::buckets::names_of_objects(&BucketNames::from(&memory));
        crate::conformance::buckets::names_of_objects(&BucketNames::from(&memory.below("a/b")));
        assert_eq!(memory.lengths(), []);
    }

    #[test]
    fn what_a_bucket_cannot_do_is_refused() {
        let names = BucketNames::from(&ObjectMemory::new());
        names.write("f", b"1", true).unwrap();
        let refused = [
            names.create("g", b"head", 10).unwrap_err(),
            names.resize("f", 4).unwrap_err(),
            names.overwrite("f", b"2", true).unwrap_err(),
            names.rename("f", "g").unwrap_err(),
            names.rename_new("f", "g").unwrap_err(),
        ];
        assert!(refused.iter().all(|fault| fault.kind == FaultKind::Unsupported && !fault.hint.is_empty()));
        assert!(!names.can_rename("f", "") && !names.exchange("f", "g").unwrap());
    }
}
