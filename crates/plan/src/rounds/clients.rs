//! With whom a server exchanges a group.

use crate::emit::Placed;
use crate::facts::Facts;
use crate::program::Parts;
use hyperslab_layout::{Holdings, Region};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

/// The pieces of one unit, in rising order of the ranks that hold them.
enum Pieces {
    /// Found one by one.
    Regular { array: u32, holdings: Holdings },
    /// Those that this rank was told of, from number `next` on.
    Told { unit: u64, next: usize },
}

/// A piece of a unit: the array's number where it is exposed, and elements.
type Piece = (u32, Region);

impl Pieces {
    fn next(&mut self, facts: &Facts) -> Option<(u32, Piece)> {
        match self {
            Pieces::Regular { array, holdings } => holdings.next().map(|(rank, region)| (rank, (*array, region))),
            Pieces::Told { unit, next } => {
                let met = facts.met.get(unit)?.get(*next)?;
                *next += 1;
                Some((met.rank, (met.exposed, met.region.clone())))
            }
        }
    }
}

/// Ranks that hold something of a group, in rising order, each with its pieces of all units. The pieces of the units are
/// merged on the way, so that memory depends on the units of the group and not on the ranks that share them.
pub(super) struct Clients {
    facts: Arc<Facts>,
    /// By unit of the group, with the piece that comes next.
    units: Vec<(Pieces, Option<Piece>)>,
    /// Rank of the next piece of a unit, and number of the unit.
    heap: BinaryHeap<Reverse<(u32, usize)>>,
}

impl Clients {
    /// Those of units in slots. Of replicated data `replica` says whose turn it is.
    pub(super) fn new(facts: &Arc<Facts>, placed: &[Placed], replica: impl Fn(u64) -> Option<u64>) -> Clients {
        let mut units = Vec::with_capacity(placed.len());
        let mut heap = BinaryHeap::with_capacity(placed.len());
        for (number, placed) in placed.iter().enumerate() {
            let unit = &placed.unit;
            let mut pieces = match placed.ask().spread.regular() {
                Some(distribution) => {
                    let holdings = distribution.holdings(&unit.bounds, replica(unit.number));
                    Pieces::Regular { array: unit.array, holdings }
                }
                None => Pieces::Told { unit: unit.number, next: 0 },
            };
            let first = pieces.next(facts).map(|(rank, piece)| {
                heap.push(Reverse((rank, number)));
                piece
            });
            units.push((pieces, first));
        }
        Clients { facts: facts.clone(), units, heap }
    }

    /// The next rank and its pieces, which lie in the slots of these units.
    pub(super) fn next(&mut self, placed: &[Placed]) -> Option<(u32, Parts)> {
        let Reverse((rank, _)) = *self.heap.peek()?;
        let mut parts = Parts::new();
        while let Some(mut top) = self.heap.peek_mut().filter(|top| top.0.0 == rank) {
            let number = top.0.1;
            let (pieces, next) = &mut self.units[number];
            if let Some((exposed, region)) = next.take() {
                parts.push((exposed, region, placed[number].section()));
            }
            match pieces.next(&self.facts) {
                Some((rank, piece)) => {
                    *next = Some(piece);
                    *top = Reverse((rank, number));
                }
                None => drop(PeekMut::pop(top)),
            }
        }
        Some((rank, parts))
    }
}
