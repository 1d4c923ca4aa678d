//! Arrays of a transfer that are alike, of which some are priced for all.

use super::terms::Memory;
use super::tiles::Tiles;
use crate::transfer::{Spread, Transfer, TransferArray};
use hyperslab_layout::{Dim, Distribution};
use std::sync::Arc;

/// Most arrays that are priced for all others.
const ARRAYS_MAX: usize = 64;

/// Arrays alike.
pub(super) struct Class {
    /// A transfer of some of them.
    pub(super) some: Arc<Transfer>,
    /// Their numbers among all.
    pub(super) members: Vec<usize>,
    /// By how much all of them are more.
    pub(super) times: f64,
    /// Of arrays in pieces that no closed form describes, what these are taken to be, by array.
    pub(super) tiles: Vec<Option<Tiles>>,
}

/// Most classes; arrays that fit none of so many are taken for the last.
const KINDS_MAX: usize = 32;

/// The classes of a transfer, in the order of their first arrays.
pub(super) fn of(transfer: &Arc<Transfer>, memory: Memory<'_>) -> Vec<Class> {
    let explicit = transfer.asks.iter().any(|ask| ask.spread == Spread::Explicit);
    let [first, rest @ ..] = transfer.asks.as_slice() else { return Vec::new() };
    if !explicit && rest.is_empty() {
        return vec![Class { some: transfer.clone(), members: vec![0], times: 1.0, tiles: vec![None] }];
    }
    let mut kinds: Vec<(&TransferArray, Vec<usize>)> = vec![(first, vec![0])];
    for (number, ask) in transfer.asks.iter().enumerate().skip(1) {
        let last = if kinds.len() == KINDS_MAX { Some(KINDS_MAX - 1) } else { None };
        match kinds.iter().position(|(kind, _)| kind.is_like(ask)).or(last) {
            Some(at) => kinds[at].1.push(number),
            None => kinds.push((ask, vec![number])),
        }
    }
    kinds.into_iter().map(|(_, members)| class(transfer, &members, memory)).collect()
}

fn class(transfer: &Arc<Transfer>, members: &[usize], memory: Memory<'_>) -> Class {
    let taken = &members[..members.len().min(ARRAYS_MAX)];
    let tiles = |&number: &usize| {
        let ask = transfer.asks.get(number).filter(|ask| ask.spread == Spread::Explicit)?;
        Tiles::of(ask, transfer.ranks, &memory(number).filter(|laid| !laid.scattered)?)
    };
    let tiles: Vec<Option<Tiles>> = taken.iter().map(tiles).collect();
    let ask = |(&number, tiles): (&usize, &Option<Tiles>)| {
        let ask = &transfer.asks[number];
        let run = || memory(number).filter(|laid| laid.scattered).and_then(|laid| laid.held.first().copied());
        let in_turns = || in_turns(ask, transfer.ranks, run()?);
        if tiles.is_some() { ask.clone() } else { in_turns().unwrap_or_else(|| in_closed_form(ask, transfer.ranks)) }
    };
    let asks = taken.iter().zip(&tiles).map(ask).collect();
    let some = Arc::new(Transfer { asks, ..transfer.of_no_array() });
    Class { some, members: taken.to_vec(), times: members.len() as f64 / taken.len() as f64, tiles }
}

impl Transfer {
    /// The same of no array.
    pub(super) fn of_no_array(&self) -> Transfer {
        Transfer { direction: self.direction, asks: Vec::new(), ranks: self.ranks, policies: self.policies }
    }
}

/// The same array, where runs of lists are as long as this: as if ranks took turns along the fastest dimension that has a run for
/// each. No rank holds more of storage in one piece than a run, as with a list.
fn in_turns(ask: &TransferArray, ranks: u32, run: u64) -> Option<TransferArray> {
    if ask.spread != Spread::Explicit {
        return None;
    }
    let shape = ask.section.shape();
    let (mut along, mut left) = (None, run.max(1));
    for &d in ask.stored.order().iter().rev() {
        if shape[d] / left >= u64::from(ranks.max(2)) {
            along = Some(d);
            break;
        }
        // What is longer than a row is so many whole ones.
        left = (left / shape[d].max(1)).max(1);
    }
    let along = along?;
    let dims: Vec<Dim> = (0..shape.len()).map(|d| if d == along { Dim::Cyclic(left) } else { Dim::Whole }).collect();
    let turns = Distribution::new(&shape, &[u64::from(ranks.max(1))], &dims).ok()?;
    Some(TransferArray { spread: Spread::Regular(turns), ..ask.clone() })
}

/// The same array, held in equal slabs where nobody knows anything of who holds what.
fn in_closed_form(ask: &TransferArray, ranks: u32) -> TransferArray {
    if ask.spread != Spread::Explicit {
        return ask.clone();
    }
    let shape = ask.section.shape();
    // Along the slowest dimension that is long enough, or the longest.
    let order = ask.stored.order();
    let long = order.iter().copied().find(|&d| shape[d] >= u64::from(ranks));
    let along = long.or_else(|| order.iter().copied().max_by_key(|&d| shape[d]));
    let dims: Vec<Dim> = (0..shape.len()).map(|d| if Some(d) == along { Dim::Block } else { Dim::Whole }).collect();
    let mesh: &[u64] = if along.is_some() { &[u64::from(ranks)] } else { &[] };
    let slabs = Distribution::new(&shape, mesh, &dims);
    let spread = slabs.map_or_else(|_| ask.spread.clone(), Spread::Regular);
    TransferArray { spread, ..ask.clone() }
}
