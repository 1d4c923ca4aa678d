//! Batches: runs of a list that follow no pattern, with the places of each in two views.
//!
//! A nest says where the elements of a regular piece lie, in a few loops. A list in random order has a nest for each run, and to
//! make, check and prepare one takes ten times as long as to move the element it has. So such a list is one batch: its runs
//! are found in both views by going through three lists at once, and whatever else there is in the piece is the same for all.

use crate::counted::look;
use crate::index_set::{ScatteredRuns, Term};
use crate::ordered::Finger;
use crate::places::Places;
use crate::view::{Axis, View, stretches};
use crate::{IndexSet, Loop, Loops, Nest, Region};

/// Elements that lie at equal distances on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
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
enum Cursor<'a> {
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
        places: &'a Places,
        run: usize,
        stride: i64,
    },
    Other {
        axis: &'a Axis,
        stride: i64,
        finger: Finger,
    },
}

impl<'a> Cursor<'a> {
    /// Over the indices of a set.
    fn new(set: &IndexSet, (axis, stride): Strided<'a>) -> Cursor<'a> {
        match axis {
            Axis::Owned(held) => match held.as_range() {
                Some((low, _)) => Cursor::Affine { origin: -(low as i64) * stride, step: stride },
                None if held.id() == set.id() => Cursor::Packed { step: stride },
                None => Cursor::Other { axis, stride, finger: Finger::default() },
            },
            Axis::Selected(t, low) if t.block == 1 || t.count <= 1 => {
                let step = if t.count > 1 { t.stride as i64 } else { 1 };
                Cursor::Affine { origin: (t.start as i64 - *low as i64) * stride, step: step * stride }
            }
            Axis::Scattered(places) => Cursor::Listed { places, run: 0, stride },
            Axis::Selected(..) | Axis::Folded(..) | Axis::Listed(_) => {
                Cursor::Other { axis, stride, finger: Finger::default() }
            }
        }
    }

    /// The address of an index, before which the set has so many, and how many lie so from there on.
    #[inline(always)]
    fn at(&mut self, index: u64, before: u64) -> (i64, u64) {
        match self {
            Cursor::Affine { origin, step } => (*origin + index as i64 * *step, u64::MAX),
            Cursor::Packed { step } => (before as i64 * *step, u64::MAX),
            Cursor::Listed { places, run, stride } => {
                *run = places.run_from(*run, index);
                let (position, count) = places.inside(*run, index);
                (position as i64 * *stride, count)
            }
            Cursor::Other { axis, stride, finger } => {
                let (position, count) = axis.run_at(finger, index);
                (position * *stride, count)
            }
        }
    }
}

/// The runs of one dimension in two views.
pub struct Joined<'a> {
    runs: Runs<'a>,
    /// What is left of the current run, and how many indices lie before it.
    left: (u64, u64),
    before: u64,
    a: Cursor<'a>,
    b: Cursor<'a>,
    step: (i64, i64),
}

/// The runs of a set, each by its first index and one past the last.
enum Runs<'a> {
    Scattered(ScatteredRuns<'a>),
    Terms { terms: &'a [Term], run: u64 },
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);

    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u64)> {
        match self {
            Runs::Scattered(runs) => runs.next(),
            Runs::Terms { terms, run } => {
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
            Some(runs) => Runs::Scattered(runs),
            None => Runs::Terms { terms: set.terms(), run: 0 },
        };
        let (step, cursor) = (|(axis, stride): Strided| axis.slope() * stride, |side| Cursor::new(set, side));
        Some(Joined { runs, left: (0, 0), before: 0, a: cursor(a), b: cursor(b), step: (step(a), step(b)) })
    }

    fn is_one(set: &IndexSet, a: &Axis, b: &Axis) -> bool {
        set.scattered_runs().is_some() || [a, b].iter().any(|axis| matches!(axis, Axis::Scattered(_)))
    }

    /// Bytes between two elements of a run on each side.
    pub fn step(&self) -> (i64, i64) {
        self.step
    }
}

impl Iterator for Joined<'_> {
    type Item = Run;

    #[inline]
    fn next(&mut self) -> Option<Run> {
        look();
        if self.left.0 == self.left.1 {
            self.left = self.runs.next()?;
        }
        let (index, end) = self.left;
        let ((a, here), (b, there)) = (self.a.at(index, self.before), self.b.at(index, self.before));
        let count = (end - index).min(here).min(there);
        self.left.0 += count;
        self.before += count;
        Some(Run { a, b, count })
    }
}

/// All that a piece has, where one of its dimensions is a list and the others are one nest.
pub struct Batch<'a> {
    /// What each run has at each of its elements: addresses relative to those of the run.
    pub each: Nest,
    /// The runs.
    pub runs: Joined<'a>,
}

