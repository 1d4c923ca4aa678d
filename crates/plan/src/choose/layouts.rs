//! Which of some layouts of the same arrays is used at the least cost.
//!
//! A layout is judged by all that it is for: arrays are written once, and read as somebody says. What each use costs is
//! taken from a glance at it, with the parameters that each strategy begins with. Reading arrays back as they were written
//! is not weighed: who wants a part of a chunk reads just that, and planning would take twice the time.

use super::candidates;
use super::choice::{Candidate, Preference};
use super::margins::{STEPS_A_SECOND, STEPS_MIN};
use super::search::{Planner, Search};
use crate::price::MemoryLayout;
use crate::rounds::check_servers;
use crate::transfer::{Exchange, Transfer};
use std::collections::VecDeque;
use std::sync::Arc;

/// By how much another layout must be cheaper than the first to be taken, as a share: more than the model is mostly off.
const WORTH: f64 = 0.15;
/// Layouts in a row that are no cheaper than the best, after which no further ones of their kind are looked at.
const NO_BETTER: usize = 3;
/// What telling the model of an array takes, in steps.
const STEPS_AN_ARRAY: usize = 4;

/// What a layout is for.
#[derive(Clone, Debug)]
pub struct Use {
    /// A transfer to or from arrays that lie so.
    pub transfer: Arc<Transfer>,
    /// How often it comes.
    pub times: f64,
    /// What is wanted of it.
    pub hints: Preference,
    /// How arrays lie in memory, as far as it is known.
    pub laid: Vec<Option<MemoryLayout>>,
}

/// The rungs of a ladder, those in the middle first, then those in the middle of what is left.
fn halving<T>(ladder: &[T]) -> impl Iterator<Item = &T> {
    let mut parts = VecDeque::from([ladder]);
    std::iter::from_fn(move || {
        while let Some(part) = parts.pop_front() {
            if let Some(rung) = part.get(part.len() / 2) {
                // What lies above is often one chunk for all of an array.
                parts.extend([&part[part.len() / 2 + 1..], &part[..part.len() / 2]]);
                return Some(rung);
            }
        }
        None
    })
}

/// The layout that was taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    /// Shape of its chunks.
    pub chunk: Vec<u64>,
    /// How many times as long data move in the first one; infinite where that cannot be, 1 where that was taken.
    pub times: f64,
}

impl Planner<'_> {
    /// The layout whose uses cost the least: `first`, unless another is clearly cheaper. The others come in ladders; each
    /// is followed as long as it gets better, and as long as looking at it takes little beside what is to be gained.
    pub fn cheapest_layout(
        &self,
        first: &[u64],
        ladders: &[Vec<Vec<u64>>],
        uses: impl Fn(&[u64]) -> Vec<Use>,
    ) -> Taken {
        if ladders.iter().all(Vec::is_empty) {
            return Taken { chunk: first.to_vec(), times: 1.0 };
        }
        let (usual, mut steps) = self.glance(&uses(first));
        let allowed = STEPS_MIN.max(STEPS_A_SECOND * usual.min(1e12) / 1e9);
        let (mut best, mut least) = (first, usual);
        for ladder in ladders {
            let mut no_better = 0;
            for chunk in halving(ladder) {
                if no_better == NO_BETTER || steps > allowed {
                    break;
                }
                let (cost, more) = self.glance(&uses(chunk));
                steps += more;
                no_better += 1;
                if cost < least {
                    (best, least, no_better) = (chunk, cost, 0);
                }
            }
        }
        if least >= usual * (1.0 - WORTH) {
            return Taken { chunk: first.to_vec(), times: 1.0 };
        }
        Taken { chunk: best.to_vec(), times: usual / least }
    }

    /// Whether a use can be carried out.
    pub fn can(&self, one: &Use) -> bool {
        self.choose(&one.transfer, &one.hints, &|_| None).is_ok()
    }

    /// What all uses of a layout cost while data move, infinite where one cannot be carried out \[ns\]; and how many steps
    /// of programs were looked at for it, or what takes as long. Agreements cost the same in all layouts.
    fn glance(&self, uses: &[Use]) -> (f64, f64) {
        let (mut ns, mut steps) = (0.0, 0.0);
        for one in uses {
            let (cost, more) = self.glance_at(one);
            (ns, steps) = (ns + one.times * cost, steps + more);
        }
        (ns, steps)
    }

    fn glance_at(&self, one: &Use) -> (f64, f64) {
        let named = one.hints.server_ranks.as_ref();
        if named.is_some_and(|named| check_servers(named, one.transfer.ranks).is_err()) {
            return (f64::INFINITY, 0.0);
        }
        let memory = |number: usize| one.laid.get(number).cloned().flatten();
        let mut search = Search::new(self, &one.transfer, &one.hints, &memory);
        for strategy in candidates::strategies(self.strategies, &one.transfer, self.profile, &one.hints) {
            if one.hints.strategy.is_some() || strategy.spec().tells_layouts {
                search.enter(strategy, one.hints.exchange.unwrap_or(Exchange::All));
            }
        }
        let cheapest = search.priced.iter().map(Candidate::moving_ns).fold(f64::INFINITY, f64::min);
        (cheapest, search.steps + (STEPS_AN_ARRAY * one.transfer.asks.len()) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_tried_from_the_middle() {
        let rungs: Vec<u32> = (0..7).collect();
        assert_eq!(halving(&rungs).copied().collect::<Vec<u32>>(), [3, 5, 1, 6, 4, 2, 0]);
        assert_eq!(halving(&[1, 2]).copied().collect::<Vec<u32>>(), [2, 1]);
        assert_eq!(halving::<u32>(&[]).count(), 0);
    }
}
