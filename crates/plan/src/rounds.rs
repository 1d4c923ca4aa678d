//! Rounds: what all strategies share that move units through servers.
//!
//! Units are taken in groups, one unit each unless chunks are small. All groups have a place in one sequence, which every
//! rank knows in closed form: that of the file (server-directed), that of the disk (disk-directed), or domain beside
//! domain (two-phase). For each group of a write, its server receives the pieces from the ranks that hold them into a slot
//! and writes the slot; a read is the reverse. With two slots or more, the pieces of one group travel while another is
//! at the disk. No request travels: clients derive from the same closed forms what each server wants, and in which
//! order.
//!
//! No cycle of waits: every rank handles groups in the order of the sequence. The first group that is not finished is
//! the next of its server, and the next of each of its clients.

mod client;
mod clients;
mod course;
mod server;
mod sparse;

use crate::emit::UNIT_ALIGN;
use crate::facts::{Facts, Mine};
use crate::program::{Lane, Program, Step};
use crate::strategy::{Infeasible, Parameters, Role, Sequence};
use crate::transfer::{Direction, Exchange, Spread, Transfer};
use crate::units::{Unit, Units};
use course::Course;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ranks, or groups, each of which is asked what it has, or who handles it.
pub(crate) const COUNTED_MAX: u64 = 32;

/// How servers share the groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// They take turns.
    Turns,
    /// Each has a contiguous part of the file.
    Domains,
    /// Who holds something of a group serves it; holders take turns.
    Sharers,
}

pub(crate) struct Rounds {
    transfer: Arc<Transfer>,
    units: Units,
    servers: Arc<[u32]>,
    slots: u32,
    buffer_bytes_max: u64,
    /// Units in a group.
    group: u64,
    duty: Duty,
    course: Course,
    rank: u32,
    /// Whether the system's cache shall be bypassed.
    direct: bool,
}

impl Rounds {
    pub(crate) fn new(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32, duty: Duty) -> Rounds {
        let units = Units::new(transfer, parameters.subchunk_bytes);
        // Coding needs memory for each unit of a group, and for small units more than they themselves.
        let each = units.bytes_max().saturating_add(units.coding_bytes_max(transfer));
        let group = (parameters.subchunk_bytes / each.max(1)).clamp(1, units.count().max(1));
        let groups = units.count().div_ceil(group);
        let servers = parameters.servers.clone();
        let course = match duty {
            Duty::Domains => Course::domains(groups, servers.len() as u64),
            _ => Course::listed(groups, &parameters.order),
        };
        let slots = parameters.slots.max(1);
        let (transfer, buffer_bytes_max) = (transfer.clone(), parameters.buffer_bytes_max);
        Rounds { transfer, units, servers, slots, buffer_bytes_max, group, duty, course, rank, direct: false }
    }

    /// The rounds of a strategy in which some ranks serve; `None` where each handles storage for its own elements.
    pub(crate) fn of(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Option<Rounds> {
        let (role, order) = (parameters.role(), parameters.strategy.order());
        let mut parameters = parameters.clone();
        match role {
            Role::Own => return None,
            Role::Root => (parameters.servers, parameters.slots) = ([0].into(), 1),
            Role::Servers | Role::Holders => {}
        }
        if order != Sequence::Disk {
            parameters.order.clear();
        }
        let duty = match (role, order) {
            (Role::Holders, _) => Duty::Sharers,
            (_, Sequence::Domains) => Duty::Domains,
            _ => Duty::Turns,
        };
        let rounds = Rounds::new(transfer, &parameters, rank, duty);
        Some(if order == Sequence::Disk { rounds.directly() } else { rounds })
    }

    /// Rounds that say who checks explicit pieces for overlaps, also where nobody serves.
    pub(crate) fn checking(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32) -> Rounds {
        let all = Parameters { exchange: Exchange::All, ..parameters.clone() };
        let in_turn = || Parameters { order: Vec::new(), ..all.clone() };
        Rounds::of(transfer, &all, rank).unwrap_or_else(|| Rounds::new(transfer, &in_turn(), rank, Duty::Turns))
    }

    /// The same, by direct I/O where that is possible.
    fn directly(self) -> Rounds {
        Rounds { direct: true, ..self }
    }

    pub(crate) fn units(&self) -> &Units {
        &self.units
    }

    fn slot_bytes(&self) -> u64 {
        self.group.min(self.units.count()) * self.units.bytes_max().next_multiple_of(UNIT_ALIGN)
    }

    /// Units in a group.
    pub(crate) fn group_size(&self) -> u64 {
        self.group
    }

    pub(crate) fn group_of(&self, unit: u64) -> u64 {
        unit / self.group
    }

    /// Units of the first groups that this rank serves, so many of them, where it is a server from the start.
    pub(crate) fn first_units(&self, groups: usize) -> Vec<Unit> {
        let Some(place) = self.servers.iter().position(|&server| server == self.rank) else { return Vec::new() };
        let places = (place as u64..self.course.places()).step_by(self.servers.len());
        let groups = places.filter_map(|place| self.course.group(place)).take(groups);
        groups.flat_map(|group| self.units_of(group)).collect()
    }

    /// Units of a group.
    fn units_of(&self, group: u64) -> impl Iterator<Item = Unit> + '_ {
        let first = group * self.group;
        (first..(first + self.group).min(self.units.count())).map(|number| self.units.unit(number))
    }

