//! A rank's own pieces, unit by unit, for strategies in which each rank handles storage for itself.

use crate::emit::{Emitter, Placed};
use crate::facts::{Facts, Mine};
use crate::program::{Action, After, Lane, Program, Step};
use crate::rounds::{check_servers, more_buffers};
use crate::strategy::{Infeasible, Parameters};
use crate::transfer::{Direction, Spread, Transfer, TransferArray};
use crate::units::{Touched, Unit, Units, shared_chunk};
use hyperslab_layout::Region;
use hyperslab_layout::tuple;
use smallvec::{SmallVec, smallvec};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// What a rank holds of a unit.
pub(crate) struct Own {
    pub(crate) unit: Unit,
    /// One piece, or several of its own; not empty.
    pub(crate) pieces: Pieces,
}

/// Pieces of a unit: the numbers under which the arrays are exposed, and the elements.
pub(crate) type Pieces = SmallVec<[(u32, Region); 1]>;

/// How what a rank holds of a unit gets from memory to storage or back.
pub(crate) trait Carry {
    /// Whether all pieces of a unit of this array go together, because that moves less than each by itself.
    fn together(&self, ask: &TransferArray, write: bool) -> bool;

    /// Emits the steps, the last of which end the use of the slot, which may be used after `free`.
    fn carry(&self, lane: &mut Emitter, transfer: &Arc<Transfer>, own: Own, slot: u32, free: &After);
}

/// Whether all that a rank holds of a unit moves as one: a chunk that is written whole, or, when reading, any but
/// those that are read in parts.
pub(crate) fn moves_whole(ask: &TransferArray, write: bool) -> bool {
    let whole = if write { ask.stored.is_written_whole() } else { ask.stored.summed_bytes().is_none() };
    ask.stored.chunk().is_some() && whole
}

/// What a strategy has in a slot at a time.
#[derive(Clone, Copy)]
pub(crate) enum Filling {
    /// All of a unit, with what lies between a rank's pieces.
    Units,
    /// A piece of a rank's own, but all of a chunk that moves whole.
    Pieces,
}

impl Filling {
    /// Most bytes of a slot: the same on all ranks, which decide alike what fits \[B\].
    fn slot_bytes(self, units: &Units, transfer: &Transfer) -> u64 {
        let write = transfer.direction == Direction::Write;
        let of = |(array, ask): (u32, &TransferArray)| {
            let unit = units.bytes(array);
            match (self, &ask.spread) {
                _ if ask.stored_bytes() == 0 => 0,
                (Filling::Pieces, Spread::Regular(held)) if !moves_whole(ask, write) => {
                    unit.min(held.largest_part().elements() * ask.stored.element.bytes())
                }
                _ => unit,
            }
        };
        (0..).zip(&transfer.asks).map(of).max().unwrap_or(0)
    }
}

/// Whether slots fit, and whether no two ranks write parts of one chunk.
pub(crate) fn feasible(transfer: &Transfer, parameters: &Parameters, filling: Filling) -> Result<(), Infeasible> {
    let strategy = parameters.strategy.name();
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let need = buffer_bytes(&units, transfer, (parameters, filling));
    if need > parameters.buffer_bytes_max {
        return Err(Infeasible {
            reason: format!(
                "buffers for the largest chunk or subchunk ({} of {} B) need {need} B, but the buffers of a rank may have {} B",
                parameters.slots.max(1),
                need / u64::from(parameters.slots.max(1)),
                parameters.buffer_bytes_max
            ),
            hint: more_buffers(transfer, need),
        });
    }
    if transfer.asks.iter().any(|ask| ask.spread == Spread::Explicit) {
        // They check pieces for overlaps.
        check_servers(&parameters.servers, transfer.ranks)?;
    }
    for ask in &transfer.asks {
        let Some(chunk) = ask.stored.chunk().filter(|_| moves_whole(ask, true)) else { continue };
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
                "two ranks hold parts of one chunk of array '{}' (at index {index} of dimension {d}; chunks {chunk}, distribution {distribution}), and {strategy} writers cannot share a chunk",
                ask.name,
                chunk = tuple(chunk)
            );
            return Err(Infeasible { reason, hint });
        }
    }
    Ok(())
}

/// Bytes of buffers of a rank, coding included.
fn buffer_bytes(units: &Units, transfer: &Transfer, (parameters, filling): (&Parameters, Filling)) -> u64 {
    let each = filling.slot_bytes(units, transfer).saturating_add(units.coding_bytes_max(transfer));
    each.saturating_mul(u64::from(parameters.slots.max(1)))
}

