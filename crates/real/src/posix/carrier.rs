//! Moves runs between memory and a file in as few and as large calls as they allow, past the cache when asked.
//!
//! Of a stretch of the file, whole pages go directly, from and to the memory itself where it is aligned, else by way
//! of an aligned buffer. The parts of pages at either end go through the cache. So a page is either moved directly by
//! one request or goes through the cache for all that share it, and what the cache holds of it is never stale: before
//! a direct request the system writes back and drops what it has of its pages.

use super::content::Source;
use super::handle::{DirectFile, Handle};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Pieces of one call; the system takes no more.
const PIECES_MAX: usize = 1024;
/// Bytes of one call, so that an error is noticed and time passes in small steps \[B\].
const CALL_BYTES_MAX: u64 = 8 << 20;
/// Shorter stretches go through the cache \[B\], which turns many of them into few requests to the disk.
const DIRECT_BYTES_MIN: u64 = 64 << 10;
/// Bytes that are brought into alignment at once \[B\].
const BOUNCE_BYTES: usize = 1 << 20;

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
pub(super) struct Carrier<'a> {
    handle: &'a Handle,
    way: Way,
    direct: bool,
    pieces: Vec<Source>,
    start: u64,
    end: u64,
    /// Room to align in, once it was needed.
    bounce: Vec<u8>,
    calls: u64,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(handle: &'a Handle, way: Way, direct: bool) -> Carrier<'a> {
        Carrier { handle, way, direct, pieces: Vec::new(), start: 0, end: 0, bounce: Vec::new(), calls: 0 }
    }

    /// System calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
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
        self.cached(&cut(pieces, 0, low - start), start)?;
        self.past_cache(direct, &cut(pieces, low - start, high - start), low)?;
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
        let bytes: u64 = pieces.iter().map(|piece| piece.length() as u64).sum();
        let fits = |piece: &Source| {
            (piece.address() as u64).is_multiple_of(direct.memory_alignment)
                && (piece.length() as u64).is_multiple_of(direct.length_alignment)
        };
        let (done, error) = if pieces.iter().all(fits) {
            self.vectored(&direct.file, pieces, offset)
        } else {
            self.bounced(direct, pieces, offset)
        };
        match error.as_ref().map(|error| (error.kind(), error.raw_os_error())) {
            None => return Ok(()),
            Some((_, Some(libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS))) => {
                // Going on in the middle of a page is refused by any; at its start, by one that cannot at all.
                if done.is_multiple_of(direct.page) {
                    direct.refuse();
                }
            }
            // A direct read may stop short at the end of a file, which the cache knows exactly.
            Some((io::ErrorKind::UnexpectedEof, _)) => {}
            Some(_) => return error.map_or(Ok(()), Err),
        }
        self.cached(&cut(pieces, done, bytes), offset + done)
    }

    /// Moves bytes directly by way of memory that is aligned; tells how far it came.
    fn bounced(&mut self, direct: &DirectFile, pieces: &[Source], offset: u64) -> (u64, Option<io::Error>) {
        let mut bounce = std::mem::take(&mut self.bounce);
        let alignment = direct.memory_alignment.max(direct.page) as usize;
        bounce.resize(BOUNCE_BYTES + alignment, 0);
        let skip = bounce.as_ptr().align_offset(alignment);
        let (total, mut done) = (pieces.iter().map(|piece| piece.length() as u64).sum::<u64>(), 0);
        let mut failed = None;
        while done < total && failed.is_none() {
            let length = (total - done).min(BOUNCE_BYTES as u64);
            let now = cut(pieces, done, done + length);
            let aligned = &mut bounce[skip..skip + length as usize];
            if self.way == Way::Write {
                each(&now, aligned, Source::copy_to);
            }
            let (moved, error) = self.vectored(&direct.file, &[Source::of(aligned)], offset + done);
            if self.way == Way::Read {
                each(&cut(&now, 0, moved), aligned, Source::copy_from);
            }
            done += moved;
            failed = error;
        }
        self.bounce = bounce;
        (done, failed)
    }

    /// Moves pieces that follow each other in the file; tells how many bytes, and what stopped it before the end.
    fn vectored(&mut self, file: &File, pieces: &[Source], offset: u64) -> (u64, Option<io::Error>) {
        let total: u64 = pieces.iter().map(|piece| piece.length() as u64).sum();
        let mut done = 0;
        while done < total {
            let left: Vec<libc::iovec> = cut(pieces, done, total).iter().map(Source::iovec).collect();
            let (descriptor, count, at) = (file.as_raw_fd(), left.len() as i32, (offset + done) as i64);
            self.calls += 1;
            let moved = match self.way {
                // SAFETY: each piece was checked to lie in registered memory, which the request keeps alive and
                // nobody writes meanwhile, or is a buffer of this carrier.
                Way::Write => unsafe { libc::pwritev(descriptor, left.as_ptr(), count, at) },
                // SAFETY: as above, and the store alone touches the pieces while the request is under way.
                Way::Read => unsafe { libc::preadv(descriptor, left.as_ptr(), count, at) },
            };
            match moved {
                0 if self.way == Way::Read => return (done, Some(io::ErrorKind::UnexpectedEof.into())),
                0 => return (done, Some(io::ErrorKind::WriteZero.into())),
                1.. => done += moved as u64,
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
