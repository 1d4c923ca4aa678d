//! Bytes on their way into a file: short runs that follow each other there are written by one call.

use super::content::{CHECKED_BLOCK_BYTES, Scratch, Source, Sum};
use super::pieces::{PIECES_MAX, in_calls};
use crate::doing::{Doing, write_back};
use crate::sync::atomic::{AtomicU64, Ordering};
use hyperslab_pack::{Memory, copy, run_bytes, try_for_each_run};
use hyperslab_world::{Fault, FaultKind, Moved, Moves};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Runs shorter than this are collected before they are written, if others follow them in the file \[B\].
const SHORT_RUN_BYTES: usize = 64 << 10;
/// Runs shorter than this are copied in nests \[B\].
pub(super) const TINY_RUN_BYTES: u64 = 128;
/// Runs from which on they are written from where they lie; shorter ones are copied together \[B\]. Measured with 1 MiB: 311
/// us by runs of 512 B and 220 copied together, 222 and 215 with 1 KiB, 145 and 173 with 4 KiB; 131 in one run.
const GATHERED_RUN_BYTES: usize = 2 << 10;
/// What is sent to the disk at a time, while more is written, where it shall be durable \[B\].
const SENT_BYTES: u64 = 1 << 20;
/// What is collected at most \[B\].
const STAGED_BYTES: usize = 1 << 20;

/// Writes runs to a file, summing their bytes if that is wanted.
pub(super) struct CoalescingWriter<'a> {
    file: &'a File,
    doing: Doing<'a>,
    /// What is copied together.
    scratch: &'a mut Scratch,
    /// Or what is written from where it lies: the first run, and others that are long enough.
    pieces: Vec<Source>,
    /// How many bytes are collected in either.
    collected: usize,
    /// Where what is collected begins in the file.
    offset: u64,
    /// What counts steps towards durability, where what is written shall be durable; and up to where this stretch was sent.
    going: Option<&'a AtomicU64>,
    sent: u64,
    /// The checksum so far, when one is wanted; what is collected is not in it.
    sum: Option<Sum>,
    calls: u64,
    /// Whether the system has taken bytes, be it a part of what a call was to write.
    taken: bool,
    elements_bytes: u64,
}

