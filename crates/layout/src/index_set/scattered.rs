//! RunStarts that follow no pattern: what element maps and lists of indices in random order hold.
//!
//! A progression of one run or two says such a list no shorter. So each run has its start, and how many indices lie before it:
//! 16 bytes, where a term has 32 and its sum beside it. What is cut out of a list, as by a chunk or a subchunk, shares both.

use super::term::{Term, folded};
use crate::counted::look;
use crate::ordered::Finger;
use std::sync::{Arc, OnceLock};

/// Fewer runs than these are terms, which everything knows how to deal with, or pieces of their own.
pub(crate) const RUNS_MIN: usize = 64;
/// How many runs a term stands for, on average, where terms say it shorter.
const RUNS_A_TERM: u64 = 4;

/// All runs of a list.
#[derive(Debug)]
struct RunStarts {
    starts: Box<[u64]>,
    /// How many indices lie before each, and how many there are.
    before: Box<[u64]>,
}

impl RunStarts {
    fn end(&self, run: usize) -> u64 {
        self.starts[run] + self.before[run + 1] - self.before[run]
    }

    /// How many runs begin before `index`, or at it, looked for from where the finger is.
    fn begun(&self, finger: &mut Finger, index: u64) -> usize {
        finger.find(&self.starts, |&start| start <= index)
    }

    fn below(&self, finger: &mut Finger, index: u64) -> u64 {
        match self.begun(finger, index) {
            0 => 0,
            begun => self.before[begun].min(self.before[begun - 1] + index - self.starts[begun - 1]),
        }
    }
}

/// What was cut out of a list.
pub(super) enum ListPart {
    /// So little that terms say it.
    Few(Vec<Term>),
    /// A list.
    List(Scattered),
}

/// The indices of a list that lie in `low..high`, the first and one past the last of them.
#[derive(Debug)]
pub(super) struct Scattered {
    all: Arc<RunStarts>,
    /// The runs that it has something of.
    runs: (usize, usize),
    hull: (u64, u64),
    /// How many indices of the list lie before it.
    before: u64,
    len: u64,
    /// The same as terms, once somebody has asked for them.
    terms: OnceLock<Box<[Term]>>,
}

impl Scattered {
    /// All of these terms, which are sorted, if they do not cross and their runs follow no pattern.
    pub(super) fn of_terms(terms: &[Term]) -> Option<Scattered> {
        if terms.len() < RUNS_MIN {
            return None;
        }
        let runs = terms.iter().map(|term| term.count).fold(0, u64::saturating_add);
        let rise = || terms.windows(2).all(|pair| pair[0].end() <= pair[1].start);
        if runs / RUNS_A_TERM > terms.len() as u64 || !rise() {
            return None;
        }
        let (mut starts, mut before, mut len) = (Vec::new(), Vec::new(), 0);
        starts.reserve_exact(runs as usize);
        before.reserve_exact(runs as usize + 1);
        let mut end = None;
        for term in terms {
            for start in (0..term.count).map(|number| term.start + number * term.step) {
                // What touches is one run, as in a term.
                if end != Some(start) {
                    starts.push(start);
                    before.push(len);
                }
                len += term.len;
                end = Some(start + term.len);
            }
        }
        before.push(len);
        let all = RunStarts { starts: starts.into(), before: before.into() };
        let (runs, hull) = ((0, all.starts.len()), (all.starts[0], end?));
        (runs.1 >= RUNS_MIN).then(|| Scattered::part(Arc::new(all), runs, hull))
    }

    /// What these runs have in `low..high`, in which each has something.
    fn part(all: Arc<RunStarts>, runs: (usize, usize), (low, high): (u64, u64)) -> Scattered {
        let hull = (low.max(all.starts[runs.0]), high.min(all.end(runs.1 - 1)));
        let before = all.before[runs.0] + hull.0 - all.starts[runs.0];
        let last = all.before[runs.1 - 1] + hull.1 - all.starts[runs.1 - 1];
        Scattered { all, runs, hull, before, len: last - before, terms: OnceLock::new() }
    }

