//! Arrays of Zarr as they lie in storage.

use hyperslab_format::zarr::{ArrayMetadata, InnerChunks};
use hyperslab_layout::stored::{Change, Coding, Keys, Stored};
use hyperslab_layout::{ByteOrder, ElementType, Numbering};
use hyperslab_pack::convert_scalar;
use hyperslab_world::fingerprint;
use std::sync::Arc;

/// The stored array that metadata describe, whose chunks are objects: of one in shards, the shards.
pub(super) fn stored(metadata: &ArrayMetadata, root: u32, fresh: bool) -> Stored {
    stored_below(metadata, (root, ""), fresh)
}

/// The same, where names of its objects begin with this below the root.
pub(super) fn stored_below(metadata: &ArrayMetadata, (root, prefix): (u32, &str), fresh: bool) -> Stored {
    let (element, fill) = (metadata.stored_element(), stored_fill(metadata));
    let (keys, coding) = (metadata.key_encoding.keys(prefix), metadata.coding(&fill));
    let order = metadata.codecs.permutation(metadata.shape.len());
    let change = if fresh { Change::Fresh } else { Change::Replace };
    let stored = Stored::in_chunks(&metadata.shape, element, &metadata.chunk_shape, keys, coding).ordered(order);
    Stored { fill, root, change, ..stored }
}

/// The stored array as it is read: of one in shards, the chunks inside, of which a part may be read.
pub(super) fn stored_to_read(metadata: &ArrayMetadata, root: u32) -> Stored {
    if metadata.has_texts() {
        return numbered(metadata, root);
    }
    let fill = stored_fill(metadata);
    let Some(InnerChunks { chunk, coding, shards }) = metadata.inner(&fill) else {
        return stored(metadata, root, false);
    };
    let order = metadata.codecs.permutation(metadata.shape.len());
    let stored = Stored::in_shards(&metadata.shape, metadata.stored_element(), &chunk, shards, coding).ordered(order);
    Stored { fill, root, ..stored }
}

/// The stored array of texts of variable length as it is read: numbers of elements, whose texts are then looked for.
fn numbered(metadata: &ArrayMetadata, root: u32) -> Stored {
    let numbering = Numbering::new(&metadata.shape, mark_of(&metadata.shape));
    let (chunk, element) = (numbering.chunk().to_vec(), metadata.stored_element());
    let coding = Coding::Encoded(Arc::new(numbering));
    Stored { root, ..Stored::in_chunks(&metadata.shape, element, &chunk, Keys::nested(""), coding) }
        .changed(Change::Replace)
}

/// What tells numbers of elements of this shape from those of another.
pub(super) fn mark_of(shape: &[u64]) -> u64 {
    fingerprint(&shape.iter().flat_map(|extent| extent.to_le_bytes()).collect::<Vec<_>>())
}

/// One element that was never written, in stored byte order.
fn stored_fill(metadata: &ArrayMetadata) -> Arc<[u8]> {
    let element = metadata.stored_element();
    if let Some(slot) = metadata.slot_of_fill() {
        return slot.into();
    }
    if element.kind.is_opaque() {
        let mut fill = metadata.fill_value.clone();
        if element.order != ByteOrder::NATIVE {
            fill.chunks_mut(element.kind.swap_bytes() as usize).for_each(<[u8]>::reverse);
        }
        return fill.into();
    }
    let fill = convert_scalar(&metadata.fill_value, ElementType::native(metadata.element), element);
    fill[..element.bytes() as usize].into()
}
