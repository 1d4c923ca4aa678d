//! What the planner says of a transfer on a machine, as data.

use super::report::Predicted;
use super::transfers::Moving;
use hyperslab_plan::{Candidate, Parameters, Price};
use serde::Serialize;

/// Candidates that are told.
const TOLD_MAX: usize = 64;
/// Servers that are named one by one.
const SERVERS_MAX: usize = 1024;

/// What was chosen for a transfer, and what it was compared with.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PlannedReport {
    /// Number of the stage.
    stage: usize,
    /// Bytes \[B\].
    bytes: u64,
    /// Why.
    why: String,
    #[serde(flatten)]
    chosen: CandidateReport,
    /// All that were compared, the cheapest first.
    candidates: Vec<CandidateReport>,
    /// How many more there were.
    more_candidates: usize,
}

/// Parameters with their price.
#[derive(Clone, Debug, Serialize)]
struct CandidateReport {
    strategy: &'static str,
    exchange: &'static str,
    servers: usize,
    /// Which ranks serve, where these are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    server_ranks: Vec<u32>,
    subchunk_bytes: u64,
    slots: u32,
    direct_run_bytes: u64,
    /// Buffers of a rank that serves \[B\].
    buffer_bytes: u64,
    predicted: Predicted,
}

impl CandidateReport {
    fn of(parameters: &Parameters, price: &Price, agrees: bool) -> CandidateReport {
        let few = parameters.servers.len() <= SERVERS_MAX;
        CandidateReport {
            strategy: parameters.strategy.name(),
            exchange: parameters.exchange.name(),
            servers: parameters.servers.len(),
            server_ranks: if few { parameters.servers.to_vec() } else { Vec::new() },
            subchunk_bytes: parameters.subchunk_bytes,
            slots: parameters.slots,
            direct_run_bytes: parameters.direct_run_bytes,
            buffer_bytes: price.buffer_bytes,
            predicted: Predicted::of(price, agrees),
        }
    }
}

impl PlannedReport {
    pub(super) fn of(moving: &Moving) -> PlannedReport {
        let Moving { stage, parameters, why, price, candidates, agrees, .. } = moving;
        let report = |one: &Candidate| CandidateReport::of(&one.parameters, &one.price, *agrees);
        PlannedReport {
            stage: *stage,
            bytes: moving.bytes(),
            why: why.clone(),
            chosen: CandidateReport::of(parameters, price, *agrees),
            candidates: candidates.iter().take(TOLD_MAX).map(report).collect(),
            more_candidates: candidates.len().saturating_sub(TOLD_MAX),
        }
    }
}
