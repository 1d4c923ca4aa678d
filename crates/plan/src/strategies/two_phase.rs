//! Two-phase I/O: first the data cross into a distribution that conforms to the file, then each aggregator moves its own
//! contiguous part of the file.
//!
//! Source: Thakur, Gropp, Lusk 1996 (the extended two-phase method), after del Rosario, Bordawekar and Choudhary 1993;
//! Kotz 1997 section 3 describes the same as 2PIO. File domains are contiguous and of equal size, one an aggregator, in
//! rounds of the size of its buffer, as in ROMIO; any number of ranks aggregates. Phases of neighbouring rounds overlap
//! when there are two slots.
//!
//! With [`Exchange::Sharers`](crate::Exchange::Sharers), data cross only between ranks that share extents of the file:
//! each unit is assembled by one of its holders, in turn. That is the rule of MPICH's issue 7935: exchange inside
//! sub-communicators, un-splitting the fastest dimensions only until extents are large; see [`shared_extent`].

use crate::facts::Facts;
use crate::program::Program;
use crate::rounds::{Rounds, duty_of};
use crate::strategy::Infeasible;
use crate::transfer::{Ask, Parameters, Transfer};
use std::sync::Arc;

fn ordered(parameters: &Parameters) -> Parameters {
    Parameters { order: Vec::new(), ..parameters.clone() }
}

pub(super) fn feasible(transfer: &Arc<Transfer>, parameters: &Parameters) -> Result<(), Infeasible> {
    Rounds::new(transfer, &ordered(parameters), 0, duty_of(parameters.exchange)).feasible(parameters)
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, facts: &Arc<Facts>, rank: u32) -> Program {
    Rounds::new(transfer, &ordered(parameters), rank, duty_of(parameters.exchange)).program(facts)
}

/// The length of the contiguous extents that ranks make together when they un-split the fastest dimensions of a file,
/// one after another, until extents are at least `enough` long. `None` when the array has no closed form.
pub fn shared_extent(ask: &Ask, enough: u64) -> Option<u64> {
    let distribution = ask.spread.regular()?;
    let mut extent = ask.stored.element.bytes();
    for &d in ask.stored.contiguous().iter().rev() {
        // What the fullest coordinate of the mesh holds of this dimension, beside all of the faster ones.
        let fullest = distribution.owned_dim(d, distribution.fullest(d));
        let held = fullest.terms().iter().map(|term| term.len).max().unwrap_or(1);
        let block = extent.saturating_mul(held.max(1));
        if held < distribution.shape()[d] && block >= enough {
            return Some(block);
        }
        extent = extent.saturating_mul(distribution.shape()[d].max(1));
    }
    Some(extent)
}
