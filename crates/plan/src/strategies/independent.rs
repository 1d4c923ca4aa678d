//! Independent I/O: each rank moves its own pieces between its memory and storage; no data cross between ranks.
//!
//! The plain way of POSIX programs and of Kotz's "traditional caching" clients (1997, section 3). It is the best there
//! is when each rank holds long runs of the file, or whole chunks; then data go straight from the user's array.
//! Ranks cannot share a chunk that they write: a checksum covers all of it, and two writers would lose an update.

use super::Infeasible;
use crate::emit::{Emitter, Placed};
use crate::program::{Action, Place, Program, Step, StepId};
use crate::transfer::{Ask, Direction, Parameters, Placement, Transfer};
use crate::units::{Unit, Units, shared_chunk};
use hyperslab_layout::{Region, View, dense_strides, nests};
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) fn feasible(transfer: &Transfer, parameters: &Parameters) -> Result<(), Infeasible> {
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let each = units.bytes_max().saturating_add(units.coding_bytes_max(transfer));
    let need = each.saturating_mul(u64::from(parameters.slots.max(1)));
    if need > parameters.buffer_bytes_max {
        return Err(Infeasible {
            reason: format!(
                "{} buffers for the largest chunk or subchunk need {need} B, but the buffers of a rank may have {} B",
                parameters.slots, parameters.buffer_bytes_max
            ),
            hint: "allow more buffer bytes, or store smaller chunks".into(),
        });
    }
    for ask in &transfer.asks {
        let Placement::Chunks { chunk, .. } = &ask.stored.placement else { continue };
        if transfer.direction == Direction::Read {
            continue;
        }
        if let Some((d, index)) = shared_chunk(ask, chunk) {
            return Err(Infeasible {
                reason: format!(
                    "two ranks hold parts of one chunk of array '{}' (at index {index} of dimension {d}; chunks {chunk:?}, distribution {}), and independent writers cannot share a chunk",
                    ask.name, ask.distribution
                ),
                hint: "use the server-directed strategy, or chunks whose edges lie on the distribution's".into(),
            });
        }
    }
    Ok(())
}

pub(super) fn program(transfer: &Arc<Transfer>, parameters: &Parameters, rank: u32, views: &[Arc<View>]) -> Program {
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let (slots, slot_bytes) = (parameters.slots.max(1), units.bytes_max());
    let mine = {
        let (transfer, units) = (transfer.clone(), units);
        (0..transfer.asks.len() as u32).flat_map(move |array| {
            let distribution = &transfer.asks[array as usize].distribution;
            let (replicas, me) = (distribution.replication(), distribution.replica_of(rank));
            let write = transfer.direction == Direction::Write;
            let owned = distribution.owned(rank);
            units.touched(array, &owned).filter(move |unit| !write || unit.number % replicas == me)
        })
    };
    let own = Own {
        transfer: transfer.clone(),
        rank,
        views: views.to_vec(),
        direct_run_bytes: parameters.direct_run_bytes,
        units: Box::new(mine),
        lane: Emitter::default(),
        users: vec![Vec::new(); slots as usize],
        begun: 0,
        ends: VecDeque::new(),
        closed: false,
    };
    Program { slots, slot_bytes, lanes: vec![Box::new(own)] }
}

/// The one lane: this rank's units, in the order of the file.
struct Own {
    transfer: Arc<Transfer>,
    rank: u32,
    views: Vec<Arc<View>>,
    direct_run_bytes: u64,
    units: Box<dyn Iterator<Item = Unit>>,
    lane: Emitter,
    users: Vec<Vec<StepId>>,
    begun: u64,
    /// Last steps of the units in flight.
    ends: VecDeque<StepId>,
    closed: bool,
}

impl Own {
    fn unit(&mut self, unit: &Unit) {
        let transfer = self.transfer.clone();
        let ask = &transfer.asks[unit.array as usize];
        let region = ask.distribution.owned(self.rank).intersect(&unit.region());
        let slot = (self.begun % self.users.len() as u64) as u32;
        let placed = Placed::new(ask, unit, slot, 0);
        let after = std::mem::take(&mut self.users[slot as usize]);
        let write = transfer.direction == Direction::Write;
        let last = if placed.goes_direct(&region, write) && self.direct(ask, unit, &region) {
            placed.direct(&mut self.lane, &after, region, write)
        } else if let Placement::File { .. } = ask.stored.placement {
            self.through_slot(&placed, slot, &after, region, write)
        } else if write {
            let ready = placed.prepare(&mut self.lane, &after);
            let copy = Action::Copy { region, from: Place::User(unit.array), to: placed.section() };
            let filled = self.lane.emit(&ready, copy);
            placed.save(&mut self.lane, &[filled])
        } else {
            let loaded = placed.load(&mut self.lane, &after);
            let copy = Action::Copy { region, from: placed.section(), to: Place::User(unit.array) };
            self.lane.emit(&[loaded], copy)
        };
        self.users[slot as usize] = vec![last];
        self.begun += 1;
        self.ends.push_back(last);
        if self.ends.len() > self.users.len() {
            self.ends.pop_front();
        }
    }

    /// Whether the piece lies in memory as it lies in storage, in runs long enough to go without a slot.
    fn direct(&self, ask: &Ask, unit: &Unit, region: &Region) -> bool {
        let here = &self.views[unit.array as usize];
        if here.element != ask.stored.element {
            return false;
        }
        let there = crate::emit::target(ask, unit).1;
        let run = |nest: hyperslab_layout::Nest| {
            let bytes = here.element.bytes();
            let runs = nest.loops.last().filter(|l| l.a == bytes as i64 && l.b == bytes as i64);
            runs.map_or(bytes, |l| l.count * bytes)
        };
        nests(region, here, &there).map(run).min().is_some_and(|shortest| shortest >= self.direct_run_bytes)
    }

    /// Moves a piece of a file through a slot that holds just the piece, in the order of the file.
    fn through_slot(&mut self, placed: &Placed, slot: u32, after: &[StepId], region: Region, write: bool) -> StepId {
        let (ask, user) = (placed.ask, Place::User(placed.unit.array));
        let strides = dense_strides(&region.shape(), &ask.stored.order, ask.stored.element.bytes());
        let at = Place::Slot(slot, Arc::new(View::held(&region, 0, &strides, ask.stored.element)));
        let (object, there) = crate::emit::target(ask, placed.unit);
        if write {
            let copied = self.lane.emit(after, Action::Copy { region: region.clone(), from: user, to: at.clone() });
            let write = Action::Write { object, region, from: at, there, whole: None, replace: false, direct: false };
            self.lane.emit(&[copied], write)
        } else {
            let read = Action::Read {
                object,
                region: region.clone(),
                to: at.clone(),
                there,
                whole: None,
                absent: None,
                direct: false,
            };
            let read = self.lane.emit(after, read);
            self.lane.emit(&[read], Action::Copy { region, from: at, to: user })
        }
    }
}

impl Iterator for Own {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.lane.pop() {
                return Some(step);
            }
            if let Some(unit) = self.units.next() {
                self.unit(&unit);
                continue;
            }
            if self.closed || !self.transfer.sync || self.begun == 0 {
                return None;
            }
            self.closed = true;
            let last: Vec<StepId> = self.ends.iter().copied().collect();
            self.lane.emit(&last, Action::Sync { below: self.transfer.objects_below() });
        }
    }
}
