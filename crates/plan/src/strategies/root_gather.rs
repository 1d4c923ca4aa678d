//! Root-gather: every byte passes through rank 0, which alone touches storage, one buffer at a time.
//!
//! The way of the original Chameleon output routines (Thakur, Gropp, Lusk 1996, section 4.2): no overlap and no
//! parallel storage. Kept as the baseline that the others must beat.

use crate::facts::Facts;
use crate::program::Program;
use crate::rounds::{Duty, Rounds};
use crate::strategy::Infeasible;
use crate::transfer::{Parameters, Transfer};
use std::sync::Arc;

fn alone(parameters: &Parameters) -> Parameters {
    Parameters { servers: [0].into(), slots: 1, order: Vec::new(), ..parameters.clone() }
}

pub(super) fn feasible(transfer: &Arc<Transfer>, parameters: &Parameters) -> Result<(), Infeasible> {
    let parameters = alone(parameters);
    Rounds::new(transfer, &parameters, 0, Duty::Turns).feasible(&parameters)
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, facts: &Arc<Facts>, rank: u32) -> Program {
    Rounds::new(transfer, &alone(parameters), rank, Duty::Turns).program(facts)
}
