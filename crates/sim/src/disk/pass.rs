//! Consecutive sectors that pass below the heads without a pause.

use super::geometry::{arc, sector_at};
use super::spindle::Spindle;

/// Sectors `first..end`, the first of them in a slot of the spindle. Skews are long enough for heads and arm, so the
/// others follow in the slots that their arcs tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    /// The first sector.
    pub(crate) first: u64,
    /// Slot in which it passes.
    pub(crate) slot: u64,
    /// After the last sector.
    pub(crate) end: u64,
}

impl Pass {
    /// Slot in which a sector passes, or would if the pass went on.
    fn slot_of(&self, sector: u64) -> u64 {
        self.slot + arc(sector) - arc(self.first)
    }

    /// The slot that begins when all sectors before this one have passed; 0 where that was before this pass.
    pub(crate) fn slot_after(&self, end: u64) -> u64 {
        if end <= self.first { 0 } else { self.slot_of(end - 1) + 1 }
    }

    /// The first sector that has not passed when a slot begins.
    pub(crate) fn reached(&self, slot: u64) -> u64 {
        sector_at(arc(self.first) + slot.saturating_sub(self.slot)).min(self.end)
    }

    /// Goes on to a later end, known at `ns`. If the place has passed by then, the heads wait until it comes again, and
    /// a new pass begins there: true.
    pub(crate) fn go_on(&mut self, spindle: Spindle, ns: u64, end: u64) -> bool {
        let late = self.slot_of(self.end) < spindle.slot_from(ns);
        if late {
            *self = Pass { first: self.end, slot: spindle.slot_at(ns, arc(self.end)), end };
        }
        self.end = end;
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_pass_one_by_one_with_skews_between_tracks() {
        let pass = Pass { first: 70, slot: 1000, end: 80 };
        assert_eq!([70, 71, 72, 73, 80].map(|end| pass.slot_after(end)), [0, 1001, 1002, 1011, 1018]);
        let slots = [900, 1000, 1001, 1002, 1009, 1010, 1011, 1018, 5000];
        assert_eq!(slots.map(|slot| pass.reached(slot)), [70, 70, 71, 72, 72, 72, 73, 80, 80]);
    }

    #[test]
    fn what_comes_late_waits_for_whole_turns() {
        let spindle = Spindle::new(0.0);
        let first = Pass { first: 0, slot: arc(0), end: 16 };
        let next = arc(16);
        for (slot, expected) in [(next, next), (next + 1, next + 72), (next + 72, next + 72), (next + 73, next + 144)] {
            let mut pass = first;
            assert_eq!(pass.go_on(spindle, spindle.start_ns(slot), 32), slot != next);
            assert_eq!((pass.slot_of(16), pass.end), (expected, 32));
        }
    }
}