impl<'a> CoalescingWriter<'a> {
    pub(super) fn new(
        file: &'a File,
        doing: Doing<'a>,
        scratch: &'a mut Scratch,
        summed: bool,
    ) -> CoalescingWriter<'a> {
        scratch.staged.clear();
        let sum = summed.then(Sum::default);
        CoalescingWriter {
            file,
            doing,
            scratch,
            pieces: Vec::new(),
            collected: 0,
            offset: 0,
            going: None,
            sent: 0,
            sum,
            calls: 0,
            taken: false,
            elements_bytes: 0,
        }
    }

    /// The same where what is written shall be durable and so is sent to the disk while more is written; `steps` counts that.
    pub(super) fn going(self, steps: Option<&'a AtomicU64>) -> CoalescingWriter<'a> {
        CoalescingWriter { going: steps, ..self }
    }

    /// Writes elements to where they belong.
    pub(super) fn scatter(&mut self, moves: &Moves) -> Result<(), Fault> {
        for nest in moves.nests() {
            try_for_each_run(&nest, moves.there.element.bytes(), |memory, offset, length| {
                self.run(Source::new(moves, memory, length)?, offset as u64)
            })?;
        }
        self.elements_bytes += moves.bytes();
        Ok(())
    }

    /// Writes all elements of an object; where the walk does not go from its start to its end, they are put in order first.
    pub(super) fn whole(&mut self, moves: &Moves) -> Result<(), Fault> {
        if is_in_order(moves) {
            return self.scatter(moves);
        }
        let memory = ordered(moves, self.scratch)?;
        self.run(Source::of_memory(&memory, moves.bytes())?, 0)?;
        self.elements_bytes += moves.bytes();
        // What was collected is gone with the memory that it lies in.
        self.flush()
    }

    fn run(&mut self, run: Source, offset: u64) -> Result<(), Fault> {
        if offset != self.offset + self.collected as u64 {
            self.flush()?;
            (self.offset, self.sent) = (offset, offset);
        }
        if run.length() >= SHORT_RUN_BYTES {
            self.flush()?;
            let block = match (&self.sum, self.going) {
                (Some(_), _) => CHECKED_BLOCK_BYTES,
                (None, Some(_)) => SENT_BYTES,
                (None, None) => u64::MAX,
            };
            return run.blocks(block).try_for_each(|(_, block)| self.put(block.as_bytes()));
        }
        if self.collected + run.length() > STAGED_BYTES || self.pieces.len() == PIECES_MAX {
            self.flush()?;
        }
        if self.collected == 0 || self.scratch.staged.is_empty() && run.length() >= GATHERED_RUN_BYTES {
            self.pieces.push(run);
        } else {
            self.copy_together();
            self.scratch.staged.extend_from_slice(run.as_bytes());
        }
        self.collected += run.length();
        Ok(())
    }

    fn copy_together(&mut self) {
        for piece in self.pieces.drain(..) {
            self.scratch.staged.extend_from_slice(piece.as_bytes());
        }
    }

    /// Appends the CRC-32C of everything so far, little-endian.
    pub(super) fn checksum(&mut self) -> Result<(), Fault> {
        if self.collected <= SHORT_RUN_BYTES {
            self.copy_together();
        } else if !self.pieces.is_empty() {
            self.flush()?;
        }
        let Some(mut sum) = self.sum.take() else { return Ok(()) };
        sum.add_bytes(&self.scratch.staged);
        self.scratch.staged.extend_from_slice(&sum.value().to_le_bytes());
        self.collected = self.scratch.staged.len();
        Ok(())
    }

    /// Writes what is collected.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        self.collected = 0;
        let mut staged = std::mem::take(&mut self.scratch.staged);
        let put = if staged.is_empty() { self.put_pieces() } else { self.put(&staged) };
        staged.clear();
        self.scratch.staged = staged;
        put
    }

    /// Writes runs from where they lie.
    fn put_pieces(&mut self) -> Result<(), Fault> {
        let pieces = std::mem::take(&mut self.pieces);
        if let [piece] = *pieces {
            return self.put(piece.as_bytes());
        }
        let bytes: u64 = pieces.iter().map(|piece| piece.length() as u64).sum();
        self.sum.iter_mut().for_each(|sum| pieces.iter().for_each(|piece| sum.add(*piece)));
        let mut pieces = pieces.iter().map(Source::iovec).collect();
        in_calls(&mut pieces, self.offset, &mut self.calls, |pieces, offset| {
            // SAFETY: each piece is a run that was checked to lie in registered memory, which the request keeps alive.
            let moved =
                unsafe { libc::pwritev(self.file.as_raw_fd(), pieces.as_ptr(), pieces.len() as i32, offset as i64) };
            self.taken |= moved > 0;
            moved
        })
        .map_err(|error| self.failed(bytes, &error))?;
        self.written(bytes)
    }

    /// Goes on behind so many bytes.
    fn written(&mut self, bytes: u64) -> Result<(), Fault> {
        self.offset += bytes;
        let Some(steps) = self.going.filter(|_| self.offset - self.sent >= SENT_BYTES) else { return Ok(()) };
        let sent = write_back(self.file, self.sent, self.offset - self.sent, libc::SYNC_FILE_RANGE_WRITE);
        self.sent = self.offset;
        steps.fetch_add(1, Ordering::Relaxed);
        sent.map_err(|error| self.doing.failed("", &error))
    }

    /// Whether the system has taken any bytes.
    pub(super) fn has_taken(&self) -> bool {
        self.taken
    }

    fn failed(&self, bytes: u64, error: &io::Error) -> Fault {
        self.doing.failed(&format!(" ({bytes} B at offset {})", self.offset), error)
    }

    /// Writes bytes behind those before.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.sum.iter_mut().for_each(|sum| sum.add_bytes(bytes));
        let mut done = 0;
        while done < bytes.len() {
            match self.file.write_at(&bytes[done..], self.offset + done as u64) {
                Ok(0) => return Err(self.failed(bytes.len() as u64, &io::ErrorKind::WriteZero.into())),
                Ok(moved) => done += moved,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(bytes.len() as u64, &error)),
            }
            self.taken = true;
        }
        self.calls += 1;
        self.written(bytes.len() as u64)
    }

    /// Ends it; tells besides up to where what was written last was sent to the disk.
    pub(super) fn finish(mut self) -> Result<(Moved, u64), Fault> {
        self.flush()?;
        let bytes = if self.elements_bytes > 0 { self.elements_bytes } else { self.offset };
        Ok((Moved { bytes, calls: self.calls, ..Moved::default() }, self.sent))
    }
}

/// Whether the walk over all elements of an object goes from its start to its end, by runs that are not tiny: of those,
/// what copies whole nests is faster than who takes them one by one.
pub(super) fn is_in_order(moves: &Moves) -> bool {
    let (bytes, mut next) = (moves.there.element.bytes(), 0);
    moves.nests().all(|nest| {
        let run = run_bytes(&nest, bytes);
        if run < TINY_RUN_BYTES && run < nest.elements() * bytes {
            return false;
        }
        try_for_each_run(&nest, bytes, |_, offset, length| {
            let follows = offset == next;
            next = offset + length as i64;
            if follows { Ok(()) } else { Err(()) }
        })
        .is_ok()
    })
}

/// The elements in a memory of their own, as their bytes follow each other in the object.
fn ordered(moves: &Moves, scratch: &mut Scratch) -> Result<Memory, Fault> {
    let memory = scratch.whole(moves.bytes())?;
    for nest in moves.nests() {
        copy(&nest, &moves.memory, moves.here.element, &memory, moves.there.element)
            .map_err(|error| Fault::new(FaultKind::Invalid, error.to_string()))?;
    }
    Ok(memory)
}
