//! Units of which explicit pieces want little: that little is read instead of all that lies between.

use crate::apart::{along, bundles};
use crate::facts::Met;
use crate::units::Unit;
use hyperslab_layout::Region;
use std::collections::HashSet;

/// How many times more a whole unit must be than what is wanted of it for that to be read alone.
const SPARSE: u64 = 8;
/// Pieces that are compared each with each.
const COMPARED_MAX: usize = 64;

/// What to read of a unit whose pieces are few, each element once; `None` to read all of it.
pub(super) fn regions(met: &[Met], unit: &Unit) -> Option<Vec<Region>> {
    let whole = unit.region();
    let few = |elements: u64| elements.saturating_mul(SPARSE) < whole.elements();
    // Most units are wanted whole, and to look at pieces is much faster than to sort them.
    if !met.iter().all(|met| few(met.region.elements())) {
        return None;
    }
    let apart = apart(met.iter().map(|met| &met.region).collect(), &whole);
    few(apart.iter().map(Region::elements).sum()).then_some(apart)
}

/// Regions that have no element in common and cover the pieces: what cannot be parted mostly is one box that several ranks
/// want.
fn apart(pieces: Vec<&Region>, whole: &Region) -> Vec<Region> {
    let bundles = bundles(pieces, |piece| piece);
    bundles.into_iter().flat_map(|bundle| distinct(bundle, whole)).collect()
}

/// Pieces that reach over each other: each once, where they have no element in common, as when ranks take turns; otherwise
/// what the unit has in the box about them.
fn distinct(mut pieces: Vec<&Region>, whole: &Region) -> Vec<Region> {
    #[allow(clippy::mutable_key_type, reason = "what sets keep beside their parts changes neither equality nor hash")]
    let mut seen = HashSet::new();
    pieces.retain(|&piece| seen.insert(piece));
    let meet = |(i, piece): (usize, &&Region)| pieces[..i].iter().any(|other| !other.intersect(piece).is_empty());
    if pieces.len() <= COMPARED_MAX && !pieces.iter().enumerate().any(meet) {
        return pieces.into_iter().cloned().collect();
    }
    vec![whole.intersect(&about(&pieces, whole.ndim()))]
}

/// The smallest box about all pieces.
fn about(pieces: &[&Region], ndim: usize) -> Region {
    let low = |d: usize| pieces.iter().map(|piece| along(piece, d).0).min().unwrap_or(0);
    let high = |d: usize| pieces.iter().map(|piece| along(piece, d).1).max().unwrap_or(0);
    Region::boxed(&(0..ndim).map(low).collect::<Vec<_>>(), &(0..ndim).map(high).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::IndexSet;

    fn boxes(all: &[[[u64; 2]; 2]]) -> Vec<Region> {
        all.iter().map(|[low, high]| Region::boxed(low, high)).collect()
    }

    fn parted(all: &[Region]) -> Vec<Region> {
        apart(all.iter().collect(), &Region::whole(&[100, 100]))
    }

    #[test]
    fn pieces_that_lie_apart_stay_as_they_are() {
        // A gap along rows parts the first from the others, one along columns these.
        let all = boxes(&[[[0, 0], [2, 9]], [[5, 0], [9, 3]], [[6, 3], [8, 5]]]);
        assert_eq!(parted(&all), all);
    }

    #[test]
    fn what_many_ranks_want_is_there_once() {
        let all = boxes(&[[[1, 1], [3, 4]], [[7, 2], [8, 3]], [[1, 1], [3, 4]], [[1, 1], [3, 4]]]);
        assert_eq!(parted(&all), all[..2]);
    }

    #[test]
    fn pieces_that_overlap_are_taken_together() {
        let all = boxes(&[[[1, 1], [3, 4]], [[2, 2], [5, 3]], [[7, 2], [8, 3]]]);
        assert_eq!(parted(&all), boxes(&[[[1, 1], [5, 4]], [[7, 2], [8, 3]]]));
    }

    #[test]
    fn ranks_that_take_turns_are_not_taken_together() {
        let turns = |start: u64| Region {
            dims: [IndexSet::range(3, 4), IndexSet::progression(start, 1, 20, 4).unwrap()].into_iter().collect(),
        };
        let (even, odd) = (turns(0), turns(10));
        assert_eq!(parted(&[even.clone(), odd.clone(), even.clone()]), [even, odd]);
    }

    /// A tenth of a unit is read by itself, however many ranks want it; more, or what lies far apart in it, with all of it.
    #[test]
    fn only_little_is_read_by_itself() {
        let unit = Unit {
            number: 0,
            array: 0,
            at: vec![0, 0],
            bounds: vec![(0, 100), (0, 100)],
            low: vec![0, 0],
            extent: vec![100, 100],
            covered: true,
        };
        let read = |pieces: Vec<Region>| {
            let met = |(rank, region): (u32, Region)| Met { rank, exposed: 0, region };
            regions(&(0..).zip(pieces).map(met).collect::<Vec<_>>(), &unit)
        };
        let rows = |low: u64, high: u64| Region::boxed(&[low, 0], &[high, 100]);
        assert_eq!(read(vec![rows(20, 30); 50]), Some(vec![rows(20, 30)]));
        assert_eq!(read(vec![rows(20, 30), rows(40, 50)]), None);
        let crossing = vec![Region::boxed(&[0, 50], &[100, 51]), Region::boxed(&[50, 0], &[51, 100])];
        assert_eq!(read(crossing), None);
    }

    /// Whatever pieces there are, each of their elements is in one region, and no element in two.
    #[test]
    fn each_element_is_covered_once() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..500 {
            let mut some = || {
                let low = [random.u64(0..12), random.u64(0..12)];
                Region::boxed(&low, &[low[0] + random.u64(1..5), low[1] + random.u64(1..5)])
            };
            let pieces: Vec<Region> = (0..6).map(|_| some()).collect();
            let regions = parted(&pieces);
            let times = |y, x| regions.iter().filter(|r| r.dims[0].contains(y) && r.dims[1].contains(x)).count();
            for (y, x) in (0..16 * 16).map(|at| (at / 16, at % 16)) {
                let wanted = pieces.iter().any(|piece| piece.dims[0].contains(y) && piece.dims[1].contains(x));
                let times = times(y, x);
                assert!(times <= 1 && (times == 1 || !wanted), "{y}, {x} of {pieces:?}: {regions:?}");
            }
        }
    }
}
