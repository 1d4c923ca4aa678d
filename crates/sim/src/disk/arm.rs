//! The arm of the HP 97560: how long it takes to get from track to track.
//!
//! Source: the seek curve of Ruemmler & Wilkes 1994 as HECIOS and the HRaid simulator give it; settling is part of it.

/// Longest distance of the short part of the seek curve \[cylinders\].
const SHORT_MAX: u64 = 383;
/// Another head of the same cylinder becomes active \[ns\].
const SWITCH_NS: u64 = 1_600_000;

/// Moving the arm over a number of cylinders: 3.24 + 0.4 sqrt(d) ms up to 383, 8 + 0.008 d ms beyond \[ns\].
pub(crate) fn seek_ns(distance: u64) -> u64 {
    match distance {
        0 => 0,
        // 400,000 sqrt(d), in whole numbers.
        1..=SHORT_MAX => 3_240_000 + (160_000_000_000 * distance).isqrt(),
        _ => 8_000_000 + 8_000 * distance,
    }
}

/// Getting from one place to another, each a cylinder, a head and a sector, before any wait for the sector \[ns\].
pub(crate) fn reach_ns(from: (u64, u64, u64), to: (u64, u64, u64)) -> u64 {
    match from.0.abs_diff(to.0) {
        0 if from.1 == to.1 => 0,
        0 => SWITCH_NS,
        // Heads change while the arm moves.
        distance => seek_ns(distance),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::geometry::CYLINDERS;

    #[test]
    fn the_curve_has_its_published_values() {
        assert_eq!(seek_ns(0), 0);
        assert_eq!(seek_ns(1), 3_640_000);
        assert_eq!(seek_ns(383) / 1000, 11_068);
        assert_eq!(seek_ns(384) / 1000, 11_072);
        assert_eq!(seek_ns(CYLINDERS - 1), 23_688_000);
    }

    #[test]
    fn the_curve_never_falls_nor_jumps() {
        assert!((1..CYLINDERS).all(|d| seek_ns(d) <= seek_ns(d + 1)));
        assert!((2..CYLINDERS).all(|d| seek_ns(d + 1) - seek_ns(d) < 200_000));
    }

    /// 12.8 ms; the maker says 13.5, measured otherwise.
    #[test]
    fn a_random_seek_takes_13_ms() {
        let pairs = |distance: u64| 2 * (CYLINDERS - distance);
        let sum: u64 = (1..CYLINDERS).map(|distance| pairs(distance) * (seek_ns(distance) / 1000)).sum();
        let mean_us = sum / (CYLINDERS * CYLINDERS);
        assert!(mean_us.abs_diff(12_800) < 50, "{mean_us} us");
    }

    #[test]
    fn heads_change_at_no_cost_beside_a_seek() {
        assert_eq!(reach_ns((5, 1, 7), (5, 1, 3)), 0);
        assert_eq!(reach_ns((5, 1, 7), (5, 2, 3)), 1_600_000);
        assert_eq!(reach_ns((5, 1, 7), (4, 2, 3)), 3_640_000);
    }
}
