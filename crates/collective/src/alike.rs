//! Arrays that are asked for in the same way and follow each other in one object: they are moved as one array with a
//! dimension more.
//!
//! What each of hundreds of small arrays costs by itself, from the question who holds what to the message about it, takes
//! longer than its bytes do.

use crate::array::LocalArray;
use crate::holding::{Exposing, Ownership, Part};
use crate::request::ArrayRequest;
use hyperslab_layout::{Axis, IndexSet, Listed, Policies, Section, Stored, Term, Triplet, View};
use hyperslab_pack::Memory;
use hyperslab_plan::{Direction, MemoryLayout, Spread, Transfer, TransferArray};
use hyperslab_walk::{Votes, Ways};
use hyperslab_world::{Exposed, Fault, FaultKind};
use std::ops::Range;
use std::sync::Arc;

/// That a rank holds arrays that are alike in different ways, and so cannot move them as one. In its memory arrays may lie in
/// ways of their own, which only that rank knows; which arrays are alike follows from what all ranks know.
pub(crate) const TOGETHER: Ways = 1;
/// That a rank holds an array of several dimensions in too many pieces to say each as a product of sets; and that one holds
/// boxes, which have no short form in the order of storage.
const PRODUCTS: Ways = 2;
const ORDERED: Ways = 4;

/// In which ways this rank cannot say which elements it holds.
pub(crate) fn cannot_say(arrays: &[ArrayRequest]) -> Ways {
    arrays.iter().filter_map(|request| request.holding.as_deref()).fold(0, |ways, held| ways | cannot_say_of(held))
}

fn cannot_say_of(held: &Ownership) -> Ways {
    match held {
        Ownership::Runs(list) if list.shape().len() > 1 && list.is_short() => PRODUCTS,
        Ownership::Boxes { boxes, .. } if !boxes.is_empty() => ORDERED,
        _ => 0,
    }
}

/// Arrays that these ranks hold alike, as a call would have them move: with their elements in the order of storage, where lists
/// need that. Gives how the ranks hold them then, and how a run lies in memory, for the model.
pub fn listed(asks: &mut [TransferArray], held: Vec<Ownership>) -> (Vec<Arc<Ownership>>, Option<MemoryLayout>) {
    let cannot = held.iter().fold(0, |ways, held| ways | cannot_say_of(held));
    let mut ordered: Vec<Arc<Ownership>> = held.into_iter().map(Arc::new).collect();
    let held = ordered.clone();
    for ask in asks.iter_mut() {
        // Each rank makes the same of what is asked.
        let (mut made, numbered): (Vec<_>, Vec<_>) =
            held.iter().map(|held| in_order(ask.clone(), held.clone(), cannot)).unzip();
        ordered = numbered;
        made.pop().into_iter().for_each(|made| *ask = made);
    }
    let run = ordered.iter().find_map(|held| match &**held {
        Ownership::Runs(list) if list.is_short() => {
            let element = asks.first()?.memory;
            list.laid((element.bytes() as i64, element))
        }
        _ => None,
    });
    (ordered, run)
}

fn is_ordered(cannot: Ways) -> bool {
    cannot & (PRODUCTS | ORDERED) == PRODUCTS
}

/// An array of which elements are listed, with its elements in the order of storage, where some rank cannot say them
/// otherwise and all can say them so.
fn in_order(ask: TransferArray, holding: Arc<Ownership>, cannot: Ways) -> (TransferArray, Arc<Ownership>) {
    if !is_ordered(cannot) || ask.spread != Spread::Explicit {
        return (ask, holding);
    }
    let Some(stored) = ask.stored.in_order(&ask.section) else { return (ask, holding) };
    let Some(holding) = stored.numbered.as_ref().and_then(|order| holding.in_order(order)) else {
        return (ask, holding);
    };
    let section = Section::whole(&stored.shape);
    (TransferArray { section, stored, ..ask }, holding)
}

/// Arrays of a call that are asked for in the same way and, in storage, follow each other: by their numbers in the call.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) arrays: Range<usize>,
    /// How the first of them is stored.
    pub(crate) first: Stored,
}

/// Numbers of arrays that follow each other in a call and are asked for in the same way, run by run.
pub(crate) fn runs(arrays: &[ArrayRequest]) -> Vec<Range<usize>> {
    let mut begin = 0;
    let run = |alike: &[ArrayRequest]| {
        begin += alike.len();
        begin - alike.len()..begin
    };
    arrays.chunk_by(|before, one| one.is_like(before)).map(run).collect()
}

