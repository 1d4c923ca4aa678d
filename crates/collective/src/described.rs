//! What ranks compare of the arrays of a call before bytes move.

use crate::holding::Holding;
use hyperslab_layout::{ElementType, Section};

/// What ranks compare of one array: its name, how the ranks hold it, which section of it, and the type of its elements.
pub type Described<'a> = (&'a str, Option<&'a Holding>, Option<&'a Section>, Option<ElementType>);

/// Adds what ranks compare of the arrays of a call. What an array has in common with the one before it is not said again:
/// of hundreds of arrays in one call, nearly all are held alike. What is said follows from nothing else, so that ranks
/// which say the same ask for the same.
pub fn describe<'a>(fields: &mut Vec<(String, String)>, arrays: impl Iterator<Item = Described<'a>>) {
    let (mut held, mut selected, mut typed) = (None, None, None);
    for (name, holding, section, element) in arrays {
        fields.push((format!("array {}", fields.len()), format!("'{name}'")));
        if let Some(holding) = holding.filter(|&holding| held.replace(holding) != Some(holding)) {
            fields.push((format!("shape of '{name}'"), format!("{:?}", holding.shape())));
            fields.push((format!("distribution of '{name}'"), holding.to_string()));
        }
        if std::mem::replace(&mut selected, section) != section {
            let section = section.map_or("all of it".into(), Section::to_string);
            fields.push((format!("section of '{name}'"), section));
        }
        // A rank without pieces has no type, and pieces of several types are converted each by itself.
        let one_type = holding.is_none_or(|held| held.regular().is_some());
        let element = element.filter(|_| one_type);
        if let Some(element) = element.filter(|&element| typed.replace(element) != Some(element)) {
            fields.push((format!("element type of '{name}'"), element.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{Dim, Distribution, Kind};
    use std::collections::BTreeMap;

    /// Ranks that ask for different things say different things, and those that ask for the same the same, also where
    /// much of it is not said again: all sequences of three arrays out of these holdings, sections and types.
    #[test]
    fn different_calls_are_described_differently() {
        let held: [Holding; 2] =
            [Dim::Block, Dim::Cyclic(1)].map(|dim| Distribution::new(&[8], &[2], &[dim], None).unwrap().into());
        let sections = [None, Some(Section::whole(&[8]))];
        let types = [Kind::Float32, Kind::Float64].map(|kind| Some(ElementType::native(kind)));
        let arrays: Vec<Described> =
            (0..8).map(|i| ("a", Some(&held[i & 1]), sections[i >> 1 & 1].as_ref(), types[i >> 2])).collect();
        let mut seen = BTreeMap::new();
        for call in 0..8 * 8 * 8 {
            let mut fields = Vec::new();
            describe(&mut fields, [call & 7, call >> 3 & 7, call >> 6].into_iter().map(|i| arrays[i]));
            assert_eq!(seen.insert(fields, call), None, "call {call:o} is described as another one");
        }
    }

    #[test]
    fn pieces_of_a_ranks_own_types_change_nothing_that_others_compare() {
        let regular: Holding = Distribution::new(&[8], &[2], &[Dim::Block], None).unwrap().into();
        let boxes = Holding::Boxes { shape: vec![8], boxes: Vec::new() };
        let real = Some(ElementType::native(Kind::Float64));
        let said = |of_boxes: Option<ElementType>| {
            let mut fields = Vec::new();
            let arrays = [("a", &regular, real), ("b", &boxes, of_boxes), ("c", &regular, real)];
            describe(&mut fields, arrays.into_iter().map(|(name, held, element)| (name, Some(held), None, element)));
            fields
        };
        assert_eq!(said(None), said(Some(ElementType::native(Kind::Float32))));
    }
}
