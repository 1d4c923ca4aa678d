//! Names of objects that are spread over several directories: the same as in one directory, as nearly as it can be.
//!
//! Several names cannot change at once. What is new lies under a hidden name in every directory, and is published by
//! renaming it in one after another. The *first* directory decides: once its rename is done (and durable), the new
//! object is the one that counts, and whoever opens it first renames what is left. To tell this from an object that
//! was never finished, files are made in the first directory first and removed from it last, so that
//!
//! ```text
//! hidden in the first directory             not published: what was there before is whole
//! hidden in others, but not in the first    published: the others are still to be renamed
//! ```
//!
//! holds after a crash at any moment. While renames are under way, a program that reads the files by itself may see
//! some of them old and some new; and so may one that has the object open for reading through this library.

mod parts;

use crate::directory::Directory;
use crate::directory::locks::LOCK_PAUSE;
use crate::here;
use crate::stripes::Stripes;
use hyperslab_world::{Change, Claim, Fault, FaultKind, Hold, Locked, Locks, Mount, Names, Process, Then};
use parts::{parent, rename_left};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A holder renames and syncs a few names; one that takes longer has stopped.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// Directories that share objects, or a root below them. Absolute names are those of [`Stripes::name`].
///
/// Directories exist in all of them, or in none; files have a part in each.
#[derive(Clone, Debug)]
pub struct StripedDirectory {
    stripes: Stripes,
    directories: Vec<Directory>,
    /// Name of the stripes.
    name: String,
    /// Name of the root in each directory; empty for the directories themselves.
    root: String,
}

impl StripedDirectory {
    /// Names of objects that are spread like this. No directory is looked at before [`Names::resolve`].
    ///
    /// # Errors
    /// When there is no directory, or the unit is none.
    pub fn new(stripes: Stripes) -> Result<StripedDirectory, Fault> {
        stripes.check_numbers()?;
        let directories = stripes.directories.iter().map(Directory::new).collect();
        Ok(StripedDirectory { name: stripes.name(), stripes, directories, root: String::new() })
    }

    /// One file as the root, with a part of this name in each directory.
    ///
    /// # Errors
    /// As [`StripedDirectory::new`], and when that cannot be the name of a file in a directory.
    pub fn file(stripes: Stripes, name: &str) -> Result<StripedDirectory, Fault> {
        if Path::new(name).file_name().is_none_or(|last| last != name) {
            let text = format!("'{name}' is not the name of a file in a directory");
            let hint =
                "a striped file is given by its directories and one name, which is that of its part in each of them";
            return Err(Fault::new(FaultKind::Invalid, text).hint(hint));
        }
        Ok(StripedDirectory { root: name.into(), ..StripedDirectory::new(stripes)? })
    }

    /// Keeps others out until this is dropped, so that nobody takes what is made anew for what is still to be renamed.
    /// Where the file system has no locks, users have to see to it that nobody opens a file twice while it is replaced.
    fn lock(&self) -> Result<Option<File>, Fault> {
        self.lock_within(LOCK_WAIT)
    }

