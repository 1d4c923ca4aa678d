//! One-copy access to the memory of another process on the same machine (`process_vm_readv` and `process_vm_writev`).
//!
//! Whether it works is found by trying: a container may forbid the calls, the kernel may forbid them between
//! processes that are not parent and child (Yama), and two ranks with the same host name may be in different
//! containers. So each rank publishes an [`Identity`] with the address of a random word, and a peer that can read this
//! word, and write it, is a neighbour. All others are remote, which costs speed and nothing else.

mod cross;
mod staged;
#[cfg(test)]
mod tests;
mod tiles;

use std::hash::Hasher;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use hyperslab_layout::reach::{GAP_BYTES_MAX, goes_straight};
use hyperslab_layout::{ElementType, Nest};
use hyperslab_pack::{NotANumber, copy_raw};

use self::cross::{Batch, Direction};
use self::staged::{BUFFER_BYTES, Staged};
use self::tiles::{Tiling, Walk, in_order_of_a};

/// Environment variable that switches direct access off when it is `0`, also within one process.
const DIRECT_VARIABLE: &str = "HYPERSLAB_DIRECT";

/// What a rank tells others so that they can find out whether they reach its memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Hash of the running kernel and of the space of process numbers: `pid` means the same where this is the same.
    host: u64,
    pid: i32,
    probe_address: u64,
    probe_value: u64,
}

/// How a peer's memory is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// It is this process.
    SameProcess,
    /// It is another process, whose memory can be read and written.
    Neighbour,
    /// Only messages reach it.
    Remote,
}

impl Identity {
    /// Length of [`Identity::to_bytes`] \[B\].
    pub const BYTES: usize = 28;

    /// This process's own. Where Yama restricts access, it allows it to the user's other processes.
    pub fn mine() -> Identity {
        allow_access();
        Identity::here()
    }

    fn here() -> Identity {
        static HERE: OnceLock<(u64, u64, AtomicU64)> = OnceLock::new();
        let (host, probe_value, probe) = HERE.get_or_init(|| {
            let value = random_word();
            (host_hash(), value, value.into())
        });
        // The number is asked for anew each time, because a forked child inherits the rest.
        let pid = std::process::id() as i32;
        // Atomic, because peers write the word back as it is.
        Identity { host: *host, pid, probe_address: probe.as_ptr().addr() as u64, probe_value: *probe_value }
    }

    /// The form in which it travels.
    pub fn to_bytes(&self) -> [u8; Identity::BYTES] {
        let mut bytes = [0; Identity::BYTES];
        bytes[..8].copy_from_slice(&self.host.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.probe_address.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.probe_value.to_le_bytes());
        bytes[24..].copy_from_slice(&self.pid.to_le_bytes());
        bytes
    }

    /// The inverse of [`Identity::to_bytes`].
    pub fn from_bytes(bytes: &[u8; Identity::BYTES]) -> Identity {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let pid = i32::from_le_bytes(std::array::from_fn(|byte| bytes[24 + byte]));
        Identity { host: word(0), pid, probe_address: word(8), probe_value: word(16) }
    }

    /// Whether the number of the process means the same here.
    pub(crate) fn is_on_this_host(&self) -> bool {
        self.host == Identity::here().host
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    fn is_mine(&self) -> bool {
        *self == Identity::here()
    }
}

/// How `peer` is reached from here. It tries; whatever fails makes it [`Reach::Remote`].
pub fn reach(peer: &Identity) -> Reach {
    if std::env::var_os(DIRECT_VARIABLE).is_some_and(|value| value == "0") || peer.host != Identity::here().host {
        return Reach::Remote;
    }
    if peer.is_mine() {
        return Reach::SameProcess;
    }
    let mut word = 0u64;
    let mut probe = |direction| {
        let mut batch = Batch::new(peer.pid, direction);
        // SAFETY: the local word outlives the flush; at the peer's address only a word with the value that it
        // announced is written, and with this value.
        unsafe { batch.add((&raw mut word).cast(), peer.probe_address, 8).and_then(|()| batch.flush()).map(|()| word) }
    };
    let read = probe(Direction::Pull);
    if read.is_ok_and(|value| value == peer.probe_value) && probe(Direction::Push).is_ok() {
        Reach::Neighbour
    } else {
        Reach::Remote
    }
}

/// Copies between the memory of a peer and here, converting elements on the way. Many pieces share system calls, so what
/// was added is there only when [`Crossing::finish`] has returned. Of no use after an error.
pub struct Crossing {
    /// Whether the peer is this process.
    within: bool,
    direction: Direction,
    /// Long runs, and short ones, that wait to be copied; of no use where the peer is this process.
    batch: Batch,
    staged: Staged,
    /// What came of copies inside of this process.
    copied: Result<(), NotANumber>,
}

impl Crossing {
    /// From the memory of `peer` to here.
    pub fn pull(peer: &Identity) -> Crossing {
        Crossing::new(peer, Direction::Pull)
    }

    /// From here to the memory of `peer`.
    pub fn push(peer: &Identity) -> Crossing {
        Crossing::new(peer, Direction::Push)
    }

