//! How ranks hold an array: by a distribution, or each rank in pieces of its own.

use crate::array::{LocalArray, check_ranks};
use crate::runs::{LAYERS_MAX, RunList};
use hyperslab_layout::mesh::{unravel, volume};
use hyperslab_layout::stored::StorageOrder;
use hyperslab_layout::{Axis, Distribution, ElementType, IndexSet, Region, View, dense_strides, tuple};
use hyperslab_pack::Memory;
use hyperslab_plan::{Mine, Spread, TransferArray};
use hyperslab_world::{Exposed, Fault, FaultKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How the ranks hold an array, or a section of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ownership {
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
    Runs(RunList),
    /// Elements of something of one dimension whose extent nobody knows yet, as the bytes of a file: this rank holds these, in
    /// rising order, as the elements of one array of any shape in row-major order. They are a nest, as a box of several
    /// dimensions is that lies in a file (views of MPI-IO).
    Stretch(IndexSet),
}

impl From<Distribution> for Ownership {
    fn from(distribution: Distribution) -> Ownership {
        Ownership::Regular(distribution)
    }
}

impl fmt::Display for Ownership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ownership::Regular(distribution) => distribution.fmt(f),
            // Ranks compare this text: what is a rank's own is not in it.
            Ownership::Stretch(_) => f.write_str("elements of each rank's own"),
            Ownership::Boxes { .. } | Ownership::Runs(_) => {
                write!(f, "{} in pieces of each rank's own", tuple(self.shape()))
            }
        }
    }
}

/// An array of this rank as it takes part in a transfer, and which elements it holds where no closed form says so.
#[derive(Clone, Debug)]
pub struct Part {
    /// The memory, and how elements lie in it.
    pub exposed: Exposed,
    /// Which elements it has, where no closed form says so.
    pub region: Option<Region>,
}

/// The arrays of a rank that take part in a transfer, by the numbers under which they are exposed, and its own pieces.
pub type Exposure = (Vec<Exposed>, BTreeMap<u32, Vec<Mine>>);

/// Gives the parts of each array their numbers: the first part of array i is exposed under i, further ones behind all
/// arrays.
pub fn number_parts(arrays: Vec<Vec<Part>>) -> Exposure {
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

/// Exposes arrays one after the other. Those that lie as the one before it share its view: of hundreds of arrays in one
/// call nearly all do.
pub(crate) struct Exposing<'a> {
    at: (u32, u32),
    before: Option<(&'a Ownership, &'a LocalArray, Arc<View>)>,
}

impl<'a> Exposing<'a> {
    /// For this rank, of so many.
    pub(crate) fn new(at: (u32, u32)) -> Exposing<'a> {
        Exposing { at, before: None }
    }

    /// As [`Ownership::expose`].
    pub(crate) fn expose(
        &mut self,
        holding: &'a Ownership,
        name: &str,
        arrays: &'a [LocalArray],
    ) -> Result<Vec<Part>, Fault> {
        if let (Some((same, before, view)), [array]) = (&self.before, arrays)
            && std::ptr::eq(*same, holding)
            && array.lies_as(before)
        {
            array.check(name)?;
            let exposed = Exposed { memory: array.memory.clone(), view: view.clone() };
            return Ok(vec![Part { exposed, region: None }]);
        }
        let parts = holding.expose(name, arrays, self.at)?;
        self.before = match (&parts[..], arrays) {
            ([Part { exposed, region: None }], [array]) => Some((holding, array, exposed.view.clone())),
            _ => None,
        };
        Ok(parts)
    }
}

impl Ownership {
    /// How a dedicated server holds what others do: not at all.
    pub(crate) fn of_others(ask: &TransferArray) -> Ownership {
        let nothing = || Ownership::Boxes { shape: ask.section.shape(), boxes: Vec::new() };
        ask.spread.regular().map_or_else(nothing, |distribution| distribution.clone().into())
    }

    /// All of an array of this shape on each rank.
    ///
    /// # Errors
    /// When there can be no such array.
    pub fn replicated(shape: &[u64], ranks: u32) -> Result<Ownership, Fault> {
        Distribution::replicated(shape, u64::from(ranks))
            .map(Ownership::Regular)
            .map_err(|error| Fault::said_by(FaultKind::Invalid, error))
    }

    /// Global shape.
    pub fn shape(&self) -> &[u64] {
        match self {
            Ownership::Regular(distribution) => distribution.shape(),
            Ownership::Boxes { shape, .. } => shape,
            Ownership::Runs(list) => list.shape(),
            // Not known.
            Ownership::Stretch(_) => &[0],
        }
    }

