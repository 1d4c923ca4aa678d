//! What is asked of the file system, and how its failures are told.

use crate::posix::at_hand;
use hyperslab_world::{Fault, FaultKind, Moved, Outcome, RoomLeft};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::{Path, PathBuf};

/// Files that are synced one by one; more are made durable by one sync of their file system, since each single sync
/// waits for the disk.
pub(crate) const SINGLE_SYNCS_MAX: usize = 32;

/// What was being done to which object, for messages.
pub(crate) struct Doing<'a> {
    pub(crate) verb: &'static str,
    pub(crate) path: &'a Path,
}

impl Doing<'_> {
    pub(crate) fn failed(&self, what: &str, error: &io::Error) -> Fault {
        let path = self.path.display().to_string();
        let fault = Fault::new(FaultKind::Storage, format!("{} '{path}'{what} failed: {error}", self.verb)).about(path);
        let fault = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => fault.lacking(RoomLeft::Full),
            Some(libc::EFBIG) => fault.lacking(RoomLeft::Limited),
            // What is open is there, unless another client of the file system has removed or replaced it.
            Some(libc::ESTALE) => fault.as_kind(FaultKind::Outdated),
            Some(libc::ENOENT) if self.verb == "reading" && !what.is_empty() => fault.as_kind(FaultKind::Outdated),
            _ => fault,
        };
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => fault.hint(
                "the file system is full or over quota: free space, then write the same again \
                 (delete() and steps.keep() of a Zarr store that is open in mode 'r+' need none)",
            ),
            Some(libc::EFBIG) => {
                fault.hint("raise the limit on the length of files (ulimit -f), or look how long they may be there")
            }
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
                fault.hint("check owner and permissions of the directory, and that the file system is not read-only")
            }
            Some(libc::ESTALE) => fault.hint(
                "another client of the file system removed or replaced it, and this one does not know yet: try again",
            ),
            Some(libc::EMFILE | libc::ENFILE) => fault.hint("raise the limit on open files (ulimit -n)"),
            _ => fault,
        }
    }

    /// The same of what is open.
    pub(crate) fn failed_open(&self, error: &io::Error) -> Fault {
        self.failed(" while it is open", error)
    }

    pub(crate) fn corrupt(&self, expected: &str, found: &str) -> Fault {
        let path = self.path.display().to_string();
        Fault::new(FaultKind::Corrupt, format!("'{path}' is damaged"))
            .about(path)
            .expected(expected, found)
            .hint("restore the file, which was truncated or overwritten, or read an earlier step")
    }
}

/// A failure of the file system, with what was being done to which path.
pub fn posix_fault(verb: &'static str, path: &Path, error: &io::Error) -> Fault {
    Doing { verb, path }.failed("", error)
}

/// What a request left that moved so many bytes by so many calls.
pub(crate) fn done(bytes: u64, calls: u64) -> Outcome {
    Outcome::Done(Moved { bytes, calls, ..Moved::default() })
}

/// Sends a range of a file's pages to disk, to its end if the length is 0, where the system can.
pub(crate) fn write_back(file: &File, start: u64, length: u64, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the descriptor belongs to the open file.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), start as i64, length as i64, flags) };
    let error = io::Error::last_os_error();
    // An error is told once to a descriptor, and so here or never.
    let unable = [libc::ENOSYS, libc::EINVAL, libc::ESPIPE, libc::EOPNOTSUPP];
    if result < 0 && !error.raw_os_error().is_some_and(|code| unable.contains(&code)) { Err(error) } else { Ok(()) }
}

/// Closes a file that was written, and says what closing says: a server with a full disk, or one that lost its disk, may
/// accept bytes and tell only now, and only once, that it could not keep them.
pub(crate) fn close(file: File) -> io::Result<()> {
    let descriptor = file.into_raw_fd();
    // SAFETY: the descriptor was the file's, which has given it up, and nothing else knows it.
    if unsafe { libc::close(descriptor) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        // Another client removed the file, and its contents with it.
        error if error.kind() == io::ErrorKind::NotFound => Ok(()),
        error => Err(error),
    }
}

/// How long the system lets this program make a file \[B\].
pub(crate) fn file_bytes_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the place is valid for the call, which fills it in or leaves it.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// A file system, to be made durable as a whole.
pub(crate) struct FileSystem(PathBuf, File);

impl FileSystem {
    /// The one that holds a path, if it is one of this host: elsewhere `syncfs` may return before the server has anything (FUSE
    /// tells nobody of it). Errors from now on are reported by [`FileSystem::sync`].
    pub(crate) fn open(path: &Path) -> Result<Option<FileSystem>, Fault> {
        let file = File::open(path).map_err(|error| posix_fault("opening", path, &error))?;
        let late = at_hand::reach(&file).tells_late();
        Ok((!late).then(|| FileSystem(path.to_path_buf(), file)))
    }

    /// Makes everything on it durable.
    pub(crate) fn sync(&self) -> Result<(), Fault> {
        // SAFETY: the descriptor belongs to the open file.
        let result = unsafe { libc::syncfs(self.1.as_raw_fd()) };
        if result == 0 {
            return Ok(());
        }
        Err(posix_fault("syncing the file system of", &self.0, &io::Error::last_os_error()))
    }
}
