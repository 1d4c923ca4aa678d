//! What transfers by one plan teach: which of its candidates is the fastest here.
//!
//! A model is off by other factors for other candidates, and by other factors for other transfers, so that what one transfer
//! teaches of a strategy says little of the next one. But the same transfer often comes again. When it takes longer than
//! another candidate should, by what is known by then, that one is tried; of those that were, the fastest stays.
//!
//! What counts is how long it took until all ranks were done: rank 0, which alone learns, may itself have little to do.

use hyperslab_plan::{Candidate, Choice, Parameters, Phase};
use std::sync::Arc;

/// Transfers after which a candidate is judged: the first one often meets cold caches and fresh pages.
const JUDGED_AFTER: usize = 2;
/// The last measurements of a candidate; it takes their median.
const REMEMBERED: usize = 5;
/// Candidates of one plan that are tried, the first among them.
const TRIED_MAX: usize = 3;
/// What another candidate may take, over the one in use, to be used instead: where it was measured, and where it was not.
const BETTER: f64 = 0.9;
const PROMISING: f64 = 0.85;
/// The first choice is tried once more where it took no longer than this over the one in use: it was measured first, and so
/// perhaps beside caches that were cold.
const ONCE_MORE: f64 = 1.5;
/// Prices that differ by less are of the same work: what is learned of one holds for the other.
const ALIKE: f64 = 0.02;
/// Transfers that take less than this say more of noise than of candidates, unless longer ones came before \[s\].
const SECONDS_MIN: f64 = 1e-3;

/// A plan, and how its candidates did.
pub(super) struct Trials {
    choice: Arc<Choice>,
    /// The same with the candidate in use, whose number is this.
    used: Arc<Choice>,
    taken: usize,
    /// Those that cannot carry out the transfer, though they can one array of each kind.
    refused: Vec<usize>,
    tried: Vec<Tried>,
    /// Whether the first one was tried once more.
    once_more: bool,
}

/// A candidate that was tried.
struct Tried {
    candidate: usize,
    /// How long it took from opening to the end, the last times \[s\].
    seconds: Vec<f64>,
}

impl Tried {
    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(sorted.len() - 1) / 2]
    }
}

impl Trials {
    /// A plan that is used for the first time.
    pub(super) fn new(choice: Arc<Choice>) -> Trials {
        let chosen = choice.candidates.iter().position(|one| one.parameters == choice.parameters);
        let (used, taken) = (choice.clone(), chosen.unwrap_or(0));
        Trials { choice, used, taken, refused: Vec::new(), tried: Vec::new(), once_more: false }
    }

    /// How the transfer is carried out now; `can` tells whether it can be so.
    pub(super) fn choice(&mut self, can: impl Fn(&Parameters) -> bool) -> Arc<Choice> {
        let Some(one) = self.choice.candidates.get(self.taken) else { return self.choice.clone() };
        if one.parameters != self.used.parameters {
            if can(&one.parameters) {
                self.used = Arc::new(self.told(one.clone()));
            } else {
                self.refused.push(self.taken);
                self.taken = self.number_of(&self.used.parameters);
            }
        }
        self.used.clone()
    }

    fn number_of(&self, parameters: &Parameters) -> usize {
        self.choice.candidates.iter().position(|one| one.parameters == *parameters).unwrap_or(0)
    }

    /// The choice with another candidate, and why.
    fn told(&self, one: Candidate) -> Choice {
        if one.parameters == self.choice.parameters {
            return (*self.choice).clone();
        }
        let first = self.measured(self.number_of(&self.choice.parameters)).unwrap_or(0.0) * 1e3;
        let Choice { parameters, why, .. } = &*self.choice;
        let why = format!("the first choice, {}, took {first:.3} ms ({why})", parameters.strategy);
        let Candidate { parameters, price } = one;
        Choice { parameters, price, why, ..(*self.choice).clone() }
    }

