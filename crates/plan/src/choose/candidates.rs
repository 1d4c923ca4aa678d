//! Which candidates there are.

use super::{Machine, Preference};
use crate::strategies::{Infeasible, Strategy, shared_extent};
use crate::transfer::{Direction, Exchange, Parameters, Placement, Transfer};
use std::sync::Arc;

/// Strategies among which the planner chooses, the one that fits most transfers first. Disk-directed I/O follows the order
/// of the disk, which must be asked of it, so it is for those who ask for it.
pub(super) const OPEN: [Strategy; 5] =
    [Strategy::ServerDirected, Strategy::Independent, Strategy::TwoPhase, Strategy::DataSieving, Strategy::RootGather];

/// Those among them whose servers the user may name.
pub(super) const WITH_SERVERS: [Strategy; 2] = [Strategy::ServerDirected, Strategy::TwoPhase];

/// Smallest and largest subchunks that are tried \[B\].
const SUBCHUNKS: (u64, u64) = (256 << 10, 32 << 20);
/// Buffers that keep a disk busy when its own order is followed.
const DISK_SLOTS: u32 = 4;
/// Extents from which on ranks need not share more of a file \[B\] (issue 7935 of MPICH).
const SHARED_EXTENT_BYTES: u64 = 4 << 20;
/// Runs from which on readers read for themselves, and the gaps between them \[B\].
const READ_RUN_BYTES: u64 = 512;
/// Most servers that are tried, where two a node are not more.
const SERVERS_MAX: u32 = 4096;
/// Ranks above which everything through one of them is not looked at, unless it is asked for.
const ROOT_RANKS_MAX: u32 = 64;

/// Exchanges that a strategy has.
pub(super) fn exchanges(strategy: Strategy, wish: &Preference) -> Vec<Exchange> {
    match (strategy, wish.exchange) {
        (Strategy::TwoPhase, Some(exchange)) => vec![exchange],
        // What was asked for by name is the method as it is known.
        (Strategy::TwoPhase, None)
            if wish.strategy.is_none() && wish.servers.is_none() && wish.server_ranks.is_none() =>
        {
            Exchange::ALL.to_vec()
        }
        (_, exchange) => vec![exchange.unwrap_or(Exchange::All)],
    }
}

/// The parameters that a strategy begins with, within the budget.
pub(super) fn first(
    transfer: &Arc<Transfer>,
    machine: Machine,
    wish: &Preference,
    strategy: Strategy,
    exchange: Exchange,
) -> Result<Parameters, Infeasible> {
    let mut parameters = Parameters { strategy, exchange, ..Parameters::default() };
    parameters.buffer_bytes_max = wish.buffer_bytes_max.unwrap_or(parameters.buffer_bytes_max);
    parameters.servers = match &wish.server_ranks {
        Some(ranks) => ranks.clone().into(),
        None => spread(wish.servers.unwrap_or_else(|| usual_servers(transfer, machine)), transfer.ranks),
    };
    if wish.strategy.is_none() && strategy == Strategy::RootGather && transfer.ranks > ROOT_RANKS_MAX {
        return Err(Infeasible {
            reason: format!("of {} ranks, all others would wait for rank 0", transfer.ranks),
            hint: "ask for this strategy by name to see what it costs".into(),
        });
    }
    if transfer.direction == Direction::Read {
        parameters.direct_run_bytes = READ_RUN_BYTES;
    }
    let usual = if strategy == Strategy::DiskDirected { DISK_SLOTS } else { parameters.slots };
    let slots: Vec<u32> = wish.slots.map_or_else(|| vec![usual, 1], |slots| vec![slots]);
    let mut refused = None;
    for slots in slots {
        parameters.slots = slots;
        let share = parameters.buffer_bytes_max / u64::from(slots.max(1));
        parameters.subchunk_bytes = wish.subchunk_bytes.unwrap_or_else(|| usual_subchunk(transfer, &parameters, share));
        match strategy.feasible(transfer, &parameters) {
            Ok(()) => return Ok(parameters),
            Err(no) => refused = refused.or(Some(no)),
        }
    }
    Err(refused.expect("at least one number of slots was tried"))
}

