//! A rank's own pieces, unit by unit, for strategies in which each rank handles storage for itself.

use crate::emit::{Emitter, Placed};
use crate::facts::{Facts, Mine};
use crate::program::{Action, After, Lane, Program, Step};
use crate::rounds::check_servers;
use crate::strategies::Infeasible;
use crate::transfer::{Direction, Parameters, Placement, Spread, Transfer};
use crate::units::{Unit, Units, shared_chunk};
use hyperslab_layout::Region;
use std::collections::VecDeque;
use std::sync::Arc;

/// A piece of a unit.
pub(crate) struct Own {
    pub(crate) unit: Unit,
    /// Number under which the array is exposed.
    pub(crate) exposed: u32,
    pub(crate) region: Region,
}

/// How one piece gets from memory to storage or back: emits its steps, the last of which end the use of the slot.
pub(crate) trait Carry {
    /// Emits the steps for a piece; the slot may be used after `free`.
    fn carry(&self, lane: &mut Emitter, transfer: &Arc<Transfer>, own: Own, slot: u32, free: &After);
}

/// Whether slots fit, and whether no two ranks write parts of one chunk.
pub(crate) fn feasible(transfer: &Transfer, parameters: &Parameters, strategy: &str) -> Result<(), Infeasible> {
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let need = buffer_bytes(&units, transfer, parameters);
    if need > parameters.buffer_bytes_max {
        return Err(Infeasible {
            reason: format!(
                "{} buffers for the largest chunk or subchunk need {need} B, but the buffers of a rank may have {} B",
                parameters.slots, parameters.buffer_bytes_max
            ),
            hint: "allow more buffer bytes, or store smaller chunks".into(),
        });
    }
    if transfer.asks.iter().any(|ask| ask.spread == Spread::Explicit) {
        // They check pieces for overlaps.
        check_servers(&parameters.servers, transfer.ranks)?;
    }
    for ask in &transfer.asks {
        let Placement::Chunks { chunk, .. } = &ask.stored.placement else { continue };
        if transfer.direction == Direction::Read {
            continue;
        }
        let hint = "use the server-directed strategy, or chunks whose edges lie on the distribution's".to_string();
        let Spread::Regular(distribution) = &ask.spread else {
            let reason = format!(
                "'{}' is written in pieces of each rank's own, of which several may lie in one chunk, and {strategy} writers cannot share a chunk",
                ask.name
            );
            return Err(Infeasible { reason, hint });
        };
        if let Some((d, index)) = shared_chunk(ask, distribution, chunk) {
            let reason = format!(
                "two ranks hold parts of one chunk of array '{}' (at index {index} of dimension {d}; chunks {chunk:?}, distribution {distribution}), and {strategy} writers cannot share a chunk",
                ask.name
            );
            return Err(Infeasible { reason, hint });
        }
    }
    Ok(())
}

/// Bytes of buffers of a rank, coding included.
fn buffer_bytes(units: &Units, transfer: &Transfer, parameters: &Parameters) -> u64 {
    let each = units.bytes_max().saturating_add(units.coding_bytes_max(transfer));
    each.saturating_mul(u64::from(parameters.slots.max(1)))
}

/// The program of a rank that carries its own pieces, in the order of storage.
pub(crate) fn program(
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
    facts: &Arc<Facts>,
    rank: u32,
    carry: impl Carry + 'static,
) -> Program {
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let (slots, slot_bytes) = (parameters.slots.max(1), units.bytes_max());
    let spare_bytes = parameters.buffer_bytes_max.saturating_sub(buffer_bytes(&units, transfer, parameters));
    let lane: Lane = Box::new(OwnLane {
        transfer: transfer.clone(),
        carry,
        pieces: Box::new(pieces(transfer.clone(), facts.clone(), units, rank)),
        lane: Emitter::default(),
        users: vec![After::none(); slots as usize],
        ends: VecDeque::new(),
        closed: false,
    });
    Program { slots, slot_bytes, spare_bytes, lanes: vec![lane] }
}

/// This rank's pieces of units. Of replicated data one replica writes each unit, in turn.
fn pieces(transfer: Arc<Transfer>, facts: Arc<Facts>, units: Units, rank: u32) -> impl Iterator<Item = Own> {
    (0..transfer.asks.len() as u32).flat_map(move |array| {
        let turns = match &transfer.asks[array as usize].spread {
            Spread::Regular(d) if transfer.direction == Direction::Write => (d.replication(), d.replica_of(rank)),
            _ => (1, 0),
        };
        let units = units.clone();
        facts.pieces(&transfer, array, rank).into_iter().flat_map(move |Mine { exposed, region }| {
            let mine = units.touched(array, region).filter(move |(unit, _)| unit.number % turns.0 == turns.1);
            mine.map(move |(unit, region)| Own { unit, exposed, region })
        })
    })
}

/// The one lane.
struct OwnLane<C> {
    transfer: Arc<Transfer>,
    carry: C,
    pieces: Box<dyn Iterator<Item = Own>>,
    lane: Emitter,
    users: Vec<After>,
    /// Steps of the pieces in flight.
    ends: VecDeque<After>,
    closed: bool,
}

impl<C: Carry> OwnLane<C> {
    fn piece(&mut self, own: Own) {
        let slot = (self.lane.round % self.users.len() as u64) as usize;
        let free = std::mem::take(&mut self.users[slot]);
        let mark = self.lane.mark();
        self.carry.carry(&mut self.lane, &self.transfer, own, slot as u32, &free);
        let all = self.lane.since(mark);
        self.users[slot] = all.clone();
        self.ends.push_back(all);
        if self.ends.len() > self.users.len() {
            self.ends.pop_front();
        }
        self.lane.round += 1;
    }
}

impl<C: Carry> Iterator for OwnLane<C> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.lane.pop() {
                return Some(step);
            }
            if let Some(own) = self.pieces.next() {
                self.piece(own);
                continue;
            }
            if self.closed || !self.transfer.sync || self.lane.round == 0 {
                return None;
            }
            self.closed = true;
            let last = self.ends.iter().fold(After::none(), |all, ends| all.and(ends));
            self.lane.emit(&last, Action::Sync { below: self.transfer.objects_below() });
        }
    }
}

/// A piece of a chunk goes through a slot that holds the whole chunk.
pub(crate) fn carry_chunk(
    lane: &mut Emitter,
    placed: &Placed,
    exposed: u32,
    region: Region,
    free: &After,
    write: bool,
) {
    let user = crate::program::Place::User(exposed);
    if write {
        let ready = placed.prepare(lane, free);
        let filled = lane.emit(&ready, Action::Copy { region, from: user, to: placed.section() });
        placed.save(lane, &After::step(filled), None);
    } else {
        let loaded = placed.load(lane, free, None);
        lane.emit(&loaded, Action::Copy { region, from: placed.section(), to: user });
    }
}
