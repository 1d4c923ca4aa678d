//! Folios of the system's cache, in which what is written of a file lies.
//!
//! A folio is a power of two of pages and begins at a multiple of its length (Linux, `__filemap_get_folio`). So a range that
//! begins at a multiple of the largest folio that it fills lies in about one, and any other in about as many as its number of pages
//! has binary digits. Each is found, cleared at its ends, written and sent to the disk by itself.

use crate::transfer::PAGE_BYTES;
use hyperslab_layout::Nest;

/// Pages beyond which a range lies in no more folios than so many do. Measured on ext4 with ranges of 4 KiB to 1 MiB and some
/// bytes behind each other, over ranges of powers of two: 1 us more with 2 pages, 4 with 4, 5 with 8, 6 with 16, 6 to 7 with more.
const PAGES_MAX: u64 = 16;

/// How many more folios than ranges there are in what a nest writes of a file, its side `b`.
pub(super) fn further(nest: &Nest, element_bytes: u64) -> u64 {
    let ranges = nest.runs(element_bytes, element_bytes).max(1);
    let range = nest.elements() * element_bytes / ranges;
    let digits = (range / PAGE_BYTES).clamp(1, PAGES_MAX).ilog2();
    let folio = (PAGE_BYTES << digits) as i64;
    let mut apart = nest.loops.iter().filter(|l| l.count > 1 && l.b.unsigned_abs() >= range);
    let at_folios = nest.b % folio == 0 && apart.all(|l| l.b % folio == 0);
    if at_folios { 0 } else { ranges * u64::from(digits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Loop;

    #[test]
    fn ranges_between_folios_lie_in_as_many_more_as_they_have_digits() {
        let further = |b: i64, loops: &[(u64, i64)]| {
            let loops = loops.iter().map(|&(count, b)| Loop { count, a: b, b }).collect();
            further(&Nest { a: b, b, loops }, 8)
        };
        let (four_pages, five_pages) = ((2048, 8), (2560, 8));
        // A hundred ranges of four pages, and of five: at multiples of four pages, between pages, at odd pages, and six pages apart.
        assert_eq!(further(0, &[(100, 1 << 17), four_pages]), 0);
        assert_eq!(further(8, &[(100, 1 << 17), four_pages]), 200);
        assert_eq!(further(4096, &[(100, 1 << 17), four_pages]), 200);
        assert_eq!(further(0, &[(100, 24_576), five_pages]), 200);
        // Of less than two pages, none is divided; beyond sixteen, no range lies in more.
        assert_eq!(further(8, &[(4096, 800), (13, 8)]), 0);
        assert_eq!(further(8, &[(10, 8192), (1023, 8)]), 0);
        assert_eq!([further(0, &[(131_072, 8)]), further(8, &[(131_072, 8)]), further(8, &[(1 << 24, 8)])], [0, 4, 4]);
    }
}
