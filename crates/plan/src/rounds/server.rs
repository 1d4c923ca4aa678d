//! A server's lane: group after group, each through one slot.

use super::client::Pieces;
use super::clients::Clients;
use super::{Duty, Rounds, sparse};
use crate::emit::{Emitter, Placed, load, place, save};
use crate::facts::Facts;
use crate::program::{Action, After, Parts, Place, Step, StepId};
use crate::transfer::{Direction, Spread};
use crate::units::Unit;
use hyperslab_layout::Overlapping;
use std::sync::Arc;

/// The groups of one server, in the sequence.
enum Groups {
    /// Every so-manieth place.
    Turns { place: u64, every: u64 },
    /// At these places, the last one first.
    Sampled(Vec<u64>),
    /// Those of the rank's own pieces that it serves.
    Shared(Box<Pieces>),
}

impl Groups {
    fn next(&mut self, rounds: &Rounds) -> Option<u64> {
        match self {
            Groups::Turns { place, every } => {
                let here = *place;
                *place += *every;
                // Places without a group come only at the end of a domain.
                (here < rounds.course.places()).then(|| rounds.course.group(here))?
            }
            Groups::Sampled(places) => rounds.course.group(places.pop()?),
            Groups::Shared(pieces) => loop {
                let group = rounds.group_of(pieces.next(|unit, _, _| unit)?);
                let place = rounds.course.place(group);
                while pieces.peek() == Some(place) {
                    pieces.next(|_, _, _| ());
                }
                if rounds.server_of(group) == rounds.rank {
                    return Some(group);
                }
            },
        }
    }
}

impl Groups {
    /// Passes over groups before this one, as far as the sequence allows.
    fn pass_to(&mut self, rounds: &Rounds, group: u64) {
        if let Groups::Turns { place, every } = self {
            let server = *place % *every;
            *place = rounds.course.onward(*place, (server, *every), group);
        }
    }
}

/// A group that is being emitted.
struct Round {
    placed: Vec<Placed>,
    clients: Clients,
    slot: usize,
    /// The first step of the round; what the pieces wait for; the first of the steps that move pieces.
    first: StepId,
    ready: After,
    moving: StepId,
}

pub(super) struct Server {
    rounds: Arc<Rounds>,
    facts: Arc<Facts>,
    lane: Emitter,
    groups: Groups,
    begun: u64,
    /// Steps that use each slot, to be over before its next use.
    users: Vec<After>,
    current: Option<Round>,
    closed: bool,
}

impl Server {
    /// The lane of this rank, if it may be a server.
    pub(super) fn new(rounds: Arc<Rounds>, facts: &Arc<Facts>) -> Option<Server> {
        let groups = match rounds.duty {
            Duty::Sharers => Groups::Shared(Box::new(Pieces::new(rounds.clone(), facts))),
            _ => {
                let place = rounds.servers.iter().position(|&server| server == rounds.rank)? as u64;
                Groups::Turns { place, every: rounds.servers.len() as u64 }
            }
        };
        Some(Server::over(rounds, facts, groups))
    }

    /// The same of some groups only, at these places of the sequence; of arrays with a distribution.
    pub(super) fn sampled(rounds: Arc<Rounds>, facts: &Arc<Facts>, mut places: Vec<u64>) -> Server {
        places.reverse();
        Server::over(rounds, facts, Groups::Sampled(places))
    }

    fn over(rounds: Arc<Rounds>, facts: &Arc<Facts>, groups: Groups) -> Server {
        let users = vec![After::none(); rounds.slots as usize];
        let (lane, facts) = (Emitter::default(), facts.clone());
        Server { rounds, facts, lane, groups, begun: 0, users, current: None, closed: false }
    }

    /// The next group of which anybody holds something. The others take no slot: their round would have no step for
    /// which the slot's next user could wait.
    fn next_group(&mut self, rounds: &Rounds) -> Option<u64> {
        loop {
            let group = self.groups.next(rounds)?;
            if rounds.units_of(group).any(|unit| wanted(rounds, &self.facts, &unit)) {
                return Some(group);
            }
            let next = rounds.held_from(&self.facts, group + 1).unwrap_or(u64::MAX / 2);
            self.groups.pass_to(rounds, next);
        }
    }

    /// Begins the next group. Returns whether there was one.
    fn begin(&mut self) -> bool {
        let rounds = self.rounds.clone();
        let Some(group) = self.next_group(&rounds) else { return false };
        let slot = (self.begun % u64::from(rounds.slots)) as usize;
        self.lane.round = rounds.round_of(group);
        let free = std::mem::take(&mut self.users[slot]);
        let units = rounds.units_of(group).filter(|unit| wanted(&rounds, &self.facts, unit));
        let placed =
            place(&rounds.transfer, units.map(|unit| as_held(&rounds, &self.facts, unit)), slot as u32, rounds.direct);
        let first = self.lane.mark();
        let ready = match rounds.transfer.direction {
            Direction::Write => {
                placed.iter().fold(After::none(), |ready, one| merge(ready, &one.prepare(&mut self.lane, &free)))
            }
            Direction::Read => {
                load(&placed, &mut self.lane, &free, |unit| sparse::regions(self.facts.met.get(&unit.number)?, unit));
                self.lane.since(first)
            }
        };
        let clients = Clients::new(&self.facts, &placed, |unit| rounds.replica(unit));
        let moving = self.lane.mark();
        self.current = Some(Round { placed, clients, slot, first, ready, moving });
        self.begun += 1;
        true
    }

