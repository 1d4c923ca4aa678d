//! A transfer of a rehearsal: what is asked, how it is done, and what each rank brings to it.

use super::array::{asks, local, owned};
use super::spec::{Array, RANKS_MAX, SimulationSpec, TransferSpec, WhatIf};
use crate::imagined::ChosenCall;
use hyperslab::profile::machine;
use hyperslab::{Error, LocalArray};
use hyperslab_layout::{Durability, Object, Policies, View};
use hyperslab_plan::profile::Nodes;
use hyperslab_plan::profile::{Disk, Profile};
use hyperslab_plan::{
    Candidate, Direction, Effort, Exchange, Facts, Memory, MemoryLayout, Parameters, Planner, Preference, Price,
    Strategy, Transfer, TransferArray,
};
use hyperslab_sim::{Part, Size, disk_order};
use hyperslab_world::Exposed;
use std::sync::Arc;

/// A transfer of a rehearsal.
pub(super) struct Moving {
    /// Number of the stage that was asked for.
    pub(super) stage: usize,
    /// What moves.
    pub(super) transfer: Arc<Transfer>,
    pub(super) parameters: Parameters,
    pub(super) why: String,
    /// What the model expects.
    pub(super) price: Price,
    /// All that the planner compared, the cheapest first.
    pub(super) candidates: Vec<Candidate>,
    /// Whether ranks agree before and after.
    pub(super) agrees: bool,
    /// The arrays as they were asked for, and of each that moves, which of them it is.
    arrays: Vec<Array>,
    alike: Vec<usize>,
}

/// What was chosen for a transfer, and what that is expected to cost.
pub(super) struct Chosen<'a> {
    /// Number of the stage that was asked for.
    pub(super) stage: usize,
    /// Bytes of the arrays, as stored \[B\].
    pub(super) bytes: u64,
    pub(super) parameters: &'a Parameters,
    pub(super) why: String,
    pub(super) price: Price,
    /// Whether ranks agree before and after.
    pub(super) agrees: bool,
}

impl Chosen<'_> {
    /// That of a call on a store, on a machine of this profile.
    pub(super) fn on_store<'a>(stage: usize, call: &'a ChosenCall, profile: &Profile) -> Chosen<'a> {
        let Nodes { ranks_per_node, cores_per_node } = profile.nodes;
        let machine = machine(profile, (ranks_per_node, cores_per_node));
        let (transfer, parameters) = (&call.transfer, &call.decision.parameters);
        let planner = Planner { profile, machine, strategies: &Strategy::ALL };
        let price = planner.price(transfer, parameters, &|_| None, Effort::CAREFUL);
        let why = "the library chose so, with the profile of the machine".into();
        Chosen { stage, bytes: transfer.stored_bytes(), parameters, why, price, agrees: true }
    }
}

impl Moving {
    /// What was chosen for it.
    pub(super) fn chosen(&self) -> Chosen<'_> {
        let Moving { stage, parameters, agrees, .. } = self;
        let (why, price) = (self.why.clone(), self.price.clone());
        Chosen { stage: *stage, bytes: self.bytes(), parameters, why, price, agrees: *agrees }
    }

    /// Bytes of the arrays, as stored \[B\].
    pub(super) fn bytes(&self) -> u64 {
        self.transfer.stored_bytes()
    }

    /// What a rank has of an array that moves: a memory of which only the length is known.
    pub(super) fn local(&self, number: usize, rank: u32) -> LocalArray {
        local(&self.arrays[self.alike[number]], &self.transfer.asks[number], rank)
    }

    /// What a rank brings.
    pub(super) fn part(&self, rank: u32) -> Part {
        let each = self.alike.iter().zip(&self.transfer.asks);
        let users = each.map(|(&array, ask)| {
            let LocalArray { memory, element, strides, offset, .. } = local(&self.arrays[array], ask, rank);
            let owned = owned(ask.spread.regular(), &self.arrays[array], rank);
            Exposed { memory, view: Arc::new(View::held(&owned, offset, &strides, element)) }
        });
        let users = users.collect();
        Part { users, facts: Arc::new(Facts::default()) }
    }
}

