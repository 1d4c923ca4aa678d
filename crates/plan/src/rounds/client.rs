//! A client's lane: one message for each group of which it holds a part, in the sequence of groups.

use super::{Parts, Rounds};
use crate::facts::{Facts, Mine};
use crate::program::{Action, After, Place, Step};
use crate::transfer::Direction;
use crate::units::{Touched, Unit};
use hyperslab_layout::Region;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The units of one piece in one track of the sequence.
struct Cursor {
    touched: Arc<Touched>,
    piece: Arc<Mine>,
    track: usize,
    next: u64,
    end: u64,
    /// Of replicated data: how many replicas there are, and which this is; units go to replicas in turn.
    turns: (u64, u64),
}

impl Cursor {
    /// Goes on to a unit whose turn it is; its place in the sequence and its number, or `None` at the end.
    fn settle(&mut self, rounds: &Rounds) -> Option<(u64, u64)> {
        while self.next < self.end {
            let number = self.touched.number(self.next);
            if number % self.turns.0 == self.turns.1 {
                let group = rounds.group_of(number);
                return Some((rounds.course.tracks()[self.track].place(group), number));
            }
            self.next += 1;
        }
        None
    }
}

/// This rank's pieces of units, in the sequence of their groups, and in rising order of units inside a group.
pub(super) struct Pieces {
    rounds: Arc<Rounds>,
    cursors: Vec<Cursor>,
    /// Place, unit and cursor that comes next.
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
}

/// A piece of a unit.
pub(super) struct Piece {
    pub(super) unit: Unit,
    pub(super) exposed: u32,
    pub(super) region: Region,
}

impl Pieces {
    pub(super) fn new(rounds: Arc<Rounds>, facts: &Facts) -> Pieces {
        let mut cursors = Vec::new();
        for array in 0..rounds.transfer.asks.len() as u32 {
            let (pieces, turns) = rounds.mine(facts, array);
            for piece in pieces {
                let touched = Arc::new(rounds.units.touched(array, &piece.region));
                let piece = Arc::new(piece);
                for (track, groups) in rounds.course.tracks().iter().enumerate() {
                    let next = touched.below(groups.first * rounds.group);
                    let end = touched.below((groups.first + groups.count) * rounds.group);
                    if next < end {
                        let (touched, piece) = (touched.clone(), piece.clone());
                        cursors.push(Cursor { touched, piece, track, next, end, turns });
                    }
                }
            }
        }
        let settled = cursors.iter_mut().enumerate().filter_map(|(i, cursor)| {
            let (place, unit) = cursor.settle(&rounds)?;
            Some(Reverse((place, unit, i)))
        });
        let heap = settled.collect();
        Pieces { rounds, cursors, heap }
    }

    /// Place of the next piece in the sequence.
    pub(super) fn peek(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((place, _, _))| *place)
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let mut top = self.heap.peek_mut()?;
        let Reverse((_, _, number)) = *top;
        let cursor = &mut self.cursors[number];
        let unit = cursor.touched.unit(cursor.next);
        cursor.next += 1;
        match cursor.settle(&self.rounds) {
            Some((place, unit)) => *top = Reverse((place, unit, number)),
            None => drop(std::collections::binary_heap::PeekMut::pop(top)),
        }
        let region = cursor.piece.region.within(&unit.bounds);
        Some(Piece { unit, exposed: cursor.piece.exposed, region })
    }
}

pub(super) struct Client {
    pieces: Pieces,
    next: u64,
}

impl Client {
    pub(super) fn new(rounds: Arc<Rounds>, facts: &Facts) -> Client {
        Client { pieces: Pieces::new(rounds, facts), next: 0 }
    }
}

impl Iterator for Client {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let place = self.pieces.peek()?;
            let group = self.pieces.rounds.course.group(place)?;
            let server = self.pieces.rounds.server_of(group);
            let mut parts: Parts = Vec::new();
            while self.pieces.peek() == Some(place) {
                let piece = self.pieces.next()?;
                parts.push((piece.exposed, piece.region, Place::User(piece.exposed)));
            }
            let rounds = &self.pieces.rounds;
            // What a server holds itself it copies, in its other lane.
            if server == rounds.rank {
                continue;
            }
            let action = match rounds.transfer.direction {
                Direction::Write => Action::Send { to: server, parts },
                Direction::Read => Action::Recv { from: server, parts },
            };
            self.next += 1;
            return Some(Step { id: self.next - 1, round: rounds.round_of(group), after: After::none(), action });
        }
    }
}
