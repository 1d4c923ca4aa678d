//! Which of many pieces may meet at all.

use hyperslab_layout::{IndexSet, Region};

/// From where to where a piece reaches along a dimension.
pub(crate) fn along(piece: &Region, d: usize) -> (u64, u64) {
    // Without dimensions there is one element.
    piece.dims.get(d).map_or((0, 1), |set| IndexSet::hull(set).unwrap_or((0, 0)))
}

/// Pieces in bundles, parted along one dimension or another where none of them reaches over: only pieces of one bundle may
/// meet. Boxes of a grid are parted into single ones by as many sorts as there are dimensions.
pub(crate) fn bundles<T>(pieces: Vec<&T>, region: impl Fn(&T) -> &Region) -> Vec<Vec<&T>> {
    let ndim = pieces.first().map_or(0, |piece| region(piece).ndim());
    let (mut apart, mut bundles) = (Vec::new(), vec![pieces]);
    while let Some(bundle) = bundles.pop() {
        match (0..ndim).map(|d| parted(&bundle, |piece| along(region(piece), d))).find(|parted| parted.len() > 1) {
            Some(parted) => bundles.extend(parted.into_iter().rev()),
            None => apart.push(bundle),
        }
    }
    apart
}

/// Pieces in bundles, in the order of a dimension, none of which reaches over another there.
fn parted<'a, T>(pieces: &[&'a T], along: impl Fn(&T) -> (u64, u64)) -> Vec<Vec<&'a T>> {
    if pieces.len() == 1 {
        return vec![pieces.to_vec()];
    }
    let mut pieces = pieces.to_vec();
    pieces.sort_by_key(|piece| along(piece).0);
    let (mut bundles, mut reached) = (Vec::new(), 0);
    for piece in pieces {
        let (low, high) = along(piece);
        match bundles.last_mut() {
            Some(bundle) if low < reached => Vec::push(bundle, piece),
            _ => bundles.push(vec![piece]),
        }
        reached = reached.max(high);
    }
    bundles
}
