//! The runs of one dimension in two views, where they follow no pattern: three lists that are gone through at once.

use crate::IndexSet;
use crate::axis::Axis;
use crate::counted::look;
use crate::index_set::{ScatteredRuns, Term};
use crate::ordered::Finger;
use crate::places::ListedPlaces;

/// Elements that lie at equal distances on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinedRun {
    /// The first address on side `a` \[B\].
    pub a: i64,
    /// The first address on side `b` \[B\].
    pub b: i64,
    /// How many there are.
    pub count: u64,
}

/// A dimension and its bytes from one position to the next.
type Strided<'a> = (&'a Axis, i64);

/// Where rising indices lie on one side, each found from the place of the one before it.
enum AxisCursor<'a> {
    /// At equal distances from where the index 0 would lie.
    Affine {
        origin: i64,
        step: i64,
    },
    /// One after another.
    Packed {
        step: i64,
    },
    /// As a list says.
    Listed {
        places: &'a ListedPlaces,
        run: usize,
        stride: i64,
    },
    Other {
        axis: &'a Axis,
        stride: i64,
        finger: Finger,
    },
}

impl<'a> AxisCursor<'a> {
    /// Over the indices of a set.
    fn new(set: &IndexSet, (axis, stride): Strided<'a>) -> AxisCursor<'a> {
        match axis {
            Axis::Owned(held) => match held.as_range() {
                Some((low, _)) => {
                    AxisCursor::Affine { origin: (low as i64).wrapping_neg().wrapping_mul(stride), step: stride }
                }
                None if held.id() == set.id() => AxisCursor::Packed { step: stride },
                None => AxisCursor::Other { axis, stride, finger: Finger::default() },
            },
            Axis::Selected(t, low) if t.block == 1 || t.count <= 1 => {
                let step = if t.count > 1 { t.stride as i64 } else { 1 };
                AxisCursor::Affine { origin: (t.start as i64 - *low as i64).wrapping_mul(stride), step: step * stride }
            }
            Axis::Scattered(places) => AxisCursor::Listed { places, run: 0, stride },
            Axis::Selected(..) | Axis::Folded(..) | Axis::Listed(_) => {
                AxisCursor::Other { axis, stride, finger: Finger::default() }
            }
        }
    }

    /// The address of an index, before which the set has so many, and how many lie so from there on.
    #[inline(always)]
    fn at(&mut self, index: u64, before: u64) -> (i64, u64) {
        match self {
            // What is far away on the way comes back: only the sum has to be an address.
            AxisCursor::Affine { origin, step } => (origin.wrapping_add((index as i64).wrapping_mul(*step)), u64::MAX),
            AxisCursor::Packed { step } => (before as i64 * *step, u64::MAX),
            AxisCursor::Listed { places, run, stride } => {
                *run = places.run_from(*run, index);
                let (position, count) = places.inside(*run, index);
                (position as i64 * *stride, count)
            }
            AxisCursor::Other { axis, stride, finger } => {
                let (position, count) = axis.run_at(finger, index);
                (position * *stride, count)
            }
        }
    }
}

/// The runs of one dimension in two views.
pub struct Joined<'a> {
    runs: SetRuns<'a>,
    /// What is left of the current run, and how many indices lie before it.
    left: (u64, u64),
    before: u64,
    a: AxisCursor<'a>,
    b: AxisCursor<'a>,
    step: (i64, i64),
}

/// The runs of a set, each by its first index and one past the last.
enum SetRuns<'a> {
    Scattered(ScatteredRuns<'a>),
    Terms { terms: &'a [Term], run: u64 },
}

impl Iterator for SetRuns<'_> {
    type Item = (u64, u64);

    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u64)> {
        match self {
            SetRuns::Scattered(runs) => runs.next(),
            SetRuns::Terms { terms, run } => {
                let term = terms.first()?;
                let start = term.start + *run * term.step;
                *run += 1;
                if *run == term.count {
                    (*terms, *run) = (&terms[1..], 0);
                }
                Some((start, start + term.len))
            }
        }
    }
}

impl<'a> Joined<'a> {
    /// Of a set whose runs follow no pattern, or whose places in a view do not.
    pub(crate) fn new(set: &'a IndexSet, a: Strided<'a>, b: Strided<'a>) -> Option<Joined<'a>> {
        if !Joined::is_one(set, a.0, b.0) {
            return None;
        }
        let runs = match set.scattered_runs() {
            Some(runs) => SetRuns::Scattered(runs),
            None => SetRuns::Terms { terms: set.terms(), run: 0 },
        };
        let (step, cursor) = (|(axis, stride): Strided| axis.slope() * stride, |side| AxisCursor::new(set, side));
        Some(Joined { runs, left: (0, 0), before: 0, a: cursor(a), b: cursor(b), step: (step(a), step(b)) })
    }

    pub(crate) fn is_one(set: &IndexSet, a: &Axis, b: &Axis) -> bool {
        set.scattered_runs().is_some() || [a, b].iter().any(|axis| matches!(axis, Axis::Scattered(_)))
    }

    /// Bytes between two elements of a run on each side.
    pub fn step(&self) -> (i64, i64) {
        self.step
    }
}

impl Iterator for Joined<'_> {
    type Item = JoinedRun;

    #[inline]
    fn next(&mut self) -> Option<JoinedRun> {
        look();
        if self.left.0 == self.left.1 {
            self.left = self.runs.next()?;
        }
        let (index, end) = self.left;
        let ((a, here), (b, there)) = (self.a.at(index, self.before), self.b.at(index, self.before));
        let count = (end - index).min(here).min(there);
        self.left.0 += count;
        self.before += count;
        Some(JoinedRun { a, b, count })
    }
}
