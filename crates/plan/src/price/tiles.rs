//! Pieces that no closed form describes, as the model takes them to be, since nobody knows all of them.
//!
//! The array is cut into tiles as large as a piece of one rank. They are numbered in the order of storage, and each rank
//! holds as many, one after another, the last rank first. So runs, and pieces of a chunk, are about as long and as many as they will be; how
//! pieces of several ranks lie between each other is not known.

use super::terms::MemoryLayout;
use crate::facts::{Facts, Met, Mine};
use crate::rounds::Rounds;
use crate::strategy::Parameters;
use crate::transfer::{Transfer, TransferArray};
use crate::units::Units;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{IndexSet, Region, View};
use std::sync::Arc;

/// Tiles of a unit beyond which several beside each other along a slow dimension are looked at as one: copies of as many
/// runs, as long.
const IN_UNIT_MAX: u64 = 16;
/// The same along any dimension, where runs then seem longer than they are, so that looking at a unit never takes long.
const IN_UNIT_LIMIT: u64 = 64;
/// Tiles of which a rank is told at most: what they stand for is held against the bytes that move.
const TOLD_MAX: usize = 2048;

/// The tiles of one array.
#[derive(Clone, Debug)]
pub(super) struct Tiles {
    /// Dimensions from the slowest to the fastest.
    order: Vec<usize>,
    /// Extents of what moves, and of a tile.
    shape: Vec<u64>,
    tile: Vec<u64>,
    ranks: u32,
    /// Pieces for which a tile stands.
    pub(super) pieces: u64,
    /// How each lies in memory, as if all of the array lay so.
    pub(super) view: Arc<View>,
}

impl Tiles {
    /// Of an array of which a rank holds a piece that lies so; nothing where it holds none, or none with these dimensions.
    pub(super) fn of(ask: &TransferArray, ranks: u32, laid: &MemoryLayout) -> Option<Tiles> {
        let (shape, order) = (ask.section.shape(), ask.stored.order().to_vec());
        if laid.held.len() != shape.len() || laid.held.iter().zip(&shape).any(|(held, all)| *held == 0 || held > all) {
            return None;
        }
        let region = Region::whole(&shape);
        let view = Arc::new(View::held(&region, 0, &laid.strides(&laid.held), ask.memory));
        let tile = laid.held.clone();
        let mut tiles = Tiles { order, shape, tile, ranks: ranks.max(1), pieces: 1, view };
        tiles.join(ask);
        tiles.pieces = (volume(&tiles.tile)? / volume(&laid.held)?.max(1)).max(1);
        Some(tiles)
    }

    /// Makes tiles longer along slow dimensions until a unit has few of them, as long as ranks have several; and along all
    /// where it still has very many.
    fn join(&mut self, ask: &TransferArray) {
        let unit = self.unit_of(ask);
        let slow = self.order[..self.order.len().saturating_sub(1)].to_vec();
        for d in slow {
            while self.in_unit(&unit) > IN_UNIT_MAX
                && self.tile[d] < unit[d]
                && self.count() > 4 * u64::from(self.ranks)
            {
                self.tile[d] = (2 * self.tile[d]).min(self.shape[d]);
            }
        }
        for d in self.order.clone().into_iter().rev() {
            while self.in_unit(&unit) > IN_UNIT_LIMIT && self.tile[d] < unit[d] {
                self.tile[d] = (2 * self.tile[d]).min(self.shape[d]);
            }
        }
    }

    /// About the extents of a chunk, or of a subchunk as it usually is.
    fn unit_of(&self, ask: &TransferArray) -> Vec<u64> {
        if let Some(chunk) = ask.stored.chunk() {
            return chunk.iter().zip(&self.shape).map(|(&chunk, &shape)| chunk.min(shape)).collect();
        }
        let mut left = Parameters::default().subchunk_bytes / ask.stored.element.bytes().max(1);
        let mut unit = vec![1; self.shape.len()];
        for &d in self.order.iter().rev() {
            unit[d] = self.shape[d].min(left.max(1));
            left /= unit[d];
        }
        unit
    }

    /// About how many tiles a unit of these extents meets.
    fn in_unit(&self, unit: &[u64]) -> u64 {
        let along = |d: usize| unit[d].div_ceil(self.tile[d]);
        (0..unit.len()).map(along).fold(1, u64::saturating_mul)
    }

    /// Tiles along a dimension.
    fn along(&self, d: usize) -> u64 {
        self.shape[d].div_ceil(self.tile[d])
    }

