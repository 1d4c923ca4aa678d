//! What a program does, counted and told.

mod json;
mod text;
mod watch;

use crate::choose::Choice;
use crate::facts::Facts;
use crate::program::{Action, Program};
use crate::strategies::Servers;
use crate::strategy::{Infeasible, Parameters, Strategy};
use crate::transfer::Transfer;
use hyperslab_layout::View;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts over one rank's program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Steps.
    pub steps: u64,
    /// Messages to send and to receive, by peer.
    pub messages: BTreeMap<u32, u64>,
    /// Pieces in those messages.
    pub pieces: u64,
    /// Elements in messages sent.
    pub elements_sent: u64,
    /// Elements in messages received.
    pub elements_received: u64,
    /// Reads and writes of objects.
    pub requests: u64,
    /// Bytes that they move, before encoding \[B\].
    pub request_bytes: u64,
    /// Bytes of buffer slots \[B\].
    pub slot_bytes: u64,
}

/// Counts a program's steps, to the last.
pub fn tally(program: Program) -> Tally {
    let mut tally = Tally { slot_bytes: u64::from(program.slots) * program.slot_bytes, ..Tally::default() };
    for step in program.lanes.into_iter().flatten() {
        tally.steps += 1;
        match &step.action {
            Action::Send { to: peer, parts } | Action::Recv { from: peer, parts } => {
                let elements: u64 = parts.iter().map(|(_, region, _)| region.elements()).sum();
                *tally.messages.entry(*peer).or_default() += 1;
                tally.pieces += parts.len() as u64;
                match &step.action {
                    Action::Send { .. } => tally.elements_sent += elements,
                    _ => tally.elements_received += elements,
                }
            }
            Action::Read { region, there, .. } | Action::Write { region, there, .. } => {
                tally.requests += 1;
                tally.request_bytes += region.elements() * there.element.bytes();
            }
            Action::Get { .. } | Action::Put { .. } | Action::Make { .. } => tally.requests += 1,
            Action::Decode { region, to: crate::Place::Slot(_, view), .. }
            | Action::Encode { region, from: crate::Place::Slot(_, view), .. } => {
                tally.request_bytes += region.elements() * view.element.bytes();
            }
            _ => {}
        }
    }
    tally
}

/// How much of a transfer an explanation shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Ranks, servers, and ranks with which a server moves data in one round.
    pub ranks: u32,
    /// Rounds.
    pub rounds: u64,
    /// Steps, and pieces in them, of all programs that are looked at; one with more than its part of them is counted no further,
    /// and says so.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { ranks: 8, rounds: 3, steps: 1 << 20 }
    }
}

/// What will be done in a transfer, by whom, and why so: for people as text (`to_string`), for programs by
/// [`Explanation::to_json`].
#[derive(Clone, Debug)]
pub struct Explanation {
    /// What is asked.
    pub transfer: Arc<Transfer>,
    /// What was chosen, why, and at what price.
    pub choice: Choice,
    /// The other strategies, and why they cannot be, where they cannot.
    pub others: Vec<(Strategy, Option<Infeasible>)>,
    /// Who exchanges what with each server in the first rounds.
    pub rounds: Vec<Round>,
    /// How many more rounds there are.
    pub more_rounds: u64,
    /// What servers ask of storage.
    pub servers: Vec<Requests>,
    /// How many servers are not shown; they may be all ranks, of which some serve nothing.
    pub more_servers: u64,
    /// What ranks send, receive and need.
    pub ranks: Vec<Share>,
}

/// What one server moves in one round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// Its number.
    pub round: u64,
    /// The server.
    pub server: u32,
    /// Ranks whose elements it moves, itself among them, in rising order.
    pub peers: Vec<Moved>,
    /// Those that are not shown: how many they are, and what they move together.
    pub more: (u64, Counts),
}

/// What moves between a server and one rank in one round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The rank.
    pub rank: u32,
    /// What moves.
    pub counts: Counts,
}

