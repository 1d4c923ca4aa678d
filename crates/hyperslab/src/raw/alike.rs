//! Arrays of one shape and type that lie one after another in a file: they are moved as one array with a dimension more.
//!
//! What each of hundreds of small arrays costs by itself, from the question who holds what to the message about it, takes
//! longer than its bytes do.

use super::FileArray;
use crate::course::Compiled;
use crate::holding::{Part, number_parts};
use crate::planning::laid;
use hyperslab_layout::{Axis, ElementType, IndexSet, Listed, Policies, Term, Triplet, View};
use hyperslab_pack::Memory;
use hyperslab_plan::{Ask, Direction, Laid, Spread, Transfer};
use hyperslab_walk::Ways;
use hyperslab_world::Exposed;
use std::sync::{Arc, OnceLock};

/// That a rank holds arrays that are alike in different ways, and so cannot move them as one. In its memory arrays may lie in
/// ways of their own, which only that rank knows; which arrays are alike follows from what all ranks know.
const TOGETHER: Ways = 1;

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

/// What is asked of the arrays of a call: of each, it is made out of what is asked of the first one like it.
struct Alike {
    names: Vec<String>,
    groups: Vec<Group>,
    /// What is asked when those that are alike are taken together, if any are.
    by_group: Option<Vec<Ask>>,
}

impl Alike {
    fn new(names: &[&str], groups: Vec<Group>) -> Alike {
        let names = names.iter().map(ToString::to_string).collect();
        let mut asked = Alike { names, groups, by_group: None };
        if asked.groups.iter().any(|group| group.memory.len() > 1) {
            asked.by_group = asked.each_group(|first, begin, end| match end - begin {
                1 => Some(first.clone()),
                count => one_ask(first, count as u64, &asked.names[end - 1]),
            });
        }
        asked
    }

    /// Makes something of each group: of what is asked of the first of its arrays, and of their numbers in the call.
    fn each_group<T>(&self, make: impl Fn(&Ask, usize, usize) -> Option<T>) -> Option<Vec<T>> {
        let mut begin = 0;
        let each = self.groups.iter().map(|Group { first, memory }| {
            let end = begin + memory.len();
            make(first, std::mem::replace(&mut begin, end), end)
        });
        each.collect()
    }

    /// What is asked when some rank cannot do that.
    fn taken(&self, cannot: Ways) -> Vec<Ask> {
        self.by_group.clone().filter(|_| cannot & TOGETHER == 0).unwrap_or_else(|| self.apart())
    }

    /// What is asked array by array.
    fn apart(&self) -> Vec<Ask> {
        let all = self.groups.iter().flat_map(|group| (0..).zip(&group.memory).map(move |one| (&group.first, one)));
        let asks = all.zip(&self.names).map(|((first, (number, &memory)), name)| {
            let first = first.clone();
            Ask { name: name.clone(), memory, stored: first.stored.after(number), ..first }
        });
        asks.collect()
    }
}

/// The transfer of a call, which is known once all ranks have said what they cannot do. It has nothing of anybody's memory.
pub(super) struct Moving {
    alike: Alike,
    direction: Direction,
    ranks: u32,
    policies: Policies,
    transfer: OnceLock<Arc<Transfer>>,
}

impl Moving {
    /// The transfer, now that all know what some rank cannot do.
    pub(super) fn transfer(&self, cannot: Ways) -> &Arc<Transfer> {
        self.transfer.get_or_init(|| {
            let &Moving { direction, ranks, policies, .. } = self;
            Arc::new(Transfer { direction, asks: self.alike.taken(cannot), ranks, policies })
        })
    }
}

/// A call that moves arrays of a file, and what this rank has of them.
pub(super) struct FileCall {
    pub(super) moving: Arc<Moving>,
    /// This rank's parts, array by array.
    parts: Vec<Vec<Part>>,
    /// The same, group by group, if it holds those that are alike in the same way.
    by_group: Option<Vec<Vec<Part>>>,
}

