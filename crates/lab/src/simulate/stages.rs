//! From what is asked of a rehearsal to its stages.

use super::array::{asks, exposed};
use super::spec::{Array, SimulationSpec, StageSpec, TransferSpec, WhatIf, Who};
use hyperslab::Error;
use hyperslab_layout::{Durability, Object, Policies};
use hyperslab_plan::profile::{Disk, Profile};
use hyperslab_plan::{
    Ask, Candidate, Direction, Effort, Exchange, Facts, Laid, Machine, Memory, Parameters, Planner, Preference, Price,
    Strategy, Transfer,
};
use hyperslab_sim::{Metadata, Move, Part, Size, Stage, disk_order};
use std::rc::Rc;
use std::sync::Arc;

/// Stages, with what reports call them.
#[derive(Default)]
pub(super) struct Built {
    pub(super) stages: Vec<Stage>,
    /// Number of the stage that was asked for, and what it is, by stage.
    pub(super) labels: Vec<(usize, String)>,
    pub(super) lengths: Vec<(Object, u64)>,
    pub(super) moves: Vec<Moving>,
}

/// A transfer of a rehearsal.
pub(super) struct Moving {
    /// Number of the stage that was asked for.
    pub(super) stage: usize,
    pub(super) bytes: u64,
    pub(super) parameters: Parameters,
    pub(super) why: String,
    /// What the model expects.
    pub(super) price: Price,
    /// All that the planner compared, the cheapest first.
    pub(super) candidates: Vec<Candidate>,
    /// Whether ranks agree before and after.
    pub(super) agrees: bool,
}

impl Built {
    fn push(&mut self, number: usize, label: &str, stage: Stage) {
        self.labels.push((number, label.into()));
        self.stages.push(stage);
    }
}

pub(super) fn build(spec: &SimulationSpec, profile: &Profile, size: Size) -> Result<Built, Error> {
    let mut built = Built::default();
    for (number, stage) in spec.stages.iter().enumerate() {
        let meta = |kind, who: Who| Stage::Metadata(who.into(), kind);
        match stage {
            StageSpec::Agree => built.push(number, "agree", Stage::Agree),
            StageSpec::Work(work) if !(work.seconds >= 0.0 && work.seconds < 1e9) => {
                return Err(Error::invalid(format!("stage {number}: work of {} s; it takes 0 to 1e9 s", work.seconds)));
            }
            StageSpec::Work(work) => built.push(number, "work", Stage::Work(work.who.into(), work.seconds * 1e9)),
            StageSpec::Open(asked) => built.push(number, "open", meta(Metadata::Open, asked.who)),
            StageSpec::Close(asked) => built.push(number, "close", meta(Metadata::Close, asked.who)),
            StageSpec::Query(asked) => built.push(number, "query", meta(Metadata::Query, asked.who)),
            StageSpec::Call(call) => {
                let object = Object::from(&*call.object);
                let last = match call.who {
                    Who::All => size.ranks - 1,
                    Who::Clients => spec.clients - 1,
                    Who::Rank(rank) => rank,
                };
                let begin = call.pitch.checked_mul(last.into()).and_then(|skipped| skipped.checked_add(call.offset));
                let end = begin.and_then(|begin| begin.checked_add(call.bytes)).filter(|&end| end <= 1 << 60);
                let end = end.ok_or_else(|| {
                    Error::invalid(format!(
                        "stage {number}: a call of {} B ends beyond 2^60 B of '{object}'",
                        call.bytes
                    ))
                })?;
                built.lengths.push((object.clone(), end));
                let (who, offset, pitch) = (call.who.into(), call.offset, call.pitch);
                let (bytes, write) = (call.bytes, call.write);
                built.push(number, "call", Stage::Call { who, object, offset, pitch, bytes, write });
            }
            StageSpec::Transfer(asked) => transfer(&mut built, number, asked, spec, profile, size)?,
        }
    }
    Ok(built)
}

