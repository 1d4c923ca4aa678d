//! Who holds what of a box, rank after rank.

use crate::{Distribution, Holders, IndexSet, Region};
use smallvec::SmallVec;

/// Ranks that hold something of a box, in rising order, each with its elements of the box.
///
/// The coordinates of the mesh turn like an odometer, and only what a turned coordinate holds is computed anew: a step
/// costs the same however many ranks there are, and so does the whole in memory.
#[derive(Clone, Debug)]
pub struct Holdings {
    distribution: Distribution,
    bounds: SmallVec<[(u64, u64); 4]>,
    holders: Holders,
    /// One for each mesh dimension.
    wheels: SmallVec<[Wheel; 4]>,
    /// What the current coordinates hold of the box, by dimension of the array.
    sets: SmallVec<[IndexSet; 3]>,
    /// The rank of the current coordinates, while they are still to be told.
    rank: Option<u32>,
}

/// One mesh dimension.
#[derive(Clone, Copy, Debug)]
struct Wheel {
    /// The array's dimension that is spread over it.
    dim: Option<usize>,
    /// Distance of ranks that are neighbours along it.
    weight: u64,
    /// Number of coordinates.
    count: u64,
    /// Number of the current one.
    number: u64,
    /// The coordinate.
    coordinate: u64,
}

impl Holdings {
    pub(crate) fn new(distribution: &Distribution, bounds: &[(u64, u64)], holders: Holders) -> Holdings {
        let any = holders.total() > 0;
        let mut holdings = Holdings {
            distribution: distribution.clone(),
            bounds: bounds.into(),
            holders,
            wheels: SmallVec::new(),
            sets: bounds.iter().map(|&(low, high)| IndexSet::range(low, high)).collect(),
            rank: None,
        };
        if any {
            holdings.mount();
            holdings.settle();
        }
        holdings
    }

    /// Sets all wheels to their first coordinate.
    fn mount(&mut self) {
        let mesh = self.distribution.mesh();
        let over = self.distribution.over();
        let dim = |m: usize| over.iter().position(|&on| on == Some(m));
        let wheel = |m: usize| Wheel {
            dim: dim(m),
            weight: mesh[m + 1..].iter().product(),
            count: self.holders.along(m),
            number: 0,
            coordinate: 0,
        };
        self.wheels = (0..mesh.len()).map(wheel).collect();
        for m in 0..self.wheels.len() {
            self.set(m, 0);
        }
        self.found();
    }

    /// Notes the rank of the current coordinates.
    fn found(&mut self) {
        let weighed = |wheel: &Wheel| wheel.coordinate * wheel.weight;
        self.rank = Some(self.wheels.iter().map(weighed).sum::<u64>() as u32);
    }

    /// Turns a wheel to its coordinate with this number.
    fn set(&mut self, m: usize, number: u64) {
        let coordinate = self.holders.coordinate(m, number);
        let wheel = &mut self.wheels[m];
        (wheel.number, wheel.coordinate) = (number, coordinate);
        if let Some(d) = wheel.dim {
            let (low, high) = self.bounds[d];
            self.sets[d] = self.distribution.owned_within(d, coordinate, low, high);
        }
    }

    /// The current rank; `None` behind the last.
    #[inline]
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// What the current rank holds of the box.
    #[inline]
    pub fn region(&self) -> Region {
        Region { dims: self.sets.clone() }
    }

    /// Goes on to the next rank.
    pub fn advance(&mut self) {
        self.turn();
        self.settle();
    }

    /// Goes on to a rank that holds something.
    fn settle(&mut self) {
        while self.rank.is_some() && self.sets.iter().any(IndexSet::is_empty) {
            self.turn();
        }
    }

    /// Turns the last wheel that can be, and those behind it back to the start.
    fn turn(&mut self) {
        for m in (0..self.wheels.len()).rev() {
            let Wheel { number, count, .. } = self.wheels[m];
            if number + 1 < count {
                self.set(m, number + 1);
                self.found();
                return;
            }
            if count > 1 {
                self.set(m, 0);
            }
        }
        self.rank = None;
    }
}

impl Iterator for Holdings {
    type Item = (u32, Region);

    fn next(&mut self) -> Option<(u32, Region)> {
        let held = (self.rank()?, self.region());
        self.advance();
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dim;

    /// Any way to spread an extent over some ranks.
    fn any_dim(random: &mut fastrand::Rng, extent: u64, ranks: u64) -> Dim {
        match random.u8(0..5) {
            0 => Dim::Block,
            1 => Dim::BlockOf(extent.div_ceil(ranks) + random.u64(1..3)),
            2 => Dim::Cyclic(random.u64(1..4)),
            3 => {
                let mut ends: Vec<u64> = (1..ranks).map(|_| random.u64(0..=extent)).chain([extent]).collect();
                ends.sort_unstable();
                Dim::Blocks(ends.into())
            }
            _ => Dim::Whole,
        }
    }

    #[test]
    fn holdings_are_the_pieces_of_all_ranks() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..3000 {
            let ndim = random.usize(0..4);
            let shape: Vec<u64> = (0..ndim).map(|_| random.u64(1..14)).collect();
            let mut mesh: Vec<u64> = (0..ndim + random.usize(0..2)).map(|_| random.u64(1..5)).collect();
            let mut over: Vec<usize> = (0..mesh.len()).collect();
            random.shuffle(&mut over);
            let dims: Vec<Dim> = (0..ndim).map(|d| any_dim(&mut random, shape[d], mesh[over[d]])).collect();
            let mut left = over.into_iter();
            let over: Vec<usize> =
                dims.iter().zip(&mut left).filter(|(dim, _)| **dim != Dim::Whole).map(|(_, m)| m).collect();
            if mesh.is_empty() {
                mesh.push(1);
            }
            let d = Distribution::over_mesh(&shape, &mesh, &dims, &over).unwrap();
            let bounds: Vec<(u64, u64)> = shape
                .iter()
                .map(|&extent| {
                    let low = random.u64(0..extent);
                    (low, random.u64(low..=extent))
                })
                .collect();
            let replica = random.bool().then(|| random.u64(0..9));
            let expected: Vec<(u32, Region)> =
                d.owners(&bounds, replica).into_iter().map(|rank| (rank, d.piece(rank, &bounds))).collect();
            assert_eq!(d.holdings(&bounds, replica).collect::<Vec<_>>(), expected, "{d}, {bounds:?}, {replica:?}");
        }
    }
}
