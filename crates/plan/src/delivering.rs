//! Parcels: bytes that each rank has for some others go there, with no storage in between.
//!
//! A rank posts what it sends to the rank behind it first, then to the one behind that, and so on, and takes what it receives
//! in the same order. So of all messages that are under way, those to the nearest rank are next on both sides, and no rank
//! waits for one that waits for it, however few slots there are.

use crate::program::{Action, After, Lane, Place, Program, Step};
use hyperslab_layout::{Durability, ElementType, IndexSet, Kind, Region, View};
use std::sync::Arc;

/// Slots of a receiver.
const SLOTS: u64 = 4;

/// Most bytes of a message \[B\].
const PIECE_BYTES: u64 = 4 << 20;

/// Bytes for one rank, or from one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// The other rank.
    pub peer: u32,
    /// The number under which the sender has exposed them.
    pub sent: u32,
    /// The number of the array that the receiver has exposed for them; it means nothing to the sender.
    pub received: u32,
    /// How many there are \[B\].
    pub bytes: u64,
}

impl Parcel {
    /// Its pieces, as elements of the array that the sender exposes.
    fn pieces(self) -> impl Iterator<Item = (Parcel, Region)> + Send {
        (0..self.bytes.div_ceil(PIECE_BYTES)).map(move |number| {
            let low = number * PIECE_BYTES;
            (self, bytes_of(low, (low + PIECE_BYTES).min(self.bytes)))
        })
    }
}

/// So many bytes as a region, and how they lie one behind the other.
pub fn parcel_view(bytes: u64) -> View {
    View::held(&bytes_of(0, bytes), 0, &[1], ElementType::native(Kind::UInt8))
}

fn bytes_of(low: u64, high: u64) -> Region {
    Region { dims: [IndexSet::range(low, high)].into_iter().collect() }
}

/// The program of a rank, of so many, that sends and receives these.
pub fn delivering((rank, ranks): (u32, u32), mut sent: Vec<Parcel>, mut received: Vec<Parcel>) -> Program {
    let ahead = |from: u32, to: u32| (u64::from(to) + u64::from(ranks) - u64::from(from)) % u64::from(ranks.max(1));
    sent.sort_by_key(|parcel| ahead(rank, parcel.peer));
    received.sort_by_key(|parcel| ahead(parcel.peer, rank));
    let largest = received.iter().map(|parcel| parcel.bytes.min(PIECE_BYTES)).max().unwrap_or(0);
    let pieces: u64 = received.iter().map(|parcel| parcel.bytes.div_ceil(PIECE_BYTES)).sum();
    let slots = pieces.min(SLOTS);
    let sending = sent.into_iter().flat_map(Parcel::pieces).zip(0..).map(|((parcel, region), id)| {
        let parts = [(parcel.sent, region, Place::User(parcel.sent))].into_iter().collect();
        Step { id, round: 0, after: After::none(), action: Action::Send { to: parcel.peer, parts } }
    });
    let receiving =
        received.into_iter().flat_map(Parcel::pieces).zip(0..).flat_map(move |((parcel, region), number)| {
            let view = View::held(&region, 0, &[1], ElementType::native(Kind::UInt8));
            let slot = Place::Slot((number % slots) as u32, Arc::new(view));
            let parts = [(parcel.sent, region.clone(), slot.clone())].into_iter().collect();
            // The slot is free once what was in it has been copied.
            let after = number.checked_sub(slots).map_or_else(After::none, |before| After::step(2 * before + 1));
            let taken = Action::Recv { from: parcel.peer, parts };
            let kept = Action::Copy { region, from: slot, to: Place::User(parcel.received) };
            let taken = Step { id: 2 * number, round: 0, after, action: taken };
            [taken, Step { id: 2 * number + 1, round: 0, after: After::step(2 * number), action: kept }]
        });
    let lanes: Vec<Lane> = vec![Box::new(sending), Box::new(receiving)];
    Program { slots: slots as u32, slot_bytes: largest, spare_bytes: 0, lanes, durability: Durability::Cached }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_two_ranks_match() {
        const RANKS: u32 = 5;
        let bytes = |from: u32, to: u32| u64::from((from * 7 + to * 3) % 4) * (PIECE_BYTES / 2 + 1);
        let parcels = |of: &dyn Fn(u32) -> u64| -> Vec<Parcel> {
            (0..RANKS)
                .map(|peer| Parcel { peer, sent: peer, received: 10 + peer, bytes: of(peer) })
                .filter(|parcel| parcel.bytes > 0)
                .collect()
        };
        let mut messages = std::collections::BTreeMap::<_, [Vec<Region>; 2]>::new();
        for rank in 0..RANKS {
            let sent = parcels(&|peer| if peer == rank { 0 } else { bytes(rank, peer) });
            let received = parcels(&|peer| if peer == rank { 0 } else { bytes(peer, rank) });
            let program = delivering((rank, RANKS), sent, received);
            for step in program.lanes.into_iter().flatten() {
                let (ends, side, parts) = match step.action {
                    Action::Send { to, parts } => ((rank, to), 0, parts),
                    Action::Recv { from, parts } => ((from, rank), 1, parts),
                    _ => continue,
                };
                messages.entry(ends).or_default()[side].extend(parts.into_iter().map(|part| part.1));
            }
        }
        assert!(messages.len() > 10);
        for ((from, to), [sent, received]) in messages {
            assert_eq!(sent, received, "{from} to {to}");
            let total: u64 = sent.iter().map(|region| region.dims[0].len()).sum();
            assert_eq!(total, bytes(from, to));
        }
    }
}
