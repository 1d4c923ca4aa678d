//! Server-directed I/O: servers decide what moves when, subchunk by subchunk, in the order of the file.
//!
//! Source: Panda (Chen et al. 1996, section 2; Seamons et al. 1995), the disk-directed I/O of Kotz (1997) at the
//! level of files. Servers take turns over groups of units; each handles its own in the order of the file.
//!
//! Departures from Panda: servers may be clients too; small chunks, also of different arrays, share a group and so a
//! message; and no request travels, because clients derive from the same closed forms what each server will want, in
//! which order.

use crate::facts::Facts;
use crate::program::Program;
use crate::rounds::{Duty, Rounds};
use crate::strategy::Infeasible;
use crate::transfer::{Parameters, Transfer};
use std::sync::Arc;

fn ordered(parameters: &Parameters) -> Parameters {
    Parameters { order: Vec::new(), ..parameters.clone() }
}

pub(super) fn feasible(transfer: &Arc<Transfer>, parameters: &Parameters) -> Result<(), Infeasible> {
    Rounds::new(transfer, &ordered(parameters), 0, Duty::Turns).feasible(parameters)
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, facts: &Arc<Facts>, rank: u32) -> Program {
    Rounds::new(transfer, &ordered(parameters), rank, Duty::Turns).program(facts)
}
