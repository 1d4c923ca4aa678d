//! A rank's memories: guards, strides of either sign, arrays woven into each other, and what must be in them.

use super::oracle;
use super::pieces::{Known, Piece};
use super::random::any_order;
use hyperslab_layout::{Axis, ElementType, IndexSet, Region, View, layers, nests, product};
use hyperslab_pack::{Memory, fill};
use hyperslab_plan::{Mine, Transfer};
use hyperslab_world::Exposed;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What no element may overwrite.
const GUARD: u8 = 0xEE;
/// How often one index may be listed.
const LAYERS_MAX: usize = 64;

/// All that one rank brings to a transfer.
pub(crate) struct Part {
    /// Its arrays, by the numbers under which they are exposed: the first piece of array i under i, further ones behind.
    pub(crate) users: Vec<Exposed>,
    /// Its pieces of arrays that have no closed form.
    pub(crate) mine: BTreeMap<u32, Vec<Mine>>,
    /// Memories, and what they hold or shall hold.
    expected: Vec<(Memory, Vec<u8>)>,
}

/// A piece laid out in some memory.
struct Placed<'a> {
    array: usize,
    piece: &'a Piece,
    memory: usize,
    base: i64,
    strides: Vec<i64>,
}

/// Random places for a box of this shape: padded, with dimensions in any order and either direction. Returns where it
/// begins, its strides, and how many bytes it needs.
fn any_places(random: &mut fastrand::Rng, shape: &[u64], pitch: i64) -> (i64, Vec<i64>, i64) {
    let (mut base, mut step, mut strides) = (0, pitch, vec![0; shape.len()]);
    for d in any_order(random, shape.len()) {
        let (low, high) = if random.bool() { (0, 0) } else { (random.i64(0..3), random.i64(0..3)) };
        let extent = low + shape[d] as i64 + high;
        let flip = random.u8(0..4) == 0 && extent > 0;
        base += if flip { (extent - 1 - low) * step } else { low * step };
        strides[d] = if flip { -step } else { step };
        step *= extent.max(1);
    }
    (base.max(0), strides, base.max(0) + step)
}

