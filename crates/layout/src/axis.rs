//! Axes: how an index of one dimension becomes a position.

use crate::index_set::{Term, Terms};
use crate::ordered::{Finger, Spanned};
use crate::places::ListedPlaces;
use crate::{IndexSet, Triplet};
use std::sync::Arc;

/// Indices that lie in memory in an order of their own: run `i` of the term starts at position `at + i * at_step`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The indices.
    pub term: Term,
    /// Position of the first.
    pub at: i64,
    /// Distance between the positions of two runs.
    pub at_step: i64,
}

/// How an index of one dimension becomes a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Axis {
    /// Its number among the indices that are held: a rank's part stores only what it owns.
    Owned(IndexSet),
    /// The index that it selects, minus the first one stored: an array or chunk that a section looks into.
    Selected(Triplet, u64),
    /// Its number among the indices that are held, folded over the dimensions of a memory, the slowest first: how many there
    /// are, and how far apart. A box of a file of one dimension lies so in an array of several.
    Folded(IndexSet, Arc<[(u64, i64)]>),
    /// What a list says, as in element maps: terms in rising order of which none begins before the one before it ends.
    Listed(Arc<[Listed]>),
    /// The same where runs are short and follow no pattern.
    Scattered(Arc<ListedPlaces>),
}

impl Spanned for Listed {
    fn first(&self) -> u64 {
        self.term.start
    }

    fn end(&self) -> u64 {
        self.term.end()
    }
}

/// Cuts terms where a set of held indices ends or has gaps.
fn cut_as_held(set: &IndexSet, terms: &Terms, out: &mut Terms) {
    let mut finger = Finger::default();
    for term in terms {
        if set.repeats_at_levels() {
            set.within(term.start, term.end()).terms().iter().for_each(|held| term.intersect_into(held, out));
        } else {
            let near = set.near(&mut finger, term.start, term.end());
            near.iter().for_each(|held| term.intersect_into(held, out));
        }
    }
}

/// Where the position lies in a memory of these dimensions.
fn folded(mut position: u64, dims: &[(u64, i64)]) -> i64 {
    let mut at = 0;
    for (number, &(count, step)) in dims.iter().enumerate().rev() {
        let digit = if number == 0 { position } else { position % count };
        position /= count;
        at += digit as i64 * step;
    }
    at
}

/// Cuts a term of held indices so that each run lies in one row of the memory, and all runs at equal distances.
fn fold((set, finger): (&IndexSet, &mut Finger), dims: &[(u64, i64)], term: &Term, out: &mut Terms) {
    let Some((&(row, _), outer)) = dims.split_last() else {
        out.push(*term);
        return;
    };
    let rows = outer.last().map_or(u64::MAX, |slower| slower.0);
    let first = set.below_from(finger, term.start);
    let packed = set.below_from(finger, term.end() - 1) + 1 - first == term.elements();
    let in_one_row = first % row + term.elements() <= row;
    let rows_in_turn = term.len == row && first.is_multiple_of(row) && first / row % rows + term.count <= rows;
    if packed && (in_one_row || rows_in_turn) {
        out.push(*term);
        return;
    }
    for run in 0..term.count {
        let (mut index, end) = (term.start + run * term.step, term.start + run * term.step + term.len);
        let mut position = set.below_from(finger, index);
        while index < end {
            // What is left of a row, or as many whole rows as follow each other.
            let (inside, number) = (position % row, position / row % rows);
            let whole = if inside == 0 { ((end - index) / row).min(rows - number) } else { 0 };
            let part = match whole {
                0 => Term::run(index, end.min(index + row - inside)),
                1 => Term::run(index, index + row),
                _ => Some(Term { start: index, len: row, step: row, count: whole }),
            };
            let Some(part) = part else { break };
            index += part.elements();
            position += part.elements();
            out.push(part);
        }
    }
}

impl Axis {
    /// Where an index lies, looked for from where the finger is.
    pub(crate) fn position(&self, finger: &mut Finger, index: u64) -> i64 {
        match self {
            Axis::Owned(set) => set.below_from(finger, index) as i64,
            Axis::Folded(set, dims) => folded(set.below_from(finger, index), dims),
            Axis::Selected(triplet, origin) => triplet.select(index) as i64 - *origin as i64,
            Axis::Listed(list) => finger.near(list, index, index + 1).first().map_or(0, |entry| {
                let offset = index.saturating_sub(entry.term.start);
                entry.at + (offset / entry.term.step) as i64 * entry.at_step + (offset % entry.term.step) as i64
            }),
            Axis::Scattered(places) => places.run_at(finger, index).0 as i64,
        }
    }

