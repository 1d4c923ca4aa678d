//! The HP 97560, a disk of 1992, in detail.
//!
//! Source: Ruemmler & Wilkes, "An introduction to disk drive modeling", 1994, through simulators that copy it (HECIOS,
//! HRaid), and Kotz, "Disk-directed I/O for MIMD multiprocessors", 1997, table I and section 6. Rules of its buffer
//! were not published; ours reproduce Kotz's rates (`calibration.rs`):
//!
//! - After a read the heads go on until the buffer is full of what was not asked for yet, also while the controller
//!   decodes the next command. A read inside the buffer, or just where the heads are, is part of that stream.
//! - A write is accepted when it is in the buffer. What follows the write before joins it while no more than the fence
//!   waits for the medium; what lies elsewhere is accepted when all before it is on the medium. So the overhead of the
//!   next request hides behind the media write of the former.
//! - A write, and a read elsewhere, abandon the stream. A read waits for writes, also for those it could be served
//!   from.
//!
//! Requests cover whole sectors, and hosts cut what is longer than 64 KB, as theirs did: bus and medium take turns with
//! what one command moves, so commands longer than the buffer lose revolutions that a drive would not.

#[cfg(test)]
mod tests;

use super::access::{Access, Disk};
use super::arm;
use super::geometry::{SECTOR_BYTES, SECTORS, arc, locate};
use super::pass::Pass;
use super::spindle::Spindle;

/// What the controller needs for a command \[ns\] (2.2 ms: HECIOS, HRaid).
const OVERHEAD_NS: u64 = 2_200_000;
/// What the buffer holds \[sectors\] (128 KB: HECIOS, HRaid, The Hard Drive Book).
const BUFFER_SECTORS: u64 = 128 * 1024 / SECTOR_BYTES;
/// Most data that wait for the medium while more is accepted \[sectors\] (64 KB: HRaid).
const FENCE_SECTORS: u64 = 64 * 1024 / SECTOR_BYTES;

/// An HP 97560. Positions and times are exact to the nanosecond; nothing is random but the phase.
#[derive(Clone, Debug)]
pub(crate) struct Hp97560 {
    spindle: Spindle,
    /// What the heads do, or did last.
    pass: Pass,
    /// What the pass is for.
    buffer: Buffer,
    /// When the drive can turn to something new \[ns\].
    free_ns: u64,
    /// When all writes are on the medium \[ns\].
    settled_ns: u64,
}

/// Use of the buffer.
#[derive(Clone, Copy, Debug)]
enum Buffer {
    /// Data that were written.
    Written,
    /// A stream that was read.
    Read {
        /// Its first sector.
        low: u64,
    },
}

impl Hp97560 {
    /// A drive at rest above its first sector, with this rotation at time 0 \[revolutions, 0 to 1\]; Kotz draws it at
    /// random for each trial (1997, section 5).
    #[must_use]
    pub(crate) fn new(phase: f64) -> Hp97560 {
        Hp97560 {
            spindle: Spindle::new(phase),
            pass: Pass { first: 0, slot: 0, end: 0 },
            buffer: Buffer::Written,
            free_ns: 0,
            settled_ns: 0,
        }
    }

    /// Whether a sector is in the buffer or the next to be read into it.
    fn streams(&self, sector: u64, ns: u64) -> bool {
        let Buffer::Read { low, .. } = self.buffer else { return false };
        let reached = self.pass.reached(self.spindle.passed(ns));
        (low.max(reached.saturating_sub(BUFFER_SECTORS))..=reached).contains(&sector)
    }

    /// Begins a pass elsewhere as soon as the drive is free, and tells what it costs until the first sector.
    fn start(&mut self, ns: u64, first: u64, end: u64) -> Access {
        let begun_ns = ns.max(self.free_ns);
        let last = self.pass.reached(self.spindle.passed(begun_ns)).saturating_sub(1).max(self.pass.first);
        let seek_ns = arm::reach_ns(locate(last), locate(first));
        let slot = self.spindle.slot_at(begun_ns + seek_ns, arc(first));
        self.pass = Pass { first, slot, end };
        let ready_ns = self.spindle.start_ns(slot);
        Access { ready_ns, seek_ns, rotate_ns: ready_ns - begun_ns - seek_ns, ..Access::default() }
    }

