//! The order of the disk, for disk-directed transfers between ranks that serve files.

use crate::machine::Size;
use crate::placing::{DiskLayout, Placing};
use hyperslab_layout::Object;
use hyperslab_plan::profile::{Layout, Profile};
use hyperslab_plan::{Parameters, Transfer, group_places};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The order in which servers that are ranks take the groups of a transfer when each takes those on its own disks, by place
/// on the disk (Kotz 1997, section 4: the list of blocks, sorted). As runs: first group, how many. `lengths` are those of the
/// files of the rehearsal, in their order \[B\].
///
/// Nothing where the order of the file serves as well: where files are contiguous, where ranks do not serve them, and where
/// the servers of the transfer are not the ranks that have the disks.
pub fn disk_order(
    profile: &Profile,
    size: Size,
    (on_disk, seed): (DiskLayout, u64),
    lengths: &[(Object, u64)],
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
) -> Vec<(u64, u64)> {
    let layout = &profile.storage.servers.layout;
    let own: Vec<u32> = (size.ranks - size.servers..size.ranks).collect();
    if !matches!(layout, Layout::Ranks { .. }) || on_disk == DiskLayout::Contiguous || *parameters.servers != *own {
        return Vec::new();
    }
    let (servers, disks) = (size.servers, profile.storage.servers.disks);
    let mut placing = Placing::new(layout.clone(), servers, disks, on_disk, seed);
    let files = files_in_order(lengths);
    let mut in_order: Vec<(u32, u64)> = files.values().copied().collect();
    in_order.sort_unstable();
    in_order.into_iter().for_each(|(_, bytes)| placing.add_file(bytes));
    // By server and disk, the places of its groups and their numbers.
    let mut lists: Vec<Vec<(u64, u64)>> = vec![Vec::new(); servers as usize * disks as usize];
    for (begins, group) in group_places(transfer, parameters).zip(0..) {
        let Some((_, object, at)) = begins else { return Vec::new() };
        let file = files.get(&object).map_or(0, |file| file.0);
        let piece = placing.piece(0, file, at, u64::MAX);
        lists[(piece.server * disks + piece.disk) as usize].push((piece.offset, group));
    }
    lists.iter_mut().for_each(|list| list.sort_unstable());
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| (0..disks).map(move |disk| (turn, disk)));
    let places = turns.flat_map(|(turn, disk)| (0..servers).map(move |server| (turn, server * disks + disk)));
    places.filter_map(|(turn, list)| lists[list as usize].get(turn).map(|&(_, group)| (group, 1))).collect()
}

/// Files by name: number and length, as they are declared.
pub(crate) fn files_in_order(lengths: &[(Object, u64)]) -> BTreeMap<Object, (u32, u64)> {
    let mut files: BTreeMap<Object, (u32, u64)> = BTreeMap::new();
    for (object, bytes) in lengths {
        let next = files.len() as u32;
        let file = files.entry(object.clone()).or_insert((next, 0));
        file.1 = file.1.max(*bytes);
    }
    files
}
