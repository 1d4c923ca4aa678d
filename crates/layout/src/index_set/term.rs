//! One progression of runs, and what two have in common.

use crate::counted::look;
use crate::ordered::{Enumerated, Spanned};
use smallvec::SmallVec;
use std::ops::Range;

/// Terms on their way into a set: mostly a few, which then need no allocation.
pub(crate) type Terms = SmallVec<[Term; 4]>;

/// A progression of runs: indices `start + i*step + j` for `0 <= i < count`, `0 <= j < len`.
///
/// Runs do not overlap (`step >= len` when `count > 1`) and neither `len` nor `count` is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term {
    /// First index.
    pub start: u64,
    /// Indices in one run.
    pub len: u64,
    /// Distance between the starts of two runs.
    pub step: u64,
    /// Number of runs.
    pub count: u64,
}

impl Term {
    /// The single run `low..high`; `None` when it is empty.
    pub fn run(low: u64, high: u64) -> Option<Term> {
        (high > low).then(|| Term { start: low, len: high - low, step: high - low, count: 1 })
    }

    pub(super) fn new(start: u64, len: u64, step: u64, count: u64) -> Term {
        if count == 1 || len == step {
            Term { start, len: len * count, step: len * count, count: 1 }
        } else {
            Term { start, len, step, count }
        }
    }

    /// Number of indices.
    pub fn elements(&self) -> u64 {
        self.len * self.count
    }

    /// One past the last index.
    pub fn end(&self) -> u64 {
        self.start + (self.count - 1) * self.step + self.len
    }

    /// How many of its indices are below `index`.
    #[inline]
    pub(super) fn count_below(&self, index: u64) -> u64 {
        look();
        if index <= self.start {
            return 0;
        }
        let offset = index - self.start;
        if self.count == 1 {
            return offset.min(self.len);
        }
        let whole = offset / self.step;
        if whole >= self.count { self.elements() } else { whole * self.len + (offset % self.step).min(self.len) }
    }

    /// Its lowest index that is at least `index`.
    pub(super) fn at_or_after(&self, index: u64) -> Option<u64> {
        look();
        if index <= self.start {
            return Some(self.start);
        }
        let offset = index - self.start;
        let (run, inside) = if self.count == 1 { (0, offset) } else { (offset / self.step, offset % self.step) };
        if inside < self.len && run < self.count {
            return Some(index);
        }
        (run + 1 < self.count).then(|| self.start + (run + 1) * self.step)
    }

    /// How many indices follow each other from this one on, if the term holds it.
    pub(super) fn run_from(&self, index: u64) -> Option<u64> {
        let inside = index.checked_sub(self.start).filter(|_| index < self.end())? % self.step;
        self.len.checked_sub(inside).filter(|&left| left > 0)
    }

    /// Pushes the intersection of two terms, as terms that each lie inside one repetition pattern of both.
    pub(crate) fn intersect_into(&self, other: &Term, out: &mut Terms) {
        look();
        if self.start >= other.end() || other.start >= self.end() {
            return;
        }
        match (self.count, other.count) {
            (_, 1) => self.clip_into(other.start, other.end(), out),
            (1, _) => other.clip_into(self.start, self.end(), out),
            _ => self.interleave_into(other, out),
        }
    }

    /// The part inside `low..high`, which meets `start..end`: a first run that is cut, whole runs, a last run that is cut.
    pub(super) fn clip(&self, low: u64, high: u64) -> [Option<Term>; 3] {
        let run = |i: u64| self.start + i * self.step;
        let reach = high - 1 - self.start;
        let last = if self.count == 1 { 0 } else { (reach / self.step).min(self.count - 1) };
        let (mut head, mut first) = (None, 0);
        if low > self.start {
            first = if self.count == 1 { 0 } else { (low - self.start) / self.step };
            if low > run(first) {
                head = Term::run(low, (run(first) + self.len).min(high));
                first += 1;
            }
        }
        if first > last {
            return [head, None, None];
        }
        let tail = if run(last) + self.len > high { Term::run(run(last), high) } else { None };
        let whole = last + 1 - first - u64::from(tail.is_some());
        let step = if whole == 1 { self.len } else { self.step };
        let middle = (whole > 0).then(|| Term { start: run(first), len: self.len, step, count: whole });
        [head, middle, tail]
    }

