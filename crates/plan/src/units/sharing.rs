//! Whether ranks meet inside chunks.

use crate::transfer::TransferArray;
use hyperslab_layout::{Dim, Distribution, Triplet};

/// Whether every chunk of the array is held by one rank (or one group of replicas) alone; when not, an example of a
/// dimension and an index, at which a rank begins inside a chunk that another one holds a part of.
pub(crate) fn shared_chunk(ask: &TransferArray, distribution: &Distribution, chunk: &[u64]) -> Option<(usize, u64)> {
    chunk.iter().enumerate().find_map(|(d, &extent)| {
        let ranks = distribution.mesh()[distribution.over()[d]?];
        let shape = distribution.shape()[d];
        let edges = match &distribution.dims()[d] {
            _ if ranks == 1 => return None,
            Dim::Whole => return None,
            Dim::Block => Edges::Every(shape.div_ceil(ranks)),
            Dim::BlockOf(n) | Dim::Cyclic(n) => Edges::Every(*n),
            Dim::Blocks(ends) => Edges::Listed(ends),
        };
        let triplet = ask.section.dims[d];
        edges.torn(triplet, shape, extent).map(|position| (d, triplet.select(position)))
    })
}

/// Positions at which one rank's part ends and the next one's begins.
enum Edges<'a> {
    /// Multiples.
    Every(u64),
    Listed(&'a [u64]),
}

impl Edges<'_> {
    /// The first edge, inside `shape`, on both sides of which the section selects of the same chunk of this extent.
    fn torn(&self, triplet: Triplet, shape: u64, chunk: u64) -> Option<u64> {
        let torn = |&edge: &u64| triplet.select(edge - 1) / chunk == triplet.select(edge) / chunk;
        match *self {
            Edges::Listed(ends) => ends.iter().copied().filter(|edge| (1..shape).contains(edge)).find(torn),
            Edges::Every(n) => {
                let edges = shape.saturating_sub(1) / n.max(1);
                (1..=edges.min(period(triplet, n, chunk))).map(|i| i * n).find(torn)
            }
        }
    }
}

/// After how many edges, `n` positions apart, they lie again as before in the section's blocks and in the chunks.
fn period(triplet: Triplet, n: u64, chunk: u64) -> u64 {
    // One block goes on without an end.
    let (block, stride) = if triplet.count <= 1 { (1, 1) } else { (triplet.block, triplet.stride) };
    // So many edges cover whole blocks, and so many indices of the array.
    let edges = block / gcd(block, n);
    let moved = u128::from(n / gcd(block, n)) * u128::from(stride) % u128::from(chunk);
    edges.saturating_mul(chunk / gcd(chunk, moved as u64))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::Spread;
    use hyperslab_layout::{ElementType, Kind, Section, Stored};

    /// Element by element: whether some chunk has two owners.
    fn shared(triplet: Triplet, distribution: &Distribution, chunk: u64) -> bool {
        let owner = |p: u64| (0..distribution.ranks()).find(|&q| distribution.owned_dim(0, q).contains(p));
        let owners: Vec<_> = (0..triplet.len()).map(|p| (triplet.select(p) / chunk, owner(p))).collect();
        owners.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1)
    }

    #[test]
    fn shared_chunks_are_found_without_looking_at_all_edges() {
        let mut random = fastrand::Rng::with_seed(23);
        let mut found = [0, 0];
        for _ in 0..20_000 {
            let block = random.u64(1..5);
            let triplet =
                Triplet { start: random.u64(0..9), stride: block + random.u64(0..6), count: random.u64(1..12), block };
            let (extent, ranks, chunk) = (triplet.len(), random.u64(1..6), random.u64(1..10));
            let dim = match random.u8(0..3) {
                0 => Dim::Block,
                1 => Dim::Cyclic(random.u64(1..6)),
                _ => {
                    let mut ends: Vec<u64> = (1..ranks).map(|_| random.u64(0..=extent)).chain([extent]).collect();
                    ends.sort_unstable();
                    Dim::Blocks(ends.into())
                }
            };
            let distribution = Distribution::new(&[extent], &[ranks], &[dim]).unwrap();
            let element = ElementType::native(Kind::Int8);
            let stored = Stored::in_file(&[1000], element, "a", 0);
            let spread = Spread::Regular(distribution.clone());
            let section = Section { dims: vec![triplet] };
            let ask = TransferArray { name: "a".into(), section, spread, memory: element, stored };
            let expected = shared(triplet, &distribution, chunk);
            let told = shared_chunk(&ask, &distribution, &[chunk]);
            assert_eq!(told.is_some(), expected, "{triplet:?} {distribution} chunks of {chunk}: {told:?}");
            found[usize::from(expected)] += 1;
        }
        assert!(found.iter().all(|&n| n > 1000), "{found:?}");
    }
}
