//! Disk-directed I/O: subchunks in the order in which they lie on the disk, several of them at the disk at once.
//!
//! Source: Kotz 1997, section 4: each I/O processor sorts the blocks of a request by their physical address, keeps two
//! buffers a disk busy, and moves data between its buffers and the memories of all compute processors as the disk
//! delivers. Here the order is a fact: rank 0 asks the file system where the bytes of a file lie (FIEMAP on Linux) and
//! tells the order of groups with the parameters, so that clients expect them in the same order. Where the file system
//! does not tell, the order is that of the file. Reads and writes bypass the system's cache where it allows it, with as
//! many requests outstanding as there are slots; two slots are the double buffering of the paper.

use crate::choose::NEAR;
use crate::profile::{Layout, Measured, Profile};
use crate::rounds::{Duty, Rounds};
use crate::strategy::{Infeasible, Parameters, Sequence, Spec};
use crate::transfer::{Direction, Transfer, TransferArray};
use crate::units::Units;
use hyperslab_layout::{Durability, Object};
use std::sync::Arc;

/// Subchunks that do for most disks \[B\].
const SUBCHUNK_BYTES: u64 = 8 << 20;

pub(super) const SPEC: Spec = Spec {
    name: "disk-directed",
    about: "as server-directed, in the order of the disk and by direct I/O",
    order: Sequence::Disk,
    complexity: 4,
    feasible: |transfer, parameters| {
        if let Some(group) = misplaced(&parameters.order) {
            return Err(Infeasible {
                reason: format!("the order of the disk names group {group} twice, or passes it over"),
                hint: "name each group once; those behind the last that is named may be left out".into(),
            });
        }
        (Spec::SERVED.feasible)(transfer, parameters)
    },
    worth: passes_cache,
    // They keep a disk busy when its own order is followed.
    slots: 4,
    subchunk,
    usual_subchunk: (SUBCHUNK_BYTES, false),
    tells_layouts: false,
    ..Spec::SERVED
};

/// The disk's answer to each request is waited for, so fewer are better as long as all buffers are used again.
fn subchunk(transfer: &Transfer, profile: &Profile, parameters: &Parameters, share: u64) -> u64 {
    // Where ranks that serve have the disks, each moves what lies on its own (Kotz 1997, section 4).
    if let Layout::Ranks { unit_bytes } = profile.storage.servers.layout {
        return unit_bytes.min(share);
    }
    let usual = (Spec::SERVED.subchunk)(transfer, profile, parameters, share);
    let buffers = parameters.servers.len() as u64 * u64::from(parameters.slots.max(1));
    let again = transfer.stored_bytes() / (2 * buffers.max(1));
    again.clamp(usual, SUBCHUNK_BYTES.max(usual)).min(share)
}

/// Whether the machine can move something of the transfer by direct I/O, as far as anybody knows, and its disk alone would
/// not take far longer than the cache: imagined ones can, others where it was measured. Chunks that are coded go through
/// the cache in any case. On a real machine others do, too: each is a new file that must be made durable by itself, and
/// ends with a checksum in a part of a page, so what is spared is lost again (16 chunks of 4 MiB on ext4: 1.5 times the time).
fn passes_cache(transfer: &Transfer, profile: &Profile) -> bool {
    let imagined = profile.measured.is_none();
    let plain = |ask: &TransferArray| ask.stored.codec().is_none() && (imagined || ask.stored.is_in_one_object());
    let durable = transfer.policies.durability > Durability::Cached;
    let known = |measured: &Measured| {
        let files = &measured.files;
        // Seconds a byte.
        let (direct, cached) = match transfer.direction {
            Direction::Write if durable => (files.direct_write_rate, 1.0 / files.write_rate + 1.0 / files.sync_rate),
            Direction::Write => (files.direct_write_rate, 1.0 / files.write_rate),
            Direction::Read => (files.direct_read_rate, 1.0 / files.read_rate),
        };
        direct.is_some_and(|rate| 1.0 / rate <= NEAR * cached)
    };
    transfer.asks.iter().any(plain) && profile.measured.as_ref().is_none_or(known)
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
    let rounds = Rounds::new(transfer, parameters, 0, Duty::Turns);
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
