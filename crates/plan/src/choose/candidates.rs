//! Which candidates there are.

use super::choice::Preference;
use super::servers;
use crate::price::Machine;
use crate::profile::{Layout, Measured, Profile};
use crate::strategies::shared_extent;
use crate::strategy::{Infeasible, Strategy};
use crate::transfer::{Ask, Direction, Exchange, Parameters, Transfer};
use hyperslab_layout::Durability;
use std::sync::Arc;

/// Strategies among which the planner chooses, the one that fits most transfers first.
const OPEN: [Strategy; 6] = [
    Strategy::ServerDirected,
    Strategy::Independent,
    Strategy::TwoPhase,
    Strategy::DataSieving,
    Strategy::DiskDirected,
    Strategy::RootGather,
];

/// Those among them whose servers the user may name.
const WITH_SERVERS: [Strategy; 3] = [Strategy::ServerDirected, Strategy::TwoPhase, Strategy::DiskDirected];

/// Smallest and largest subchunks that are tried \[B\].
const SUBCHUNKS: (u64, u64) = (256 << 10, 32 << 20);
/// Buffers that keep a disk busy when its own order is followed.
const DISK_SLOTS: u32 = 4;
/// Subchunks of ranks that move their own elements: nobody waits for those of another rank, so fewer requests are better \[B\].
const OWN_BYTES: u64 = 8 << 20;
/// Subchunks that do for most disks \[B\].
const ON_DISK_BYTES: u64 = 8 << 20;
/// Extents from which on ranks need not share more of a file \[B\] (issue 7935 of MPICH).
const SHARED_EXTENT_BYTES: u64 = 4 << 20;
/// Subchunks of ranks that write to a file whose lock they share: what they copy into a buffer before they have the lock leaves
/// the processor's cache while they have it \[B\]. Runs are longer nowhere, so that all go through the buffer.
const KEPT_BYTES: u64 = 512 << 10;
/// Runs from which on readers read for themselves, and the gaps between them \[B\].
const READ_RUN_BYTES: u64 = 512;
/// Ranks above which everything through one of them is not looked at, unless it is asked for.
const ROOT_RANKS_MAX: u32 = 64;

/// Strategies that are looked at.
pub(super) fn strategies(transfer: &Transfer, profile: &Profile, wish: &Preference) -> Vec<Strategy> {
    let all: &[Strategy] = match wish.strategy {
        Some(forced) => return vec![forced],
        // Who says how many servers there are, or which, wants some.
        None if wish.servers.is_some() || wish.server_ranks.is_some() => &WITH_SERVERS,
        None => &OPEN,
    };
    let past_cache = !wish.cached && passes_cache(transfer, profile);
    all.iter().copied().filter(|&strategy| strategy != Strategy::DiskDirected || past_cache).collect()
}

/// Whether the machine can move something of the transfer past its cache, as far as anybody knows, and its disk alone would
/// not take far longer than the cache: imagined ones can, others where it was measured. Chunks that are coded go through
/// the cache in any case. On a machine at hand others do, too: each is a new file that must be made durable by itself, and
/// ends with a checksum in a part of a page, so what is spared is lost again (16 chunks of 4 MiB on ext4: 1.5 times the time).
fn passes_cache(transfer: &Transfer, profile: &Profile) -> bool {
    let imagined = profile.measured.is_none();
    let plain = |ask: &Ask| ask.stored.codec().is_none() && (imagined || ask.stored.is_in_one_object());
    let durable = transfer.policies.durability > Durability::Cached;
    let known = |measured: &Measured| {
        let files = &measured.files;
        // Seconds a byte.
        let (direct, cached) = match transfer.direction {
            Direction::Write if durable => (files.direct_write_rate, 1.0 / files.write_rate + 1.0 / files.sync_rate),
            Direction::Write => (files.direct_write_rate, 1.0 / files.write_rate),
            Direction::Read => (files.direct_read_rate, 1.0 / files.read_rate),
        };
        direct.is_some_and(|rate| 1.0 / rate <= super::margins::NEAR * cached)
    };
    transfer.asks.iter().any(plain) && profile.measured.as_ref().is_none_or(known)
}

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
    (profile, machine): (&Profile, Machine),
    wish: &Preference,
    strategy: Strategy,
    exchange: Exchange,
) -> Result<Parameters, Infeasible> {
    let mut parameters = Parameters { strategy, exchange, ..Parameters::default() };
    parameters.buffer_bytes_max = wish.buffer_bytes_max.unwrap_or(parameters.buffer_bytes_max);
    parameters.servers = match &wish.server_ranks {
        Some(ranks) => ranks.clone().into(),
        None => servers::spread(wish.servers.unwrap_or_else(|| servers::usual(transfer, machine)), transfer.ranks),
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
        parameters.subchunk_bytes =
            wish.subchunk_bytes.unwrap_or_else(|| usual_subchunk(transfer, profile, &parameters, share));
        match strategy.feasible(transfer, &parameters) {
            Ok(()) => return Ok(parameters),
            Err(no) => refused = refused.or(Some(no)),
        }
    }
    Err(refused.expect("at least one number of slots was tried"))
}

