//! Moves runs between memory and a file in as few and as large calls as they allow, by direct I/O when asked.
//!
//! Of a stretch of the file, whole pages go directly, from and to the memory itself where it is aligned, else by way
//! of an aligned buffer. The parts of pages at either end go through the cache, except that a read by way of a buffer
//! takes whole pages and leaves out what is not wanted. So a page is either moved directly by
//! one write or goes through the cache for all that share it, and what the cache holds of it is never stale: before
//! a direct request the system writes back and drops what it has of its pages.

use super::content::Source;
use super::handle::{DirectFile, Handle};
use super::pieces::{CALL_BYTES_MAX, PIECES_MAX};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Shorter stretches go through the cache \[B\], which turns many of them into few requests to the disk.
const DIRECT_BYTES_MIN: u64 = 64 << 10;
/// Bytes that are brought into alignment at once \[B\].
const BOUNCE_BYTES: u64 = 1 << 20;

thread_local! {
    /// Room to align in, once it was needed. It stays with the thread, since touching fresh pages for each request costs
    /// more than the copy.
    static BOUNCE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// From memory to the file.
    Write,
    /// From the file to memory.
    Read,
}

/// A call that failed, and up to where the file was to be moved \[B\].
pub(super) type Failure = (io::Error, u64);

/// Collects runs that follow each other in the file, and moves them together.
pub(super) struct DirectWriter<'a> {
    handle: &'a Handle,
    way: Way,
    direct: bool,
    pieces: Vec<Source>,
    start: u64,
    end: u64,
    calls: u64,
    /// Whether the system has taken bytes, or may have: a direct call that fails may have moved some.
    taken: bool,
}

impl<'a> DirectWriter<'a> {
    pub(super) fn new(handle: &'a Handle, way: Way, direct: bool) -> DirectWriter<'a> {
        DirectWriter { handle, way, direct, pieces: Vec::new(), start: 0, end: 0, calls: 0, taken: false }
    }

    /// System calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether the system has taken bytes, or may have.
    pub(super) fn has_taken(&self) -> bool {
        self.taken
    }

    /// Adds a run.
    pub(super) fn add(&mut self, mut run: Source, mut offset: u64) -> Result<(), Failure> {
        while run.length() > 0 {
            // Long stretches are cut at multiples of a large power of two, and so between pages.
            let limit = (self.start / CALL_BYTES_MAX + 1) * CALL_BYTES_MAX;
            if self.pieces.is_empty() || offset != self.end || offset >= limit || self.pieces.len() == PIECES_MAX {
                self.flush()?;
                (self.start, self.end) = (offset, offset);
            }
            let limit = (self.start / CALL_BYTES_MAX + 1) * CALL_BYTES_MAX;
            let (now, rest) = run.split_at((limit - offset).min(run.length() as u64) as usize);
            match self.pieces.last_mut() {
                Some(last) if last.joins(&now) => *last = last.joined(&now),
                _ => self.pieces.push(now),
            }
            offset += now.length() as u64;
            (self.end, run) = (offset, rest);
        }
        Ok(())
    }

    /// Moves what was added.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let pieces = std::mem::take(&mut self.pieces);
        self.stretch(&pieces).map_err(|error| (error, self.end))?;
        self.pieces = pieces;
        self.pieces.clear();
        Ok(())
    }

    fn stretch(&mut self, pieces: &[Source]) -> io::Result<()> {
        let (start, end) = (self.start, self.end);
        let handle = self.handle;
        let Some(direct) = handle.direct().filter(|_| self.direct) else { return self.cached(pieces, start) };
        let (low, high) = (start.next_multiple_of(direct.page), end - end % direct.page);
        if high < low + DIRECT_BYTES_MIN {
            return self.cached(pieces, start);
        }
        let pages = cut(pieces, low - start, high - start);
        if self.way == Way::Read && !direct.fits(&pages) {
            return self.read_around(direct, pieces, (start, end));
        }
        self.cached(&cut(pieces, 0, low - start), start)?;
        self.past_cache(direct, &pages, low)?;
        self.cached(&cut(pieces, high - start, end - start), high)
    }

    fn cached(&mut self, pieces: &[Source], offset: u64) -> io::Result<()> {
        let file = &self.handle.file;
        match self.vectored(file, pieces, offset) {
            (_, Some(error)) => Err(error),
            (_, None) => Ok(()),
        }
    }

    /// Moves whole pages directly, and what the file system refuses of them through the cache.
    fn past_cache(&mut self, direct: &DirectFile, pieces: &[Source], offset: u64) -> io::Result<()> {
        self.taken = true;
        let (done, error) = if direct.fits(pieces) {
            self.vectored(&direct.file, pieces, offset)
        } else {
            self.bounced(direct, pieces, offset)
        };
        let Some(error) = error else { return Ok(()) };
        excused(direct, offset + done, error)?;
        self.cached(&cut(pieces, done, u64::MAX), offset + done)
    }

