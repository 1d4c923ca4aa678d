//! Regions: products of index sets, one per dimension.

use crate::IndexSet;
use smallvec::SmallVec;

/// A set of elements of an N-d index space: all points whose index in each dimension lies in that dimension's set.
///
/// Without dimensions it is the one element of a scalar.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// One set a dimension; of up to three, without an allocation.
    pub dims: SmallVec<[IndexSet; 3]>,
}

impl Region {
    /// The box `low..high`.
    pub fn boxed(low: &[u64], high: &[u64]) -> Region {
        Region { dims: low.iter().zip(high).map(|(&a, &b)| IndexSet::range(a, b)).collect() }
    }

    /// All of an index space of this shape.
    pub fn whole(shape: &[u64]) -> Region {
        Region { dims: shape.iter().map(|&extent| IndexSet::range(0, extent)).collect() }
    }

    /// No element, in an index space of this many dimensions; that of a scalar has one dimension here, since without
    /// any there would be an element.
    pub fn empty(ndim: usize) -> Region {
        Region { dims: (0..ndim.max(1)).map(|_| IndexSet::empty()).collect() }
    }

    /// Number of dimensions.
    pub fn ndim(&self) -> usize {
        self.dims.len()
    }

    /// Number of indices in each dimension.
    pub fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(IndexSet::len).collect()
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().map(IndexSet::len).product()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.dims.iter().any(IndexSet::is_empty)
    }

    /// Elements in both.
    pub fn intersect(&self, other: &Region) -> Region {
        Region { dims: self.dims.iter().zip(&other.dims).map(|(a, b)| a.intersect(b)).collect() }
    }

    /// Elements inside the box of these bounds.
    pub fn within(&self, bounds: &[(u64, u64)]) -> Region {
        Region { dims: self.dims.iter().zip(bounds).map(|(set, &(low, high))| set.within(low, high)).collect() }
    }

    /// Whether it is one box, and which: lowest index and one past the highest, per dimension.
    pub fn as_box(&self) -> Option<Vec<(u64, u64)>> {
        self.dims.iter().map(IndexSet::as_range).collect()
    }
}
