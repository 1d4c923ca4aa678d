//! A client's lane: one message for each group of which it holds a part, in the sequence of groups.

use super::Rounds;
use super::course::Track;
use crate::facts::{Facts, Mine};
use crate::program::{Action, After, Parts, Place, Step};
use crate::transfer::Direction;
use crate::units::Touched;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

/// The units of one piece in one track of the sequence.
struct Cursor {
    touched: Touched,
    /// Number under which the array is exposed.
    exposed: u32,
    track: Track,
    /// One past the last unit of the track.
    end: u64,
    /// Of replicated data: how many replicas there are, and which this is; units go to replicas in turn.
    turns: (u64, u64),
}

impl Cursor {
    /// Goes on to a unit whose turn it is; its place in the sequence and its number, or `None` at the end.
    fn settle(&mut self, rounds: &Rounds) -> Option<(u64, u64)> {
        loop {
            let number = self.touched.number().filter(|&number| number < self.end)?;
            if self.turns.0 == 1 || number % self.turns.0 == self.turns.1 {
                return Some((self.track.place(rounds.group_of(number)), number));
            }
            self.touched.advance();
        }
    }
}

/// This rank's pieces of units, in the sequence of their groups, and in rising order of units inside a group.
pub(super) struct Pieces {
    rounds: Arc<Rounds>,
    facts: Arc<Facts>,
    /// Arrays whose cursors were made: one after another where the sequence allows it, so that memory does not grow with
    /// the number of arrays.
    opened: u32,
    cursors: Vec<Cursor>,
    /// Place, unit and cursor that comes next.
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
}

impl Pieces {
    pub(super) fn new(rounds: Arc<Rounds>, facts: &Arc<Facts>) -> Pieces {
        let facts = facts.clone();
        let mut pieces = Pieces { rounds, facts, opened: 0, cursors: Vec::new(), heap: BinaryHeap::new() };
        pieces.refill();
        pieces
    }

    /// Makes cursors for the next array that has pieces, or for all when their places are mixed.
    fn refill(&mut self) {
        let natural = self.rounds.course.is_natural();
        while self.opened < self.rounds.transfer.asks.len() as u32 && (!natural || self.heap.is_empty()) {
            if natural {
                self.cursors.clear();
            }
            self.open(self.opened);
            self.opened += 1;
        }
    }

    fn open(&mut self, array: u32) {
        let rounds = self.rounds.clone();
        let (pieces, turns) = rounds.mine(&self.facts, array);
        for Mine { exposed, region } in pieces {
            let mut touched = rounds.units.touched(array, region);
            while let Some(number) = touched.number() {
                let track = rounds.course.track(rounds.group_of(number));
                let end = (track.first + track.count) * rounds.group;
                let mut cursor = Cursor { touched: touched.clone(), exposed, track, end, turns };
                if let Some((place, unit)) = cursor.settle(&rounds) {
                    self.heap.push(Reverse((place, unit, self.cursors.len())));
                    self.cursors.push(cursor);
                }
                touched.seek(end);
            }
        }
    }

    /// Place of the next piece in the sequence.
    pub(super) fn peek(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((place, _, _))| *place)
    }

    /// The next piece: its unit, the number under which its array is exposed, and its elements.
    pub(super) fn next<T>(&mut self, take: impl FnOnce(u64, u32, &Touched) -> T) -> Option<T> {
        let mut top = self.heap.peek_mut()?;
        let Reverse((_, unit, number)) = *top;
        let cursor = &mut self.cursors[number];
        let taken = take(unit, cursor.exposed, &cursor.touched);
        cursor.touched.advance();
        match cursor.settle(&self.rounds) {
            Some((place, unit)) => *top = Reverse((place, unit, number)),
            None => {
                PeekMut::pop(top);
                self.refill();
            }
        }
        Some(taken)
    }
}

pub(super) struct Client {
    pieces: Pieces,
    next: u64,
}

impl Client {
    pub(super) fn new(rounds: Arc<Rounds>, facts: &Arc<Facts>) -> Client {
        Client { pieces: Pieces::new(rounds, facts), next: 0 }
    }
}

impl Iterator for Client {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        // However many pieces there are, none of them travels.
        if self.pieces.rounds.serves_alone() {
            return None;
        }
        loop {
            let place = self.pieces.peek()?;
            let (server, round) = self.pieces.rounds.turn(place)?;
            let mut parts = Parts::new();
            while self.pieces.peek() == Some(place) {
                self.pieces.next(|_, exposed, at| parts.push((exposed, at.region(), Place::User(exposed))))?;
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
            return Some(Step { id: self.next - 1, round, after: After::none(), action });
        }
    }
}
