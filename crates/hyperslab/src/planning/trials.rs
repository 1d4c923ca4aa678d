//! What transfers by one plan teach: which of its candidates is the fastest here.
//!
//! A model is off by other factors for other candidates, and by other factors for other transfers, so that what one transfer
//! teaches of a strategy says little of the next one. But the same transfer often comes again. When it takes clearly longer
//! than the model says, another candidate may be faster, and is tried; of those that were, the fastest stays.

use hyperslab_plan::{Candidate, Choice, Parameters};
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
/// Prices that differ by less are of the same work: what is learned of one holds for the other.
const ALIKE: f64 = 0.02;
/// Transfers that move for less than this say more of noise than of candidates \[s\].
const SECONDS_MIN: f64 = 1e-3;

/// A plan, and how its candidates did.
pub(super) struct Trials {
    choice: Arc<Choice>,
    /// The same with the candidate in use, whose number is this.
    used: Arc<Choice>,
    taken: usize,
    /// Those that cannot carry out the transfer, though they can one array of each kind.
    refused: Vec<usize>,
    /// What of the model's price each candidate should have taken, by what was learned of other transfers.
    usual: Vec<f64>,
    tried: Vec<Tried>,
}

/// A candidate that was tried.
struct Tried {
    candidate: usize,
    /// How long data moved, the last times \[s\].
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
    /// A plan that is used for the first time; `usual` tells by which factor prices of a candidate are off elsewhere.
    pub(super) fn new(choice: Arc<Choice>, usual: impl FnMut(&Candidate) -> f64) -> Trials {
        let usual = choice.candidates.iter().map(usual).collect();
        let chosen = choice.candidates.iter().position(|one| one.parameters == choice.parameters);
        let (used, taken) = (choice.clone(), chosen.unwrap_or(0));
        Trials { choice, used, taken, refused: Vec::new(), usual, tried: Vec::new() }
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
        let first = self.measured(self.number_of(&self.choice.parameters)).unwrap_or(0.0) * 1e3;
        let Choice { parameters, why, .. } = &*self.choice;
        let why = format!("the first choice, {}, took {first:.3} ms ({why})", parameters.strategy);
        let Candidate { parameters, price } = one;
        Choice { parameters, price, why, ..(*self.choice).clone() }
    }

    /// Learns how long data moved, and takes another candidate where that one should be faster.
    pub(super) fn hear(&mut self, seconds: f64) {
        let taken = self.taken;
        if !(seconds.is_finite() && seconds >= SECONDS_MIN) || self.choice.candidates.is_empty() {
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
        let own = self.expected(taken);
        let others = (0..self.choice.candidates.len()).filter(|other| *other != taken && !self.refused.contains(other));
        let better = others.filter(|&other| {
            let known = self.measured(other).is_some();
            let enough = if known { BETTER } else { PROMISING };
            (known || self.tried.len() < TRIED_MAX) && self.expected(other) < enough * own
        });
        let best = better.min_by(|&a, &b| self.expected(a).total_cmp(&self.expected(b)));
        self.taken = best.unwrap_or(taken);
    }

    /// The median of what a candidate took \[s\].
    fn measured(&self, candidate: usize) -> Option<f64> {
        self.tried.iter().find(|tried| tried.candidate == candidate).map(Tried::median)
    }

    /// What a candidate takes, as it was measured, or as what was measured of others lets one expect \[s\].
    fn expected(&self, candidate: usize) -> f64 {
        let price = &self.choice.candidates[candidate].price;
        let (moving, later) = (price.moving_ns() / 1e9, price.later_ns / 1e9);
        self.measured(candidate).unwrap_or_else(|| moving * self.off(candidate)) + later
    }

    /// By which factor the price of a candidate that was not tried is expected to be off: as far as those that do the same
    /// work; others, halfway between that and what is usual, since a model may be wrong of a machine or of a candidate.
    fn off(&self, candidate: usize) -> f64 {
        let usual = self.usual[candidate];
        let one = &self.choice.candidates[candidate];
        let of = |tried: &Tried| {
            let price = &self.choice.candidates[tried.candidate].price;
            tried.median() * 1e9 / price.moving_ns().max(1.0)
        };
        let is_alike = |tried: &&Tried| is_alike(&self.choice.candidates[tried.candidate], one);
        match self.tried.iter().find(is_alike) {
            Some(alike) => of(alike),
            None => self.tried.first().map_or(usual, |first| (usual * of(first)).sqrt()),
        }
    }
}

/// Whether two candidates are carried out alike, as far as the model can tell.
fn is_alike(a: &Candidate, b: &Candidate) -> bool {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= ALIKE * a.max(*b);
    a.parameters.strategy == b.parameters.strategy || a.price.phases.iter().zip(&b.price.phases).all(near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_plan::{Phase, Price, Resource, Strategy};

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
        Trials::new(Arc::new(Choice { parameters, why, price, candidates, refused: Vec::new() }), |_| 1.0)
    }

    /// Carries out transfers that take so long by each strategy \[ms\]; gives which were used.
    fn used(trials: &mut Trials, took: &[(Strategy, f64)], times: usize) -> Vec<Strategy> {
        let mut one = || {
            let strategy = trials.choice(|_| true).parameters.strategy;
            let (_, ms) = took.iter().find(|one| one.0 == strategy).unwrap();
            trials.hear(ms / 1e3);
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
    fn what_cannot_be_is_not_taken() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5), (TwoPhase, 40.0)]);
        for _ in 0..9 {
            assert_eq!(trials.choice(|one| one.strategy != Independent).parameters.strategy, ServerDirected);
            trials.hear(0.02);
        }
    }

    #[test]
    fn one_odd_measurement_turns_nothing() {
        let mut trials = plan(&[(ServerDirected, 10.0), (Independent, 10.5)]);
        used(&mut trials, &[(ServerDirected, 10.0)], 5);
        trials.hear(1.0);
        assert_eq!(used(&mut trials, &[(ServerDirected, 10.0)], 5), [ServerDirected; 5]);
    }

    #[test]
    fn candidates_that_do_the_same_work_are_not_tried_for_each_other() {
        let mut trials = plan(&[(ServerDirected, 10.0), (TwoPhase, 10.1), (ServerDirected, 11.0)]);
        assert_eq!(used(&mut trials, &[(ServerDirected, 30.0)], 9), [ServerDirected; 9]);
    }

    #[test]
    fn short_transfers_and_nonsense_teach_nothing() {
        let mut trials = plan(&[(ServerDirected, 0.1), (Independent, 0.1)]);
        for seconds in [5e-4, f64::NAN, f64::INFINITY, -1.0, 0.0] {
            (0..9).for_each(|_| trials.hear(seconds));
        }
        assert!(trials.tried.is_empty());
    }
}