    /// Learns how long it took from opening to the end, and takes another candidate where that one should be faster; `usual`
    /// tells by which factor prices of a candidate are off in transfers of this kind.
    pub(super) fn hear(&mut self, seconds: f64, usual: impl FnMut(&Candidate) -> f64) {
        let taken = self.taken;
        let long = seconds >= SECONDS_MIN || !self.tried.is_empty() && seconds > 0.0;
        if !(seconds.is_finite() && long) || self.choice.candidates.is_empty() {
            return;
        }
        let at = self.tried.iter().position(|tried| tried.candidate == taken).unwrap_or_else(|| {
            self.tried.push(Tried { candidate: taken, seconds: Vec::new() });
            self.tried.len() - 1
        });
        let tried = &mut self.tried[at];
        tried.seconds.push(seconds);
        if tried.seconds.len() > REMEMBERED {
            tried.seconds.remove(0);
        }
        if tried.seconds.len() < JUDGED_AFTER {
            return;
        }
        if self.tries_first_once_more(at) {
            return;
        }
        let usual: Vec<f64> = self.choice.candidates.iter().map(usual).collect();
        let expected = |candidate: usize| self.expected(candidate, usual[candidate]);
        let own = expected(taken);
        let others = (0..self.choice.candidates.len()).filter(|other| *other != taken && !self.refused.contains(other));
        let better = others.filter(|&other| {
            let known = self.measured(other).is_some();
            let enough = if known { BETTER } else { PROMISING };
            (known || self.tried.len() < TRIED_MAX) && expected(other) < enough * own
        });
        let best = better.min_by(|&a, &b| expected(a).total_cmp(&expected(b)));
        self.taken = best.unwrap_or(taken);
    }

    /// Goes back to the first choice, if it may be better than number `at` of those tried after all.
    fn tries_first_once_more(&mut self, at: usize) -> bool {
        let again = at > 0 && !self.once_more && self.tried[0].median() < ONCE_MORE * self.tried[at].median();
        if again {
            self.once_more = true;
            let first = &mut self.tried[0];
            // It is judged by its next time, unless the last one was shorter.
            first.seconds.drain(..first.seconds.len() - 1);
            self.taken = first.candidate;
        }
        again
    }

    /// The median of what a candidate took \[s\].
    fn measured(&self, candidate: usize) -> Option<f64> {
        self.tried.iter().find(|tried| tried.candidate == candidate).map(Tried::median)
    }

    /// What a candidate takes, as it was measured, or as what was measured of others lets one expect \[s\].
    fn expected(&self, candidate: usize, usual: f64) -> f64 {
        let one = &self.choice.candidates[candidate];
        self.measured(candidate).unwrap_or_else(|| priced(one) * self.off(one, usual)) + one.price.later_ns / 1e9
    }

    /// By which factor the price of a candidate that was not tried is expected to be off: as far as those that do the same
    /// work; others, halfway between that and what is usual, since a model may be wrong of a machine or of a candidate.
    fn off(&self, one: &Candidate, usual: f64) -> f64 {
        let of = |tried: &Tried| tried.median() / priced(&self.choice.candidates[tried.candidate]).max(1e-9);
        let is_alike = |tried: &&Tried| is_alike(&self.choice.candidates[tried.candidate], one);
        match self.tried.iter().find(is_alike) {
            Some(alike) => of(alike),
            None => self.tried.first().map_or(usual, |first| (usual * of(first)).sqrt()),
        }
    }
}

/// From opening to the end, by the model \[s\].
fn priced(one: &Candidate) -> f64 {
    (one.price.ns() - one.price.phase(Phase::Open)) / 1e9
}

