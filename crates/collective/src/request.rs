//! What a rank asks for in a collective call, array by array, and what follows once it is known how the arrays are stored.

use crate::casting::check_casting;
use crate::holding::Holding;
use hyperslab_layout::{Casting, ElementType, Section, Stored};
use hyperslab_plan::{Ask, Direction};
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;

/// Which part of a stored array moves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selected {
    /// All of it.
    Whole,
    /// A section.
    Section(Section),
    /// Its end along this dimension, as long as what is held: what an append adds.
    End(usize),
}

/// One array of a call, as this rank asks for it. It has nothing of the memory.
#[derive(Clone, Debug)]
pub struct ArrayRequest {
    /// Its name, for messages.
    pub name: String,
    /// Which part of it.
    pub selected: Selected,
    /// How ranks hold that; all of it on each rank when not given.
    pub holding: Option<Arc<Holding>>,
    /// Types of this rank's local arrays, one by one; none where fresh ones are read into.
    pub memory: Vec<ElementType>,
}

impl ArrayRequest {
    /// What the planner is asked for, and how ranks hold it.
    pub(crate) fn ask(&self, stored: Stored, direction: Direction, ranks: u32) -> Result<(Ask, Arc<Holding>), Fault> {
        let holding = self.held(&stored, ranks)?;
        let section = match &self.selected {
            Selected::Whole => checked_section(&self.name, None, &stored.shape, holding.shape())?,
            Selected::Section(section) => checked_section(&self.name, Some(section), &stored.shape, holding.shape())?,
            Selected::End(axis) => end(&self.name, &stored.shape, holding.shape(), *axis)?,
        };
        let (memory, spread) = (self.element(stored.element, direction), holding.spread());
        Ok((Ask { name: self.name.clone(), section, spread, memory, stored }, holding))
    }

    /// Type of the elements in this rank's memory.
    pub(crate) fn element(&self, stored: ElementType, direction: Direction) -> ElementType {
        self.memory.first().copied().unwrap_or(match direction {
            Direction::Write => stored,
            Direction::Read => ElementType::native(stored.kind),
        })
    }

    fn held(&self, stored: &Stored, ranks: u32) -> Result<Arc<Holding>, Fault> {
        if let Some(holding) = &self.holding {
            return Ok(holding.clone());
        }
        let shape = match &self.selected {
            Selected::Section(section) => &section.shape(),
            Selected::Whole | Selected::End(_) => &stored.shape,
        };
        Holding::replicated(shape, ranks).map(Arc::new)
    }

    /// Refuses local arrays, each of them, whose elements may not become what is stored, or the reverse.
    ///
    /// # Errors
    /// When they may not.
    pub fn check_types(&self, stored: ElementType, direction: Direction, casting: Casting) -> Result<(), Fault> {
        self.memory.iter().try_for_each(|&memory| match direction {
            Direction::Write => check_casting(&self.name, memory, stored, casting),
            Direction::Read => check_casting(&self.name, stored, memory, casting),
        })
    }

    /// Whether both ask for the same of different arrays, in closed form: as all ranks know it, and so without the types of
    /// the local arrays, which may be a rank's own.
    pub(crate) fn is_like(&self, other: &ArrayRequest) -> bool {
        let held = match (&self.holding, &other.holding) {
            (Some(one), Some(other)) => one.regular().is_some() && (Arc::ptr_eq(one, other) || one == other),
            (None, None) => true,
            _ => false,
        };
        held && self.selected == other.selected
    }
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
    let section = section.cloned().unwrap_or_else(|| Section::whole(shape));
    let fail = |text: String, hint: &str| Err(Fault::new(FaultKind::Invalid, text).hint(hint));
    if let Err(error) = section.check(shape) {
        let text = error.to_string();
        let (text, hint) = text.split_once("\n  hint: ").unwrap_or((&text, "the array's shape bounds the section"));
        return fail(format!("section {section} of '{name}': {text}"), hint);
    }
    if section.shape() != holding {
        return fail(
            format!(
                "the distribution has shape {holding:?}, but section {section} of '{name}' (shape {shape:?}) has {:?}",
                section.shape()
            ),
            "a distribution spreads the section's own index space: give it the section's shape",
        );
    }
    Ok(section)
}

/// The last `by[axis]` indices of an array of this shape.
fn end(name: &str, shape: &[u64], by: &[u64], axis: usize) -> Result<Section, Fault> {
    let others = |d: usize| d == axis || shape[d] == by[d];
    if shape.len() != by.len() || axis >= shape.len() || shape[axis] < by[axis] || !(0..shape.len()).all(others) {
        let text = format!("what is appended to '{name}' along dimension {axis} has shape {by:?}, the array {shape:?}");
        return Err(Fault::new(FaultKind::Invalid, text).hint("all other extents must be equal"));
    }
    let mut section = Section::whole(shape);
    let along = &mut section.dims[axis];
    along.start = shape[axis] - by[axis];
    along.block = by[axis].max(1);
    along.stride = by[axis].max(1);
    along.count = u64::from(by[axis] > 0);
    Ok(section)
}
