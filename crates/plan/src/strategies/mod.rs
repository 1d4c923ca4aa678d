//! The strategies. Each is one file, a pure function from a transfer to a program, and a line in the list.

mod data_sieving;
mod disk_directed;
mod independent;
mod root_gather;
mod server_directed;
mod two_phase;

pub use disk_directed::{Extent, group_places, physical_order};
pub use two_phase::shared_extent;

use crate::beside;
use crate::facts::Facts;
use crate::own::{self, Filling};
use crate::profile::Profile;
use crate::program::Program;
use crate::rounds::Rounds;
use crate::strategy::{Infeasible, Parameters, Role, SUBCHUNKS, Sequence, Spec, Strategy};
use crate::transfer::{Direction, Exchange, Transfer, TransferArray};
use crate::units::Units;
use hyperslab_layout::{Holes, Region, View, tuple};
use std::sync::Arc;

/// Subchunks of servers \[B\].
const SUBCHUNK_BYTES: u64 = 2 << 20;
/// Subchunks of ranks that move their own: nobody waits for those of another rank, so fewer requests are better \[B\].
const OWN_BYTES: u64 = 8 << 20;

impl Spec {
    /// What servers do that take turns, in the order of the file.
    pub const SERVED: Spec = Spec {
        name: "",
        about: "",
        role: Role::Servers,
        order: Sequence::File,
        complexity: u32::MAX,
        exchanges: &[Exchange::All],
        feasible: |transfer, parameters| match Rounds::of(transfer, parameters, 0) {
            Some(rounds) => rounds.feasible(),
            None => Err(Infeasible {
                reason: format!("'{}' has no servers, and does not say what else its program is", parameters.strategy),
                hint: "let its Spec differ from Spec::OWN".into(),
            }),
        },
        program: |transfer, parameters, facts, rank, _| {
            Rounds::of(transfer, parameters, rank).expect("the role is one of those that serve").program(facts)
        },
        worth: |_, _| true,
        slots: 2,
        subchunk: |transfer, profile, parameters, share| in_rounds(transfer, profile, parameters).min(share),
        usual_subchunk: (SUBCHUNK_BYTES, false),
        besides: |_, _, _| None,
        variants: |_| Vec::new(),
        tells_layouts: true,
    };

    /// What ranks do that move their own elements; what their programs are, each says for itself.
    pub const OWN: Spec = Spec {
        role: Role::Own,
        feasible: |transfer, parameters| own::feasible(transfer, parameters, Filling::Units),
        subchunk: |_, _, _, share| OWN_BYTES.min(share),
        // Larger ones are as simple, as nobody waits for them.
        usual_subchunk: (OWN_BYTES, true),
        ..Spec::SERVED
    };
}

impl Strategy {
    /// The strategies that come with the library, the one that fits most transfers first.
    pub const ALL: [Strategy; 6] = [
        Strategy::SERVER_DIRECTED,
        Strategy::INDEPENDENT,
        Strategy::TWO_PHASE,
        Strategy::DATA_SIEVING,
        Strategy::DISK_DIRECTED,
        Strategy::ROOT_GATHER,
    ];

    /// All data pass through rank 0.
    pub const ROOT_GATHER: Strategy = Strategy::new(&root_gather::SPEC);
    /// Each rank reads and writes its own pieces.
    pub const INDEPENDENT: Strategy = Strategy::new(&independent::SPEC);
    /// Each rank reads and writes its own pieces and what lies between them.
    pub const DATA_SIEVING: Strategy = Strategy::new(&data_sieving::SPEC);
    /// Data cross into a distribution that conforms to the file, then each aggregator moves its part.
    pub const TWO_PHASE: Strategy = Strategy::new(&two_phase::SPEC);
    /// Servers pull subchunks from clients, or push them.
    pub const SERVER_DIRECTED: Strategy = Strategy::new(&server_directed::SPEC);
    /// The same in the order of the disk, by direct I/O.
    pub const DISK_DIRECTED: Strategy = Strategy::new(&disk_directed::SPEC);

    /// Whether it can carry out the transfer with these parameters.
    ///
    /// # Errors
    /// The reason why not. The answer is the same on all ranks.
    pub fn feasible(self, transfer: &Arc<Transfer>, parameters: &Parameters) -> Result<(), Infeasible> {
        keeps_holes(transfer)?;
        has_addresses(transfer)?;
        (self.spec().feasible)(transfer, parameters)
    }

