//! Units: the boxes of a transfer that are moved as wholes, numbered the same way on every rank.
//!
//! A unit is a chunk of a chunked array, or a subchunk of an array in one file: a box whose elements are contiguous
//! in the file. Only units in which the section selects something are numbered, array after array, each array's
//! in the order of its file. Each rank finds its own units from closed forms.

mod sharing;
mod touched;

use crate::transfer::{Transfer, TransferArray};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{IndexSet, Region, Triplet};
pub(crate) use sharing::shared_chunk;
use std::sync::Arc;
pub use touched::Touched;

/// The units along one dimension.
#[derive(Clone, Debug)]
struct Axis {
    triplet: Triplet,
    extent: u64,
    unit: u64,
    first: u64,
    count: u64,
    /// Coordinates of units that hold something, when some between the first and the last do not.
    listed: Option<Vec<u64>>,
}

/// Units along a dimension that are counted one by one.
const COUNTED_MAX: u64 = 256;

impl Axis {
    fn new(triplet: Triplet, extent: u64, unit: u64) -> Axis {
        let mut axis = Axis { triplet, extent, unit, first: 0, count: 0, listed: None };
        let Some((low, high)) = triplet.set().hull() else { return axis };
        axis.first = low / unit;
        axis.count = (high - 1) / unit - axis.first + 1;
        // A gap shorter than a unit cannot skip one.
        if triplet.count > 1 && triplet.stride - triplet.block >= unit {
            let mut listed: Vec<u64> = (0..triplet.count)
                .map(|i| triplet.start + i * triplet.stride)
                .flat_map(|start| start / unit..=(start + triplet.block - 1) / unit)
                .collect();
            listed.dedup();
            axis.count = listed.len() as u64;
            axis.listed = Some(listed);
        }
        axis
    }

    fn coordinate(&self, number: u64) -> u64 {
        self.listed.as_ref().map_or(self.first + number, |listed| listed[number as usize])
    }

    /// The section's positions inside unit `number`.
    fn positions(&self, number: u64) -> (u64, u64) {
        let low = self.coordinate(number) * self.unit;
        self.triplet.positions(low, low + self.unit)
    }

    /// The unit that holds a position of the section.
    fn number_of(&self, position: u64) -> u64 {
        let index = if self.triplet.count <= 1 { self.triplet.start + position } else { self.triplet.select(position) };
        let coordinate = index / self.unit;
        let in_list = |listed: &Vec<u64>| listed.partition_point(|&c| c < coordinate) as u64;
        self.listed.as_ref().map_or_else(|| coordinate - self.first, in_list)
    }

    /// The first unit, of this number or above, that holds a position of this set.
    fn touched(&self, owned: &IndexSet, number: u64) -> Option<u64> {
        if number >= self.count {
            return None;
        }
        owned.at_or_after(self.positions(number).0).map(|position| self.number_of(position))
    }

    /// How many units hold a position of this set; about so many, where there are very many and the set has gaps.
    fn count_touched(&self, owned: &IndexSet) -> u64 {
        let Some((low, high)) = owned.hull().filter(|_| self.count > 0) else { return 0 };
        let (first, last) = (self.number_of(low), self.number_of(high - 1));
        if owned.as_range().is_some() {
            return last - first + 1;
        }
        let (mut count, mut next) = (0, Some(first));
        while let Some(number) = next {
            count += 1;
            if count == COUNTED_MAX {
                // What was seen stands for the others.
                let seen = number - first + 1;
                return (u128::from(count) * u128::from(last - first + 1) / u128::from(seen)) as u64;
            }
            next = self.touched(owned, number + 1);
        }
        count
    }
}

/// A unit, in the section's index space and in the stored array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Number among all units of the transfer.
    pub number: u64,
    /// Which array.
    pub array: u32,
    /// Grid coordinates.
    pub at: Vec<u64>,
    /// Positions of the section, per dimension.
    pub bounds: Vec<(u64, u64)>,
    /// First index in the stored array, per dimension.
    pub low: Vec<u64>,
    /// Extent inside the stored array, per dimension: smaller than the unit's shape at the edge.
    pub extent: Vec<u64>,
    /// Whether the section selects every element.
    pub covered: bool,
}

impl Unit {
    /// The section's elements in it, as a region of the section's index space.
    pub fn region(&self) -> Region {
        Region { dims: self.bounds.iter().map(|&(a, b)| IndexSet::range(a, b)).collect() }
    }
}

#[derive(Clone, Debug)]
struct Grid {
    axes: Vec<Axis>,
    /// Dimensions from the slowest to the fastest.
    order: Vec<usize>,
    /// Number of the first unit.
    first: u64,
    count: u64,
    /// Distance of the numbers of units that are neighbours along each dimension.
    weights: Vec<u64>,
    unit: Vec<u64>,
    element_bytes: u64,
}

