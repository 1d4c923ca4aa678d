//! Where elements of a dataset lie: in one stretch, or in chunks, which have their places from the start, or get room as they
//! are written.

use crate::file::form::FileArray;
use hyperslab_format::hdf5::{ChunkPlace, Filter, NewStorage, Pipeline};
use hyperslab_layout::mesh::{ravel, unravel, volume};
use hyperslab_world::Fault;
use std::sync::Arc;

/// Where the elements of an array lie.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ElementsAt {
    /// From this byte on.
    At(u64),
    /// Nowhere: nobody wrote them.
    Nowhere,
    /// In plain chunks of this shape, one after another, in a new file.
    Grid { chunk: Vec<u64>, at: u64 },
    /// In chunks of this shape that went through these filters, in a new file; where they lie only rank 0 knows.
    InRoom { chunk: Vec<u64>, filters: Pipeline, places: Arc<[ChunkPlace]> },
    /// The same in a file that exists; the index is that of the dataset with this header, or of the array's name.
    Chunked { chunk: Vec<u64>, filters: Pipeline, header: Option<u64> },
    /// In one stretch of a file that exists, which is looked up by the array's name.
    Named,
    /// The same, in the header of its dataset, which may go elsewhere as a whole.
    InHeader,
}

impl ElementsAt {
    /// Shape and filters of its chunks, where it lies in chunks.
    pub(super) fn chunk(&self) -> Option<(&[u64], Pipeline)> {
        match self {
            ElementsAt::Grid { chunk, .. } => Some((chunk, Pipeline::default())),
            ElementsAt::InRoom { chunk, filters, .. } | ElementsAt::Chunked { chunk, filters, .. } => {
                Some((chunk, filters.clone()))
            }
            ElementsAt::At(_) | ElementsAt::Nowhere | ElementsAt::Named | ElementsAt::InHeader => None,
        }
    }

    /// The header of its dataset, where that is known.
    pub(super) fn header(&self) -> Option<u64> {
        match self {
            ElementsAt::Chunked { header, .. } => *header,
            _ => None,
        }
    }

    /// What new metadata say of it, for an array of this shape.
    pub(super) fn to_make(&self, shape: &[u64], element_bytes: u64) -> NewStorage {
        match self {
            ElementsAt::At(at) => NewStorage::Contiguous(Some(*at).filter(|_| !shape.contains(&0))),
            // They are in the file already.
            ElementsAt::Nowhere | ElementsAt::Named | ElementsAt::InHeader | ElementsAt::Chunked { .. } => {
                NewStorage::Contiguous(None)
            }
            ElementsAt::InRoom { chunk, places, .. } => {
                NewStorage::Chunked { chunk: chunk.clone(), places: places.clone() }
            }
            ElementsAt::Grid { chunk, at } => {
                let count = volume(&grid(shape, chunk)).unwrap_or(0);
                let bytes = volume(chunk).unwrap_or(0) * element_bytes;
                let place = |number| ChunkPlace { number, at: at + number * bytes, bytes: bytes as u32, lacks: 0 };
                NewStorage::Chunked { chunk: chunk.clone(), places: (0..count).map(place).collect() }
            }
        }
    }

    /// The filters that new metadata name.
    pub(super) fn filters(&self) -> Vec<Filter> {
        match self {
            ElementsAt::InRoom { filters, .. } => filters.filters(),
            _ => Vec::new(),
        }
    }

    /// Notes where chunks of a new file lie now.
    pub(super) fn put(&mut self, new: Vec<ChunkPlace>) {
        let ElementsAt::InRoom { places, .. } = self else { return };
        let mut all = places.to_vec();
        all.extend(new);
        // Of those with one number, the last one holds.
        all.sort_by_key(|place| place.number);
        all.dedup_by(|later, earlier| {
            let same = later.number == earlier.number;
            if same {
                *earlier = *later;
            }
            same
        });
        *places = all.into();
    }

    /// The array has this shape now, in place of that one: its chunks are counted otherwise.
    pub(super) fn count_again(&mut self, before: &[u64], now: &[u64]) {
        let ElementsAt::InRoom { chunk, places, .. } = self else { return };
        let (before, now) = (grid(before, chunk), grid(now, chunk));
        if before.get(1..) == now.get(1..) {
            return;
        }
        let moved = |place: &ChunkPlace| ChunkPlace { number: ravel(&unravel(place.number, &before), &now), ..*place };
        // An array only grows here, so their order stays.
        *places = places.iter().map(moved).collect();
    }
}

pub(super) fn grid(shape: &[u64], chunk: &[u64]) -> Vec<u64> {
    shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect()
}

/// How a new array is cut into chunks.
pub(super) struct Cut {
    pub(super) chunk: Vec<u64>,
    pub(super) filters: Pipeline,
    /// Whether chunks get room only as they are written.
    pub(super) in_room: bool,
}

impl Cut {
    /// Bytes that the array takes from the start \[B\].
    pub(super) fn bytes_at_once(&self, array: &FileArray) -> Result<u64, Fault> {
        if self.in_room {
            return array.bytes().map(|_| 0);
        }
        let shape: Vec<u64> =
            grid(&array.shape, &self.chunk).iter().zip(&self.chunk).map(|(n, c)| n.saturating_mul(*c)).collect();
        FileArray { shape, ..array.clone() }.bytes()
    }

    /// Where its elements lie, if there is room from this byte on.
    pub(super) fn at(self, at: u64) -> ElementsAt {
        match self {
            Cut { chunk, filters, in_room: true } => ElementsAt::InRoom { chunk, filters, places: [].into() },
            Cut { chunk, .. } => ElementsAt::Grid { chunk, at },
        }
    }
}
