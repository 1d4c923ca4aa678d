//! Where the runs of a list lie that follow no pattern.

use crate::index_set::Term;
use crate::ordered::Finger;

/// Runs of indices in rising order, none of which has an index in common with another, and the position of each in a memory:
/// 20 bytes a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListedPlaces {
    starts: Box<[u64]>,
    ats: Box<[u64]>,
    lens: Box<[u32]>,
}

impl ListedPlaces {
    /// Of runs `(first index, length, position)`. `None` when one begins before the one before it ends, or has none of its own
    /// or too many indices.
    pub fn of_runs(runs: &[(u64, u64, u64)]) -> Option<ListedPlaces> {
        let apart = runs.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
        let lens: Option<Box<[u32]>> =
            runs.iter().map(|run| u32::try_from(run.1).ok().filter(|&len| len > 0)).collect();
        let (starts, ats) = (runs.iter().map(|run| run.0).collect(), runs.iter().map(|run| run.2).collect());
        Some(ListedPlaces { starts, ats, lens: lens.filter(|_| apart)? })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.starts.len()
    }

    /// How many indices they have.
    pub fn elements(&self) -> u64 {
        self.lens.iter().map(|&len| u64::from(len)).sum()
    }

    /// The position of an index, and how many indices follow it there in its run.
    pub(crate) fn run_at(&self, finger: &mut Finger, index: u64) -> (u64, u64) {
        let run = finger.find(&self.starts, |&start| start <= index).saturating_sub(1);
        let Some(start) = self.starts.get(run) else { return (0, 1) };
        let inside = index.saturating_sub(*start);
        (self.ats[run] + inside, u64::from(self.lens[run]).saturating_sub(inside).max(1))
    }

    /// The run that holds an index, looked for from this one on, which does not lie behind it.
    #[inline(always)]
    pub(crate) fn run_from(&self, run: usize, index: u64) -> usize {
        let begins_behind = |run: usize| self.starts.get(run).is_none_or(|&start| start > index);
        if run > 0 || !begins_behind(0) {
            if begins_behind(run + 1) {
                return run;
            }
            if begins_behind(run + 2) {
                return run + 1;
            }
        }
        let mut finger = Finger::from(run);
        finger.find(&self.starts, |&start| start <= index).saturating_sub(1)
    }

    /// The position of an index in a run, and how many follow it there.
    #[inline(always)]
    pub(crate) fn inside(&self, run: usize, index: u64) -> (u64, u64) {
        let inside = index - self.starts[run];
        (self.ats[run] + inside, u64::from(self.lens[run]).saturating_sub(inside).max(1))
    }

    /// The runs that may have an index in `low..high`.
    pub(crate) fn near(&self, finger: &mut Finger, low: u64, high: u64) -> impl Iterator<Item = Term> + '_ {
        let from = finger.find(&self.starts, |&start| start <= low).saturating_sub(1);
        let rest = self.starts[from..].iter().zip(&self.lens[from..]).take_while(move |run| *run.0 < high);
        rest.filter_map(|(&start, &len)| Term::run(start, start + u64::from(len)))
    }
}
