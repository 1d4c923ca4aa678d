//! What came out of a rehearsal, for people and programs. Field names are those of the JSON.

use super::scenes::Built;
use super::spec::SimulationSpec;
use super::transfers::Chosen;
use crate::imagined::ChosenCall;
use hyperslab_plan::profile::Profile;
use hyperslab_plan::{Phase, Price, Resource};
use hyperslab_sim::{Disks, LifeEnd, Mishap, Outcome, Work};
use serde::Serialize;
use std::collections::BTreeMap;

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// From the beginning to when the last rank was through \[s\].
    pub seconds: f64,
    /// The same, to when all that was written is on the media, with what caches still held \[s\].
    pub settled_seconds: f64,
    /// Stages.
    pub stages: Vec<StageReport>,
    /// Transfers.
    pub transfers: Vec<TransferReport>,
    /// What went wrong, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// How the life of each rank ended, where something was to go wrong: `through`, `dead`, or its error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<String>,
    /// Calls to the file system by kind.
    pub calls: BTreeMap<String, CallReport>,
    /// Messages with data.
    pub messages: u64,
    /// Their data \[B\].
    pub message_bytes: u64,
    /// Contiguous runs in them.
    pub message_runs: u64,
    /// Questions and answers without data.
    pub questions: u64,
    /// Messages of agreements.
    pub signals: u64,
    /// Requests to file servers.
    pub requests: u64,
    /// Bytes that crossed between nodes \[B\].
    pub network_bytes: u64,
    /// The busiest of each kind of thing.
    pub busiest: Vec<BusyReport>,
    /// What the busiest processor of a rank was at work for, by kind \[s\].
    pub busiest_processor: BTreeMap<String, f64>,
    /// How long each processor of a compute node was at work \[s\]; left out for more than 1,024.
    pub processors: Vec<f64>,
    /// File servers; left out for more than 1,024.
    pub servers: Vec<ServerReport>,
    /// Events of the simulation.
    pub events: u64,
    /// What happened: time \[ns\] and what, a line each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// Most things of a kind that are told one by one.
const TOLD_MAX: usize = 1024;

/// A stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageReport {
    /// Number of the stage that was asked for.
    pub stage: usize,
    /// What ranks did.
    pub what: String,
    /// When the first rank began \[s\].
    pub begin: f64,
    /// When the last rank ended \[s\].
    pub end: f64,
    /// What a rank spent in it, on average \[s\].
    pub mean: f64,
}

/// A transfer.
#[derive(Clone, Debug, Serialize)]
pub struct TransferReport {
    /// Number of the stage that was asked for.
    pub stage: usize,
    /// Bytes of the arrays, as stored \[B\].
    pub bytes: u64,
    /// From when the first rank entered the call to when the last left it \[s\].
    pub seconds: f64,
    /// The part of it from when the first rank began to move data to when the last had moved its own \[s\].
    pub moving_seconds: f64,
    /// Bytes a second \[B/s\].
    pub rate: f64,
    /// The strategy.
    pub strategy: String,
    /// Ranks that served.
    pub servers: usize,
    /// Most bytes of a subchunk \[B\].
    pub subchunk_bytes: u64,
    /// Buffer slots of a server.
    pub slots: u32,
    /// Why the library chose so.
    pub why: String,
    /// What the model expects, before anything runs.
    pub predicted: Predicted,
}

/// What the model expects of a transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Predicted {
    /// In all, agreements included where ranks agree \[s\].
    pub seconds: f64,
    /// While data move, until they are durable where that is asked for \[s\].
    pub moving: f64,
    /// What limits it.
    pub bound_by: String,
    /// By phase \[s\].
    pub phases: BTreeMap<String, f64>,
    /// How long the busiest of each kind is busy \[s\].
    pub busy: BTreeMap<String, f64>,
}

impl Predicted {
    pub(super) fn of(price: &Price, agrees: bool) -> Predicted {
        let phases = Phase::ALL.map(|phase| (phase.name().to_string(), price.phase(phase) / 1e9));
        let busy = Resource::ALL.map(|one| (one.name().to_string(), price.resources[one as usize] / 1e9));
        let moving = price.moving_ns() / 1e9;
        Predicted {
            seconds: if agrees { price.seconds() } else { moving },
            moving,
            bound_by: price.bottleneck.name().into(),
            phases: phases.into(),
            busy: busy.into(),
        }
    }
}

/// Calls of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct CallReport {
    /// How many.
    pub count: u64,
    /// What they moved \[B\].
    pub bytes: u64,
    /// How long their callers waited, summed \[s\].
    pub seconds: f64,
    /// How many of each size \[B\].
    pub sizes: BTreeMap<String, u64>,
}

/// Something that was at work.
#[derive(Clone, Debug, Serialize)]
pub struct BusyReport {
    /// What.
    pub name: String,
    /// How long \[s\].
    pub seconds: f64,
    /// Of the whole time.
    pub share: f64,
}