/// The arrays of a call in groups, given how each is stored.
pub(crate) fn groups(arrays: &[ArrayRequest], stored: Vec<Stored>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut last: Option<Stored> = None;
    for (number, one) in stored.into_iter().enumerate() {
        let follows =
            last.as_ref().is_some_and(|last| one.follows(last) && arrays[number].is_like(&arrays[number - 1]));
        match groups.last_mut().filter(|_| follows) {
            Some(group) => group.arrays.end += 1,
            None => groups.push(Group { arrays: number..number + 1, first: one.clone() }),
        }
        last = Some(one);
    }
    groups
}

/// One array of a transfer: the numbers of the arrays in the call that it stands for, and how ranks hold each.
pub(crate) type Taken = (Range<usize>, Arc<Ownership>);

/// What moves, and what each array of it stands for; of groups, each as one unless some rank cannot do that.
pub(crate) fn transfer(
    arrays: &[ArrayRequest],
    groups: &[Group],
    votes: Votes,
    (direction, policies, ranks): (Direction, Policies, u32),
) -> Result<(Transfer, Vec<Taken>), Fault> {
    let (mut asks, mut taken) = (Vec::with_capacity(groups.len()), Vec::with_capacity(groups.len()));
    for Group { arrays: of, first } in groups {
        let (ask, holding) = arrays[of.start].ask(first.clone(), (direction, policies.end, ranks), votes.reach)?;
        let (ask, holding) = in_order(ask, holding, votes.cannot);
        let together = of.len() > 1 && votes.cannot & TOGETHER == 0;
        let last = &arrays[of.end - 1].name;
        if let Some(one) = if together { one_ask(&ask, of.len() as u64, last) } else { None } {
            asks.push(one);
            taken.push((of.clone(), holding));
            continue;
        }
        for (number, request) in of.clone().zip(&arrays[of.clone()]) {
            let stored = ask.stored.clone().after((number - of.start) as u64);
            let memory = request.element(stored.element, direction);
            asks.push(TransferArray { name: request.name.clone(), memory, stored, ..ask.clone() });
            taken.push((number..number + 1, holding.clone()));
        }
    }
    Ok((Transfer { direction, asks, ranks, policies }, taken))
}

/// Arrays that follow each other, as one.
fn one_ask(first: &TransferArray, count: u64, last: &str) -> Option<TransferArray> {
    let spread = Spread::Regular(first.spread.regular()?.stacked(count)?);
    let mut one = TransferArray { spread, ..first.clone() };
    one.name = name_of_all(&first.name, last, count as usize);
    one.section.dims.insert(0, Triplet::whole(count));
    one.stored = one.stored.stacked(count);
    Some(one)
}

/// Names what is moved as these arrays of a call.
pub(crate) fn name(ask: &mut TransferArray, arrays: &[ArrayRequest]) {
    match arrays {
        [one] => ask.name.clone_from(&one.name),
        [first, .., last] => ask.name = name_of_all(&first.name, &last.name, arrays.len()),
        [] => {}
    }
}

fn name_of_all(first: &str, last: &str, count: usize) -> String {
    format!("{first} to {last} ({count} arrays)")
}

/// This rank's parts of the arrays of a call, and of those that may move as one.
pub(crate) struct Parts {
    each: Vec<Vec<Part>>,
    /// Of runs of arrays that are asked for in the same way: one part for all, if they lie in the same way, too.
    joined: Vec<(Range<usize>, Option<Part>)>,
}

impl Parts {
    /// Of arrays that may lie `together` in one object, those are joined that may move as one.
    pub(crate) fn new(arrays: &[ArrayRequest], each: Vec<Vec<Part>>, together: bool) -> Parts {
        let runs = if together { runs(arrays) } else { Vec::new() };
        let several = runs.into_iter().filter(|run| run.len() > 1);
        let joined = several.map(|run| (run.clone(), one_part(&each[run])));
        Parts { joined: joined.collect(), each }
    }

    /// This rank's parts, where it is known how it holds the arrays.
    pub(crate) fn known(
        arrays: &[ArrayRequest],
        locals: Option<&[Vec<LocalArray>]>,
        at: (u32, u32),
        together: bool,
    ) -> Result<Option<Parts>, Fault> {
        let holdings = || arrays.iter().map(|request| request.holding.as_deref());
        for (request, holding) in arrays.iter().zip(holdings()) {
            holding.map_or(Ok(()), |holding| holding.check(&request.name, at.1))?;
        }
        let (Some(locals), true) = (locals, holdings().all(|holding| holding.is_some())) else { return Ok(None) };
        let mut exposing = Exposing::new(at);
        let each = arrays.iter().zip(holdings().flatten()).zip(locals);
        let parts = each.map(|((request, holding), locals)| exposing.expose(holding, &request.name, locals));
        Ok(Some(Parts::new(arrays, parts.collect::<Result<_, Fault>>()?, together)))
    }

