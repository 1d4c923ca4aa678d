//! Pages of mapped files that are lost while somebody reads them.
//!
//! When another program cuts a file short, or its disk fails, the kernel takes the mapped pages back and sends SIGBUS to whoever
//! touches them (mmap(2)), which ends the process. Here such a page is replaced by zeros, and whoever watches the mapping learns that
//! what it read is worth nothing. All other signals of that kind go to whoever wanted them before.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering, compiler_fence};

/// Addresses of a mapping that a thread is reading. The signal comes to that thread, within whose handler nothing here changes.
struct MappedRange {
    /// By the system's number; none of them is zero.
    thread: AtomicI32,
    low: AtomicUsize,
    high: AtomicUsize,
    lost: AtomicBool,
}

/// As many at a time as there are ranks on a large node, were they all threads.
static WATCHED: [MappedRange; 512] = [const {
    MappedRange {
        thread: AtomicI32::new(0),
        low: AtomicUsize::new(0),
        high: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
    }
}; 512];

/// Who got the signal before; null before anybody is watched.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Watches a mapping that this thread reads, as long as it lives.
pub(super) struct LossWatch(&'static MappedRange, PhantomData<*const u8>);

impl LossWatch {
    /// `None` where lost pages would end the process: somebody else has the signal by now, this thread does not let it in, or
    /// too many are watched.
    pub(super) fn over(address: usize, bytes: usize) -> Option<LossWatch> {
        if !is_ours() || !is_let_in() {
            return None;
        }
        let thread = this_thread();
        let take = |watched: &&MappedRange| {
            watched.thread.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let watched = WATCHED.iter().find(take)?;
        watched.low.store(address, Ordering::Relaxed);
        watched.high.store(address + bytes, Ordering::Relaxed);
        watched.lost.store(false, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(LossWatch(watched, PhantomData))
    }

    /// Whether something was lost so far.
    pub(super) fn has_lost(&self) -> bool {
        // What was read was read before.
        compiler_fence(Ordering::SeqCst);
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl Drop for LossWatch {
    fn drop(&mut self) {
        self.0.thread.store(0, Ordering::Release);
    }
}

/// Whether the signal comes here; the first time, it is asked for. Whoever has asked for it since keeps it.
fn is_ours() -> bool {
    static ASKED: Once = Once::new();
    ASKED.call_once(ask);
    handler_of(&now()) == on_signal as *const () as usize
}

/// Who gets the signal.
fn now() -> libc::sigaction {
    // SAFETY: all fields are numbers, of which zero is one.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: changes nothing, and `now` has room for the answer.
    unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) };
    now
}

fn handler_of(action: &libc::sigaction) -> usize {
    action.sa_sigaction
}

fn ask() {
    // Kept for good, since a signal may come at any time.
    BEFORE.store(Box::into_raw(Box::new(now())), Ordering::Release);
    // SAFETY: all fields are numbers, of which zero is one.
    let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
    ours.sa_sigaction = on_signal as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler calls only what a handler may call, and lives as long as the process.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) };
}

/// Whether this thread lets the signal in; a thread that does not is ended by it.
fn is_let_in() -> bool {
    // SAFETY: a set of signals is numbers, of which zero is one; asking for it changes nothing.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut blocked) == 0
            && libc::sigismember(&raw const blocked, libc::SIGBUS) == 0
    }
}

/// Replaces what is lost of a mapping that is watched. Runs as a signal handler: it takes no lock and allocates nothing.
extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a valid description with the signal.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // What programs send has a number that is not above zero, and no address.
    if code <= 0 {
        return pass_on(signal, info, context, true);
    }
    let thread = this_thread();
    for watched in WATCHED.iter().filter(|watched| watched.thread.load(Ordering::Relaxed) == thread) {
        let (low, high) = (watched.low.load(Ordering::Relaxed), watched.high.load(Ordering::Relaxed));
        if (low..high).contains(&address) && put_zeros(address, high) {
            return watched.lost.store(true, Ordering::Relaxed);
        }
    }
    pass_on(signal, info, context, false);
}

