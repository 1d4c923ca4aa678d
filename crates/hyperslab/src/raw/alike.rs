//! Arrays of one shape and type that lie one after another in a file: they are moved as one array with a dimension more.
//!
//! What each of hundreds of small arrays costs by itself, from the question who holds what to the message about it, takes
//! longer than its bytes do.

use super::FileArray;
use crate::holding::Part;
use hyperslab_layout::{Axis, ElementType, IndexSet, Listed, Term, Triplet, View};
use hyperslab_pack::Memory;
use hyperslab_plan::{Ask, Spread};
use hyperslab_walk::differ_only_in;
use hyperslab_world::{Exposed, Fault};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What ranks compare of it. In the memory of one rank arrays may lie in ways of their own, which only that rank knows.
const COMPARED: &str = "arrays taken together";

/// What a call moves, and this rank's parts of it.
pub(super) struct Moving {
    pub(super) asks: Vec<Ask>,
    pub(super) parts: Vec<Vec<Part>>,
}

impl Moving {
    /// What ranks compare of how so many arrays are taken; the first of what they compare. Which are alike follows from
    /// what all ranks know, so ranks differ in no more than whether they take them together.
    pub(super) fn compared(&self, arrays: usize) -> Vec<(String, String)> {
        let told = if self.asks.len() < arrays { format!("{arrays} as {}", self.asks.len()) } else { "none".into() };
        vec![(COMPARED.to_string(), told)]
    }
}

/// Arrays that follow each other in a file and are alike.
pub(super) struct Group {
    /// What is asked of the first of them.
    pub(super) first: Ask,
    /// Of each, the type of its elements in this rank's memory.
    pub(super) memory: Vec<ElementType>,
}

/// An array of a call, and its number in the file, in which arrays lie one after another.
pub(super) type Numbered<'a> = (usize, &'a FileArray);

/// How many arrays are alike and follow each other, run by run.
pub(super) fn runs(arrays: &[Numbered]) -> Vec<usize> {
    let follows = |&(before, other): &Numbered, &(number, one): &Numbered| {
        number == before + 1 && one.element == other.element && one.shape == other.shape
    };
    arrays.chunk_by(follows).map(<[Numbered]>::len).collect()
}

/// The arrays of a call. What is asked of each is made out of what is asked of the first one like it.
pub(super) struct Arrays<'a> {
    pub(super) names: &'a [&'a str],
    pub(super) groups: Vec<Group>,
    /// This rank's parts, array by array.
    pub(super) parts: Vec<Vec<Part>>,
}

impl Arrays<'_> {
    /// What moves when arrays that are alike are taken together, as far as this rank's parts allow that; `None` where no
    /// arrays are alike, or this rank holds them in different ways.
    fn together(&self) -> Option<Moving> {
        if self.groups.iter().all(|group| group.memory.len() == 1) {
            return None;
        }
        let (mut asks, mut parts) = (Vec::new(), Vec::new());
        let mut begin = 0;
        for Group { first, memory } in &self.groups {
            let end = begin + memory.len();
            if memory.len() == 1 {
                asks.push(first.clone());
                parts.push(self.parts[begin].clone());
            } else {
                asks.push(one_ask(first, memory.len() as u64, self.names[end - 1])?);
                parts.push(vec![one_part(&self.parts[begin..end])?]);
            }
            begin = end;
        }
        Some(Moving { asks, parts })
    }

    /// What moves array by array.
    fn apart(&self) -> Moving {
        let all = self.groups.iter().flat_map(|group| (0..).zip(&group.memory).map(move |one| (&group.first, one)));
        let asks = all.zip(self.names).map(|((first, (number, &memory)), name)| {
            let first = first.clone();
            Ask { name: (*name).to_string(), memory, stored: first.stored.after(number), ..first }
        });
        Moving { asks: asks.collect(), parts: self.parts.clone() }
    }
}

/// Carries out the call `what` with arrays taken together, or, where ranks differ in that alone, array by array, and then all
/// later calls that `apart` belongs to.
pub(super) fn carried_out<T>(
    what: &str,
    arrays: &Arrays,
    apart: &AtomicBool,
    mut carry_out: impl FnMut(Moving) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let together = if apart.load(Ordering::Relaxed) { None } else { arrays.together() };
    match carry_out(together.unwrap_or_else(|| arrays.apart())) {
        // All ranks are told the same, so that all begin again, or none; nothing has moved.
        Err(fault) if differ_only_in(&fault, what, COMPARED) => {
            apart.store(true, Ordering::Relaxed);
            carry_out(arrays.apart())
        }
        done => done,
    }
}

