//! Facts: what a rank learns of pieces that no closed form describes.
//!
//! Boxes of an adaptive mesh and element maps are known to the rank that holds them. Before the data move, each rank
//! tells the servers that handle a unit which of its pieces lie in it, and nobody else. A server checks what it was told
//! for overlaps before the first write.

use crate::transfer::{Spread, Transfer};
use hyperslab_layout::{Object, Region};
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

/// A small object that is written besides, such as the metadata of a new array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beside {
    /// The object, which is not there.
    pub object: Object,
    /// What it holds.
    pub bytes: Arc<[u8]>,
}

/// What one rank knows of the arrays whose spread is [`Spread::Explicit`], and what is written besides arrays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// This rank's own pieces, by array.
    pub mine: BTreeMap<u32, Vec<Mine>>,
    /// What it was told of, by unit: in the order of ranks and of their arrays.
    pub met: BTreeMap<u64, Vec<Met>>,
    /// What the ranks that handle storage write besides, in turns.
    pub beside: Arc<[Beside]>,
}

impl Facts {
    /// Facts of a rank that holds these pieces and was told of nothing.
    pub fn of_mine(mine: BTreeMap<u32, Vec<Mine>>) -> Facts {
        Facts { mine, ..Facts::default() }
    }

    /// The pieces that `rank` holds of an array: known for itself, or for all where a closed form says so.
    pub(crate) fn pieces(&self, transfer: &Transfer, array: u32, rank: u32) -> Vec<Mine> {
        match &transfer.asks[array as usize].spread {
            Spread::Regular(distribution) => vec![Mine { exposed: array, region: distribution.owned(rank) }],
            Spread::Explicit => self.mine.get(&array).cloned().unwrap_or_default(),
        }
    }

    /// Takes in what a rank told.
    pub fn hear(&mut self, from: u32, told: Told) {
        let mut mixed: BTreeSet<u64> = BTreeSet::new();
        let order = |met: &Met| (met.rank, met.exposed);
        for (unit, exposed, region) in told {
            let (met, one) = (self.met.entry(unit).or_default(), Met { rank: from, exposed, region });
            // Ranks are mostly heard in their order, and tell of their arrays in theirs.
            if met.last().is_some_and(|last| order(last) > order(&one)) {
                mixed.insert(unit);
            }
            met.push(one);
        }
        for unit in mixed {
            self.met.entry(unit).or_default().sort_by_key(order);
        }
    }
}
