//! Server-directed I/O: servers decide what moves when, subchunk by subchunk, in the order of the file.
//!
//! Source: Panda (Chen et al. 1996, section 2; Seamons et al. 1995), the disk-directed I/O of Kotz (1997) at the
//! level of files. Servers take turns over groups of units. For each group of a write, a server receives the pieces
//! from the clients that overlap it into a slot and writes the slot; a read is the reverse. With two slots or more,
//! the pieces of one group travel while another is at the disk.
//!
//! Departures from Panda: servers are ranks of the same communicator; small chunks, also of different arrays, share
//! a group and so a message; and no request travels, because clients derive from the same closed forms what each
//! server will want, in which order.
//!
//! No cycle of waits: all ranks handle groups in the order of their numbers. The lowest group that is not finished
//! is the next of its server, and the next of each of its clients.

use super::Infeasible;
use crate::emit::{Emitter, Placed};
use crate::program::{Action, Lane, Place, Program, Step, StepId};
use crate::transfer::{Direction, Parameters, Transfer};
use crate::units::{Unit, Units};
use hyperslab_layout::Region;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Alignment of units inside a slot \[B\].
const UNIT_ALIGN: u64 = 64;

type Parts = Vec<(u32, Region, Place)>;

struct Rounds {
    transfer: Arc<Transfer>,
    units: Units,
    servers: Vec<u32>,
    slots: u32,
    /// Units in a group.
    group: u64,
    rank: u32,
}

impl Rounds {
    fn new(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Rounds {
        let units = Units::new(transfer, parameters.subchunk_bytes);
        // Coding needs memory for each unit of a group, and for small units more than they themselves.
        let each = units.bytes_max().saturating_add(units.coding_bytes_max(transfer));
        let group = (parameters.subchunk_bytes / each.max(1)).clamp(1, units.count().max(1));
        let servers = parameters.servers.clone();
        Rounds { transfer: transfer.clone(), units, servers, slots: parameters.slots.max(1), group, rank }
    }

    fn slot_bytes(&self) -> u64 {
        self.group.min(self.units.count()) * self.units.bytes_max().next_multiple_of(UNIT_ALIGN)
    }

    fn server_of(&self, group: u64) -> u32 {
        self.servers[(group % self.servers.len() as u64) as usize]
    }

    /// Ranks that take part in a unit.
    fn clients(&self, unit: &Unit) -> Vec<u32> {
        let replica = (self.transfer.direction == Direction::Write).then_some(unit.number);
        self.transfer.asks[unit.array as usize].distribution.owners(&unit.bounds, replica)
    }

    /// The piece of a unit that a rank holds.
    fn piece(&self, unit: &Unit, rank: u32) -> Region {
        self.transfer.asks[unit.array as usize].distribution.owned(rank).intersect(&unit.region())
    }
}

pub(super) fn feasible(transfer: &Transfer, parameters: &Parameters) -> Result<(), Infeasible> {
    let rounds = Rounds::new(&Arc::new(transfer.clone()), parameters, 0);
    let coding = rounds.units.coding_bytes_max(transfer).saturating_mul(rounds.group);
    let need = rounds.slot_bytes().saturating_add(coding).saturating_mul(u64::from(rounds.slots));
    if need > parameters.buffer_bytes_max {
        return Err(Infeasible {
            reason: format!(
                "{} buffers of {} B for the largest chunk or subchunk need {need} B, but the buffers of a rank may have {} B",
                rounds.slots,
                rounds.slot_bytes(),
                parameters.buffer_bytes_max
            ),
            hint: "allow more buffer bytes, or store smaller chunks".into(),
        });
    }
    let mut servers = parameters.servers.clone();
    servers.sort_unstable();
    if let Some(pair) = servers.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Infeasible {
            reason: format!("rank {} is named as a server twice", pair[0]),
            hint: "name each server once".into(),
        });
    }
    match servers.iter().find(|&&server| server >= transfer.ranks) {
        None if servers.is_empty() => {
            Err(Infeasible { reason: "there is no server".into(), hint: "name at least one rank as server".into() })
        }
        None => Ok(()),
        Some(server) => Err(Infeasible {
            reason: format!("rank {server} shall be a server, but there are only {} ranks", transfer.ranks),
            hint: "name servers between 0 and the number of ranks - 1".into(),
        }),
    }
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Program {
    let rounds = Arc::new(Rounds::new(transfer, parameters, rank));
    let mut lanes: Vec<Lane> = vec![client(rounds.clone())];
    let place = rounds.servers.iter().position(|&server| server == rank);
    let (mut slots, mut slot_bytes) = (0, 0);
    if let Some(first) = place {
        (slots, slot_bytes) = (rounds.slots, rounds.slot_bytes());
        lanes.push(Box::new(Server::new(rounds, first as u64)));
    }
    Program { slots, slot_bytes, lanes }
}

