//! Runs that repeat at several levels: what a box of several dimensions is in a file of one.
//!
//! ```text
//! start 1, len 2, levels [(2, 12), (3, 4)]   . x x . x x . x x . . . . x x . x x . x x .
//! ```

use super::{IndexSet, Term};
use crate::counted::look;
use crate::ordered::{Enumerated, Finger, Sorted, Spanned};
use smallvec::SmallVec;
use std::hash::Hash;
use std::sync::OnceLock;

/// One level: how often what is inside of it comes, and how far apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Level {
    /// How often.
    pub count: u64,
    /// Distance of two repetitions.
    pub step: u64,
}

/// Runs of `len` indices that repeat at each of these levels, the outermost first. What repeats does not reach into its next
/// repetition, so indices rise in the order of the loops. A [`Term`] has one level at most.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nested {
    /// First index.
    pub start: u64,
    /// Indices of a run.
    pub len: u64,
    /// The levels.
    pub levels: SmallVec<[Level; 3]>,
}

impl Nested {
    /// Such runs, in their one form: no level of one repetition, and none that goes on where the level inside of it ends.
    /// `None` when a repetition reaches into the next one, an index does not fit into `u64`, or there is none.
    pub(super) fn new(start: u64, len: u64, levels: impl DoubleEndedIterator<Item = Level>) -> Option<Nested> {
        let (mut run, mut span) = (len, len);
        let mut kept: SmallVec<[Level; 3]> = SmallVec::new();
        for Level { count, step } in levels.rev() {
            match kept.last_mut() {
                _ if count == 0 => return None,
                _ if count == 1 => continue,
                _ if step < span => return None,
                None if step == run => run = run.checked_mul(count)?,
                Some(inner) if inner.count.checked_mul(inner.step) == Some(step) => {
                    inner.count = inner.count.checked_mul(count)?;
                }
                _ => kept.push(Level { count, step }),
            }
            span = (count - 1).checked_mul(step)?.checked_add(span)?;
        }
        start.checked_add(span)?;
        kept.reverse();
        (len > 0).then_some(Nested { start, len: run, levels: kept })
    }

    /// As a term, if one level is enough.
    pub(super) fn term(&self) -> Option<Term> {
        match self.levels.as_slice() {
            [] => Some(Term { start: self.start, len: self.len, step: self.len, count: 1 }),
            [level] => Some(Term { start: self.start, len: self.len, step: level.step, count: level.count }),
            _ => None,
        }
    }

    /// Pushes what has the positions `from..to` of it: a repetition that is cut, whole ones, one that is cut, at each level.
    fn cut_into(&self, from: u64, to: u64, out: &mut Vec<Nested>) {
        if from >= to {
            return;
        }
        let Some((&Level { count, step }, inner)) = self.levels.split_first() else {
            out.push(Nested { start: self.start + from, len: to - from, levels: SmallVec::new() });
            return;
        };
        let inside = self.elements() / count;
        let at = |number: u64| Nested { start: self.start + number * step, len: self.len, levels: inner.into() };
        let (first, last) = (from / inside, to / inside);
        if first == last {
            at(first).cut_into(from % inside, to % inside, out);
            return;
        }
        let whole = first + u64::from(!from.is_multiple_of(inside));
        if whole > first {
            at(first).cut_into(from % inside, inside, out);
        }
        if last > whole {
            let levels = std::iter::once(Level { count: last - whole, step }).chain(inner.iter().copied());
            out.extend(Nested::new(self.start + whole * step, self.len, levels.collect::<Vec<_>>().into_iter()));
        }
        if !to.is_multiple_of(inside) {
            at(last).cut_into(0, to % inside, out);
        }
    }

    /// Pushes its terms: one for each repetition of all levels but the innermost.
    fn terms_into(&self, out: &mut Vec<Term>) {
        let Some((_, outer)) = self.levels.split_last() else {
            out.extend(self.term());
            return;
        };
        let level = self.levels[outer.len()];
        let mut at = vec![0; outer.len()];
        loop {
            let start = at.iter().zip(outer).fold(self.start, |start, (n, level)| start + n * level.step);
            out.push(Term { start, len: self.len, step: level.step, count: level.count });
            let Some(turned) = (0..outer.len()).rev().find(|&k| at[k] + 1 < outer[k].count) else { return };
            at[turned] += 1;
            at[turned + 1..].fill(0);
        }
    }
}