    /// What this rank cannot do.
    pub(crate) fn cannot(&self) -> Ways {
        if self.joined.iter().any(|(_, part)| part.is_none()) { TOGETHER } else { 0 }
    }

    /// The parts of what is taken as one: of one array, or of several that lie alike.
    ///
    /// # Errors
    /// When they do not, though this rank has not said so.
    pub(crate) fn of(&self, taken: &Range<usize>) -> Result<Vec<Part>, Fault> {
        if taken.len() == 1 {
            return Ok(self.each[taken.start].clone());
        }
        let known = self.joined.iter().find(|(run, _)| run == taken).and_then(|(_, part)| part.clone());
        let part = known.or_else(|| one_part(&self.each[taken.clone()]));
        let unfit = || Fault::new(FaultKind::Peer, "rank 0 told of arrays as one that this rank holds in several ways");
        Ok(vec![part.ok_or_else(unfit)?])
    }

    /// How the parts lie in this rank's memory.
    pub(crate) fn lying(&self, arrays: &[ArrayRequest]) -> Lying {
        let first = |(parts, request): (&Vec<Part>, &ArrayRequest)| {
            let Part { exposed, region } = parts.first()?;
            let View { axes, element, .. } = &*exposed.view;
            match (request.holding.as_deref(), region) {
                // Runs of which it is not known yet where they lie in storage.
                (Some(Ownership::Runs(list)), None) => list.laid((axes.first()?.1, *element)).map(Lie::Known),
                _ => Some(Lie::Viewed(exposed.view.clone())),
            }
        };
        let joined = self
            .joined
            .iter()
            .filter_map(|(run, part)| Some((run.clone(), MemoryLayout::of(&part.as_ref()?.exposed.view))));
        Lying { each: self.each.iter().zip(arrays).map(first).collect(), joined: joined.collect() }
    }
}

/// How one array lies: of hundreds that move as one, nobody asks.
#[derive(Clone, Debug)]
enum Lie {
    Viewed(Arc<View>),
    Known(MemoryLayout),
}

/// How the arrays of a call lie in a rank's memory, for the model, which takes those of others to be alike. It has nothing of
/// the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lying {
    each: Vec<Option<Lie>>,
    joined: Vec<(Range<usize>, MemoryLayout)>,
}

impl Lying {
    /// Where no more is known than how local arrays lie, of each the first.
    pub(crate) fn of_locals(locals: &[Vec<LocalArray>]) -> Lying {
        let first = |arrays: &Vec<LocalArray>| arrays.first().map(|array| Lie::Known(array.laid()));
        Lying { each: locals.iter().map(first).collect(), joined: Vec::new() }
    }

    /// Of one array, as far as known.
    pub(crate) fn of_array(&self, number: usize) -> Option<MemoryLayout> {
        Some(match self.each.get(number)?.as_ref()? {
            Lie::Viewed(view) => MemoryLayout::of(view),
            Lie::Known(laid) => laid.clone(),
        })
    }

    /// Of what is taken as one.
    pub(crate) fn of(&self, taken: &Range<usize>) -> Option<MemoryLayout> {
        if taken.len() == 1 {
            return self.of_array(taken.start);
        }
        let covers = |run: &Range<usize>| run.start <= taken.start && taken.end <= run.end;
        let (_, laid) = self.joined.iter().find(|(run, _)| covers(run))?;
        // Of a part of a run there are fewer; else it lies in the same way.
        let mut laid = laid.clone();
        laid.held[0] = taken.len() as u64;
        Some(laid)
    }
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
    let memory = Memory::together(&each.iter().map(|one| one.memory.clone()).collect::<Vec<_>>())?;
    let address = |memory: &Memory| memory.host_address().unwrap_or(0) as i64;
    let place = |one: &Exposed| address(&one.memory) - address(&memory) + one.view.base;
    let empty = first.view.axes.iter().any(|(axis, _)| matches!(axis, Axis::Owned(set) if set.is_empty()));
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
        let single = matches!(axis, Axis::Owned(set) if set.len() <= 1);
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
        return (first, (Axis::Owned(IndexSet::range(0, count)), step));
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
    use crate::request::Selected;
    use hyperslab_layout::{Dim, Distribution, ElementType, EndOfFile, Kind, dense_strides, product};

