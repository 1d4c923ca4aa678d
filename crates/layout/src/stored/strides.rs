//! How the elements of a stored array follow each other.

use crate::dense_strides;

/// Distances between elements that are neighbours in storage.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Strides {
    /// Dimensions from the slowest to the fastest, in the object or inside a chunk: `0, 1, 2` is row-major, `2, 1, 0`
    /// column-major.
    pub order: Vec<usize>,
    /// Distance between neighbours along the slowest dimension \[B\], where something else lies between them, as between the
    /// records of a NetCDF variable; only of arrays in one object.
    pub record: Option<u64>,
}

impl Strides {
    /// The last dimension is the fastest, and nothing lies between elements.
    pub fn row_major(ndim: usize) -> Strides {
        Strides { order: (0..ndim).collect(), record: None }
    }

    /// The dimension whose neighbours have something else between them.
    pub fn of_records(&self) -> Option<usize> {
        self.record.and_then(|_| self.order.first().copied())
    }

    /// Distances \[B\] in a box of this shape in which nothing lies between elements.
    pub(super) fn dense(&self, shape: &[u64], element_bytes: u64) -> Vec<i64> {
        dense_strides(shape, &self.order, element_bytes)
    }

    /// Distances \[B\] in the object, for an array of this shape.
    pub(super) fn in_object(&self, shape: &[u64], element_bytes: u64) -> Vec<i64> {
        let mut strides = self.dense(shape, element_bytes);
        if let (Some(record), Some(&slowest)) = (self.record, self.order.first()) {
            strides[slowest] = record as i64;
        }
        strides
    }
}