/// Servers that do for most transfers: two writers a node for files, whose lock lets in one at a time, and one a core for
/// chunks.
fn usual_servers(transfer: &Transfer, machine: Machine) -> u32 {
    let nodes = transfer.ranks.div_ceil(machine.ranks_per_node.max(1)).max(1);
    let chunked = transfer.asks.iter().any(|ask| matches!(ask.stored.placement, Placement::Chunks { .. }));
    let a_core = nodes.saturating_mul(machine.cores_per_node.max(2));
    if chunked { a_core.min(SERVERS_MAX.max(2 * nodes)) } else { 2 * nodes }
}

fn usual_subchunk(transfer: &Transfer, parameters: &Parameters, share: u64) -> u64 {
    let usual = Parameters::default().subchunk_bytes.min(share);
    match parameters.strategy {
        // Nobody waits for a subchunk of another rank, so fewer requests are better.
        Strategy::Independent | Strategy::DataSieving => (4 * usual).min(share),
        Strategy::TwoPhase if parameters.exchange == Exchange::Sharers => {
            let extents = transfer.asks.iter().filter_map(|ask| shared_extent(ask, SHARED_EXTENT_BYTES));
            extents.min().map_or(usual, |shortest| usual.min(shortest))
        }
        _ => usual,
    }
}

/// `servers` ranks at equal distances.
pub(super) fn spread(servers: u32, ranks: u32) -> Arc<[u32]> {
    let servers = servers.clamp(1, ranks.max(1));
    (0..servers).map(|i| (u64::from(i) * u64::from(ranks) / u64::from(servers)) as u32).collect()
}

/// The same with one parameter changed that the user leaves open.
pub(super) fn variants(transfer: &Transfer, machine: Machine, wish: &Preference, at: &Parameters) -> Vec<Parameters> {
    let mut found = Vec::new();
    let alone = matches!(at.strategy, Strategy::Independent | Strategy::DataSieving | Strategy::RootGather);
    let sharers = at.strategy == Strategy::TwoPhase && at.exchange == Exchange::Sharers;
    if !alone && !sharers && wish.servers.is_none() && wish.server_ranks.is_none() {
        let counts = server_counts(transfer, machine);
        found.extend(
            counts.into_iter().map(|count| Parameters { servers: spread(count, transfer.ranks), ..at.clone() }),
        );
    }
    if wish.subchunk_bytes.is_none() {
        let share = at.buffer_bytes_max / u64::from(at.slots.max(1));
        let sizes = [at.subchunk_bytes / 2, at.subchunk_bytes * 2, at.subchunk_bytes / 4, at.subchunk_bytes * 4];
        let sizes = sizes.into_iter().filter(|&bytes| bytes >= SUBCHUNKS.0 && bytes <= SUBCHUNKS.1.min(share));
        found.extend(sizes.map(|subchunk_bytes| Parameters { subchunk_bytes, ..at.clone() }));
    }
    if at.strategy == Strategy::Independent {
        let other = if at.direct_run_bytes == READ_RUN_BYTES { 64 << 10 } else { READ_RUN_BYTES };
        found.push(Parameters { direct_run_bytes: other, ..at.clone() });
    }
    if wish.slots.is_none() && at.slots == 2 && !alone {
        found.push(Parameters { slots: 4, ..at.clone() });
    }
    found
}

/// Numbers of servers that are tried: one, some a node, as many as share a core, as many as the mesh has coordinates in a
/// dimension (so that the parts of servers end where those of clients do; Chen et al. 1996, section 3), and all.
fn server_counts(transfer: &Transfer, machine: Machine) -> Vec<u32> {
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

/// How much there is to understand: of candidates as cheap, the one with less is taken.
pub(super) fn complexity(parameters: &Parameters) -> (u32, usize, u64) {
    let strategy = match parameters.strategy {
        Strategy::Independent => 0,
        Strategy::ServerDirected => 1,
        Strategy::TwoPhase => 2,
        Strategy::DataSieving => 3,
        Strategy::DiskDirected => 4,
        Strategy::RootGather => 5,
    };
    let usual = Parameters::default();
    let odd = u64::from(parameters.slots != usual.slots)
        + u64::from(parameters.subchunk_bytes.abs_diff(usual.subchunk_bytes) > 0)
        + u64::from(parameters.exchange != usual.exchange);
    (strategy, parameters.servers.len(), odd)
}