    fn clip_into(&self, low: u64, high: u64, out: &mut Terms) {
        out.extend(self.clip(low, high).into_iter().flatten());
    }

    /// Its runs that meet the hull of another term, which meets that of this one.
    fn runs_in(&self, other: &Term) -> Range<u64> {
        let first =
            if self.start + self.len > other.start { 0 } else { (other.start - self.start - self.len) / self.step + 1 };
        let last = ((other.end() - 1 - self.start) / self.step).min(self.count - 1);
        first..(last + 1).max(first)
    }

    /// Both repeat: each pair of runs that meets does so again after the least common multiple of the steps.
    fn interleave_into(&self, other: &Term, out: &mut Terms) {
        // Both orders give the same meetings, and those rise in both.
        let fewer = |a: Range<u64>, b: Range<u64>| a.end - a.start < b.end - b.start;
        if fewer(other.runs_in(self), self.runs_in(other)) {
            return other.interleave_into(self, out);
        }
        let common = lcm(self.step, other.step);
        // Repetitions after which the pattern of meetings starts again, on each side.
        let every = common.map_or(u64::MAX, |l| l / self.step);
        let other_every = common.map_or(u64::MAX, |l| l / other.step);
        for i in self.runs_in(other) {
            look();
            let (low, high) = (self.start + i * self.step, self.start + i * self.step + self.len);
            let first =
                if low < other.start + other.len { 0 } else { (low - other.start - other.len) / other.step + 1 };
            let last = ((high - 1 - other.start) / other.step).min(other.count - 1);
            for j in first..=last.min(other.count - 1) {
                look();
                // A meeting is listed once, at its earliest repetition.
                if i >= every && j >= other_every {
                    continue;
                }
                let start = other.start + j * other.step;
                let (a, b) = (low.max(start), high.min(start + other.len));
                if a >= b {
                    continue;
                }
                let again = ((self.count - 1 - i) / every).min((other.count - 1 - j) / other_every);
                let count = again + 1;
                let step = if count == 1 { b - a } else { common.expect("a repeated meeting has a period") };
                out.push(Term { start: a, len: b - a, step, count });
            }
            // Past one period on this side, only meetings with the other side's first period can be new.
            if i >= every && low > other.start + other_every.saturating_mul(other.step) {
                break;
            }
        }
    }
}

impl Spanned for Term {
    fn first(&self) -> u64 {
        self.start
    }

    fn end(&self) -> u64 {
        Term::end(self)
    }
}

impl Enumerated for Term {
    fn elements(&self) -> u64 {
        Term::elements(self)
    }

    fn below(&self, index: u64) -> u64 {
        self.count_below(index)
    }

    fn select(&self, position: u64) -> u64 {
        self.start + position / self.len * self.step + position % self.len
    }
}

/// Runs `(start, length)` that rise as terms, where those that follow each other regularly are one. `None` when a run begins
/// before the one before it ends, or reaches beyond `u64`.
pub(super) fn folded(runs: impl IntoIterator<Item = (u64, u64)>) -> Option<Vec<Term>> {
    let mut terms: Vec<Term> = Vec::new();
    for (start, len) in runs {
        let end = start.checked_add(len)?;
        if len == 0 {
            continue;
        }
        let Some(last) = terms.last_mut() else {
            terms.push(Term { start, len, step: len, count: 1 });
            continue;
        };
        if start < last.end() {
            return None;
        }
        let step = start - (last.end() - last.len);
        if last.count == 1 && start == last.end() {
            *last = Term { start: last.start, len: end - last.start, step: end - last.start, count: 1 };
        } else if len == last.len && (last.count == 1 || step == last.step) {
            *last = Term { step, count: last.count + 1, ..*last };
        } else {
            terms.push(Term { start, len, step: len, count: 1 });
        }
    }
    Some(terms)
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}
