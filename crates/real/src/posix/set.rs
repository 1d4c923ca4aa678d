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
    beginning: Arc<str>,
    stripes: Arc<Stripes>,
    disks: Vec<Disk>,
}

struct Disk {
    direct: Queue,
    /// Through the cache: one at a time, because of the lock of the file.
    cached: Queue,
}

impl Set {
    pub(super) fn new(beginning: Arc<str>, stripes: Stripes) -> Set {
        let disk = |_| Disk { direct: Queue::new(DIRECT_DEPTH_MAX), cached: Queue::new(1) };
        let disks = stripes.directories.iter().map(disk).collect();
        Set { beginning, stripes: Arc::new(stripes), disks }
    }

    pub(super) fn is_called(&self, beginning: &str, stripes: &Stripes) -> bool {
        *self.beginning == *beginning && *self.stripes == *stripes
    }

    /// The name of the files of an object, if it is one of these.
    fn name<'o>(&self, object: &'o str) -> Option<&'o str> {
        object.strip_prefix(&*self.beginning)?.strip_prefix('/')
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
