//! Calls that ask for what an earlier one asked for, elsewhere: one time step of a file after another, one block of rows, one
//! array.
//!
//! What was agreed then holds again, but for the place: so rank 0 chooses nothing anew, and tells no more than the number of
//! the earlier call, the place, and what it is expected to take. All ranks keep the same calls, since each keeps those that
//! succeeded on all, and forgets the one whose turn is longest ago.

use crate::alike::{Group, Taken, name};
use crate::decision::Decision;
use crate::request::{ArrayRequest, Selected};
use hyperslab_layout::{Policies, Stored};
use hyperslab_plan::{Direction, Transfer, begins_page};
use hyperslab_walk::Votes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Calls that are kept.
const KEPT_MAX: usize = 8;

/// Calls of a communicator that may come again, as one rank keeps them.
#[derive(Clone, Default)]
pub struct Repeats(Arc<Mutex<EarlierCalls>>);

#[derive(Default)]
pub(crate) struct EarlierCalls {
    /// How many were kept so far.
    count: u64,
    /// The one that was used last is the last.
    calls: VecDeque<Earlier>,
}

/// Which way, what is promised, among how many ranks, and what some of them cannot do.
pub(crate) type AgreedWay = ((Direction, Policies, u32), Votes);

/// What a call asked for and what was agreed of it.
pub(crate) struct Earlier {
    pub(crate) number: u64,
    arrays: Arc<[ArrayRequest]>,
    moves: AgreedWay,
    /// Of each array, where it begins in the file \[B\], and whether what moves of it begins with a page.
    begins: Vec<(u64, bool)>,
    /// Where the first begins now \[B\].
    at: u64,
    pub(crate) groups: Vec<Group>,
    pub(crate) decision: Decision,
    transfer: Arc<Transfer>,
    pub(crate) taken: Vec<Taken>,
}

/// Where a call that comes again finds its arrays.
pub(crate) struct NewPlace {
    /// The object that holds them.
    pub(crate) name: Arc<str>,
    /// Where the first begins \[B\].
    pub(crate) at: u64,
}

impl Repeats {
    pub(crate) fn kept(&self) -> MutexGuard<'_, EarlierCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EarlierCalls {
    /// An earlier call that asked for the same of arrays that lie so, and for which `choose` chooses as then: where it is now,
    /// and what was chosen.
    pub(crate) fn like(
        &mut self,
        (arrays, stored): (&[ArrayRequest], &[Stored]),
        moves: AgreedWay,
        mut choose: impl FnMut(&Earlier) -> Option<Decision>,
    ) -> Option<(&mut Earlier, NewPlace, Decision)> {
        self.calls.iter_mut().rev().find_map(|earlier| {
            let place = earlier.place_of(arrays, stored, moves)?;
            let decision = choose(earlier)?;
            Some((earlier, place, decision))
        })
    }

    /// The call with this number, which is in use again.
    pub(crate) fn take_up(&mut self, number: u64) -> Option<&mut Earlier> {
        let at = self.calls.iter().position(|earlier| earlier.number == number)?;
        let used = self.calls.remove(at)?;
        self.calls.push_back(used);
        self.calls.back_mut()
    }

    /// Keeps a call that has succeeded on all ranks, if it may come again.
    pub(crate) fn keep(
        &mut self,
        (arrays, moves): (&Arc<[ArrayRequest]>, AgreedWay),
        (groups, taken): (Vec<Group>, Vec<Taken>),
        (transfer, decision): (&Arc<Transfer>, &Decision),
    ) {
        let each = groups.iter().flat_map(|group| {
            let first = group.arrays.start;
            let stored = move |array: usize| group.first.clone().after((array - first) as u64);
            group.arrays.clone().map(move |array| begin_of(&stored(array), &arrays[array]))
        });
        let Some(begins) = each.collect::<Option<Vec<_>>>() else { return };
        let Some(&(at, _)) = begins.first() else { return };
        if self.calls.len() >= KEPT_MAX {
            self.calls.pop_front();
        }
        self.count += 1;
        let (arrays, transfer, decision) = (arrays.clone(), transfer.clone(), decision.clone());
        let number = self.count;
        self.calls.push_back(Earlier { number, arrays, moves, begins, at, groups, decision, transfer, taken });
    }
}

