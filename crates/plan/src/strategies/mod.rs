//! The strategies. Each is one file and a pure function from a transfer to a program.

mod data_sieving;
mod disk_directed;
mod independent;
mod root_gather;
mod server_directed;
mod two_phase;

pub use disk_directed::{Extent, group_places, physical_order};
pub use two_phase::shared_extent;

use crate::facts::Facts;
use crate::program::Program;
use crate::rounds::{Rounds, duty_of};
use crate::strategy::{Infeasible, Strategy};
use crate::transfer::{Direction, Exchange, Parameters, Transfer};
use crate::units::Units;
use hyperslab_layout::{Holes, Region, View};
use std::sync::Arc;

impl Strategy {
    /// Whether it can carry out the transfer with these parameters.
    ///
    /// # Errors
    /// The reason why not. The answer is the same on all ranks.
    pub fn feasible(self, transfer: &Arc<Transfer>, parameters: &Parameters) -> Result<(), Infeasible> {
        keeps_holes(transfer)?;
        has_addresses(transfer)?;
        match self {
            Strategy::RootGather => root_gather::feasible(transfer, parameters),
            Strategy::Independent => independent::feasible(transfer, parameters),
            Strategy::DataSieving => data_sieving::feasible(transfer, parameters),
            Strategy::TwoPhase => two_phase::feasible(transfer, parameters),
            Strategy::ServerDirected => server_directed::feasible(transfer, parameters),
            Strategy::DiskDirected => disk_directed::feasible(transfer, parameters),
        }
    }

    /// The rounds of a rank as a server; `None` of strategies in which each rank handles storage for itself.
    pub(crate) fn rounds(self, transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Option<Rounds> {
        match self {
            Strategy::Independent | Strategy::DataSieving => None,
            Strategy::TwoPhase => Some(Rounds::new(transfer, parameters, rank, duty_of(parameters.exchange))),
            Strategy::DiskDirected => Some(Rounds::checking(transfer, parameters, rank).directly()),
            _ => Some(Rounds::checking(transfer, parameters, rank)),
        }
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
        match self {
            Strategy::RootGather => root_gather::program(transfer, parameters, facts, rank),
            Strategy::Independent => independent::program(transfer, parameters, facts, rank, views),
            Strategy::DataSieving => data_sieving::program(transfer, parameters, facts, rank),
            Strategy::TwoPhase => two_phase::program(transfer, parameters, facts, rank),
            Strategy::ServerDirected => server_directed::program(transfer, parameters, facts, rank),
            Strategy::DiskDirected => disk_directed::program(transfer, parameters, facts, rank),
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
                let reason = format!("chunk {:?} of '{}' has no place in a file yet", unit.at, ask.name);
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
        match parameters.strategy {
            Strategy::RootGather => Servers::Listed(&[0]),
            Strategy::Independent | Strategy::DataSieving => Servers::All(ranks),
            Strategy::TwoPhase if parameters.exchange == Exchange::Sharers => Servers::All(ranks),
            Strategy::TwoPhase | Strategy::ServerDirected | Strategy::DiskDirected => {
                Servers::Listed(&parameters.servers)
            }
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