    fn count(&self) -> u64 {
        (0..self.shape.len()).map(|d| self.along(d)).fold(1, u64::saturating_mul)
    }

    /// The tiles in a box, as far as they lie in it, each with the rank that holds it.
    fn inside(&self, bounds: &[(u64, u64)]) -> impl Iterator<Item = (u32, Region)> {
        let range = |d: usize| (bounds[d].0 / self.tile[d], bounds[d].1.div_ceil(self.tile[d]).max(1));
        let turns: Vec<u64> = (0..bounds.len()).map(|d| range(d).1.saturating_sub(range(d).0)).collect();
        (0..turns.iter().product()).map(move |turn: u64| {
            let (mut rest, mut number, mut weight) = (turn, 0, 1);
            let mut dims = vec![IndexSet::empty(); bounds.len()];
            for &d in self.order.iter().rev() {
                let at = range(d).0 + rest % turns[d];
                rest /= turns[d];
                number += at * weight;
                weight *= self.along(d);
                let (low, high) = (at * self.tile[d], (at + 1) * self.tile[d]);
                dims[d] = IndexSet::range(low.max(bounds[d].0), high.min(bounds[d].1));
            }
            let place = u128::from(number) * u128::from(self.ranks) / u128::from(self.count());
            (self.rank_at(place as u32), Region { dims: dims.into_iter().collect() })
        })
    }

    /// Which rank holds the tiles at this place among those of all ranks. Those at the beginning are not the first rank's: of
    /// what it serves, only the beginning is looked at, and all of it would seem to be its own.
    fn rank_at(&self, place: u32) -> u32 {
        (place + self.ranks - 1) % self.ranks
    }

    /// The first tile of a rank.
    fn first(&self, rank: u32) -> Region {
        let place = (rank + 1) % self.ranks;
        let mut rest = (u128::from(place) * u128::from(self.count())).div_ceil(u128::from(self.ranks)) as u64;
        let mut dims = vec![IndexSet::empty(); self.shape.len()];
        for &d in self.order.iter().rev() {
            let low = rest % self.along(d) * self.tile[d];
            rest /= self.along(d);
            dims[d] = IndexSet::range(low, (low + self.tile[d]).min(self.shape[d]));
        }
        Region { dims: dims.into_iter().collect() }
    }
}