    /// Where an index lies that it holds, and how many indices from there on lie one [`Axis::slope`] apart.
    pub(crate) fn run_at(&self, finger: &mut Finger, index: u64) -> (i64, u64) {
        match self {
            Axis::Owned(set) => {
                let (position, run) = set.run_at(finger, index);
                (position as i64, run)
            }
            Axis::Folded(set, dims) => {
                let (position, run) = set.run_at(finger, index);
                let row = dims.last().map_or(u64::MAX, |fastest| fastest.0.max(1));
                (folded(position, dims), run.min(row - position % row))
            }
            Axis::Selected(t, _) => {
                let run = if t.block == 1 || t.count <= 1 { u64::MAX } else { t.block - index % t.block };
                (self.position(finger, index), run)
            }
            Axis::Listed(list) => {
                let near = finger.near(list, index, index + 1).first();
                let run = near.map_or(1, |entry| entry.term.len - (index - entry.term.start) % entry.term.step);
                (self.position(finger, index), run)
            }
            Axis::Scattered(places) => {
                let (position, run) = places.run_at(finger, index);
                (position as i64, run)
            }
        }
    }

    /// Cuts terms so that positions are affine inside each run, and, where possible, from run to run.
    pub(crate) fn cut(&self, terms: Terms) -> Terms {
        let (mut out, mut finger) = (Terms::new(), Finger::default());
        match self {
            Axis::Owned(set) => {
                cut_as_held(set, &terms, &mut out);
                out
            }
            Axis::Folded(set, dims) => {
                cut_as_held(set, &terms, &mut out);
                let cut = std::mem::take(&mut out);
                cut.iter().for_each(|term| fold((set, &mut finger), dims, term, &mut out));
                out
            }
            Axis::Listed(list) => {
                for term in &terms {
                    let near = finger.near(list, term.start, term.end());
                    near.iter().for_each(|entry| term.intersect_into(&entry.term, &mut out));
                }
                out
            }
            Axis::Scattered(places) => {
                for term in &terms {
                    let near = places.near(&mut finger, term.start, term.end());
                    near.for_each(|run| term.intersect_into(&run, &mut out));
                }
                out
            }
            Axis::Selected(t, _) if t.block == 1 || t.count <= 1 => terms,
            Axis::Selected(t, _) => {
                let blocks = Term { start: 0, len: t.block, step: t.block, count: t.count };
                terms.iter().for_each(|term| term.intersect_into(&blocks, &mut out));
                out
            }
        }
    }

    /// Step of the position from one index to the next inside a run.
    pub(crate) fn slope(&self) -> i64 {
        match self {
            Axis::Selected(t, _) if t.block == 1 && t.count > 1 => t.stride as i64,
            Axis::Folded(_, dims) => dims.last().map_or(1, |fastest| fastest.1),
            _ => 1,
        }
    }

    /// Step of the position from one run of `term` to the next, when it is the same for all runs.
    pub(crate) fn stride(&self, finger: &mut Finger, term: &Term) -> Option<i64> {
        let regular = match self {
            Axis::Owned(set) => {
                // Of what repeats at several levels, a term lies in one part.
                let near = if set.repeats_at_levels() { &set.within(term.start, term.end()) } else { set };
                let near = near.near(finger, term.start, term.end());
                let mut repeating = near.iter().filter(|held| held.count > 1);
                match (repeating.next(), repeating.next()) {
                    (None, _) => near.len() <= 1,
                    (Some(held), None) => term.step.is_multiple_of(held.step),
                    _ => false,
                }
            }
            // It was cut so.
            Axis::Folded(..) => true,
            Axis::Selected(t, _) => t.block == 1 || t.count <= 1 || term.step.is_multiple_of(t.block),
            Axis::Listed(list) => match finger.near(list, term.start, term.end()) {
                [entry] => entry.term.count == 1 || term.step.is_multiple_of(entry.term.step),
                _ => false,
            },
            // It was cut into what lies in one run.
            Axis::Scattered(_) => true,
        };
        regular.then(|| self.position(finger, term.start + term.step) - self.position(finger, term.start))
    }
}
