//! What copies and messages move, and what of it the processor feels.

use super::stretches::{LINE_BYTES, Stretches};
use hyperslab_layout::reach::GAP_BYTES_MAX;
use hyperslab_layout::{Region, View, nests};

/// Longest runs that are words, as `processor.turn` has them: those of 16 B take as long as others do, and longer ones
/// longer \[B\].
pub(super) const WORD_BYTES: u64 = 8;

/// Data that move between the buffers of a rank and a user's array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// Whose array.
    pub(super) peer: u32,
    pub(super) bytes: u64,
    /// Contiguous runs, each of which lies together on both sides.
    pub(super) runs: u64,
    /// Of these, those that a register holds, which loops without calls move; and how often two such loops begin.
    pub(super) words: u64,
    pub(super) planes: u64,
    /// The same in the user's array, whose elements may be of another type.
    pub(super) array_bytes: u64,
    /// Lines of the processor's cache there that these bytes touch.
    pub(super) array_lines: u64,
    /// Runs that lie together there, whatever they do in the slot: of a transposed piece far fewer.
    pub(super) array_runs: u64,
    /// Stretches there that a neighbour reads, which takes short gaps along, and the bytes of these gaps.
    pub(super) array_stretches: u64,
    pub(super) array_gaps: u64,
    /// Lines of the processor's cache in the slot of which these bytes touch only a part, where slots do not stay in the cache.
    pub(super) slot_part_lines: u64,
}

impl Moved {
    pub(super) fn nothing(peer: u32) -> Moved {
        let (bytes, runs, words, planes) = (0, 0, 0, 0);
        let (array_bytes, array_lines, array_runs) = (0, 0, 0);
        let (array_stretches, array_gaps, slot_part_lines) = (0, 0, 0);
        Moved {
            peer,
            bytes,
            runs,
            words,
            planes,
            array_bytes,
            array_lines,
            array_runs,
            array_stretches,
            array_gaps,
            slot_part_lines,
        }
    }

    /// Lines of the user's array of which this moves a part, beyond those that it would fill.
    pub(super) fn array_part_lines(&self) -> u64 {
        self.array_lines.saturating_sub(self.array_bytes / LINE_BYTES)
    }

    pub(super) fn add(&mut self, region: &Region, array: &View, (slot, kept): (&View, bool)) {
        let sizes = (array.element.bytes(), slot.element.bytes());
        self.bytes += region.elements() * sizes.1;
        self.array_bytes += region.elements() * sizes.0;
        for nest in nests(region, array, slot) {
            let runs = nest.runs(sizes.0, sizes.1);
            let array_runs = nest.elements() * sizes.0 / nest.run_bytes_a(sizes.0).max(1);
            self.runs += runs;
            if nest.elements() * sizes.1.max(sizes.0) <= runs * WORD_BYTES {
                self.words += runs;
                // Some of the innermost loops may be over the elements of a run.
                let mut in_run = nest.elements() / runs.max(1);
                let loops = nest.loops.iter().rev().skip_while(|l| {
                    let is_inside = in_run > 1;
                    in_run /= l.count.max(1);
                    is_inside
                });
                let plane: u64 = loops.take(2).map(|l| l.count).product();
                self.planes += runs / plane.max(1);
            }
            self.array_runs += array_runs;
            let stretches = Stretches::of(nest.loops.iter().map(|l| (l.count, l.a)), sizes.0, GAP_BYTES_MAX);
            self.array_stretches += stretches.count;
            self.array_gaps += stretches.gaps;
            self.array_lines += Stretches::lines(nest.loops.iter().map(|l| (l.count, l.a)), sizes.0);
            if !kept {
                let lines = Stretches::lines(nest.loops.iter().map(|l| (l.count, l.b)), sizes.1);
                self.slot_part_lines += lines.saturating_sub(nest.elements() * sizes.1 / LINE_BYTES);
            }
        }
    }
}

/// Copies on a rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    pub(super) bytes: u64,
    /// Contiguous runs, those of them that a register holds, and how often two loops over such begin.
    pub(super) runs: u64,
    pub(super) words: u64,
    pub(super) planes: u64,
    /// Lines of the processor's cache that are moved in part, to and from memory that does not stay in the cache; of lines
    /// of a user's array that are only read, half as many.
    pub(super) part_lines: u64,
    /// What goes between memory and slots that do not stay in the processor's cache, each way \[B\].
    pub(super) spilled: u64,
}

impl Copied {
    pub(super) fn add(&mut self, moved: &Moved, array_part_lines: u64) {
        self.bytes += moved.bytes;
        self.runs += moved.runs;
        self.words += moved.words;
        self.planes += moved.planes;
        self.part_lines += moved.slot_part_lines + array_part_lines;
    }
}