impl Spanned for Nested {
    fn first(&self) -> u64 {
        self.start
    }

    fn end(&self) -> u64 {
        self.levels.iter().fold(self.start + self.len, |end, level| end + (level.count - 1) * level.step)
    }
}

impl Enumerated for Nested {
    fn elements(&self) -> u64 {
        self.levels.iter().fold(self.len, |all, level| all * level.count)
    }

    fn below(&self, index: u64) -> u64 {
        look();
        let (mut rest, mut inside, mut before) = (index.saturating_sub(self.start), self.elements(), 0);
        for &Level { count, step } in &self.levels {
            inside /= count;
            let whole = rest / step;
            if whole >= count {
                return before + count * inside;
            }
            before += whole * inside;
            rest -= whole * step;
        }
        before + rest.min(self.len)
    }

    fn select(&self, mut position: u64) -> u64 {
        let (mut inside, mut index) = (self.elements(), self.start);
        for &Level { count, step } in &self.levels {
            inside /= count;
            index += position / inside * step;
            position %= inside;
        }
        index + position
    }
}

/// Such runs one behind the other, of which some have more levels than a term has.
#[derive(Debug)]
pub(super) struct Nests {
    /// None begins before the one before it ends.
    parts: Sorted<Nested>,
    /// The same as terms, once somebody has asked for them: only of what is small, as a part of a unit.
    terms: OnceLock<Box<[Term]>>,
}

impl Nests {
    /// A set of these parts: if no part has more levels than a term, a set of terms.
    pub(super) fn set(parts: Vec<Nested>) -> IndexSet {
        let terms: Option<Vec<Term>> = parts.iter().map(Nested::term).collect();
        match terms {
            Some(mut terms) => IndexSet::of_terms(&mut terms),
            None => IndexSet::of_nests(Nests { parts: Sorted::new(parts.into()), terms: OnceLock::new() }),
        }
    }

    pub(super) fn parts(&self) -> &[Nested] {
        self.parts.entries()
    }

    pub(super) fn terms(&self) -> &[Term] {
        self.terms.get_or_init(|| {
            let mut terms = Vec::new();
            self.parts().iter().for_each(|part| part.terms_into(&mut terms));
            terms.into()
        })
    }

    pub(super) fn len(&self) -> u64 {
        self.parts.elements()
    }

    pub(super) fn hull(&self) -> Option<(u64, u64)> {
        self.parts.hull()
    }

    pub(super) fn below(&self, finger: &mut Finger, index: u64) -> u64 {
        self.parts.below(finger, index)
    }

    /// How many indices follow each other from this one on, which it holds.
    pub(super) fn run_from(&self, finger: &mut Finger, index: u64) -> u64 {
        let run = |part: &Nested| {
            let inside = part.levels.iter().fold(index.checked_sub(part.start)?, |rest, level| rest % level.step);
            part.len.checked_sub(inside).filter(|&left| left > 0 && index < part.end())
        };
        self.parts.near(finger, index, index + 1).iter().find_map(run).unwrap_or(1)
    }

    /// Whether some index is in `low..high`.
    pub(super) fn meets(&self, low: u64, high: u64) -> bool {
        let mut finger = Finger::default();
        self.below(&mut finger, low) < self.below(&mut finger, high)
    }

    pub(super) fn select(&self, position: u64) -> Option<u64> {
        self.parts.select(position)
    }

    pub(super) fn at_or_after(&self, index: u64) -> Option<u64> {
        self.select(self.below(&mut Finger::default(), index))
    }

    /// What it has in `low..high`.
    pub(super) fn within(&self, low: u64, high: u64) -> IndexSet {
        let mut parts = Vec::new();
        let near = self.parts.near(&mut Finger::default(), low, high);
        for part in near.iter().filter(|part| part.start < high && part.end() > low) {
            part.cut_into(part.below(low), part.below(high), &mut parts);
        }
        Nests::set(parts)
    }
}