/// Whether two candidates are carried out alike, as far as the model can tell.
fn is_alike(a: &Candidate, b: &Candidate) -> bool {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= ALIKE * a.max(*b);
    a.parameters.strategy == b.parameters.strategy || a.price.phases.iter().zip(&b.price.phases).all(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_plan::{Price, Resource, Strategy};

    /// A plan with candidates at these prices, of which the first is chosen \[ms\].
    fn plan(prices: &[(Strategy, f64)]) -> Trials {
        let candidates: Vec<Candidate> = prices
            .iter()
            .map(|&(strategy, ms)| {
                let mut phases = [0.0; Phase::ALL.len()];
                phases[Phase::Storage as usize] = ms * 1e6;
                let (resources, bottleneck) = ([0.0; Resource::ALL.len()], Resource::Server);
                let price = Price { phases, resources, bottleneck, buffer_bytes: 0, later_ns: 0.0, looked_at: 0 };
                Candidate { parameters: Parameters { strategy, ..Parameters::default() }, price }
            })
            .collect();
        let Candidate { parameters, price } = candidates[0].clone();
        let why = "it is the cheapest".into();
        Trials::new(Arc::new(Choice { parameters, why, price, candidates, refused: Vec::new() }))
    }

    /// Carries out transfers that take so long by each strategy \[ms\]; gives which were used.
    fn used(trials: &mut Trials, took: &[(Strategy, f64)], times: usize) -> Vec<Strategy> {
        let mut one = || {
            let strategy = trials.choice(|_| true).parameters.strategy;
            let (_, ms) = took.iter().find(|one| one.0 == strategy).unwrap();
            trials.hear(ms / 1e3, |_| 1.0);
            strategy
        };
        (0..times).map(|_| one()).collect()
    }

    use Strategy::{Independent, RootGather, ServerDirected, TwoPhase};

    #[test]
    fn what_takes_as_long_as_was_said_stays() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5), (TwoPhase, 20.0)]);
        let took = [(ServerDirected, 11.5), (Independent, 1.0)];
        assert_eq!(used(&mut trials, &took, 20), [ServerDirected; 20]);
    }

    #[test]
    fn what_takes_far_longer_gives_way_to_what_is_priced_about_the_same() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5), (TwoPhase, 40.0)]);
        let took = [(ServerDirected, 18.0), (Independent, 11.0)];
        let used = used(&mut trials, &took, 9);
        assert_eq!(used[..2], [ServerDirected; 2]);
        assert_eq!(used[2..], [Independent; 7]);
        assert!(trials.choice(|_| true).why.starts_with("the first choice, server-directed, took 18.000 ms"));
    }

    #[test]
    fn of_those_that_were_tried_the_fastest_stays() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5), (TwoPhase, 11.0), (RootGather, 11.0)]);
        let took = [(ServerDirected, 20.0), (Independent, 30.0), (TwoPhase, 25.0), (RootGather, 1.0)];
        let used = used(&mut trials, &took, 20);
        assert_eq!(used[..2], [ServerDirected; 2]);
        assert_eq!(used[8..], [ServerDirected; 12], "{used:?}");
        assert!(!used.contains(&RootGather), "three are enough");
    }

    #[test]
    fn the_first_choice_has_another_chance_once_caches_are_warm() {
        for (warm, stays) in [(8.0, Independent), (16.0, RootGather)] {
            let mut trials = plan(&[(Independent, 2.0), (RootGather, 2.4)]);
            let mut used = Vec::new();
            for turn in 0..20 {
                let strategy = trials.choice(|_| true).parameters.strategy;
                let cold = if turn < 2 { 18.0 } else { warm };
                trials.hear(if strategy == Independent { cold } else { 13.0 } / 1e3, |_| 1.0);
                used.push(strategy);
            }
            assert_eq!(used[..5], [Independent, Independent, RootGather, RootGather, Independent]);
            assert_eq!(used[5..], [stays; 15], "{warm}");
        }
    }

    #[test]
    fn what_cannot_be_is_not_taken() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5), (TwoPhase, 40.0)]);
        for _ in 0..9 {
            assert_eq!(trials.choice(|one| one.strategy != Independent).parameters.strategy, ServerDirected);
            trials.hear(0.02, |_| 1.0);
        }
    }

    #[test]
    fn one_odd_measurement_turns_nothing() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5)]);
        used(&mut trials, &[(ServerDirected, 10.0)], 5);
        trials.hear(1.0, |_| 1.0);
        assert_eq!(used(&mut trials, &[(ServerDirected, 10.0)], 5), [ServerDirected; 5]);
    }

    #[test]
    fn candidates_that_do_the_same_work_are_not_tried_for_each_other() {
        let mut trials = plan(&[(ServerDirected, 10.0), (TwoPhase, 10.1), (ServerDirected, 11.0)]);
        assert_eq!(used(&mut trials, &[(ServerDirected, 30.0)], 9), [ServerDirected; 9]);
    }

    #[test]
    fn where_all_transfers_take_longer_than_was_said_nothing_is_tried() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 11.0), (TwoPhase, 14.0)]);
        for _ in 0..9 {
            assert_eq!(trials.choice(|_| true).parameters.strategy, ServerDirected);
            trials.hear(0.03, |_| 3.0);
        }
    }

    #[test]
    fn what_follows_a_hiccup_counts_however_short() {
        let mut trials = plan(&[(ServerDirected, 0.6), (Independent, 0.6)]);
        for seconds in [6e-4, 5e-3, 6e-4, 5e-3, 6e-4] {
            trials.hear(seconds, |_| 1.0);
            assert_eq!(trials.choice(|_| true).parameters.strategy, ServerDirected);
        }
    }

    #[test]
    fn short_transfers_and_nonsense_teach_nothing() {
        let mut trials = plan(&[(ServerDirected, 0.1), (Independent, 0.1)]);
        for seconds in [5e-4, f64::NAN, f64::INFINITY, -1.0, 0.0] {
            (0..9).for_each(|_| trials.hear(seconds, |_| 1.0));
        }
        assert!(trials.tried.is_empty());
    }
}