/// What a rank would know of tiles, by array, if it had been told: in the units that it handles first, so many rounds of
/// them.
pub(super) fn facts(
    tiles: &[Option<Tiles>],
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
    rank: u32,
    rounds: usize,
) -> Facts {
    let mut facts = Facts::default();
    if tiles.iter().all(Option::is_none) {
        return facts;
    }
    if let Some(served) = Rounds::of(transfer, parameters, rank) {
        let mut told = 0;
        for unit in served.first_units(rounds) {
            if told >= TOLD_MAX {
                break;
            }
            let Some(tiles) = tiles.get(unit.array as usize).and_then(Option::as_ref) else { continue };
            let met = tiles.inside(&unit.bounds).map(|(rank, region)| Met { rank, exposed: unit.array, region });
            let mut met: Vec<Met> = met.collect();
            met.sort_by_key(|met| met.rank);
            told += met.len();
            facts.met.insert(unit.number, met);
        }
        return facts;
    }
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let mut left = rounds;
    for (array, tiles) in (0_u32..).zip(tiles).filter_map(|(array, tiles)| Some((array, tiles.as_ref()?))) {
        let Some(first) = units.touched(array, tiles.first(rank)).number() else { continue };
        for number in (first..units.array_of(first).1).take(left) {
            let unit = units.unit(number);
            let own = tiles.inside(&unit.bounds).filter(|(holder, _)| *holder == rank);
            let own = own.map(|(_, region)| Mine { exposed: array, region });
            facts.mine.entry(array).or_default().extend(own);
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{Direction, Spread};
    use hyperslab_layout::stored::{Coding, Keys, Stored};
    use hyperslab_layout::{ElementType, Kind, Policies, Section};

    fn ask(shape: &[u64], chunk: &[u64]) -> TransferArray {
        let element = ElementType::native(Kind::Float64);
        let stored = Stored::in_chunks(shape, element, chunk, Keys::nested("a/"), Coding::Trailer);
        TransferArray {
            name: "a".into(),
            section: Section::whole(shape),
            spread: Spread::Explicit,
            memory: element,
            stored,
        }
    }

    fn laid(held: &[u64]) -> MemoryLayout {
        let strides = hyperslab_layout::dense_strides(held, &Vec::from_iter(0..held.len()), 8);
        MemoryLayout::new(&held.iter().copied().zip(strides).collect::<Vec<_>>(), 8)
    }

    #[test]
    fn each_element_lies_in_one_tile_and_ranks_hold_about_as_many() {
        for (shape, chunk, held, ranks) in [
            (vec![20, 30], vec![8, 8], vec![4, 4], 3),
            (vec![7, 5, 9], vec![7, 5, 9], vec![2, 2, 2], 4),
            (vec![64, 64, 64], vec![64, 64, 64], vec![4, 4, 4], 2),
            (vec![10], vec![3], vec![10], 2),
        ] {
            let tiles = Tiles::of(&ask(&shape, &chunk), ranks, &laid(&held)).unwrap();
            let whole: Vec<(u64, u64)> = shape.iter().map(|&extent| (0, extent)).collect();
            let mut held_by = vec![0_u64; ranks as usize];
            let all: Vec<(u32, Region)> = tiles.inside(&whole).collect();
            for (rank, region) in &all {
                held_by[*rank as usize] += region.elements();
            }
            let total: u64 = shape.iter().product();
            assert_eq!(held_by.iter().sum::<u64>(), total, "{shape:?} in {held:?}");
            for (i, (_, one)) in all.iter().enumerate() {
                assert!(all[..i].iter().all(|(_, other)| one.intersect(other).is_empty()));
            }
            for rank in 0..ranks {
                let first = all.iter().find(|(holder, _)| *holder == rank).map(|(_, region)| region);
                assert!(first.is_none_or(|first| *first == tiles.first(rank)), "{shape:?} in {held:?}");
                assert!(first.is_some() || all.len() < ranks as usize, "{shape:?} in {held:?}");
            }
            assert_eq!(all[0].0, ranks - 1, "the beginning is not the first rank's own");
        }
    }

    #[test]
    fn small_tiles_are_joined_along_slow_dimensions_only() {
        let tiles = Tiles::of(&ask(&[64, 64, 64], &[32, 32, 32]), 2, &laid(&[4, 4, 4])).unwrap();
        assert_eq!(tiles.tile[2], 4);
        assert_eq!(tiles.pieces, tiles.tile.iter().product::<u64>() / 64);
        assert!(tiles.inside(&[(0, 32), (0, 32), (0, 32)]).count() as u64 <= IN_UNIT_MAX);
    }

    #[test]
    fn units_of_very_many_pieces_are_looked_at_as_if_these_were_longer() {
        for (shape, chunk, held) in
            [(vec![1 << 30], vec![1 << 22], vec![1]), (vec![1000, 100_000], vec![1000, 5000], vec![1000, 1])]
        {
            let tiles = Tiles::of(&ask(&shape, &chunk), 8, &laid(&held)).unwrap();
            let unit: Vec<(u64, u64)> = chunk.iter().map(|&extent| (0, extent)).collect();
            let met = tiles.inside(&unit).count() as u64;
            assert!(met <= 2 * IN_UNIT_LIMIT, "{met} tiles of {:?}", tiles.tile);
            assert!(tiles.pieces >= chunk.iter().product::<u64>() / held.iter().product::<u64>() / met / 2);
        }
    }

    #[test]
    fn ranks_know_what_lies_in_the_units_that_they_handle() {
        let ask = ask(&[64, 64], &[16, 16]);
        let tiles = Tiles::of(&ask, 2, &laid(&[8, 8])).unwrap();
        let transfer =
            Arc::new(Transfer { direction: Direction::Read, asks: vec![ask], ranks: 2, policies: Policies::default() });
        let strategy = crate::Strategy::INDEPENDENT;
        let parameters = Parameters { strategy, servers: [0, 1].into(), ..Parameters::default() };
        let own = facts(&[Some(tiles.clone())], &transfer, &parameters, 1, 3);
        // Of the second half, the first three chunks whole.
        assert_eq!(own.mine[&0].iter().map(|mine| mine.region.elements()).sum::<u64>(), 3 * 16 * 16);
        let strategy = crate::Strategy::SERVER_DIRECTED;
        let parameters = Parameters { strategy, subchunk_bytes: 16 * 16 * 8, ..parameters };
        let served = facts(&[Some(tiles)], &transfer, &parameters, 1, 2);
        assert_eq!(served.met.keys().copied().collect::<Vec<_>>(), [1, 3]);
        assert!(served.met.values().all(|met| met.iter().map(|met| met.region.elements()).sum::<u64>() == 256));
    }
}
