//! The units in which arrays of one grid are looked at: boxes of whole chunks where these are small enough, parts of one
//! chunk where they are not.

use hyperslab_layout::mesh::{unravel, volume};
use std::ops::Range;

/// Most units that are read at a time: what is noted of each takes memory, too.
const UNITS_AT_ONCE_MAX: u64 = 1 << 12;

/// The units of a grid, numbered in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct SelectGrid {
    shape: Vec<u64>,
    unit: Vec<u64>,
    counts: Vec<u64>,
    /// The last dimension in which a unit is not as long as the grid: what lies behind it is one run in file order.
    cut: usize,
}

/// One unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GridUnit {
    pub(crate) number: u64,
    pub(crate) origin: Vec<u64>,
    pub(crate) shape: Vec<u64>,
}

impl GridUnit {
    /// Number of its elements.
    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Lowest index and one past the highest, per dimension.
    pub(crate) fn bounds(&self) -> Vec<(u64, u64)> {
        self.origin.iter().zip(&self.shape).map(|(&low, &extent)| (low, low + extent)).collect()
    }
}

impl SelectGrid {
    /// Units of whole chunks with at most so many elements, as long as possible in the last dimensions; where a chunk is larger,
    /// parts of it.
    pub(crate) fn joined(shape: &[u64], chunk: &[u64], elements_max: u64) -> SelectGrid {
        let mut unit = cut_to(shape, chunk, elements_max);
        if unit.iter().zip(shape).zip(chunk).all(|((&unit, &extent), &chunk)| unit == chunk.clamp(1, extent.max(1))) {
            for dim in (0..shape.len()).rev() {
                let others = volume(&unit).unwrap_or(u64::MAX) / unit[dim].max(1);
                let most = elements_max / others.max(1) / unit[dim].max(1);
                unit[dim] = (unit[dim] * most.max(1)).min(shape[dim].max(1));
                if unit[dim] < shape[dim] {
                    break;
                }
            }
        }
        SelectGrid::of(shape, unit)
    }

    /// Units that are one chunk each, or parts of one with at most so many elements. They follow from the chunks alone.
    pub(crate) fn of_chunks(shape: &[u64], chunk: &[u64], elements_max: u64) -> SelectGrid {
        SelectGrid::of(shape, cut_to(shape, chunk, elements_max))
    }

    fn of(shape: &[u64], unit: Vec<u64>) -> SelectGrid {
        let counts = shape.iter().zip(&unit).map(|(&extent, &unit)| extent.div_ceil(unit)).collect();
        let cut = (0..shape.len()).rev().find(|&dim| unit[dim] < shape[dim]).unwrap_or(0);
        SelectGrid { shape: shape.to_vec(), unit, counts, cut }
    }

    /// Number of units.
    pub(crate) fn len(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Most elements of a unit.
    pub(crate) fn elements_max(&self) -> u64 {
        volume(&self.unit).unwrap_or(u64::MAX)
    }

    /// How many units are read at a time, where so many elements may be in memory.
    pub(crate) fn at_once(&self, elements: u64) -> u64 {
        (elements / self.elements_max().max(1)).clamp(1, UNITS_AT_ONCE_MAX)
    }

    /// The units of a rank, of so many: as many as the others have, one behind the other.
    pub(crate) fn of_rank(&self, rank: u32, ranks: u32) -> Range<u64> {
        let bound = |rank: u32| (u128::from(self.len()) * u128::from(rank) / u128::from(ranks.max(1))) as u64;
        bound(rank)..bound(rank + 1)
    }

    pub(crate) fn unit(&self, number: u64) -> GridUnit {
        let at = unravel(number, &self.counts);
        let origin: Vec<u64> = at.iter().zip(&self.unit).map(|(at, unit)| at * unit).collect();
        let extents = origin.iter().zip(&self.unit).zip(&self.shape);
        let shape = extents.map(|((&low, &unit), &extent)| unit.min(extent - low)).collect();
        GridUnit { number, origin, shape }
    }

    /// Whether each unit is one run of elements in file order, so that units in order are the file.
    pub(crate) fn is_in_order(&self) -> bool {
        self.unit[..self.cut.min(self.unit.len())].iter().all(|&extent| extent == 1)
    }

    /// Elements of one run of a unit in file order, and how many runs a unit has at most.
    pub(crate) fn run_length(&self, unit: &GridUnit) -> u64 {
        unit.shape[self.cut.min(unit.shape.len())..].iter().product::<u64>().max(1)
    }

    fn runs_max(&self) -> u64 {
        self.unit[..self.cut.min(self.unit.len())].iter().product::<u64>().max(1)
    }

    /// The number of a run of a unit, among all runs of the grid.
    pub(crate) fn run_number(&self, unit: &GridUnit, run: u64) -> u64 {
        unit.number * self.runs_max() + run
    }

    /// Where a run begins, as the number of its first element in file order.
    pub(crate) fn run_start(&self, run_number: u64) -> u64 {
        let unit = self.unit(run_number / self.runs_max());
        self.position(&unit, run_number % self.runs_max() * self.run_length(&unit))
    }

    /// The number in file order of an element of a unit, which is the one with this number in the unit.
    pub(crate) fn position(&self, unit: &GridUnit, element: u64) -> u64 {
        let at = unravel(element, &unit.shape);
        let index = at.iter().zip(&unit.origin).map(|(at, low)| at + low);
        index.zip(&self.shape).fold(0, |position, (index, &extent)| position * extent + index)
    }
}

/// A chunk, cut along its first dimensions until it has at most so many elements.
fn cut_to(shape: &[u64], chunk: &[u64], elements_max: u64) -> Vec<u64> {
    let clipped = shape.iter().zip(chunk).map(|(&extent, &chunk)| chunk.clamp(1, extent.max(1)));
    let mut unit: Vec<u64> = clipped.collect();
    for dim in 0..unit.len() {
        let others = volume(&unit).unwrap_or(u64::MAX) / unit[dim];
        unit[dim] = (elements_max / others.max(1)).clamp(1, unit[dim]);
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element lies in one unit, runs are runs in file order, and starts are where they are.
    #[test]
    fn units_hold_each_element_once() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let ndim = rng.usize(0..4);
            let shape: Vec<u64> = (0..ndim).map(|_| rng.u64(1..9)).collect();
            let chunk: Vec<u64> = (0..ndim).map(|_| rng.u64(1..10)).collect();
            let most = rng.u64(1..40);
            for grid in [SelectGrid::joined(&shape, &chunk, most), SelectGrid::of_chunks(&shape, &chunk, most)] {
                let total = volume(&shape).unwrap();
                let mut seen = vec![0; total as usize];
                let mut last = None;
                for number in 0..grid.len() {
                    let unit = grid.unit(number);
                    assert!(unit.elements() <= most.max(1), "{grid:?}");
                    let length = grid.run_length(&unit);
                    for element in 0..unit.elements() {
                        let position = grid.position(&unit, element);
                        seen[position as usize] += 1;
                        let start = grid.run_start(grid.run_number(&unit, element / length));
                        assert_eq!(position, start + element % length, "{grid:?} {unit:?}");
                        if grid.is_in_order() {
                            assert!(last < Some(position), "{grid:?}");
                        }
                        last = Some(position);
                    }
                }
                assert!(seen.iter().all(|&times| times == 1), "{grid:?}");
                let all: Vec<u64> = (0..3).flat_map(|rank| grid.of_rank(rank, 3)).collect();
                assert_eq!(all, (0..grid.len()).collect::<Vec<_>>());
            }
        }
    }
}
