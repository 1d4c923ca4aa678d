//! Units of which explicit pieces want little: that little is read instead of all that lies between.

use crate::facts::Met;
use crate::units::Unit;
use hyperslab_layout::{IndexSet, Region};

/// How many times more a whole unit must be than what is wanted of it for that to be read alone.
const SPARSE: u64 = 8;

/// What to read of a unit whose pieces are few, each element once; `None` to read all of it.
pub(super) fn regions(met: &[Met], unit: &Unit) -> Option<Vec<Region>> {
    let whole = unit.region();
    let few = |elements: u64| elements.saturating_mul(SPARSE) < whole.elements();
    // Most units are wanted whole, and one piece is looked at much faster than all are sorted.
    if !met.iter().all(|met| few(met.region.elements())) {
        return None;
    }
    let apart = apart(met.iter().map(|met| &met.region).collect(), &whole);
    few(apart.iter().map(Region::elements).sum()).then_some(apart)
}

/// The pieces, which are parted along one dimension or another as long as there is a gap between some. Where none is, they
/// are equal (ranks often want the same box), or they are taken together, with what lies between them in the unit.
fn apart(pieces: Vec<&Region>, whole: &Region) -> Vec<Region> {
    let (mut apart, mut bundles) = (Vec::new(), vec![pieces]);
    while let Some(bundle) = bundles.pop() {
        let parted = (0..whole.ndim()).map(|d| part(&bundle, d)).find(|parted| parted.len() > 1);
        match (parted, &bundle[..]) {
            (Some(parted), _) => bundles.extend(parted.into_iter().rev()),
            (None, [first, others @ ..]) if others.iter().all(|other| other == first) => apart.push((*first).clone()),
            (None, _) => apart.push(whole.intersect(&about(&bundle, whole.ndim()))),
        }
    }
    apart
}

/// Pieces in bundles with gaps between them along a dimension, in its order.
fn part<'a>(pieces: &[&'a Region], d: usize) -> Vec<Vec<&'a Region>> {
    let mut pieces = pieces.to_vec();
    pieces.sort_by_key(|piece| along(piece, d).0);
    let (mut bundles, mut reached) = (Vec::new(), 0);
    for piece in pieces {
        let (low, high) = along(piece, d);
        match bundles.last_mut() {
            Some(bundle) if low < reached => Vec::push(bundle, piece),
            _ => bundles.push(vec![piece]),
        }
        reached = reached.max(high);
    }
    bundles
}

/// The smallest box about all pieces.
fn about(pieces: &[&Region], ndim: usize) -> Region {
    let low = |d: usize| pieces.iter().map(|piece| along(piece, d).0).min().unwrap_or(0);
    let high = |d: usize| pieces.iter().map(|piece| along(piece, d).1).max().unwrap_or(0);
    Region::boxed(&(0..ndim).map(low).collect::<Vec<_>>(), &(0..ndim).map(high).collect::<Vec<_>>())
}

/// From where to where a piece reaches along a dimension.
fn along(piece: &Region, d: usize) -> (u64, u64) {
    IndexSet::hull(&piece.dims[d]).unwrap_or((0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