    fn new(peer: &Identity, direction: Direction) -> Crossing {
        let (batch, staged) = (Batch::new(peer.pid, direction), Staged::new(peer.pid, direction));
        Crossing { within: peer.is_mine(), direction, batch, staged, copied: Ok(()) }
    }

    /// Copies the elements of a nest now or later. Its side `a` is relative to the absolute address `peer_base` in the
    /// peer, side `b` to `local`.
    ///
    /// # Safety
    /// The peer is reached directly (see [`reach`]). Until [`Crossing::finish`] has returned, every element where data
    /// come from is valid and not changed, and every element where they go to is valid and used by nobody else. When
    /// pulling, bytes between the peer's elements, of one nest or of two, may be read, too, but are not used; when pushing, nothing is written
    /// through `local`.
    pub unsafe fn add(
        &mut self,
        nest: &Nest,
        (peer_base, peer_type): (u64, ElementType),
        (local, local_type): (*mut u8, ElementType),
    ) -> io::Result<()> {
        if !self.within {
            // SAFETY: as the caller vouches.
            return unsafe { self.cross(nest.clone(), (peer_base, peer_type), (local, local_type)) };
        }
        let there = std::ptr::with_exposed_provenance_mut(peer_base as usize);
        // SAFETY: the peer is this process, so the caller vouches for both sides here.
        let copied = unsafe {
            match self.direction {
                Direction::Pull => copy_raw(nest, there, peer_type, local, local_type),
                Direction::Push => copy_raw(&nest.swapped(), local, local_type, there, peer_type),
            }
        };
        self.copied = self.copied.and(copied);
        Ok(())
    }

    /// Copies what waits. The inner error says that all has been copied, but a NaN was to become an integer.
    ///
    /// # Safety
    /// As for [`Crossing::add`].
    pub unsafe fn finish(mut self) -> io::Result<Result<(), NotANumber>> {
        // SAFETY: as the caller vouches.
        unsafe { self.batch.flush().and_then(|()| self.staged.flush())? };
        Ok(self.copied.and(self.staged.copied))
    }

    /// Adds the elements of a nest between processes: long runs as they are, short ones by way of a buffer.
    ///
    /// # Safety
    /// As [`Crossing::add`] says.
    unsafe fn cross(
        &mut self,
        nest: Nest,
        (base, element): (u64, ElementType),
        (local, local_type): (*mut u8, ElementType),
    ) -> io::Result<()> {
        if nest.elements() == 0 {
            return Ok(());
        }
        let nest = in_order_of_a(nest);
        let bytes = element.bytes();
        let (run_bytes, outer) = match nest.loops.split_last() {
            Some((last, outer)) if last.a == bytes as i64 && last.b == bytes as i64 => (last.count * bytes, outer),
            _ => (bytes, &nest.loops[..]),
        };
        // Gaps may be read, but never written, for they are not ours.
        let gap_bytes_max = if self.direction == Direction::Pull { GAP_BYTES_MAX } else { 0 };
        let gap_bytes = outer.last().map_or(0, |l| (l.a as u64).saturating_sub(run_bytes));
        let among_gaps = gap_bytes > 0 && gap_bytes <= gap_bytes_max;
        if local_type == element && goes_straight(run_bytes, among_gaps) {
            for (a, b) in Walk::new(outer, nest.a, nest.b) {
                let far = base.wrapping_add_signed(a);
                // SAFETY: elements that follow each other on both sides, as the caller vouches.
                unsafe { self.batch.add(local.wrapping_offset(b as isize), far, run_bytes as usize)? };
            }
            return Ok(());
        }
        for tile in Tiling::new(&nest, bytes, BUFFER_BYTES, gap_bytes_max).tiles() {
            // SAFETY: as the caller vouches.
            unsafe { self.staged.add(tile, (base, element), (local, local_type))? };
        }
        Ok(())
    }
}

/// Hash of what makes process numbers comparable: the boot of the kernel and the space of process numbers.
fn host_hash() -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    hash.write(&std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default());
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    hash.write(space.as_os_str().as_encoded_bytes());
    hash.finish()
}

/// A number for this host, the same for all processes that share its clock and its process numbers.
pub fn host() -> u64 {
    Identity::here().host
}

/// A random word.
fn random_word() -> u64 {
    let mut word = 0u64;
    // SAFETY: writes at most eight bytes, to a place that is ours.
    let got = unsafe { libc::getrandom((&raw mut word).cast(), 8, 0) };
    // Without the kernel's random numbers (a filter may forbid the call), the time is different enough.
    let time = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    if got == 8 { word } else { time().as_nanos() as u64 ^ (u64::from(std::process::id()) << 32) }
}

/// Lets the user's other processes reach this one's memory where Yama would allow it to parents only.
fn allow_access() {
    if std::path::Path::new("/proc/sys/kernel/yama/ptrace_scope").exists() {
        // SAFETY: sets a permission of this process and touches no memory; a refusal shows when peers try.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    }
}
