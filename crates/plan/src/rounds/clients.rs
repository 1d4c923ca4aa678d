//! With whom a server exchanges a group.

use crate::emit::Placed;
use crate::facts::Facts;
use crate::program::Parts;
use hyperslab_layout::Holdings;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

/// The pieces of one unit, in rising order of the ranks that hold them.
enum Pieces {
    /// Found one by one.
    Regular { array: u32, holdings: Box<Holdings> },
    /// Those that this rank was told of, from number `next` on.
    Told { unit: u64, next: usize },
}

impl Pieces {
    /// The rank that holds the current piece; `None` behind the last.
    fn rank(&self, facts: &Facts) -> Option<u32> {
        match self {
            Pieces::Regular { holdings, .. } => holdings.rank(),
            Pieces::Told { unit, next } => Some(facts.met.get(unit)?.get(*next)?.rank),
        }
    }

    /// Adds the current piece to a message, and goes on to the next.
    fn take(&mut self, facts: &Facts, placed: &Placed, parts: &mut Parts) {
        match self {
            Pieces::Regular { array, holdings } => {
                parts.push((*array, holdings.region(), placed.section()));
                holdings.advance();
            }
            Pieces::Told { unit, next } => {
                let met = facts.met.get(unit).and_then(|met| met.get(*next));
                parts.extend(met.map(|met| (met.exposed, met.region.clone(), placed.section())));
                *next += 1;
            }
        }
    }
}

/// Ranks that hold something of a group, in rising order, each with its pieces of all units. The pieces of the units are
/// merged on the way, so that memory depends on the units of the group and not on the ranks that share them.
pub(super) struct Clients {
    facts: Arc<Facts>,
    /// By unit of the group.
    units: Vec<Pieces>,
    /// Rank of the next piece of a unit, and number of the unit.
    heap: BinaryHeap<Reverse<(u32, usize)>>,
}

impl Clients {
    /// Those of units in slots. Of replicated data `replica` says whose turn it is.
    pub(super) fn new(facts: &Arc<Facts>, placed: &[Placed], replica: impl Fn(u64) -> Option<u64>) -> Clients {
        let pieces = |placed: &Placed| {
            let unit = &placed.unit;
            match placed.ask().spread.regular() {
                Some(distribution) => {
                    let holdings = Box::new(distribution.holdings(&unit.bounds, replica(unit.number)));
                    Pieces::Regular { array: unit.array, holdings }
                }
                None => Pieces::Told { unit: unit.number, next: 0 },
            }
        };
        let units: Vec<Pieces> = placed.iter().map(pieces).collect();
        let first = |(number, pieces): (usize, &Pieces)| Some(Reverse((pieces.rank(facts)?, number)));
        let heap = units.iter().enumerate().filter_map(first).collect();
        Clients { facts: facts.clone(), units, heap }
    }

    /// Takes the pieces of the next rank, which lie in the slots of these units.
    pub(super) fn next(&mut self, placed: &[Placed], parts: &mut Parts) -> Option<u32> {
        if let ([only], [placed]) = (self.units.as_mut_slice(), placed) {
            let rank = only.rank(&self.facts)?;
            while only.rank(&self.facts) == Some(rank) {
                only.take(&self.facts, placed, parts);
            }
            return Some(rank);
        }
        let Reverse((rank, _)) = *self.heap.peek()?;
        while let Some(mut top) = self.heap.peek_mut().filter(|top| top.0.0 == rank) {
            let number = top.0.1;
            let pieces = &mut self.units[number];
            pieces.take(&self.facts, &placed[number], parts);
            match pieces.rank(&self.facts) {
                Some(rank) => *top = Reverse((rank, number)),
                None => drop(PeekMut::pop(top)),
            }
        }
        Some(rank)
    }
}
