//! The rule that chooses a strategy and its parameters, until a model prices them.
//!
//! 1. What the user forces is taken.
//! 2. Otherwise, moving chunks that each lie in one rank, or moving runs of at least 1 MiB of a file: independent.
//! 3. Likewise reading runs of at least 512 B that are at least a quarter of what lies between them.
//! 4. Otherwise server-directed, with two servers a compute node for files and one a core for chunks.
//!
//! Pieces that no closed form describes count as short runs.
//!
//! The figures come from measurements on one node: pulling into two writers a file beat every other way for short
//! runs, because a buffered write holds the file's lock alone; direct writes equal them from runs of about 1 MiB up.
//! Reads need no lock, and reading along a gap costs less than sending what fills it elsewhere.

use crate::strategies::{Infeasible, Strategy, shared_extent};
use crate::transfer::{Ask, Direction, Exchange, Parameters, Placement, Transfer};
use crate::units::shared_chunk;
use hyperslab_layout::Distribution;
use std::sync::Arc;

/// Runs of a file from which on ranks move them by themselves \[B\].
const LONG_RUN_BYTES: u64 = 1 << 20;

/// Runs of a file from which on readers read them, and the gaps between them, by themselves \[B\].
const SIEVED_RUN_BYTES: u64 = 512;
/// Largest share of gaps in what a reader reads.
const SIEVED_GAPS_MAX: u64 = 4;

/// Buffers that keep a disk busy when its own order is followed.
const DISK_SLOTS: u32 = 4;
/// Extents from which on ranks need not share more of a file \[B\] (issue 7935 of MPICH).
const SHARED_EXTENT_BYTES: u64 = 4 << 20;

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
    /// Between whom data cross in two-phase I/O.
    pub exchange: Option<Exchange>,
}

/// What was chosen, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The strategy and its parameters.
    pub parameters: Parameters,
    /// The case of the rule that led to them, for people.
    pub why: String,
}

/// Chooses parameters for a transfer.
///
/// # Errors
/// When the strategy that the user forces, or every one, is infeasible.
pub fn choose(transfer: &Arc<Transfer>, machine: Machine, wish: &Preference) -> Result<Parameters, Infeasible> {
    choose_telling(transfer, machine, wish).map(|choice| choice.parameters)
}