    fn lock_within(&self, limit: Duration) -> Result<Option<File>, Fault> {
        let first = &self.stripes.directories[0];
        let Ok(file) = File::open(first) else { return Ok(None) };
        let asked = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::Error(_)) => return Ok(None),
                Err(TryLockError::WouldBlock) if asked.elapsed() < limit => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let text = format!("another process keeps '{}' locked for {limit:?}", first.display());
                    return Err(Fault::new(FaultKind::Timeout, text)
                        .hint("a process that publishes a file there has stopped or waits for its disk: lslocks"));
                }
            }
        }
    }

    /// The directory that decides.
    fn first(&self) -> &Directory {
        &self.directories[0]
    }

    /// Name in each directory.
    fn inner(&self, name: &str) -> String {
        debug_assert!(Stripes::named(name).is_none(), "names are relative to a root, and this is not: {name}");
        let name = name.trim_end_matches('/');
        match (self.root.is_empty(), name.is_empty()) {
            (true, _) => name.to_string(),
            (_, true) => self.root.clone(),
            _ => format!("{}/{name}", self.root),
        }
    }

    fn absolute(&self, inner: &str) -> String {
        if inner.is_empty() { self.name.clone() } else { format!("{}/{inner}", self.name) }
    }

    /// It is decided once it is done in the first directory; [`Names::complete`] does what is left then.
    fn renamed(
        &self,
        from: &str,
        to: &str,
        first: impl FnOnce(&Directory, &str, &str) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let (from, to) = (self.inner(from), self.inner(to));
        let _lock = self.lock()?;
        let missing = self.directories.iter().position(|directory| !directory.exists(&from));
        if let Some(number @ 1..) = missing {
            return Err(self.missing(&from, number));
        }
        if !first(self.first(), &from, &to)? {
            return Ok(false);
        }
        if self.directories.len() == 1 {
            return Ok(true);
        }
        let decided = self
            .first()
            .sync(parent(&to))
            .and_then(|()| if parent(&from) == parent(&to) { Ok(()) } else { self.first().sync(parent(&from)) });
        let mut others = self.directories[1..].iter();
        let renamed = decided.and_then(|()| others.try_for_each(|other| rename_left(other, &from, &to)));
        renamed.map(|()| true).map_err(|fault| {
            let hint = "the file is published, but not in all its directories: opening it completes that";
            fault.as_kind(FaultKind::Unsynced).hint(hint)
        })
    }

    /// Does something in each directory, in order, until it fails; then says with which name.
    fn each(&self, name: &str, mut run: impl FnMut(usize, &Directory, &str) -> Result<(), Fault>) -> Result<(), Fault> {
        let inner = self.inner(name);
        let mut each = self.directories.iter().enumerate();
        each.try_for_each(|(number, directory)| run(number, directory, &inner))
            .map_err(|fault| fault.context(format_args!("'{}'", self.absolute(&inner))))
    }

    /// Makes the parts of a file.
    fn created(&self, name: &str, make: impl Fn(usize, &Directory, &str) -> Result<(), Fault>) -> Result<(), Fault> {
        let _lock = self.lock()?;
        self.each(name, |number, directory, inner| {
            make(number, directory, inner)?;
            if number == 0 && self.directories.len() > 1 {
                // The others must never be there without the first, not even after a loss of power.
                directory.sync(parent(inner))?;
            }
            Ok(())
        })
    }

    /// Takes a name away in each directory, from the first last.
    fn take_away(&self, inner: &str, run: impl Fn(&Directory) -> Result<(), Fault>) -> Result<(), Fault> {
        for (number, directory) in self.directories.iter().enumerate().rev() {
            if number == 0 && self.directories.len() > 1 && directory.exists(inner) {
                // The others must never be there without the first, not even after a loss of power.
                self.directories[1..].iter().try_for_each(|other| other.sync(parent(inner)))?;
            }
            run(directory)?;
        }
        Ok(())
    }

    /// Path of the part in a directory.
    fn part(&self, number: usize, inner: &str) -> PathBuf {
        self.stripes.directories[number].join(inner)
    }

    /// The parts of the first bytes of an object, by directory.
    fn cut(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let part = |number| {
            let held = self.stripes.held(number, 0, bytes.len() as u64);
            held.flat_map(|stripe| &bytes[stripe.skip as usize..(stripe.skip + stripe.bytes) as usize])
        };
        (0..self.directories.len()).map(|number| part(number).copied().collect()).collect()
    }

    fn missing(&self, inner: &str, number: usize) -> Fault {
        let path = self.part(number, inner);
        let text =
            format!("'{}' is missing, while other directories hold their parts of the striped file", path.display());
        Fault::new(FaultKind::Corrupt, text)
            .hint("name the directories and the unit that it was written with, or restore the part")
    }

    fn damaged(&self, inner: &str, number: usize, expected: u64, found: u64) -> Fault {
        let path = self.part(number, inner);
        let (count, unit) = (self.directories.len(), self.stripes.unit_bytes);
        let text = format!(
            "'{}' as part of a file striped over {count} directories by {unit} B should have {expected} B, but has \
             {found} B",
            path.display()
        );
        Fault::new(FaultKind::Corrupt, text)
            .hint("name the directories, their order and the unit that it was written with")
    }
}

