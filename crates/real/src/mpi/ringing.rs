//! Waking neighbours up, and knowing whether they still run.
//!
//! MPI tells nobody that a message has come: who waits must look. Where ranks share cores, those that look take the
//! processor from the one they wait for, and those that sleep oversleep the answer. So a rank that sends to one on the
//! same host rings its bell, on which that one sleeps.
//!
//! The first datagram from each rank to another is a greeting, which says where the sender's bell is: the number of its
//! descriptor, which the kernel copies for processes that may reach each other's memory (`pidfd_getfd`). Where it does
//! not, ranks look now and then, as before. It also says which process the sender is, of which a descriptor tells when it
//! ends (`pidfd_open`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};

use crate::bell::{Bell, FarBell};
use crate::neighbour::{Identity, Reach, reach};

/// Neighbours that are rung at most: each takes two descriptors, and a process has a thousand.
const BELLS_MAX: usize = 64;
/// No descriptor, or no number of a counter.
const NONE: i64 = -1;

/// Whose bells can be rung, and who knows of this rank's.
pub(super) struct Ringing {
    greeting: Vec<u8>,
    greeted: BTreeSet<u32>,
    /// Who sent a greeting, if it is on this host.
    known: BTreeMap<u32, Option<Neighbour>>,
    neighbours: usize,
}

/// A rank on this host.
struct Neighbour {
    /// Tells when it ends.
    process: File,
    /// If it can be rung.
    bell: Option<FarBell>,
}

impl Ringing {
    /// For a rank that sleeps on this bell, or on none that others should ring.
    pub(super) fn new(bell: Option<&Bell>) -> Ringing {
        let place = bell.and_then(Bell::descriptor).and_then(|fd| Some((i64::from(fd), counter_number(fd)?)));
        let (descriptor, number) = place.unwrap_or((NONE, NONE));
        let mut greeting = Identity::mine().to_bytes().to_vec();
        greeting.extend(descriptor.to_le_bytes());
        greeting.extend(number.to_le_bytes());
        Ringing { greeting, greeted: BTreeSet::new(), known: BTreeMap::new(), neighbours: 0 }
    }

    /// What is to be sent to a rank before anything else is.
    pub(super) fn greeting(&mut self, to: u32) -> Option<Vec<u8>> {
        self.greeted.insert(to).then(|| self.greeting.clone())
    }

    /// Takes what a rank sent, if it is its greeting.
    pub(super) fn hear(&mut self, from: u32, bytes: &[u8]) -> bool {
        if self.known.contains_key(&from) {
            return false;
        }
        let neighbour = if self.neighbours < BELLS_MAX { neighbour(bytes) } else { None };
        self.neighbours += usize::from(neighbour.is_some());
        self.known.insert(from, neighbour);
        true
    }

    /// Wakes a rank up that has something to look at.
    pub(super) fn ring(&self, rank: u32) {
        if let Some(Some(Neighbour { bell: Some(bell), .. })) = self.known.get(&rank) {
            bell.ring();
        }
    }

    /// Whether a rank on this host has ended.
    pub(super) fn is_gone(&self, rank: u32) -> bool {
        self.known.get(&rank).and_then(Option::as_ref).is_some_and(|neighbour| has_ended(&neighbour.process))
    }
}

/// Whom a greeting comes from, if it is on this host.
fn neighbour(greeting: &[u8]) -> Option<Neighbour> {
    let (identity, place) = greeting.split_first_chunk()?;
    let identity = Identity::from_bytes(identity);
    if !identity.is_on_this_host() {
        return None;
    }
    let process = descriptor_of(i64::from(identity.pid()), libc::SYS_pidfd_open, 0)?;
    let bell = far_bell(&identity, &process, place);
    Some(Neighbour { process, bell })
}

/// Whether a process has ended; its descriptor can be read then (pidfd_open(2)).
fn has_ended(process: &File) -> bool {
    let mut asked = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which is ours, of a descriptor that is open.
    let ready = unsafe { libc::poll(&raw mut asked, 1, 0) };
    ready > 0 && asked.revents & libc::POLLIN != 0
}