/// What is asked of a transfer, and how it is done.
pub(super) fn transfer(
    number: usize,
    asked: &TransferSpec,
    spec: &SimulationSpec,
    profile: &Profile,
    size: Size,
    lengths: &mut Vec<(Object, u64)>,
) -> Result<Moving, Error> {
    let mut all: Vec<(usize, TransferArray)> = Vec::new();
    for (i, array) in asked.arrays.iter().enumerate() {
        all.extend(asks(array, spec.clients, asked.write && asked.fresh)?.into_iter().map(|ask| (i, ask)));
    }
    apart(&all)?;
    lengths.extend(all.iter().filter_map(|(_, ask)| length(ask)));
    let direction = if asked.write { Direction::Write } else { Direction::Read };
    let (alike, asks): (Vec<usize>, Vec<TransferArray>) = all.into_iter().unzip();
    let durability = if asked.sync && asked.write { Durability::Now } else { Durability::Cached };
    let policies = Policies::of(durability);
    let transfer = Arc::new(Transfer { direction, asks, ranks: size.ranks, policies });
    let arrays: Vec<Array> = asked.arrays.clone();
    let memory = |number: usize| -> Option<MemoryLayout> {
        let (&i, ask) = (alike.get(number)?, transfer.asks.get(number)?);
        let part = local(&arrays[i], ask, 0);
        let dims: Vec<(u64, i64)> = part.shape.iter().copied().zip(part.strides).collect();
        Some(MemoryLayout::new(&dims, part.element.bytes()))
    };
    let as_if = without(profile, spec.what_if);
    let (mut parameters, why, price, candidates) = decide(asked, &transfer, &as_if, size, &memory)?;
    if parameters.strategy == Strategy::DISK_DIRECTED && asked.presort {
        let layout = (spec.disk_layout.into(), spec.seed);
        parameters.order = disk_order(profile, size, layout, lengths, &transfer, &parameters);
    }
    let agrees = asked.agree;
    Ok(Moving { stage: number, transfer, parameters, why, price, candidates, agrees, arrays, alike })
}

/// Whether no two arrays lie in the same place.
fn apart(all: &[(usize, TransferArray)]) -> Result<(), Error> {
    let place = |ask: &TransferArray| {
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
fn length(ask: &TransferArray) -> Option<(Object, u64)> {
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
        Strategy::named(name, &Strategy::ALL).ok_or_else(|| {
            Error::invalid(format!("there is no strategy '{name}'\n  hint: choose among {}", known.join(", ")))
        })
    });
    let exchange = asked.exchange.as_deref().map(|name| {
        Exchange::from_name(name)
            .ok_or_else(|| Error::invalid(format!("exchange is \"all\" or \"sharers\", not \"{name}\"")))
    });
    let dedicated = || ((size.ranks - size.servers)..size.ranks).collect::<Vec<u32>>();
    let hints = Preference {
        strategy: strategy.transpose()?,
        subchunk_bytes: asked.subchunk_bytes,
        buffer_bytes_max: asked.buffer_bytes,
        slots: asked.slots,
        exchange: exchange.transpose()?,
        server_ranks: asked.servers.clone().or_else(|| (size.servers > 0).then(dedicated)),
        ..Preference::default()
    };
    let Nodes { ranks_per_node, cores_per_node } = profile.nodes;
    let machine = machine(profile, (ranks_per_node, cores_per_node));
    let refused = |no: hyperslab_plan::Infeasible| Error::invalid(no.to_string());
    let planner = Planner { profile, machine, strategies: &Strategy::ALL };
    let choice = planner.choose(transfer, &hints, memory).map_err(refused)?;
    let mut parameters = choice.parameters;
    if let Some(bytes) = asked.direct_run_bytes {
        parameters.direct_run_bytes = bytes;
    }
    parameters.strategy.feasible(transfer, &parameters).map_err(refused)?;
    if parameters.slots > RANKS_MAX {
        let text = format!("{} buffer slots of a rank, more than the {RANKS_MAX} that are simulated", parameters.slots);
        return Err(Error::invalid(text));
    }
    let price = planner.price(transfer, &parameters, memory, Effort::CAREFUL);
    Ok((parameters, choice.why, price, choice.candidates))
}
