//! Directories that share objects, and the queues of their disks.

use super::job::Share;
use super::queue::Queue;
use crate::stripes::Stripes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Direct requests under way at once at one disk. One alone leaves the disk idle until its end is noticed; with more than
/// this many there is nothing to gain (see `examples/direct.rs`).
pub(super) const DIRECT_DEPTH_MAX: usize = 8;

/// Stripes, and how their objects are called.
pub(super) struct Set {
    /// The names of objects are this, `/`, and the name of the files.
    beginning: String,
    stripes: Arc<Stripes>,
    disks: Vec<Disk>,
}

struct Disk {
    direct: Queue,
    /// Through the cache: one at a time, because of the lock of the file.
    cached: Queue,
}

impl Set {
    /// The set of an object, if its name tells of one.
    pub(super) fn of(object: &str) -> Option<Set> {
        let (stripes, name) = Stripes::named(object)?;
        let beginning = object.strip_suffix(name)?.strip_suffix('/')?.to_string();
        let disk = |_| Disk { direct: Queue::new(DIRECT_DEPTH_MAX), cached: Queue::new(1) };
        let disks = stripes.directories.iter().map(disk).collect();
        Some(Set { beginning, stripes: Arc::new(stripes), disks })
    }

    /// The name of the files of an object, if it is one of these.
    fn name<'o>(&self, object: &'o str) -> Option<&'o str> {
        object.strip_prefix(&self.beginning)?.strip_prefix('/')
    }

    /// Whether an object is one of these.
    pub(super) fn has(&self, object: &str) -> bool {
        self.name(object).is_some()
    }

    /// The files of an object, if it is one of these.
    pub(super) fn paths(&self, object: &str) -> Option<Vec<PathBuf>> {
        let name = self.name(object)?;
        Some(self.stripes.directories.iter().map(|directory| directory.join(name)).collect())
    }

    /// Files of one object.
    pub(super) fn parts(&self) -> usize {
        self.disks.len()
    }

    /// Whether a path is that of a file of these.
    pub(super) fn holds(&self, path: &Path) -> bool {
        self.stripes.directories.iter().any(|directory| path.parent() == Some(directory))
    }

    /// What one directory has of an object.
    pub(super) fn share(&self, directory: usize) -> Share {
        Share { stripes: self.stripes.clone(), directory }
    }

    /// The queue for the part of a request in one directory.
    pub(super) fn queue(&self, directory: usize, direct: bool) -> &Queue {
        let disk = &self.disks[directory];
        if direct { &disk.direct } else { &disk.cached }
    }

    pub(super) fn wait(&self) {
        self.disks.iter().for_each(|disk| {
            disk.direct.wait();
            disk.cached.wait();
        });
    }
}
