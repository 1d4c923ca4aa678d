//! Texts of variable length: what moved says which elements a rank holds, and each rank reads the chunks that hold their texts.

use super::Store;
use super::nodes::place;
use super::stored::mark_of;
use crate::error::{Error, format_fault};
use crate::slots::slots;
use hyperslab_collective::ArrayRequest;
use hyperslab_format::zarr::{ArrayMetadata, TEXTS_BYTES_MAX};
use hyperslab_layout::mesh::unravel;
use hyperslab_layout::{ElementType, NUMBER_BYTES, Numbering, Section, Triplet, tuple};
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind};
use std::collections::BTreeMap;

/// An array that is there as it is written: one of texts in slots, of the size that ranks have agreed on, in whole chunks.
pub(super) fn in_slots(
    array: &ArrayRequest,
    metadata: ArrayMetadata,
    element: Option<ElementType>,
    covers_chunks: impl FnOnce(&ArrayMetadata) -> bool,
) -> Result<ArrayMetadata, Fault> {
    if !metadata.has_texts() {
        return Ok(metadata);
    }
    let name = &array.name;
    let Some(element) = array.memory.first().copied().or(element) else {
        let text = format!("this rank holds no piece of '{name}', and does not know how long its texts are");
        return Err(Fault::new(FaultKind::Invalid, text).hint("let rank 0 hold a piece of it"));
    };
    if slots(Some(element)).is_none() {
        let text = format!("'{name}' has texts of variable length, and what is written are no such texts");
        return Err(Fault::new(FaultKind::Invalid, text)
            .expected("an array of str, or of NumPy's StringDType", element.to_string())
            .hint("make it one with array.astype(object), or array.astype(\"T\")"));
    }
    if !covers_chunks(&metadata) {
        let text = format!("a part of '{name}' would be written that begins or ends within a chunk of texts");
        let expected = format!("whole chunks of {}", tuple(&metadata.chunk_shape));
        return Err(Fault::new(FaultKind::Unsupported, text)
            .expected(expected, "parts of them")
            .hint("texts are written in whole chunks: choose the section or chunks= accordingly"));
    }
    Ok(metadata.in_slots(element))
}

/// Whether a section has all or nothing of each chunk.
pub(super) fn covers_chunks(section: &Section, shape: &[u64], chunk: &[u64]) -> bool {
    let whole = |((dim, extent), chunk): ((&Triplet, &u64), &u64)| {
        let end = dim.start + dim.count * dim.block;
        let is_one = dim.count <= 1 || dim.stride == dim.block;
        dim.count == 0 || is_one && dim.start % chunk == 0 && (end % chunk == 0 || end == *extent)
    };
    section.dims.iter().zip(shape).zip(chunk).all(whole)
}

/// Where texts of a chunk belong: their numbers in the chunk, and places among all that are read.
type OfChunk = (Vec<u64>, Vec<usize>);

impl Store {
    /// The texts of elements of arrays, which were read as bytes that say which ones they are: of one array after another. Where
    /// ranks ask `together`, this is collective, and a failure is the same on all; else local.
    ///
    /// # Errors
    /// When a chunk is damaged, or an array has another shape by now.
    pub fn texts(&self, of: &[(&str, &[u8])], together: bool) -> Result<Vec<Vec<u8>>, Error> {
        let what = format!("read of texts from '{}'", self.path().display());
        let each = of.iter().map(|(name, elements)| self.texts_of(name, elements)).collect::<Result<Vec<_>, _>>();
        // They are read by name, after the elements.
        let found = each.and_then(|each| {
            self.attempts.check_still_there().map(|()| each.into_iter().flatten().collect::<Vec<_>>())
        });
        let found = found.map_err(|fault| fault.context(&what));
        if together {
            let fault = found.as_ref().err().cloned();
            self.comm.agree(Question::opening(what, Vec::new(), fault), || Ok(Vec::new()))?;
        }
        Ok(found?)
    }

    fn texts_of(&self, name: &str, elements: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        if elements.is_empty() {
            return Ok(Vec::new());
        }
        self.mounts.check_alone(&format!("read texts of '{name}'"))?;
        let metadata = self.found(name)?.0;
        let (mark, elements_max) = (mark_of(&metadata.shape), metadata.shape.iter().product::<u64>());
        let (elements, _) = elements.as_chunks::<{ NUMBER_BYTES as usize }>();
        let mut chunks: BTreeMap<u64, OfChunk> = BTreeMap::new();
        for (place, element) in elements.iter().enumerate() {
            let (number, found) = Numbering::read(*element);
            if found != mark || !metadata.has_texts() {
                let text = format!("'{name}' has changed since its elements were read");
                return Err(Fault::new(FaultKind::Outdated, text).hint("read it again"));
            }
            if number >= elements_max {
                return Err(Fault::new(FaultKind::Invalid, format!("'{name}' has no element {number}")));
            }
            let (chunk, inside) = metadata.place_of(number);
            let of_chunk = chunks.entry(chunk).or_default();
            of_chunk.0.push(inside);
            of_chunk.1.push(place);
        }
        let mut texts = vec![Vec::new(); elements.len()];
        let grid = metadata.grid_shape();
        for (chunk, (inside, places)) in chunks {
            let chunk = unravel(chunk, &grid);
            let found = self.texts_of_chunk((name, &metadata), &chunk, &inside)?;
            places.into_iter().zip(found).for_each(|(place, text)| texts[place] = text);
        }
        Ok(texts)
    }

    fn texts_of_chunk(
        &self,
        (name, metadata): (&str, &ArrayMetadata),
        chunk: &[u64],
        inside: &[u64],
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let (names, at) = (self.directory(), place(&self.base(), name));
        let prefix = if at.is_empty() { at } else { format!("{at}/") };
        let key = format!("{prefix}{}", metadata.chunk_key(chunk));
        let Some(stored) = names.read_prefix(&key, TEXTS_BYTES_MAX + 1)? else {
            return Ok(vec![metadata.fill_value.clone(); inside.len()]);
        };
        let full = names.full(&key);
        if stored.len() as u64 > TEXTS_BYTES_MAX {
            let text = format!("'{full}' has more than {TEXTS_BYTES_MAX} B of texts");
            return Err(Fault::new(FaultKind::Unsupported, text).hint("rewrite the array with smaller chunks"));
        }
        metadata.texts_in(&stored, inside, &full).map_err(format_fault)
    }
}
