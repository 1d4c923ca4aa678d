//! Open files: one handle that goes through the cache of the system and, once it is asked for, one that does not.

use super::at_hand::Nearness;
use super::content::Source;
use crate::regular;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What direct requests are aligned to where the system does not tell \[B\].
const ALIGNMENT: u64 = 4096;

/// Device and inode.
pub(super) type Identity = (u64, u64);

/// A file kept open.
pub(super) struct Handle {
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
    pub(super) writable: bool,
    pub(super) identity: Identity,
    pub(super) reach: Nearness,
    direct: OnceLock<Option<DirectFile>>,
}

/// The same file without the cache.
pub(super) struct DirectFile {
    pub(super) file: File,
    /// What addresses in memory must be multiples of \[B\].
    pub(super) memory_alignment: u64,
    /// What lengths of pieces in memory must be multiples of \[B\].
    length_alignment: u64,
    /// What is moved directly begins and ends at multiples of this in the file \[B\]: at least a page, so that a page
    /// that the cache holds for the rest of it is never one that changes underneath.
    pub(super) page: u64,
    /// Set after the file system refused a request that was as it asked for.
    refused: AtomicBool,
}

impl Handle {
    pub(super) fn open(path: &Path, write: bool) -> io::Result<Handle> {
        let (file, known) = regular::open_known(path, write)?;
        let identity = identity(&known);
        Ok(Handle {
            path: path.to_path_buf(),
            file: Arc::new(file),
            writable: write,
            identity,
            reach: Nearness::Far,
            direct: OnceLock::new(),
        })
    }

    /// Whether its path leads to it still.
    pub(super) fn has_its_name(&self) -> io::Result<bool> {
        Ok(identity(&std::fs::metadata(&self.path)?) == self.identity)
    }

    /// Its descriptors that wrote, to be closed.
    pub(super) fn into_files(self) -> (PathBuf, Vec<Arc<File>>) {
        if !self.writable {
            return (self.path, Vec::new());
        }
        let direct = self.direct.into_inner().flatten().map(|direct| Arc::new(direct.file));
        (self.path, direct.into_iter().chain([self.file]).collect())
    }

    /// The file without the cache, if its file system can do that.
    pub(super) fn direct(&self) -> Option<&DirectFile> {
        let direct = self.direct.get_or_init(|| DirectFile::open(self)).as_ref();
        direct.filter(|direct| !direct.refused.load(Ordering::Relaxed))
    }
}

impl DirectFile {
    fn open(handle: &Handle) -> Option<DirectFile> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(handle.writable).custom_flags(libc::O_DIRECT);
        let file = options.open(&handle.path).ok()?;
        // The name may mean another file by now.
        if identity(&file.metadata().ok()?) != handle.identity {
            return None;
        }
        let (memory_alignment, length_alignment) = alignments(&file)?;
        // SAFETY: it asks for a number.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(ALIGNMENT);
        let page = page.max(ALIGNMENT).max(length_alignment);
        Some(DirectFile { file, memory_alignment, length_alignment, page, refused: AtomicBool::new(false) })
    }

    /// Whether pieces of memory are aligned as the file system wants them.
    pub(super) fn fits(&self, pieces: &[Source]) -> bool {
        pieces.iter().all(|piece| {
            (piece.address() as u64).is_multiple_of(self.memory_alignment)
                && (piece.length() as u64).is_multiple_of(self.length_alignment)
        })
    }

    /// No more requests come here.
    pub(super) fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }
}

/// Whether requests for a file may be direct, as far as its file system tells.
pub(crate) fn passes_cache(path: &Path) -> bool {
    Handle::open(path, true).is_ok_and(|handle| handle.direct().is_some())
}

fn identity(known: &Metadata) -> Identity {
    (known.dev(), known.ino())
}

/// What addresses in memory, and offsets and lengths, must be multiples of; `None` when the file system says that
/// it has no direct requests for this file.
fn alignments(file: &File) -> Option<(u64, u64)> {
    // SAFETY: all fields are numbers, of which zero is one.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: the descriptor belongs to the open file, the name is empty and ends with a zero byte, and `told` has
    // room for the answer.
    let result = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_DIOALIGN, &mut told) };
    if result != 0 || told.stx_mask & libc::STATX_DIOALIGN == 0 {
        return Some((ALIGNMENT, ALIGNMENT));
    }
    let (memory, offset) = (u64::from(told.stx_dio_mem_align), u64::from(told.stx_dio_offset_align));
    (memory.is_power_of_two() && offset.is_power_of_two()).then_some((memory, offset))
}
