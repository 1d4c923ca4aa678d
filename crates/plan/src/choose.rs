//! The rule that chooses a strategy and its parameters, until a model prices them.
//!
//! 1. What the user forces is taken.
//! 2. Otherwise, writing chunks that each lie in one rank, or moving runs of at least 1 MiB of a file: independent.
//! 3. Otherwise server-directed, with two servers a compute node for files and one a core for chunks.
//!
//! The figures come from measurements on one node: pulling into two writers a file beat every other way for short
//! runs, because a buffered write holds the file's lock alone; direct writes equal them from runs of about 1 MiB up.

use crate::strategies::{Infeasible, Strategy};
use crate::transfer::{Ask, Direction, Parameters, Placement, Transfer};
use crate::units::shared_chunk;

/// Runs of a file from which on ranks move them by themselves \[B\].
const LONG_RUN_BYTES: u64 = 1 << 20;

/// What the rule must know of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    /// Ranks on one compute node.
    pub ranks_per_node: u32,
    /// Cores that they share.
    pub cores_per_node: u32,
}

/// What the user wants himself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Preference {
    /// This strategy and no other.
    pub strategy: Option<Strategy>,
    /// This many servers.
    pub servers: Option<u32>,
    /// Most bytes of a subchunk \[B\].
    pub subchunk_bytes: Option<u64>,
    /// Most bytes of buffers on one rank \[B\].
    pub buffer_bytes_max: Option<u64>,
    /// Buffer slots of a server.
    pub slots: Option<u32>,
}

/// Chooses parameters for a transfer.
///
/// # Errors
/// When the strategy that the user forces, or every one, is infeasible.
pub fn choose(transfer: &Transfer, machine: Machine, wish: &Preference) -> Result<Parameters, Infeasible> {
    let mut parameters = Parameters::default();
    parameters.buffer_bytes_max = wish.buffer_bytes_max.unwrap_or(parameters.buffer_bytes_max);
    parameters.slots = wish.slots.unwrap_or(parameters.slots);
    let subchunk = parameters.subchunk_bytes.min(parameters.buffer_bytes_max / u64::from(parameters.slots.max(1)));
    parameters.subchunk_bytes = wish.subchunk_bytes.unwrap_or(subchunk);
    let nodes = transfer.ranks.div_ceil(machine.ranks_per_node.max(1)).max(1);
    let chunked = transfer.asks.iter().any(|ask| matches!(ask.stored.placement, Placement::Chunks { .. }));
    let per_node = if chunked { machine.cores_per_node.max(2) } else { 2 };
    let servers = wish.servers.unwrap_or(nodes * per_node).clamp(1, transfer.ranks);
    parameters.servers = spread(servers, transfer.ranks);
    if let Some(strategy) = wish.strategy {
        parameters.strategy = strategy;
        strategy.feasible(transfer, &parameters)?;
        return Ok(parameters);
    }
    let alone = transfer.asks.iter().all(|ask| suits_independent(ask, transfer.direction));
    let order = if alone {
        [Strategy::Independent, Strategy::ServerDirected]
    } else {
        [Strategy::ServerDirected, Strategy::Independent]
    };
    let mut refused = None;
    for slots in [parameters.slots, 1] {
        parameters.slots = slots;
        for strategy in order {
            parameters.strategy = strategy;
            match strategy.feasible(transfer, &parameters) {
                Ok(()) => return Ok(parameters),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
    }
    Err(refused.expect("each strategy that is not taken gave a reason"))
}

/// `servers` ranks at equal distances.
fn spread(servers: u32, ranks: u32) -> Vec<u32> {
    (0..servers).map(|i| (u64::from(i) * u64::from(ranks) / u64::from(servers)) as u32).collect()
}

fn suits_independent(ask: &Ask, direction: Direction) -> bool {
    match &ask.stored.placement {
        Placement::Chunks { chunk, .. } => {
            // A reader of a part of a chunk reads all of it, so sharing costs as often as there are sharers.
            let alone = direction == Direction::Write || ask.distribution.replication() == 1;
            alone && shared_chunk(ask, chunk).is_none()
        }
        Placement::File { .. } => {
            (direction == Direction::Write || ask.distribution.replication() == 1)
                && file_run(ask, &ask.stored.order) >= LONG_RUN_BYTES
        }
    }
}

/// Length of the runs of the file that rank 0, which holds as much as any rank, has \[B\].
fn file_run(ask: &Ask, order: &[usize]) -> u64 {
    let owned = ask.distribution.owned(0);
    let mut run = ask.stored.element.bytes();
    for &d in order.iter().rev() {
        let triplet = ask.section.dims[d];
        let contiguous = owned.dims[d].terms().iter().map(|term| term.len).min().unwrap_or(0);
        if triplet.count > 1 {
            return run * contiguous.min(triplet.block);
        }
        run = run.saturating_mul(contiguous);
        if contiguous < ask.stored.shape[d] {
            return run;
        }
    }
    run
}