/// The bell that a greeting tells of, if there is one and the kernel gives it.
fn far_bell(identity: &Identity, process: &File, place: &[u8]) -> Option<FarBell> {
    let word = |at: usize| Some(i64::from_le_bytes(*place.get(at..)?.first_chunk()?));
    let (descriptor, number) = (word(0)?, word(8)?);
    if number == NONE || reach(identity) != Reach::Neighbour {
        return None;
    }
    let event = descriptor_of(i64::from(process.as_raw_fd()), libc::SYS_pidfd_getfd, descriptor)?;
    // The number of a descriptor may mean another file by now; that of a counter never does.
    (counter_number(event.as_raw_fd()) == Some(number)).then(|| FarBell::of(event))
}

/// What one of the two system calls gives that make a descriptor of a number and another one.
fn descriptor_of(first: i64, call: libc::c_long, second: i64) -> Option<File> {
    // SAFETY: both calls take numbers, the last of which is reserved, and touch no memory.
    let descriptor = unsafe { libc::syscall(call, first, second, 0) };
    // SAFETY: a new descriptor, which nobody else has.
    i32::try_from(descriptor).ok().filter(|&fd| fd >= 0).map(|fd| unsafe { File::from_raw_fd(fd) })
}

/// The number that the kernel gives a counter, the same in all processes.
fn counter_number(descriptor: i32) -> Option<i64> {
    let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    told.lines().find_map(|line| line.strip_prefix("eventfd-id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forked::Forked;

    #[test]
    fn each_rank_is_greeted_once_and_its_greeting_is_no_message() {
        let mut ringing = Ringing::new(None);
        let greeting = ringing.greeting(3).unwrap();
        assert_eq!((ringing.greeting(3), ringing.greeting(1).as_ref()), (None, Some(&greeting)));
        assert!(ringing.hear(3, &greeting));
        assert!(!ringing.hear(3, &greeting), "what comes second is a message, whatever it says");
        ringing.ring(3);
        ringing.ring(7);
    }

    #[test]
    fn the_bell_of_a_neighbour_rings_and_what_took_its_place_does_not() {
        let bell = Bell::shared();
        let mut greeting = Ringing::new(Some(&bell)).greeting;
        let child = Forked::with(bell.descriptor().unwrap());
        greeting[24..28].copy_from_slice(&child.0.to_le_bytes());
        // Both processes have the bell, so that what rings in the child is heard here.
        let Some(far) = neighbour(&greeting).and_then(|neighbour| neighbour.bell) else {
            let error = std::io::Error::last_os_error();
            // Filters of containers forbid it.
            assert!(matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)), "{error}");
            return;
        };
        assert!(!bell.wait(std::time::Duration::ZERO));
        far.ring();
        assert!(bell.wait(std::time::Duration::ZERO) && bell.was_rung_from_outside());
        // The same descriptor, but of another counter than the one that was announced.
        let last = greeting.len() - 8;
        greeting[last..].copy_from_slice(&i64::MAX.to_le_bytes());
        assert!(neighbour(&greeting).is_some_and(|neighbour| neighbour.bell.is_none()));
    }

    #[test]
    fn the_end_of_a_neighbour_is_seen() {
        let mut ringing = Ringing::new(None);
        let mut greeting = ringing.greeting(1).unwrap();
        let child = Forked::new();
        greeting[24..28].copy_from_slice(&child.0.to_le_bytes());
        ringing.hear(1, &greeting);
        assert!(!ringing.is_gone(1) && !ringing.is_gone(2));
        drop(child);
        assert!(ringing.is_gone(1));
    }

    #[test]
    fn what_is_no_greeting_rings_no_bell() {
        for bytes in [&[][..], &[1; 28], &[255; 44], &[0; 100]] {
            assert!(neighbour(bytes).is_none());
        }
        // This process itself needs no bell.
        let own = neighbour(&Ringing::new(Some(&Bell::shared())).greeting);
        assert!(own.is_none_or(|own| own.bell.is_none()));
    }
}