/// A file server.
#[derive(Clone, Debug, Serialize)]
pub struct ServerReport {
    /// How long its disks had something to do, summed \[s\].
    pub busy: f64,
    /// Requests of its disks.
    pub requests: u64,
    /// Their bytes \[B\].
    pub bytes: u64,
    /// Finding tracks \[s\].
    pub seek: f64,
    /// Waiting for sectors \[s\].
    pub rotate: f64,
    /// Moving data \[s\].
    pub transfer: f64,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Report {
    pub(super) fn new(
        spec: &SimulationSpec,
        outcome: &Outcome,
        built: &Built,
        faults: &[Mishap],
        profile: &Profile,
    ) -> Report {
        let (labels, chosen) = (&built.labels, built.chosen.borrow());
        let ranks = f64::from(spec.clients + spec.servers);
        let parts = labels.iter().flat_map(|label| label.parts.iter().map(|&part| (label.stage, part)));
        let stages: Vec<StageReport> = parts
            .zip(&outcome.spans)
            .map(|((stage, what), span)| StageReport {
                stage,
                what: what.into(),
                begin: seconds(span.begin_ns),
                end: seconds(span.end_ns),
                // Of one that somebody never ended, nobody can tell.
                mean: if span.unended == 0 { seconds(span.spent_ns) / ranks } else { 0.0 },
            })
            .collect();
        let tally = &outcome.tally;
        Report {
            seconds: seconds(outcome.end_ns),
            settled_seconds: seconds(outcome.settled_ns),
            transfers: transfers(built, &chosen, profile, &stages),
            faults: faults.iter().map(ToString::to_string).collect(),
            ends: outcome.ends.iter().map(end_report).collect(),
            stages,
            calls: tally.calls.iter().map(|(kind, calls)| (kind.to_string(), call_report(calls))).collect(),
            messages: tally.messages,
            message_bytes: tally.message_bytes,
            message_runs: tally.message_runs,
            questions: tally.questions,
            signals: tally.signals,
            requests: tally.requests,
            network_bytes: outcome.network_bytes,
            busiest: busiest(outcome),
            busiest_processor: busiest_processor(outcome),
            processors: few(&outcome.processors).iter().map(|p| seconds(p.ns)).collect(),
            servers: few(&outcome.disks).iter().map(server_report).collect(),
            events: outcome.events,
            log: outcome.trace.clone(),
        }
    }
}

/// All, or none when they are too many.
fn few<T>(all: &[T]) -> &[T] {
    if all.len() > TOLD_MAX { &[] } else { all }
}

/// Transfers, in the order of their stages.
fn transfers(
    built: &Built,
    chosen: &[(usize, ChosenCall)],
    profile: &Profile,
    stages: &[StageReport],
) -> Vec<TransferReport> {
    let known = built.moves.iter().map(|moving| moving.chosen());
    let on_stores = chosen.iter().map(|(stage, call)| Chosen::on_store(*stage, call, profile));
    let mut all: Vec<TransferReport> = known.chain(on_stores).map(|one| transfer_report(&one, stages)).collect();
    all.sort_by_key(|one| one.stage);
    all
}

fn transfer_report(chosen: &Chosen, stages: &[StageReport]) -> TransferReport {
    let Chosen { stage, bytes, parameters, why, price, agrees } = chosen;
    let of = |moving: bool| {
        let of = stages.iter().filter(|other| other.stage == *stage && (!moving || other.what != "agree"));
        let span = |(begin, end): (f64, f64), part: &StageReport| (part.begin.min(begin), part.end.max(end));
        let (begin, end) = of.fold((f64::INFINITY, 0.0), span);
        (end - begin).max(0.0)
    };
    let seconds = of(false);
    TransferReport {
        stage: *stage,
        bytes: *bytes,
        seconds,
        moving_seconds: of(true),
        rate: if seconds > 0.0 { *bytes as f64 / seconds } else { 0.0 },
        strategy: parameters.strategy.name().into(),
        servers: parameters.servers.len(),
        subchunk_bytes: parameters.subchunk_bytes,
        slots: parameters.slots,
        why: why.clone(),
        predicted: Predicted::of(price, *agrees),
    }
}

fn end_report(end: &LifeEnd) -> String {
    match end {
        LifeEnd::Through => "through".into(),
        LifeEnd::Dead => "dead".into(),
        LifeEnd::Failed(_, fault) => fault.text(),
    }
}

fn call_report(calls: &hyperslab_sim::Calls) -> CallReport {
    CallReport {
        count: calls.count,
        bytes: calls.bytes,
        seconds: seconds(calls.ns),
        sizes: calls.sizes.iter().map(|(size, count)| (size.to_string(), *count)).collect(),
    }
}

fn busiest(outcome: &Outcome) -> Vec<BusyReport> {
    let whole = outcome.settled_ns.max(1) as f64;
    let told = |busy: &hyperslab_sim::Busy| BusyReport {
        name: busy.name.clone(),
        seconds: seconds(busy.ns),
        share: busy.ns as f64 / whole,
    };
    outcome.busiest.iter().map(told).collect()
}

fn busiest_processor(outcome: &Outcome) -> BTreeMap<String, f64> {
    let Some(most) = outcome.processors.iter().rev().max_by_key(|p| p.ns) else { return BTreeMap::new() };
    Work::ALL.iter().zip(most.kinds).map(|(kind, ns)| (kind.name().to_string(), seconds(ns))).collect()
}

fn server_report(disks: &Disks) -> ServerReport {
    ServerReport {
        busy: seconds(disks.busy_ns),
        requests: disks.requests,
        bytes: disks.bytes,
        seek: seconds(disks.times.seek_ns),
        rotate: seconds(disks.times.rotate_ns),
        transfer: seconds(disks.times.transfer_ns),
    }
}