    /// The first group from this one on of which somebody may hold something: of arrays of explicit pieces, only units
    /// that a rank told of count, however many there are.
    fn held_from(&self, facts: &Facts, group: u64) -> Option<u64> {
        let mut unit = group * self.group;
        while unit < self.units.count() {
            let (array, end) = self.units.array_of(unit);
            if self.transfer.asks[array as usize].spread != Spread::Explicit {
                return Some(self.group_of(unit));
            }
            if let Some((&met, _)) = facts.met.range(unit..end).next() {
                return Some(self.group_of(met));
            }
            unit = end;
        }
        None
    }

    pub(crate) fn server_of(&self, group: u64) -> u32 {
        match self.duty {
            Duty::Sharers => self.sharer(group),
            _ => self.servers[(self.course.place(group) % self.servers.len() as u64) as usize],
        }
    }

    /// Whether this rank handles all groups.
    fn serves_alone(&self) -> bool {
        self.duty != Duty::Sharers && *self.servers == [self.rank]
    }

    /// Who handles the group at a place of the sequence, and in which round.
    fn turn(&self, place: u64) -> Option<(u32, u64)> {
        let servers = self.servers.len() as u64;
        let server = match self.duty {
            Duty::Sharers => self.sharer(self.course.group(place)?),
            _ => self.servers[(place % servers) as usize],
        };
        Some((server, place / servers))
    }

    /// The round in which a group's server handles it.
    fn round_of(&self, group: u64) -> u64 {
        self.course.place(group) / self.servers.len() as u64
    }

    /// One of the ranks that hold a part of the first unit of a group, another one for each group.
    fn sharer(&self, group: u64) -> u32 {
        let unit = self.units.unit(group * self.group);
        let Some(distribution) = self.transfer.asks[unit.array as usize].spread.regular() else {
            return self.servers[0];
        };
        let holders = distribution.holders(&unit.bounds, self.replica(unit.number));
        let total = holders.total().max(1);
        let candidates = (0..total).map(|i| holders.get((group + i) % total));
        // Of uneven blocks some hold nothing.
        candidates.into_iter().find(|&rank| !distribution.piece(rank, &unit.bounds).is_empty()).unwrap_or(0)
    }

    /// Which replica sends a unit; all replicas receive it.
    fn replica(&self, unit: u64) -> Option<u64> {
        (self.transfer.direction == Direction::Write).then_some(unit)
    }

    /// This rank's pieces of an array, and which of its units it sends, as (number of replicas, number of this one).
    fn mine(&self, facts: &Facts, array: u32) -> (Vec<Mine>, (u64, u64)) {
        let pieces = facts.pieces(&self.transfer, array, self.rank);
        let turns = match &self.transfer.asks[array as usize].spread {
            Spread::Regular(d) if self.transfer.direction == Direction::Write => {
                (d.replication(), d.replica_of(self.rank))
            }
            _ => (1, 0),
        };
        (pieces, turns)
    }

    /// Groups that this rank serves when there are so many times more arrays; where many are served by who shares them, as
    /// many as others do, on average.
    pub(crate) fn served(&self, times: f64) -> f64 {
        let groups = self.course.groups();
        let all = groups as f64 * times;
        if self.duty == Duty::Sharers {
            let few = times <= 1.0 && groups <= COUNTED_MAX;
            let mine = || (0..groups).filter(|&group| self.sharer(group) == self.rank).count() as f64;
            return if few { mine() } else { all / f64::from(self.transfer.ranks.max(1)) };
        }
        if times > 1.0 {
            return (all / self.servers.len().max(1) as f64).ceil();
        }
        let Some(place) = self.servers.iter().position(|&server| server == self.rank) else { return 0.0 };
        match self.duty {
            Duty::Domains => self.course.share(place as u64) as f64,
            _ => groups.saturating_sub(place as u64).div_ceil(self.servers.len() as u64) as f64,
        }
    }

    /// How many servers, the first ones, have something to do when there are so many times more arrays, where servers
    /// take turns. Of domains and of holders any may.
    pub(crate) fn working(&self, times: f64) -> Option<usize> {
        let groups = (self.course.groups() as f64 * times).ceil() as usize;
        (self.duty == Duty::Turns).then(|| groups.min(self.servers.len()))
    }

    /// Where ranks that hold a part of a group handle it, and there are few groups: how many do, and those who handle some of these,
    /// those with most of them first. Others may have nothing to do.
    pub(crate) fn sharers(&self, times: f64) -> Option<(usize, Vec<u32>)> {
        let groups = self.course.groups();
        if self.duty != Duty::Sharers || groups > COUNTED_MAX {
            return None;
        }
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        (0..groups).for_each(|group| *held.entry(self.sharer(group)).or_default() += 1);
        let mut such: Vec<u32> = held.keys().copied().collect();
        such.sort_by_key(|rank| Reverse(held[rank]));
        Some((if times <= 1.0 { such.len() } else { self.transfer.ranks as usize }, such))
    }

