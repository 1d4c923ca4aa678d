//! Data sieving for reads: short runs of a file that lie close together are read by one call, gaps and all.
//!
//! Source: Thakur, Gropp, Lusk, "Data sieving and collective I/O in ROMIO" (1999). Departure: nothing is read into a
//! buffer and copied out again; one scattering read puts each run in its place, and each gap into the same few bytes,
//! which stay in the cache.

use super::content::{CHECKED_BLOCK_BYTES, Source};
use super::pieces::{CALL_BYTES_MAX, PIECES_MAX, in_calls};
use hyperslab_world::PartSum;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Longest gap that is read along \[B\]. A system call costs about as much as copying this.
pub(super) const GAP_BYTES_MAX: u64 = 4096;

/// Collects runs of a file in rising order and reads them together.
pub(super) struct Sieve<'a> {
    file: &'a File,
    pieces: Vec<libc::iovec>,
    start: u64,
    end: u64,
    /// Where gaps go, once there is one.
    waste: Vec<u8>,
    calls: u64,
    /// For `preadv2`.
    flags: i32,
    /// Bytes of one call, at most \[B\].
    most: u64,
    /// What is read contributes to this, if it does.
    sum: Option<PartSum>,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(file: &'a File) -> Sieve<'a> {
        let (pieces, most) = (Vec::new(), CALL_BYTES_MAX);
        Sieve { file, pieces, start: 0, end: 0, waste: Vec::new(), calls: 0, flags: 0, most, sum: None }
    }

    /// One that adds up what is read of an object with so many bytes before its checksum, after each call, while they are in
    /// the processor's cache.
    pub(super) fn summing(file: &'a File, total: u64) -> Sieve<'a> {
        Sieve { most: 2 * CHECKED_BLOCK_BYTES, sum: Some(PartSum::new(total)), ..Sieve::new(file) }
    }

    /// One whose calls fail rather than wait for a disk.
    pub(super) fn of_cached(file: &'a File) -> Sieve<'a> {
        Sieve { flags: libc::RWF_NOWAIT, ..Sieve::new(file) }
    }

    /// System calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Adds a run. The error tells up to where the file was to be read.
    pub(super) fn add(&mut self, run: Source, offset: u64) -> Result<(), (io::Error, u64)> {
        let near = offset >= self.end && offset - self.end <= GAP_BYTES_MAX;
        let full = self.pieces.len() + 2 > PIECES_MAX || self.end - self.start + run.length() as u64 > self.most;
        if self.pieces.is_empty() || !near || full {
            self.flush()?;
            (self.start, self.end) = (offset, offset);
        }
        if offset > self.end {
            let gap = (offset - self.end) as usize;
            self.waste.resize(GAP_BYTES_MAX as usize, 0);
            self.pieces.push(libc::iovec { iov_base: self.waste.as_mut_ptr().cast(), iov_len: gap });
        }
        self.pieces.push(libc::iovec { iov_base: run.address().cast(), iov_len: run.length() });
        self.end = offset + run.length() as u64;
        Ok(())
    }

    /// What all contributes.
    pub(super) fn into_sum(self) -> PartSum {
        self.sum.unwrap_or(PartSum::new(0))
    }

    /// Reads what was added.
    pub(super) fn flush(&mut self) -> Result<(), (io::Error, u64)> {
        let summed = if self.sum.is_some() { self.pieces.clone() } else { Vec::new() };
        self.read()?;
        let Some(sum) = &mut self.sum else { return Ok(()) };
        let mut offset = self.start;
        for piece in summed {
            if piece.iov_base != self.waste.as_mut_ptr().cast() {
                sum.add(offset, Source::of_piece(&piece).as_bytes());
            }
            offset += piece.iov_len as u64;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), (io::Error, u64)> {
        let (file, flags) = (self.file.as_raw_fd(), self.flags);
        in_calls(&mut self.pieces, self.start, &mut self.calls, |pieces, offset| {
            // SAFETY: each piece is a run that was checked to lie in registered memory which the request keeps alive
            // and nobody else writes, or lies in `waste`, which this sieve owns; pieces of waste may overlap, and
            // their contents are never looked at.
            unsafe { libc::preadv2(file, pieces.as_ptr(), pieces.len() as i32, offset as i64, flags) }
        })
        .map_err(|error| (error, self.end))
    }
}