    /// The exchange with the next client of the current group: a message, or copies, which are queued. `None` when there
    /// is no client left.
    fn exchange(&mut self) -> Option<Step> {
        let round = self.current.as_mut()?;
        let write = self.rounds.transfer.direction == Direction::Write;
        let mut parts = Parts::new();
        let rank = round.clients.next(&round.placed, &mut parts)?;
        if rank != self.rounds.rank {
            let action = if write { Action::Recv { from: rank, parts } } else { Action::Send { to: rank, parts } };
            return Some(self.lane.step(&round.ready, action));
        }
        for (exposed, region, slot) in parts {
            let user = Place::User(exposed);
            let (from, to) = if write { (user, slot) } else { (slot, user) };
            self.lane.emit(&round.ready, Action::Copy { region, from, to });
        }
        self.lane.pop()
    }

    /// Ends the current group: what was received is written.
    fn end(&mut self) {
        let Some(round) = self.current.take() else { return };
        if self.rounds.transfer.direction == Direction::Read {
            self.users[round.slot] = self.lane.since(round.first);
            return;
        }
        let filled = self.lane.since(round.moving);
        let filled = if filled.is_empty() { round.ready } else { filled };
        let saving = self.lane.mark();
        let (rounds, facts) = (&self.rounds, &self.facts);
        let partly = |unit: &Unit| {
            let met = facts.met.get(&unit.number).filter(|_| !all_held(rounds, facts, unit))?;
            Some(met.iter().map(|met| met.region.clone()).collect())
        };
        save(&round.placed, &mut self.lane, &filled, partly);
        let saved = self.lane.since(saving);
        self.users[round.slot] = if saved.is_empty() { filled } else { saved };
    }
}

/// The steps between storage and a slot in one round of a rank, without its exchange with clients, of whom there may be
/// very many.
pub(super) fn storage_steps(rounds: &Rounds) -> Vec<Step> {
    let groups = rounds.course.groups();
    let turn = rounds.servers.iter().position(|&server| server == rounds.rank).unwrap_or(rounds.rank as usize);
    if groups == 0 {
        return Vec::new();
    }
    let mut lane = Emitter::default();
    let units = rounds.units_of((turn as u64).min(groups - 1));
    let placed = place(&rounds.transfer, units, 0, rounds.direct);
    if rounds.transfer.direction == Direction::Read {
        load(&placed, &mut lane, &After::none(), |_| None);
    } else {
        let ready =
            placed.iter().fold(After::none(), |ready, one| merge(ready, &one.prepare(&mut lane, &After::none())));
        save(&placed, &mut lane, &ready, |_| None);
    }
    std::iter::from_fn(|| lane.pop()).collect()
}

/// The unit, as what ranks hold of it covers it.
fn as_held(rounds: &Rounds, facts: &Facts, mut unit: Unit) -> Unit {
    unit.covered &= all_held(rounds, facts, &unit);
    unit
}

/// Whether somebody holds each element that the section selects of a unit: explicit pieces may leave some out.
fn all_held(rounds: &Rounds, facts: &Facts, unit: &Unit) -> bool {
    let regular = rounds.transfer.asks[unit.array as usize].spread != Spread::Explicit;
    let mut held = facts.met.get(&unit.number).into_iter().flatten().map(|met| met.region.elements());
    let all = unit.region().elements();
    match rounds.transfer.policies.overlapping {
        _ if regular => true,
        Overlapping::Refused => held.sum::<u64>() == all,
        // Where pieces may overlap, their elements do not add up.
        Overlapping::Any => held.any(|elements| elements == all),
    }
}

/// Whether anybody holds something of a unit; otherwise it stays as it is.
fn wanted(rounds: &Rounds, facts: &Facts, unit: &Unit) -> bool {
    rounds.transfer.asks[unit.array as usize].spread != Spread::Explicit || facts.met.contains_key(&unit.number)
}

/// Both, without naming the same steps twice in a row.
fn merge(steps: After, more: &After) -> After {
    if steps == *more { steps } else { steps.and(more) }
}

impl Iterator for Server {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.lane.pop() {
                return Some(step);
            }
            if let Some(step) = self.exchange() {
                return Some(step);
            }
            if self.current.is_some() {
                self.end();
                continue;
            }
            if self.begin() {
                continue;
            }
            if self.closed || !self.rounds.transfer.is_synced() || self.begun == 0 {
                return None;
            }
            self.closed = true;
            let last = self.users.iter().fold(After::none(), |all, users| all.and(users));
            self.lane.emit(&last, Action::Sync { below: self.rounds.transfer.objects_below() });
        }
    }
}