/// The number that the system has for this thread.
fn this_thread() -> i32 {
    // SAFETY: asks the system for a number.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Maps zeros from the page of an address to the end of its mapping: what lies behind is worth nothing, either.
fn put_zeros(address: usize, high: usize) -> bool {
    // SAFETY: asks the system for numbers; then replaces pages of a mapping that this library made and only reads, and which lives,
    // since a thread is reading it. What the call leaves in `errno` is put back.
    unsafe {
        let kept = *libc::__errno_location();
        let first = address & !(libc::sysconf(libc::_SC_PAGESIZE) as usize - 1);
        let flags = i64::from(libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // Not by the function of that name, which libraries of networks replace by one of their own.
        let made = libc::syscall(libc::SYS_mmap, first, high - first, i64::from(libc::PROT_READ), flags, -1i64, 0i64);
        *libc::__errno_location() = kept;
        made != -1
    }
}

/// Gives a signal that is not about mappings here to whoever got it before. One that was `sent` does not come again by itself.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void, sent: bool) {
    // SAFETY: it was set before this handler was, to what is never freed.
    let before = unsafe { &*BEFORE.load(Ordering::Acquire) };
    if before.sa_flags & libc::SA_RESETHAND != 0 {
        // It wanted to be asked once.
        // SAFETY: the kernel's own action is a valid one.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    match handler_of(before) {
        libc::SIG_IGN if sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: the kernel's own action is a valid one. What is raised comes when this handler has returned, as does what
            // the kernel found.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                if sent {
                    libc::raise(signal);
                }
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: whoever asked for the signal with this flag gave a function of this type.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without the flag it takes the number alone.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    const BYTES: usize = 64 << 10;

    /// A mapping of a file that is empty by now.
    fn lost() -> *const u8 {
        let path = std::env::temp_dir().join(format!(
            "hyperslab-lost-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, vec![7; BYTES]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        // SAFETY: a new mapping.
        let made =
            unsafe { libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(made, libc::MAP_FAILED);
        file.set_len(0).unwrap();
        std::fs::remove_file(&path).unwrap();
        made as *const u8
    }

    #[test]
    fn lost_pages_are_zeros_for_whoever_watches() {
        let address = lost();
        let watch = LossWatch::over(address as usize, BYTES).expect("nobody else wants the signal");
        assert!(!watch.has_lost());
        // SAFETY: it is mapped, and watched.
        assert_eq!(unsafe { address.add(BYTES / 2).read_volatile() }, 0);
        assert!(watch.has_lost());
        drop(watch);
        // Its place is free again.
        assert!(
            (0..=WATCHED.len()).all(|_| LossWatch::over(address as usize, BYTES).is_some_and(|new| !new.has_lost()))
        );
    }

    #[test]
    fn whoever_is_not_watched_dies_of_it_as_before() {
        let address = lost();
        drop(LossWatch::over(address as usize, BYTES));
        // SAFETY: the child touches memory and nothing else.
        let status = unsafe {
            match libc::fork() {
                0 => {
                    address.read_volatile();
                    libc::_exit(0)
                }
                child => {
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    status
                }
            }
        };
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "{status:#x}");
    }

    #[test]
    fn a_thread_that_keeps_the_signal_out_watches_nothing() {
        let address = lost();
        let address = address as usize;
        let watched = std::thread::spawn(move || {
            // SAFETY: a set of signals of this thread alone.
            unsafe {
                let mut signals: libc::sigset_t = std::mem::zeroed();
                libc::sigaddset(&raw mut signals, libc::SIGBUS);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, ptr::null_mut());
            }
            LossWatch::over(address, BYTES).is_some()
        });
        assert!(!watched.join().unwrap());
    }
}