    const ELEMENT: ElementType = ElementType::native(Kind::Float32);
    const APART: Votes = Votes { cannot: TOGETHER, reach: None, sum: 0, waiting: 0, changed: false, held: None };

    fn moves() -> (Direction, Policies, u32) {
        (Direction::Write, Policies::default(), 2)
    }

    fn stored(shape: &[u64], offset: u64) -> Stored {
        Stored::in_file(shape, ELEMENT, "file", offset).ordered(vec![1, 0])
    }

    fn held(shape: &[u64]) -> Arc<Ownership> {
        Arc::new(Distribution::new(shape, &[2], &[Dim::Block, Dim::Whole]).unwrap().into())
    }

    fn request(name: &str, holding: &Arc<Ownership>) -> ArrayRequest {
        ArrayRequest {
            name: name.into(),
            selected: Selected::Whole,
            holding: Some(holding.clone()),
            memory: vec![ELEMENT],
        }
    }

    /// Rank 1's part of an array of this shape, somewhere in a memory.
    fn part(shape: &[u64], memory: &Memory, base: i64, order: &[usize]) -> Part {
        let owned = held(shape).regular().unwrap().owned(1);
        let view = View::held(&owned, base, &dense_strides(&owned.shape(), order, 4), ELEMENT);
        Part { exposed: Exposed { memory: memory.clone(), view: Arc::new(view) }, region: None }
    }

    #[test]
    fn only_arrays_that_follow_each_other_and_are_alike_are_taken_together() {
        let (wide, high) = ([3, 5], [5, 3]);
        let double = Stored { element: ElementType::native(Kind::Float64), ..stored(&high, 420) };
        // Some are missing between the third and the fourth, the seventh is of another type, and the last comes twice.
        let all = [
            (wide, stored(&wide, 0)),
            (wide, stored(&wide, 60)),
            (high, stored(&high, 120)),
            (high, stored(&high, 240)),
            (high, stored(&high, 300)),
            (high, stored(&high, 360)),
            (high, double),
            (high, stored(&high, 540)),
            (high, stored(&high, 540)),
        ];
        let holdings = [held(&wide), held(&high)];
        let requests: Vec<_> =
            all.iter().map(|(shape, _)| request("any", &holdings[usize::from(*shape == high)])).collect();
        assert_eq!(runs(&requests), [0..2, 2..9], "how they are stored is not known yet");
        let found = groups(&requests, all.iter().map(|(_, stored)| stored.clone()).collect());
        let counts: Vec<usize> = found.iter().map(|group| group.arrays.len()).collect();
        assert_eq!(counts, [2, 1, 3, 1, 1, 1]);
        let (transfer, taken) = transfer(&requests, &found, Votes::default(), moves()).unwrap();
        let one = &transfer.asks[2];
        assert_eq!((&one.stored.shape[..], one.stored.order(), &taken[2].0), (&[3, 5, 3][..], &[0, 2, 1][..], &(3..6)));
        assert_eq!((&*one.name, one.stored_bytes()), ("any to any (3 arrays)", 3 * 4 * 3 * 5));
    }