/// The program of a rank that carries its own pieces, in the order of storage.
pub(crate) fn program(
    transfer: &Arc<Transfer>,
    parameters: &Parameters,
    facts: &Arc<Facts>,
    rank: u32,
    (carry, filling): (impl Carry + 'static, Filling),
) -> Program {
    let units = Units::new(transfer, parameters.subchunk_bytes);
    let (slots, slot_bytes) = (parameters.slots.max(1), filling.slot_bytes(&units, transfer));
    let need = buffer_bytes(&units, transfer, (parameters, filling));
    let spare_bytes = parameters.buffer_bytes_max.saturating_sub(need);
    let (carry, write) = (Arc::new(carry), transfer.direction == Direction::Write);
    let carried = carry.clone();
    let together = move |ask: &TransferArray| carried.together(ask, write);
    let lane: Lane = Box::new(OwnLane {
        transfer: transfer.clone(),
        owned: Box::new(owned(transfer.clone(), facts.clone(), units, rank, together)),
        carry,
        lane: Emitter::default(),
        users: vec![After::none(); slots as usize],
        ends: VecDeque::new(),
        closed: false,
    });
    Program { slots, slot_bytes, spare_bytes, lanes: vec![lane], durability: transfer.policies.durability }
}

/// What this rank holds of units. Of replicated data one replica writes each unit, in turn.
fn owned(
    transfer: Arc<Transfer>,
    facts: Arc<Facts>,
    units: Units,
    rank: u32,
    together: impl Fn(&TransferArray) -> bool,
) -> impl Iterator<Item = Own> {
    (0..transfer.asks.len() as u32).flat_map(move |array| {
        let ask = &transfer.asks[array as usize];
        let turns = match &ask.spread {
            Spread::Regular(d) if transfer.direction == Direction::Write => (d.replication(), d.replica_of(rank)),
            _ => (1, 0),
        };
        let units = units.clone();
        let pieces = facts.pieces(&transfer, array, rank);
        if pieces.len() > 1 && together(ask) {
            let all = pieces.into_iter().map(|Mine { exposed, region }| (exposed, units.touched(array, region)));
            return Box::new(ByUnit::new(all.collect())) as Box<dyn Iterator<Item = Own>>;
        }
        Box::new(pieces.into_iter().flat_map(move |Mine { exposed, region }| {
            let mine = units.touched(array, region).filter(move |(unit, _)| unit.number % turns.0 == turns.1);
            mine.map(move |(unit, region)| Own { unit, pieces: smallvec![(exposed, region)] })
        }))
    })
}

/// The units of several pieces, merged on the way: memory depends on the pieces and not on what they touch.
struct ByUnit {
    /// Of each piece the number under which its array is exposed, and the units that it touches, in rising order.
    pieces: Vec<(u32, Touched)>,
    /// Number of the next unit of a piece, and the piece.
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl ByUnit {
    fn new(pieces: Vec<(u32, Touched)>) -> ByUnit {
        let next = |(at, (_, touched)): (usize, &(u32, Touched))| Some(Reverse((touched.number()?, at)));
        let heap = pieces.iter().enumerate().filter_map(next).collect();
        ByUnit { pieces, heap }
    }
}

impl Iterator for ByUnit {
    type Item = Own;

    fn next(&mut self) -> Option<Own> {
        let Reverse((number, first)) = *self.heap.peek()?;
        let mut own = Own { unit: self.pieces[first].1.unit()?, pieces: SmallVec::new() };
        while let Some(Reverse((_, at))) = self.heap.peek().copied().filter(|next| next.0.0 == number) {
            self.heap.pop();
            let (exposed, touched) = &mut self.pieces[at];
            own.pieces.push((*exposed, touched.region()));
            touched.advance();
            self.heap.extend(touched.number().map(|number| Reverse((number, at))));
        }
        Some(own)
    }
}

/// The one lane.
struct OwnLane<C> {
    transfer: Arc<Transfer>,
    carry: Arc<C>,
    owned: Box<dyn Iterator<Item = Own>>,
    lane: Emitter,
    users: Vec<After>,
    /// Steps of the units in flight.
    ends: VecDeque<After>,
    closed: bool,
}

impl<C: Carry> OwnLane<C> {
    fn unit(&mut self, own: Own) {
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
            if let Some(own) = self.owned.next() {
                self.unit(own);
                continue;
            }
            if self.closed || !self.transfer.is_synced() || self.lane.round == 0 {
                return None;
            }
            self.closed = true;
            let last = self.ends.iter().fold(After::none(), |all, ends| all.and(ends));
            self.lane.emit(&last, Action::Sync { below: self.transfer.objects_below() });
        }
    }
}

/// Pieces of a chunk go through a slot that holds the whole chunk.
pub(crate) fn carry_chunk(lane: &mut Emitter, placed: &Placed, pieces: Pieces, free: &After, write: bool) {
    let user = crate::program::Place::User;
    if write {
        let ready = placed.prepare(lane, free);
        let filling = lane.mark();
        for (exposed, region) in pieces {
            lane.emit(&ready, Action::Copy { region, from: user(exposed), to: placed.section() });
        }
        let filled = lane.since(filling);
        placed.save(lane, &filled, |_| None);
    } else {
        let loaded = placed.load(lane, free, |_| None);
        for (exposed, region) in pieces {
            lane.emit(&loaded, Action::Copy { region, from: placed.section(), to: user(exposed) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Action;
    use crate::strategy::Strategy;
    use hyperslab_layout::stored::{Address, Coding, Keys, Stored, Table};
    use hyperslab_layout::{ElementType, Kind, Policies, Section, View, dense_strides};

    const ELEMENT: ElementType = ElementType::native(Kind::Int32);

    /// A read of 8 x 8 elements by one rank that holds of them every so-manieth of 16 boxes of 2 x 2.
    fn in_boxes(stored: &Stored, strategy: Strategy, every: usize) -> Vec<Action> {
        let (stored, element) = (stored.clone(), ELEMENT);
        let section = Section::whole(&[8, 8]);
        let ask = TransferArray { name: "a".into(), section, spread: Spread::Explicit, memory: element, stored };
        let transfer =
            Arc::new(Transfer { direction: Direction::Read, asks: vec![ask], ranks: 1, policies: Policies::default() });
        let boxes = (0..16).map(|n| {
            let low = [n / 4 * 2, n % 4 * 2];
            Region::boxed(&low, &low.map(|at| at + 2))
        });
        let mine: Vec<Mine> =
            (0..).zip(boxes.step_by(every)).map(|(exposed, region)| Mine { exposed, region }).collect();
        let view = |mine: &Mine| Arc::new(View::held(&mine.region, 0, &dense_strides(&[2, 2], &[0, 1], 4), element));
        let views: Vec<Arc<View>> = mine.iter().map(view).collect();
        let facts = Arc::new(Facts::of_mine([(0, mine)].into()));
        let parameters = Parameters { strategy, servers: [0].into(), ..Parameters::default() };
        let program = strategy.program(&transfer, &parameters, &facts, 0, &views);
        program.lanes.into_iter().flatten().map(|step| step.action).collect()
    }

    fn reads_and_copies(actions: &[Action]) -> (usize, usize) {
        let count = |is: fn(&Action) -> bool| actions.iter().filter(|&action| is(action)).count();
        (count(|action| matches!(action, Action::Read { .. })), count(|action| matches!(action, Action::Copy { .. })))
    }

    #[test]
    fn what_a_rank_wants_of_a_unit_is_read_once_where_it_is_read_whole() {
        let chunks = Stored::in_chunks(&[8, 8], ELEMENT, &[4, 8], Keys::nested("a/"), Coding::Trailer);
        let file = Stored::in_file(&[8, 8], ELEMENT, "a", 0);
        let both = Table::of("a", vec![Address::plain(0, 64), Address::plain(1, 4096)]);
        let one = Table::of("a", vec![Address::plain(1, 4096)]);
        let [both, one] = [both, one].map(|table| Stored::in_table(&[8, 8], ELEMENT, &[4, 8], table));
        for strategy in [Strategy::INDEPENDENT, Strategy::DATA_SIEVING] {
            assert_eq!(reads_and_copies(&in_boxes(&chunks, strategy, 1)), (2, 16), "{strategy}");
        }
        assert_eq!(reads_and_copies(&in_boxes(&file, Strategy::DATA_SIEVING, 1)), (1, 16));
        // The first and the last are too far apart for what lies between them to be read.
        assert_eq!(reads_and_copies(&in_boxes(&file, Strategy::DATA_SIEVING, 15)), (2, 2));
        // Who reads exactly what he wants of a file reads each box.
        assert_eq!(reads_and_copies(&in_boxes(&file, Strategy::INDEPENDENT, 1)), (16, 16));
        // A chunk that no table knows does not exist.
        assert_eq!(reads_and_copies(&in_boxes(&both, Strategy::DATA_SIEVING, 1)), (2, 16));
        assert_eq!(reads_and_copies(&in_boxes(&one, Strategy::DATA_SIEVING, 1)), (1, 16));
    }
}