impl Earlier {
    /// Where it would be now, if it asks for as much of arrays that are alike and lie as far apart as they did.
    fn place_of(&self, arrays: &[ArrayRequest], stored: &[Stored], moves: AgreedWay) -> Option<NewPlace> {
        if self.moves != moves || self.arrays.len() != arrays.len() || stored.len() != arrays.len() {
            return None;
        }
        // Those that move as one ask for the same part of each.
        let is_one = |of: &[ArrayRequest]| of.windows(2).all(|pair| pair[1].is_like(&pair[0]));
        if !self.taken.iter().all(|(of, _)| is_one(&arrays[of.clone()])) {
            return None;
        }
        let (name, first) = (stored.first()?.object()?.0.name, stored.first()?.begin_of(None)?);
        let before = self.groups.iter().flat_map(|group| group.arrays.clone().map(|_| &group.first));
        let each = self.arrays.iter().zip(arrays).zip(self.begins.iter().zip(stored.iter().zip(before)));
        let as_before = each.into_iter().all(|((then, now), ((begin, page), (stored, before)))| {
            let same = (stored.root, stored.change, &stored.fill) == (before.root, before.change, &before.fill);
            let apart = |at: u64| at.wrapping_sub(first) == begin.wrapping_sub(self.begins[0].0);
            let begins = |(at, begins_page): (u64, bool)| apart(at) && begins_page == *page;
            let in_one = stored.object().is_some_and(|(object, _)| object.name == name);
            same && in_one && now.asks_as(then) && stored.is_like(before) && begin_of(stored, now).is_some_and(begins)
        });
        as_before.then_some(NewPlace { name, at: first })
    }

    /// Moves its arrays there.
    pub(crate) fn move_to(&mut self, place: &NewPlace) {
        let by = place.at.wrapping_sub(std::mem::replace(&mut self.at, place.at));
        let transfer = Arc::make_mut(&mut self.transfer).asks.iter_mut().map(|ask| &mut ask.stored);
        let groups = self.groups.iter_mut().map(|group| &mut group.first);
        transfer.chain(groups).for_each(|stored| stored.move_to(&place.name, by));
    }

    /// The transfer of these arrays: of what is selected of them, and of the types that this rank's are of, which are its own
    /// affair.
    pub(crate) fn transfer_of(&mut self, arrays: &[ArrayRequest]) -> Arc<Transfer> {
        let Transfer { direction, asks, .. } = Arc::make_mut(&mut self.transfer);
        for ((of, _), ask) in self.taken.iter().zip(asks) {
            let arrays = &arrays[of.clone()];
            name(ask, arrays);
            ask.memory = arrays[0].element(ask.stored.element, *direction);
            if let Selected::Section(section) = &arrays[0].selected {
                // Of several that move as one, the first dimension counts them.
                let dims = ask.section.dims.iter_mut().rev().zip(section.dims.iter().rev());
                dims.for_each(|(dim, now)| *dim = *now);
            }
        }
        self.transfer.clone()
    }
}