    /// Its runs: first index, and one past the last.
    pub(super) fn runs(&self) -> ScatteredRuns<'_> {
        let (from, to) = self.runs;
        ScatteredRuns { starts: &self.all.starts[from..to], before: &self.all.before[from..=to], hull: self.hull }
    }

    /// What tells it apart from other parts of other lists.
    pub(super) fn id(&self) -> (usize, u64, u64) {
        (Arc::as_ptr(&self.all).addr(), self.hull.0, self.hull.1)
    }

    pub(super) fn terms(&self) -> &[Term] {
        self.terms.get_or_init(|| self.folded().into())
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn hull(&self) -> (u64, u64) {
        self.hull
    }

    pub(super) fn below(&self, finger: &mut Finger, index: u64) -> u64 {
        let (low, high) = self.hull;
        if index <= low { 0 } else { self.all.below(finger, index.min(high)) - self.before }
    }

    /// The position of an index that it holds, and how many indices follow each other from there on.
    pub(super) fn run_at(&self, finger: &mut Finger, index: u64) -> (u64, u64) {
        let run = self.all.begun(finger, index).saturating_sub(1);
        let inside = index - self.all.starts[run];
        (self.all.before[run] + inside - self.before, self.all.end(run).min(self.hull.1) - index)
    }

    pub(super) fn select(&self, position: u64) -> Option<u64> {
        if position >= self.len {
            return None;
        }
        let position = position + self.before;
        let run = self.all.before.partition_point(|&before| before <= position) - 1;
        Some(self.all.starts[run] + position - self.all.before[run])
    }

    /// What it has in `low..high`.
    pub(super) fn within(&self, low: u64, high: u64) -> ListPart {
        let (low, high) = (low.max(self.hull.0), high.min(self.hull.1));
        if low >= high {
            return ListPart::Few(Vec::new());
        }
        let begun = self.all.begun(&mut Finger::default(), low);
        let from = begun - usize::from(begun > 0 && self.all.end(begun - 1) > low);
        let to = self.all.begun(&mut Finger::default(), high - 1);
        if from >= to {
            return ListPart::Few(Vec::new());
        }
        let part = Scattered::part(self.all.clone(), (from, to), (low, high));
        if to - from < RUNS_MIN { ListPart::Few(part.folded()) } else { ListPart::List(part) }
    }

    /// The runs, by first index and length, that both have: both lists are gone through once.
    pub(super) fn meetings(&self, other: &Scattered) -> impl Iterator<Item = (u64, u64)> {
        let (mut ours, mut theirs) = (self.runs().peekable(), other.runs().peekable());
        std::iter::from_fn(move || {
            loop {
                look();
                let (&(a, b), &(c, d)) = (ours.peek()?, theirs.peek()?);
                if b <= d {
                    ours.next()
                } else {
                    theirs.next()
                };
                let (low, high) = (a.max(c), b.min(d));
                if low < high {
                    return Some((low, high - low));
                }
            }
        })
    }

    fn folded(&self) -> Vec<Term> {
        folded(self.runs().map(|(low, high)| (low, high - low))).expect("runs of a list rise")
    }

    /// Whether these terms are the same indices.
    pub(super) fn equals(&self, terms: &[Term]) -> bool {
        let run = |&Term { start, len, step, count }: &Term| {
            (0..count).map(move |number| (start + number * step, start + number * step + len))
        };
        let mut runs: Vec<(u64, u64)> = terms.iter().flat_map(run).collect();
        runs.sort_unstable();
        runs.dedup_by(|next, last| {
            let touches = last.1 == next.0;
            last.1 = if touches { next.1 } else { last.1 };
            touches
        });
        self.runs().eq(runs)
    }
}

/// RunStarts of a list, each by its first index and one past the last.
#[derive(Clone, Debug)]
pub struct ScatteredRuns<'a> {
    starts: &'a [u64],
    before: &'a [u64],
    hull: (u64, u64),
}

impl Iterator for ScatteredRuns<'_> {
    type Item = (u64, u64);

    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u64)> {
        look();
        let (&start, starts) = self.starts.split_first()?;
        let &[before, next, ..] = self.before else { return None };
        (self.starts, self.before) = (starts, &self.before[1..]);
        Some((start.max(self.hull.0), (start + next - before).min(self.hull.1)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.starts.len(), Some(self.starts.len()))
    }
}

impl ExactSizeIterator for ScatteredRuns<'_> {}

