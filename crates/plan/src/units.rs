//! Units: the boxes of a transfer that are moved as wholes, numbered the same way on every rank.
//!
//! A unit is a chunk of a chunked array, or a subchunk of an array in one file: a box whose elements are contiguous
//! in the file. Only units in which the section selects something are numbered, array after array, each array's
//! in the order of its file. Each rank finds its own units from closed forms.

use crate::transfer::{Ask, Placement, Transfer};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{IndexSet, Region, Triplet};

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

    /// Numbers of the units that hold an index of this set of positions.
    fn touched(&self, owned: &IndexSet) -> Vec<u64> {
        let Some((low, high)) = owned.hull() else { return Vec::new() };
        let number_of = |position: u64| {
            let coordinate = self.triplet.select(position) / self.unit;
            let in_list = |listed: &Vec<u64>| listed.partition_point(|&c| c < coordinate) as u64;
            self.listed.as_ref().map_or_else(|| coordinate - self.first, in_list)
        };
        let meets = |&number: &u64| {
            let (a, b) = self.positions(number);
            owned.meets(a, b)
        };
        (number_of(low)..=number_of(high - 1)).filter(meets).collect()
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
    unit: Vec<u64>,
    element_bytes: u64,
}

/// All units of a transfer.
#[derive(Clone, Debug)]
pub struct Units {
    grids: Vec<Grid>,
    count: u64,
}

impl Units {
    /// The units of a transfer whose files are cut into subchunks of at most this size.
    pub fn new(transfer: &Transfer, subchunk_bytes: u64) -> Units {
        let mut count = 0;
        let mut grids = Vec::with_capacity(transfer.asks.len());
        for ask in &transfer.asks {
            let unit = unit_shape(ask, subchunk_bytes);
            let dims = ask.section.dims.iter().zip(&ask.stored.shape).zip(&unit);
            let axes: Vec<Axis> = dims.map(|((&t, &extent), &u)| Axis::new(t, extent, u)).collect();
            let units: u64 = axes.iter().map(|axis| axis.count).product();
            let order = ask.stored.order.clone();
            grids.push(Grid {
                axes,
                order,
                first: count,
                count: units,
                unit,
                element_bytes: ask.stored.element.bytes(),
            });
            count += units;
        }
        Units { grids, count }
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
        let grid = &self.grids[array as usize];
        volume(&grid.unit).unwrap_or(u64::MAX).saturating_mul(grid.element_bytes)
    }

    /// Bytes of the largest unit \[B\].
    pub fn bytes_max(&self) -> u64 {
        (0..self.grids.len() as u32)
            .filter(|&a| self.grids[a as usize].count > 0)
            .map(|a| self.bytes(a))
            .max()
            .unwrap_or(0)
    }

    /// Bytes that coding one unit takes besides its slot, where units are encoded: its encoded form, and a copy of it on
    /// the way \[B\].
    pub fn coding_bytes_max(&self, transfer: &Transfer) -> u64 {
        let of = |(array, ask): (usize, &Ask)| match &ask.stored.placement {
            Placement::Chunks { codecs, .. } if !codecs.is_plain() => {
                codecs.max_encoded_bytes(self.bytes(array as u32)).saturating_mul(2)
            }
            _ => 0,
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

    /// Units of one array that hold an element of `owned`, a region of its section's index space, in rising order.
    pub fn touched(&self, array: u32, owned: &Region) -> impl Iterator<Item = Unit> + use<> {
        let grid = self.grids[array as usize].clone();
        let none = owned.is_empty() || grid.count == 0;
        let lists: Vec<Vec<u64>> = match none {
            true => vec![Vec::new()],
            false => grid.order.iter().map(|&d| grid.axes[d].touched(&owned.dims[d])).collect(),
        };
        let total: usize = lists.iter().map(Vec::len).product();
        (0..total).map(move |mut index| {
            let mut numbers = vec![0; grid.axes.len()];
            for (list, &d) in lists.iter().zip(&grid.order).rev() {
                numbers[d] = list[index % list.len()];
                index /= list.len();
            }
            let offset = grid.order.iter().fold(0, |n, &d| n * grid.axes[d].count + numbers[d]);
            grid.make(grid.first + offset, array, &numbers)
        })
    }
}

impl Grid {
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

/// Shape of a unit: the chunk, or the largest box of at most `bytes` that is contiguous in the file.
fn unit_shape(ask: &Ask, bytes: u64) -> Vec<u64> {
    match &ask.stored.placement {
        Placement::Chunks { chunk, .. } => chunk.clone(),
        Placement::File { .. } => {
            let order = &ask.stored.order;
            let mut unit = vec![1; order.len()];
            let mut room = (bytes / ask.stored.element.bytes()).max(1);
            for &d in order.iter().rev() {
                let extent = ask.stored.shape[d].max(1);
                unit[d] = extent.min(room);
                room /= extent;
                if room == 0 {
                    break;
                }
            }
            unit
        }
    }
}

/// Whether every chunk of the array is held by one rank (or one group of replicas) alone; when not, an example of a
/// dimension and an index at which two ranks meet inside a chunk.
pub(crate) fn shared_chunk(ask: &Ask, chunk: &[u64]) -> Option<(usize, u64)> {
    for (d, &extent) in chunk.iter().enumerate() {
        let Some(m) = ask.distribution.over()[d] else { continue };
        let ranks = ask.distribution.mesh()[m];
        let shape = ask.distribution.shape()[d];
        let triplet = ask.section.dims[d];
        let chunk_of = |position: u64| triplet.select(position) / extent;
        for q in 0..ranks {
            let owned = ask.distribution.owned_dim(d, q);
            if owned.len() == shape {
                continue;
            }
            for term in owned.terms() {
                for i in 0..term.count {
                    let start = term.start + i * term.step;
                    let end = start + term.len;
                    let torn = |a: u64, b: u64| chunk_of(a) == chunk_of(b);
                    if (start > 0 && torn(start - 1, start)) || (end < shape && torn(end - 1, end)) {
                        return Some((d, triplet.select(start)));
                    }
                }
            }
        }
    }
    None
}
