//! How ranks hold an array: by a distribution, or each rank in pieces of its own.

use crate::array::{LocalArray, check_ranks};
use hyperslab_layout::mesh::{unravel, volume};
use hyperslab_layout::{Axis, Distribution, ElementType, IndexSet, Layer, Region, View, dense_strides, layers};
use hyperslab_pack::Memory;
use hyperslab_plan::{Mine, Spread};
use hyperslab_world::{Exposed, Fault, FaultKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Layers that a list of runs may need: how often a reader may name one element.
const LAYERS_MAX: usize = 64;

/// How the ranks hold an array, or a section of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holding {
    /// As a distribution says, which is the same on all ranks.
    Regular(Distribution),
    /// In boxes, of which this rank holds these, each in an array of its own: blocks of an adaptive mesh.
    Boxes {
        /// Global shape, the same on all ranks.
        shape: Vec<u64>,
        /// Lowest index and one past the highest, per dimension, of each box.
        boxes: Vec<Vec<(u64, u64)>>,
    },
    /// Element by element: runs of the global array, in row-major order of its elements, lie one after another in one
    /// array of one dimension (maps of degrees of freedom as in PIO, offsets and lengths as in Galley).
    Runs {
        /// Global shape, the same on all ranks.
        shape: Vec<u64>,
        /// First element and length of each run.
        runs: Vec<(u64, u64)>,
    },
}

impl From<Distribution> for Holding {
    fn from(distribution: Distribution) -> Holding {
        Holding::Regular(distribution)
    }
}

impl fmt::Display for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holding::Regular(distribution) => distribution.fmt(f),
            // Ranks compare this text: what is a rank's own is not in it.
            Holding::Boxes { .. } | Holding::Runs { .. } => {
                write!(f, "{:?} in pieces of each rank's own", self.shape())
            }
        }
    }
}

/// An array of this rank as it takes part in a transfer, and which elements it holds where no closed form says so.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) exposed: Exposed,
    pub(crate) region: Option<Region>,
}

/// The arrays of a rank that take part in a transfer, by the numbers under which they are exposed, and its own pieces.
pub(crate) type Exposure = (Vec<Exposed>, BTreeMap<u32, Vec<Mine>>);

/// Gives the parts of each array their numbers: the first part of array i is exposed under i, further ones behind all
/// arrays.
pub(crate) fn number_parts(arrays: Vec<Vec<Part>>) -> Exposure {
    let (mut first, mut further) = (Vec::with_capacity(arrays.len()), Vec::new());
    let mut mine = BTreeMap::new();
    let count = arrays.len();
    for (array, parts) in arrays.into_iter().enumerate() {
        let explicit = parts.is_empty() || parts.iter().any(|part| part.region.is_some());
        let mut pieces = Vec::new();
        for (i, Part { exposed, region }) in parts.into_iter().enumerate() {
            let number = if i == 0 { array } else { count + further.len() };
            pieces.extend(region.map(|region| Mine { exposed: number as u32, region }));
            if i == 0 { first.push(exposed) } else { further.push(exposed) }
        }
        if first.len() == array {
            first.push(nothing());
        }
        if explicit {
            mine.insert(array as u32, pieces);
        }
    }
    first.extend(further);
    (first, mine)
}

/// Stands for an array of which this rank holds nothing.
fn nothing() -> Exposed {
    let element = ElementType::native(hyperslab_layout::Kind::UInt8);
    let view = View { base: 0, axes: Vec::new(), element };
    Exposed { memory: Memory::from_vec(Vec::new()), view: Arc::new(view) }
}

impl Holding {
    /// All of an array of this shape on each rank.
    pub(crate) fn replicated(shape: &[u64], ranks: u32) -> Result<Holding, Fault> {
        Distribution::replicated(shape, u64::from(ranks))
            .map(Holding::Regular)
            .map_err(|error| Fault::new(FaultKind::Invalid, error.to_string()))
    }

    /// Global shape.
    pub fn shape(&self) -> &[u64] {
        match self {
            Holding::Regular(distribution) => distribution.shape(),
            Holding::Boxes { shape, .. } | Holding::Runs { shape, .. } => shape,
        }
    }

    /// Number of local arrays that hold this rank's part.
    pub fn arrays(&self) -> usize {
        match self {
            Holding::Boxes { boxes, .. } => boxes.len(),
            Holding::Regular(_) | Holding::Runs { .. } => 1,
        }
    }

    /// The distribution, where there is one.
    pub fn regular(&self) -> Option<&Distribution> {
        match self {
            Holding::Regular(distribution) => Some(distribution),
            _ => None,
        }
    }

    pub(crate) fn spread(&self) -> Spread {
        self.regular().map_or(Spread::Explicit, |distribution| Spread::Regular(distribution.clone()))
    }

