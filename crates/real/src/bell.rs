//! Bells: what one thread waits for, and others ring, of this process or of a neighbour.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// A bell that one thread waits for and others ring. A ring that nobody waits for is kept; several are kept as one.
#[derive(Clone)]
pub struct Bell(Arc<Kind>);

enum Kind {
    /// Rung in this process only.
    Inside(Mutex<bool>, Condvar),
    /// Rung by whoever holds a copy of the descriptor, too.
    Shared(Shared),
}

/// A counter of the kernel that can be waited for, with which a bell may be rung from other processes.
struct Shared {
    event: File,
    /// Whether anybody rang from this process since it was last looked at.
    inside: AtomicBool,
    /// Whether anybody rang from another process.
    from_outside: AtomicBool,
}

/// What a ring adds to the counter: within the process, and from another one.
const INSIDE: u64 = 1;
const OUTSIDE: u64 = 1 << 32;

/// A wait without a limit looks again so often.
const LONG: Duration = Duration::from_secs(3600);

impl Default for Bell {
    fn default() -> Bell {
        Bell(Arc::new(Kind::Inside(Mutex::new(false), Condvar::new())))
    }
}

impl Bell {
    /// A bell that neighbours can ring, when they get at its descriptor; one for this process, where the system has none.
    pub(crate) fn shared() -> Bell {
        // SAFETY: asks for a new descriptor and touches no memory.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Bell::default();
        }
        // SAFETY: the descriptor is open, and nobody else has it.
        let event = unsafe { File::from_raw_fd(descriptor) };
        Bell(Arc::new(Kind::Shared(Shared {
            event,
            inside: AtomicBool::new(false),
            from_outside: AtomicBool::new(false),
        })))
    }

    /// Rings: ends the wait that is going on, or else the next one.
    pub fn ring(&self) {
        match &*self.0 {
            Kind::Inside(rung, changed) => {
                *lock(rung) = true;
                changed.notify_one();
            }
            Kind::Shared(shared) => {
                shared.inside.store(true, Ordering::Release);
                add(&shared.event, INSIDE);
            }
        }
    }

    /// Whether somebody of this process rang since the last look, without asking the system: for who looks again and again, and
    /// finds by himself what others ring for. A ring that is seen so may also end the next wait.
    pub(crate) fn was_rung_here(&self) -> bool {
        match &*self.0 {
            Kind::Inside(rung, _) => std::mem::take(&mut *lock(rung)),
            Kind::Shared(shared) => shared.inside.swap(false, Ordering::Acquire),
        }
    }

    /// Waits for a ring up to `limit`; says whether there was one, and forgets it.
    pub fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now().checked_add(limit);
        // A limit beyond the clock's range is no limit; waking up once an hour for it costs nothing.
        let left = || deadline.map_or(LONG, |end| end.saturating_duration_since(Instant::now()));
        match &*self.0 {
            Kind::Inside(rung, changed) => {
                let mut rung = lock(rung);
                while !*rung {
                    let left = left();
                    if left.is_zero() {
                        return false;
                    }
                    rung = changed.wait_timeout(rung, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                std::mem::take(&mut *rung)
            }
            Kind::Shared(shared) => loop {
                if shared.forget() {
                    return true;
                }
                let left = left();
                if left.is_zero() {
                    return false;
                }
                shared.sleep(left);
            },
        }
    }

    /// Whether somebody rang from another process, ever.
    pub(crate) fn was_rung_from_outside(&self) -> bool {
        matches!(&*self.0, Kind::Shared(shared) if shared.from_outside.load(Ordering::Relaxed))
    }

    /// What others open to ring it: the number of its descriptor in this process.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        match &*self.0 {
            Kind::Inside(..) => None,
            Kind::Shared(shared) => Some(shared.event.as_raw_fd()),
        }
    }
}

impl Shared {
    /// Forgets all rings; says whether there were any.
    fn forget(&self) -> bool {
        let mut count = [0; 8];
        // It gives all or nothing, and nothing where the counter is zero.
        let rung = (&self.event).read(&mut count).is_ok_and(|read| read == count.len());
        if rung && u64::from_ne_bytes(count) >= OUTSIDE {
            self.from_outside.store(true, Ordering::Relaxed);
        }
        rung
    }

    /// Waits until the counter is more than zero, or time is up, or a signal comes.
    fn sleep(&self, limit: Duration) {
        let mut polled = libc::pollfd { fd: self.event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
        // SAFETY: both places are valid for the call, which keeps no reference to them.
        unsafe { libc::ppoll(&raw mut polled, 1, &raw const time, std::ptr::null()) };
    }
}

/// A bell of another process.
pub(crate) struct FarBell(File);

impl FarBell {
    /// That of a descriptor which was found to be a bell's.
    pub(crate) fn of(event: File) -> FarBell {
        FarBell(event)
    }

    pub(crate) fn ring(&self) {
        add(&self.0, OUTSIDE);
    }
}

/// Adds to a counter. It fails only where so much was added before that whoever waits is awake.
fn add(mut event: &File, rings: u64) {
    let _ = event.write(&rings.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_ends_a_wait_and_is_kept_for_the_next() {
        for bell in [Bell::default(), Bell::shared()] {
            let (start, copy) = (Instant::now(), bell.clone());
            let ringer = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                copy.ring();
            });
            assert!(bell.wait(Duration::from_secs(30)));
            ringer.join().unwrap();
            assert!(!bell.wait(Duration::from_millis(5)), "the wait has used up the ring");
            bell.ring();
            bell.ring();
            assert!(bell.wait(Duration::from_secs(30)), "kept");
            assert!(!bell.wait(Duration::ZERO), "several are one");
            assert!(start.elapsed() < Duration::from_secs(15));
        }
    }

    #[test]
    fn a_ring_from_outside_is_told_from_others() {
        let bell = Bell::shared();
        let Kind::Shared(shared) = &*bell.0 else { panic!("this system has no shared bells") };
        let far = FarBell::of(shared.event.try_clone().unwrap());
        bell.ring();
        assert!(bell.wait(Duration::ZERO) && !bell.was_rung_from_outside());
        bell.ring();
        assert!(bell.was_rung_here() && !bell.was_rung_here());
        far.ring();
        assert!(!bell.was_rung_here() && bell.wait(Duration::ZERO) && bell.was_rung_from_outside());
        assert!(!bell.wait(Duration::ZERO));
    }
}
