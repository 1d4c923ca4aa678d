//! Directories that share objects, and the queues of their disks.

use super::job::Share;
use super::queue::Queue;
use crate::doing::Doing;
use crate::regular;
use crate::stripes::Stripes;
use hyperslab_world::{Fault, Moved, Outcome};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
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

    /// Reads a stretch of the object of which these are the files.
    pub(super) fn get(&self, paths: &[PathBuf], (first, bytes): (u64, u64), bytes_max: u64) -> Result<Outcome, Fault> {
        let whole = Doing { verb: "reading", path: &paths[0] };
        if bytes > bytes_max {
            return Err(whole.corrupt(&format!("at most {bytes_max} B"), &format!("{bytes} B")));
        }
        let mut content = vec![0; bytes as usize];
        let mut calls = 0;
        for (directory, path) in paths.iter().enumerate() {
            let doing = Doing { verb: "reading", path };
            let mut file = None;
            for stripe in self.stripes.held(directory, first, bytes) {
                let open = match &file {
                    Some(open) => open,
                    None => match regular::open(path, false) {
                        Ok(open) => file.insert(open),
                        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::Absent),
                        Err(error) => return Err(doing.failed("", &error)),
                    },
                };
                let into = &mut content[stripe.skip as usize..][..stripe.bytes as usize];
                match open.read_exact_at(into, stripe.local) {
                    Ok(()) => calls += 1,
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        let expected = format!("{} B from byte {} on", stripe.bytes, stripe.local);
                        return Err(doing.corrupt(&expected, "fewer"));
                    }
                    Err(error) => return Err(doing.failed_open(&error)),
                }
            }
        }
        Ok(Outcome::Done(Moved { bytes, calls, content, first, ..Moved::default() }))
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