impl Names for StripedDirectory {
    fn full(&self, name: &str) -> String {
        self.absolute(&self.inner(name))
    }

    /// The directories must exist, and be different ones.
    fn resolve(&self) -> Result<String, Fault> {
        if !self.root.is_empty() && self.root.split('/').any(|part| matches!(part, "" | "." | "..")) {
            let text =
                format!("'{}' cannot be a name in stripe directories: it has an empty part, '.' or '..'", self.root);
            return Err(Fault::new(FaultKind::Invalid, text).hint("give a relative name, like 'dump.raw'"));
        }
        let absolute = |path: &PathBuf| {
            std::path::absolute(path).map_err(|error| {
                Fault::new(FaultKind::Invalid, format!("'{}' has no absolute path: {error}", path.display()))
            })
        };
        let directories = self.stripes.directories.iter().map(absolute).collect::<Result<_, Fault>>()?;
        let stripes = Stripes { directories, ..self.stripes.clone() };
        stripes.check()?;
        Ok(StripedDirectory { root: self.root.clone(), ..StripedDirectory::new(stripes)? }.full(""))
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        let named = |(stripes, inner): (Stripes, &str)| {
            Some(StripedDirectory { root: inner.trim_end_matches('/').into(), ..StripedDirectory::new(stripes).ok()? })
        };
        let lost = || StripedDirectory { root: root.into(), ..self.clone() };
        Arc::new(Stripes::named(root).and_then(named).unwrap_or_else(lost))
    }

    fn above(&self) -> Option<(String, String)> {
        if self.root.is_empty() {
            return None;
        }
        let name = &self.root[parent(&self.root).len()..];
        Some((self.absolute(parent(&self.root)), name.trim_start_matches('/').into()))
    }

    fn believing(&self, data: &str) -> Option<Arc<dyn Names>> {
        let inner = self.inner(data);
        let directories = self.directories.iter().map(|directory| directory.that_believes(&inner)).collect();
        Some(Arc::new(StripedDirectory { directories, ..self.clone() }))
    }

    fn check_believed(&self, name: &str) -> Result<(), Fault> {
        self.each(name, |_, directory, inner| directory.check_believed(inner))
    }

    fn process(&self) -> Process {
        here::this_process()
    }

    fn is_gone(&self, process: &Process) -> bool {
        here::is_gone(process)
    }

    fn token(&self) -> String {
        here::token()
    }

    /// Whether any directory has it; for the directories themselves, whether all are there.
    fn exists(&self, name: &str) -> bool {
        let inner = self.inner(name);
        let mut each = self.directories.iter();
        if inner.is_empty() { each.all(|d| d.exists("")) } else { each.any(|d| d.exists(&inner)) }
    }

    /// `None` also when a part is missing, which [`Names::check`] tells.
    fn length(&self, name: &str) -> Option<u64> {
        let inner = self.inner(name);
        self.directories.iter().map(|directory| directory.length(&inner)).sum()
    }