    /// Number of local arrays that hold this rank's part.
    pub fn arrays(&self) -> usize {
        match self {
            Ownership::Boxes { boxes, .. } => boxes.len(),
            Ownership::Regular(_) | Ownership::Runs(_) | Ownership::Stretch(_) => 1,
        }
    }

    /// The distribution, where there is one.
    pub fn regular(&self) -> Option<&Distribution> {
        match self {
            Ownership::Regular(distribution) => Some(distribution),
            _ => None,
        }
    }

    /// What a planner is told of it.
    pub fn spread(&self) -> Spread {
        self.regular().map_or(Spread::Explicit, |distribution| Spread::Regular(distribution.clone()))
    }

    /// Shapes of this rank's local arrays.
    pub fn local_shapes(&self, rank: u32) -> Vec<Vec<u64>> {
        match self {
            Ownership::Regular(distribution) if u64::from(rank) >= distribution.ranks() => {
                vec![vec![0; distribution.shape().len()]]
            }
            Ownership::Regular(distribution) => vec![distribution.owned(rank).shape()],
            Ownership::Boxes { boxes, .. } => {
                boxes.iter().map(|b| b.iter().map(|(low, high)| high.saturating_sub(*low)).collect()).collect()
            }
            Ownership::Stretch(set) => vec![vec![set.len()]],
            Ownership::Runs(list) => vec![vec![list.elements()]],
        }
    }

    /// Where an element of one of a rank's local arrays is in the whole array; `None` where it has none there.
    pub fn global_index(&self, rank: u32, part: usize, local: &[u64]) -> Option<Vec<u64>> {
        let shapes = self.local_shapes(rank);
        let shape = shapes.get(part).filter(|shape| shape.len() == local.len())?;
        if local.iter().zip(shape).any(|(index, extent)| index >= extent) {
            return None;
        }
        match self {
            Ownership::Regular(distribution) => {
                let dims = distribution.owned(rank).dims;
                dims.iter().zip(local).map(|(set, position)| set.select(*position)).collect()
            }
            Ownership::Boxes { boxes, .. } => {
                Some(boxes[part].iter().zip(local).map(|((low, _), index)| low + index).collect())
            }
            Ownership::Runs(list) => list.element(local[0]).map(|element| unravel(element, list.shape())),
            Ownership::Stretch(set) => Some(vec![set.select(local[0])?]),
        }
    }

