//! Whether the system's cache holds what is to be read, so that reading it does not wait for its disk. It may leave the cache
//! meanwhile, and then that disk is waited for.

use std::fs::File;
use std::os::fd::AsRawFd;

/// What the kernel reads ahead of whoever begins to read a file: so much comes into its cache together \[B\].
const PROBED_BYTES: usize = 128 << 10;

/// Whether it holds these bytes of a file, up to the second. The system looks at each page that it is asked for, so that asking for
/// more than what is read makes reading many short stretches of a long file cost the square of their number.
pub(super) fn is_cached(file: &File, (low, high): (u64, u64)) -> bool {
    if low >= high {
        return true;
    }
    // SAFETY: asks the system for a number.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0).max(1);
    match cached_pages(file, (low, high)) {
        Some(pages) => pages >= high.div_ceil(page) - low / page,
        None => (low..high).step_by(PROBED_BYTES).chain([high - 1]).all(|at| is_byte_cached(file, at)),
    }
}

/// How many pages of these bytes are in the cache (cachestat(2), Linux 6.5); `None` where the system does not say: newer ones do so only
/// to those who own the file, or may write to it.
fn cached_pages(file: &File, (low, high): (u64, u64)) -> Option<u64> {
    // From where on, and how far; then how many pages are there, dirty, on their way, gone, and gone of late. The number of the
    // call, which is the same on all processors, the library of C does not name.
    let (range, mut pages) = ([low, high - low], [0u64; 5]);
    // SAFETY: both places are valid for the call, and as large as it takes them to be; no flags.
    let failed = unsafe { libc::syscall(451, file.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    (failed == 0).then_some(pages[0])
}

/// Whether a byte of a file can be read without waiting for its disk.
fn is_byte_cached(file: &File, at: u64) -> bool {
    let mut byte = 0u8;
    let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the piece is one byte that lives until after the call.
    unsafe { libc::preadv2(file.as_raw_fd(), &raw const piece, 1, at as i64, libc::RWF_NOWAIT) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Whether the system does not know reads of this file that must not wait.
    fn is_refused(file: &File) -> bool {
        let unknown =
            |error: io::Error| matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EOPNOTSUPP));
        !is_byte_cached(file, 0) && unknown(io::Error::last_os_error())
    }

    #[test]
    fn a_file_that_was_just_written_is_cached_and_one_with_holes_is_not() {
        let path = std::env::temp_dir().join(format!("hyperslab-is-cached-{}", std::process::id()));
        std::fs::write(&path, vec![1; 100_000]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let whole = (0, 100_000);
        let by_bytes = (0..100_000).step_by(PROBED_BYTES).all(|at| is_byte_cached(&file, at));
        assert!(is_cached(&file, whole) || is_refused(&file), "what was just written is in the cache");
        let is_known = cached_pages(&file, whole).is_some_and(|pages| pages > 0);
        assert!(by_bytes || is_refused(&file));
        file.set_len(10_000_000).unwrap();
        // Bytes that are asked for one by one come into the cache, where they are in no block of the disk.
        assert!(!is_known || !is_cached(&file, (0, 10_000_000)), "nobody has read what is behind");
        assert!(is_cached(&file, whole) || is_refused(&file), "what is behind is not looked at");
        std::fs::remove_file(&path).unwrap();
    }
}
