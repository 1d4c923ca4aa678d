//! Sections: regular selections of an array, as HDF5 hyperslabs and Fortran triplets.

use crate::IndexSet;
use crate::tuple;
use std::fmt;
use std::ops::Range;

/// A section of one dimension: indices `start + i*stride + j` for `0 <= i < count`, `0 <= j < block`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Triplet {
    /// First index.
    pub start: u64,
    /// Distance between blocks.
    pub stride: u64,
    /// Number of blocks.
    pub count: u64,
    /// Indices in one block.
    pub block: u64,
}

impl Triplet {
    /// All of an extent.
    pub fn whole(extent: u64) -> Triplet {
        Triplet { start: 0, stride: extent.max(1), count: u64::from(extent > 0), block: extent.max(1) }
    }

    /// The same range, but only every `step`-th index of it, from the first on. `step` is at least 1.
    ///
    /// # Panics
    /// When `step` is 0.
    #[must_use]
    pub fn every(self, step: u64) -> Triplet {
        Triplet { start: self.start, stride: step, count: self.len().div_ceil(step), block: 1 }
    }

    /// Number of indices selected.
    pub fn len(&self) -> u64 {
        self.count * self.block
    }

    /// Whether it selects nothing.
    pub fn is_empty(&self) -> bool {
        self.count == 0 || self.block == 0
    }

    /// The index that is number `position` of the section.
    pub fn select(&self, position: u64) -> u64 {
        self.start + position / self.block * self.stride + position % self.block
    }

    /// Positions of the section whose indices lie in `low..high`: a range, because selection keeps order.
    pub fn positions(&self, low: u64, high: u64) -> (u64, u64) {
        let set = self.set();
        (set.below(low), set.below(high))
    }

    /// The set of indices.
    pub fn set(&self) -> IndexSet {
        IndexSet::progression(self.start, self.block, self.stride, self.count).unwrap_or_default()
    }
}

/// A range of indices; one that ends before it begins selects nothing.
impl From<Range<u64>> for Triplet {
    fn from(range: Range<u64>) -> Triplet {
        let extent = range.end.saturating_sub(range.start);
        Triplet { start: range.start, ..Triplet::whole(extent) }
    }
}

/// One index; the dimension stays, with extent 1.
impl From<u64> for Triplet {
    fn from(index: u64) -> Triplet {
        Triplet::from(index..index.saturating_add(1))
    }
}

/// Why a section does not fit an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SectionError {
    section: Section,
    problem: Problem,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Problem {
    /// It has another number of dimensions than an array of this shape.
    Dimensions(Vec<u64>),
    /// Blocks of this dimension overlap.
    Overlaps(usize),
    /// Indices of this dimension are too large for 64 bits.
    Overflows(usize),
    /// It ends here in this dimension, behind the end of an array of this shape.
    Ends(usize, u64, Vec<u64>),
}

impl SectionError {
    /// What is wrong, where the section is one of this array: text that names the section as slices.
    pub fn of(&self, array: &str) -> String {
        let SectionError { section, problem } = self;
        match problem {
            Problem::Dimensions(shape) => too_many(section.dims.len(), array, shape),
            Problem::Overlaps(dim) => {
                let Triplet { stride, block, .. } = section.dims[*dim];
                format!("section {section} of {array} has blocks of {block} indices every {stride} in dimension {dim}")
            }
            Problem::Overflows(dim) => format!("section {section} of {array} reaches beyond 2**64 in dimension {dim}"),
            Problem::Ends(dim, _, shape) if section.dims[*dim].len() == 1 => {
                let index = section.dims[*dim].start;
                format!(
                    "index {index} is out of range for dimension {dim} of {array}, which has shape {}",
                    tuple(shape)
                )
            }
            Problem::Ends(dim, end, shape) => {
                let shape = tuple(shape);
                format!(
                    "section {section} of {array} ends at {end} in dimension {dim}, but the array has shape {shape}"
                )
            }
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match &self.problem {
            Problem::Dimensions(_) => DIMENSIONS_HINT.into(),
            Problem::Overlaps(_) => "give a stride of at least the block, so that blocks do not overlap".into(),
            Problem::Overflows(_) => "give bounds that lie in the array".into(),
            Problem::Ends(dim, _, shape) if self.section.dims[*dim].len() == 1 => match shape[*dim] {
                0 => "choose another section: the array is empty there".into(),
                extent => format!("give an index of at most {}", extent - 1),
            },
            Problem::Ends(dim, _, shape) => {
                format!(
                    "end it at {} or before: sections are not cut to the array, as slices of NumPy are",
                    shape[*dim]
                )
            }
        }
    }
}

/// What to do about a section of another number of dimensions than the array.
const DIMENSIONS_HINT: &str = "give an index or a slice for each dimension of the array";

/// That a section of so many dimensions cannot be one of this array.
fn too_many(ndim: usize, array: &str, shape: &[u64]) -> String {
    format!("the section has {ndim} dimensions, but {array} has {} (shape {})", shape.len(), tuple(shape))
}

impl fmt::Display for SectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  hint: {}", self.of("the array"), self.hint())
    }
}

