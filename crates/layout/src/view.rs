//! Views: where an element of an index space lies in a memory or a stored object.
//!
//! A user's array with a halo, a buffer slot, a row-major file and one Zarr chunk are all the same thing: each
//! dimension maps an index to a position, and positions times strides add up to an address. So every movement of
//! data in this project is a walk over one region in two views.

use crate::axis::Axis;
use crate::joined::{Joined, JoinedRun};
use crate::ordered::Finger;
use crate::{ElementType, IndexSet, Loop, Loops, Nest, Region};

/// Where the elements of an index space lie, as byte addresses relative to the base of a memory or object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Address of position 0 in every dimension \[B\].
    pub base: i64,
    /// Per dimension, the map to a position and the bytes between two positions.
    pub axes: Vec<(Axis, i64)>,
    /// What lies there.
    pub element: ElementType,
}

impl View {
    /// A part that holds exactly `region`, with these byte strides.
    pub fn held(region: &Region, base: i64, strides: &[i64], element: ElementType) -> View {
        let axes = region.dims.iter().zip(strides).map(|(set, &stride)| (Axis::Owned(set.clone()), stride)).collect();
        View { base, axes, element }
    }

    /// Address of one element \[B\].
    pub fn address(&self, index: &[u64]) -> i64 {
        self.base
            + self
                .axes
                .iter()
                .zip(index)
                .map(|((axis, stride), &i)| axis.position(&mut Finger::default(), i) * stride)
                .sum::<i64>()
    }
}

/// Byte strides of a dense box of this shape whose dimensions vary in `order` (the last one named is the fastest).
pub fn dense_strides(shape: &[u64], order: &[usize], bytes: u64) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut step = bytes as i64;
    for &d in order.iter().rev() {
        strides[d] = step;
        step *= shape[d].max(1) as i64;
    }
    strides
}

/// Two loops over a part of one dimension, with the addresses at which they start on each side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) a: i64,
    pub(crate) b: i64,
    pub(crate) outer: Loop,
    pub(crate) inner: Loop,
}

pub(crate) fn stretches(set: &IndexSet, (a, sa): &(Axis, i64), (b, sb): &(Axis, i64)) -> Vec<Stretch> {
    if let Some(joined) = Joined::new(set, (a, *sa), (b, *sb)) {
        let (once, step) = (Loop { count: 1, a: 0, b: 0 }, joined.step());
        let stretch =
            |JoinedRun { a, b, count }| Stretch { a, b, outer: once, inner: Loop { count, a: step.0, b: step.1 } };
        return joined.map(stretch).collect();
    }
    let cut = b.cut(a.cut(set.terms().into()));
    let mut out = Vec::with_capacity(cut.len());
    let (mut of_a, mut of_b) = (Finger::default(), Finger::default());
    for term in cut {
        let inner = Loop { count: term.len, a: a.slope() * sa, b: b.slope() * sb };
        let strides = (term.count > 1).then(|| Some((a.stride(&mut of_a, &term)?, b.stride(&mut of_b, &term)?)));
        let mut at = |start: u64, outer: Loop| {
            let (a, b) = (a.position(&mut of_a, start) * sa, b.position(&mut of_b, start) * sb);
            Stretch { a, b, outer, inner }
        };
        if term.count == 1 {
            out.push(at(term.start, Loop { count: 1, a: 0, b: 0 }));
        } else if let Some(Some((step_a, step_b))) = strides {
            out.push(at(term.start, Loop { count: term.count, a: step_a * sa, b: step_b * sb }));
        } else {
            let single = Loop { count: 1, a: 0, b: 0 };
            out.extend((0..term.count).map(|i| at(term.start + i * term.step, single)));
        }
    }
    out
}

