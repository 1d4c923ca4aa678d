//! Copies of the process for tests.

/// A copy of this process, with its memory, that does nothing until it is dropped.
pub(crate) struct Forked(pub(crate) i32);

impl Forked {
    /// With one descriptor of this process.
    pub(crate) fn with(descriptor: i32) -> Forked {
        // SAFETY: the child makes system calls only, which is allowed after a fork, also from a threaded process.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // With a copy of the others it would keep the locks of tests that run beside this one.
            for (first, last) in [(0, descriptor - 1), (descriptor + 1, i32::MAX)] {
                // SAFETY: closes descriptors of the child.
                unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
            }
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
        Forked(pid)
    }

    /// Without any.
    pub(crate) fn new() -> Forked {
        Forked::with(-1)
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        // SAFETY: ends the child of this object, and waits for it; no memory is touched.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}
