//! The elements of an array in the order in which they lie in storage, as an array of one dimension.
//!
//! A list of elements of an array of several dimensions is no product of sets. As one piece for each row it costs what hundreds
//! of elements cost, for each of them. Numbered in the order of storage, it is a list of one dimension, whatever the shape is,
//! and each chunk or subchunk is a range of it.
//!
//! ```text
//! 4 x 6 in chunks of 2 x 3      0  1  2 |  6  7  8
//!                               3  4  5 |  9 10 11
//!                              ---------+---------
//!                              12 13 14 | 18 19 20
//!                              15 16 17 | 21 22 23
//! ```

use crate::Section;
use crate::mesh::{unravel, volume};

/// How the elements of a section are numbered in the order of storage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct StorageOrder {
    /// The section.
    pub section: Section,
    /// Its dimensions.
    pub dims: Vec<Along>,
    /// The dimension whose neighbours lie together.
    pub fastest: usize,
}

/// One dimension of what is numbered in the order of storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Along {
    /// Extent of the array.
    pub extent: u64,
    /// Extent of a chunk; all of the array where it has none.
    pub chunk: u64,
    /// How far apart neighbours lie in a chunk.
    pub inside: u64,
    /// How far apart chunks lie beside each other.
    pub across: u64,
}

impl StorageOrder {
    /// Of how many elements the array in this order consists; those of chunks that reach beyond its edges count.
    pub fn elements(&self) -> u64 {
        self.dims.first().map_or(1, |dim| dim.across.saturating_mul(dim.extent.div_ceil(dim.chunk)))
    }

    /// How many chunks there are along each dimension.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.extent.div_ceil(dim.chunk)).collect()
    }

    /// The runs of storage, by first number and length, of so many elements of the section from this one on, in its row-major
    /// order.
    pub fn runs(&self, mut from: u64, mut count: u64, run: &mut impl FnMut(u64, u64)) {
        let last = self.dims.len() - 1;
        let row = self.section.dims[last].len().max(1);
        while count > 0 {
            let (mut rest, mut at) = (from / row, 0);
            for d in (0..last).rev() {
                let triplet = &self.section.dims[d];
                at += self.dims[d].number(triplet.select(rest % triplet.len().max(1)));
                rest /= triplet.len().max(1);
            }
            let mut column = from % row;
            let here = count.min(row - column);
            let end = column + here;
            while column < end {
                let (triplet, along) = (&self.section.dims[last], &self.dims[last]);
                let index = triplet.select(column);
                // What lies together: within a block of the section and a chunk, where neighbours do.
                let block =
                    if triplet.stride == triplet.block { u64::MAX } else { triplet.block - column % triplet.block };
                let together = if self.fastest == last { block.min(along.chunk - index % along.chunk) } else { 1 };
                let length = together.min(end - column);
                run(at + along.number(index), length);
                column += length;
            }
            (from, count) = (from + here, count - here);
        }
    }

    /// The place in the section of the element with this number; of what lies beyond its edges, the nearest one.
    pub fn index_of(&self, number: u64) -> Vec<u64> {
        let chunk_volume = volume(&self.dims.iter().map(|dim| dim.chunk).collect::<Vec<_>>()).unwrap_or(u64::MAX);
        let chunk = unravel(number / chunk_volume, &self.counts());
        let inside = number % chunk_volume;
        let index = self.dims.iter().zip(chunk).map(|(dim, at)| at * dim.chunk + inside / dim.inside % dim.chunk);
        index.zip(&self.section.dims).map(|(index, triplet)| triplet.positions(0, index).1).collect()
    }
}

impl Along {
    /// What an index of this dimension adds to the number.
    fn number(&self, index: u64) -> u64 {
        index / self.chunk * self.across + index % self.chunk * self.inside
    }
}
