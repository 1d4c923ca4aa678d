//! How an array lies in storage, as data, and all that follows from it: nobody else asks what kind of place it is.
//!
//! The parts are orthogonal: what an element is, how elements follow each other ([`Strides`]), what is moved as one
//! ([`Unit`]), which object holds it ([`Objects`]), how its bytes are coded ([`Coding`]), and what a write finds there
//! ([`Change`]). A format says how its arrays lie by filling them in, and plans, stores and prices ask the questions below.

mod objects;
mod order;
mod ordering;
mod questions;
mod strides;

use crate::codec::Codec;
pub use crate::codec::Stretch;
use crate::{ElementType, TextParts};
pub use objects::{Address, Indexes, Keys, Object, Objects, OtherCodec, Shards, Table};
pub use order::{Along, StorageOrder};
use std::sync::{Arc, OnceLock};
pub use strides::Strides;

/// What is moved as one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Whatever is convenient: the array is cut freely into subchunks that are contiguous in its object.
    Free,
    /// A chunk of a regular grid of this shape. Chunks at the edge are stored whole.
    Chunk(Vec<u64>),
}

/// How the elements of a unit become bytes.
#[derive(Clone, Debug)]
pub enum Coding {
    /// They are the bytes.
    Plain,
    /// They are followed by the CRC-32C of all of them, 4 B, little-endian.
    Trailer,
    /// The same, read in parts: what the parts add up to is compared once all of it has been read. Never written.
    Summed,
    /// A codec says so; its bytes can only be read and written whole.
    Encoded(Arc<dyn Codec>),
}

/// What a write finds where it writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Change {
    /// Nothing, and no reader sees what it leaves: nothing is to be merged or protected.
    Fresh,
    /// Units that readers may see, each of which must become the new one at once.
    Replace,
    /// Bytes that are overwritten where they lie.
    InPlace,
}

/// An array in storage.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Global shape.
    pub shape: Vec<u64>,
    /// Type of the elements.
    pub element: ElementType,
    /// One element, in that type, for what was never written.
    pub fill: Arc<[u8]>,
    /// Texts in an element, behind whose values may lie what is not part of them: readers get zeros there.
    pub texts: TextParts,
    /// How elements follow each other, in the object or inside a chunk.
    pub strides: Strides,
    /// What is moved as one.
    pub unit: Unit,
    /// Number of the root below which its objects lie, among those of the transfer.
    pub root: u32,
    /// Which object holds a unit.
    pub objects: Objects,
    /// How the elements of a unit become bytes.
    pub coding: Coding,
    /// What a write finds there.
    pub change: Change,
    /// Where this is another array with its elements in the order of storage: how they are numbered.
    pub numbered: Option<Arc<StorageOrder>>,
}

/// So many zeros, the same ones for all arrays of elements of a usual size.
fn zeros(bytes: usize) -> Arc<[u8]> {
    static KNOWN: [OnceLock<Arc<[u8]>>; 17] = [const { OnceLock::new() }; 17];
    let made = || std::iter::repeat_n(0, bytes).collect();
    KNOWN.get(bytes).map_or_else(made, |known| known.get_or_init(made).clone())
}

impl Stored {
    /// An array whose elements all follow each other in one object, from this byte on, row-major and plain, with zeros for
    /// what was never written; changed in place.
    pub fn in_file(shape: &[u64], element: ElementType, name: impl Into<Arc<str>>, offset: u64) -> Stored {
        Stored {
            shape: shape.to_vec(),
            element,
            fill: zeros(element.bytes() as usize),
            texts: TextParts::default(),
            strides: Strides::row_major(shape.len()),
            unit: Unit::Free,
            root: 0,
            objects: Objects::One { name: name.into(), offset },
            coding: Coding::Plain,
            change: Change::InPlace,
            numbered: None,
        }
    }

    /// A new array with an object for each chunk, row-major, with zeros for what was never written.
    pub fn in_chunks(shape: &[u64], element: ElementType, chunk: &[u64], keys: Keys, coding: Coding) -> Stored {
        Stored {
            unit: Unit::Chunk(chunk.to_vec()),
            objects: Objects::Keyed(keys),
            coding,
            change: Change::Fresh,
            ..Stored::in_file(shape, element, "", 0)
        }
    }

    /// An array whose chunks lie where a table says, row-major and plain; changed in place.
    pub fn in_table(shape: &[u64], element: ElementType, chunk: &[u64], table: Table) -> Stored {
        Stored {
            unit: Unit::Chunk(chunk.to_vec()),
            objects: Objects::Table(Arc::new(table)),
            ..Stored::in_file(shape, element, "", 0)
        }
    }

    /// A new array whose chunks lie one after another in one object, from this byte on, row-major and plain, with zeros for
    /// what was never written.
    pub fn in_grid(
        shape: &[u64],
        element: ElementType,
        chunk: &[u64],
        name: impl Into<Arc<str>>,
        offset: u64,
    ) -> Stored {
        Stored {
            unit: Unit::Chunk(chunk.to_vec()),
            objects: Objects::Grid { name: name.into(), offset },
            change: Change::Fresh,
            ..Stored::in_file(shape, element, "", 0)
        }
    }

    /// An array whose chunks go through this codec, and get room from this byte on in the object of the table once they have.
    /// The table says where those lie that are there.
    pub fn in_room(
        shape: &[u64],
        element: ElementType,
        chunk: &[u64],
        (from, known): (u64, Table),
        codec: Arc<dyn Codec>,
    ) -> Stored {
        Stored {
            unit: Unit::Chunk(chunk.to_vec()),
            change: if known.chunks().is_empty() { Change::Fresh } else { Change::Replace },
            objects: Objects::Allotted { from, known: Arc::new(known) },
            coding: Coding::Encoded(codec),
            ..Stored::in_file(shape, element, "", 0)
        }
    }

    /// An array whose chunks lie in shards, row-major and coded so, with zeros for what was never written; to be read.
    pub fn in_shards(shape: &[u64], element: ElementType, chunk: &[u64], shards: Shards, coding: Coding) -> Stored {
        Stored {
            unit: Unit::Chunk(chunk.to_vec()),
            objects: Objects::Shards(Arc::new(shards)),
            coding,
            ..Stored::in_file(shape, element, "", 0)
        }
    }

    /// The same, with elements in this order.
    #[must_use]
    pub fn ordered(self, order: Vec<usize>) -> Stored {
        Stored { strides: Strides { order, ..self.strides }, ..self }
    }

    /// The same, below another root.
    #[must_use]
    pub fn below_root(self, root: u32) -> Stored {
        Stored { root, ..self }
    }

    /// The same, with something else to find where it is written.
    #[must_use]
    pub fn changed(self, change: Change) -> Stored {
        Stored { change, ..self }
    }
}
