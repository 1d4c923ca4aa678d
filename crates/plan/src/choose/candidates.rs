//! Which candidates there are.

use super::choice::{NodeBudget, Preference};
use super::servers;
use crate::price::Machine;
use crate::profile::Profile;
use crate::strategy::{Infeasible, Parameters, READ_RUN_BYTES, Role, SUBCHUNKS, Sequence, Spec, Strategy};
use crate::transfer::{Direction, Exchange, Transfer};
use std::sync::Arc;

/// Those of some strategies that are looked at.
pub(super) fn strategies(
    all: &[Strategy],
    transfer: &Transfer,
    profile: &Profile,
    hints: &Preference,
) -> Vec<Strategy> {
    if let Some(forced) = hints.strategy {
        return vec![forced];
    }
    // Who says how many servers there are, or which, wants some.
    let with_servers = hints.servers.is_some() || hints.server_ranks.is_some();
    let suits = |spec: &Spec| !with_servers || spec.role == Role::Servers;
    let may = |spec: &Spec| !(hints.cached && spec.order == Sequence::Disk) && (spec.worth)(transfer, profile);
    all.iter().copied().filter(|strategy| suits(strategy.spec()) && may(strategy.spec())).collect()
}

/// Exchanges that a strategy has.
pub(super) fn exchanges(strategy: Strategy, hints: &Preference) -> Vec<Exchange> {
    let all = strategy.spec().exchanges;
    // What was asked for by name is the method as it is known.
    let open = hints.strategy.is_none() && hints.servers.is_none() && hints.server_ranks.is_none();
    match hints.exchange {
        Some(exchange) => vec![exchange],
        None if open => all.to_vec(),
        None => all[..1].to_vec(),
    }
}

/// Most bytes of buffers on a rank that handles storage \[B\].
pub(super) fn budget((ranks, machine): (u32, Machine), hints: &Preference, parameters: &Parameters) -> u64 {
    let most = hints.buffer_bytes_max.unwrap_or(Parameters::default().buffer_bytes_max);
    let Some(NodeBudget { bytes, least_bytes }) = hints.node_budget.filter(|_| hints.buffer_bytes_max.is_none()) else {
        return most;
    };
    let sharing = match parameters.role() {
        Role::Root => 1,
        Role::Own | Role::Holders => u64::from(machine.ranks_per_node.min(ranks)),
        Role::Servers => servers::on_fullest_node(&parameters.servers, machine),
    };
    (bytes / sharing.max(1)).max(least_bytes).min(most)
}

/// The parameters that a strategy begins with, within the budget.
pub(super) fn first(
    transfer: &Arc<Transfer>,
    (profile, machine): (&Profile, Machine),
    hints: &Preference,
    strategy: Strategy,
    exchange: Exchange,
) -> Result<Parameters, Infeasible> {
    let mut parameters = Parameters { strategy, exchange, ..Parameters::default() };
    parameters.servers = match &hints.server_ranks {
        Some(ranks) => ranks.clone().into(),
        None => servers::spread(hints.servers.unwrap_or_else(|| servers::usual(transfer, machine)), transfer.ranks),
    };
    if transfer.direction == Direction::Read {
        // What is mapped is copied by the processor, however short its runs are.
        parameters.direct_run_bytes = if machine.maps_files { 1 } else { READ_RUN_BYTES };
    }
    parameters.buffer_bytes_max = budget((transfer.ranks, machine), hints, &parameters);
    let spec = strategy.spec();
    let slots: Vec<u32> = hints.slots.map_or_else(|| vec![spec.slots, 1], |slots| vec![slots]);
    let mut refused = None;
    for slots in slots {
        parameters.slots = slots;
        let share = parameters.buffer_bytes_max / u64::from(slots.max(1));
        parameters.subchunk_bytes =
            hints.subchunk_bytes.unwrap_or_else(|| (spec.subchunk)(transfer, profile, &parameters, share));
        match strategy.feasible(transfer, &parameters) {
            Ok(()) => return Ok(parameters),
            Err(no) => refused = refused.or(Some(no)),
        }
    }
    Err(refused.expect("at least one number of slots was tried"))
}