/// As [`choose`], and tells why.
///
/// # Errors
/// As [`choose`].
pub fn choose_telling(transfer: &Arc<Transfer>, machine: Machine, wish: &Preference) -> Result<Choice, Infeasible> {
    let mut parameters = Parameters::default();
    parameters.buffer_bytes_max = wish.buffer_bytes_max.unwrap_or(parameters.buffer_bytes_max);
    parameters.slots = wish.slots.unwrap_or(parameters.slots);
    let share = parameters.buffer_bytes_max / u64::from(parameters.slots.max(1));
    parameters.subchunk_bytes = wish.subchunk_bytes.unwrap_or(parameters.subchunk_bytes.min(share));
    let nodes = transfer.ranks.div_ceil(machine.ranks_per_node.max(1)).max(1);
    let chunked = transfer.asks.iter().any(|ask| matches!(ask.stored.placement, Placement::Chunks { .. }));
    let per_node = if chunked { machine.cores_per_node.max(2) } else { 2 };
    let servers = wish.servers.unwrap_or(nodes * per_node).clamp(1, transfer.ranks);
    parameters.servers = spread(servers, transfer.ranks);
    if let Some(strategy) = wish.strategy {
        parameters.strategy = strategy;
        suit(&mut parameters, transfer, wish);
        strategy.feasible(transfer, &parameters)?;
        return Ok(Choice { parameters, why: "this strategy was asked for".into() });
    }
    let hindrance = transfer.asks.iter().find_map(|ask| hindrance(ask, transfer.direction));
    let alone = hindrance.is_none();
    let order = if alone {
        [Strategy::Independent, Strategy::ServerDirected]
    } else {
        [Strategy::ServerDirected, Strategy::Independent]
    };
    let because = hindrance.unwrap_or_else(|| "each rank moves long runs, or whole chunks, of its own".into());
    let mut refused: Option<Infeasible> = None;
    if alone && transfer.direction == Direction::Read {
        parameters.direct_run_bytes = SIEVED_RUN_BYTES;
    }
    if alone && wish.subchunk_bytes.is_none() {
        // Nobody waits for a subchunk of another rank, so fewer requests are better.
        parameters.subchunk_bytes = (4 * parameters.subchunk_bytes).min(share);
    }
    for slots in [parameters.slots, 1] {
        parameters.slots = slots;
        for strategy in order {
            parameters.strategy = strategy;
            match strategy.feasible(transfer, &parameters) {
                Ok(()) => {
                    let but = refused.map_or(String::new(), |no| format!(", but {}", no.reason));
                    return Ok(Choice { parameters, why: format!("{because}{but}") });
                }
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
    }
    Err(refused.expect("each strategy that is not taken gave a reason"))
}

/// What a strategy that the user forces needs besides.
fn suit(parameters: &mut Parameters, transfer: &Transfer, wish: &Preference) {
    parameters.exchange = wish.exchange.unwrap_or(Exchange::All);
    if parameters.strategy == Strategy::TwoPhase && parameters.exchange == Exchange::Sharers {
        let extents = transfer.asks.iter().filter_map(|ask| shared_extent(ask, SHARED_EXTENT_BYTES));
        let shortest = extents.min().unwrap_or(u64::MAX);
        parameters.subchunk_bytes = wish.subchunk_bytes.unwrap_or(parameters.subchunk_bytes.min(shortest));
    }
    if parameters.strategy == Strategy::DiskDirected {
        parameters.slots = wish.slots.unwrap_or(DISK_SLOTS);
        let share = parameters.buffer_bytes_max / u64::from(parameters.slots.max(1));
        parameters.subchunk_bytes = wish.subchunk_bytes.unwrap_or(parameters.subchunk_bytes.min(share));
    }
}

/// `servers` ranks at equal distances.
fn spread(servers: u32, ranks: u32) -> Arc<[u32]> {
    (0..servers).map(|i| (u64::from(i) * u64::from(ranks) / u64::from(servers)) as u32).collect()
}

/// Why ranks should not move an array by themselves; `None` when they should.
fn hindrance(ask: &Ask, direction: Direction) -> Option<String> {
    let name = &ask.name;
    let Some(distribution) = ask.spread.regular() else {
        return Some(format!("'{name}' lies in pieces of each rank's own, which count as short"));
    };
    if direction == Direction::Read && distribution.replication() > 1 {
        // A reader of a part of a chunk reads all of it, so sharing costs as often as there are sharers.
        return Some(format!("several ranks want the same elements of '{name}', which are read once"));
    }
    match &ask.stored.placement {
        Placement::Chunks { chunk, .. } => shared_chunk(ask, distribution, chunk)
            .map(|(d, index)| format!("ranks share chunks of '{name}' (at index {index} of dimension {d})")),
        Placement::File { .. } => {
            let (run, pitch) = file_run(ask, distribution);
            let sieved = direction == Direction::Read && run >= SIEVED_RUN_BYTES && pitch / run <= SIEVED_GAPS_MAX;
            let short = run < LONG_RUN_BYTES && !sieved;
            short.then(|| {
                format!("ranks hold '{name}' in runs of {run} B of the file, {pitch} B apart, which are short")
            })
        }
    }
}

/// Length of the runs of the file that a rank has which holds as much as any, and from the start of one to the
/// start of the next \[B\].
fn file_run(ask: &Ask, distribution: &Distribution) -> (u64, u64) {
    let owned = distribution.largest_part();
    let mut run = ask.stored.element.bytes();
    let mut extent = run;
    for &d in ask.stored.order.iter().rev() {
        let triplet = ask.section.dims[d];
        let term = owned.dims[d].terms().iter().min_by_key(|term| term.len).copied();
        let contiguous = term.map_or(0, |term| term.len);
        let pitch = extent.saturating_mul(ask.stored.shape[d]);
        if triplet.count > 1 {
            return ((run * contiguous.min(triplet.block)).max(1), extent.saturating_mul(triplet.stride));
        }
        run = run.saturating_mul(contiguous).max(1);
        if contiguous < ask.stored.shape[d] {
            let repeats = term.filter(|term| term.count > 1).map_or(pitch, |term| extent.saturating_mul(term.step));
            return (run, repeats);
        }
        extent = pitch;
    }
    (run, run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::{Spread, Stored};
    use hyperslab_layout::{Dim, ElementType, Kind, Section};

    fn file(shape: &[u64], mesh: &[u64], dims: &[Dim], direction: Direction) -> Strategy {
        let placement = Placement::File { object: "a".into(), offset: 0 };
        let element = ElementType::native(Kind::Float64);
        let order = (0..shape.len()).collect();
        let stored = Stored { shape: shape.to_vec(), element, fill: vec![0; 8].into(), order, placement };
        let distribution = Distribution::new(shape, mesh, dims, None).unwrap();
        let ranks = distribution.ranks() as u32;
        let (section, spread) = (Section::whole(shape), Spread::Regular(distribution));
        let ask = Ask { name: "a".into(), section, spread, memory: element, stored };
        let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks, sync: false });
        let machine = Machine { ranks_per_node: ranks, cores_per_node: 2 };
        choose(&transfer, machine, &Preference::default()).unwrap().strategy
    }

    #[test]
    fn the_rule_for_files() {
        let cube = [512, 512, 256];
        let blocks = [const { Dim::Block }; 3];
        assert_eq!(file(&cube, &[2, 1, 1], &blocks, Direction::Write), Strategy::Independent);
        assert_eq!(file(&cube, &[2, 2, 2], &blocks, Direction::Write), Strategy::ServerDirected);
        assert_eq!(file(&cube, &[2, 2, 2], &blocks, Direction::Read), Strategy::Independent);
        assert_eq!(file(&cube, &[1, 1, 8], &blocks, Direction::Read), Strategy::ServerDirected);
        let cyclic = [Dim::Whole, Dim::Whole, Dim::Cyclic(1)];
        assert_eq!(file(&cube, &[4], &cyclic, Direction::Read), Strategy::ServerDirected);
        let everything = [const { Dim::Whole }; 3];
        assert_eq!(file(&cube, &[4], &everything, Direction::Read), Strategy::ServerDirected);
    }

    #[test]
    fn a_forced_strategy_that_cannot_be_is_refused() {
        let wish = Preference { servers: Some(2), buffer_bytes_max: Some(10), ..Preference::default() };
        let shape = [64];
        let placement = Placement::File { object: "a".into(), offset: 0 };
        let element = ElementType::native(Kind::Complex128);
        let stored = Stored { shape: shape.to_vec(), element, fill: vec![0; 16].into(), order: vec![0], placement };
        let distribution = Distribution::new(&shape, &[4], &[Dim::Cyclic(1)], None).unwrap();
        let (section, spread) = (Section::whole(&shape), Spread::Regular(distribution));
        let ask = Ask { name: "a".into(), section, spread, memory: element, stored };
        let transfer = Arc::new(Transfer { direction: Direction::Write, asks: vec![ask], ranks: 4, sync: false });
        let machine = Machine { ranks_per_node: 4, cores_per_node: 2 };
        let refused = choose(&transfer, machine, &wish).unwrap_err().to_string();
        assert!(refused.contains("may have 10 B"), "{refused}");
    }
}
