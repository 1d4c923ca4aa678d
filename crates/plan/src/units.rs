//! Units: the boxes of a transfer that are moved as wholes, numbered the same way on every rank.
//!
//! A unit is a chunk of a chunked array, or a subchunk of an array in one file: a box whose elements are contiguous
//! in the file. Only units in which the section selects something are numbered, array after array, each array's
//! in the order of its file. Each rank finds its own units from closed forms.

use crate::transfer::{Ask, Placement, Transfer};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Distribution, IndexSet, Region, Triplet};
use std::sync::Arc;

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
    fn touched(&self, owned: &IndexSet) -> Numbers {
        let Some((low, high)) = owned.hull() else { return Numbers::Range(0, 0) };
        let number_of = |position: u64| {
            let coordinate = self.triplet.select(position) / self.unit;
            let in_list = |listed: &Vec<u64>| listed.partition_point(|&c| c < coordinate) as u64;
            self.listed.as_ref().map_or_else(|| coordinate - self.first, in_list)
        };
        let meets = |&number: &u64| {
            let (a, b) = self.positions(number);
            owned.meets(a, b)
        };
        let (first, last) = (number_of(low), number_of(high - 1));
        if self.reaches_every(owned) {
            return Numbers::Range(first, last + 1);
        }
        Numbers::List((first..=last).filter(meets).collect())
    }

    /// Whether no unit between the first and the last can miss the set: it has no gap, or gaps shorter than what any
    /// unit holds.
    fn reaches_every(&self, owned: &IndexSet) -> bool {
        match owned.terms() {
            [term] if term.count == 1 => true,
            [term] => self.triplet.count <= 1 && term.step - term.len < self.unit,
            _ => false,
        }
    }
}

/// Rising numbers of units along one dimension.
#[derive(Clone, Debug)]
enum Numbers {
    /// All of `.0 .. .1`.
    Range(u64, u64),
    List(Vec<u64>),
}

impl Numbers {
    fn len(&self) -> u64 {
        match self {
            Numbers::Range(low, high) => high - low,
            Numbers::List(list) => list.len() as u64,
        }
    }

    fn get(&self, i: u64) -> u64 {
        match self {
            Numbers::Range(low, _) => low + i,
            Numbers::List(list) => list[i as usize],
        }
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
    grids: Vec<Arc<Grid>>,
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
            let element_bytes = ask.stored.element.bytes();
            grids.push(Arc::new(Grid { axes, order, first: count, count: units, unit, element_bytes }));
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

    /// Units of one array that hold an element of `owned`, a region of its section's index space.
    pub fn touched(&self, array: u32, owned: &Region) -> Touched {
        let grid = self.grids[array as usize].clone();
        let numbers = match owned.is_empty() || grid.count == 0 {
            true => vec![Numbers::Range(0, 0)],
            false => grid.order.iter().map(|&d| grid.axes[d].touched(&owned.dims[d])).collect(),
        };
        let total = numbers.iter().map(Numbers::len).product();
        Touched { grid, array, numbers, total }
    }
}

/// Some units of one array, in rising order of their numbers, in closed form.
#[derive(Clone, Debug)]
pub struct Touched {
    grid: Arc<Grid>,
    array: u32,
    /// Per dimension, from the slowest to the fastest.
    numbers: Vec<Numbers>,
    total: u64,
}

impl Touched {
    /// How many they are.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Number, among all units, of unit `i` of these.
    pub fn number(&self, mut i: u64) -> u64 {
        let (mut offset, mut weight) = (0, 1);
        for (numbers, &d) in self.numbers.iter().zip(&self.grid.order).rev() {
            offset += numbers.get(i % numbers.len()) * weight;
            i /= numbers.len();
            weight *= self.grid.axes[d].count;
        }
        self.grid.first + offset
    }

    /// Unit `i` of these.
    pub fn unit(&self, i: u64) -> Unit {
        let mut rest = i;
        let mut at = vec![0; self.grid.axes.len()];
        for (numbers, &d) in self.numbers.iter().zip(&self.grid.order).rev() {
            at[d] = numbers.get(rest % numbers.len());
            rest /= numbers.len();
        }
        self.grid.make(self.number(i), self.array, &at)
    }

    /// How many of these have a number below `number`.
    pub fn below(&self, number: u64) -> u64 {
        let (mut low, mut high) = (0, self.total);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.number(middle) < number { low = middle + 1 } else { high = middle }
        }
        low
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
pub(crate) fn shared_chunk(ask: &Ask, distribution: &Distribution, chunk: &[u64]) -> Option<(usize, u64)> {
    for (d, &extent) in chunk.iter().enumerate() {
        let Some(m) = distribution.over()[d] else { continue };
        let ranks = distribution.mesh()[m];
        let shape = distribution.shape()[d];
        let triplet = ask.section.dims[d];
        let chunk_of = |position: u64| triplet.select(position) / extent;
        for q in 0..ranks {
            let owned = distribution.owned_dim(d, q);
            if owned.len() == shape {
                continue;
            }
            for term in owned.terms() {
                for i in 0..term.count {
                    let start = term.start + i * term.step;
                    let end = start + term.len;
                    let torn = |a: u64, b: u64| chunk_of(a) == chunk_of(b);
                    if start > 0 && torn(start - 1, start) {
                        return Some((d, triplet.select(start)));
                    }
                    if end < shape && torn(end - 1, end) {
                        return Some((d, triplet.select(end)));
                    }
                }
            }
        }
    }
    None
}
