//! What a rank asks for in a collective call, array by array, and what follows once it is known how the arrays are stored.

use crate::casting::check_casting;
use crate::holding::Ownership;
use hyperslab_layout::{Casting, ElementType, EndOfFile, Section, Stored, Triplet, tuple};
use hyperslab_plan::{Direction, TransferArray};
use hyperslab_world::{Fault, FaultKind};
use std::fmt;
use std::sync::Arc;

/// Which part of a stored array moves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Selected {
    /// All of it.
    Whole,
    /// A section.
    Section(Section),
    /// Its end along this dimension, as long as what is held: what an append adds.
    End(usize),
    /// Of something of one dimension that grows, from the first to the last element that some rank holds.
    Reached,
}

impl fmt::Display for Selected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selected::Whole => f.write_str("all of it"),
            Selected::Section(section) => section.fmt(f),
            Selected::End(axis) => write!(f, "its end along dimension {axis}"),
            Selected::Reached => f.write_str("what the ranks reach"),
        }
    }
}

/// One array of a call, as this rank asks for it. It has nothing of the memory.
#[derive(Clone, Debug)]
pub struct ArrayRequest {
    /// Its name, for messages.
    pub name: String,
    /// Which part of it.
    pub selected: Selected,
    /// How ranks hold that; all of it on each rank when not given.
    pub holding: Option<Arc<Ownership>>,
    /// Types of this rank's local arrays, one by one; none where fresh ones are read into.
    pub memory: Vec<ElementType>,
}

impl ArrayRequest {
    /// What the planner is asked for, and how ranks hold it.
    pub(crate) fn ask(
        &self,
        mut stored: Stored,
        (direction, end_of_file, ranks): (Direction, EndOfFile, u32),
        reach: Option<(u64, u64)>,
    ) -> Result<(TransferArray, Arc<Ownership>), Fault> {
        let mut holding = self.held(&stored, ranks)?;
        let section = match &self.selected {
            Selected::Whole => checked_section(&self.name, None, &stored.shape, holding.shape())?,
            Selected::Section(section) => checked_section(&self.name, Some(section), &stored.shape, holding.shape())?,
            Selected::End(axis) => end(&self.name, &stored.shape, holding.shape(), *axis)?,
            Selected::Reached => {
                let (low, high) = self.reached(&mut stored, (direction, end_of_file), reach)?;
                holding = holding.in_stretch(low, high).map(Arc::new).unwrap_or(holding);
                Section { dims: vec![stretch(low, high)] }
            }
        };
        let (memory, spread) = (self.element(stored.element, direction), holding.spread());
        Ok((TransferArray { name: self.name.clone(), section, spread, memory, stored }, holding))
    }

    /// The stretch that all ranks reach together; what is written may make the file longer.
    fn reached(
        &self,
        stored: &mut Stored,
        (direction, end_of_file): (Direction, EndOfFile),
        reach: Option<(u64, u64)>,
    ) -> Result<(u64, u64), Fault> {
        let invalid = |text: String, hint: &str| Err(Fault::new(FaultKind::Invalid, text).hint(hint));
        let (low, high) = reach.unwrap_or((0, 0));
        let [extent] = &mut stored.shape[..] else {
            let text =
                format!("'{}' has {} dimensions, and a stretch of it was asked for", self.name, stored.shape.len());
            return invalid(text, "only what has one dimension, as the bytes of a file, is asked for so");
        };
        match (direction, end_of_file) {
            (Direction::Write, _) => *extent = (*extent).max(high),
            (Direction::Read, EndOfFile::Fault) if high > *extent => {
                let text = format!("element {} of '{}' is wanted, but it has {extent}", high - 1, self.name);
                return invalid(text, "allow short reads, or ask for what is there");
            }
            (Direction::Read, _) => {}
        }
        Ok((low.min(*extent), high.min(*extent)))
    }

    /// Type of the elements in this rank's memory.
    pub(crate) fn element(&self, stored: ElementType, direction: Direction) -> ElementType {
        self.memory.first().copied().unwrap_or(match direction {
            Direction::Write => stored,
            Direction::Read => ElementType::native(stored.kind),
        })
    }

    fn held(&self, stored: &Stored, ranks: u32) -> Result<Arc<Ownership>, Fault> {
        if let Some(holding) = &self.holding {
            return Ok(holding.clone());
        }
        let shape = match &self.selected {
            Selected::Section(section) => &section.shape(),
            Selected::Whole | Selected::End(_) | Selected::Reached => &stored.shape,
        };
        Ownership::replicated(shape, ranks).map(Arc::new)
    }

