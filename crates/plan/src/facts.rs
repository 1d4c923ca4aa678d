//! Facts: what a rank learns of pieces that no closed form describes.
//!
//! Boxes of an adaptive mesh and element maps are known to the rank that holds them. Before the data move, each rank
//! tells the servers that handle a unit which of its pieces lie in it, and nobody else. A server checks what it was told
//! for overlaps before the first write.

use crate::rounds::Rounds;
use crate::strategies::Strategy;
use crate::transfer::{Direction, Parameters, Spread, Transfer};
use hyperslab_layout::{IndexSet, Overlapping, Region};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One of a rank's own pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mine {
    /// Number under which the array that holds it is exposed on this rank.
    pub exposed: u32,
    /// Its elements.
    pub region: Region,
}

/// A rank's piece, as far as it lies in one unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Met {
    /// The rank that holds it.
    pub rank: u32,
    /// Number under which the array that holds it is exposed there.
    pub exposed: u32,
    /// Its elements in the unit.
    pub region: Region,
}

/// What one rank tells a server: units and its pieces in them.
pub type Told = Vec<(u64, u32, Region)>;

/// What one rank knows of the arrays whose spread is [`Spread::Explicit`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// This rank's own pieces, by array.
    pub mine: BTreeMap<u32, Vec<Mine>>,
    /// What it was told of, by unit: in the order of ranks and of their arrays.
    pub met: BTreeMap<u64, Vec<Met>>,
}

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

impl Facts {
    /// Facts of a rank that holds these pieces and was told of nothing.
    pub fn of_mine(mine: BTreeMap<u32, Vec<Mine>>) -> Facts {
        Facts { mine, met: BTreeMap::new() }
    }

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

    /// The pieces that `rank` holds of an array: known for itself, or for all where a closed form says so.
    pub(crate) fn pieces(&self, transfer: &Transfer, array: u32, rank: u32) -> Vec<Mine> {
        match &transfer.asks[array as usize].spread {
            Spread::Regular(distribution) => vec![Mine { exposed: array, region: distribution.owned(rank) }],
            Spread::Explicit => self.mine.get(&array).cloned().unwrap_or_default(),
        }
    }

    /// What `rank` has to tell, by the server that must know.
    pub fn to_tell(&self, transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> BTreeMap<u32, Told> {
        let mut told: BTreeMap<u32, Told> = BTreeMap::new();
        let alone = matches!(parameters.strategy, Strategy::Independent | Strategy::DataSieving);
        if alone && transfer.direction == Direction::Read {
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

    /// Takes in what a rank told.
    pub fn hear(&mut self, from: u32, told: Told) {
        let mut units: Vec<u64> = told.iter().map(|told| told.0).collect();
        for (unit, exposed, region) in told {
            self.met.entry(unit).or_default().push(Met { rank: from, exposed, region });
        }
        units.sort_unstable();
        units.dedup();
        for unit in units {
            self.met.entry(unit).or_default().sort_by_key(|met| (met.rank, met.exposed));
        }
    }

    /// The first overlap among the pieces that this rank was told of, when the transfer writes and refuses it.
    pub fn overlap(&self, transfer: &Arc<Transfer>, parameters: &Parameters) -> Option<Overlap> {
        if transfer.direction == Direction::Read || transfer.policies.overlapping == Overlapping::Any {
            return None;
        }
        let rounds = Rounds::checking(transfer, parameters, 0);
        self.met.iter().find_map(|(&unit, met)| {
            let (first, second, region) = overlapping(met)?;
            let at = region.dims.iter().map(|set| set.hull().map_or(0, |(low, _)| low)).collect();
            Some(Overlap { array: rounds.units().unit(unit).array, ranks: (first.rank, second.rank), at })
        })
    }
}

/// Two pieces of one unit that overlap, and where. Pieces are swept along the dimension in which they begin at the most
/// different places, so that few that lie apart are compared.
fn overlapping(met: &[Met]) -> Option<(&Met, &Met, Region)> {
    let hull = |met: &Met, d: usize| met.region.dims.get(d).and_then(IndexSet::hull).unwrap_or((0, 1));
    let places = |d: usize| met.iter().map(|met| hull(met, d).0).collect::<BTreeSet<u64>>().len();
    let d = (0..met.first()?.region.ndim()).rev().max_by_key(|&d| places(d)).unwrap_or(0);
    let mut order: Vec<&Met> = met.iter().collect();
    order.sort_by_key(|met| hull(met, d).0);
    let mut open: Vec<&Met> = Vec::new();
    for met in order {
        let low = hull(met, d).0;
        open.retain(|other| hull(other, d).1 > low);
        for other in &open {
            let both = met.region.intersect(&other.region);
            if !both.is_empty() {
                return Some((other, met, both));
            }
        }
        open.push(met);
    }
    None
}