    /// What this rank does as a server in so many of its rounds, from all over the sequence but its end, where a group may be short.
    /// Their distances differ, so that no period of clients hides between them. `None` where it has no more, where ranks serve
    /// what they hold, and of explicit pieces.
    pub(crate) fn sampled(self, facts: &Arc<Facts>, rounds: usize) -> Option<Lane> {
        let regular = self.transfer.asks.iter().all(|ask| ask.spread.regular().is_some());
        let (all, some) = (self.served(1.0) as u64, rounds.max(1) as u64);
        if self.duty == Duty::Sharers || !regular || all <= some {
            return None;
        }
        let place = self.servers.iter().position(|&server| server == self.rank)? as u64;
        let step = (all - 1) as f64 / some as f64;
        let turn = |i: u64| ((i as f64 + 0.5) * step) as u64 + i * i % (step as u64).max(1);
        let turns = (0..some).map(turn).filter(|&turn| turn < all - 1);
        let places = turns.map(|turn| place + turn * self.servers.len() as u64).collect();
        Some(Box::new(server::Server::sampled(Arc::new(self), facts, places)))
    }

    /// What one round of this rank moves between storage and a slot.
    pub(crate) fn storage_steps(&self) -> Vec<Step> {
        server::storage_steps(self)
    }

    /// Bytes of buffers of a server, coding included.
    fn buffer_bytes(&self) -> u64 {
        let coding = self.units.coding_bytes_max(&self.transfer).saturating_mul(self.group);
        self.slot_bytes().saturating_add(coding).saturating_mul(u64::from(self.slots))
    }

    /// Whether the servers, the buffers and the pieces allow it.
    pub(crate) fn feasible(&self) -> Result<(), Infeasible> {
        let need = self.buffer_bytes();
        if need > self.buffer_bytes_max {
            return Err(Infeasible {
                reason: format!(
                    "buffers for the largest {} ({} of {} B) need {need} B, but the buffers of a rank may have {} B",
                    if has_chunks(&self.transfer) { "chunk or subchunk" } else { "subchunk" },
                    self.slots,
                    self.slot_bytes(),
                    self.buffer_bytes_max
                ),
                hint: more_buffers(&self.transfer, need),
            });
        }
        let explicit = self.transfer.asks.iter().find(|ask| ask.spread == Spread::Explicit);
        if let Some(ask) = explicit.filter(|_| self.duty == Duty::Sharers) {
            return Err(Infeasible {
                reason: format!(
                    "the ranks that share an extent of '{}' are not known beforehand, because each has pieces of its own",
                    ask.name
                ),
                hint: "let data cross between all ranks".into(),
            });
        }
        check_servers(&self.servers, self.transfer.ranks)
    }

    /// The program of a rank.
    pub(crate) fn program(self, facts: &Arc<Facts>) -> Program {
        let rounds = Arc::new(self);
        let mut lanes: Vec<Lane> = vec![Box::new(client::Client::new(rounds.clone(), facts))];
        let (mut slots, mut slot_bytes) = (0, 0);
        if let Some(server) = server::Server::new(rounds.clone(), facts) {
            (slots, slot_bytes) = (rounds.slots, rounds.slot_bytes());
            lanes.push(Box::new(server));
        }
        let spare_bytes = rounds.buffer_bytes_max.saturating_sub(rounds.buffer_bytes());
        Program { slots, slot_bytes, spare_bytes, lanes, durability: rounds.transfer.policies.durability }
    }
}

/// Whether something of it is stored in chunks.
pub(crate) fn has_chunks(transfer: &Transfer) -> bool {
    transfer.asks.iter().any(|ask| ask.stored.chunk().is_some())
}

/// What to do where the buffers of a rank are too small, which need so many bytes.
pub(crate) fn more_buffers(transfer: &Transfer, need: u64) -> String {
    let chunks = if has_chunks(transfer) { ", or store smaller chunks" } else { "" };
    format!("give buffer_bytes={need} or more{chunks}")
}

/// Whether these ranks can be servers.
pub(crate) fn check_servers(servers: &[u32], ranks: u32) -> Result<(), Infeasible> {
    let refuse = |reason: String, hint: &str| Err(Infeasible { reason, hint: hint.into() });
    let mut sorted = servers.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(format!("rank {} is named as a server twice", pair[0]), "name each server once");
    }
    match sorted.last() {
        None => refuse("there is no server".into(), "name at least one rank as server"),
        Some(&server) if server >= ranks => refuse(
            format!("rank {server} shall be a server, but there are only {ranks} ranks"),
            "name servers between 0 and the number of ranks - 1",
        ),
        Some(_) => Ok(()),
    }
}