impl std::error::Error for SectionError {}

/// A region of an array: a [`Triplet`] per dimension. Its own index space, of the shape [`Section::shape`], is what
/// a distribution spreads over ranks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Section {
    /// One selection a dimension.
    pub dims: Vec<Triplet>,
}

impl Section {
    /// All of an array of this shape.
    pub fn whole(shape: &[u64]) -> Section {
        Section { dims: shape.iter().map(|&extent| Triplet::whole(extent)).collect() }
    }

    /// A range for each dimension.
    ///
    /// ```
    /// # use hyperslab_layout::{Section, Triplet};
    /// // array[2:10:2, 0:5] in Python's words
    /// let section = Section::of([Triplet::from(2..10).every(2), (0..5).into()]);
    /// assert_eq!(section.shape(), [4, 5]);
    /// ```
    pub fn of(dims: impl IntoIterator<Item = impl Into<Triplet>>) -> Section {
        Section { dims: dims.into_iter().map(Into::into).collect() }
    }

    /// Extents of the section's own index space.
    pub fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(Triplet::len).collect()
    }

    /// Checks that the section fits an array of this shape.
    ///
    /// # Errors
    /// When the number of dimensions differs, blocks overlap, or an index lies outside.
    pub fn check(&self, shape: &[u64]) -> Result<(), SectionError> {
        let fail = |problem| Err(SectionError { section: self.clone(), problem });
        if self.dims.len() != shape.len() {
            return fail(Problem::Dimensions(shape.to_vec()));
        }
        for (d, (triplet, &extent)) in self.dims.iter().zip(shape).enumerate() {
            let Triplet { start, stride, count, block } = *triplet;
            let Some(set) = IndexSet::progression(start, block, stride, count) else {
                return fail(if count > 1 && stride < block { Problem::Overlaps(d) } else { Problem::Overflows(d) });
            };
            let end = set.hull().map_or(start, |(_, high)| high);
            if end > extent {
                return fail(Problem::Ends(d, end, shape.to_vec()));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self
            .dims
            .iter()
            .map(|t| match t {
                Triplet { start, count: 1, block, .. } => format!("{start}:{}", start.saturating_add(*block)),
                Triplet { start, count: 0, .. } => format!("{start}:{start}"),
                Triplet { start, stride: 1, count, block: 1 } => format!("{start}:{}", start.saturating_add(*count)),
                Triplet { start, stride, count, block: 1 } => {
                    let last = start.saturating_add((count - 1).saturating_mul(*stride));
                    format!("{start}:{}:{stride}", last.saturating_add(1))
                }
                Triplet { start, stride, count, block } => format!("({start}, {stride}, {count}, {block})"),
            })
            .collect();
        write!(f, "[{}]", dims.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_hdf5_documentation() {
        let section = Section {
            dims: vec![
                Triplet { start: 0, stride: 4, count: 2, block: 3 },
                Triplet { start: 1, stride: 3, count: 4, block: 2 },
            ],
        };
        section.check(&[8, 12]).unwrap();
        assert_eq!(section.shape(), [6, 8]);
        let rows: Vec<u64> = (0..6).map(|s| section.dims[0].select(s)).collect();
        assert_eq!(rows, [0, 1, 2, 4, 5, 6]);
        let columns: Vec<u64> = (0..8).map(|s| section.dims[1].select(s)).collect();
        assert_eq!(columns, [1, 2, 4, 5, 7, 8, 10, 11]);
        assert!(section.check(&[6, 12]).unwrap_err().to_string().contains("ends at 7 in dimension 0"));
        assert!(section.check(&[8]).unwrap_err().to_string().contains("2 dimensions, but the array has 1"));
    }

    #[test]
    fn positions_of_a_range_are_a_range() {
        for triplet in [
            Triplet { start: 2, stride: 5, count: 4, block: 3 },
            Triplet { start: 0, stride: 1, count: 9, block: 1 },
            Triplet { start: 1, stride: 7, count: 1, block: 4 },
            Triplet::whole(0),
        ] {
            for low in 0..25 {
                for high in low..25 {
                    let (a, b) = triplet.positions(low, high);
                    let expected: Vec<u64> =
                        (0..triplet.len()).filter(|&s| (low..high).contains(&triplet.select(s))).collect();
                    assert_eq!((a..b).collect::<Vec<_>>(), expected);
                }
            }
        }
    }

    #[test]
    fn numbers_beyond_64_bits_are_refused() {
        let told = |start, stride, count, block| {
            let section = Section { dims: vec![Triplet { start, stride, count, block }] };
            section.check(&[10]).unwrap_err().to_string()
        };
        assert!(told(u64::MAX, 9, 1, 9).contains("reaches beyond 2**64 in dimension 0"));
        assert!(told(1, u64::MAX, 3, 1).contains("reaches beyond 2**64"));
    }

    #[test]
    fn overlapping_blocks_are_refused() {
        let section = Section { dims: vec![Triplet { start: 0, stride: 2, count: 2, block: 3 }] };
        assert!(section.check(&[10]).unwrap_err().to_string().contains("a stride of at least the block"));
    }
}
