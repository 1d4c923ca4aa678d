//! Copies between this process and another one, many runs of bytes to a system call.

use std::io;
use std::mem::take;

/// Most runs of one side in a call: the kernel's `IOV_MAX`.
const RUNS_MAX: usize = 1024;
/// Most bytes in a call \[B\]; far below the kernel's 2 GiB, and often enough to notice signals.
const CALL_BYTES_MAX: usize = 64 << 20;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// From the peer to here.
    Pull,
    /// From here to the peer.
    Push,
}

/// Runs of bytes that wait to be copied from or to one peer. Runs that touch on one side are one run there.
pub(super) struct Batch {
    pid: i32,
    direction: Direction,
    local: Vec<libc::iovec>,
    remote: Vec<libc::iovec>,
    bytes: usize,
}

impl Batch {
    /// No runs yet, between here and the process `pid`.
    pub(super) fn new(pid: i32, direction: Direction) -> Self {
        Batch { pid, direction, local: Vec::new(), remote: Vec::new(), bytes: 0 }
    }

    /// Adds a run of `bytes` bytes, and copies what has gathered whenever a call is full.
    ///
    /// # Safety
    /// Until the next [`Batch::flush`], the local run must stay valid (for writing when pulling) and be used by
    /// nobody else; the peer's likewise, except that an invalid address there gives an error.
    pub(super) unsafe fn add(&mut self, mut local: *mut u8, mut remote: u64, mut bytes: usize) -> io::Result<()> {
        while bytes > 0 {
            if self.local.len() >= RUNS_MAX || self.remote.len() >= RUNS_MAX || self.bytes >= CALL_BYTES_MAX {
                // SAFETY: all runs so far were added under the same promise.
                unsafe { self.flush()? };
            }
            let part = bytes.min(CALL_BYTES_MAX - self.bytes);
            extend(&mut self.local, local.addr(), part, || local.cast());
            extend(&mut self.remote, remote as usize, part, || std::ptr::without_provenance_mut(remote as usize));
            self.bytes += part;
            local = local.wrapping_add(part);
            remote += part as u64;
            bytes -= part;
        }
        Ok(())
    }

    /// Copies all runs that have gathered.
    ///
    /// # Safety
    /// As for [`Batch::add`].
    pub(super) unsafe fn flush(&mut self) -> io::Result<()> {
        let (mut local, mut remote) = (&mut self.local[..], &mut self.remote[..]);
        let mut left = take(&mut self.bytes);
        while left > 0 {
            let (counts, runs) = ((local.len() as u64, remote.len() as u64), (local.as_ptr(), remote.as_ptr()));
            // SAFETY: both lists are valid, and so is the memory that the local one names, by the caller's word.
            let copied = unsafe {
                match self.direction {
                    Direction::Pull => libc::process_vm_readv(self.pid, runs.0, counts.0, runs.1, counts.1, 0),
                    Direction::Push => libc::process_vm_writev(self.pid, runs.0, counts.0, runs.1, counts.1, 0),
                }
            };
            let cause = match copied {
                1.. => {
                    left -= copied as usize;
                    (local, remote) = (advance(local, copied as usize), advance(remote, copied as usize));
                    continue;
                }
                0 => io::Error::from(io::ErrorKind::UnexpectedEof),
                _ => io::Error::last_os_error(),
            };
            if cause.kind() != io::ErrorKind::Interrupted {
                return Err(self.failed(left, cause));
            }
        }
        self.local.clear();
        self.remote.clear();
        Ok(())
    }

    fn failed(&self, left: usize, cause: io::Error) -> io::Error {
        let (pid, first) = (self.pid, self.remote.first().map_or(0, |run| run.iov_base.addr()));
        let what = match self.direction {
            Direction::Pull => "reading the memory of",
            Direction::Push => "writing into the memory of",
        };
        let runs = self.remote.len();
        io::Error::new(
            cause.kind(),
            format!("{what} process {pid} ({runs} runs from address {first:#x} on, {left} bytes left): {cause}"),
        )
    }
}

/// Adds a run, or lengthens the last one when the new one begins where that ends.
fn extend(runs: &mut Vec<libc::iovec>, address: usize, bytes: usize, base: impl Fn() -> *mut libc::c_void) {
    match runs.last_mut() {
        Some(last) if last.iov_base.addr() + last.iov_len == address => last.iov_len += bytes,
        _ => runs.push(libc::iovec { iov_base: base(), iov_len: bytes }),
    }
}

/// What is left of a list of runs after its first `bytes` bytes: a call may do only part of its work.
fn advance(mut runs: &mut [libc::iovec], mut bytes: usize) -> &mut [libc::iovec] {
    while let Some(first) = runs.first_mut() {
        if bytes < first.iov_len {
            first.iov_base = first.iov_base.wrapping_byte_add(bytes);
            first.iov_len -= bytes;
            break;
        }
        bytes -= first.iov_len;
        runs = &mut runs[1..];
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(address: usize, bytes: usize) -> libc::iovec {
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: bytes }
    }

    fn plain(runs: &[libc::iovec]) -> Vec<(usize, usize)> {
        runs.iter().map(|run| (run.iov_base.addr(), run.iov_len)).collect()
    }

    #[test]
    fn runs_that_touch_are_one() {
        let mut runs = Vec::new();
        for (address, bytes) in [(100, 10), (110, 5), (116, 4), (120, 1)] {
            extend(&mut runs, address, bytes, || std::ptr::without_provenance_mut(address));
        }
        assert_eq!(plain(&runs), [(100, 15), (116, 5)]);
    }

    #[test]
    fn partial_copies_go_on_where_they_stopped() {
        let fresh = || [run(100, 10), run(200, 5), run(300, 1)];
        assert_eq!(plain(advance(&mut fresh(), 3)), [(103, 7), (200, 5), (300, 1)]);
        assert_eq!(plain(advance(&mut fresh(), 10)), [(200, 5), (300, 1)]);
        assert_eq!(plain(advance(&mut fresh(), 14)), [(204, 1), (300, 1)]);
        assert_eq!(plain(advance(&mut fresh(), 16)), []);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        // Beyond the largest process number that Linux gives.
        let mut batch = Batch::new(1 << 23, Direction::Pull);
        let mut place = [0u8; 8];
        // SAFETY: the place lives until after the flush.
        let error = unsafe { batch.add(place.as_mut_ptr(), 4096, 8).and_then(|()| batch.flush()) }.unwrap_err();
        assert!(error.to_string().contains("process 8388608 (1 runs from address 0x1000 on, 8 bytes left)"), "{error}");
    }
}
