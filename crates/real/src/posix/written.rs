//! Descriptors that wrote. A server may accept bytes and say only later, when the descriptor that wrote them is synced or closed,
//! that it could not keep them; it says so once, and a descriptor that is opened later hears nothing. So what becomes
//! durable is synced by the descriptor that wrote it, and each close of one is looked at.

use super::at_hand::Nearness;
use super::handle::Handle;
use crate::doing::{Doing, FileSystem, SINGLE_SYNCS_MAX, close};
use hyperslab_world::Fault;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Descriptors that wait for their sync, at most. Beyond that, one is synced and closed at once; or only closed, where one
/// `syncfs` will make all files of the file system durable anyway.
const WAITING_MAX: usize = SINGLE_SYNCS_MAX;

#[derive(Default)]
pub(super) struct Written {
    /// By path: what was written and is to be synced.
    waiting: BTreeMap<PathBuf, Descriptor>,
    /// By root: file systems that hold what was closed before its sync. Each was opened before, and so hears of errors since.
    watched: BTreeMap<PathBuf, FileSystem>,
    /// The first error of a close that no request could tell.
    late: Option<Fault>,
}

/// A descriptor that wrote.
struct Descriptor {
    file: Arc<File>,
    /// Whether its file system may tell late of what it could not keep.
    tells_late: bool,
}

impl Written {
    /// Keeps a descriptor for the sync of what it wrote below a root there. Says whether there is anything left to sync.
    pub(super) fn keep(
        &mut self,
        (root, reach): (&Path, Nearness),
        path: &Path,
        file: &Arc<File>,
    ) -> Result<bool, Fault> {
        let known = self.waiting.get(path);
        if known.is_some_and(|writer| Arc::ptr_eq(&writer.file, file)) {
            return Ok(true);
        }
        let tells_late = reach.tells_late();
        if known.is_some() || !self.is_full() {
            return self.expect(reach, path, file).map(|()| true);
        }
        if tells_late {
            file.sync_data().map_err(|error| Doing { verb: "syncing", path }.failed("", &error))?;
            return Ok(false);
        }
        if !self.watched.contains_key(root)
            && let Some(file_system) = FileSystem::open(root)?
        {
            self.watched.insert(root.into(), file_system);
        }
        Ok(true)
    }

    /// Keeps one that is about to write.
    pub(super) fn expect(&mut self, reach: Nearness, path: &Path, file: &Arc<File>) -> Result<(), Fault> {
        let writer = Descriptor { file: file.clone(), tells_late: reach.tells_late() };
        // Of one name, the file that was replaced.
        let before = self.waiting.insert(path.into(), writer);
        before.map_or(Ok(()), |before| closed(path, before.file))
    }

    /// Whether no more should wait.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    /// The descriptor by which a path is synced, if it still waits.
    pub(super) fn writer(&self, path: &Path) -> Option<Arc<File>> {
        self.waiting.get(path).map(|writer| writer.file.clone())
    }

    /// Whether a path must be synced by itself.
    pub(super) fn must_be_alone(&self, path: &Path) -> bool {
        self.waiting.get(path).is_some_and(|writer| writer.tells_late)
    }

    /// What hears of errors below a root since the first descriptor there was closed before its sync.
    pub(super) fn watched(&mut self, path: &Path) -> Option<FileSystem> {
        let root = self.watched.keys().find(|root| path.starts_with(root))?.clone();
        self.watched.remove(&root)
    }

    /// Watches no file system any more of which nothing is left to sync.
    pub(super) fn watch_only(&mut self, dirty: &BTreeSet<PathBuf>) {
        self.watched.retain(|root, _| dirty.iter().any(|path| path.starts_with(root)));
    }

    /// Closes those of paths that were synced.
    pub(super) fn end<'p>(&mut self, paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Fault> {
        let mut ended = Ok(());
        for path in paths {
            if let Some(writer) = self.waiting.remove(path) {
                ended = ended.and(closed(path, writer.file));
            }
        }
        ended
    }

    /// Takes out the paths of those that may tell late: they are to be synced and closed before others are told of them.
    pub(super) fn late_ones(&self, among: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let late = self.waiting.iter().filter(|(_, writer)| writer.tells_late).map(|(path, _)| path);
        late.filter(|path| among.contains(*path)).cloned().collect()
    }

    /// Whether closing may still tell of an error: of any, or only of those that the next call does not come to again.
    pub(super) fn owes<'h>(&self, any: bool, mut open: impl Iterator<Item = &'h Handle>) -> bool {
        let waits = |writer: &Descriptor| any || writer.tells_late;
        let is_written = |handle: &Handle| handle.writable && (any || handle.reach.tells_late());
        self.late.is_some() || self.waiting.values().any(waits) || open.any(is_written)
    }

    /// Closes those that wait for a sync which comes by another descriptor or never.
    pub(super) fn let_go(&mut self, is_let_go: impl Fn(&Path) -> bool) {
        let paths: Vec<PathBuf> = self.waiting.keys().filter(|path| is_let_go(path)).cloned().collect();
        let ended = self.end(&paths);
        self.note(ended);
    }

    /// Closes one whose file is given up: what it could not keep matters to nobody.
    pub(super) fn forget(&mut self, path: &Path) {
        self.waiting.remove(path);
    }

    /// Closes a handle; what goes wrong is told by [`Written::take_late`].
    pub(super) fn close(&mut self, handle: Arc<Handle>) {
        let Some(handle) = Arc::into_inner(handle) else { return };
        let (path, files) = handle.into_files();
        let ended = files.into_iter().try_for_each(|file| closed(&path, file));
        self.note(ended);
    }

    fn note(&mut self, ended: Result<(), Fault>) {
        self.late = self.late.take().or(ended.err());
    }

    /// What went wrong at a close that no request has told.
    pub(super) fn take_late(&mut self) -> Result<(), Fault> {
        self.late.take().map_or(Ok(()), Err)
    }
}

/// Closes one that was written, unless it is still in use: then whatever uses it closes it.
pub(super) fn closed(path: &Path, file: Arc<File>) -> Result<(), Fault> {
    let Some(file) = Arc::into_inner(file) else { return Ok(()) };
    close(file).map_err(|error| Doing { verb: "closing", path }.failed(" after writing", &error))
}