/// Where an array begins in the one object that holds it, and whether what is selected of it begins with a page there, if it
/// lies there as elements that are cut freely, and ranks hold it in closed form.
fn begin_of(stored: &Stored, request: &ArrayRequest) -> Option<(u64, bool)> {
    let held = request.holding.as_ref().is_some_and(|holding| holding.regular().is_some());
    let section = match &request.selected {
        Selected::Whole => None,
        Selected::Section(section) => Some(section).filter(|section| section.check(&stored.shape).is_ok()),
        Selected::End(_) | Selected::Reached => return None,
    };
    let is_within = section.is_some() || request.selected == Selected::Whole;
    if stored.chunk().is_some() || !held || !is_within {
        return None;
    }
    Some((stored.begin_of(None)?, begins_page(stored.begin_of(section)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alike::{groups, transfer};
    use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section, Triplet};
    use hyperslab_plan::Parameters;

    const ELEMENT: ElementType = ElementType::native(Kind::Float64);
    fn way() -> AgreedWay {
        ((Direction::Read, Policies::default(), 2), Votes::default())
    }

    fn rows(name: &str, rows: std::ops::Range<u64>) -> ArrayRequest {
        let held = Distribution::new(&[rows.end - rows.start, 64], &[2], &[Dim::Block, Dim::Whole]).unwrap();
        let section = Section::of([Triplet::from(rows), Triplet::from(0..64)]);
        let selected = Selected::Section(section);
        ArrayRequest { name: name.into(), selected, holding: Some(Arc::new(held.into())), memory: vec![ELEMENT] }
    }

    fn stored(object: &str, offset: u64) -> Stored {
        Stored::in_file(&[100, 64], ELEMENT, object, offset)
    }

    /// Calls of which one is kept: two arrays one behind the other, of each the first eight rows.
    fn kept() -> EarlierCalls {
        let arrays: Arc<[ArrayRequest]> = [rows("a", 0..8), rows("b", 0..8)].into();
        let groups = groups(&arrays, vec![stored("f", 0), stored("f", 51_200)]);
        let (made, taken) = transfer(&arrays, &groups, way().1, way().0).unwrap();
        let decision = Decision { parameters: Parameters::default(), predicted: [0.0; 5], later: 0.0, plan: 1 };
        let mut calls = EarlierCalls::default();
        calls.keep((&arrays, way()), (groups, taken), (&Arc::new(made), &decision));
        calls
    }

    fn as_then(earlier: &Earlier) -> Option<Decision> {
        Some(earlier.decision.clone())
    }

    #[test]
    fn what_comes_again_is_the_transfer_that_would_be_made_anew() {
        let (arrays, lie) = ([rows("c", 8..16), rows("d", 8..16)], [stored("g", 8192), stored("g", 8192 + 51_200)]);
        let mut calls = kept();
        let (earlier, place, _) = calls.like((&arrays, &lie), way(), as_then).expect("it asks for the same");
        assert_eq!((&*place.name, place.at), ("g", 8192));
        earlier.move_to(&place);
        let anew = transfer(&arrays, &groups(&arrays, lie.to_vec()), way().1, way().0).unwrap().0;
        assert_eq!(format!("{:?}", earlier.transfer_of(&arrays).asks), format!("{:?}", anew.asks));
        // To be moved there twice is to be moved there.
        earlier.move_to(&place);
        assert_eq!(format!("{:?}", earlier.transfer_of(&arrays).asks), format!("{:?}", anew.asks));
    }

    #[test]
    fn what_is_asked_otherwise_or_lies_otherwise_does_not_come_again() {
        let lie = [stored("f", 0), stored("f", 51_200)];
        let usual = || [rows("a", 0..8), rows("b", 0..8)];
        let mut other_type = usual();
        other_type[0].memory = vec![ElementType::native(Kind::Float32)];
        let other = |arrays: &[ArrayRequest], lie: &[Stored], way| kept().like((arrays, lie), way, as_then).is_none();
        assert!(!other(&usual(), &lie, way()));
        assert!(other(&[rows("a", 0..8), rows("b", 0..9)], &lie, way()), "more of one");
        assert!(
            other(&[rows("a", 8..16), rows("b", 24..32)], &lie, way()),
            "another part of each, and they move as one"
        );
        assert!(kept().like((&usual(), &lie), way(), |_| None).is_none(), "what would be chosen otherwise now");
        assert!(other(&[rows("a", 96..104), rows("b", 0..8)], &lie, way()), "more than there is");
        assert!(other(&usual()[..1], &lie[..1], way()), "fewer arrays");
        assert!(other(&other_type, &lie, way()), "another type");
        assert!(other(&usual(), &[stored("f", 0), stored("g", 51_200)], way()), "in two files");
        assert!(other(&usual(), &[stored("f", 0), stored("f", 51_208)], way()), "further apart");
        assert!(other(&usual(), &[stored("f", 8), stored("f", 51_208)], way()), "between pages");
        assert!(other(&usual(), &lie, ((Direction::Write, way().0.1, 2), way().1)), "the other way");
        let elsewhere = lie.clone().map(|stored| stored.below_root(1));
        assert!(other(&usual(), &elsewhere, way()), "below another root");
    }

    #[test]
    fn the_one_whose_turn_is_longest_ago_is_forgotten() {
        let mut calls = kept();
        let one = calls.calls[0].number;
        let arrays: Arc<[ArrayRequest]> = [rows("a", 0..8), rows("b", 0..8)].into();
        for number in 0..2 * KEPT_MAX {
            let Earlier { groups, taken, transfer, decision, .. } = calls.calls.back().unwrap();
            let (agreed, told) = ((groups.clone(), taken.clone()), (transfer.clone(), decision.clone()));
            calls.keep((&arrays, way()), agreed, (&told.0, &told.1));
            assert_eq!(calls.take_up(one).is_some(), number < 2 * KEPT_MAX, "what is used stays");
        }
        assert_eq!(calls.calls.len(), KEPT_MAX);
    }
}
