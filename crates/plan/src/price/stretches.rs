//! Stretches of memory or of a file that loops visit with no large gap in between.

use smallvec::SmallVec;

/// A line of the processor's cache \[B\].
pub(super) const LINE_BYTES: u64 = 64;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretches {
    /// How many there are.
    pub(super) count: u64,
    /// From the first to the last byte of one \[B\].
    pub(super) bytes: u64,
    /// Gaps in all of them together \[B\].
    pub(super) gaps: u64,
}

impl Stretches {
    /// Those of elements of so many bytes that loops visit, by counts and steps, with gaps of at most so many bytes inside.
    pub(super) fn of(loops: impl Iterator<Item = (u64, i64)>, element_bytes: u64, gap_bytes: u64) -> Stretches {
        let mut steps: SmallVec<[(u64, u64); 8]> = loops.map(|(count, step)| (step.unsigned_abs(), count)).collect();
        steps.sort_unstable();
        let mut found = Stretches { count: 1, bytes: element_bytes, gaps: 0 };
        for (step, count) in steps.into_iter().filter(|&(step, count)| step > 0 && count > 1) {
            if found.count == 1 && step <= found.bytes + gap_bytes {
                found.gaps = found.gaps * count + step.saturating_sub(found.bytes) * (count - 1);
                found.bytes += step * (count - 1);
            } else {
                found.count *= count;
            }
        }
        found.gaps *= found.count;
        found
    }

    /// Lines of the processor's cache that elements of so many bytes touch.
    pub(super) fn lines(loops: impl Iterator<Item = (u64, i64)>, element_bytes: u64) -> u64 {
        let found = Stretches::of(loops, element_bytes, LINE_BYTES.saturating_sub(element_bytes));
        // One begins at any element of a line.
        let each = 1 + found.bytes.saturating_sub(element_bytes) / LINE_BYTES;
        found.count * each
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Where elements are that loops visit.
    fn places(loops: &[(u64, i64)]) -> BTreeSet<i64> {
        let mut places = vec![0_i64];
        for &(count, step) in loops {
            places = places.iter().flat_map(|at| (0..count as i64).map(move |i| at + i * step)).collect();
        }
        places.into_iter().collect()
    }

    /// Counts lines one by one, for elements of 8 B that begin at a line.
    fn counted(loops: &[(u64, i64)]) -> u64 {
        places(loops).into_iter().map(|at| at.div_euclid(64)).collect::<BTreeSet<i64>>().len() as u64
    }

    #[test]
    fn lines_that_loops_touch_are_counted() {
        // One variable of 24 in blocks with halo, then six of them, which lie in the same lines.
        let blocks = [(5, 16 * 16 * 16 * 192), (8, 16 * 16 * 192), (8, 16 * 192), (8, 192)];
        let six = [&blocks[..], &[(6, 8)]].concat();
        for loops in [&blocks[..], &six] {
            assert_eq!((Stretches::lines(loops.iter().copied(), 8), counted(loops)), (2560, 2560));
        }
        // Two elements of each row of 128, in any order of the loops: one line of 16 in each.
        for loops in [[(2, 8), (256, 1024), (4, 262_144)], [(4, 262_144), (256, -1024), (2, 8)]] {
            assert_eq!((Stretches::lines(loops.into_iter(), 8), counted(&loops)), (1024, 1024));
        }
        // Rows that lie apart, and one stretch.
        assert_eq!(Stretches::lines([(10, 1000), (32, 8)].into_iter(), 8), 40);
        assert_eq!(Stretches::lines([(16, 256), (32, 8)].into_iter(), 8), 64);
        assert_eq!(Stretches::lines([(1, 7)].into_iter(), 8), 1);
    }

    #[test]
    fn stretches_go_over_gaps_that_are_short_enough() {
        // Half of each row, in half of the rows of each plane.
        let loops = [(3, 64_000), (10, 1000), (125, 4)];
        for (gap_bytes, count) in [(0, 30), (499, 30), (500, 3), (54_000, 3), (54_500, 1)] {
            let found = Stretches::of(loops.into_iter(), 4, gap_bytes);
            // One by one.
            let all: Vec<i64> = places(&loops).into_iter().collect();
            let apart: Vec<u64> = all.windows(2).map(|pair| (pair[1] - pair[0] - 4) as u64).collect();
            let inside = apart.iter().filter(|&&gap| gap <= gap_bytes);
            let expected = (1 + apart.iter().filter(|&&gap| gap > gap_bytes).count() as u64, inside.sum());
            assert_eq!((found.count, found.gaps), expected, "gaps of {gap_bytes} B");
            assert_eq!(found.count, count);
        }
    }
}