impl PartialEq for Nests {
    fn eq(&self, other: &Nests) -> bool {
        self.parts == other.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All indices, by plain loops.
    fn plain(start: u64, len: u64, levels: &[(u64, u64)]) -> Vec<u64> {
        match levels.split_first() {
            None => (start..start + len).collect(),
            Some((&(count, step), inner)) => (0..count).flat_map(|i| plain(start + i * step, len, inner)).collect(),
        }
    }

    fn random(random: &mut fastrand::Rng) -> (u64, u64, Vec<(u64, u64)>) {
        let len = random.u64(1..4);
        let (mut span, mut levels) = (len, Vec::new());
        for _ in 0..random.usize(0..4) {
            let (count, step) = (random.u64(1..4), span + random.u64(0..3));
            span += (count - 1) * step;
            levels.insert(0, (count, step));
        }
        (random.u64(0..5), len, levels)
    }

    #[test]
    fn nests_say_what_plain_loops_say() {
        let mut dice = fastrand::Rng::with_seed(23);
        let mut deep = 0;
        for _ in 0..4000 {
            let (start, len, levels) = random(&mut dice);
            let set = IndexSet::nested(start, len, &levels).unwrap();
            let expected = plain(start, len, &levels);
            deep += usize::from(set.parts().any(|part| part.levels.len() > 1));
            assert_eq!(set.iter().collect::<Vec<_>>(), expected);
            assert_eq!((set.len(), set.is_empty()), (expected.len() as u64, false));
            assert_eq!(set.hull(), Some((start, expected.last().unwrap() + 1)));
            let end = expected.last().unwrap() + 3;
            for _ in 0..12 {
                let (one, other) = (dice.u64(0..end), dice.u64(0..end));
                let (low, high) = (one.min(other), one.max(other));
                let part = set.within(low, high);
                let inside: Vec<u64> = expected.iter().copied().filter(|x| (low..high).contains(x)).collect();
                assert_eq!(part.iter().collect::<Vec<_>>(), inside, "{set:?} in {low}..{high}");
                assert_eq!(set.meets(low, high), !inside.is_empty());
                assert_eq!(set.at_or_after(low), expected.iter().copied().find(|&x| x >= low));
                assert_eq!(set.below(low), expected.iter().filter(|&&x| x < low).count() as u64);
                assert_eq!(set.contains(low), expected.contains(&low));
                // What it says of itself makes it again.
                assert_eq!(IndexSet::of_parts(part.parts()), Some(part));
            }
            let (start, len, levels) = random(&mut dice);
            let (other, more) = (IndexSet::nested(start, len, &levels).unwrap(), plain(start, len, &levels));
            let both: Vec<u64> = expected.iter().copied().filter(|x| more.contains(x)).collect();
            assert_eq!(set.intersect(&other).iter().collect::<Vec<_>>(), both, "{set:?} and {other:?}");
            let mut finger = Finger::default();
            for (position, &index) in expected.iter().enumerate() {
                let (at, run) = set.run_at(&mut finger, index);
                assert_eq!(at, position as u64);
                assert!(
                    run > 0
                        && expected[position..]
                            .iter()
                            .take(run as usize)
                            .eq((index..index + run).collect::<Vec<_>>().iter())
                );
            }
            assert_eq!(set.lowered(0), set);
            assert_eq!(set.lowered(expected[0]).iter().next(), Some(0));
        }
        assert!(deep > 500, "{deep} of them have several levels");
    }

    #[test]
    fn boxes_of_files_cost_their_levels_and_not_their_rows() {
        let levels = [(1 << 20, 1 << 40), (1 << 15, 1 << 24), (1 << 10, 1 << 12)];
        let set = IndexSet::nested(4096, 1000, &levels).unwrap();
        assert_eq!(set.len(), 1000 << 45);
        let part = set.within(3 << 40, (3 << 40) + (5 << 24) + 5000);
        assert_eq!(part.parts().count(), 2);
        assert_eq!(part.len(), 5 * 1024 * 1000 + 904);
    }

    #[test]
    fn what_reaches_into_its_next_repetition_is_refused() {
        assert_eq!(IndexSet::nested(0, 3, &[(2, 2)]), None);
        assert_eq!(IndexSet::nested(0, 1, &[(2, 3), (3, 2)]), None);
        assert_eq!(IndexSet::nested(u64::MAX - 3, 1, &[(2, 4)]), None);
        assert_eq!(IndexSet::nested(0, 2, &[(3, 8), (4, 2)]), IndexSet::nested(0, 24, &[]));
        assert_eq!(IndexSet::nested(5, 0, &[]), Some(IndexSet::empty()));
        assert_eq!(IndexSet::nested(5, 2, &[(0, 2)]), Some(IndexSet::empty()));
    }
}