/// The client's lane: one message for each group that overlaps this rank, in the order of groups.
fn client(rounds: Arc<Rounds>) -> Lane {
    let arrays = 0..rounds.transfer.asks.len() as u32;
    let at = rounds.clone();
    let mine = arrays.flat_map(move |array| {
        let distribution = &at.transfer.asks[array as usize].distribution;
        let (replicas, me) = (distribution.replication(), distribution.replica_of(at.rank));
        let write = at.transfer.direction == Direction::Write;
        let owned = distribution.owned(at.rank);
        at.units.touched(array, &owned).filter(move |unit| !write || unit.number % replicas == me)
    });
    let mut mine = mine.peekable();
    let mut id = 0;
    Box::new(std::iter::from_fn(move || {
        loop {
            let unit = mine.next()?;
            let group = unit.number / rounds.group;
            let server = rounds.server_of(group);
            let mut parts: Parts = vec![(unit.array, rounds.piece(&unit, rounds.rank), Place::User(unit.array))];
            while let Some(unit) = mine.next_if(|unit| unit.number / rounds.group == group) {
                parts.push((unit.array, rounds.piece(&unit, rounds.rank), Place::User(unit.array)));
            }
            // What a server holds itself it copies, in its other lane.
            if server == rounds.rank {
                continue;
            }
            let action = match rounds.transfer.direction {
                Direction::Write => Action::Send { to: server, parts },
                Direction::Read => Action::Recv { from: server, parts },
            };
            id += 1;
            return Some(Step { id: id - 1, after: Vec::new(), action });
        }
    }))
}

/// The server's lane.
struct Server {
    rounds: Arc<Rounds>,
    lane: Emitter,
    /// Next group, and how many this server has begun.
    group: u64,
    begun: u64,
    /// Steps that use each slot, to be over before its next use.
    users: Vec<Vec<StepId>>,
    closed: bool,
}

impl Server {
    fn new(rounds: Arc<Rounds>, first: u64) -> Server {
        let users = vec![Vec::new(); rounds.slots as usize];
        Server { rounds, lane: Emitter::default(), group: first, begun: 0, users, closed: false }
    }

    /// Emits the steps of the next group. Returns whether there was one.
    fn round(&mut self) -> bool {
        let rounds = self.rounds.clone();
        let first = self.group * rounds.group;
        if first >= rounds.units.count() {
            return false;
        }
        let slot = (self.begun % u64::from(rounds.slots)) as u32;
        let free = std::mem::take(&mut self.users[slot as usize]);
        let units: Vec<Unit> =
            (first..(first + rounds.group).min(rounds.units.count())).map(|n| rounds.units.unit(n)).collect();
        let align = rounds.units.bytes_max().next_multiple_of(UNIT_ALIGN);
        let placed: Vec<Placed> = units
            .iter()
            .enumerate()
            .map(|(i, unit)| Placed::new(&rounds.transfer.asks[unit.array as usize], unit, slot, i as u64 * align))
            .collect();
        self.users[slot as usize] = match rounds.transfer.direction {
            Direction::Write => self.write(&rounds, &placed, &free),
            Direction::Read => self.read(&rounds, &placed, &free),
        };
        self.group += rounds.servers.len() as u64;
        self.begun += 1;
        true
    }

    /// What each rank contributes to a group, and what this rank copies itself.
    fn parts(rounds: &Rounds, placed: &[Placed]) -> (BTreeMap<u32, Parts>, Parts) {
        let mut clients: BTreeMap<u32, Parts> = BTreeMap::new();
        for placed in placed {
            for client in rounds.clients(placed.unit) {
                let piece = rounds.piece(placed.unit, client);
                clients.entry(client).or_default().push((placed.unit.array, piece, placed.section()));
            }
        }
        let own = clients.remove(&rounds.rank).unwrap_or_default();
        (clients, own)
    }

    fn write(&mut self, rounds: &Rounds, placed: &[Placed], free: &[StepId]) -> Vec<StepId> {
        let mut ready: Vec<StepId> = placed.iter().flat_map(|p| p.prepare(&mut self.lane, free)).collect();
        ready.sort_unstable();
        ready.dedup();
        let (clients, own) = Server::parts(rounds, placed);
        let mut filled: Vec<StepId> = Vec::with_capacity(clients.len() + own.len());
        for (from, parts) in clients {
            filled.push(self.lane.emit(&ready, Action::Recv { from, parts }));
        }
        for (array, region, to) in own {
            filled.push(self.lane.emit(&ready, Action::Copy { region, from: Place::User(array), to }));
        }
        // A unit that only replicas without a part hold cannot be: somebody holds every element.
        placed.iter().map(|p| p.save(&mut self.lane, &filled)).collect()
    }

    fn read(&mut self, rounds: &Rounds, placed: &[Placed], free: &[StepId]) -> Vec<StepId> {
        let loaded: Vec<StepId> = placed.iter().map(|p| p.load(&mut self.lane, free)).collect();
        let (clients, own) = Server::parts(rounds, placed);
        let mut used = loaded.clone();
        for (to, parts) in clients {
            used.push(self.lane.emit(&loaded, Action::Send { to, parts }));
        }
        for (array, region, from) in own {
            used.push(self.lane.emit(&loaded, Action::Copy { region, from, to: Place::User(array) }));
        }
        used
    }
}

impl Iterator for Server {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.lane.pop() {
                return Some(step);
            }
            if self.round() {
                continue;
            }
            if self.closed || !self.rounds.transfer.sync || self.begun == 0 {
                return None;
            }
            self.closed = true;
            let last: Vec<StepId> = self.users.iter().flatten().copied().collect();
            self.lane.emit(&last, Action::Sync { below: self.rounds.transfer.objects_below() });
        }
    }
}