/// The loop nests that visit every element of `region` once, at its address in view `a` and in view `b`.
///
/// Regular regions give one nest; each partial block or interleaved pattern of a dimension multiplies their number
/// by a few. The region must lie inside both views.
pub fn nests(region: &Region, a: &View, b: &View) -> impl Iterator<Item = Nest> {
    let (base_a, base_b) = (a.base, b.base);
    let per_dim: Vec<Vec<Stretch>> =
        region.dims.iter().zip(a.axes.iter().zip(&b.axes)).map(|(set, (a, b))| stretches(set, a, b)).collect();
    let total: usize = if region.is_empty() { 0 } else { per_dim.iter().map(Vec::len).product() };
    (0..total).map(move |mut number| {
        let mut nest = Nest { a: base_a, b: base_b, loops: Loops::new() };
        for list in per_dim.iter().rev() {
            let stretch = list[number % list.len()];
            number /= list.len();
            nest.a += stretch.a;
            nest.b += stretch.b;
            nest.loops.extend([stretch.inner, stretch.outer].into_iter().filter(|l| l.count != 1));
        }
        nest.loops.reverse();
        nest.normalised()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dim, Distribution, Kind, Section, Triplet};

    fn visited(region: &Region, a: &View, b: &View) -> Vec<(i64, i64)> {
        Nest::visited(nests(region, a, b))
    }

    fn random_dim(random: &mut fastrand::Rng, extent: u64, ranks: u64) -> Dim {
        match random.u8(0..4) {
            0 => Dim::Block,
            1 => Dim::BlockOf(extent.div_ceil(ranks).max(1) + random.u64(0..3)),
            2 => Dim::Cyclic(1),
            _ => Dim::Cyclic(random.u64(1..5)),
        }
    }

    fn random_triplet(random: &mut fastrand::Rng) -> Triplet {
        let block = random.u64(1..4);
        Triplet { start: random.u64(0..4), stride: block + random.u64(0..4), count: random.u64(0..6), block }
    }

    #[test]
    fn nests_visit_what_the_addresses_say() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..3000 {
            let ndim = random.usize(0..4);
            let section = Section { dims: (0..ndim).map(|_| random_triplet(&mut random)).collect() };
            let shape = section.shape();
            let mesh: Vec<u64> = (0..ndim).map(|_| random.u64(1..4)).collect();
            let mut part = || {
                let dims: Vec<Dim> = (0..ndim).map(|d| random_dim(&mut random, shape[d], mesh[d])).collect();
                let d = Distribution::new(&shape, &mesh, &dims).unwrap();
                d.owned(random.u32(0..d.ranks() as u32))
            };
            let (mine, theirs) = (part(), part());
            let element = ElementType::native(Kind::Float32);
            let order: Vec<usize> = (0..ndim).rev().collect();
            let a = View::held(&mine, 40, &dense_strides(&mine.shape(), &order, 4), element);
            let natural: Vec<usize> = (0..ndim).collect();
            let b = View::held(&theirs, -8, &dense_strides(&theirs.shape(), &natural, 4), element);
            let file = View {
                base: 24,
                axes: section.dims.iter().zip([5000, 200, 4]).map(|(&t, s)| (Axis::Selected(t, 1), s)).collect(),
                element,
            };
            let both = mine.intersect(&theirs);
            for (region, x, y) in [(&both, &a, &b), (&mine, &a, &file), (&both, &file, &b)] {
                let mut expected = Vec::new();
                let counts = region.shape();
                for number in 0..region.elements() {
                    let at = crate::mesh::unravel(number, &counts);
                    let index: Vec<u64> =
                        at.iter().zip(&region.dims).map(|(&position, set)| set.select(position).unwrap()).collect();
                    expected.push((x.address(&index), y.address(&index)));
                }
                expected.sort_unstable();
                assert_eq!(visited(region, x, y), expected, "{region:?}");
            }
        }
    }

    /// A box of a file of one dimension, or a part of it, in an array of several dimensions: each element where plain loops
    /// say, whatever the two have to do with each other.
    #[test]
    fn boxes_of_files_lie_in_arrays_of_several_dimensions() {
        let mut random = fastrand::Rng::with_seed(29);
        for _ in 0..3000 {
            let (mut span, mut levels, mut total) = (random.u64(1..5), Vec::new(), 1);
            let len = span;
            for _ in 0..random.usize(0..4) {
                let (count, step) = (random.u64(1..4), span + random.u64(0..3));
                span += (count - 1) * step;
                total *= count;
                levels.insert(0, (count, step));
            }
            let set = IndexSet::nested(random.u64(0..9), len, &levels).unwrap();
            total *= len;
            // Dimensions of the memory: factors of the whole, whatever the levels of the file are.
            let mut dims = Vec::new();
            let mut rest = total;
            while rest > 1 {
                let factor = (2..=rest).filter(|f| rest.is_multiple_of(*f)).nth(random.usize(0..2) % 2).unwrap_or(rest);
                dims.push((factor, random.i64(-50..50)));
                rest /= factor;
            }
            let element = ElementType::native(Kind::UInt8);
            let memory = View { base: 7, axes: vec![(Axis::Folded(set.clone(), dims.clone().into()), 1)], element };
            let file = View { base: 3, axes: vec![(Axis::Selected(Triplet::whole(1 << 20), 2), 1)], element };
            let (low, high) = set.hull().unwrap();
            let part = set.within(random.u64(low..high), random.u64(low..high + 1));
            let region = Region { dims: [part.clone()].into_iter().collect() };
            let place = |position: u64| {
                let (mut rest, mut at) = (position, 7);
                for &(count, step) in dims.iter().rev() {
                    at += (rest % count) as i64 * step;
                    rest /= count;
                }
                at
            };
            let mut expected: Vec<(i64, i64)> =
                part.iter().map(|index| (place(set.below(index)), index as i64 + 1)).collect();
            expected.sort_unstable();
            assert_eq!(visited(&region, &memory, &file), expected, "{set:?} as {dims:?}");
            let packed = View { base: 7, axes: vec![(Axis::Owned(set.clone()), 2)], element };
            let place = |index: u64| (2 * set.below(index) as i64 + 7, index as i64 + 1);
            assert_eq!(visited(&region, &packed, &file), part.iter().map(place).collect::<Vec<_>>());
            let slot = View { base: 0, axes: vec![(Axis::Owned(part.clone()), 1)], element };
            let place = |index: u64| (2 * set.below(index) as i64 + 7, part.below(index) as i64);
            assert_eq!(visited(&region, &packed, &slot), part.iter().map(place).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_block_of_a_row_major_file_is_one_nest() {
        let shape = [512, 512, 256];
        let d = Distribution::new(&shape, &[2, 2, 2], &[const { Dim::Block }; 3]).unwrap();
        let mine = d.owned(5);
        let memory =
            View::held(&mine, 0, &dense_strides(&mine.shape(), &[0, 1, 2], 8), ElementType::native(Kind::Float64));
        let axes = dense_strides(&shape, &[0, 1, 2], 8);
        let file = View {
            base: 0,
            axes: shape.iter().zip(axes).map(|(&extent, s)| (Axis::Selected(Triplet::whole(extent), 0), s)).collect(),
            element: memory.element,
        };
        let all: Vec<Nest> = nests(&mine, &memory, &file).collect();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].loops.len(), 3);
        assert_eq!(all[0].loops[2], Loop { count: 128, a: 8, b: 8 });
    }
}
