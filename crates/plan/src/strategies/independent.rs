//! Independent I/O: each rank moves its own pieces between its memory and storage; no data cross between ranks.
//!
//! The plain way of POSIX programs and of Kotz's "traditional caching" clients (1997, section 3). It is the best there
//! is when each rank holds long runs of the file, or whole chunks; then data go straight from the user's array.
//! Ranks cannot share a chunk that they write: a checksum covers all of it, and two writers would lose an update.

use crate::emit::{Emitter, Placed, target};
use crate::own::{self, Carry, Filling, Own};
use crate::price::Machine;
use crate::program::{Action, After, Place};
use crate::strategy::{Parameters, READ_RUN_BYTES, Spec};
use crate::transfer::{Direction, Transfer, TransferArray};
use hyperslab_layout::{Nest, Region, View, dense_strides, nests};
use std::sync::Arc;

/// Subchunks of ranks that write to a file whose lock they share: what they copy into a buffer before they have the lock leaves
/// the processor's cache while they have it \[B\]. Runs are longer nowhere, so that all go through the buffer.
const KEPT_BYTES: u64 = 512 << 10;

pub(super) const SPEC: Spec = Spec {
    name: "independent",
    about: "each rank reads and writes its own pieces, exactly",
    complexity: 0,
    program: |transfer, parameters, facts, rank, views| {
        let pieces = Exactly { views: views.to_vec(), direct_run_bytes: parameters.direct_run_bytes };
        own::program(transfer, parameters, facts, rank, (pieces, Filling::Pieces))
    },
    feasible: |transfer, parameters| own::feasible(transfer, parameters, Filling::Pieces),
    besides: kept,
    variants: |at| {
        let usual = Parameters::default().direct_run_bytes;
        let shorter = (at.direct_run_bytes != READ_RUN_BYTES).then_some(READ_RUN_BYTES);
        let longer = (at.direct_run_bytes < usual).then_some(usual);
        let others = shorter.into_iter().chain(longer);
        others.map(|direct_run_bytes| Parameters { direct_run_bytes, ..at.clone() }).collect()
    },
    ..Spec::OWN
};

/// The same parameters where ranks write to one file for themselves, and copy what they write into a small buffer first.
fn kept(transfer: &Transfer, machine: Machine, begun: &Parameters) -> Option<Parameters> {
    let smaller = begun.subchunk_bytes > KEPT_BYTES && shares_a_lock(transfer, machine);
    smaller.then(|| Parameters { subchunk_bytes: KEPT_BYTES, direct_run_bytes: KEPT_BYTES + 1, ..begun.clone() })
}

/// Whether ranks of a node write to one file.
fn shares_a_lock(transfer: &Transfer, machine: Machine) -> bool {
    let in_file = |ask: &TransferArray| ask.stored.is_in_one_object();
    let writes = transfer.direction == Direction::Write && transfer.asks.iter().any(in_file);
    writes && machine.ranks_per_node.min(transfer.ranks) > 1
}

/// Moves exactly the elements of a piece.
struct Exactly {
    views: Vec<Arc<View>>,
    direct_run_bytes: u64,
}

impl Carry for Exactly {
    fn together(&self, ask: &TransferArray, write: bool) -> bool {
        // A chunk that has to be read whole is read once, whatever a rank holds of it.
        own::moves_whole(ask, write)
    }

    fn carry(&self, lane: &mut Emitter, transfer: &Arc<Transfer>, own: Own, slot: u32, free: &After) {
        let Own { unit, pieces } = own;
        let write = transfer.direction == Direction::Write;
        let placed = Placed::new(transfer, unit, slot, 0);
        let straight = |(exposed, region): &(u32, Region)| {
            placed.goes_direct(region, write) && self.long_runs(&placed, *exposed, region)
        };
        if pieces.iter().all(straight) {
            pieces.into_iter().for_each(|(exposed, region)| placed.straight(lane, free, exposed, region, write));
        } else if own::moves_whole(placed.ask(), write) {
            own::carry_chunk(lane, &placed, pieces, free, write);
        } else {
            let mut free = free.clone();
            for piece in pieces {
                let mark = lane.mark();
                through_slot(lane, &placed, slot, piece, (&free, write));
                free = lane.since(mark);
            }
        }
    }
}

impl Exactly {
    /// Whether the piece lies in memory as it lies in storage, in runs long enough to go without a slot.
    fn long_runs(&self, placed: &Placed, exposed: u32, region: &Region) -> bool {
        let Some(here) = self.views.get(exposed as usize) else { return false };
        if here.element != placed.ask().stored.element {
            return false;
        }
        let there = target(placed.ask(), &placed.unit).1;
        let run = |nest: Nest| {
            let bytes = here.element.bytes();
            let runs = nest.loops.last().filter(|l| l.a == bytes as i64 && l.b == bytes as i64);
            runs.map_or(bytes, |l| l.count * bytes)
        };
        let found = nests(region, here, &there).map(|nest| (!is_transposed(&nest)).then(|| run(nest)));
        let shortest = found.min().flatten();
        shortest.is_some_and(|shortest| shortest >= self.direct_run_bytes)
    }
}

/// Whether what lies side by side on one side lies far apart on the other.
fn is_transposed(nest: &Nest) -> bool {
    let loops = || nest.loops.iter().filter(|l| l.count > 1);
    let (a, b) = (loops().min_by_key(|l| l.a.unsigned_abs()), loops().min_by_key(|l| l.b.unsigned_abs()));
    a != b
}

/// Moves a piece of a file through a slot that holds just the piece, in the order of the file.
pub(super) fn through_slot(
    lane: &mut Emitter,
    placed: &Placed,
    slot: u32,
    (exposed, region): (u32, Region),
    (free, write): (&After, bool),
) {
    let (ask, user) = (placed.ask(), Place::User(exposed));
    let strides = dense_strides(&region.shape(), ask.stored.order(), ask.stored.element.bytes());
    let at = Place::Slot(slot, Arc::new(View::held(&region, 0, &strides, ask.stored.element)));
    let (object, there) = target(ask, &placed.unit);
    let (direct, replace) = (false, false);
    if write {
        let copied = lane.emit(free, Action::Copy { region: region.clone(), from: user, to: at.clone() });
        let write = Action::Write { object, region, from: at, there, whole: None, replace, direct };
        lane.emit(&After::step(copied), write);
    } else {
        // All of a chunk lies in the slot in the order of the chunk, too.
        let (whole, part) = placed.read_as(&region);
        let absent = ask.stored.summed_bytes().map(|_| ask.stored.fill.clone());
        let read = Action::Read { object, region: region.clone(), to: at.clone(), there, whole, part, absent, direct };
        let read = lane.emit(free, read);
        lane.emit(&After::step(read), Action::Copy { region, from: at, to: user });
    }
}
