//! The spindle of the HP 97560: time, counted in sectors that pass below a head.
//!
//! It turns 4002 times a minute and never slows down, so one counter tells the angle at all times: *slot* `n` begins
//! when the `n`th sector does, on every track alike, and its angle is `n` mod 72. Whole numbers keep long streams
//! exact.

use super::geometry::TRACK_SECTORS;

/// In 1.25 s, 4002 / 60 * 72 * 1.25 sectors pass.
const SLOTS: u64 = 6003;
/// In which time they pass \[ns\].
const SLOTS_NS: u64 = 1_250_000_000;
/// One revolution, 14.9925 ms \[ns\] (4002 revolutions a minute: Ruemmler & Wilkes 1994 after HECIOS).
const REVOLUTION_NS: f64 = 60e9 / 4002.0;

/// Slots in a time, of which a long one would not fit when multiplied.
fn slots(ns: u64) -> u64 {
    (u128::from(ns) * u128::from(SLOTS) / u128::from(SLOTS_NS)) as u64
}

/// A disk that turns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spindle {
    /// How long before time 0 slot 0 began \[ns\].
    ahead_ns: u64,
}

impl Spindle {
    /// Starts with this rotation at time 0 \[revolutions\].
    pub(crate) fn new(phase: f64) -> Spindle {
        Spindle { ahead_ns: (phase.rem_euclid(1.0) * REVOLUTION_NS) as u64 }
    }

    /// Slots that are over.
    pub(crate) fn passed(self, ns: u64) -> u64 {
        slots(ns + self.ahead_ns)
    }

    /// The first slot that does not begin earlier.
    pub(crate) fn slot_from(self, ns: u64) -> u64 {
        // Times are rounded up to whole nanoseconds, so the slot that has just begun may still begin "now".
        match ns + self.ahead_ns {
            0 => 0,
            turned_ns => slots(turned_ns - 1) + 1,
        }
    }

    /// The first slot that does not begin earlier and has the angle of an arc.
    pub(crate) fn slot_at(self, ns: u64, arc: u64) -> u64 {
        let slot = self.slot_from(ns);
        slot + (arc % TRACK_SECTORS + TRACK_SECTORS - slot % TRACK_SECTORS) % TRACK_SECTORS
    }

    /// When a slot begins, that is when the one before is over \[ns\].
    pub(crate) fn start_ns(self, slot: u64) -> u64 {
        let turned_ns = (u128::from(slot) * u128::from(SLOTS_NS)).div_ceil(u128::from(SLOTS));
        (turned_ns as u64).saturating_sub(self.ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::geometry::SECTOR_BYTES;

    #[test]
    fn the_media_rate_is_2_345_mib() {
        let rate = 72.0 * SECTOR_BYTES as f64 / Spindle::new(0.0).start_ns(72) as f64 * 1e9;
        assert!((rate - 2_458_829.0).abs() < 1.0, "{rate} B/s");
    }

    #[test]
    fn slots_and_times_agree() {
        for phase in [0.0, 0.25, 0.999] {
            let spindle = Spindle::new(phase);
            for slot in (100..100_000_000).step_by(999_983) {
                let ns = spindle.start_ns(slot);
                assert_eq!((spindle.slot_from(ns), spindle.slot_from(ns + 1)), (slot, slot + 1));
                assert_eq!((spindle.passed(ns), spindle.passed(ns - 1)), (slot, slot - 1));
            }
        }
    }

    #[test]
    fn the_wanted_angle_comes_within_a_turn() {
        let spindle = Spindle::new(0.7);
        for arc in 0..144 {
            let slot = spindle.slot_at(123_456_789, arc);
            assert_eq!(slot % 72, arc % 72);
            assert!((0..72).contains(&(slot - spindle.slot_from(123_456_789))));
        }
    }

    #[test]
    fn phase_is_the_rotation_at_time_0() {
        let wait = Spindle::new(0.75).start_ns(Spindle::new(0.75).slot_at(0, 0)) as f64;
        assert!((wait / REVOLUTION_NS - 0.25).abs() < 1e-6);
    }
}
