//! Disk-directed I/O: subchunks in the order in which they lie on the disk, several of them at the disk at once.
//!
//! Source: Kotz 1997, section 4: each I/O processor sorts the blocks of a request by their physical address, keeps two
//! buffers a disk busy, and moves data between its buffers and the memories of all compute processors as the disk
//! delivers. Here the order is a fact: rank 0 asks the file system where the bytes of a file lie (FIEMAP on Linux) and
//! tells the order of groups with the parameters, so that clients expect them in the same order. Where the file system
//! does not tell, the order is that of the file. Reads and writes bypass the system's cache where it allows it, with as
//! many requests outstanding as there are slots; two slots are the double buffering of the paper.

use crate::facts::Facts;
use crate::program::Program;
use crate::rounds::{Duty, Rounds};
use crate::strategy::Infeasible;
use crate::transfer::{Parameters, Transfer};
use crate::units::Units;
use hyperslab_layout::Object;
use std::sync::Arc;

fn rounds(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Rounds {
    Rounds::new(transfer, parameters, rank, Duty::Turns).directly()
}

pub(super) fn feasible(transfer: &Arc<Transfer>, parameters: &Parameters) -> Result<(), Infeasible> {
    if let Some(group) = misplaced(&parameters.order) {
        return Err(Infeasible {
            reason: format!("the order of the disk names group {group} twice, or passes it over"),
            hint: "name each group once; those behind the last that is named may be left out".into(),
        });
    }
    rounds(transfer, parameters, 0).feasible(parameters)
}

/// The first group that runs (first group, how many) do not name exactly once, though they name later ones.
fn misplaced(order: &[(u64, u64)]) -> Option<u64> {
    let mut runs: Vec<(u64, u64)> = order.iter().copied().filter(|run| run.1 > 0).collect();
    runs.sort_unstable();
    let mut next = 0;
    for (first, count) in runs {
        match first.checked_add(count) {
            Some(end) if first == next => next = end,
            _ => return Some(next.min(first)),
        }
    }
    None
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, facts: &Arc<Facts>, rank: u32) -> Program {
    rounds(transfer, parameters, rank).program(facts)
}

/// Some bytes of an object and where on the disk they lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Offset in the object \[B\].
    pub offset: u64,
    /// Place on the disk \[B\].
    pub physical: u64,
    /// Length \[B\].
    pub bytes: u64,
}

/// Where the first bytes of each group of a transfer lie: the number of its array, the object and the offset in it \[B\];
/// `None` for chunks, which are objects of their own.
pub fn group_places(
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
) -> impl Iterator<Item = Option<(u32, Object, u64)>> {
    let rounds = rounds(transfer, parameters, 0);
    let groups = rounds.units().count().div_ceil(rounds.group_size());
    let transfer = transfer.clone();
    (0..groups).map(move |group| {
        let units: &Units = rounds.units();
        let unit = units.unit(group * rounds.group_size());
        let stored = &transfer.asks[unit.array as usize].stored;
        let (object, _) = stored.object()?;
        Some((unit.array, object, stored.offset_of(&unit.low)?))
    })
}

/// The groups of a transfer in the order in which their first bytes lie on the disk, as runs (first group, how many).
/// `extents` says where an object lies, in rising order of offsets, and is empty where nobody knows; such groups keep
/// the order of the file and come last. Empty when the order of the file is that of the disk.
pub fn physical_order(
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
    mut extents: impl FnMut(&Object) -> Vec<Extent>,
) -> Vec<(u64, u64)> {
    let mut known: Vec<Option<Vec<Extent>>> = vec![None; transfer.asks.len()];
    let mut place = |begins: Option<(u32, Object, u64)>| {
        let Some((array, object, at)) = begins else { return (1, 0) };
        let map = known[array as usize].get_or_insert_with(|| extents(&object));
        let extent = map[..map.partition_point(|extent| extent.offset <= at)].last();
        extent.filter(|extent| at < extent.offset + extent.bytes).map_or((1, 0), |e| (0, e.physical + (at - e.offset)))
    };
    let places = group_places(transfer, parameters).zip(0..);
    let mut order: Vec<((u8, u64), u64)> = places.map(|(begins, group)| (place(begins), group)).collect();
    order.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (_, group) in order {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == group => *count += 1,
            _ => runs.push((group, 1)),
        }
    }
    if runs.len() <= 1 { Vec::new() } else { runs }
}