/// All units of a transfer.
#[derive(Clone, Debug)]
pub struct Units {
    /// Shared, since who goes through the pieces of thousands of arrays has the units of all at each.
    grids: Arc<[Arc<Grid>]>,
    count: u64,
    bytes_max: u64,
}

impl Units {
    /// The units of a transfer whose files are cut into subchunks of at most this size.
    pub fn new(transfer: &Transfer, subchunk_bytes: u64) -> Units {
        let (mut count, mut bytes_max) = (0, 0);
        let mut grids = Vec::with_capacity(transfer.asks.len());
        for ask in &transfer.asks {
            let unit = ask.stored.unit_shape(subchunk_bytes);
            let dims = ask.section.dims.iter().zip(&ask.stored.shape).zip(&unit);
            let axes: Vec<Axis> = dims.map(|((&t, &extent), &u)| Axis::new(t, extent, u)).collect();
            let units: u64 = axes.iter().map(|axis| axis.count).product();
            let order = ask.stored.order().to_vec();
            let element_bytes = ask.stored.element.bytes();
            let mut weights = vec![1; axes.len()];
            for pair in order.windows(2).rev() {
                weights[pair[0]] = weights[pair[1]] * axes[pair[1]].count;
            }
            let grid = Grid { axes, order, first: count, count: units, weights, unit, element_bytes };
            if units > 0 {
                bytes_max = bytes_max.max(grid.bytes());
            }
            grids.push(Arc::new(grid));
            count += units;
        }
        Units { grids: grids.into(), count, bytes_max }
    }

    /// Number of units.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Shape of the units of an array.
    pub fn shape(&self, array: u32) -> &[u64] {
        &self.grids[array as usize].unit
    }

    /// Bytes that a unit of the array needs in a slot \[B\].
    pub fn bytes(&self, array: u32) -> u64 {
        self.grids[array as usize].bytes()
    }

    /// Bytes of the largest unit \[B\].
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Bytes that coding one unit takes besides its slot, where units are encoded: its encoded form, and a copy of it on
    /// the way \[B\].
    pub fn coding_bytes_max(&self, transfer: &Transfer) -> u64 {
        let of = |(array, ask): (usize, &TransferArray)| {
            let plain = self.bytes(array as u32);
            ask.stored.codec().map_or(0, |codec| codec.encoded_bytes_max(plain).saturating_mul(2))
        };
        transfer.asks.iter().enumerate().map(of).max().unwrap_or(0)
    }

    /// The unit with this number.
    pub fn unit(&self, number: u64) -> Unit {
        let array = self.grids.partition_point(|grid| grid.first <= number) - 1;
        let grid = &self.grids[array];
        let mut rest = number - grid.first;
        let mut numbers = vec![0; grid.axes.len()];
        for &d in grid.order.iter().rev() {
            numbers[d] = rest % grid.axes[d].count;
            rest /= grid.axes[d].count;
        }
        grid.make(number, array as u32, &numbers)
    }

    /// The array that unit `number` belongs to, and one past its last unit.
    pub(crate) fn array_of(&self, number: u64) -> (u32, u64) {
        let array = self.grids.partition_point(|grid| grid.first <= number) - 1;
        (array as u32, self.grids[array].first + self.grids[array].count)
    }

    /// Units of one array that hold an element of `owned`, a region of its section's index space.
    pub fn touched(&self, array: u32, owned: Region) -> Touched {
        Touched::new(self.grids[array as usize].clone(), array, owned)
    }
}

impl Units {
    /// How many units of one array hold an element of a region of its section's index space; about so many, where there are
    /// very many.
    pub(crate) fn count_touched(&self, array: u32, owned: &Region) -> u64 {
        let counts = self.grids[array as usize].axes.iter().zip(&owned.dims).map(|(axis, set)| axis.count_touched(set));
        counts.fold(1, u64::saturating_mul)
    }
}

impl Grid {
    /// Bytes that a unit needs in a slot \[B\].
    fn bytes(&self) -> u64 {
        volume(&self.unit).unwrap_or(u64::MAX).saturating_mul(self.element_bytes)
    }

    fn make(&self, number: u64, array: u32, numbers: &[u64]) -> Unit {
        let dims = || self.axes.iter().zip(numbers);
        let at: Vec<u64> = dims().map(|(axis, &n)| axis.coordinate(n)).collect();
        let low: Vec<u64> = at.iter().zip(&self.unit).map(|(&c, &u)| c * u).collect();
        let extent: Vec<u64> =
            self.axes.iter().zip(&low).map(|(axis, &low)| axis.unit.min(axis.extent.saturating_sub(low))).collect();
        let bounds: Vec<(u64, u64)> = dims().map(|(axis, &n)| axis.positions(n)).collect();
        let covered = bounds.iter().zip(&extent).all(|(&(a, b), &extent)| b - a == extent);
        Unit { number, array, at, bounds, low, extent, covered }
    }
}