/// Puts some pieces into one memory, element beside element. Returns its size.
fn weave<'a>(
    random: &mut fastrand::Rng,
    (memory, pieces): (usize, Vec<(usize, &'a Piece)>),
    transfer: &Transfer,
    placed: &mut Vec<Placed<'a>>,
) -> usize {
    let origin = random.i64(0..3) * 4;
    let mut pitch = 0;
    let offsets: Vec<i64> = pieces
        .iter()
        .map(|(array, _)| {
            let size = transfer.asks[*array].memory.bytes() as i64;
            pitch += size + if random.bool() { 0 } else { random.i64(0..2) * size };
            pitch - size
        })
        .collect();
    let mut bytes = 0;
    for ((array, piece), offset) in pieces.into_iter().zip(offsets) {
        let (base, strides, needs) = any_places(random, &piece.shape(), pitch);
        placed.push(Placed { array, piece, memory, base: origin + offset + base, strides });
        bytes = bytes.max(origin + needs + pitch);
    }
    bytes as usize
}

impl Part {
    /// Gives all elements of pieces that no distribution describes this value.
    pub(crate) fn fill_with(&mut self, value: &[u8]) {
        for Mine { exposed, region } in self.mine.values().flatten() {
            let Exposed { memory, view } = &self.users[*exposed as usize];
            nests(region, view, view).for_each(|nest| fill(&nest, memory, value).expect("it is there"));
        }
    }

    /// Lays pieces (of each array) out and fills memories with guards, and with elements when `filled`. `value` is that
    /// of an element of an array; its bytes may also say whether the array has imaginary parts.
    pub(crate) fn random(
        random: &mut fastrand::Rng,
        transfer: &Transfer,
        pieces: &[Vec<Piece>],
        value: impl Fn(usize, &[u64]) -> u64,
        imaginary: impl Fn(usize) -> bool,
        filled: bool,
    ) -> Part {
        let mut all: Vec<(usize, &Piece)> = pieces
            .iter()
            .enumerate()
            .flat_map(|(array, pieces)| pieces.iter().map(move |piece| (array, piece)))
            .collect();
        random.shuffle(&mut all);
        let woven = if random.bool() { 1 } else { random.usize(0..=all.len()).max(1) };
        let (mut placed, mut expected) = (Vec::new(), Vec::new());
        while !all.is_empty() {
            let together = all.split_off(all.len() - woven.min(all.len()));
            let size = weave(random, (expected.len(), together), transfer, &mut placed);
            expected.push(vec![GUARD; size]);
        }
        let plain = expected.clone();
        for Placed { array, piece, memory, base, strides } in &placed {
            let ask = &transfer.asks[*array];
            let selected: Vec<Vec<u64>> = ask.section.dims.iter().map(|&t| oracle::selected(t)).collect();
            for place in oracle::indices(&piece.shape()) {
                let position = place.iter().zip(&piece.order).map(|(&p, order)| order[p as usize]);
                let index: Vec<u64> = position.zip(&selected).map(|(p, all)| all[p as usize]).collect();
                let at = (base + place.iter().zip(strides).map(|(&p, &s)| p as i64 * s).sum::<i64>()) as usize;
                let bytes = oracle::encode(value(*array, &index), ask.memory, imaginary(*array));
                expected[*memory][at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        let contents = if filled { expected.clone() } else { plain };
        let memories: Vec<Memory> = contents.into_iter().map(Memory::from_vec).collect();
        let (users, mine) = expose(random, transfer, &placed, &memories);
        Part { users, mine, expected: memories.into_iter().zip(expected).collect() }
    }

    /// Whether every byte is as it shall be, guards included.
    pub(crate) fn check(&self, what: &str) {
        for (i, (memory, expected)) in self.expected.iter().enumerate() {
            let found = memory.to_vec(0, memory.bytes());
            assert!(found == *expected, "{what}, memory {i}: found {found:02x?}\nexpected {expected:02x?}");
        }
    }
}

/// Views and regions of pieces, as the plan knows them.
fn known(random: &mut fastrand::Rng, placed: &Placed, element: ElementType) -> Vec<(View, Option<Region>)> {
    let Placed { piece, base, strides, .. } = placed;
    match &piece.known {
        Known::Regular(region) => vec![(View::held(region, *base, strides, element), None)],
        Known::Box => {
            let bounds = piece.order.iter().map(|o| o.first().zip(o.last()).map_or((0, 0), |(&a, &b)| (a, b + 1)));
            let region = Region { dims: bounds.map(|(low, high)| IndexSet::range(low, high)).collect() };
            vec![(View::held(&region, *base, strides, element), Some(region))]
        }
        Known::Nest(set) => {
            let (all, stride) = (set.len(), strides[0]);
            let region = Region { dims: [set.clone()].into_iter().collect() };
            // The same places, perhaps as those of several dimensions.
            let rows: Vec<u64> = (1..=all).filter(|rows| all.is_multiple_of(*rows)).collect();
            let axis = match rows.get(random.usize(0..rows.len() + 1)) {
                Some(rows) => {
                    let columns = all / rows;
                    (Axis::Folded(set.clone(), [(*rows, columns as i64 * stride), (columns, stride)].into()), 1)
                }
                None => (Axis::Owned(set.clone()), stride),
            };
            vec![(View { base: *base, axes: vec![axis], element }, Some(region))]
        }
        Known::List => {
            let per_dim: Vec<_> =
                piece.order.iter().map(|order| layers(runs(random, order), LAYERS_MAX).expect("few layers")).collect();
            let made = product(&per_dim).map(|layers| {
                let region = Region { dims: layers.iter().map(|layer| layer.set.clone()).collect() };
                let axes = layers.into_iter().map(|layer| layer.axis).zip(strides.iter().copied()).collect();
                (View { base: *base, axes, element }, Some(region))
            });
            made.collect()
        }
    }
}

/// The runs (first index, length, position) of a sequence of indices, cut here and there.
fn runs(random: &mut fastrand::Rng, order: &[u64]) -> Vec<(u64, u64, u64)> {
    let mut runs: Vec<(u64, u64, u64)> = Vec::new();
    for (at, &index) in order.iter().enumerate() {
        match runs.last_mut() {
            Some((start, len, _)) if *start + *len == index && random.u8(0..4) > 0 => *len += 1,
            _ => runs.push((index, 1, at as u64)),
        }
    }
    runs
}

fn expose(
    random: &mut fastrand::Rng,
    transfer: &Transfer,
    placed: &[Placed],
    memories: &[Memory],
) -> (Vec<Exposed>, BTreeMap<u32, Vec<Mine>>) {
    let view = |element| Arc::new(View { base: 0, axes: Vec::new(), element });
    let nothing = |element| Exposed { memory: Memory::from_vec(Vec::new()), view: view(element) };
    let mut users: Vec<Exposed> = transfer.asks.iter().map(|ask| nothing(ask.memory)).collect();
    let mut mine = BTreeMap::new();
    for (array, ask) in transfer.asks.iter().enumerate() {
        let mut pieces = Vec::new();
        let of_array = placed.iter().filter(|placed| placed.array == array);
        let views: Vec<_> =
            of_array.flat_map(|p| known(random, p, ask.memory).into_iter().map(|(v, r)| (p.memory, v, r))).collect();
        for (i, (memory, view, region)) in views.into_iter().enumerate() {
            let exposed = Exposed { memory: memories[memory].clone(), view: Arc::new(view) };
            let number = if i == 0 { array } else { users.len() };
            if i == 0 {
                users[array] = exposed
            } else {
                users.push(exposed)
            }
            pieces.extend(region.map(|region| Mine { exposed: number as u32, region }));
        }
        if ask.spread.regular().is_none() {
            mine.insert(array as u32, pieces);
        }
    }
    (users, mine)
}
