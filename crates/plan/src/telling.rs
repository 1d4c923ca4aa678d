//! Telling: who must know of which pieces that no closed form describes, and what servers find when they hear of them.

use crate::apart::{along, bundles};
use crate::facts::{Facts, Met, Mine, Told};
use crate::rounds::Rounds;
use crate::strategy::Parameters;
use crate::transfer::{Direction, Transfer};
use hyperslab_layout::{IndexSet, Overlapping, Region, SetId};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Two pieces that have elements in common, where each element may be written once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The array.
    pub array: u32,
    /// The ranks that hold them; perhaps the same.
    pub ranks: (u32, u32),
    /// The lowest element that both hold, as an index of the section's index space.
    pub at: Vec<u64>,
}

impl Overlap {
    /// The same element by its indices in the section, where the transfer has the elements in the order of storage.
    pub fn index(&self, transfer: &Transfer) -> Vec<u64> {
        let order = transfer.asks.get(self.array as usize).and_then(|ask| ask.stored.numbered.as_ref());
        match (order, &self.at[..]) {
            (Some(order), &[number]) => order.index_of(number),
            _ => self.at.clone(),
        }
    }
}

impl Facts {
    /// What each rank knows after all have told, when these are their own pieces by array: for those who look at a
    /// transfer as a whole.
    pub fn of_all(
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        mine: Vec<BTreeMap<u32, Vec<Mine>>>,
    ) -> Vec<Facts> {
        let mut all: Vec<Facts> = mine.into_iter().map(Facts::of_mine).collect();
        for from in 0..all.len() as u32 {
            for (server, told) in all[from as usize].to_tell(transfer, parameters, from) {
                if let Some(facts) = all.get_mut(server as usize) {
                    facts.hear(from, told);
                }
            }
        }
        all
    }

    /// What `rank` has to tell, by the server that must know.
    pub fn to_tell(&self, transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> BTreeMap<u32, Told> {
        let mut told: BTreeMap<u32, Told> = BTreeMap::new();
        if parameters.strategy.is_own() && transfer.direction == Direction::Read {
            // Nobody serves, and there is nothing to check.
            return told;
        }
        let rounds = Rounds::checking(transfer, parameters, rank);
        for (&array, pieces) in &self.mine {
            for Mine { exposed, region } in pieces {
                let mut touched = rounds.units().touched(array, region.clone());
                while let Some(unit) = touched.number() {
                    let server = rounds.server_of(rounds.group_of(unit));
                    told.entry(server).or_default().push((unit, *exposed, touched.region()));
                    touched.advance();
                }
            }
        }
        told
    }

    /// The first overlap among the pieces that this rank was told of, when the transfer writes and refuses it.
    pub fn overlap(&self, transfer: &Arc<Transfer>, parameters: &Parameters) -> Option<Overlap> {
        if transfer.direction == Direction::Read || transfer.policies.overlapping == Overlapping::Any {
            return None;
        }
        let rounds = Rounds::checking(transfer, parameters, 0);
        // Hundreds of arrays may be held by the same lists.
        let mut apart: HashSet<(usize, Vec<SetId>)> = HashSet::new();
        self.met.iter().find_map(|(&unit, met)| {
            let ids = met.iter().flat_map(|met| met.region.dims.iter().map(IndexSet::id));
            if !apart.insert((met.len(), ids.collect())) {
                return None;
            }
            let (first, second, region) = overlapping(met)?;
            let at = region.dims.iter().map(|set| set.hull().map_or(0, |(low, _)| low)).collect();
            let ranks = (first.rank.min(second.rank), first.rank.max(second.rank));
            Some(Overlap { array: rounds.units().unit(unit).array, ranks, at })
        })
    }
}

/// Two pieces of one unit that overlap, and where.
fn overlapping(met: &[Met]) -> Option<(&Met, &Met, Region)> {
    bundles(met.iter().collect(), |met| &met.region).into_iter().find_map(overlapping_in)
}

/// The same of those that may. They are swept along the dimension in which they begin at the most different places, so that
/// few that lie apart are compared.
fn overlapping_in(met: Vec<&Met>) -> Option<(&Met, &Met, Region)> {
    if met.len() < 2 {
        return None;
    }
    let places = |d: usize| met.iter().map(|met| along(&met.region, d).0).collect::<BTreeSet<u64>>().len();
    let d = (0..met.first()?.region.ndim()).rev().max_by_key(|&d| places(d)).unwrap_or(0);
    let mut order = met;
    order.sort_by_key(|met| along(&met.region, d).0);
    let mut open: Vec<&Met> = Vec::new();
    for met in order {
        let low = along(&met.region, d).0;
        open.retain(|other| along(&other.region, d).1 > low);
        for &other in &open {
            let both = met.region.intersect(&other.region);
            if !both.is_empty() {
                return Some((other, met, both));
            }
        }
        open.push(met);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::counted::looks;

    /// All boxes of a grid with so many along each of three dimensions, in an order of no use, those of two ranks.
    fn boxes(each: u64, at: impl Fn([u64; 3]) -> [u64; 3]) -> Vec<Met> {
        let all = (0..each * each * each).map(|n| [n / each / each, n / each % each, n % each]);
        let met = |(number, place): (u64, [u64; 3])| {
            let low = at(place);
            let region = Region::boxed(&low, &low.map(|low| low + 4));
            Met { rank: (number % 2) as u32, exposed: number as u32, region }
        };
        let mut met: Vec<Met> = (0..).zip(all).map(met).collect();
        fastrand::Rng::with_seed(each).shuffle(&mut met);
        met
    }

    #[test]
    fn boxes_that_lie_apart_are_not_compared_with_each_other() {
        for each in [8, 16] {
            for gap in [0, 3] {
                let met = boxes(each, |place| place.map(|at| at * (4 + gap)));
                let before = looks();
                assert_eq!(overlapping(&met), None);
                assert!(looks() - before <= met.len() as u64, "{} looks for {}", looks() - before, met.len());
            }
        }
    }

    #[test]
    fn two_boxes_among_many_that_overlap_are_found() {
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..50 {
            let (mut met, d) = (boxes(6, |place| place.map(|at| at * 4)), random.usize(0..3));
            let moved = random.usize(0..met.len());
            let low: Vec<u64> = (0..3).map(|d| along(&met[moved].region, d).0).collect();
            let shift = |k: usize| if k == d { if low[d] > 0 { low[d] - 1 } else { 1 } } else { low[k] };
            let low: Vec<u64> = (0..3).map(shift).collect();
            met[moved].region = Region::boxed(&low, &low.iter().map(|low| low + 4).collect::<Vec<_>>());
            let (one, other, both) = overlapping(&met).expect("one was pushed into its neighbour");
            assert!(std::ptr::eq(one, &met[moved]) || std::ptr::eq(other, &met[moved]));
            assert_eq!(both, one.region.intersect(&other.region));
            assert!(!both.is_empty());
        }
    }
}
