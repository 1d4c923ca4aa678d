//! Root-gather: every byte passes through rank 0, which alone touches storage, one buffer at a time.
//!
//! The way of the original Chameleon output routines (Thakur, Gropp, Lusk 1996, section 4.2): no overlap and no
//! parallel storage. Kept as the baseline that the others must beat. It is the server-directed program with one
//! server and one slot.

use super::{Infeasible, server_directed};
use crate::program::Program;
use crate::transfer::{Parameters, Transfer};
use std::sync::Arc;

fn alone(parameters: &Parameters) -> Parameters {
    Parameters { servers: vec![0], slots: 1, ..parameters.clone() }
}

pub(super) fn feasible(transfer: &Transfer, parameters: &Parameters) -> Result<(), Infeasible> {
    server_directed::feasible(transfer, &alone(parameters))
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Program {
    server_directed::program(transfer, &alone(parameters), rank)
}
