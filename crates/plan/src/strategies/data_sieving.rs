//! Data sieving: each rank reads the shortest contiguous part of the file that covers its piece of a subchunk, holes and
//! all, and takes out what it wants; to write, it puts its elements in and writes the part back.
//!
//! Source: PASSION's and ROMIO's data sieving (Thakur, Gropp, Lusk 1996; reference to interfaces, section 7). ROMIO
//! locks the range while it is read, changed and written. Here there are no locks: a part is only written back when no
//! other rank writes an element of it in the same call, which closed forms tell; otherwise the piece is written alone,
//! as independent writers do. Chunks are read whole, which is the same idea.

use super::independent::through_slot;
use crate::emit::{Cover, Emitter, Placed};
use crate::own::{self, Carry, Filling, Own, Pieces};
use crate::program::{Action, After, Place};
use crate::strategy::Spec;
use crate::transfer::{Direction, Spread, Transfer, TransferArray};
use hyperslab_layout::{Holes, Region, Triplet};
use smallvec::smallvec;
use std::sync::Arc;

pub(super) const SPEC: Spec = Spec {
    name: "data-sieving",
    about: "each rank reads and writes its own pieces, and what lies between them where nobody else writes",
    complexity: 3,
    program: |transfer, parameters, facts, rank, _| {
        own::program(
            transfer,
            parameters,
            facts,
            rank,
            (Sieve { rank, holes: transfer.policies.holes }, Filling::Units),
        )
    },
    tells_layouts: false,
    ..Spec::OWN
};

struct Sieve {
    rank: u32,
    /// What becomes of what lies between the pieces that are written.
    holes: Holes,
}

/// How many times as much as what covers each piece alone what covers all must not be, for all to be read as one.
const FAR: u64 = 2;

impl Carry for Sieve {
    fn together(&self, ask: &TransferArray, write: bool) -> bool {
        // Who writes pieces that no closed form describes never writes what lies between them.
        !write || own::moves_whole(ask, write)
    }

    fn carry(&self, lane: &mut Emitter, transfer: &Arc<Transfer>, own: Own, slot: u32, free: &After) {
        let Own { unit, pieces } = own;
        let write = transfer.direction == Direction::Write;
        let placed = Placed::new(transfer, unit, slot, 0);
        let ask = placed.ask();
        if own::moves_whole(ask, write) {
            return own::carry_chunk(lane, &placed, pieces, free, write);
        }
        if !ask.stored.is_in_one_object() {
            // Parts of a chunk: what lies between them is not read.
            return one_by_one(lane, free, pieces, |lane, piece, free| {
                through_slot(lane, &placed, slot, piece, (free, write));
            });
        }
        let cover = |pieces: &[(u32, Region)]| {
            Cover::of_all(ask, &placed.unit, pieces.iter().map(|(_, region)| region)).elements()
        };
        let each: u64 = pieces.chunks(1).map(cover).sum();
        if cover(&pieces) < each.saturating_mul(FAR) {
            return self.sieve(lane, &placed, slot, pieces, (free, write));
        }
        one_by_one(lane, free, pieces, |lane, piece, free| {
            self.sieve(lane, &placed, slot, smallvec![piece], (free, write));
        });
    }
}

/// Moves pieces one after another, since they share the slot.
fn one_by_one(
    lane: &mut Emitter,
    free: &After,
    pieces: Pieces,
    mut carry: impl FnMut(&mut Emitter, (u32, Region), &After),
) {
    let mut free = free.clone();
    for piece in pieces {
        let mark = lane.mark();
        carry(lane, piece, &free);
        free = lane.since(mark);
    }
}

impl Sieve {
    /// Moves pieces of a unit of a file by what covers them all, holes and all.
    fn sieve(&self, lane: &mut Emitter, placed: &Placed, slot: u32, pieces: Pieces, (free, write): (&After, bool)) {
        let ask = placed.ask();
        let (object, _) = ask.stored.object().expect("only units of files are sieved");
        let cover = Cover::of_all(ask, &placed.unit, pieces.iter().map(|(_, region)| region));
        if let [piece] = pieces.as_slice() {
            let holes = cover.elements() > piece.1.elements();
            if !holes || write && !(self.holes == Holes::MayBeRewritten && self.alone(ask, &cover)) {
                through_slot(lane, placed, slot, piece.clone(), (free, write));
                return;
            }
        }
        let whole = cover.whole();
        let at = Place::Slot(slot, Arc::new(ask.stored.dense_view(&cover.extent, 0)));
        let inside = Place::Slot(slot, Arc::new(ask.stored.box_view(&ask.section, &cover.low, &cover.extent, 0)));
        let there = Arc::new(cover.in_file(&ask.stored));
        let read = Action::Read {
            object: object.clone(),
            region: whole.clone(),
            to: at.clone(),
            there: there.clone(),
            whole: None,
            part: None,
            absent: None,
            direct: false,
        };
        let read = After::step(lane.emit(free, read));
        let moving = lane.mark();
        for (exposed, region) in pieces {
            let (user, slot) = (Place::User(exposed), inside.clone());
            let (from, to) = if write { (user, slot) } else { (slot, user) };
            lane.emit(&read, Action::Copy { region, from, to });
        }
        if write {
            let action =
                Action::Write { object, region: whole, from: at, there, whole: None, replace: false, direct: false };
            lane.emit(&lane.since(moving), action);
        }
    }

    /// Whether this rank alone writes inside the cover: all that the section selects of it is this rank's.
    fn alone(&self, ask: &TransferArray, cover: &Cover) -> bool {
        let Spread::Regular(distribution) = &ask.spread else { return false };
        let positions =
            |(d, triplet): (usize, &Triplet)| triplet.positions(cover.low[d], cover.low[d] + cover.extent[d]);
        let bounds: Vec<(u64, u64)> = ask.section.dims.iter().enumerate().map(positions).collect();
        let all: u64 = bounds.iter().map(|(low, high)| high - low).product();
        // Of replicated data, another replica may write its own turn of the same elements' neighbours.
        distribution.replication() == 1 && distribution.piece(self.rank, &bounds).elements() == all
    }
}
