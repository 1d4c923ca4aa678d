//! Which file systems are on a disk or in memory of this host.
//!
//! A call to one of them ends when the disk does its work. One to a file system behind a network ends when others do
//! theirs, perhaps never, and must not be made on a thread that answers other ranks.

use std::os::fd::AsRawFd;

/// How the kernel numbers them (statfs(2), and `linux/magic.h`): ext2 to ext4, XFS, Btrfs, F2FS, ZFS, and memory.
const AT_HAND: [u32; 7] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0x0102_1994, 0x8584_58f6];

/// Layers over file systems of a host, such as the root of a container.
const OVERLAY: u32 = 0x794c_7630;

/// Where a file is, as far as its file system tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nearness {
    /// On a disk or in memory of this host.
    AtHand,
    /// In layers of which some may be elsewhere; what is written goes to one of this host.
    Layered,
    /// Elsewhere, or nobody knows. Such a place may accept what it cannot keep, and say so only when the descriptor that wrote is
    /// synced or closed.
    Far,
}

impl Nearness {
    /// Whether errors of writing may come with the sync or the close.
    pub(crate) fn tells_late(self) -> bool {
        self == Nearness::Far
    }
}

/// Whether a file is on a file system known to be of this host. Asking a far one may take as long as anything else.
pub(crate) fn holds(file: &impl AsRawFd) -> bool {
    reach(file) == Nearness::AtHand
}

/// Where a file is.
pub(crate) fn reach(file: &impl AsRawFd) -> Nearness {
    match kind(file) {
        Some(kind) if AT_HAND.contains(&kind) => Nearness::AtHand,
        Some(OVERLAY) => Nearness::Layered,
        _ => Nearness::Far,
    }
}

fn kind(file: &impl AsRawFd) -> Option<u32> {
    // SAFETY: all fields are numbers, of which zero is one.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor belongs to the open file, and `told` has room for the answer.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut told) };
    (result == 0).then_some(told.f_type as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn memory_is_at_hand_and_the_kernels_tables_are_not() {
        let shared = std::path::Path::new("/dev/shm");
        assert!(!shared.is_dir() || holds(&File::open(shared).unwrap()));
        assert!(!holds(&File::open("/proc/self/maps").unwrap()));
    }
}
