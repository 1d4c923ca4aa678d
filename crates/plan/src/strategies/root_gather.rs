//! Root-gather: every byte passes through rank 0, which alone touches storage, one buffer at a time.
//!
//! The way of the original Chameleon output routines (Thakur, Gropp, Lusk 1996, section 4.2): no overlap and no
//! parallel storage. Kept as the baseline that the others must beat. It is the server-directed program with one
//! server and one slot.

use super::server_directed;
use crate::program::Program;
use crate::transfer::{Parameters, Transfer};
use std::sync::Arc;

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Program {
    let alone = Parameters { servers: vec![0], slots: 1, ..parameters.clone() };
    server_directed::program(transfer, &alone, rank)
}