fn transfer(
    built: &mut Built,
    number: usize,
    asked: &TransferSpec,
    spec: &SimulationSpec,
    profile: &Profile,
    size: Size,
) -> Result<(), Error> {
    let mut all: Vec<(usize, Ask)> = Vec::new();
    for (i, array) in asked.arrays.iter().enumerate() {
        all.extend(asks(array, spec.clients, asked.write && asked.fresh)?.into_iter().map(|ask| (i, ask)));
    }
    apart(&all)?;
    built.lengths.extend(all.iter().filter_map(|(_, ask)| length(ask)));
    let direction = if asked.write { Direction::Write } else { Direction::Read };
    let (alike, asks): (Vec<usize>, Vec<Ask>) = all.into_iter().unzip();
    let durability = if asked.sync && asked.write { Durability::Now } else { Durability::Cached };
    let policies = Policies::of(durability);
    let transfer = Arc::new(Transfer { direction, asks, ranks: size.ranks, policies });
    let arrays: Vec<Array> = asked.arrays.clone();
    let memory = |number: usize| -> Option<Laid> {
        let (&i, ask) = (alike.get(number)?, transfer.asks.get(number)?);
        Some(Laid::of(&exposed(&arrays[i], ask, 0).view))
    };
    let as_if = without(profile, spec.what_if);
    let (mut parameters, why, price, candidates) = decide(asked, &transfer, &as_if, size, &memory)?;
    if parameters.strategy == Strategy::DISK_DIRECTED && asked.presort {
        let layout = (spec.disk_layout.into(), spec.seed);
        parameters.order = disk_order(profile, size, layout, &built.lengths, &transfer, &parameters);
    }
    let moved = transfer.clone();
    let bring = Rc::new(move |rank: u32| {
        let users = alike.iter().zip(&moved.asks).map(|(&i, ask)| exposed(&arrays[i], ask, rank)).collect();
        Part { users, facts: Arc::new(Facts::default()) }
    });
    let (bytes, agrees) = (transfer.stored_bytes(), asked.agree);
    built.moves.push(Moving { stage: number, bytes, parameters: parameters.clone(), why, price, candidates, agrees });
    if asked.agree {
        built.push(number, "agree", Stage::Agree);
    }
    built.push(number, if asked.write { "write" } else { "read" }, Stage::Move(Move { transfer, parameters, bring }));
    if asked.agree {
        built.push(number, "agree", Stage::Agree);
    }
    Ok(())
}

/// Whether no two arrays lie in the same place.
fn apart(all: &[(usize, Ask)]) -> Result<(), Error> {
    let place = |ask: &Ask| {
        let begin_and_end = ask.stored.object().zip(ask.stored.end());
        let (begin, end) = begin_and_end.map_or((0, 1), |((_, offset), end)| (offset, end));
        (ask.stored.below(), begin, end)
    };
    let mut places: Vec<(Object, u64, u64)> = all.iter().map(|(_, ask)| place(ask)).collect();
    places.sort_unstable();
    match places.windows(2).find(|pair| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1) {
        Some(pair) => Err(Error::invalid(format!(
            "two arrays of one transfer lie at the same place of '{}'\n  hint: name each array, or give offsets that are apart",
            pair[0].0
        ))),
        None => Ok(()),
    }
}

/// The file of an array in one file, and how long it must be \[B\].
fn length(ask: &Ask) -> Option<(Object, u64)> {
    let (object, _) = ask.stored.object()?;
    Some((object, ask.stored.end()?))
}

/// The machine without what takes no time, for the model.
fn without(profile: &Profile, what_if: WhatIf) -> Profile {
    let mut profile = profile.clone();
    if what_if.instant_disk {
        profile.storage.disk = Disk::Instant;
    }
    if what_if.instant_network {
        let messages = &mut profile.messages;
        (messages.send_ns, messages.receive_ns, messages.send_byte_ns, messages.receive_byte_ns) = (0.0, 0.0, 0.0, 0.0);
        (profile.network.latency_ns, profile.network.link_rate) = (0.0, f64::INFINITY);
    }
    profile
}

/// Parameters, and why: what is forced, and the library's choice for the rest.
fn decide(
    asked: &TransferSpec,
    transfer: &Arc<Transfer>,
    profile: &Profile,
    size: Size,
    memory: Memory<'_>,
) -> Result<(Parameters, String, Price, Vec<Candidate>), Error> {
    let strategy = asked.strategy.as_deref().map(|name| {
        let known: Vec<&str> = Strategy::ALL.iter().map(|strategy| strategy.name()).collect();
        Strategy::named(name, &Strategy::ALL)
            .ok_or_else(|| Error::invalid(format!("'{name}' is no strategy; there are {}", known.join(", "))))
    });
    let exchange = asked.exchange.as_deref().map(|name| {
        Exchange::from_name(name)
            .ok_or_else(|| Error::invalid(format!("exchange is \"all\" or \"sharers\", not \"{name}\"")))
    });
    let dedicated = || ((size.ranks - size.servers)..size.ranks).collect::<Vec<u32>>();
    let wish = Preference {
        strategy: strategy.transpose()?,
        subchunk_bytes: asked.subchunk_bytes,
        buffer_bytes_max: asked.buffer_bytes,
        slots: asked.slots,
        exchange: exchange.transpose()?,
        server_ranks: asked.servers.clone().or_else(|| (size.servers > 0).then(dedicated)),
        ..Preference::default()
    };
    let nodes = &profile.nodes;
    let machine = Machine { ranks_per_node: nodes.ranks_per_node, cores_per_node: nodes.cores_per_node };
    let refused = |no: hyperslab_plan::Infeasible| Error::invalid(no.to_string());
    let planner = Planner { profile, machine, strategies: &Strategy::ALL };
    let choice = planner.choose(transfer, &wish, memory).map_err(refused)?;
    let mut parameters = choice.parameters;
    if let Some(bytes) = asked.direct_run_bytes {
        parameters.direct_run_bytes = bytes;
    }
    parameters.strategy.feasible(transfer, &parameters).map_err(refused)?;
    let price = planner.price(transfer, &parameters, memory, Effort::CAREFUL);
    Ok((parameters, choice.why, price, choice.candidates))
}