/// An amount of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Pieces.
    pub pieces: u64,
    /// Elements in them.
    pub elements: u64,
    /// Bytes that these have in memory \[B\].
    pub bytes: u64,
}

/// What one server asks of storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requests {
    /// The server.
    pub rank: u32,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Contiguous ranges of bytes in them.
    pub extents: u64,
    /// Bytes, before encoding \[B\].
    pub bytes: u64,
    /// Different objects.
    pub objects: u64,
    /// Whether the server's program is longer than what was counted.
    pub cut: bool,
}

/// What one rank sends, receives and needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// The rank.
    pub rank: u32,
    /// Steps of its program.
    pub steps: u64,
    /// Whether the program is longer: only the beginning of each lane was counted, everywhere here.
    pub cut: bool,
    /// Messages sent, and what is in them.
    pub sent: (u64, Counts),
    /// Messages received, and what is in them.
    pub received: (u64, Counts),
    /// Buffer slots.
    pub slots: u32,
    /// Size of one \[B\].
    pub slot_bytes: u64,
}

/// Tells what will be done in a transfer, for which `choice` was made. `facts` has what each rank learned, by rank; it may
/// be empty when every array's spread has a closed form. `views` says where a rank's own elements lie.
///
/// Programs of at most twice as many ranks as the limits say are looked at: the first ranks and the first servers.
pub fn explain(
    transfer: &Arc<Transfer>,
    choice: &Choice,
    limits: Limits,
    facts: &[Arc<Facts>],
    views: impl Fn(u32) -> Vec<Arc<View>>,
) -> Explanation {
    let parameters = &choice.parameters;
    let servers = Servers::of(parameters, transfer.ranks);
    let shown: Vec<u32> = servers.iter().take(limits.ranks as usize).collect();
    let mut ranks: Vec<u32> = (0..transfer.ranks.min(limits.ranks)).chain(shown.iter().copied()).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let mut told = Explanation {
        transfer: transfer.clone(),
        choice: choice.clone(),
        others: others(transfer, choice),
        rounds: Vec::new(),
        more_rounds: 0,
        servers: Vec::new(),
        more_servers: (servers.len() - shown.len()) as u64,
        ranks: Vec::new(),
    };
    let none = Arc::default();
    let sizes = watch::Sizes::new(transfer, facts);
    // What others do not need is left to servers, which have the longest programs.
    ranks.sort_by_key(|rank| shown.contains(rank));
    let (mut left, mut programs) = (limits.steps, ranks.len() as u64);
    for rank in ranks {
        let known = facts.get(rank as usize).unwrap_or(&none);
        let program = parameters.strategy.program(transfer, parameters, known, rank, &views(rank));
        let limits = Limits { steps: (left / programs).max(1), ..limits };
        let watched = watch::Watched::of(program, &sizes, rank, limits);
        (left, programs) = (left.saturating_sub(watched.looked_at), programs - 1);
        if rank < limits.ranks {
            told.ranks.push(watched.share);
        }
        if shown.contains(&rank) {
            told.rounds.extend(watched.rounds);
            told.more_rounds = told.more_rounds.max(watched.more_rounds);
            told.servers.push(watched.requests);
        }
    }
    told.ranks.sort_by_key(|share| share.rank);
    told.servers.sort_by_key(|requests| requests.rank);
    told.rounds.sort_by_key(|round| (round.round, round.server));
    told
}

/// The strategies that were not taken.
fn others(transfer: &Arc<Transfer>, choice: &Choice) -> Vec<(Strategy, Option<Infeasible>)> {
    let others = choice.strategies.iter().copied().filter(|&strategy| strategy != choice.parameters.strategy);
    let no = |strategy| {
        let refused = choice.refused.iter().find(|(other, _)| *other == strategy).map(|(_, no)| no.clone());
        let priced = choice.candidates.iter().any(|one| one.parameters.strategy == strategy);
        let parameters = Parameters { strategy, ..choice.parameters.clone() };
        if priced { None } else { refused.or_else(|| strategy.feasible(transfer, &parameters).err()) }
    };
    others.map(|strategy| (strategy, no(strategy))).collect()
}