    /// Writes bytes directly by way of memory that is aligned; tells how far it came.
    fn bounced(&mut self, direct: &DirectFile, pieces: &[Source], offset: u64) -> (u64, Option<io::Error>) {
        let (total, mut done) = (bytes(pieces), 0);
        while done < total {
            let length = (total - done).min(BOUNCE_BYTES);
            let (moved, error) = bounce(direct, length, |room| {
                each(&cut(pieces, done, done + length), room, Source::copy_to);
                self.vectored(&direct.file, &[Source::of(room)], offset + done)
            });
            done += moved;
            if error.is_some() {
                return (done, error);
            }
        }
        (done, None)
    }

    /// Reads bytes directly by way of memory that is aligned. Whole pages are read and parts of them left out: unlike a
    /// write, that needs no other call for the ends.
    fn read_around(&mut self, direct: &DirectFile, pieces: &[Source], (start, end): (u64, u64)) -> io::Result<()> {
        let mut at = start - start % direct.page;
        while at < end {
            let length = (end.next_multiple_of(direct.page) - at).min(BOUNCE_BYTES + 2 * direct.page);
            let (read, error) = bounce(direct, length, |room| {
                let (read, error) = self.vectored(&direct.file, &[Source::of(room)], at);
                let (low, high) = (at.max(start), (at + read).min(end));
                if low < high {
                    let room = &mut room[(low - at) as usize..(high - at) as usize];
                    each(&cut(pieces, low - start, high - start), room, |piece, bytes| piece.copy_from(bytes));
                }
                (read, error)
            });
            at += read;
            if let Some(error) = error.filter(|_| at < end) {
                excused(direct, at, error)?;
                let done = at.max(start) - start;
                return self.cached(&cut(pieces, done, u64::MAX), start + done);
            }
        }
        Ok(())
    }

    /// Moves pieces that follow each other in the file; tells how many bytes, and what stopped it before the end.
    fn vectored(&mut self, file: &File, pieces: &[Source], offset: u64) -> (u64, Option<io::Error>) {
        let (total, mut done) = (bytes(pieces), 0);
        while done < total {
            let left: Vec<libc::iovec> = cut(pieces, done, total).iter().map(Source::iovec).collect();
            let (descriptor, count, at) = (file.as_raw_fd(), left.len() as i32, (offset + done) as i64);
            self.calls += 1;
            let moved = match self.way {
                // SAFETY: each piece was checked to lie in registered memory, which the request keeps alive and
                // nobody writes meanwhile, or is a buffer of this writer.
                Way::Write => unsafe { libc::pwritev(descriptor, left.as_ptr(), count, at) },
                // SAFETY: as above, and the store alone touches the pieces while the request is under way.
                Way::Read => unsafe { libc::preadv(descriptor, left.as_ptr(), count, at) },
            };
            match moved {
                0 if self.way == Way::Read => return (done, Some(io::ErrorKind::UnexpectedEof.into())),
                0 => return (done, Some(io::ErrorKind::WriteZero.into())),
                1.. => {
                    self.taken = true;
                    done += moved as u64;
                }
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return (done, Some(error));
                    }
                }
            }
        }
        (done, None)
    }
}

/// Whether a request that failed is to go on through the cache.
fn excused(direct: &DirectFile, at: u64, error: io::Error) -> io::Result<()> {
    match (error.kind(), error.raw_os_error()) {
        (_, Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS)) => {
            // Going on in the middle of a page is refused by any; at its start, by one that cannot at all.
            if at.is_multiple_of(direct.page) {
                direct.refuse();
            }
            Ok(())
        }
        // A direct read may stop short at the end of a file, which the cache knows exactly.
        (io::ErrorKind::UnexpectedEof, _) => Ok(()),
        _ => Err(error),
    }
}

/// Lets something use aligned memory of this length.
fn bounce<T>(direct: &DirectFile, length: u64, act: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut room = BOUNCE.take();
    let alignment = direct.memory_alignment.max(direct.page) as usize;
    room.resize(room.len().max(length as usize + alignment), 0);
    let skip = room.as_ptr().align_offset(alignment);
    let result = act(&mut room[skip..skip + length as usize]);
    BOUNCE.replace(room);
    result
}

fn bytes(pieces: &[Source]) -> u64 {
    pieces.iter().map(|piece| piece.length() as u64).sum()
}

/// The bytes `from..to` of pieces one after another.
fn cut(pieces: &[Source], from: u64, to: u64) -> Vec<Source> {
    let (mut out, mut at) = (Vec::new(), 0);
    for piece in pieces {
        let (low, high) = (from.max(at), to.min(at + piece.length() as u64));
        if low < high {
            out.push(piece.split_at((high - at) as usize).0.split_at((low - at) as usize).1);
        }
        at += piece.length() as u64;
    }
    out
}

/// Does something with each piece and its part of bytes that hold all of them one after another.
fn each(pieces: &[Source], bytes: &mut [u8], act: impl Fn(&Source, &mut [u8])) {
    let mut at = 0;
    for piece in pieces {
        act(piece, &mut bytes[at..at + piece.length()]);
        at += piece.length();
    }
}
