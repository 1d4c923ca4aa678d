//! What ranks compare of the arrays of a call before bytes move.

use crate::request::{ArrayRequest, Selected};
use hyperslab_layout::{ByteOrder, ElementType, Kind, tuple};
use hyperslab_plan::Direction;
use hyperslab_walk::{Compared, Fields};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// With what ranks compare of the arrays of a call besides what they compare already: names, how they are held, which section
/// of each, and the types of what is written.
pub(crate) fn with_arrays(compared: Compared, arrays: &Arc<[ArrayRequest]>, direction: Direction) -> Compared {
    let said = arrays.clone();
    compared.and(Arrays(arrays, direction), move || describe(&said, direction))
}

/// Arrays as a key: what [`describe`] says of them, as numbers.
struct Arrays<'a>(&'a [ArrayRequest], Direction);

impl Hash for Arrays<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Arrays(arrays, direction) = self;
        arrays.len().hash(state);
        for request in *arrays {
            request.name.hash(state);
            match request.holding.as_deref() {
                Some(holding) => (holding.regular(), holding.shape()).hash(state),
                None => u64::MAX.hash(state),
            }
            request.selected.hash(state);
            element(request, *direction).map(key_of).hash(state);
        }
    }
}

/// Byte order tells only those apart that have one.
fn key_of(element: ElementType) -> (Kind, bool) {
    (element.kind, element.kind.swap_bytes() > 1 && element.order == ByteOrder::Big)
}

/// The type of the elements that ranks compare. One without pieces has none, pieces of several types are converted each by
/// itself, and what is read is converted to whatever each rank wants.
fn element(request: &ArrayRequest, direction: Direction) -> Option<ElementType> {
    let one_type = request.holding.as_ref().is_none_or(|held| held.regular().is_some());
    request.memory.first().copied().filter(|_| one_type && direction == Direction::Write)
}

/// Names and values. What an array has in common with the one before it is not said again: of hundreds of arrays in one call,
/// nearly all are held alike. What is said follows from nothing else, so that ranks which say the same ask for the same.
fn describe(arrays: &[ArrayRequest], direction: Direction) -> Fields {
    let mut fields = Fields::new();
    let (mut held, mut selected, mut typed) = (None, &Selected::Whole, None);
    for (number, request) in arrays.iter().enumerate() {
        let name = &request.name;
        fields.push((format!("name of array {}", number + 1), format!("'{name}'")));
        let holding = request.holding.as_deref();
        if let Some(holding) = holding.filter(|&holding| held.replace(holding) != Some(holding)) {
            fields.push((format!("shape of '{name}'"), tuple(holding.shape()).to_string()));
            fields.push((format!("distribution of '{name}'"), holding.to_string()));
        }
        if std::mem::replace(&mut selected, &request.selected) != &request.selected {
            fields.push((format!("section of '{name}'"), request.selected.to_string()));
        }
        let element = element(request, direction);
        if let Some(element) = element.filter(|&element| typed.replace(element) != Some(element)) {
            fields.push((format!("element type of '{name}'"), element.to_string()));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ownership;
    use hyperslab_layout::{Dim, Distribution, Section};
    use std::collections::BTreeMap;

    fn request(holding: &Arc<Ownership>, selected: Selected, memory: Option<Kind>) -> ArrayRequest {
        let memory = memory.map(ElementType::native).into_iter().collect();
        ArrayRequest { name: "a".into(), selected, holding: Some(holding.clone()), memory }
    }

    /// Ranks that ask for different things say different things, and those that ask for the same the same, also where
    /// much of it is not said again; and the keys differ where that does: all sequences of three arrays out of these
    /// holdings, sections and types.
    #[test]
    fn different_calls_are_described_differently() {
        let held: [Arc<Ownership>; 2] =
            [Dim::Block, Dim::Cyclic(1)].map(|dim| Arc::new(Distribution::new(&[8], &[2], &[dim]).unwrap().into()));
        let sections = [Selected::Whole, Selected::Section(Section::whole(&[8]))];
        let types = [Kind::Float32, Kind::Float64];
        let of = |i: usize| request(&held[i & 1], sections[i >> 1 & 1].clone(), Some(types[i >> 2]));
        let (mut seen, mut keys) = (BTreeMap::new(), BTreeMap::new());
        for call in 0..8 * 8 * 8 {
            let arrays: Arc<[ArrayRequest]> = [call & 7, call >> 3 & 7, call >> 6].map(of).into();
            let compared = with_arrays(Compared::default(), &arrays, Direction::Write);
            assert_eq!(seen.insert(compared.fields(), call), None, "call {call:o} is described as another one");
            assert_eq!(keys.insert(compared.digest(), call), None, "call {call:o} has the key of another one");
        }
    }

    #[test]
    fn pieces_of_a_ranks_own_and_what_it_reads_into_change_nothing_that_others_compare() {
        let regular: Arc<Ownership> = Arc::new(Distribution::new(&[8], &[2], &[Dim::Block]).unwrap().into());
        let boxes = |boxes| Arc::new(Ownership::Boxes { shape: vec![8], boxes });
        let real = Some(Kind::Float64);
        let said = |pieces: Vec<Vec<(u64, u64)>>, of_boxes: Option<Kind>, of_all: Option<Kind>, direction| {
            let arrays: Arc<[ArrayRequest]> = [
                request(&regular, Selected::Whole, of_all),
                request(&boxes(pieces), Selected::Whole, of_boxes),
                request(&regular, Selected::Whole, of_all),
            ]
            .into();
            let compared = with_arrays(Compared::default(), &arrays, direction);
            (compared.digest(), compared.fields())
        };
        let (write, read) = (Direction::Write, Direction::Read);
        assert_eq!(said(Vec::new(), None, real, write), said(vec![vec![(1, 3)]], Some(Kind::Float32), real, write));
        assert_eq!(said(Vec::new(), None, real, read), said(Vec::new(), None, Some(Kind::Int8), read));
        assert_ne!(said(Vec::new(), None, real, write), said(Vec::new(), None, Some(Kind::Int8), write));
    }
}