impl FileCall {
    /// A call by so many ranks that moves arrays with these names.
    pub(super) fn new(
        names: &[&str],
        (groups, parts): (Vec<Group>, Vec<Vec<Part>>),
        direction: Direction,
        (ranks, policies): (u32, Policies),
    ) -> FileCall {
        let asked = Alike::new(names, groups);
        let by_group = asked.by_group.as_ref().and_then(|_| {
            asked.each_group(|_, begin, end| match &parts[begin..end] {
                [one] => Some(one.clone()),
                several => Some(vec![one_part(several)?]),
            })
        });
        let moving = Arc::new(Moving { alike: asked, direction, ranks, policies, transfer: OnceLock::new() });
        FileCall { moving, parts, by_group }
    }

    /// What this rank cannot do.
    pub(super) fn cannot(&self) -> Ways {
        let alone = self.moving.alike.by_group.is_some() && self.by_group.is_none();
        if alone { TOGETHER } else { 0 }
    }

    /// This rank's parts, when some rank cannot do that.
    fn taken(&self, cannot: Ways) -> Vec<Vec<Part>> {
        self.by_group.clone().filter(|_| cannot & TOGETHER == 0).unwrap_or_else(|| self.parts.clone())
    }

    /// How arrays lie in this rank's memory: taken one by one, and together.
    pub(super) fn lying(&self) -> Lying {
        let lying = |cannot| laid(&number_parts(self.taken(cannot)).0);
        Lying { apart: lying(TOGETHER), together: self.by_group.as_ref().map(|_| lying(0)) }
    }

    /// For the walk.
    pub(super) fn compiled(&self, cannot: Ways) -> Compiled {
        let (users, mine) = number_parts(self.taken(cannot));
        Compiled { transfer: self.moving.transfer(cannot).clone(), users, mine, fault: None, vetted: None }
    }
}

/// How arrays lie in a rank's memory.
pub(super) struct Lying {
    apart: Vec<Option<Laid>>,
    together: Option<Vec<Option<Laid>>>,
}

impl Lying {
    /// As they are taken when some rank cannot do that.
    pub(super) fn taken(&self, cannot: Ways) -> &[Option<Laid>] {
        self.together.as_ref().filter(|_| cannot & TOGETHER == 0).unwrap_or(&self.apart)
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

    const ELEMENT: ElementType = ElementType::native(Kind::Float32);

    fn ask(name: &str, shape: &[u64], offset: u64) -> Ask {
        let spread = Spread::Regular(Distribution::new(shape, &[2], &[Dim::Block, Dim::Whole], None).unwrap());
        let stored = Stored::in_file(shape, ELEMENT, "file", offset).ordered(vec![1, 0]);
        Ask { name: name.into(), section: Section::whole(shape), spread, memory: ELEMENT, stored }
    }

    fn call(names: &[&str], groups: Vec<Group>, parts: Vec<Vec<Part>>) -> FileCall {
        FileCall::new(names, (groups, parts), Direction::Write, (2, Policies::default()))
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
        let asks = Alike::new(&["a", "b", "c"], groups).taken(TOGETHER);
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
            let arrays = call(&["0", "1", "2", "3", "4", "5"][..count as usize], groups, parts);
            assert_eq!(arrays.cannot(), 0);
            let (transfer, parts) = (arrays.moving.transfer(0), arrays.taken(0));
            let (one, ask) = (&parts[0][0].exposed, &transfer.asks[0]);
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
            let groups = vec![Group { first: first.clone(), memory: vec![ELEMENT; 2] }];
            call(&["a", "b"], groups, parts)
        };
        let (alike, otherwise) = (arrays(&[0, 1]), arrays(&[1, 0]));
        assert_eq!((alike.cannot(), otherwise.cannot()), (0, TOGETHER));
        assert_eq!((alike.moving.transfer(0).asks.len(), alike.taken(0).len()), (1, 1));
        // Who could takes them apart, too, when another rank cannot.
        for arrays in [arrays(&[0, 1]), otherwise] {
            let Compiled { transfer, users, .. } = arrays.compiled(TOGETHER);
            assert_eq!((transfer.asks.len(), users.len(), arrays.lying().taken(TOGETHER).len()), (2, 2, 2));
        }
        let one = vec![Group { first: ask("a", &[4, 3], 0), memory: vec![ELEMENT] }];
        assert_eq!(call(&["a"], one, vec![Vec::new()]).cannot(), 0, "nothing is alike");
    }
}