    /// Checks that pieces lie in the array and ranks in the communicator.
    ///
    /// # Errors
    /// When they do not.
    pub fn check(&self, name: &str, size: u32) -> Result<(), Fault> {
        let outside = |what: String, why: &str| {
            let text = format!("{what} of '{name}' {why} {}", tuple(self.shape()));
            Err(Fault::new(FaultKind::Invalid, text)
                .hint("count indices from 0, and give upper bounds that are one past the last index"))
        };
        match self {
            Ownership::Regular(distribution) => check_ranks(name, distribution, size),
            Ownership::Boxes { shape, boxes } => {
                for (i, bounds) in boxes.iter().enumerate() {
                    if bounds.len() != shape.len() {
                        return outside(
                            format!("box {i}, {bounds:?},"),
                            "has another number of dimensions than the array",
                        );
                    }
                    let fits = |(&(low, high), &extent): (&(u64, u64), &u64)| low <= high && high <= extent;
                    if !bounds.iter().zip(shape).all(fits) {
                        return outside(format!("box {i}, {bounds:?},"), "does not lie in the array of shape");
                    }
                }
                Ok(())
            }
            Ownership::Stretch(_) => Ok(()),
            Ownership::Runs(list) => {
                let elements = volume(list.shape()).unwrap_or(u64::MAX);
                let beyond =
                    list.runs().iter().find(|(start, len)| start.checked_add(*len).is_none_or(|end| end > elements));
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
        self.check(name, size)?;
        if arrays.len() != self.arrays() {
            let text =
                format!("'{name}' is held in {} pieces, but {} local arrays are given", self.arrays(), arrays.len());
            return Err(Fault::new(FaultKind::Invalid, text).hint("give one array for each box, in their order"));
        }
        if let (Ownership::Regular(distribution), [array]) = (self, arrays) {
            let exposed = array.expose(name, distribution, (rank, size))?;
            return Ok(vec![Part { exposed, region: None }]);
        }
        if let (Ownership::Stretch(set), [array]) = (self, arrays) {
            return stretch_part(name, set, array, rank).map(|part| vec![part]);
        }
        for (i, (array, shape)) in arrays.iter().zip(self.local_shapes(rank)).enumerate() {
            if array.shape != shape {
                let what = format!("local array {i} of '{name}' does not fit its piece");
                let found = format!("shape {}", tuple(&array.shape));
                return Err(Fault::new(FaultKind::Invalid, what)
                    .expected(format!("shape {shape}", shape = tuple(&shape)), found)
                    .hint("give an array of the shape of the piece; leave out its halo by slicing"));
            }
            array.check(name)?;
        }
        match self {
            Ownership::Boxes { boxes, .. } => {
                let full = boxes.iter().zip(arrays).filter(|(bounds, _)| bounds.iter().all(|(low, high)| low < high));
                Ok(full.map(|(bounds, array)| box_part(bounds, array)).collect())
            }
            // How it is stored decides which pieces these are.
            Ownership::Runs(list) if list.shape().len() > 1 => Ok(vec![unplaced(&arrays[0])]),
            Ownership::Runs(list) => run_parts(name, list, &arrays[0]),
            Ownership::Regular(_) | Ownership::Stretch(_) => unreachable!("one array was given"),
        }
    }

    /// What was exposed before it was known how the array is stored, in its pieces.
    ///
    /// # Errors
    /// When an element is named too often.
    pub(crate) fn place(&self, name: &str, parts: Vec<Part>) -> Result<Vec<Part>, Fault> {
        match (self, &parts[..]) {
            (Ownership::Runs(list), [Part { exposed, region: None }]) => {
                let Exposed { memory, view } = exposed;
                let strides = view.axes.iter().map(|axis| axis.1).collect();
                let (shape, element, offset) = (vec![list.elements()], view.element, view.base);
                run_parts(name, list, &LocalArray { memory: memory.clone(), element, shape, strides, offset })
            }
            _ => Ok(parts),
        }
    }

    /// Pieces of which two have an element in common, where runs name one too often: who is told of them refuses to write.
    pub(crate) fn clashing(&self) -> Vec<Part> {
        let Ownership::Runs(list) = self else { return Vec::new() };
        let part = |run: (u64, u64)| {
            let one = RunList::new(list.shape().to_vec(), vec![run]);
            run_parts("", &one, &LocalArray::from_f64(&[0], &[])).unwrap_or_default()
        };
        list.clash().into_iter().flatten().flat_map(part).collect()
    }

    /// The same elements by their numbers in the order of storage; nothing for what is held in boxes, or by a distribution.
    pub(crate) fn in_order(&self, order: &Arc<StorageOrder>) -> Option<Arc<Ownership>> {
        match self {
            Ownership::Runs(list) => Some(Arc::new(Ownership::Runs(list.in_order(order)))),
            Ownership::Boxes { boxes, .. } if boxes.is_empty() => {
                Some(Arc::new(Ownership::Boxes { shape: vec![order.elements()], boxes: Vec::new() }))
            }
            Ownership::Boxes { .. } | Ownership::Regular(_) | Ownership::Stretch(_) => None,
        }
    }

    /// This rank's part as it would be if its local arrays were dense and in row-major order, without memory.
    ///
    /// # Errors
    /// When pieces lie outside of the array.
    pub fn imagined(&self, name: &str, element: ElementType, (rank, size): (u32, u32)) -> Result<Vec<Part>, Fault> {
        self.check(name, size)?;
        let array = |shape: Vec<u64>| {
            let order: Vec<usize> = (0..shape.len()).collect();
            let strides = dense_strides(&shape, &order, element.bytes());
            LocalArray { memory: Memory::from_vec(Vec::new()), element, shape, strides, offset: 0 }
        };
        let arrays: Vec<LocalArray> = self.local_shapes(rank).into_iter().map(array).collect();
        match self {
            Ownership::Regular(distribution) => {
                let view = View::held(&distribution.owned(rank), 0, &arrays[0].strides, element);
                let exposed = Exposed { memory: arrays[0].memory.clone(), view: Arc::new(view) };
                Ok(vec![Part { exposed, region: None }])
            }
            Ownership::Boxes { boxes, .. } => {
                let full = boxes.iter().zip(&arrays).filter(|(bounds, _)| bounds.iter().all(|(low, high)| low < high));
                Ok(full.map(|(bounds, array)| box_part(bounds, array)).collect())
            }
            Ownership::Runs(list) => run_parts(name, list, &arrays[0]),
            Ownership::Stretch(set) => stretch_part(name, set, &arrays[0], rank).map(|part| vec![part]),
        }
    }

    /// The same in the index space of the stretch `low..high`, as far as that reaches, where it was not known before.
    pub(crate) fn in_stretch(&self, low: u64, high: u64) -> Option<Ownership> {
        let Ownership::Stretch(set) = self else { return None };
        Some(Ownership::Stretch(set.within(low, high).lowered(low)))
    }

    /// Local arrays that stand in where the user's own cannot be used, so that the rank can still take part.
    pub(crate) fn stand_in(&self, rank: u32, element: ElementType) -> Result<Vec<LocalArray>, Fault> {
        self.local_shapes(rank).into_iter().map(|shape| LocalArray::fresh(shape, element)).collect()
    }
}

impl Part {
    /// How many elements it has.
    pub(crate) fn elements(&self) -> u64 {
        let held = |(axis, _): &(Axis, i64)| match axis {
            Axis::Owned(set) | Axis::Folded(set, _) => set.len(),
            Axis::Listed(list) => list.iter().map(|entry| entry.term.elements()).sum(),
            Axis::Scattered(places) => places.elements(),
            Axis::Selected(triplet, _) => triplet.len(),
        };
        self.region.as_ref().map_or_else(|| self.exposed.view.axes.iter().map(held).product(), Region::elements)
    }

    /// The same in the index space of a stretch that begins at `low`, of which the elements are those of `holding`.
    pub(crate) fn in_stretch(self, low: u64, holding: &Ownership) -> Part {
        let Ownership::Stretch(inside) = holding else { return self };
        let View { base, axes, element } = &*self.exposed.view;
        let lowered = |(axis, stride): &(Axis, i64)| match axis {
            Axis::Owned(set) => (Axis::Owned(set.lowered(low)), *stride),
            Axis::Folded(set, dims) => (Axis::Folded(set.lowered(low), dims.clone()), *stride),
            Axis::Selected(..) | Axis::Listed(_) | Axis::Scattered(_) => (axis.clone(), *stride),
        };
        let view = View { base: *base, axes: axes.iter().map(lowered).collect(), element: *element };
        let region = Region { dims: [inside.clone()].into_iter().collect() };
        Part { exposed: Exposed { view: Arc::new(view), ..self.exposed }, region: Some(region) }
    }
}

/// Elements of one dimension, and the array that holds them one after the other.
fn stretch_part(name: &str, set: &IndexSet, array: &LocalArray, rank: u32) -> Result<Part, Fault> {
    if volume(&array.shape) != Some(set.len()) {
        let text = format!(
            "rank {rank} holds {} elements of '{name}', but its local array has shape {}",
            set.len(),
            tuple(&array.shape)
        );
        return Err(Fault::new(FaultKind::Invalid, text).hint("give an array of as many elements"));
    }
    array.check(name)?;
    let order: Vec<usize> = (0..array.shape.len()).collect();
    let dense = dense_strides(&array.shape, &order, array.element.bytes()) == array.strides;
    let dims = || array.shape.iter().copied().zip(array.strides.iter().copied());
    let axis = match (dense, &array.strides[..]) {
        (true, _) => (Axis::Owned(set.clone()), array.element.bytes() as i64),
        (false, &[stride]) => (Axis::Owned(set.clone()), stride),
        _ => (Axis::Folded(set.clone(), dims().collect()), 1),
    };
    let view = View { base: array.offset, axes: vec![axis], element: array.element };
    let region = Region { dims: [set.clone()].into_iter().collect() };
    Ok(Part { exposed: Exposed { memory: array.memory.clone(), view: Arc::new(view) }, region: Some(region) })
}

/// A box and the array that holds it.
fn box_part(bounds: &[(u64, u64)], array: &LocalArray) -> Part {
    let region = Region { dims: bounds.iter().map(|&(low, high)| IndexSet::range(low, high)).collect() };
    let view = View::held(&region, array.offset, &array.strides, array.element);
    Part { exposed: Exposed { memory: array.memory.clone(), view: Arc::new(view) }, region: Some(region) }
}

/// The array that holds runs, of which it is not known yet where they lie in storage.
fn unplaced(array: &LocalArray) -> Part {
    let held = Axis::Owned(IndexSet::range(0, array.shape.iter().product()));
    let stride = array.strides.first().copied().unwrap_or(0);
    let view = View { base: array.offset, axes: vec![(held, stride)], element: array.element };
    Part { exposed: Exposed { memory: array.memory.clone(), view: Arc::new(view) }, region: None }
}

/// Runs, and the array that holds them one after the other.
fn run_parts(name: &str, list: &RunList, array: &LocalArray) -> Result<Vec<Part>, Fault> {
    let unfit = || {
        let text = format!("the runs of '{name}' name an element more than {LAYERS_MAX} times, or reach too far");
        Fault::new(FaultKind::Invalid, text).hint("read each element once and copy it where it is needed")
    };
    let stride = array.strides.first().copied().unwrap_or(0);
    let placed = list.placed((array.offset, stride, array.element)).ok_or_else(unfit)?;
    let part = |(region, view)| {
        let exposed = Exposed { memory: array.memory.clone(), view: Arc::new(view) };
        Part { exposed, region: Some(region) }
    };
    Ok(placed.into_iter().map(part).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::mesh::ravel;
    use hyperslab_layout::product;

    const ELEMENT: ElementType = ElementType::native(hyperslab_layout::Kind::Int32);

    /// An array of one dimension with gaps, perhaps backwards.
    fn local(elements: u64, stride: i64) -> LocalArray {
        let memory = Memory::from_vec(vec![0; 4 + elements as usize * stride.unsigned_abs() as usize]);
        let offset = if stride < 0 { (elements.max(1) as i64 - 1) * -stride } else { 0 };
        LocalArray { memory, element: ELEMENT, shape: vec![elements], strides: vec![stride], offset }
    }

    /// Global elements, and where each lies, in what is exposed.
    fn exposed(parts: &[Part], shape: &[u64]) -> Vec<(u64, i64)> {
        let mut all = Vec::new();
        for Part { exposed, region } in parts {
            let region = region.as_ref().expect("each part says what it holds");
            let indices = |set: &IndexSet| (0..set.len()).filter_map(|i| set.select(i)).collect::<Vec<u64>>();
            let dims: Vec<Vec<u64>> = region.dims.iter().map(indices).collect();
            all.extend(product(&dims).map(|index| (ravel(&index, shape), exposed.view.address(&index))));
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn every_element_of_a_run_lies_where_the_list_says() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..4000 {
            let shape: Vec<u64> = (0..random.usize(0..4)).map(|_| random.u64(1..7)).collect();
            let elements = volume(&shape).unwrap();
            let regular = random.bool();
            let (len, step) = (random.u64(1..4), random.u64(1..9));
            let mut runs: Vec<(u64, u64)> = (0..random.u64(0..9))
                .map(
                    |i| if regular { (i * step % elements, len) } else { (random.u64(0..elements), random.u64(0..12)) },
                )
                .map(|(start, len)| (start, len.min(elements - start)))
                .collect();
            if random.u8(0..3) == 0 {
                random.shuffle(&mut runs);
            }
            let count = runs.iter().map(|run| run.1).sum();
            let stride = [4, 8, -4, -12][random.usize(0..4)];
            let array = local(count, stride);
            let named = runs.iter().flat_map(|&(start, len)| start..start + len);
            let mut expected: Vec<(u64, i64)> =
                named.enumerate().map(|(at, element)| (element, array.offset + at as i64 * stride)).collect();
            expected.sort_unstable();
            let holding = Ownership::Runs(RunList::new(shape.clone(), runs.clone()));
            let parts = holding.place("rho", holding.expose("rho", &[array], (0, 1)).unwrap()).unwrap();
            assert_eq!(exposed(&parts, &shape), expected, "{shape:?} {runs:?}");
        }
    }

    #[test]
    fn runs_of_a_regular_box_are_one_part() {
        // Rows 2 to 5 of 10, columns 3 to 6 of 8.
        let runs: Vec<(u64, u64)> = (2..6).map(|row| (row * 8 + 3, 4)).collect();
        let holding = Ownership::Runs(RunList::new(vec![10, 8], runs));
        let parts = holding.place("rho", holding.expose("rho", &[local(16, 4)], (0, 1)).unwrap()).unwrap();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].region, Some(Region::boxed(&[2, 3], &[6, 7])));
    }

    #[test]
    fn what_is_named_too_often_is_refused() {
        let holding = Ownership::Runs(RunList::new(vec![10], vec![(3, 1); LAYERS_MAX + 1]));
        let refused = holding.expose("rho", &[local(LAYERS_MAX as u64 + 1, 4)], (0, 1)).unwrap_err();
        assert!(refused.text().contains("name an element more than 64 times"), "{refused}");
    }
}