    /// Refuses local arrays, each of them, whose elements may not become what is stored, or the reverse.
    ///
    /// # Errors
    /// When they may not.
    pub fn check_types(&self, stored: ElementType, direction: Direction, casting: Casting) -> Result<(), Fault> {
        self.memory.iter().try_for_each(|&memory| match direction {
            Direction::Write => check_casting(&self.name, memory, stored, casting),
            Direction::Read => check_casting(&self.name, stored, memory, casting).map_err(|fault| {
                let stored = stored.kind;
                fault.hint(format!("read it as {stored}, and convert what was read, or give casting=\"unsafe\""))
            }),
        })
    }

    /// Whether both ask for the same of different arrays, in closed form, but for where it begins.
    pub(crate) fn asks_as(&self, other: &ArrayRequest) -> bool {
        let selected = match (&self.selected, &other.selected) {
            (Selected::Whole, Selected::Whole) => true,
            (Selected::Section(one), Selected::Section(other)) => {
                let beside = |(one, other): (&Triplet, &Triplet)| Triplet { start: other.start, ..*one } == *other;
                one.dims.len() == other.dims.len() && one.dims.iter().zip(&other.dims).all(beside)
            }
            _ => false,
        };
        selected && self.memory == other.memory && self.is_held_as(other)
    }

    fn is_held_as(&self, other: &ArrayRequest) -> bool {
        match (&self.holding, &other.holding) {
            (Some(one), Some(other)) => one.regular().is_some() && (Arc::ptr_eq(one, other) || one == other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether both ask for the same of different arrays, in closed form: as all ranks know it, and so without the types of
    /// the local arrays, which may be a rank's own.
    pub(crate) fn is_like(&self, other: &ArrayRequest) -> bool {
        self.is_held_as(other) && self.selected == other.selected
    }
}

/// From where to where this rank's pieces reach in what is asked for as far as [`Selected::Reached`].
pub(crate) fn reach(arrays: &[ArrayRequest]) -> Option<(u64, u64)> {
    let hull = |request: &ArrayRequest| match request.holding.as_deref() {
        Some(Ownership::Stretch(set)) => set.hull(),
        _ => None,
    };
    arrays.iter().filter_map(hull).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// The indices `low..high`.
fn stretch(low: u64, high: u64) -> Triplet {
    let extent = high.saturating_sub(low);
    Triplet { start: low, stride: extent.max(1), count: u64::from(extent > 0), block: extent.max(1) }
}

/// The section to move, checked against the stored array and the shape of what is held.
///
/// # Errors
/// When it reaches beyond the array, or has another shape than what is held.
pub fn checked_section(
    name: &str,
    section: Option<&Section>,
    shape: &[u64],
    holding: &[u64],
) -> Result<Section, Fault> {
    let selected = section.cloned().unwrap_or_else(|| Section::whole(shape));
    if let Err(error) = selected.check(shape) {
        let text = error.of(&format!("'{name}'"));
        return Err(Fault::new(FaultKind::Invalid, text).hint(error.hint()));
    }
    if selected.shape() != holding {
        let hint = match section {
            Some(_) => "make the distribution for the shape of the section, not for that of the array",
            None => "make the distribution for the shape of the array",
        };
        let part = section.map_or(String::new(), |section| format!("section {section} of "));
        return Err(Fault::new(FaultKind::Invalid, format!("the distribution does not fit {part}'{name}'"))
            .expected(format!("shape {}", tuple(&selected.shape())), format!("shape {}", tuple(holding)))
            .hint(hint));
    }
    Ok(selected)
}

/// The last `by[axis]` indices of an array of this shape.
fn end(name: &str, shape: &[u64], by: &[u64], axis: usize) -> Result<Section, Fault> {
    let others = |d: usize| d == axis || shape[d] == by[d];
    if shape.len() != by.len() || axis >= shape.len() || shape[axis] < by[axis] || !(0..shape.len()).all(others) {
        let text = format!(
            "what is appended to '{name}' along dimension {axis} has shape {by}, the array {shape}",
            by = tuple(by),
            shape = tuple(shape)
        );
        return Err(Fault::new(FaultKind::Invalid, text)
            .hint("give an array whose other extents are those of the stored array"));
    }
    let mut section = Section::whole(shape);
    let along = &mut section.dims[axis];
    along.start = shape[axis] - by[axis];
    along.block = by[axis].max(1);
    along.stride = by[axis].max(1);
    along.count = u64::from(by[axis] > 0);
    Ok(section)
}