    /// Those of the first directory, which has all that the others have.
    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        self.first().list(&self.inner(name))
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let inner = self.inner(name);
        let bytes = bytes_max.min(self.length(name).unwrap_or(0));
        let mut prefix = vec![0; bytes as usize];
        for (number, directory) in self.directories.iter().enumerate() {
            // At least one byte is asked for, so that a directory of this name is told from a file.
            let held = self.stripes.bytes_in(number, bytes).max(1);
            let Some(part) = directory.read_prefix(&inner, held)? else {
                return Ok(None);
            };
            for stripe in self.stripes.held(number, 0, bytes) {
                let (from, to, length) = (stripe.local as usize, stripe.skip as usize, stripe.bytes as usize);
                let Some(found) = part.get(from..from + length) else {
                    return Err(self.damaged(&inner, number, stripe.local + stripe.bytes, part.len() as u64));
                };
                prefix[to..to + length].copy_from_slice(found);
            }
        }
        Ok(Some(prefix))
    }

    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        let inner = self.inner(name);
        let Some(length) = self.length(name) else { return self.read_prefix(name, 0) };
        let mut part = vec![0; length.saturating_sub(at).min(bytes_max) as usize];
        for (number, directory) in self.directories.iter().enumerate() {
            for stripe in self.stripes.held(number, at, part.len() as u64) {
                let Some(found) = directory.read_part(&inner, stripe.local, stripe.bytes)? else { return Ok(None) };
                if found.len() as u64 != stripe.bytes {
                    let held = stripe.local + found.len() as u64;
                    return Err(self.damaged(&inner, number, stripe.local + stripe.bytes, held));
                }
                part[stripe.skip as usize..][..found.len()].copy_from_slice(&found);
            }
        }
        Ok(Some(part))
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        self.each(name, |_, directory, inner| directory.make(inner))
    }

    fn make_durable(&self, name: &str) -> Result<(), Fault> {
        self.each(name, |_, directory, inner| directory.make_durable(inner))
    }

    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        let mut new = true;
        self.each(name, |_, directory, inner| directory.make_new(inner).map(|made| new &= made))?;
        Ok(new)
    }

    /// Small files that say something by being there lie in the first directory.
    fn claim(&self, name: &str, note: &[u8], sync: bool) -> Result<Claim, Fault> {
        self.first().claim(&self.inner(name), note, sync)
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.first().note(&self.inner(name))
    }

    fn written_note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.first().written_note(&self.inner(name))
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.first().append(&self.inner(name), bytes)
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        self.first().edit(&self.inner(name), change, then)
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        self.first().lock(&self.inner(name))
    }

    fn is_shared(&self, name: &str) -> Result<bool, Fault> {
        self.first().is_shared(&self.inner(name))
    }

    fn is_at_hand(&self) -> bool {
        self.directories.iter().all(Names::is_at_hand)
    }

    /// The weakest of all directories.
    fn mount(&self) -> Option<Mount> {
        self.directories.iter().filter_map(Names::mount).max_by_key(|mount| mount.strength)
    }

    fn locks(&self, name: &str) -> Locks {
        self.first().locks(&self.inner(name))
    }

    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        self.first().hold(&self.inner(name))
    }

    fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        self.first().identity(&self.inner(name))
    }

    fn parts(&self) -> usize {
        self.directories.len()
    }

    fn version(&self, name: &str) -> Result<String, Fault> {
        self.first().version(&self.inner(name))
    }

    fn is_link(&self, name: &str) -> bool {
        let inner = self.inner(name);
        self.directories.iter().any(|directory| directory.is_link(&inner))
    }

    /// Each part at once, but not all of them; the first directory's first.
    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        let parts = self.cut(bytes);
        let _lock = self.lock()?;
        self.each(name, |number, directory, inner| directory.write(inner, &parts[number], sync))
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        let parts = self.cut(prefix);
        self.created(name, |number, directory, inner| {
            directory.create(inner, &parts[number], self.stripes.bytes_in(number, bytes))
        })
    }

    /// Each part is like that of the other file in the same directory.
    fn create_like(&self, name: &str, prefix: &[u8], bytes: u64, like: &str) -> Result<(), Fault> {
        let (parts, like) = (self.cut(prefix), self.inner(like));
        self.created(name, |number, directory, inner| {
            directory.create_like(inner, &parts[number], self.stripes.bytes_in(number, bytes), &like)
        })
    }

    fn take_mode(&self, from: &str, to: &str) -> Result<(), Fault> {
        let from = self.inner(from);
        self.each(to, |_, directory, to| directory.take_mode(&from, to))
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        self.each(name, |number, directory, inner| directory.resize(inner, self.stripes.bytes_in(number, bytes)))
    }

    fn overwrite(&self, name: &str, prefix: &[u8], sync: bool) -> Result<(), Fault> {
        let parts = self.cut(prefix);
        self.each(name, |number, directory, inner| match parts[number].as_slice() {
            [] => Ok(()),
            part => directory.overwrite(inner, part, sync),
        })
    }

    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.each(name, |number, directory, inner| {
            let held = self.stripes.held(number, at, bytes.len() as u64);
            held.into_iter().try_for_each(|stripe| {
                let part = &bytes[stripe.skip as usize..(stripe.skip + stripe.bytes) as usize];
                directory.overwrite_part(inner, stripe.local, part)
            })
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.renamed(from, to, |first, from, to| first.rename(from, to).map(|()| true)).map(drop)
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.renamed(from, to, |first, from, to| first.rename_new(from, to))
    }

    fn complete(&self, from: &str, to: &str) -> Result<bool, Fault> {
        let (from, to) = (self.inner(from), self.inner(to));
        if self.first().exists(&from) || self.directories.iter().all(|directory| !directory.exists(&from)) {
            return Ok(false);
        }
        let _lock = self.lock()?;
        if self.first().exists(&from) {
            return Ok(false);
        }
        // A part that somebody else has planted waits for nothing.
        let is_left = |directory: &Directory| directory.exists(&from) && directory.check_believed(&from).is_ok();
        let left = self.directories.iter().enumerate().filter(|(_, directory)| is_left(directory));
        let left: Vec<(usize, &Directory)> = left.collect();
        let Some((number, _)) = left.first() else { return Ok(false) };
        if !self.first().exists(&to) {
            let text = format!(
                "'{}' is missing, while '{}' waits to be published with it",
                self.part(0, &to).display(),
                self.part(*number, &from).display()
            );
            return Err(Fault::new(FaultKind::Corrupt, text)
                .hint("name the directories in the order of writing; or remove what is hidden, if it is of no use"));
        }
        for (_, directory) in left {
            rename_left(directory, &from, &to).map_err(|fault| {
                fault
                    .context("completing a publication that was interrupted")
                    .hint("let somebody who may write to all directories open the file")
            })?;
        }
        self.directories.iter().try_for_each(|directory| directory.sync(parent(&to)))?;
        Ok(true)
    }

    fn check(&self, name: &str) -> Result<(), Fault> {
        let inner = self.inner(name);
        let _lock = self.lock()?;
        let found: Vec<Option<u64>> = self.directories.iter().map(|directory| directory.length(&inner)).collect();
        if found.iter().all(Option::is_none) {
            return Ok(());
        }
        if let Some(number) = found.iter().position(Option::is_none) {
            return Err(self.missing(&inner, number));
        }
        let all: u64 = found.iter().flatten().sum();
        for (number, found) in found.into_iter().flatten().enumerate() {
            let expected = self.stripes.bytes_in(number, all);
            if found != expected {
                return Err(self.damaged(&inner, number, expected, found));
            }
        }
        Ok(())
    }

    /// Never: several names cannot be exchanged at once.
    fn exchange(&self, _a: &str, _b: &str) -> Result<bool, Fault> {
        Ok(false)
    }

    fn can_rename(&self, from: &str, to: &str) -> bool {
        let (from, to) = (self.inner(from), self.inner(to));
        self.directories.iter().all(|directory| directory.can_rename(&from, &to))
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        let inner = self.inner(name);
        self.take_away(&inner, |directory| directory.remove(&inner))
    }

    /// What is published, if not everywhere yet, stays.
    fn discard(&self, name: &str) {
        let inner = self.inner(name);
        if !self.first().exists(&inner) {
            return;
        }
        let _ = self.take_away(&inner, |directory| {
            directory.discard(&inner);
            // What could not be removed is tried once more, for the reason: then the first directory keeps its part, too.
            directory.remove(&inner)
        });
    }

    fn remove_empty(&self, name: &str) {
        let inner = self.inner(name);
        self.directories.iter().rev().for_each(|directory| directory.remove_empty(&inner));
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        let inner: Vec<String> = names.iter().map(|name| self.inner(name)).collect();
        let one = if let [name] = names { name } else { "" };
        self.each(one, |number, directory, _| {
            // Small files lie in the first directory alone.
            let is_here = |name: &&String| number == 0 || directory.exists(name) || !self.first().exists(name);
            directory.sync_files(&inner.iter().filter(is_here).cloned().collect::<Vec<_>>())
        })
    }

    fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        let mut all = true;
        self.each(name, |number, directory, inner| {
            all &= directory.reserve(inner, self.stripes.bytes_in(number, bytes))?;
            Ok(())
        })?;
        Ok(all)
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        self.each(name, |_, directory, inner| directory.sync(inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_world::conformance;

    /// Directories that are removed at the end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn stripes(name: &str, count: usize, unit_bytes: u64) -> (Temporary, Stripes) {
            let path = std::env::temp_dir().join(format!("hyperslab-{name}-{}", std::process::id()));
            let directories: Vec<PathBuf> = (0..count).map(|number| path.join(format!("[{number}%"))).collect();
            directories.iter().for_each(|directory| std::fs::create_dir_all(directory).unwrap());
            (Temporary(path), Stripes { directories, unit_bytes })
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_lock_that_nobody_gives_back_is_an_error_in_time() {
        let (_temporary, stripes) = Temporary::stripes("striped-lock", 2, 8);
        let names = StripedDirectory::new(stripes).unwrap();
        let held = names.lock().unwrap();
        assert!(held.is_some());
        let fault = names.lock_within(Duration::from_millis(20)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Timeout);
        drop(held);
        // A child that another test starts just now has the lock, too, until it runs its program.
        assert!(names.lock().unwrap().is_some());
    }

    #[test]
    fn it_keeps_the_contract_of_names() {
        for (count, unit_bytes) in [(1, 65536), (2, 1), (3, 3), (5, 65536)] {
            let (_temporary, stripes) = Temporary::stripes(&format!("striped-{count}"), count, unit_bytes);
            conformance::names(&StripedDirectory::new(stripes.clone()).unwrap());
            for directory in &stripes.directories {
                assert_eq!(Directory::new(directory).list("").unwrap(), [""; 0], "something is left");
            }
        }
    }

    #[test]
    fn a_file_is_a_root_that_other_ranks_find_by_its_name() {
        let (temporary, stripes) = Temporary::stripes("striped-names", 3, 4);
        let file = StripedDirectory::file(stripes.clone(), "f").unwrap();
        let (above, name) = file.at(&file.resolve().unwrap()).above().unwrap();
        assert_eq!((above.as_str(), name.as_str()), (stripes.name().as_str(), "f"));
        file.at(&above).write("f", b"spread over three", false).unwrap();
        // Who knows these names by others, or other names only, finds the same by what it is told.
        let elsewhere = Stripes { directories: vec![temporary.0.join("elsewhere")], unit_bytes: 1 };
        let told = StripedDirectory::file(elsewhere, "g").unwrap().at(&above);
        assert_eq!(told.read("f").unwrap().unwrap(), b"spread over three");
        assert_eq!(told.full("f"), file.full(""));
        assert_eq!(told.above(), None);
    }

    #[test]
    fn what_cannot_be_the_name_of_a_file_is_told() {
        let stripes = Stripes { directories: vec![".".into()], unit_bytes: 1 };
        for name in ["", ".", "..", "/", "/f", "d/f", "f/"] {
            let fault = StripedDirectory::file(stripes.clone(), name).unwrap_err();
            assert!(fault.text().contains("is not the name of a file") && !fault.hint.is_empty(), "{name}: {fault}");
        }
        let none = StripedDirectory::file(Stripes { directories: vec![], ..stripes.clone() }, "f").unwrap_err();
        assert!(none.text().contains("but 0 are given"), "{none}");
        let root = StripedDirectory::new(stripes).unwrap();
        assert_eq!(root.at(&root.full("a/../b")).resolve().unwrap_err().kind, FaultKind::Invalid);
    }
}
