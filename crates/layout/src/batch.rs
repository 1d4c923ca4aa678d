//! Batches: runs of a list that follow no pattern, with the places of each in two views.
//!
//! A nest says where the elements of a regular piece lie, in a few loops. A list in random order has a nest for each run, and to
//! make, check and prepare one takes ten times as long as to move the element it has. So such a list is one batch: its runs
//! are found in both views by going through three lists at once, and whatever else there is in the piece is the same for all.

use crate::joined::{Joined, JoinedRun};
use crate::view::{View, stretches};
use crate::{Loop, Loops, Nest, Region};

/// All that a piece has, where one of its dimensions is a list and the others are one nest.
pub struct RunBatch<'a> {
    /// What each run has at each of its elements: addresses relative to those of the run.
    pub each: Nest,
    /// The runs.
    pub runs: Joined<'a>,
}

impl<'a> RunBatch<'a> {
    /// Of the elements of a region, at their addresses in views `a` and `b`; `None` where they are not such a piece, and
    /// [`nests`](crate::nests) says where they lie.
    pub fn new(region: &'a Region, a: &'a View, b: &'a View) -> Option<RunBatch<'a>> {
        let dims = || region.dims.iter().zip(a.axes.iter().zip(&b.axes));
        let list = dims().position(|(set, (a, b))| Joined::is_one(set, &a.0, &b.0))?;
        let mut each = Nest { a: a.base, b: b.base, loops: Loops::new() };
        for (d, (set, (a, b))) in dims().enumerate() {
            if d == list {
                continue;
            }
            if Joined::is_one(set, &a.0, &b.0) {
                return None;
            }
            let found = stretches(set, a, b);
            let [stretch] = found[..] else { return None };
            (each.a, each.b) = (each.a + stretch.a, each.b + stretch.b);
            each.loops.extend([stretch.outer, stretch.inner].into_iter().filter(|l| l.count != 1));
        }
        let (here, there) = (&a.axes[list], &b.axes[list]);
        let runs = Joined::new(&region.dims[list], (&here.0, here.1), (&there.0, there.1))?;
        Some(RunBatch { each: each.normalised(), runs })
    }

    /// One run as a nest.
    pub fn nest(each: &Nest, step: (i64, i64), run: JoinedRun) -> Nest {
        let mut loops = each.loops.clone();
        loops.push(Loop { count: run.count, a: step.0, b: step.1 });
        Nest { a: each.a + run.a, b: each.b + run.b, loops }.normalised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, ElementType, IndexSet, Kind, Layer, dense_strides, layers, nests};

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
                assert_eq!(Nest::visited(nests(&region, a, b)), expected);
                if let Some(RunBatch { each, runs }) = RunBatch::new(&region, a, b) {
                    let step = runs.step();
                    assert_eq!(Nest::visited(runs.map(|run| RunBatch::nest(&each, step, run))), expected);
                    batches += 1;
                }
            }
        }
        assert!(batches > 500, "{batches} batches");
    }

    /// A list at the end of a space whose bytes no address could count, beside a slot that has only it.
    #[test]
    fn lists_far_out_lie_near_in_their_slots() {
        let low = (1 << 62) - 3000;
        let set = IndexSet::of_runs((0..1000).map(|i| (low + 3 * i, 1 + i % 2))).unwrap();
        let element = ElementType::native(Kind::Complex128);
        let unit = Region { dims: [IndexSet::range(low, 1 << 62)].into_iter().collect() };
        let region = Region { dims: [set.clone()].into_iter().collect() };
        let (slot, packed) = (View::held(&unit, 8, &[16], element), View::held(&region, 0, &[16], element));
        let RunBatch { each, runs } = RunBatch::new(&region, &slot, &packed).unwrap();
        let step = runs.step();
        let expected = (0..).zip(set.iter()).map(|(at, index)| (8 + (index - low) as i64 * 16, at * 16));
        assert_eq!(Nest::visited(runs.map(|run| RunBatch::nest(&each, step, run))), expected.collect::<Vec<_>>());
    }
}