fn usual_subchunk(transfer: &Transfer, profile: &Profile, parameters: &Parameters, share: u64) -> u64 {
    let usual = Parameters::default().subchunk_bytes.min(share);
    match parameters.strategy {
        Strategy::Independent | Strategy::DataSieving => OWN_BYTES.min(share),
        // The disk's answer to each request is waited for, so fewer are better as long as all buffers are used again.
        Strategy::DiskDirected => {
            // Where ranks that serve have the disks, each moves what lies on its own (Kotz 1997, section 4).
            if let Layout::Ranks { unit_bytes } = profile.storage.servers.layout {
                return unit_bytes.min(share);
            }
            let buffers = parameters.servers.len() as u64 * u64::from(parameters.slots.max(1));
            let again = transfer.stored_bytes() / (2 * buffers.max(1));
            again.clamp(usual, ON_DISK_BYTES.max(usual)).min(share)
        }
        Strategy::TwoPhase if parameters.exchange == Exchange::Sharers => {
            let extents = transfer.asks.iter().filter_map(|ask| shared_extent(ask, SHARED_EXTENT_BYTES));
            extents.min().map_or(usual, |shortest| usual.min(shortest))
        }
        _ => usual,
    }
}

/// The same with one parameter changed that the user leaves open.
pub(super) fn variants(transfer: &Transfer, machine: Machine, wish: &Preference, at: &Parameters) -> Vec<Parameters> {
    let mut found = Vec::new();
    let alone = matches!(at.strategy, Strategy::Independent | Strategy::DataSieving | Strategy::RootGather);
    let sharers = at.strategy == Strategy::TwoPhase && at.exchange == Exchange::Sharers;
    if !alone && !sharers && wish.server_ranks.is_none() {
        let some = servers::some(transfer, machine, wish.servers);
        found.extend(some.into_iter().map(|servers| Parameters { servers, ..at.clone() }));
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

/// The same parameters where ranks write to one file for themselves, and copy what they write into a small buffer first.
pub(super) fn kept(transfer: &Transfer, machine: Machine, wish: &Preference, begun: &Parameters) -> Option<Parameters> {
    let own = begun.strategy == Strategy::Independent && shares_a_lock(transfer, machine);
    let smaller = wish.subchunk_bytes.is_none() && begun.subchunk_bytes > KEPT_BYTES;
    let kept = || Parameters { subchunk_bytes: KEPT_BYTES, direct_run_bytes: KEPT_BYTES + 1, ..begun.clone() };
    (own && smaller).then(kept)
}

/// Whether ranks of a node write to one file.
fn shares_a_lock(transfer: &Transfer, machine: Machine) -> bool {
    let in_file = |ask: &Ask| ask.stored.is_in_one_object();
    let writes = transfer.direction == Direction::Write && transfer.asks.iter().any(in_file);
    writes && machine.ranks_per_node.min(transfer.ranks) > 1
}

/// How much there is to understand: of candidates as cheap, the one with less is taken.
pub(super) fn complexity(parameters: &Parameters, ranks: u32) -> (u32, usize, u64) {
    let strategy = match parameters.strategy {
        Strategy::Independent => 0,
        Strategy::ServerDirected => 1,
        Strategy::TwoPhase => 2,
        Strategy::DataSieving => 3,
        Strategy::DiskDirected => 4,
        Strategy::RootGather => 5,
    };
    let usual = Parameters::default();
    let subchunk_bytes = parameters.subchunk_bytes;
    let unusual = match parameters.strategy {
        Strategy::DiskDirected => subchunk_bytes != ON_DISK_BYTES,
        // Larger ones are as simple, as nobody waits for them.
        Strategy::Independent | Strategy::DataSieving => subchunk_bytes < OWN_BYTES,
        _ => subchunk_bytes != usual.subchunk_bytes,
    };
    let odd = u64::from(parameters.slots != usual.slots)
        + u64::from(unusual)
        + u64::from(parameters.exchange != usual.exchange)
        + u64::from(parameters.servers != servers::spread(parameters.servers.len() as u32, ranks));
    (strategy, parameters.servers.len(), odd)
}