    #[test]
    fn arrays_that_move_by_themselves_lie_where_they_do() {
        let holding = held(&[3, 5]);
        let requests = ["a", "b", "c"].map(|name| request(name, &holding));
        let all = [8, 68, 128].map(|offset| stored(&[3, 5], offset));
        let groups = groups(&requests, all.to_vec());
        let (transfer, taken) = transfer(&requests, &groups, APART, moves()).unwrap();
        let own = requests
            .iter()
            .zip(all)
            .map(|(request, stored)| request.ask(stored, (Direction::Write, EndOfFile::Fault, 2), None).unwrap().0);
        assert_eq!(format!("{:?}", transfer.asks), format!("{:?}", own.collect::<Vec<_>>()));
        assert_eq!(taken.iter().map(|(of, _)| of.clone()).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    }

    /// A rank may read into types of its own: it cannot take such arrays together, and says so before it is asked to.
    #[test]
    fn arrays_of_several_types_are_alike_and_stay_apart() {
        let (shape, whole) = ([4, 3], Memory::from_vec(vec![0; 400]));
        let (holding, double) = (held(&shape), ElementType::native(Kind::Float64));
        let mut requests = ["a", "b"].map(|name| request(name, &holding));
        requests[1].memory = vec![double];
        assert_eq!(runs(&requests).len(), 1);
        let view = View::held(&holding.regular().unwrap().owned(1), 0, &[24, 8], double);
        let wide = Part { exposed: Exposed { memory: whole.clone(), view: Arc::new(view) }, region: None };
        let parts = Parts::new(&requests, vec![vec![part(&shape, &whole, 0, &[0, 1])], vec![wide]], true);
        assert_eq!(parts.cannot(), TOGETHER);
        let groups = groups(&requests, vec![stored(&shape, 0), stored(&shape, 48)]);
        assert_eq!(groups.len(), 1);
        let (transfer, _) = transfer(&requests, &groups, APART, moves()).unwrap();
        assert_eq!(transfer.asks.iter().map(|ask| ask.memory).collect::<Vec<_>>(), [ELEMENT, double]);
    }

    #[test]
    fn chunks_and_pieces_of_a_ranks_own_are_never_taken_together() {
        let boxes = Arc::new(Ownership::Boxes { shape: vec![3, 5], boxes: Vec::new() });
        let requests = ["a", "b"].map(|name| request(name, &boxes));
        assert_eq!(runs(&requests), [0..1, 1..2]);
        let keys = hyperslab_layout::stored::Keys::nested("a/");
        let chunks = Stored::in_chunks(&[3, 5], ELEMENT, &[3, 5], keys, hyperslab_layout::stored::Coding::Plain);
        let held = held(&[3, 5]);
        let requests = ["a", "b"].map(|name| request(name, &held));
        assert_eq!(groups(&requests, vec![chunks.clone(), chunks]).len(), 2);
    }

    /// Each element of arrays taken together lies where it does in its own array, wherever the arrays are: in memories
    /// of their own, at equal distances, backwards, or twice the same.
    #[test]
    fn elements_lie_where_they_did() {
        let mut random = fastrand::Rng::with_seed(3);
        let whole = Memory::from_vec(vec![0; 4000]);
        for turn in 0..300 {
            let (count, shape) = (random.usize(3..6), [random.u64(1..7), random.u64(1..4)]);
            let order: &[usize] = if random.bool() { &[0, 1] } else { &[1, 0] };
            let place = |i: usize, random: &mut fastrand::Rng| match turn % 3 {
                0 => 4 * random.i64(0..900),
                1 => 200 + 4 * i as i64,
                _ => 800 - 100 * i as i64,
            };
            let each: Vec<Vec<Part>> =
                (0..count).map(|i| vec![part(&shape, &whole, place(i, &mut random), order)]).collect();
            let holding = held(&shape);
            let requests: Vec<_> = (0..count).map(|_| request("any", &holding)).collect();
            let parts = Parts::new(&requests, each.clone(), true);
            assert_eq!(parts.cannot(), 0);
            let one = &parts.of(&(0..count)).unwrap()[0].exposed;
            let at = |one: &Exposed, index: &[u64]| one.memory.host_address().unwrap() as i64 + one.view.address(index);
            let stacked = holding.regular().unwrap().stacked(count as u64).unwrap().owned(1);
            let indices = |set: &IndexSet| (0..set.len()).filter_map(|i| set.select(i)).collect::<Vec<u64>>();
            for index in product(&stacked.dims.iter().map(indices).collect::<Vec<_>>()) {
                let own = &each[index[0] as usize][0].exposed;
                assert_eq!(at(one, &index), at(own, &index[1..]), "{index:?} of {shape:?}");
            }
            // A part of a run is joined by itself, and priced as the run.
            let some = &parts.of(&(1..count)).unwrap()[0].exposed;
            assert_eq!(some.view.axes.len(), 3);
            let laid = parts.lying(&requests).of(&(1..count)).unwrap();
            assert_eq!(laid.held[0], count as u64 - 1);
        }
    }

    #[test]
    fn arrays_of_which_one_lies_otherwise_stay_apart() {
        let (shape, whole) = ([4, 3], Memory::from_vec(vec![0; 200]));
        let holding = held(&shape);
        let requests = ["a", "b"].map(|name| request(name, &holding));
        let parts = |order: &[usize]| {
            let each = vec![vec![part(&shape, &whole, 0, &[0, 1])], vec![part(&shape, &whole, 100, order)]];
            Parts::new(&requests, each, true)
        };
        let (alike, otherwise) = (parts(&[0, 1]), parts(&[1, 0]));
        assert_eq!((alike.cannot(), otherwise.cannot()), (0, TOGETHER));
        assert_eq!(alike.of(&(0..2)).unwrap().len(), 1);
        for parts in [alike, otherwise] {
            assert_eq!((parts.of(&(1..2)).unwrap().len(), parts.lying(&requests).each.len()), (1, 2));
        }
        let one = Parts::new(&requests[..1], vec![Vec::new()], true);
        assert_eq!(one.cannot(), 0, "nothing is alike");
    }
}
