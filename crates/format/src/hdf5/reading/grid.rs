//! The part of a grid of chunks that is asked for, and how indexes number chunks.

use std::cmp::Ordering;
use std::ops::Range;

/// Chunks from one corner to another, in the order of an index, in which the unlimited dimension may come first.
#[derive(Clone)]
pub(super) struct WantedChunks {
    /// In the order of the index.
    ranges: Vec<Range<u64>>,
    /// Which dimension comes first.
    first: usize,
    /// How many chunks follow each other in the dimensions behind each, in the order of the index.
    strides: Vec<u64>,
    /// The first number that is asked for; no number at all if there is none behind the last.
    begin: Option<u64>,
}

impl WantedChunks {
    /// These ranges, within a grid that may grow to so many chunks along each dimension; the first may grow without limit.
    /// Nothing where there are more chunks than numbers.
    pub(super) fn new(ranges: &[Range<u64>], most: &[u64], first: usize) -> Option<WantedChunks> {
        let mut most = most.to_vec();
        most[..=first].rotate_right(1);
        let mut ranges = ranges.to_vec();
        ranges[..=first].rotate_right(1);
        let mut strides = vec![1u64; most.len()];
        for dimension in (0..most.len().saturating_sub(1)).rev() {
            strides[dimension] = strides[dimension + 1].checked_mul(most[dimension + 1].max(1))?;
        }
        Some(WantedChunks { ranges, first, strides, begin: Some(0) })
    }

    /// Only what comes behind these coordinates, in the order of the index.
    pub(super) fn behind(mut self, after: &[u64]) -> WantedChunks {
        let mut place = after.to_vec();
        place[..=self.first].rotate_right(1);
        self.begin = self.number(&place).and_then(|number| number.checked_add(1));
        self
    }

    /// Whether nothing is asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.iter().any(Range::is_empty)
    }

    /// Coordinates of a number, in the order of the index.
    fn place(&self, mut number: u64) -> Vec<u64> {
        let along = |&stride: &u64| {
            let coordinate = number / stride;
            number %= stride;
            coordinate
        };
        self.strides.iter().map(along).collect()
    }

    /// The number of coordinates, which are in the order of the index.
    fn number(&self, place: &[u64]) -> Option<u64> {
        place.iter().zip(&self.strides).try_fold(0u64, |all, (at, stride)| all.checked_add(at.checked_mul(*stride)?))
    }

    /// The first number from this one on that is asked for, with its coordinates.
    pub(super) fn from(&self, number: u64) -> Option<(u64, Vec<u64>)> {
        let mut place = next(&self.ranges, &self.place(number.max(self.begin?)))?;
        let number = self.number(&place)?;
        place[..=self.first].rotate_left(1);
        Some((number, place))
    }

    /// Whether any of these numbers is asked for.
    pub(super) fn touches(&self, numbers: Range<u64>) -> bool {
        self.from(numbers.start).is_some_and(|(number, _)| number < numbers.end)
    }
}

/// The first coordinates of a box that are not before these, in row-major order.
pub(super) fn next(ranges: &[Range<u64>], from: &[u64]) -> Option<Vec<u64>> {
    if ranges.iter().any(Range::is_empty) {
        return None;
    }
    let mut place = from.to_vec();
    for dimension in 0..ranges.len() {
        let mut changed = dimension;
        if place[dimension] >= ranges[dimension].end {
            // One further along the last dimension before, in which there is room.
            changed = (0..dimension).rev().find(|&before| place[before] + 1 < ranges[before].end)?;
            place[changed] += 1;
            changed += 1;
        } else if place[dimension] >= ranges[dimension].start {
            continue;
        }
        for (at, range) in place.iter_mut().zip(ranges).skip(changed) {
            *at = range.start;
        }
        break;
    }
    Some(place)
}

/// Whether a box has anything from `low` to `high`, both included, in row-major order.
pub(super) fn has_between(ranges: &[Range<u64>], low: &[u64], high: Option<&[u64]>) -> bool {
    next(ranges, low).is_some_and(|found| high.is_none_or(|high| found.as_slice().cmp(high) != Ordering::Greater))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All chunks of a small grid, one by one.
    #[test]
    fn what_follows_is_what_comes_first() {
        let most = [3, 4, 2];
        let all: Vec<[u64; 3]> = (0..24).map(|number| [number / 8, number / 2 % 4, number % 2]).collect();
        for (low, high) in all.iter().flat_map(|low| all.iter().map(move |high| (low, high))) {
            let ranges: Vec<Range<u64>> = low.iter().zip(high).map(|(&low, &high)| low..high + 1).collect();
            let inside = |place: &[u64; 3]| place.iter().zip(&ranges).all(|(at, range)| range.contains(at));
            let wanted = WantedChunks::new(&ranges, &most, 0).unwrap();
            for (number, place) in all.iter().enumerate() {
                let expected = all[number..].iter().position(inside).map(|more| number + more);
                let found = wanted.from(number as u64);
                assert_eq!(found, expected.map(|at| (at as u64, all[at].to_vec())), "{ranges:?} from {place:?}");
            }
        }
    }

    #[test]
    fn the_unlimited_dimension_may_come_first() {
        let wanted = WantedChunks::new(&[0..2, 0..9, 1..3], &[2, 5, 3], 1).unwrap();
        // Row-major in (second, first, third) of extents (any, 2, 3).
        assert_eq!(wanted.from(0), Some((1, vec![0, 0, 1])));
        assert_eq!(wanted.from(3), Some((4, vec![1, 0, 1])));
        assert_eq!(wanted.from(6), Some((7, vec![0, 1, 1])));
        assert_eq!(wanted.from(54), None);
        assert!(wanted.touches(0..2) && !wanted.touches(0..1));
    }
}