impl PartialEq for Scattered {
    fn eq(&self, other: &Scattered) -> bool {
        self.len == other.len && self.runs().eq(other.runs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IndexSet;
    use crate::counted::looks;
    use crate::index_set::{Kept, Several};

    /// RunStarts with gaps between them, and all their indices.
    fn random(dice: &mut fastrand::Rng) -> (IndexSet, Vec<u64>) {
        let (mut at, mut runs) = (dice.u64(0..3), Vec::new());
        for _ in 0..dice.usize(RUNS_MIN..400) {
            runs.push((at, dice.u64(1..4)));
            at = runs[runs.len() - 1].0 + runs[runs.len() - 1].1 + dice.u64(0..4);
        }
        let indices = runs.iter().flat_map(|&(start, len)| start..start + len).collect();
        (IndexSet::of_runs(runs).unwrap(), indices)
    }

    fn is_scattered(set: &IndexSet) -> bool {
        matches!(&set.0, Kept::Several(several) if matches!(**several, Several::Scattered(_)))
    }

    #[test]
    fn lists_say_what_plain_lists_say() {
        let mut dice = fastrand::Rng::with_seed(5);
        let mut scattered = 0;
        for _ in 0..400 {
            let (set, indices) = random(&mut dice);
            scattered += usize::from(is_scattered(&set));
            assert_eq!(set.iter().collect::<Vec<_>>(), indices);
            assert_eq!(set.hull(), Some((indices[0], indices[indices.len() - 1] + 1)));
            let end = indices[indices.len() - 1] + 3;
            let (mut low, mut high) = (dice.u64(0..end), dice.u64(0..end));
            (low, high) = (low.min(high), low.max(high));
            let part = set.within(low, high);
            let inside: Vec<u64> = indices.iter().copied().filter(|x| (low..high).contains(x)).collect();
            // A part of a part, too, and the same made anew.
            for (part, inside) in [
                (&part, &inside),
                (&part.within(low + 5, high), &{
                    inside.iter().copied().filter(|&x| x >= low + 5).collect::<Vec<_>>()
                }),
            ] {
                assert_eq!(&part.iter().collect::<Vec<_>>(), inside, "{low}..{high}");
                assert_eq!(part.len(), inside.len() as u64);
                let runs = inside.chunk_by(|one, next| one + 1 == *next).map(|run| (run[0], run.len() as u64));
                let anew = IndexSet::of_runs(runs).unwrap();
                if is_scattered(part) {
                    assert_eq!((part == &anew, &anew == part), (true, true));
                    assert_ne!(part, &anew.within(0, inside[inside.len() - 1]));
                }
                for _ in 0..8 {
                    let at = dice.u64(0..end);
                    assert_eq!(part.below(at), inside.iter().filter(|&&x| x < at).count() as u64);
                    assert_eq!(part.contains(at), inside.contains(&at));
                    assert_eq!(part.at_or_after(at), inside.iter().copied().find(|&x| x >= at));
                    assert_eq!(part.meets(at, at + 3), inside.iter().any(|x| (at..at + 3).contains(x)));
                }
                assert_eq!(IndexSet::of_parts(part.parts()).as_ref(), Some(part));
                let terms: Vec<u64> = part.terms().iter().map(Term::elements).collect();
                assert_eq!(terms.iter().sum::<u64>(), part.len());
            }
            let (other, more) = random(&mut dice);
            let both: Vec<u64> = indices.iter().copied().filter(|x| more.contains(x)).collect();
            assert_eq!(set.intersect(&other).iter().collect::<Vec<_>>(), both);
            let every = IndexSet::progression(dice.u64(0..9), 2, 5, 300).unwrap();
            let both: Vec<u64> = indices.iter().copied().filter(|&x| every.contains(x)).collect();
            assert_eq!(set.intersect(&every).iter().collect::<Vec<_>>(), both);
            assert_eq!(every.intersect(&set).iter().collect::<Vec<_>>(), both);
            assert_eq!(set.lowered(indices[0]).iter().next(), Some(0));
        }
        assert!(scattered > 300, "{scattered} of them follow no pattern");
    }

    #[test]
    fn what_is_cut_out_of_a_list_shares_it() {
        let set = IndexSet::of_runs((0..100_000).map(|i| (i * i, 1 + i % 2))).unwrap();
        let before = looks();
        let part = set.within(1 << 20, 1 << 32);
        assert!(is_scattered(&part) && looks() - before < 100);
        assert_eq!(part.id(), set.within(1 << 20, 1 << 32).id());
        assert_ne!(part.id(), set.within(1 << 20, 1 << 31).id());
        assert!(!is_scattered(&IndexSet::of_runs((0..100_000).map(|i| (7 * i, 3))).unwrap()));
        assert!(!is_scattered(&IndexSet::of_runs((0..10).map(|i| (i * i, 1))).unwrap()));
    }
}
