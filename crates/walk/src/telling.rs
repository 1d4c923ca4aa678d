//! Telling: pieces that no closed form describes go to the ranks that must know of them, and to nobody else.
//!
//! Each message is answered, so that who has all answers knows that everybody whom it told has heard. An agreement
//! after that tells all ranks that nothing is under way any more: nobody needs to know beforehand who will tell him
//! something.

use crate::inbox::tag;
use crate::party::Party;
use hyperslab_layout::{IndexSet, Region, SetId};
use hyperslab_plan::Told;
use hyperslab_world::{Fault, FaultKind, Reader, World, Writer};
use std::collections::BTreeMap;

/// One rank's part in an exchange of facts.
pub struct Telling {
    call: u64,
    /// Ranks that have not answered.
    missing: Vec<u32>,
    /// What the rank would tell itself.
    own: Option<(u32, Told)>,
}

impl Telling {
    /// Tells each of these ranks its part, in the call that all ranks opened last.
    pub fn new(world: &mut dyn World, party: &Party, mut told: BTreeMap<u32, Told>) -> Telling {
        let call = party.call();
        let own = told.remove(&party.rank()).map(|own| (party.rank(), own));
        for (&to, told) in &told {
            world.transport().signal(to, to_bytes(call, told));
        }
        Telling { call, missing: told.into_keys().collect(), own }
    }

    /// Goes on; `true` once all have heard.
    pub fn poll(&mut self, party: &mut Party) -> bool {
        let heard = party.inbox.take_heard(self.call);
        if !heard.is_empty() {
            party.progress();
        }
        self.missing.retain(|rank| !heard.contains(rank));
        self.missing.is_empty()
    }

    /// What it waits for, for messages.
    pub fn waits_for(&self) -> String {
        format!("waits for rank {} to hear of pieces", crate::names::list(&self.missing))
    }

    /// What this rank was told, in the order of ranks. Complete once all ranks have agreed that their telling is over.
    ///
    /// # Errors
    /// When a message is not valid.
    pub fn heard(self, party: &mut Party) -> Result<Vec<(u32, Told)>, Fault> {
        let mut all: Vec<(u32, Told)> = self.own.into_iter().collect();
        for (from, bytes) in party.inbox.take_told(self.call) {
            let told = from_bytes(&bytes).ok_or_else(|| {
                Fault::new(FaultKind::Peer, format!("what rank {from} told of pieces cannot be decoded"))
            })?;
            all.push((from, told));
        }
        all.sort_by_key(|told| told.0);
        Ok(all)
    }
}

fn to_bytes(call: u64, told: &Told) -> Vec<u8> {
    let mut w = Writer::tagged(tag::TOLD).number(call);
    // Hundreds of arrays may be held by one list, which is told once.
    let (mut lists, mut next): (BTreeMap<SetId, u64>, u64) = (BTreeMap::new(), 0);
    for (unit, exposed, region) in told {
        w = w.number(*unit).number(u64::from(*exposed)).number(region.ndim() as u64);
        for set in &region.dims {
            // The number of a set that was told before, or of the next one, and then it.
            let number = match set.id() {
                id @ (SetId::List(_) | SetId::Part(..)) => *lists.entry(id).or_insert(next),
                SetId::Empty | SetId::Term(_) => next,
            };
            w = w.number(number);
            if number == next {
                (w, next) = (w.set(set), next + 1);
            }
        }
    }
    w.0
}

fn from_bytes(bytes: &[u8]) -> Option<Told> {
    let mut r = Reader::new(bytes);
    let (mut told, mut sets): (Told, Vec<IndexSet>) = (Told::new(), Vec::new());
    let mut set = |r: &mut Reader| {
        let number = usize::try_from(r.number()?).ok()?;
        if number < sets.len() {
            return sets.get(number).cloned();
        }
        let set = r.set()?;
        sets.push(set.clone());
        Some(set)
    };
    while let Some(unit) = r.number() {
        let exposed = r.number()?.try_into().ok()?;
        let dims = (0..r.number()?).map(|_| set(&mut r)).collect::<Option<_>>()?;
        told.push((unit, exposed, Region { dims }));
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sets: &[IndexSet]) -> Told {
        let region = |set: &IndexSet| Region { dims: [IndexSet::range(2, 5), set.clone()].into_iter().collect() };
        sets.iter().zip(0..).map(|(set, number)| (u64::from(number), number, region(set))).collect()
    }

    /// What follows the tag and the number of the call.
    fn body(told: &Told) -> Vec<u8> {
        to_bytes(0, told).split_off(9)
    }

    #[test]
    fn a_list_that_holds_many_arrays_is_told_once() {
        let runs = |first: u64| (0..1000).map(move |i| (first + i * i + 2 * i, 1 + i % 2));
        let [one, other] = [0, 7].map(|first| IndexSet::of_runs(runs(first)).unwrap());
        let sets =
            [one.clone(), IndexSet::range(0, 9), other.clone(), one.clone(), IndexSet::empty(), other, one.clone()];
        let told = told(&sets);
        let bytes = body(&told);
        assert_eq!(from_bytes(&bytes), Some(told.clone()));
        let (alone, twice) = (body(&told[..1].to_vec()).len(), body(&self::told(&[one.clone(), one])).len());
        assert!(twice < alone + alone / 10, "{twice} B twice, {alone} B once");
        assert!(bytes.len() < 2 * alone + 1000);
    }
}
