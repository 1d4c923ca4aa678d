//! What was written becomes durable, and what replaces others takes their names.

use super::files::Files;
use super::replacing::{Successor, replace_all};
use crate::doing::{Doing, FileSystem, SINGLE_SYNCS_MAX, done, write_back};
use crate::sync::atomic::Ordering;
use hyperslab_layout::{Durability, Object};
use hyperslab_world::{Fault, Outcome};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What goes to disk in one step of a sync \[B\].
const SYNC_STEP_BYTES: u64 = 64 << 20;
/// Requests from which on what they wrote, if it shall be durable, is sent to the disk at once \[B\]: shorter ones would make
/// the disk's requests short.
const SENT_ON_BYTES_MIN: u64 = 512 << 10;

impl Files {
    /// What was written below, which is then no longer remembered: files with new bytes, new names, and what replaces others.
    fn take_dirty(&mut self, below: &[Object]) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>, Vec<Successor>) {
        let roots: BTreeSet<PathBuf> = below.iter().flat_map(|name| self.paths(name).0).collect();
        let inside = |path: &Path| path.ancestors().any(|above| roots.contains(above));
        // A directory made for an object may lie above the object's own; what lies below a path follows it in the set.
        let above = |path: &PathBuf| roots.range(path.clone()..).next().is_some_and(|root| root.starts_with(path));
        let (dirty, clean) = std::mem::take(&mut self.dirty).into_iter().partition(|path| inside(path));
        let (new, others) = std::mem::take(&mut self.new).into_iter().partition(|path| inside(path) || above(path));
        (self.dirty, self.new) = (clean, others);
        (dirty, new, self.replacing.take(inside))
    }

    /// Whether all that was written is durable.
    pub(super) fn is_durable(&self) -> bool {
        self.dirty.is_empty() && self.new.is_empty() && self.replacing.is_empty()
    }

    /// Forgets what was written below a path, if a sync by rank 0, who has it on a disk of his host, makes all of it durable: files
    /// that are known to lie on this host, too. Both see the same file, and so have one cache. Long ones are not left to it,
    /// since their sync has to tell how far it is.
    pub(super) fn leave_to_rank_0(&mut self, below: &Path) -> bool {
        if !below.is_absolute() {
            // Of what is spread over directories, files have other paths.
            return false;
        }
        self.settle();
        let inside = |path: &&PathBuf| path.starts_with(below);
        let is_short = |path: &Path| std::fs::metadata(path).is_ok_and(|found| found.len() <= SYNC_STEP_BYTES);
        let is_left = |path: &PathBuf| self.is_at_hand(path) && is_short(path);
        let left = self.replacing.is_empty()
            && !self.new.iter().any(|path| inside(&path))
            && self.dirty.iter().filter(inside).all(is_left);
        if left {
            // Their descriptors stay until they are closed, which tells of errors, too.
            self.dirty.retain(|path| !path.starts_with(below));
        }
        left
    }

    /// Syncs files written, lets what replaces others take their names, then syncs the directories in which names were made.
    /// Below nothing, it closes what was written.
    pub(super) fn sync(&mut self, below: &[Object]) -> Result<Outcome, Fault> {
        if below.is_empty() {
            return self.close_written();
        }
        self.settle();
        let (dirty, new, replacing) = self.take_dirty(below);
        let striped = |path: &PathBuf| self.sets.iter().any(|set| set.holds(path));
        let (striped, mut dirty): (BTreeSet<_>, BTreeSet<_>) = dirty.into_iter().partition(striped);
        dirty.extend(replacing.iter().map(|one| one.hidden.clone()));
        let calls = self.sync_parts(&striped)?;
        let (synced, many) = self.sync_contents(&dirty)?;
        self.written.end(striped.iter().chain(&dirty))?;
        // Who made the name of a file that was only written to makes that durable.
        let mut named: BTreeSet<PathBuf> = replacing.iter().filter_map(|one| one.directory()).collect();
        let replaced = replace_all(&replacing, &mut self.grounds, &self.advance);
        if !many {
            named.extend(new.iter().filter_map(|path| path.parent()).map(PathBuf::from));
        }
        let renamed = 2 * replacing.len() as u64;
        replaced.and(self.sync_names(&named)).map(|names| done(0, calls + synced + renamed + names))
    }

    /// Syncs parts of striped files, each perhaps in a file system and on a disk of its own: all are set going at once.
    fn sync_parts(&self, paths: &BTreeSet<PathBuf>) -> Result<u64, Fault> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            files.extend(self.writer(path)?.map(|file| (path, file)));
        }
        for (path, file) in &files {
            self.set_going(path, file)?;
        }
        for (path, file) in &files {
            let synced =
                self.sync_file(file, true).and_then(|()| File::open(path.parent().unwrap_or(path))?.sync_all());
            synced.map_err(|error| Doing { verb: "syncing", path }.failed("", &error))?;
        }
        Ok(2 * files.len() as u64)
    }

    /// Syncs what files hold; says how many calls that took, and whether all names in their file system are durable, too.
    pub(super) fn sync_contents(&mut self, paths: &BTreeSet<PathBuf>) -> Result<(u64, bool), Fault> {
        let (alone, rest): (BTreeSet<&PathBuf>, BTreeSet<&PathBuf>) =
            paths.iter().partition(|path| self.written.must_be_alone(path));
        let calls = self.sync_single(&alone)?;
        let holding = rest.iter().filter_map(|path| path.parent());
        let found =
            holding.filter(|_| rest.len() > SINGLE_SYNCS_MAX).find(|path| std::fs::exists(path).unwrap_or_default());
        if let Some(directory) = found {
            let file_system = match self.written.watched(directory) {
                Some(watched) => Some(watched),
                // A descriptor reports only errors that happen after it was opened, so it is opened first.
                None => FileSystem::open(directory)?,
            };
            if let Some(file_system) = file_system {
                return self.sync_many(&rest, file_system).map(|many| (calls + many, alone.is_empty()));
            }
        }
        Ok((calls + self.sync_single(&rest)?, false))
    }

    /// Syncs files one by one.
    fn sync_single(&self, paths: &BTreeSet<&PathBuf>) -> Result<u64, Fault> {
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            // All are set going before the first is waited for: the blocks of each are then known when that commits the
            // journal, and the others find little left to do (8 files of 8 KiB on ext4: 2.0 ms, so 1.0).
            if let Some(file) = self.writer(path)? {
                self.set_going(path, &file)?;
                files.push((path, file));
            }
        }
        for (path, file) in &files {
            self.sync_file(file, true).map_err(|error| Doing { verb: "syncing", path }.failed("", &error))?;
        }
        Ok(files.len() as u64)
    }

    /// Makes many files of a store durable by one call for its file system. Long ones are set going before, and now and then
    /// one is waited for, so that this comes forward where there is much.
    fn sync_many(&self, paths: &BTreeSet<&PathBuf>, file_system: FileSystem) -> Result<u64, Fault> {
        let (mut calls, mut going) = (1, 0);
        for path in paths {
            let failed = |error: io::Error| Doing { verb: "syncing", path }.failed("", &error);
            let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
            going += length;
            if length < SENT_ON_BYTES_MIN && going < SYNC_STEP_BYTES {
                continue;
            }
            let Some(file) = self.writer(path)? else { continue };
            self.set_going(path, &file)?;
            calls += 1;
            if going >= SYNC_STEP_BYTES {
                going = 0;
                self.sync_file(&file, false).map_err(failed)?;
            }
        }
        file_system.sync()?;
        // Kernels before 5.8 tell no errors by that. There is nothing left to wait for.
        for path in paths {
            let Some(file) = self.writer(path)? else { continue };
            let told = write_back(&file, 0, 0, libc::SYNC_FILE_RANGE_WAIT_BEFORE);
            told.map_err(|error| Doing { verb: "syncing", path }.failed("", &error))?;
            calls += 1;
        }
        Ok(calls)
    }

    /// Makes the names in directories durable.
    fn sync_names(&self, directories: &BTreeSet<PathBuf>) -> Result<u64, Fault> {
        let many = directories.iter().next().filter(|_| directories.len() > SINGLE_SYNCS_MAX);
        if let Some(file_system) = many.map(|directory| FileSystem::open(directory)).transpose()?.flatten() {
            return file_system.sync().map(|()| 1);
        }
        let mut calls = 0;
        for directory in directories {
            let doing = Doing { verb: "syncing", path: directory };
            match File::open(directory).and_then(|file| file.sync_all()) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(doing.failed("", &error)),
                _ => calls += 1,
            }
        }
        Ok(calls)
    }

    /// The descriptor by which a file is synced: the one that wrote it, as long as that is open.
    fn writer(&self, path: &Path) -> Result<Option<Arc<File>>, Fault> {
        match self.written.writer(path) {
            Some(writer) => Ok(Some(writer)),
            None => Ok(opened(path)?.map(Arc::new)),
        }
    }

    /// Whether the disk begins with what shall be so durable.
    pub(super) fn sends_on(&self, durability: Durability) -> bool {
        durability > Durability::Cached && self.sends_on.load(Ordering::Relaxed)
    }

    /// Sends to the disk what was just written and shall be durable, so that the disk works while more is copied: so many
    /// bytes of a range, up to `sent` of which was sent before. Where most of it was not written just now, others may write in
    /// between, to the same pages.
    pub(super) fn send_on(
        &self,
        path: &Path,
        file: &File,
        (start, end): (u64, u64),
        (bytes, sent): (u64, u64),
    ) -> Result<(), Fault> {
        let in_one = end.saturating_sub(start) == bytes;
        let start = if in_one { start.max(sent) } else { start };
        let length = end.saturating_sub(start);
        let short = bytes < SENT_ON_BYTES_MIN || length == 0;
        if short || length > 2 * bytes {
            return Ok(());
        }
        let sent = write_back(file, start, length, libc::SYNC_FILE_RANGE_WRITE);
        self.advance.fetch_add(1, Ordering::Relaxed);
        sent.map_err(|error| Doing { verb: "writing", path }.failed("", &error))
    }

    /// Sets all of a file's pages going, which may wait for room in the disk's queue, and so counts as progress.
    fn set_going(&self, path: &Path, file: &File) -> Result<(), Fault> {
        let going = write_back(file, 0, 0, libc::SYNC_FILE_RANGE_WRITE);
        self.advance.fetch_add(1, Ordering::Relaxed);
        going.map_err(|error| Doing { verb: "syncing", path }.failed("", &error))
    }

    /// Writes one file's pages to disk, in steps that count as progress, and, if this is all, makes sure of them and of
    /// the metadata needed to find them.
    fn sync_file(&self, file: &File, all: bool) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length > SYNC_STEP_BYTES || !all {
            // All pages are set going at once, so that the disk has a deep queue; then each step is waited for.
            let write = libc::SYNC_FILE_RANGE_WRITE;
            let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE | write | libc::SYNC_FILE_RANGE_WAIT_AFTER;
            write_back(file, 0, length, write)?;
            for start in (0..length).step_by(SYNC_STEP_BYTES as usize) {
                write_back(file, start, SYNC_STEP_BYTES, wait)?;
                self.advance.fetch_add(1, Ordering::Relaxed);
            }
        }
        if all {
            file.sync_data()?;
        }
        self.advance.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A file that is to be synced and is not open any more, unless it was given up, or published under another name by a call that
/// did not want it durable.
fn opened(path: &Path) -> Result<Option<File>, Fault> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Doing { verb: "syncing", path }.failed("", &error)),
    }
}