    /// Shapes of this rank's local arrays.
    pub fn local_shapes(&self, rank: u32) -> Vec<Vec<u64>> {
        match self {
            Holding::Regular(distribution) if u64::from(rank) >= distribution.ranks() => {
                vec![vec![0; distribution.shape().len()]]
            }
            Holding::Regular(distribution) => vec![distribution.owned(rank).shape()],
            Holding::Boxes { boxes, .. } => {
                boxes.iter().map(|b| b.iter().map(|(low, high)| high.saturating_sub(*low)).collect()).collect()
            }
            Holding::Runs { runs, .. } => vec![vec![runs.iter().map(|run| run.1).fold(0, u64::saturating_add)]],
        }
    }

    /// Checks that pieces lie in the array and ranks in the communicator.
    pub(crate) fn check(&self, name: &str, (rank, size): (u32, u32)) -> Result<(), Fault> {
        let outside = |what: String, why: &str| {
            let text = format!("{what} of '{name}' on rank {rank} {why} {:?}", self.shape());
            Err(Fault::new(FaultKind::Invalid, text).hint("indices count from 0, and the upper bound is not included"))
        };
        match self {
            Holding::Regular(distribution) => check_ranks(name, distribution, size),
            Holding::Boxes { shape, boxes } => {
                for (i, bounds) in boxes.iter().enumerate() {
                    if bounds.len() != shape.len() {
                        return outside(
                            format!("box {i} {bounds:?}"),
                            "has another number of dimensions than the array",
                        );
                    }
                    let fits = |(&(low, high), &extent): (&(u64, u64), &u64)| low <= high && high <= extent;
                    if !bounds.iter().zip(shape).all(fits) {
                        return outside(format!("box {i} {bounds:?}"), "does not lie in the array of shape");
                    }
                }
                Ok(())
            }
            Holding::Runs { shape, runs } => {
                let elements = volume(shape).unwrap_or(u64::MAX);
                let beyond = runs.iter().find(|(start, len)| start.checked_add(*len).is_none_or(|end| end > elements));
                match beyond {
                    Some((start, len)) => {
                        let what = format!("the run of {len} elements from element {start}");
                        outside(what, &format!("reaches beyond the {elements} elements of the array of shape"))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    /// Takes part in a transfer with these local arrays.
    ///
    /// # Errors
    /// When pieces lie outside of the array, or local arrays do not fit them.
    pub(crate) fn expose(
        &self,
        name: &str,
        arrays: &[LocalArray],
        (rank, size): (u32, u32),
    ) -> Result<Vec<Part>, Fault> {
        self.check(name, (rank, size))?;
        if arrays.len() != self.arrays() {
            let text =
                format!("'{name}' is held in {} pieces, but {} local arrays are given", self.arrays(), arrays.len());
            return Err(Fault::new(FaultKind::Invalid, text).hint("give one array for each box, in their order"));
        }
        if let (Holding::Regular(distribution), [array]) = (self, arrays) {
            let exposed = array.expose(name, distribution, (rank, size))?;
            return Ok(vec![Part { exposed, region: None }]);
        }
        for (i, (array, shape)) in arrays.iter().zip(self.local_shapes(rank)).enumerate() {
            if array.shape != shape {
                let text = format!(
                    "local array {i} of '{name}' should have shape {shape:?} on rank {rank}, but has {:?}",
                    array.shape
                );
                return Err(Fault::new(FaultKind::Invalid, text).hint("guard cells are left out by slicing"));
            }
            array.check(name)?;
        }
        match self {
            Holding::Boxes { boxes, .. } => {
                let full = boxes.iter().zip(arrays).filter(|(bounds, _)| bounds.iter().all(|(low, high)| low < high));
                Ok(full.map(|(bounds, array)| box_part(bounds, array)).collect())
            }
            Holding::Runs { shape, runs } => run_parts(name, shape, runs, &arrays[0]),
            Holding::Regular(_) => unreachable!("one array was given"),
        }
    }

    /// This rank's part as it would be if its local arrays were dense and in row-major order, without memory.
    ///
    /// # Errors
    /// When pieces lie outside of the array.
    pub(crate) fn imagined(
        &self,
        name: &str,
        element: ElementType,
        (rank, size): (u32, u32),
    ) -> Result<Vec<Part>, Fault> {
        self.check(name, (rank, size))?;
        let array = |shape: Vec<u64>| {
            let order: Vec<usize> = (0..shape.len()).collect();
            let strides = dense_strides(&shape, &order, element.bytes());
            LocalArray { memory: Memory::from_vec(Vec::new()), element, shape, strides, offset: 0 }
        };
        let arrays: Vec<LocalArray> = self.local_shapes(rank).into_iter().map(array).collect();
        match self {
            Holding::Regular(distribution) => {
                let view = View::held(&distribution.owned(rank), 0, &arrays[0].strides, element);
                let exposed = Exposed { memory: arrays[0].memory.clone(), view: Arc::new(view) };
                Ok(vec![Part { exposed, region: None }])
            }
            Holding::Boxes { boxes, .. } => {
                let full = boxes.iter().zip(&arrays).filter(|(bounds, _)| bounds.iter().all(|(low, high)| low < high));
                Ok(full.map(|(bounds, array)| box_part(bounds, array)).collect())
            }
            Holding::Runs { shape, runs } => run_parts(name, shape, runs, &arrays[0]),
        }
    }

    /// Local arrays that stand in where the user's own cannot be used, so that the rank can still take part.
    pub(crate) fn stand_in(&self, rank: u32, element: ElementType) -> Result<Vec<LocalArray>, Fault> {
        self.local_shapes(rank).into_iter().map(|shape| LocalArray::fresh(shape, element)).collect()
    }
}

/// A box and the array that holds it.
fn box_part(bounds: &[(u64, u64)], array: &LocalArray) -> Part {
    let region = Region { dims: bounds.iter().map(|&(low, high)| IndexSet::range(low, high)).collect() };
    let view = View::held(&region, array.offset, &array.strides, array.element);
    Part { exposed: Exposed { memory: array.memory.clone(), view: Arc::new(view) }, region: Some(region) }
}

/// Runs of one row of the global array: column, length, and position in memory.
type Row = Vec<(u64, u64, u64)>;

/// Rows that follow each other, hold the same columns, and lie at equal distances in memory.
struct Rows {
    first: u64,
    count: u64,
    /// Of the first row, relative to `at`.
    runs: Row,
    at: u64,
    step: i64,
}

/// Runs of an array of several dimensions: cut at the ends of rows, and joined again where rows are alike.
fn run_parts(name: &str, shape: &[u64], runs: &[(u64, u64)], array: &LocalArray) -> Result<Vec<Part>, Fault> {
    let unfit = || {
        let text = format!("the runs of '{name}' name an element more than {LAYERS_MAX} times, or reach too far");
        Fault::new(FaultKind::Invalid, text).hint("read each element once and copy it where it is needed")
    };
    let stride = array.strides.first().copied().unwrap_or(0);
    let Some((&columns, outer)) = shape.split_last() else {
        // An array without dimensions has one element; whoever names it holds all.
        let mut part = box_part(&[], &LocalArray { shape: Vec::new(), strides: Vec::new(), ..array.clone() });
        part.region = Some(Region { dims: Vec::new().into_iter().collect() });
        return Ok(if runs.iter().any(|run| run.1 > 0) { vec![part] } else { Vec::new() });
    };
    let mut parts = Vec::new();
    for rows in alike(rows_of(runs, columns), outer.last().copied().unwrap_or(1)) {
        for Layer { set, axis } in layers(rows.runs.iter().copied(), LAYERS_MAX).ok_or_else(unfit)? {
            let mut dims: Vec<IndexSet> =
                unravel(rows.first, outer).into_iter().map(|i| IndexSet::range(i, i + 1)).collect();
            let mut axes: Vec<_> = dims.iter().map(|set| (Axis::Held(set.clone()), 0)).collect();
            if let (Some(dim), Some(axis)) = (dims.last_mut(), axes.last_mut()) {
                let low = dim.hull().map_or(0, |(low, _)| low);
                *dim = IndexSet::range(low, low + rows.count);
                *axis = (Axis::Held(dim.clone()), rows.step * stride);
            }
            dims.push(set);
            axes.push((axis, stride));
            let view = View { base: array.offset + rows.at as i64 * stride, axes, element: array.element };
            let exposed = Exposed { memory: array.memory.clone(), view: Arc::new(view) };
            parts.push(Part { exposed, region: Some(Region { dims: dims.into_iter().collect() }) });
        }
    }
    Ok(parts)
}

/// Runs by row.
fn rows_of(runs: &[(u64, u64)], columns: u64) -> BTreeMap<u64, Row> {
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    let mut at = 0;
    for &(mut start, mut len) in runs {
        while len > 0 {
            let (row, column) = (start / columns, start % columns);
            let here = len.min(columns - column);
            rows.entry(row).or_default().push((column, here, at));
            (start, len, at) = (start + here, len - here, at + here);
        }
    }
    rows
}

/// Joins neighbouring rows of one plane that are alike.
fn alike(rows: BTreeMap<u64, Row>, plane: u64) -> Vec<Rows> {
    let mut all: Vec<Rows> = Vec::new();
    for (row, mut runs) in rows {
        let at = runs[0].2;
        runs.iter_mut().for_each(|run| run.2 = run.2.wrapping_sub(at));
        let last = all
            .last_mut()
            .filter(|last| last.first + last.count == row && !row.is_multiple_of(plane.max(1)) && last.runs == runs);
        match last {
            Some(last) if last.count == 1 || last.at as i64 + last.count as i64 * last.step == at as i64 => {
                last.step = if last.count == 1 { at as i64 - last.at as i64 } else { last.step };
                last.count += 1;
            }
            _ => all.push(Rows { first: row, count: 1, runs, at, step: 0 }),
        }
    }
    all
}
