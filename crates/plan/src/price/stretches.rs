//! Stretches of memory or of a file that loops visit with no large gap in between.

use crate::transfer::PAGE_BYTES;
use hyperslab_layout::Nest;
use smallvec::SmallVec;

/// Folios in which the system's cache keeps what a nest writes of a file, its side `b`. They are pages at a multiple of as
/// many: a range that begins at a page has one, and any other about as many as its number of pages has binary digits. None
/// is shorter than a page. Measured on ext4 with ranges of 4 KiB to 1 MiB and some bytes: they take longer than those that begin
/// at a page by 1 us where they have 2 pages, 4 us with 4, 5 with 8, 6 with 16, 6 to 7 with more.
pub(super) fn folios(nest: &Nest, element_bytes: u64) -> u64 {
    let (ranges, bytes) = (nest.runs(element_bytes, element_bytes).max(1), nest.elements() * element_bytes);
    let (range, page) = (bytes / ranges, PAGE_BYTES as i64);
    let apart = nest.loops.iter().filter(|l| l.count > 1 && l.b.unsigned_abs() >= range);
    let at_pages = nest.b % page == 0 && apart.map(|l| l.b).all(|step| step % page == 0);
    let pages = (range / PAGE_BYTES).max(1);
    let each = if at_pages { 1 } else { 1 + u64::from(pages.ilog2()) };
    (ranges * each).min(bytes.div_ceil(PAGE_BYTES))
}

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
    fn folios_of_ranges_that_begin_between_pages_are_as_many_as_digits() {
        use hyperslab_layout::Loop;
        let ranges = |b: i64, loops: &[(u64, i64)]| {
            let loops = loops.iter().map(|&(count, b)| Loop { count, a: b, b }).collect();
            folios(&Nest { a: b, b, loops }, 8)
        };
        // 100 ranges of 16 KiB, at pages and between; of 100 B, 40 in a page; one of 1 MiB.
        assert_eq!(ranges(0, &[(100, 1 << 17), (2048, 8)]), 100);
        assert_eq!(ranges(8, &[(100, 1 << 17), (2048, 8)]), 300);
        assert_eq!(ranges(0, &[(100, 20_000), (2048, 8)]), 300);
        assert_eq!(ranges(0, &[(4096, 800), (13, 8)]), 104);
        assert_eq!((ranges(0, &[(131_072, 8)]), ranges(8, &[(131_072, 8)])), (1, 9));
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
