//! What a section means, as users of every language say it.

use crate::error::Error;
use hyperslab_layout::{Section, Triplet, tuple};
use hyperslab_world::{Fault, FaultKind};
use std::fmt;

/// Which part of each array a call moves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Sections {
    /// All of each.
    #[default]
    Whole,
    /// The same section of each.
    Same(Section),
    /// Of each its own, in their order.
    Each(Vec<Section>),
}

impl From<Section> for Sections {
    fn from(section: Section) -> Sections {
        Sections::Same(section)
    }
}

impl From<Vec<Section>> for Sections {
    fn from(sections: Vec<Section>) -> Sections {
        Sections::Each(sections)
    }
}

impl Sections {
    /// Whether all of each array moves.
    pub fn is_whole(&self) -> bool {
        *self == Sections::Whole
    }

    /// The section of one of the arrays.
    pub(crate) fn of(&self, number: usize) -> Option<&Section> {
        match self {
            Sections::Whole => None,
            Sections::Same(section) => Some(section),
            Sections::Each(sections) => sections.get(number),
        }
    }

    /// Refuses sections that are not as many as the arrays.
    pub(crate) fn check(&self, arrays: usize) -> Result<(), Fault> {
        match self {
            Sections::Each(sections) if sections.len() != arrays => {
                let text = "each array needs a section of its own, or all the same one";
                let found = format!("{} sections", sections.len());
                Err(Fault::new(FaultKind::Invalid, text).expected(format!("{arrays} sections"), found))
            }
            _ => Ok(()),
        }
    }
}

/// What is selected along one dimension. Negative indices count from the end, where the extent is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// One index; the dimension stays, with extent 1.
    Index(i64),
    /// Every `step`-th index of a range, cut to the array, as slices of Python do.
    Range {
        /// First index; 0 if not given.
        start: Option<i64>,
        /// One past the last; the extent if not given.
        stop: Option<i64>,
        /// At least 1.
        step: i64,
    },
    /// Blocks that repeat, as hyperslabs of HDF5 have them.
    Blocks {
        /// First index.
        start: i64,
        /// Distance of two blocks.
        stride: i64,
        /// Number of blocks.
        count: i64,
        /// Indices of a block.
        block: i64,
    },
}

/// The section that these picks select of an array of this shape, of which the last dimensions may be left out: all of them
/// is meant then. Without a shape, only what needs none is allowed.
///
/// # Errors
/// When there are too many, or one of them is not valid.
pub fn select(picks: &[Pick], shape: Option<&[u64]>) -> Result<Section, Error> {
    if let Some(shape) = shape.filter(|shape| picks.len() > shape.len()) {
        let (given, ndim, shape) = (picks.len(), shape.len(), tuple(shape));
        let text = format!("the section has {given} dimensions, but the array has {ndim} (shape {shape})");
        return Err(Error::invalid(text).with_hint("give at most one index or slice for each dimension"));
    }
    let extent = |dim: usize| shape.map(|shape| shape[dim]);
    let picked = picks.iter().enumerate().map(|(dim, &pick)| pick.triplet(dim, extent(dim)));
    let rest = shape.map_or(&[][..], |shape| &shape[picks.len()..]).iter().map(|&extent| Ok(Triplet::whole(extent)));
    Ok(Section { dims: picked.chain(rest).collect::<Result<_, Error>>()? })
}

impl Pick {
    fn triplet(self, dim: usize, extent: Option<u64>) -> Result<Triplet, Error> {
        let [start, stride, count, block] = match self {
            Pick::Index(index) => [from_end(index, extent), 1, 1, 1],
            Pick::Range { start, stop, step } => self.range(dim, (start, stop, step), extent)?,
            Pick::Blocks { start, stride, count, block } => [start, stride, count, block],
        };
        let number = |number: i64| u64::try_from(number).map_err(|_| self.is_negative(dim, extent));
        Ok(Triplet { start: number(start)?, stride: number(stride)?, count: number(count)?, block: number(block)? })
    }

    /// That a number is below zero which must not be.
    fn is_negative(self, dim: usize, extent: Option<u64>) -> Error {
        match (self, extent) {
            (Pick::Index(_), Some(extent)) => {
                let text = format!("index {self} is out of range for dimension {dim}, which has {extent} indices");
                Error::invalid(text).with_hint(format!("give an index of at least -{extent}"))
            }
            (Pick::Index(_), None) => {
                let text = format!("index {self} of dimension {dim} counts from the end, which is not known here");
                Error::invalid(text).with_hint("give an index of 0 or more")
            }
            _ => Error::invalid(format!("{self} in dimension {dim} of the section has a negative number"))
                .with_hint("give a start, stride, count and block of 0 or more"),
        }
    }