/// Arrays that follow each other, as one.
fn one_ask(first: &Ask, count: u64, last: &str) -> Option<Ask> {
    let spread = Spread::Regular(first.spread.regular()?.stacked(count)?);
    let mut one = Ask { spread, ..first.clone() };
    one.name = format!("{} to {last} ({count} arrays)", first.name);
    one.section.dims.insert(0, Triplet::whole(count));
    one.stored = one.stored.stacked(count);
    Some(one)
}

/// A rank's parts of arrays as its part of them as one, unless they lie in different ways.
fn one_part(parts: &[Vec<Part>]) -> Option<Part> {
    let each: Vec<&Exposed> = parts
        .iter()
        .map(|part| match &part[..] {
            [Part { exposed, region: None }] => Some(exposed),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (first, others) = each.split_first()?;
    if !others.iter().all(|other| lies_alike(&other.view, &first.view)) {
        return None;
    }
    let memory = Memory::together(&each.iter().map(|one| one.memory.clone()).collect::<Vec<_>>());
    let place = |one: &Exposed| one.memory.address() as i64 - memory.address() as i64 + one.view.base;
    let empty = first.view.axes.iter().any(|(axis, _)| matches!(axis, Axis::Held(set) if set.is_empty()));
    let places: Vec<i64> = each.iter().map(|one| if empty { 0 } else { place(one) }).collect();
    let (base, axis) = axis_of(&places, memory.holds(0, memory.bytes()));
    let axes = std::iter::once(axis).chain(first.view.axes.iter().cloned()).collect();
    let view = Arc::new(View { base, axes, element: first.view.element });
    Some(Part { exposed: Exposed { memory, view }, region: None })
}

/// Whether two parts differ only in where they begin. How far apart the elements of a dimension are does not matter where
/// there is only one.
fn lies_alike(one: &View, other: &View) -> bool {
    let same = |((axis, stride), (other, other_stride)): (&(Axis, i64), &(Axis, i64))| {
        let single = matches!(axis, Axis::Held(set) if set.len() <= 1);
        axis == other && (single || stride == other_stride)
    };
    one.element == other.element && one.axes.len() == other.axes.len() && one.axes.iter().zip(&other.axes).all(same)
}

/// Where the first of several arrays begins, and the dimension that counts them: at equal distances where they lie in one
/// memory, without anything of others between them, and otherwise as a list says, so that they are reached one by one.
fn axis_of(places: &[i64], one_memory: bool) -> (i64, (Axis, i64)) {
    let (first, count) = (places[0], places.len() as u64);
    let step = places.get(1).map_or(0, |second| second - first);
    if one_memory && places.windows(2).all(|pair| pair[1] - pair[0] == step) {
        return (first, (Axis::Held(IndexSet::range(0, count)), step));
    }
    let listed = |(number, &at): (usize, &i64)| {
        let term = Term { start: number as u64, len: 1, step: 1, count: 1 };
        Listed { term, at: at - first, at_step: 0 }
    };
    (first, (Axis::Listed(places.iter().enumerate().map(listed).collect()), 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{Dim, Distribution, Kind, Section, dense_strides, product};
    use hyperslab_plan::Stored;
    use hyperslab_world::FaultKind;

    const ELEMENT: ElementType = ElementType::native(Kind::Float32);

    fn ask(name: &str, shape: &[u64], offset: u64) -> Ask {
        let spread = Spread::Regular(Distribution::new(shape, &[2], &[Dim::Block, Dim::Whole], None).unwrap());
        let stored = Stored::in_file(shape, ELEMENT, "file", offset).ordered(vec![1, 0]);
        Ask { name: name.into(), section: Section::whole(shape), spread, memory: ELEMENT, stored }
    }

    /// Rank 1's part of an array, somewhere in a memory.
    fn part(ask: &Ask, memory: &Memory, base: i64, order: &[usize]) -> Part {
        let owned = ask.spread.regular().unwrap().owned(1);
        let view = View::held(&owned, base, &dense_strides(&owned.shape(), order, 4), ELEMENT);
        Part { exposed: Exposed { memory: memory.clone(), view: Arc::new(view) }, region: None }
    }

    #[test]
    fn only_arrays_that_follow_each_other_and_are_alike_are_taken_together() {
        let array = |shape: &[u64]| FileArray { name: "any".into(), shape: shape.to_vec(), element: ELEMENT };
        let (wide, high) = (array(&[3, 5]), array(&[5, 3]));
        let stored = FileArray { element: ElementType::native(Kind::Float64), ..high.clone() };
        let arrays = [
            (0, &wide),
            (1, &wide),
            (2, &high),
            (4, &high),
            (5, &high),
            (6, &high),
            (7, &stored),
            (8, &high),
            (7, &high),
        ];
        assert_eq!(runs(&arrays), [2, 1, 3, 1, 1, 1]);
        assert!(runs(&[]).is_empty());
        let one = one_ask(&ask("d", &[5, 3], 8), 3, "f").unwrap();
        assert_eq!(
            (&*one.name, &one.stored.shape[..], one.stored.order()),
            ("d to f (3 arrays)", &[3, 5, 3][..], &[0, 2, 1][..])
        );
        assert_eq!(one.stored_bytes(), 3 * 4 * 3 * 5);
    }

    #[test]
    fn arrays_that_move_by_themselves_lie_where_they_do() {
        let double = ElementType::native(Kind::Float64);
        let groups = vec![
            Group { first: ask("a", &[3, 5], 8), memory: vec![ELEMENT, double] },
            Group { first: ask("c", &[5, 3], 128), memory: vec![ELEMENT] },
        ];
        let asks = Arrays { names: &["a", "b", "c"], groups, parts: Vec::new() }.apart().asks;
        let other = Ask { memory: double, ..ask("b", &[3, 5], 68) };
        let own = [ask("a", &[3, 5], 8), other, ask("c", &[5, 3], 128)];
        assert_eq!(format!("{asks:?}"), format!("{own:?}"));
    }

    /// Each element of arrays taken together lies where it does in its own array, wherever the arrays are: in memories
    /// of their own, at equal distances, backwards, or twice the same.
    #[test]
    fn elements_lie_where_they_did() {
        let mut random = fastrand::Rng::with_seed(3);
        let whole = Memory::from_vec(vec![0; 4000]);
        for turn in 0..300 {
            let (count, shape) = (random.u64(2..6), [random.u64(1..7), random.u64(1..4)]);
            let first = ask("0", &shape, 0);
            let order: &[usize] = if random.bool() { &[0, 1] } else { &[1, 0] };
            let place = |i: u64, random: &mut fastrand::Rng| match turn % 3 {
                0 => 4 * random.i64(0..900),
                1 => 200 + 4 * i as i64,
                _ => 800 - 100 * i as i64,
            };
            let parts: Vec<Vec<Part>> =
                (0..count).map(|i| vec![part(&first, &whole, place(i, &mut random), order)]).collect();
            let groups = vec![Group { first, memory: vec![ELEMENT; count as usize] }];
            let arrays = Arrays { names: &["0", "1", "2", "3", "4", "5"][..count as usize], groups, parts };
            let together = arrays.together().expect("alike");
            let (one, ask) = (&together.parts[0][0].exposed, &together.asks[0]);
            let at = |one: &Exposed, index: &[u64]| one.memory.address() as i64 + one.view.address(index);
            let held = ask.spread.regular().unwrap().owned(1);
            let indices = |set: &IndexSet| (0..set.len()).filter_map(|i| set.select(i)).collect::<Vec<u64>>();
            for index in product(&held.dims.iter().map(indices).collect::<Vec<_>>()) {
                let own = &arrays.parts[index[0] as usize][0].exposed;
                assert_eq!(at(one, &index), at(own, &index[1..]), "{index:?} of {shape:?}");
            }
        }
    }

    #[test]
    fn arrays_of_which_one_lies_otherwise_stay_apart() {
        let first = ask("a", &[4, 3], 0);
        let whole = Memory::from_vec(vec![0; 200]);
        let arrays = |order: &[usize]| {
            let parts = vec![vec![part(&first, &whole, 0, &[0, 1])], vec![part(&first, &whole, 100, order)]];
            Arrays { names: &["a", "b"], groups: vec![Group { first: first.clone(), memory: vec![ELEMENT; 2] }], parts }
        };
        assert!(arrays(&[0, 1]).together().is_some());
        assert!(arrays(&[1, 0]).together().is_none());
        // All ranks are told that they differ in this, and only then begin again.
        let mut calls = Vec::new();
        let text =
            format!("write: the ranks ask for different things:\n  {COMPARED} is none on rank 0, but 2 as 1 on rank 1");
        let mut call = |fault: &str, apart: &AtomicBool| {
            carried_out("write", &arrays(&[0, 1]), apart, |moving| {
                calls.push((moving.asks.len(), moving.compared(2)));
                if moving.asks.len() == 1 { Err(Fault::new(FaultKind::Disagreement, fault)) } else { Ok(()) }
            })
        };
        let apart = AtomicBool::new(false);
        assert!(call(&text, &apart).is_ok());
        assert!(call(&text, &apart).is_ok(), "as the call before it");
        for other in ["", "\n  array 3 is 'c' on rank 0, but absent on rank 1", " and absent on rank 2"] {
            assert!(call(&format!("a call before: {text}{other}"), &AtomicBool::new(false)).is_err());
            assert!(other.is_empty() || call(&format!("{text}{other}"), &AtomicBool::new(false)).is_err());
        }
        let told = |what: &str| vec![(COMPARED.to_string(), what.to_string())];
        assert_eq!(calls[..3], [(1, told("2 as 1")), (2, told("none")), (2, told("none"))]);
        assert!(calls[3..].iter().all(|call| call.0 == 1));
    }
}