    /// When all sectors of the pass before this one are over, or 0 for those of passes before \[ns\].
    fn done_ns(&self, end: u64) -> u64 {
        self.spindle.start_ns(self.pass.slot_after(end))
    }
}

/// Where read-ahead for a read of these sectors stops. What the read asks for stays until the next command.
fn ahead(first: u64, end: u64) -> u64 {
    end.max(first + BUFFER_SECTORS).min(SECTORS)
}

/// The sectors that hold a range of bytes. File systems may spread files over more than a disk holds: places beyond its end
/// are taken as ones from its beginning, and a range that would reach over the end is moved, or cut, to lie before it.
fn sectors(offset: u64, bytes: u64) -> (u64, u64) {
    let first = offset / SECTOR_BYTES;
    let count = (offset % SECTOR_BYTES + bytes).div_ceil(SECTOR_BYTES).min(SECTORS);
    let first = (first % SECTORS).min(SECTORS - count);
    if bytes == 0 { (first, first) } else { (first, first + count) }
}

impl Disk for Hp97560 {
    fn read(&mut self, now_ns: u64, offset: u64, bytes: u64) -> Access {
        let (first, end) = sectors(offset, bytes);
        let heard_ns = now_ns + OVERHEAD_NS;
        if first == end {
            return Access { ready_ns: heard_ns, overhead_ns: OVERHEAD_NS, ..Access::default() };
        }
        let mut access = Access::default();
        let mut begun_ns = heard_ns;
        if self.streams(first, heard_ns.max(self.free_ns)) {
            if self.pass.end < ahead(first, end) {
                // What was asked for before has left the buffer by now, so the heads go on, unless they never stopped.
                self.pass.go_on(self.spindle, now_ns, ahead(first, end));
            }
        } else {
            access = self.start(heard_ns, first, ahead(first, end));
            begun_ns = access.ready_ns;
            self.buffer = Buffer::Read { low: first };
        }
        let ready_ns = self.done_ns(end).max(heard_ns);
        self.free_ns = ready_ns;
        Access { ready_ns, overhead_ns: OVERHEAD_NS, transfer_ns: ready_ns - begun_ns, ..access }
    }

    fn write(&mut self, now_ns: u64, offset: u64, bytes: u64) -> Access {
        let (first, end) = sectors(offset, bytes);
        let heard_ns = now_ns + OVERHEAD_NS;
        if first == end {
            return Access { ready_ns: heard_ns, overhead_ns: OVERHEAD_NS, ..Access::default() };
        }
        let mut access = Access::default();
        let mut begun_ns = heard_ns.max(self.settled_ns);
        let mut accepted_ns = heard_ns;
        if matches!(self.buffer, Buffer::Written) && first == self.pass.end {
            if self.pass.go_on(self.spindle, heard_ns, end) {
                let turned_ns = self.spindle.start_ns(self.pass.slot);
                access.rotate_ns = turned_ns - begun_ns;
                begun_ns = turned_ns;
            }
        } else {
            accepted_ns = begun_ns;
            access = self.start(heard_ns, first, end);
            begun_ns = access.ready_ns;
            self.buffer = Buffer::Written;
        }
        accepted_ns = accepted_ns.max(self.done_ns(end.saturating_sub(FENCE_SECTORS)));
        self.settled_ns = self.done_ns(end);
        self.free_ns = self.settled_ns;
        let transfer_ns = self.settled_ns - begun_ns;
        Access { ready_ns: accepted_ns, overhead_ns: OVERHEAD_NS, transfer_ns, ..access }
    }

    fn settled_ns(&self) -> u64 {
        self.settled_ns
    }

    fn depth(&self) -> u32 {
        1
    }
}
