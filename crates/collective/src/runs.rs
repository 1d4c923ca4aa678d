//! Lists of runs: which elements of an array a rank holds, run by run of its memory, and what follows from that for all arrays
//! that it holds so.

use hyperslab_layout::mesh::unravel;
use hyperslab_layout::stored::StorageOrder;
use hyperslab_layout::{Axis, ElementType, IndexSet, Layer, Region, View, are_many_and_short, layers};
use hyperslab_plan::MemoryLayout;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Layers that a list of runs may need: how often a reader may name one element.
pub(crate) const LAYERS_MAX: usize = 64;

/// Runs of a global array, in row-major order of its elements, which lie one after another in one array of one dimension.
///
/// Sorting them and finding what is regular takes longer than moving the elements does. So it is done once, however many
/// arrays of whatever types are held so.
#[derive(Clone)]
pub struct RunList {
    shape: Vec<u64>,
    runs: Arc<[(u64, u64)]>,
    /// Made when first asked for; `None` where an element is named too often.
    pieces: Arc<OnceLock<Option<Arc<[PlacedRuns]>>>>,
    /// The same elements as they were last numbered in the order of storage.
    numbered: Arc<Mutex<Option<Numbered>>>,
}

/// Numbers in the order of storage, and elements by them.
type Numbered = (Arc<StorageOrder>, RunList);

/// Elements, and their positions in memory: numbers of elements, which become addresses in arrays of any type.
#[derive(Clone, Debug)]
struct PlacedRuns {
    region: Region,
    first: u64,
    axes: Vec<(Axis, i64)>,
}

impl RunList {
    /// Runs of an array of this shape: first element and length of each.
    pub fn new(shape: Vec<u64>, runs: Vec<(u64, u64)>) -> RunList {
        RunList { shape, runs: runs.into(), pieces: Arc::default(), numbered: Arc::default() }
    }

    /// Global shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// First element and length of each.
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.runs
    }

    /// The number of the element at a position in memory.
    pub fn element(&self, position: u64) -> Option<u64> {
        let mut before = 0;
        let holds = |(start, length): &(u64, u64)| {
            let at = position.checked_sub(before)?;
            before += length;
            (at < *length).then_some(start + at)
        };
        self.runs.iter().find_map(holds)
    }

    /// Number of elements, as often as they are named.
    pub fn elements(&self) -> u64 {
        self.runs.iter().map(|run| run.1).fold(0, u64::saturating_add)
    }

    /// Whether it has many runs, which are short: in several dimensions these are better numbered in the order of storage than
    /// said as products of sets.
    pub(crate) fn is_short(&self) -> bool {
        are_many_and_short(self.runs.len(), self.elements())
    }

    /// How one of its pieces lies in memory, for the model: a run of a list, or the first of few that have a closed form.
    pub(crate) fn laid(&self, (stride, element): (i64, ElementType)) -> Option<MemoryLayout> {
        let of_runs = || MemoryLayout::of_runs(self.elements(), self.runs.len() as u64, (stride, element.bytes()));
        if self.is_short() {
            return Some(of_runs());
        }
        let placed = self.placed((0, stride, element))?;
        let (region, view) = placed.first()?;
        let is_closed = region.dims.iter().all(|set| set.terms().len() <= 1);
        Some(if is_closed { MemoryLayout::of(view) } else { of_runs() })
    }

    fn numbered(&self) -> Option<Numbered> {
        self.numbered.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same elements by their numbers in the order of storage. Arrays that are stored alike share what follows from that.
    pub(crate) fn in_order(&self, order: &Arc<StorageOrder>) -> RunList {
        if let Some((_, known)) = self.numbered().filter(|(of, _)| of == order) {
            return known;
        }
        let mut runs = Vec::with_capacity(self.runs.len());
        for &(start, len) in &*self.runs {
            order.runs(start, len, &mut |at, len| runs.push((at, len)));
        }
        let made = RunList::new(vec![order.elements()], runs);
        *self.numbered.lock().unwrap_or_else(PoisonError::into_inner) = Some((order.clone(), made.clone()));
        made
    }

    /// Two runs that name one element, of which one holds all of the other or begins in it.
    pub(crate) fn clash(&self) -> Option<[(u64, u64); 2]> {
        let mut sorted: Vec<(u64, u64)> = self.runs.iter().copied().filter(|run| run.1 > 0).collect();
        sorted.sort_unstable();
        let pair = sorted.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0)?;
        Some([pair[0], pair[1]])
    }

    fn pieces(&self) -> Option<Arc<[PlacedRuns]>> {
        self.pieces.get_or_init(|| pieces(&self.shape, &self.runs)).clone()
    }

    /// Which elements a local array of one dimension holds, and where they lie in it: its first byte, the distance of its
    /// elements, and their type. `None` where an element is named too often, or runs reach too far.
    pub(crate) fn placed(&self, (offset, stride, element): (i64, i64, ElementType)) -> Option<Vec<(Region, View)>> {
        let place = |runs: &PlacedRuns| {
            let axes = runs.axes.iter().map(|(axis, step)| (axis.clone(), step * stride)).collect();
            (runs.region.clone(), View { base: offset + runs.first as i64 * stride, axes, element })
        };
        Some(self.pieces()?.iter().map(place).collect())
    }
}

