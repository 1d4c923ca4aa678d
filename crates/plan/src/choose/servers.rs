//! Which ranks serve.

use crate::price::Machine;
use crate::rounds::Rounds;
use crate::strategy::{Parameters, Sequence};
use crate::transfer::Transfer;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most servers that are tried, where two a node are not more.
const SERVERS_MAX: u32 = 4096;
/// Most servers of which is asked who holds what they serve, and units that are looked at for all of them together, and
/// holders of each.
const HELD_SERVERS_MAX: usize = 64;
const HELD_UNITS_MAX: usize = 128;
const HELD_UNITS_EACH_MAX: usize = 4;
const HOLDERS_MAX: u64 = 16;

/// Servers that do for most transfers: two writers a node for files, whose lock lets in one at a time, and one a core for
/// chunks.
pub(super) fn usual(transfer: &Transfer, machine: Machine) -> u32 {
    let nodes = transfer.ranks.div_ceil(machine.ranks_per_node.max(1)).max(1);
    let chunked = transfer.asks.iter().any(|ask| ask.stored.chunk().is_some());
    let a_core = nodes.saturating_mul(machine.cores_per_node.max(2));
    if chunked { a_core.min(SERVERS_MAX.max(2 * nodes)) } else { 2 * nodes }
}

/// `servers` ranks at equal distances.
pub(crate) fn spread(servers: u32, ranks: u32) -> Arc<[u32]> {
    let servers = servers.clamp(1, ranks.max(1));
    (0..servers).map(|i| (u64::from(i) * u64::from(ranks) / u64::from(servers)) as u32).collect()
}

/// So many ranks of each node, at equal distances there.
fn on_nodes(each: u32, ranks: u32, machine: Machine) -> Arc<[u32]> {
    let node = machine.ranks_per_node.max(1);
    let firsts = (0..ranks).step_by(node as usize);
    firsts
        .flat_map(|first| {
            spread(each.min(node), node.min(ranks - first)).iter().map(|at| first + at).collect::<Vec<_>>()
        })
        .collect()
}

/// How many servers are on the node that has most of them.
pub(super) fn on_fullest_node(servers: &[u32], machine: Machine) -> u64 {
    let node = machine.ranks_per_node.max(1);
    let mut nodes: Vec<u32> = servers.iter().map(|rank| rank / node).collect();
    nodes.sort_unstable();
    nodes.chunk_by(|a, b| a == b).map(|of_node| of_node.len() as u64).max().unwrap_or(0)
}

/// Servers that are tried: of each number some at equal distances, and one and two of each node where these are others.
pub(super) fn some(transfer: &Transfer, machine: Machine, wanted: Option<u32>) -> Vec<Arc<[u32]>> {
    let ranks = transfer.ranks;
    let counts = wanted.map_or_else(|| counts(transfer, machine), |_| Vec::new());
    let mut found: Vec<Arc<[u32]>> = counts.into_iter().map(|count| spread(count, ranks)).collect();
    let nodes = ranks.div_ceil(machine.ranks_per_node.max(1));
    let few = |each: &u32| each.saturating_mul(nodes) <= SERVERS_MAX.max(2 * nodes) && *each <= machine.ranks_per_node;
    for each in [1, 2].into_iter().filter(few) {
        let servers = on_nodes(each, ranks, machine);
        let fits = wanted.is_none_or(|wanted| wanted as usize == servers.len());
        if fits && servers != spread(servers.len() as u32, ranks) {
            found.push(servers);
        }
    }
    found
}

/// Numbers of servers that are tried: one, some a node, as many as share a core, as many as the mesh has coordinates in a
/// dimension (so that the parts of servers end where those of clients do; Chen et al. 1996, section 3), and all.
fn counts(transfer: &Transfer, machine: Machine) -> Vec<u32> {
    let ranks = transfer.ranks;
    let nodes = ranks.div_ceil(machine.ranks_per_node.max(1)).max(1);
    let mut counts = vec![1, nodes, 2 * nodes, nodes.saturating_mul(machine.cores_per_node), ranks / 2, ranks];
    if let Some(distribution) = transfer.asks.first().and_then(|ask| ask.spread.regular()) {
        counts.extend(distribution.mesh().iter().map(|&extent| extent as u32));
    }
    counts.retain(|&count| count >= 1 && count <= ranks.min(SERVERS_MAX.max(2 * nodes)));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// As many servers as these parameters have, each a rank that holds most of what it would serve, as far as some of it
/// tells; `None` where nobody knows, or where these are the servers already.
pub(super) fn holding(transfer: &Arc<Transfer>, parameters: &Parameters) -> Option<Arc<[u32]>> {
    let count = parameters.servers.len();
    if count > HELD_SERVERS_MAX || transfer.asks.iter().any(|ask| ask.spread.regular().is_none()) {
        return None;
    }
    let domains = parameters.strategy.order() == Sequence::Domains;
    let rounds = Rounds::of(transfer, parameters, 0)?;
    let groups = rounds.units().count().div_ceil(rounds.group_size().max(1));
    let share = groups.div_ceil(count as u64).max(1);
    let looked_at = (HELD_UNITS_MAX / count).clamp(1, HELD_UNITS_EACH_MAX) as u64;
    let mut taken = BTreeSet::new();
    let servers = (0..count as u64).map(|server| {
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        for turn in (0..share).step_by(share.div_ceil(looked_at) as usize) {
            let group = if domains { server * share + turn } else { server + turn * count as u64 };
            if group < groups {
                hold(transfer, &rounds, group * rounds.group_size(), &mut held);
            }
        }
        let most = held.into_iter().filter(|(rank, _)| !taken.contains(rank));
        // Of equals the first.
        let most = most.max_by_key(|&(rank, elements)| (elements, std::cmp::Reverse(rank))).map(|(rank, _)| rank);
        let at_distance = || (u64::from(transfer.ranks) * server / count as u64) as u32;
        let free = || (0..transfer.ranks).map(|by| (at_distance() + by) % transfer.ranks).find(|r| !taken.contains(r));
        let rank = most.or_else(free)?;
        taken.insert(rank);
        Some(rank)
    });
    let servers: Option<Arc<[u32]>> = servers.collect();
    servers.filter(|servers| *servers != parameters.servers)
}

/// Adds how many elements of a unit each rank holds.
fn hold(transfer: &Transfer, rounds: &Rounds, number: u64, held: &mut BTreeMap<u32, u64>) {
    let unit = rounds.units().unit(number);
    let Some(distribution) = transfer.asks[unit.array as usize].spread.regular() else { return };
    let holders = distribution.holders(&unit.bounds, None);
    for at in 0..holders.total().min(HOLDERS_MAX) {
        let rank = holders.get(at);
        *held.entry(rank).or_default() += distribution.piece(rank, &unit.bounds).elements();
    }
}