    /// The program of one rank, whose array exposed under number i lies where `views[i]` says. Arrays whose spread has a
    /// closed form are exposed under their own numbers; those of explicit pieces under the numbers that the facts name.
    pub fn program(
        self,
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        facts: &Arc<Facts>,
        rank: u32,
        views: &[Arc<View>],
    ) -> Program {
        let mut program = (self.spec().program)(transfer, parameters, facts, rank, views);
        if !facts.beside.is_empty() {
            let servers = Servers::of(parameters, transfer.ranks);
            let turn = servers.iter().position(|server| server == rank);
            program.lanes.extend(turn.and_then(|turn| beside::lane(transfer, facts, (turn, servers.len()))));
        }
        program
    }
}

/// Subchunks of the usual size; smaller ones where servers of a real machine would not use all their buffers twice, since
/// exchanges and requests to storage go on beside each other only then. On imagined ones, several requests of a server do \[B\].
fn in_rounds(transfer: &Transfer, profile: &Profile, parameters: &Parameters) -> u64 {
    if profile.measured.is_none() {
        return SUBCHUNK_BYTES;
    }
    let servers = if parameters.role() == Role::Servers { parameters.servers.len().max(1) as u64 } else { 1 };
    let rounds = servers * 2 * u64::from(parameters.slots.max(1));
    let cut = transfer.asks.iter().filter(|ask| ask.stored.chunk().is_none()).map(TransferArray::stored_bytes).max();
    cut.map_or(SUBCHUNK_BYTES, |bytes| (bytes / rounds).next_power_of_two().clamp(SUBCHUNKS.0, SUBCHUNK_BYTES))
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            strategy: Strategy::SERVER_DIRECTED,
            servers: [0].into(),
            exchange: Exchange::All,
            slots: 2,
            subchunk_bytes: SUBCHUNK_BYTES,
            direct_run_bytes: 64 << 10,
            buffer_bytes_max: 256 << 20,
            order: Vec::new(),
        }
    }
}

/// Refuses to keep what is not written where chunks can only be written whole.
fn keeps_holes(transfer: &Transfer) -> Result<(), Infeasible> {
    let kept = transfer.direction == Direction::Write && transfer.policies.holes == Holes::Kept;
    match transfer.asks.iter().find(|ask| kept && ask.stored.is_written_whole()) {
        Some(ask) => Err(Infeasible {
            reason: format!("holes are to be left alone, but a chunk of '{}' is written whole", ask.name),
            hint: "let holes be rewritten, which is safe while nobody else changes them".into(),
        }),
        None => Ok(()),
    }
}

/// Refuses to write chunks that have no place yet: one that a table does not know, or that gets one when it is encoded.
fn has_addresses(transfer: &Transfer) -> Result<(), Infeasible> {
    if transfer.direction == Direction::Read {
        return Ok(());
    }
    let hint = || "make room for the chunk first, or write all of the array anew".to_string();
    for (array, ask) in transfer.asks.iter().enumerate().filter(|(_, ask)| ask.stored.has_table()) {
        if ask.stored.is_placed_when_encoded() {
            let reason = format!("where an encoded chunk of '{}' lies is known only once it is encoded", ask.name);
            return Err(Infeasible { reason, hint: hint() });
        }
        let units = Units::new(transfer, 0);
        let mut touched = units.touched(array as u32, Region::whole(&ask.section.shape()));
        while let Some(unit) = touched.unit() {
            if !ask.stored.has_place(&unit.at) {
                let reason = format!("chunk {} of '{}' has no place in a file yet", tuple(&unit.at), ask.name);
                return Err(Infeasible { reason, hint: hint() });
            }
            touched.advance();
        }
    }
    Ok(())
}

/// Ranks that may handle storage.
#[derive(Clone, Copy)]
pub(crate) enum Servers<'a> {
    Listed(&'a [u32]),
    All(u32),
}

impl<'a> Servers<'a> {
    /// Those of a transfer with these parameters, on so many ranks.
    pub(crate) fn of(parameters: &'a Parameters, ranks: u32) -> Servers<'a> {
        match parameters.role() {
            Role::Root => Servers::Listed(&[0]),
            Role::Own | Role::Holders => Servers::All(ranks),
            Role::Servers => Servers::Listed(&parameters.servers),
        }
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Servers::Listed(list) => list.len(),
            Servers::All(ranks) => ranks as usize,
        }
    }

    pub(crate) fn get(self, number: usize) -> u32 {
        match self {
            Servers::Listed(list) => list[number],
            Servers::All(_) => number as u32,
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.len()).map(move |number| self.get(number))
    }
}
