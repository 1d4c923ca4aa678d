//! Texts of any length that are written: each chunk has a heap with its texts in front of its elements.

use super::contents::{Hdf5, Hdf5Array};
use crate::array_write::ArrayWrite;
use crate::options::WriteOptions;
use crate::slots::slots;
use hyperslab_format::hdf5::{ChunkPlace, Pipeline, TEXT_ELEMENT_BYTES, TextHeap};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::stored::Coding;
use hyperslab_layout::{Codec, ElementType, Kind, Opaque};
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;

/// Refuses new arrays of texts of any length that have no place here.
pub(super) fn check_texts(ask: &ArrayWrite, element: ElementType, options: &WriteOptions) -> Result<(), Fault> {
    if slots(Some(element)).is_none() {
        return Ok(());
    }
    let refused = |what: &str, hint: &str| {
        let text = format!("'{}' has texts of variable length, which are not written {what}", ask.name);
        Err(Fault::new(FaultKind::Unsupported, text).hint(hint))
    };
    let is_filtered = options.codecs.as_ref().is_some_and(|codecs| !codecs.chain.is_empty() || codecs.shards.is_some());
    if ask.shape().is_empty() {
        return refused("without a dimension", "give it one of length 1, as with array.reshape(1), or an attribute");
    }
    if is_filtered {
        return refused(
            "with filters",
            "leave compression and checksums out: HDF5 applies them to places of texts only",
        );
    }
    if options.fill_value.as_ref().is_some_and(|value| value.as_str() != Some("")) {
        return refused("with a fill value", "leave it out: what no rank writes is empty");
    }
    Ok(())
}

impl Hdf5Array {
    fn heap(&self, chunk: &[u64]) -> Option<TextHeap> {
        let slot_bytes = slots(Some(self.array.element))?.bytes();
        Some(TextHeap { slot_bytes, elements: volume(chunk).unwrap_or(0) })
    }

    /// How its chunks are coded as they are written.
    pub(super) fn codec(&self, chunk: &[u64], filters: Pipeline) -> Arc<dyn Codec> {
        match self.heap(chunk) {
            Some(heap) => Arc::new(heap),
            None => Arc::new(filters),
        }
    }

    /// How its chunks are coded.
    pub(super) fn coding(&self, chunk: &[u64], filters: &Pipeline) -> Coding {
        if self.heap(chunk).is_some() { Coding::Encoded(self.codec(chunk, filters.clone())) } else { filters.coding() }
    }

    /// Places of new chunks as indexes have them: those of the elements, behind their texts.
    pub(super) fn without_texts(&self, places: Vec<ChunkPlace>) -> Vec<ChunkPlace> {
        let Some(heap) = self.place.chunk().and_then(|(chunk, _)| self.heap(chunk)) else { return places };
        let elements = |place: ChunkPlace| {
            let (at, bytes) = heap.elements_of(place.at, place.bytes.into());
            ChunkPlace { at, bytes: bytes as u32, ..place }
        };
        places.into_iter().map(elements).collect()
    }
}

impl Hdf5 {
    /// Arrays of texts from this number on are written: from now on their elements say where these lie.
    pub(super) fn texts_are_written(&mut self, first: usize) {
        let reference = Opaque::from_code(&format!("O{TEXT_ELEMENT_BYTES}")).map(Kind::Opaque);
        for held in self.arrays[first..].iter_mut().filter(|held| slots(Some(held.array.element)).is_some()) {
            held.array.element = ElementType::native(reference.expect("a code of a type"));
            held.fill = vec![0; TEXT_ELEMENT_BYTES as usize];
        }
    }
}
