//! What a call writes or reads of which arrays, whatever they are stored in.

use crate::said::{NOT_GIVEN, quoted};
use crate::selection::Sections;
use hyperslab_collective::{ArrayRequest, LocalArray, Ownership, Selected};
use hyperslab_layout::{Distribution, ElementType};
use hyperslab_plan::Strategy;
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;

/// One array to write.
#[derive(Clone, Debug)]
pub struct ArrayWrite {
    /// Its name.
    pub name: String,
    /// This rank's part: one array, or one for each of its boxes.
    pub arrays: Vec<LocalArray>,
    /// How the ranks hold it. May be left out where there is one rank, which holds everything.
    pub holding: Option<Arc<Ownership>>,
}

impl ArrayWrite {
    /// A new array.
    pub fn new(name: impl Into<String>, array: LocalArray, distribution: Distribution) -> ArrayWrite {
        ArrayWrite { name: name.into(), arrays: vec![array], holding: Some(Arc::new(distribution.into())) }
    }

    /// A new array that each rank holds in pieces of its own.
    pub fn pieces(name: impl Into<String>, arrays: Vec<LocalArray>, holding: Ownership) -> ArrayWrite {
        ArrayWrite { name: name.into(), arrays, holding: Some(Arc::new(holding)) }
    }

    /// Extents of all of it.
    pub(crate) fn shape(&self) -> &[u64] {
        self.holding.as_deref().map_or(&[], |holding| holding.shape())
    }

    /// Type of the elements in memory; a rank without pieces has none.
    pub(crate) fn element(&self) -> Option<ElementType> {
        self.arrays.first().map(|array| array.element)
    }

    /// What is asked of all of a stored array.
    pub(crate) fn request(&self) -> ArrayRequest {
        ArrayRequest {
            name: self.name.clone(),
            selected: Selected::Whole,
            holding: self.holding.clone(),
            memory: self.arrays.iter().map(|array| array.element).collect(),
        }
    }
}

/// What is asked of all of stored arrays, or of sections.
pub(crate) fn write_requests(asks: &[ArrayWrite], sections: &Sections) -> Vec<ArrayRequest> {
    let selected = |number| sections.of(number).cloned().map_or(Selected::Whole, Selected::Section);
    asks.iter().enumerate().map(|(number, ask)| ArrayRequest { selected: selected(number), ..ask.request() }).collect()
}

/// That nobody says who holds what of these arrays.
pub(crate) fn undistributed(ranks: u32, names: &[&str]) -> Fault {
    let text = format!("{ranks} ranks write together, but no distribution says who holds what of {}", listed(names));
    Fault::new(FaultKind::Invalid, text)
        .hint("give hyperslab.Distribution.block(shape, comm.size), or Distribution.replicated(...)")
}

/// What is asked with the distributions that hold where none is given: all of an array on the one rank that there is. And
/// what is wrong, if there are several.
pub(crate) fn completed(mut asks: Vec<ArrayWrite>, ranks: u32) -> (Vec<ArrayWrite>, Option<Fault>) {
    let without = || asks.iter().filter(|ask| ask.holding.is_none()).map(|ask| &*ask.name);
    if ranks > 1 && without().next().is_some() {
        let fault = undistributed(ranks, &without().collect::<Vec<_>>());
        return (asks, Some(fault));
    }
    for ask in asks.iter_mut().filter(|ask| ask.holding.is_none()) {
        let shape = ask.arrays.first().map(|array| array.shape.clone()).unwrap_or_default();
        match Ownership::replicated(&shape, ranks) {
            Ok(holding) => ask.holding = Some(Arc::new(holding)),
            Err(fault) => return (asks, Some(fault)),
        }
    }
    (asks, None)
}

/// How ranks hold each of so many arrays: all alike, or as is said of each.
pub(crate) fn each_holding(
    all: Option<Arc<Ownership>>,
    mut each: Vec<Option<Arc<Ownership>>>,
    arrays: usize,
) -> Vec<Option<Arc<Ownership>>> {
    if each.is_empty() {
        return vec![all; arrays];
    }
    each.resize(arrays, None);
    each
}

/// Arrays to read into, array by array, of which a rank holds one, or one for each of its boxes; and what is wrong with their
/// number.
pub(crate) fn into_each(
    into: Option<Vec<LocalArray>>,
    holdings: &[Option<Arc<Ownership>>],
) -> (Option<Vec<Vec<LocalArray>>>, Option<Fault>) {
    let Some(into) = into else { return (None, None) };
    let parts = holdings.iter().map(|holding| holding.as_ref().map_or(1, |holding| holding.arrays()));
    let wanted: usize = parts.clone().sum();
    if into.len() != wanted {
        let text = format!("{wanted} arrays are read into {}", into.len());
        return (
            None,
            Some(Fault::new(FaultKind::Invalid, text).hint("give one array for each that is read, or each box")),
        );
    }
    let mut into = into.into_iter();
    (Some(parts.map(|count| into.by_ref().take(count).collect()).collect()), None)
}

/// What is asked of arrays that are held so, and read into these.
pub(crate) fn requests(
    names: &[&str],
    holdings: &[Option<Arc<Ownership>>],
    sections: &Sections,
    locals: Option<&[Vec<LocalArray>]>,
) -> Vec<ArrayRequest> {
    let request = |(number, (name, holding)): (usize, (&&str, &Option<Arc<Ownership>>))| ArrayRequest {
        name: (*name).to_string(),
        selected: sections.of(number).cloned().map_or(Selected::Whole, Selected::Section),
        holding: holding.clone(),
        memory: locals.map_or(Vec::new(), |locals| locals[number].iter().map(|array| array.element).collect()),
    };
    names.iter().zip(holdings).enumerate().map(request).collect()
}

/// Names as a list for messages.
pub(crate) fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|name| format!("'{name}'")).collect();
    let more = names.len() - shown.len();
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// What is asked for, for people.
pub(crate) fn named(strategy: Option<Strategy>) -> String {
    strategy.map_or(NOT_GIVEN.into(), quoted)
}

/// What copies are made of.
pub(crate) fn staging(asks: &mut [ArrayWrite]) -> impl Iterator<Item = (&str, &mut Vec<LocalArray>, &Ownership)> {
    asks.iter_mut().filter_map(|ask| Some((ask.name.as_str(), &mut ask.arrays, ask.holding.as_deref()?)))
}