impl<'a> Batch<'a> {
    /// Of the elements of a region, at their addresses in views `a` and `b`; `None` where they are not such a piece, and
    /// [`nests`](crate::nests) says where they lie.
    pub fn new(region: &'a Region, a: &'a View, b: &'a View) -> Option<Batch<'a>> {
        let dims = || region.dims.iter().zip(a.axes.iter().zip(&b.axes));
        let is_list = |(set, (a, b)): &(&IndexSet, (&(Axis, i64), &(Axis, i64)))| Joined::is_one(set, &a.0, &b.0);
        let list = dims().position(|dim| is_list(&dim))?;
        let mut each = Nest { a: a.base, b: b.base, loops: Loops::new() };
        for (d, (set, (a, b))) in dims().enumerate() {
            if d == list {
                continue;
            }
            if is_list(&(set, (a, b))) {
                return None;
            }
            let found = stretches(set, a, b);
            let [stretch] = found[..] else { return None };
            (each.a, each.b) = (each.a + stretch.a, each.b + stretch.b);
            each.loops.extend([stretch.outer, stretch.inner].into_iter().filter(|l| l.count != 1));
        }
        let (here, there) = (&a.axes[list], &b.axes[list]);
        let runs = Joined::new(&region.dims[list], (&here.0, here.1), (&there.0, there.1))?;
        Some(Batch { each: each.normalised(), runs })
    }

    /// One run as a nest.
    pub fn nest(each: &Nest, step: (i64, i64), run: Run) -> Nest {
        let mut loops = each.loops.clone();
        loops.push(Loop { count: run.count, a: step.0, b: step.1 });
        Nest { a: each.a + run.a, b: each.b + run.b, loops }.normalised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElementType, Kind, Layer, dense_strides, layers, nests};

    /// All pairs of addresses, sorted.
    fn visited(nests: impl Iterator<Item = Nest>) -> Vec<(i64, i64)> {
        let mut out = Vec::new();
        for nest in nests {
            let counts: Vec<u64> = nest.loops.iter().map(|l| l.count).collect();
            for number in 0..nest.elements() {
                let at = crate::mesh::unravel(number, &counts);
                let sum = |f: fn(&Loop) -> i64| at.iter().zip(&nest.loops).map(|(&i, l)| i as i64 * f(l)).sum::<i64>();
                out.push((nest.a + sum(|l| l.a), nest.b + sum(|l| l.b)));
            }
        }
        out.sort_unstable();
        out
    }

    /// Lists in random order, alone, with rows around them, and cut: at the addresses that each view gives for each index.
    #[test]
    fn each_element_of_a_batch_lies_where_both_views_say() {
        let mut dice = fastrand::Rng::with_seed(31);
        let mut batches = 0;
        for _ in 0..300 {
            let mut indices: Vec<u64> = (0..dice.u64(100..900)).map(|i| i * 2 + dice.u64(0..2)).collect();
            if dice.bool() {
                dice.shuffle(&mut indices);
            }
            let runs = (0..).zip(&indices).map(|(at, &index)| (index, 1, at));
            let Layer { set, axis } = layers(runs, 1).unwrap().remove(0);
            let element = ElementType::native(Kind::Float64);
            let rows = IndexSet::range(3, 3 + dice.u64(1..4));
            let set = set.within(dice.u64(0..300), dice.u64(200..2000));
            let whole = |extent: u64| Axis::Owned(IndexSet::range(0, extent));
            let (user, file, slot);
            let region: Region;
            if dice.bool() {
                region = Region { dims: [set.clone()].into_iter().collect() };
                user = View { base: 16, axes: vec![(axis, -8)], element };
                file = View { base: 8, axes: vec![(whole(2000), 8)], element };
                slot = View::held(&region, 4, &[8], element);
            } else {
                let dims = if dice.bool() { [set.clone(), rows] } else { [rows, set.clone()] };
                let list = usize::from(dims[1] == set);
                region = Region { dims: dims.into_iter().collect() };
                let mut axes = [(whole(10), 40), (whole(10), 8)];
                axes[list] = (axis, 24);
                user = View { base: 16, axes: axes.into(), element };
                file = View { base: 8, axes: vec![(whole(2000), 80), (whole(2000), 8)], element };
                slot = View::held(&region, 4, &dense_strides(&region.shape(), &[1, 0], 8), element);
            }
            for (a, b) in [(&user, &file), (&slot, &user), (&file, &slot), (&slot, &slot)] {
                let mut expected = Vec::new();
                for number in 0..region.elements() {
                    let at = crate::mesh::unravel(number, &region.shape());
                    let index: Vec<u64> = at.iter().zip(&region.dims).map(|(&p, set)| set.select(p).unwrap()).collect();
                    expected.push((a.address(&index), b.address(&index)));
                }
                expected.sort_unstable();
                assert_eq!(visited(nests(&region, a, b)), expected);
                if let Some(Batch { each, runs }) = Batch::new(&region, a, b) {
                    let step = runs.step();
                    assert_eq!(visited(runs.map(|run| Batch::nest(&each, step, run))), expected);
                    batches += 1;
                }
            }
        }
        assert!(batches > 500, "{batches} batches");
    }
}
