//! Where the bytes of a file lie on its device, and reserving their places before they are written.
//!
//! A disk-directed server carries out requests in the order in which their bytes lie (Kotz, "Disk-directed I/O for MIMD
//! multiprocessors", TOCS 15(1), 1997, section 3). Departure: there the server is the file system and knows; here it
//! asks the system, which answers for the device that it sees, be it a disk or an array of them.

use hyperslab_world::Extent;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct fiemap` of `linux/fiemap.h`, without its array: of 32 bytes, which the number of the request holds.
#[repr(C)]
#[derive(Default)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Mapped {
    logical: u64,
    physical: u64,
    length: u64,
    reserved_64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// Extents of one answer.
const BATCH: usize = 128;

#[repr(C)]
struct Question {
    head: Head,
    extents: [Mapped; BATCH],
}

const FS_IOC_FIEMAP: libc::Ioctl = libc::_IOWR::<Head>('f' as u32, 11);
/// Write the file back first, so that bytes that are new have a place.
const FLAG_SYNC: u32 = 1;
/// The last extent of the file.
const LAST: u32 = 1;
/// Places that are not known, not given yet, encoded, not at a sector, or among metadata.
const NOWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200;

/// Where the bytes of a file lie, in rising order of their offsets, without what is a hole; `None` where the file system
/// does not tell.
pub(crate) fn extents(file: &File) -> io::Result<Option<Vec<Extent>>> {
    let length = file.metadata()?.len();
    let mut question = Box::new(Question { head: Head::default(), extents: [Mapped::default(); BATCH] });
    let mut found: Vec<Extent> = Vec::new();
    let mut start = 0;
    while start < length {
        let extent_count = BATCH as u32;
        question.head = Head { start, length: length - start, flags: FLAG_SYNC, extent_count, ..Head::default() };
        // SAFETY: the descriptor belongs to the open file; the request reads the head and writes it and at most as
        // many extents as the head says, for which there is room.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *question) };
        if result != 0 {
            return unable(io::Error::last_os_error()).map(|()| None);
        }
        let mapped = &question.extents[..BATCH.min(question.head.mapped_extents as usize)];
        for extent in mapped {
            if extent.flags & NOWHERE != 0 {
                return Ok(None);
            }
            add(&mut found, extent, length);
        }
        match mapped.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical + last.length,
            _ => break,
        }
    }
    Ok(Some(found))
}

/// Adds an extent, or grows the last one when it goes on there: written and reserved places are told of one by one.
fn add(found: &mut Vec<Extent>, mapped: &Mapped, length: u64) {
    // The last block of a file is longer than the file; and space may be reserved beyond its end.
    let bytes = (mapped.logical + mapped.length).min(length).saturating_sub(mapped.logical);
    match found.last_mut() {
        _ if bytes == 0 => {}
        Some(last) if last.logical + last.bytes == mapped.logical && last.physical + last.bytes == mapped.physical => {
            last.bytes += bytes;
        }
        _ => found.push(Extent { logical: mapped.logical, physical: mapped.physical, bytes }),
    }
}

/// Reserves the space of the first bytes of a file, which becomes at least as long. Returns whether the file system can.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<bool> {
    let before = file.metadata()?.len();
    let wanted = libc::off64_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    let error = loop {
        // SAFETY: the descriptor belongs to the open file.
        if bytes == 0 || unsafe { libc::fallocate64(file.as_raw_fd(), 0, 0, wanted) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            break error;
        }
    };
    unable(error).inspect_err(|_| {
        // What was reserved until the space ran out is for others.
        let _ = file.set_len(before);
    })?;
    if before < bytes {
        file.set_len(bytes)?;
    }
    Ok(false)
}

/// Whether an error only says that there is no such thing here.
fn unable(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS | libc::EBADR | libc::EINVAL) => Ok(()),
        _ => Err(error),
    }
}