    fn range(
        self,
        dim: usize,
        (start, stop, step): (Option<i64>, Option<i64>, i64),
        extent: Option<u64>,
    ) -> Result<[i64; 4], Error> {
        let bounded = stop.is_some_and(|stop| stop >= 0) && start.unwrap_or(0) >= 0;
        if step < 1 {
            let text = format!("slice {self} in dimension {dim} of the section has a step of {step}, not of 1 or more");
            return Err(Error::invalid(text).with_hint("read with a positive step, and reverse what was read"));
        }
        if !bounded && extent.is_none() {
            let text =
                format!("slice {self} in dimension {dim} of the section needs the extent, which is not known here");
            return Err(Error::invalid(text).with_hint("give a stop, and bounds of 0 or more"));
        }
        // What is bounded by itself is not cut: that it reaches beyond the array is an error.
        let end = if bounded { i64::MAX } else { extent.map_or(i64::MAX, |extent| extent as i64) };
        let place = |bound: i64| if bound < 0 { (bound + end).max(0) } else { bound.min(end) };
        let (low, high) = (place(start.unwrap_or(0)), place(stop.unwrap_or(end)));
        let length = (high - low).max(0);
        Ok(match step {
            1 => [low, length.max(1), i64::from(length > 0), length.max(1)],
            step => [low, step, (length as u64).div_ceil(step as u64) as i64, 1],
        })
    }
}

/// As it is written in Python: `7`, `1:4`, `::-1`, `(0, 4, 2, 3)`.
impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |bound: Option<i64>| bound.map_or(String::new(), |bound| bound.to_string());
        match *self {
            Pick::Index(index) => write!(f, "{index}"),
            Pick::Range { start, stop, step: 1 } => write!(f, "{}:{}", bound(start), bound(stop)),
            Pick::Range { start, stop, step } => write!(f, "{}:{}:{step}", bound(start), bound(stop)),
            Pick::Blocks { start, stride, count, block } => write!(f, "({start}, {stride}, {count}, {block})"),
        }
    }
}

fn from_end(index: i64, extent: Option<u64>) -> i64 {
    extent.filter(|_| index < 0).map_or(index, |extent| index + extent as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>, step: i64) -> Pick {
        Pick::Range { start: start.into(), stop: stop.into(), step }
    }

    /// Element by element: what plain slices of a list select.
    #[test]
    fn ranges_select_what_slices_do() {
        for extent in 0..7_i64 {
            for start in [None].into_iter().chain((-8..9).map(Some)) {
                for stop in [None].into_iter().chain((-8..9).map(Some)) {
                    for step in 1..4 {
                        if stop.is_some_and(|stop| stop > extent) || start.is_some_and(|start| start > extent) {
                            continue;
                        }
                        let place = |bound: i64| if bound < 0 { (bound + extent).max(0) } else { bound };
                        let (low, high) = (place(start.unwrap_or(0)), place(stop.unwrap_or(extent)));
                        let expected: Vec<u64> = (low..high).step_by(step as usize).map(|index| index as u64).collect();
                        let section = select(&[range(start, stop, step)], Some(&[extent as u64])).unwrap();
                        let found: Vec<u64> = section.dims[0].set().iter().collect();
                        assert_eq!(found, expected, "{start:?}:{stop:?}:{step} of {extent}");
                    }
                }
            }
        }
    }

    #[test]
    fn picks_that_make_no_sense_say_so() {
        let said = |picks: &[Pick], shape: Option<&[u64]>| select(picks, shape).unwrap_err().message();
        let bounds = "slice : in dimension 0 of the section needs the extent, which is not known here";
        assert_eq!(said(&[range(None, None, 1)], None), bounds);
        assert!(
            said(&[range(0, 3, 0)], Some(&[4])).starts_with("slice 0:3:0 in dimension 0 of the section has a step")
        );
        assert!(said(&[range(None, None, -1)], Some(&[4])).starts_with("slice ::-1 in dimension 0"));
        assert_eq!(
            said(&[Pick::Index(-5)], Some(&[4])),
            "index -5 is out of range for dimension 0, which has 4 indices"
        );
        assert_eq!(
            said(&[Pick::Index(0), Pick::Index(0)], Some(&[4])),
            "the section has 2 dimensions, but the array has 1 (shape (4,))"
        );
    }

    #[test]
    fn dimensions_that_are_left_out_are_whole() {
        let section = select(&[Pick::Index(-1)], Some(&[4, 5])).unwrap();
        assert_eq!((section.shape(), section.dims[0].start), (vec![1, 5], 3));
        let blocks = Pick::Blocks { start: 1, stride: 4, count: 2, block: 3 };
        assert_eq!(select(&[blocks], None).unwrap().shape(), [6]);
        // What is bounded by itself is not cut, and is an error where the array is known.
        assert_eq!(select(&[range(2, 9, 1)], Some(&[4])).unwrap().shape(), [7]);
    }
}