impl PartialEq for RunList {
    fn eq(&self, other: &RunList) -> bool {
        (&self.shape, &self.runs) == (&other.shape, &other.runs)
    }
}

impl Eq for RunList {}

impl fmt::Debug for RunList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunList").field("shape", &self.shape).field("runs", &self.runs).finish_non_exhaustive()
    }
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
fn pieces(shape: &[u64], runs: &[(u64, u64)]) -> Option<Arc<[PlacedRuns]>> {
    let Some((&columns, outer)) = shape.split_last() else {
        // An array without dimensions has one element; a reader may name it several times.
        let named = runs.iter().map(|run| run.1).sum::<u64>();
        let held = |first: u64| PlacedRuns { region: Region::boxed(&[], &[]), first, axes: Vec::new() };
        return (named <= LAYERS_MAX as u64).then(|| (0..named).map(held).collect());
    };
    let mut pieces = Vec::new();
    for rows in alike(rows_of(runs, columns), outer.last().copied().unwrap_or(1)) {
        for Layer { set, axis } in layers(rows.runs.iter().copied(), LAYERS_MAX)? {
            let mut dims: Vec<IndexSet> =
                unravel(rows.first, outer).into_iter().map(|i| IndexSet::range(i, i + 1)).collect();
            let mut axes: Vec<_> = dims.iter().map(|set| (Axis::Owned(set.clone()), 0)).collect();
            if let (Some(dim), Some(axis)) = (dims.last_mut(), axes.last_mut()) {
                let low = dim.hull().map_or(0, |(low, _)| low);
                *dim = IndexSet::range(low, low + rows.count);
                *axis = (Axis::Owned(dim.clone()), rows.step);
            }
            dims.push(set);
            axes.push((axis, 1));
            pieces.push(PlacedRuns { region: Region { dims: dims.into_iter().collect() }, first: rows.at, axes });
        }
    }
    Some(pieces.into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Kind;

    #[test]
    fn arrays_of_all_types_that_one_list_holds_share_what_follows_from_it() {
        let runs: Vec<(u64, u64)> = (0..50).rev().map(|i| (i * i + 2 * i, 1 + i % 2)).collect();
        let list = RunList::new(vec![4000], runs);
        let placed = |kind: Kind, stride| list.placed((0, stride, ElementType::native(kind))).unwrap().remove(0);
        let (one, wide) = (placed(Kind::Float32, 4), placed(Kind::Float64, -8));
        assert_eq!(one.0.dims[0].id(), wide.0.dims[0].id());
        let (Axis::Listed(here), Axis::Listed(there)) = (&one.1.axes[0].0, &wide.1.axes[0].0) else { panic!("lists") };
        assert!(Arc::ptr_eq(here, there));
        assert_eq!((one.1.axes[0].1, wide.1.axes[0].1), (4, -8));
    }
}
