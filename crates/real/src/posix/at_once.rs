//! Reads of what the system's cache holds, carried out by the caller at once: short ones, and longer ones where ranks need
//! all cores.
//!
//! Handing a request to the worker and being woken by its answer takes longer than a short read itself, above all where
//! ranks share cores. Nothing here waits for a disk or for a server: a name that the kernel does not know by heart, or
//! bytes that are not in the cache, are left to the worker.

use super::content::Source;
use super::lists::ListRead;
use super::mapped;
use super::sieve::Sieve;
use super::windows;
use crate::doing::done;
use hyperslab_pack::try_for_each_run;
use hyperslab_world::{Moves, Outcome};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest requests that are carried out at once \[B\].
#[derive(Clone, Copy)]
pub(super) struct Most {
    pub(super) read: u64,
    pub(super) write: u64,
}

/// Where a core is free for the worker: copying more takes longer than waking it.
pub(super) const BYTES_MAX: Most = Most { read: 256 << 10, write: 256 << 10 };
/// Where ranks need all cores: the worker would take one from a rank, and gains nothing by working beside it. Reads of what is
/// in the cache end soon; a write may have to wait for the disk, and the rank tells nobody meanwhile that it goes on.
pub(super) const CROWDED_BYTES_MAX: Most = Most { read: 64 << 20, write: 4 << 20 };

/// Reads from a file, if that needs no waiting; `None` when the worker shall do it, who may meet parts of it again.
pub(super) fn read(file: &File, moves: &Moves, maps: bool) -> Option<Outcome> {
    let mapped = if maps { mapped::read(file, moves) } else { None };
    if let Some(mappings) = mapped {
        return Some(done(moves.bytes(), mappings));
    }
    // A list has a run, and so a part of a call, for each element.
    if ListRead::of(moves).is_some() || moves.bytes() > BYTES_MAX.read && windows::are_worth_it(moves) {
        return None;
    }
    let mut sieve = Sieve::of_cached(file);
    for nest in moves.nests() {
        let each = try_for_each_run(&nest, moves.there.element.bytes(), |memory, offset, length| {
            let run = Source::new(moves, memory, length).map_err(drop)?;
            sieve.add(run, offset as u64).map_err(drop)
        });
        each.ok()?;
    }
    sieve.flush().ok()?;
    Some(done(moves.bytes(), sieve.calls()))
}

/// Opens a file whose name the kernel has in its own cache.
pub(super) fn open(path: &Path) -> Option<File> {
    // Not to block: a pipe would wait for somebody who writes.
    let file = found(path, libc::O_RDONLY | libc::O_NONBLOCK)?;
    file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
}

/// The mount below which a file or a directory lies whose name the kernel has in its own cache; none where that is a link. Neither
/// the file nor a server is asked.
pub(super) fn mount_at(path: &Path) -> Option<u64> {
    mount_of(&found(path, libc::O_PATH | libc::O_NOFOLLOW)?)
}

/// The same of what is open, as a number that no other mount gets until the system starts again (Linux 6.8).
pub(super) fn mount_of(file: &File) -> Option<u64> {
    // SAFETY: all fields are numbers, of which zero is one.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    let (flags, mask) = (libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC, libc::STATX_TYPE | libc::STATX_MNT_ID_UNIQUE);
    // SAFETY: the descriptor belongs to the file, the name is empty and ends with a zero byte, and `told` has room for the
    // answer.
    let result = unsafe { libc::statx(file.as_raw_fd(), c"".as_ptr(), flags, mask, &mut told) };
    let is_link = u32::from(told.stx_mode) & libc::S_IFMT == libc::S_IFLNK;
    (result == 0 && !is_link && told.stx_mask & libc::STATX_MNT_ID_UNIQUE != 0).then_some(told.stx_mnt_id)
}

/// What has a name that the kernel has in its own cache.
fn found(path: &Path, flags: i32) -> Option<File> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all fields are numbers, of which zero is one.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the name ends with a zero byte, and `how` is as large as is said.
    let opened = unsafe {
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw mut how, size_of::<libc::open_how>())
    };
    let descriptor = i32::try_from(opened).ok().filter(|&opened| opened >= 0)?;
    // SAFETY: the descriptor was opened just now, and nobody else knows it.
    Some(unsafe { File::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{ElementType, IndexSet, Kind, Region, View};
    use hyperslab_pack::Memory;
    use std::io;
    use std::sync::Arc;

    fn moves(memory: &Memory, at: u64, count: u64) -> Moves {
        let element = ElementType::native(Kind::UInt8);
        let region = Region { dims: [IndexSet::range(0, count)].into_iter().collect() };
        let view = |base: u64| Arc::new(View::held(&region, base as i64, &[1], element));
        Moves { region: region.clone(), memory: memory.clone(), here: view(0), there: view(at) }
    }

    /// Whether the system does not know one of the two calls for this file.
    fn is_refused(path: &Path) -> bool {
        let unknown = |error: io::Error| {
            matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::EOPNOTSUPP))
        };
        let Some(file) = open(path) else { return unknown(io::Error::last_os_error()) };
        let mut byte = 0u8;
        let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
        // SAFETY: the piece is one byte that lives until after the call.
        let read = unsafe { libc::preadv2(file.as_raw_fd(), &raw const piece, 1, 0, libc::RWF_NOWAIT) };
        read < 0 && unknown(io::Error::last_os_error())
    }

    #[test]
    fn what_is_cached_is_read_and_all_else_left_to_the_worker() {
        let path = std::env::temp_dir().join(format!("hyperslab-at-once-{}", std::process::id()));
        let bytes: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let memory = Memory::from_vec(vec![0; 5000]);
        let at_once = |at, count| read(&open(&path)?, &moves(&memory, at, count), true);
        let opened = File::open(&path).unwrap();
        assert_eq!(mount_at(&path), mount_of(&opened));
        assert_eq!(mount_at(path.parent().unwrap()), mount_of(&opened));
        match at_once(70_000, 5000) {
            Some(outcome) => {
                assert!(matches!(outcome, Outcome::Done(moved) if moved.bytes == 5000 && moved.calls == 1));
                assert_eq!(memory.to_vec(0, 5000), bytes[70_000..75_000]);
            }
            // Where a kernel, a filter or a file system does not know such calls, the worker does all of it.
            None => assert!(is_refused(&path), "what was just written is in the cache, but was not read"),
        }
        assert!(at_once(99_000, 5000).is_none(), "the worker tells that the file is too short");
        std::fs::remove_file(&path).unwrap();
        assert!(at_once(0, 5).is_none(), "the worker tells that there is no such file");
        assert!(mount_at(&path).is_none());
        std::os::unix::fs::symlink("/", &path).unwrap();
        assert!(mount_at(&path).is_none(), "what a link leads to may be elsewhere");
        std::fs::remove_file(&path).unwrap();
    }
}