/// The same with one parameter changed that the user leaves open; of a transfer of so many bytes, of which `transfer` has one
/// array of each kind. More servers have smaller subchunks where there would be fewer subchunks than servers.
pub(super) fn variants(
    (transfer, bytes): (&Transfer, u64),
    machine: Machine,
    hints: &Preference,
    at: &Parameters,
) -> Vec<Parameters> {
    let mut found = Vec::new();
    let role = at.role();
    if role == Role::Servers && hints.server_ranks.is_none() {
        let subchunks = bytes.div_ceil(at.subchunk_bytes.max(1));
        let for_each = |servers: &[u32]| match servers.len() as u64 {
            count if hints.subchunk_bytes.is_none() && count > subchunks => {
                (1 << (bytes / count).max(1).ilog2()).max(SUBCHUNKS.0).min(at.subchunk_bytes)
            }
            _ => at.subchunk_bytes,
        };
        let some = servers::some(transfer, machine, hints.servers);
        found.extend(some.into_iter().map(|servers| Parameters {
            subchunk_bytes: for_each(&servers),
            servers,
            ..at.clone()
        }));
    }
    if hints.subchunk_bytes.is_none() {
        let sizes = [at.subchunk_bytes / 2, at.subchunk_bytes * 2, at.subchunk_bytes / 4, at.subchunk_bytes * 4];
        let sizes = sizes.into_iter().filter(|&bytes| bytes >= SUBCHUNKS.0 && bytes <= SUBCHUNKS.1);
        found.extend(sizes.map(|subchunk_bytes| Parameters { subchunk_bytes, ..at.clone() }));
    }
    found.extend((at.strategy.spec().variants)(at));
    if hints.slots.is_none() && at.slots == 2 {
        found.extend(other_slots(transfer, machine, hints, at));
    }
    found
}

/// The same with another number of slots. Who copies out of what the system's cache holds waits for nothing, so that a second
/// slot only takes the room of a larger subchunk.
fn other_slots(transfer: &Transfer, machine: Machine, hints: &Preference, at: &Parameters) -> Vec<Parameters> {
    match at.role() {
        Role::Servers | Role::Holders => vec![Parameters { slots: 4, ..at.clone() }],
        Role::Own if machine.maps_files && transfer.direction == Direction::Read => {
            let larger = hints.subchunk_bytes.is_none().then_some(2 * at.subchunk_bytes);
            let sizes = [Some(at.subchunk_bytes), larger.filter(|&bytes| bytes <= SUBCHUNKS.1)];
            let one = |subchunk_bytes| Parameters { slots: 1, subchunk_bytes, ..at.clone() };
            sizes.into_iter().flatten().map(one).collect()
        }
        Role::Own | Role::Root => Vec::new(),
    }
}

/// Other parameters that a strategy begins with besides, if the user leaves that open.
pub(super) fn besides(
    transfer: &Transfer,
    machine: Machine,
    hints: &Preference,
    begun: &Parameters,
) -> Option<Parameters> {
    let other = (begun.strategy.spec().besides)(transfer, machine, begun)?;
    (hints.subchunk_bytes.is_none() || other.subchunk_bytes == begun.subchunk_bytes).then_some(other)
}

/// How much there is to understand: of candidates as cheap, the one with less is taken.
pub(super) fn complexity(parameters: &Parameters, ranks: u32) -> (u32, usize, u64) {
    let (usual, spec) = (Parameters::default(), parameters.strategy.spec());
    let (subchunk, or_longer) = spec.usual_subchunk;
    let unusual = parameters.subchunk_bytes < subchunk || parameters.subchunk_bytes > subchunk && !or_longer;
    let odd = u64::from(parameters.slots != usual.slots)
        + u64::from(unusual)
        + u64::from(parameters.exchange != usual.exchange)
        + u64::from(parameters.servers != servers::spread(parameters.servers.len() as u32, ranks));
    (spec.complexity, parameters.servers.len(), odd)
}
