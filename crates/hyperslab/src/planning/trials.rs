//! What transfers by one plan teach: which of its candidates is the fastest here.
//!
//! A model is off by other factors for other candidates, and by other factors for other transfers, so that what one transfer
//! teaches of a strategy says little of the next one. But the same transfer often comes again. When it takes longer than
//! another candidate should, by what is known by then, that one is tried; and now and then one of which that cannot be said,
//! as far as a small part of the time pays for it. Of those that were tried, the fastest stays.
//!
//! What counts is how long it took until all ranks were done: rank 0, which alone learns, may itself have little to do. To
//! that comes what making durable took rank 0, in the later call that does it.

use hyperslab_layout::quantity::seconds;
use hyperslab_plan::{Candidate, Choice, Parameters, Phase, Price};
use std::sync::Arc;

/// Transfers after which a candidate is judged, since the first one often meets cold caches and fresh pages; and those after
/// which one that seems better is taken for better.
const JUDGED_AFTER: usize = 2;
const SURE_AFTER: usize = 3;
/// The last measurements of a candidate; it takes their median.
const REMEMBERED: usize = 5;
/// Candidates of one plan that are tried since they should be faster, the first among them; and all that are tried.
const PROMISED_MAX: usize = 3;
const TRIED_MAX: usize = 12;
/// What another candidate may take, over the one in use, to be used instead: where it was measured, and where it was not.
const BETTER: f64 = 0.9;
const PROMISING: f64 = 0.85;
/// What a candidate may be expected to take, over the one in use, to be tried although nothing speaks for it.
const CONCEIVABLE: f64 = 1.7;
/// What such trials may be expected to cost, with what all trials before them cost, over the time of all transfers by the plan.
const SPENT_ON_TRIALS: f64 = 0.05;
/// What each transfer of such a trial is taken to cost at least, over one by the candidate in use.
const RISK: f64 = 0.1;
/// A candidate that takes so many times as long as the one in use is judged at once.
const HOPELESS: f64 = 2.0;
/// Where transfers take longer than this, a trial that goes wrong is felt, so nothing is tried for which nothing speaks \[s\].
const FELT: f64 = 10.0;
/// By how much each candidate of a strategy that was tried makes others of it less interesting.
const ANOTHER_OF_IT: f64 = 0.25;
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
    /// The same with the candidate that is taken now, whose number is the next one.
    used: Arc<Choice>,
    taken: usize,
    /// What the model chose.
    first: usize,
    /// The best of those that were tried, to which a trial goes back.
    best: usize,
    /// Those that cannot carry out the transfer, though they can one array of each kind, or failed.
    refused: Vec<usize>,
    tried: Vec<Tried>,
    /// Whether the first one was tried once more.
    once_more: bool,
    /// How many transfers there were, and how much longer trials took than they would have by the best candidate \[s\].
    transfers: u64,
    lost: f64,
}

/// A candidate that was tried.
struct Tried {
    candidate: usize,
    /// How long it took from opening to the end, the last times \[s\].
    seconds: Vec<f64>,
    /// What making its writes durable took later, the last times \[s\].
    later: Vec<f64>,
}

/// Remembers one more measurement.
fn remember(seconds: &mut Vec<f64>, one: f64) {
    seconds.push(one);
    if seconds.len() > REMEMBERED {
        seconds.remove(0);
    }
}

/// The median, of two the smaller.
fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

impl Trials {
    /// A plan that is used for the first time.
    pub(super) fn new(choice: Arc<Choice>) -> Trials {
        let chosen = choice.candidates.iter().position(|one| one.parameters == choice.parameters).unwrap_or(0);
        let (used, tried, refused) = (choice.clone(), Vec::new(), Vec::new());
        Trials {
            choice,
            used,
            taken: chosen,
            first: chosen,
            best: chosen,
            refused,
            tried,
            once_more: false,
            transfers: 0,
            lost: 0.0,
        }
    }

    /// How the transfer is carried out now; `can` tells whether it can be so.
    pub(super) fn choice(&mut self, can: impl Fn(&Parameters) -> bool) -> Arc<Choice> {
        let trial = self.choice.candidates.get(self.taken).filter(|_| self.taken != self.best);
        if trial.is_some_and(|one| !can(&one.parameters)) {
            self.fails();
        }
        if let Some(one) = self.choice.candidates.get(self.taken).filter(|one| one.parameters != self.used.parameters) {
            self.used = Arc::new(self.told(one.clone()));
        }
        self.used.clone()
    }

    /// Gives up another candidate than the first choice when a transfer by it cannot be, or did not come to its end.
    pub(super) fn fails(&mut self) {
        if self.taken != self.first {
            self.refused.push(self.taken);
        }
        if self.best == self.taken {
            (self.best, self.used) = (self.first, self.choice.clone());
        }
        self.taken = self.best;
    }

    /// The choice with another candidate, and why.
    fn told(&self, one: Candidate) -> Choice {
        if one.parameters == self.choice.parameters {
            return (*self.choice).clone();
        }
        let first = seconds(self.measured(self.first).unwrap_or(0.0));
        let Choice { parameters, why, .. } = &*self.choice;
        let trial = if self.taken == self.best { "" } else { "it is tried; " };
        let why = format!("{trial}the first choice, {}, took {first} ({why})", parameters.strategy);
        let Candidate { parameters, price } = one;
        Choice { parameters, price, why, ..(*self.choice).clone() }
    }

    /// Which candidate is in use, and what the model says that making durable takes later \[ns\].
    pub(super) fn in_use(&self) -> (usize, f64) {
        (self.taken, self.choice.candidates.get(self.taken).map_or(0.0, |one| one.price.later_ns))
    }

    /// Learns how long it took from opening to the end, and takes another candidate where that one should be faster, or is
    /// worth a trial; `usual` tells by which factor prices of a candidate are off in transfers of this kind.
    pub(super) fn hear(&mut self, seconds: f64, usual: impl FnMut(&Candidate) -> f64) {
        let long = seconds >= SECONDS_MIN || !self.tried.is_empty() && seconds > 0.0;
        if !(seconds.is_finite() && long) || self.choice.candidates.is_empty() {
            return;
        }
        let at = self.note(seconds);
        self.transfers += 1;
        let known = self.measured(self.best).unwrap_or(seconds);
        if self.taken != self.best {
            self.lost += (seconds - known).max(0.0);
        }
        // What short transfers teach is worth less than finding out after each of them.
        let settled =
            seconds < SECONDS_MIN && self.taken == self.best && !self.transfers.is_multiple_of(REMEMBERED as u64);
        if !settled && (self.tried[at].seconds.len() >= JUDGED_AFTER || seconds > HOPELESS * known) {
            self.judge(&self.expected(usual));
        }
    }

    /// Takes another candidate, or goes back to the best.
    fn judge(&mut self, expected: &[f64]) {
        let least = |some: Vec<usize>| some.into_iter().min_by(|&a, &b| expected[a].total_cmp(&expected[b]));
        let better = |one: &&Tried| {
            expected[one.candidate] < BETTER * expected[self.best] && !self.refused.contains(&one.candidate)
        };
        let (sure, unsure): (Vec<&Tried>, Vec<&Tried>) =
            self.tried.iter().filter(better).partition(|one| one.seconds.len() >= SURE_AFTER);
        let numbers = |some: Vec<&Tried>| some.iter().map(|one| one.candidate).collect();
        match (least(numbers(sure)), least(numbers(unsure))) {
            // What is said of it changes, too.
            (Some(best), _) => (self.best, self.used) = (best, self.choice.clone()),
            (None, Some(unsure)) => {
                self.taken = unsure;
                return;
            }
            (None, None) => {}
        }
        if !self.tries_first_once_more() {
            self.taken = self.promising(expected).or_else(|| self.conceivable(expected)).unwrap_or(self.best);
        }
    }

    /// Learns how long making durable took what a transfer by a candidate had written.
    pub(super) fn hear_later(&mut self, candidate: usize, seconds: f64) {
        let known = self.later(self.best).filter(|_| candidate != self.best);
        if let Some(tried) = self.tried.iter_mut().find(|tried| tried.candidate == candidate && seconds.is_finite()) {
            remember(&mut tried.later, seconds);
            self.lost += known.map_or(0.0, |known| (seconds - known).max(0.0));
        }
    }

    /// What was heard of how long making durable took.
    #[cfg(test)]
    pub(super) fn heard_later(&self, candidate: usize) -> &[f64] {
        self.tried(candidate).map_or(&[], |tried| &tried.later)
    }

    /// Notes a measurement of the candidate in use; gives its place among those tried.
    fn note(&mut self, seconds: f64) -> usize {
        let candidate = self.taken;
        let at = self.tried.iter().position(|tried| tried.candidate == candidate).unwrap_or_else(|| {
            self.tried.push(Tried { candidate, seconds: Vec::new(), later: Vec::new() });
            self.tried.len() - 1
        });
        remember(&mut self.tried[at].seconds, seconds);
        at
    }

    /// Goes back to the first choice, if it may be better than the best of those tried after it.
    fn tries_first_once_more(&mut self) -> bool {
        let known = (self.measured(self.first), self.measured(self.best));
        let near = matches!(known, (Some(first), Some(best)) if first < ONCE_MORE * best);
        let again = self.first != self.best && !self.once_more && near;
        if again {
            self.once_more = true;
            let first = &mut self.tried[0];
            // What it took when caches were cold is forgotten.
            first.seconds.drain(..first.seconds.len() - 1);
            self.taken = first.candidate;
        }
        again
    }

    /// Candidates that were not tried and can be.
    fn untried(&self) -> impl Iterator<Item = usize> {
        (0..self.choice.candidates.len())
            .filter(|one| !self.refused.contains(one) && self.tried.iter().all(|tried| tried.candidate != *one))
    }

    /// The candidate that should be clearly faster than the best one.
    fn promising(&self, expected: &[f64]) -> Option<usize> {
        let enough = |one: &usize| expected[*one] < PROMISING * expected[self.best];
        let few = self.tried.len() < PROMISED_MAX;
        self.untried().filter(|one| few && enough(one)).min_by(|&a, &b| expected[a].total_cmp(&expected[b]))
    }

    /// A candidate that may be faster than the best one, if finding out costs little beside what was spent so far.
    fn conceivable(&self, expected: &[f64]) -> Option<usize> {
        let best = expected[self.best];
        let costs = |one: usize| JUDGED_AFTER as f64 * (expected[one] - best).max(RISK * best);
        let paid = |one: usize| self.lost + costs(one) <= SPENT_ON_TRIALS * self.transfers as f64 * best;
        let way = |one: usize| {
            let Parameters { strategy, exchange, .. } = &self.choice.candidates[one].parameters;
            (*strategy, *exchange)
        };
        let same = |one: usize| self.tried.iter().filter(|tried| way(tried.candidate) == way(one)).count() as f64;
        let interest = |one: usize| expected[one] * (1.0 + ANOTHER_OF_IT * same(one));
        let other = |one: usize| !self.tried.iter().any(|tried| self.same_work(tried.candidate, one));
        self.untried()
            .filter(|_| self.tried.len() < TRIED_MAX && (SECONDS_MIN..FELT).contains(&best))
            .filter(|&one| expected[one] < CONCEIVABLE * best && paid(one) && other(one))
            .min_by(|&a, &b| interest(a).total_cmp(&interest(b)))
    }

    fn tried(&self, candidate: usize) -> Option<&Tried> {
        self.tried.iter().find(|tried| tried.candidate == candidate)
    }

    /// What making durable took after transfers by a candidate, once that is known \[s\].
    fn later(&self, candidate: usize) -> Option<f64> {
        median(&self.tried(candidate).filter(|tried| tried.later.len() >= JUDGED_AFTER)?.later)
    }

    /// The median of what a candidate took \[s\].
    fn measured(&self, candidate: usize) -> Option<f64> {
        median(&self.tried(candidate)?.seconds)
    }

    /// What each candidate takes until all is durable, as it was measured, or as what was measured of others lets one expect
    /// \[s\].
    fn expected(&self, usual: impl FnMut(&Candidate) -> f64) -> Vec<f64> {
        let usual: Vec<f64> = self.choice.candidates.iter().map(usual).collect();
        let priced_later = |candidate: usize| self.choice.candidates[candidate].price.later_ns / 1e9;
        // Where the model is off, it is so of all.
        let besides = self.later(self.best).map_or(0.0, |known| known - priced_later(self.best));
        let one = |candidate: usize| {
            let moving = self.measured(candidate).unwrap_or_else(|| {
                let one = &self.choice.candidates[candidate];
                priced(one) * self.off(candidate, usual[candidate])
            });
            moving + self.later(candidate).unwrap_or_else(|| (priced_later(candidate) + besides).max(0.0))
        };
        (0..self.choice.candidates.len()).map(one).collect()
    }

    /// By which factor the price of a candidate that was not tried is expected to be off: as far as those that do the same
    /// work; others, halfway between that and what is usual, since a model may be wrong of a machine or of a candidate.
    fn off(&self, candidate: usize, usual: f64) -> f64 {
        let of = |tried: &Tried| {
            median(&tried.seconds).unwrap_or(0.0) / priced(&self.choice.candidates[tried.candidate]).max(1e-9)
        };
        let strategy = |candidate: usize| self.choice.candidates[candidate].parameters.strategy;
        let is_alike = |tried: &&Tried| {
            strategy(tried.candidate) == strategy(candidate) || self.same_work(tried.candidate, candidate)
        };
        match self.tried.iter().find(is_alike) {
            Some(alike) => of(alike),
            None => self.tried.first().map_or(usual, |first| (usual * of(first)).sqrt()),
        }
    }

    /// Whether two candidates do the same work, as far as the model can tell.
    fn same_work(&self, one: usize, other: usize) -> bool {
        let near = |(a, b): (f64, f64)| (a - b).abs() <= ALIKE * a.max(b);
        let parts = |candidate: usize| {
            let Price { phases, later_ns, .. } = &self.choice.candidates[candidate].price;
            phases.iter().copied().chain([*later_ns])
        };
        parts(one).zip(parts(other)).all(near)
    }
}

/// From opening to the end, by the model \[s\].
fn priced(one: &Candidate) -> f64 {
    (one.price.ns() - one.price.phase(Phase::Open)) / 1e9
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hyperslab_plan::{Resource, Strategy};

    /// A plan with candidates at these prices, of which the first is chosen \[ms\].
    pub(in crate::planning) fn plan(prices: &[(Strategy, f64)]) -> Trials {
        let candidates: Vec<Candidate> = prices
            .iter()
            .map(|&(strategy, ms)| {
                let mut phases = [0.0; Phase::ALL.len()];
                phases[Phase::Storage as usize] = ms * 1e6;
                let (resources, bottleneck) = ([0.0; Resource::ALL.len()], Resource::Server);
                let price = Price {
                    phases,
                    resources,
                    bottleneck,
                    buffer_bytes: 0,
                    later_ns: 0.0,
                    first_ns: 0.0,
                    looked_at: 0,
                };
                Candidate { parameters: Parameters { strategy, ..Parameters::default() }, price }
            })
            .collect();
        let Candidate { parameters, price } = candidates[0].clone();
        let why = "it is the cheapest".into();
        Trials::new(Arc::new(Choice {
            parameters,
            why,
            price,
            candidates,
            strategies: Vec::new(),
            refused: Vec::new(),
        }))
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

    #[test]
    fn what_takes_as_long_as_was_said_stays() {
        let mut trials =
            plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 20.0), (Strategy::TWO_PHASE, 25.0)]);
        let took = [(Strategy::SERVER_DIRECTED, 11.5), (Strategy::INDEPENDENT, 1.0)];
        assert_eq!(used(&mut trials, &took, 99), [Strategy::SERVER_DIRECTED; 99]);
    }

    #[test]
    fn what_takes_far_longer_gives_way_to_what_is_priced_about_the_same() {
        let mut trials =
            plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5), (Strategy::TWO_PHASE, 40.0)]);
        let took = [(Strategy::SERVER_DIRECTED, 18.0), (Strategy::INDEPENDENT, 11.0)];
        let used = used(&mut trials, &took, 9);
        assert_eq!(used[..2], [Strategy::SERVER_DIRECTED; 2]);
        assert_eq!(used[2..], [Strategy::INDEPENDENT; 7]);
        assert!(trials.choice(|_| true).why.starts_with("the first choice, server-directed, took 18 ms"));
    }

    #[test]
    fn of_those_that_were_tried_the_fastest_stays() {
        let mut trials = plan(&[
            (Strategy::SERVER_DIRECTED, 10.0),
            (Strategy::INDEPENDENT, 10.5),
            (Strategy::TWO_PHASE, 11.0),
            (Strategy::ROOT_GATHER, 11.0),
        ]);
        let took = [
            (Strategy::SERVER_DIRECTED, 20.0),
            (Strategy::INDEPENDENT, 30.0),
            (Strategy::TWO_PHASE, 25.0),
            (Strategy::ROOT_GATHER, 1.0),
        ];
        let used = used(&mut trials, &took, 20);
        assert_eq!(used[..2], [Strategy::SERVER_DIRECTED; 2]);
        assert_eq!(used[8..], [Strategy::SERVER_DIRECTED; 12], "{used:?}");
        assert!(!used.contains(&Strategy::ROOT_GATHER), "three are enough");
    }

    /// Candidates that the model takes for no better are tried all the same, once the time spent pays for it.
    #[test]
    fn what_nothing_speaks_for_is_tried_when_it_costs_little() {
        let prices = [
            (Strategy::SERVER_DIRECTED, 10.0),
            (Strategy::INDEPENDENT, 10.5),
            (Strategy::TWO_PHASE, 13.0),
            (Strategy::ROOT_GATHER, 17.5),
        ];
        let took = [
            (Strategy::SERVER_DIRECTED, 10.0),
            (Strategy::INDEPENDENT, 15.0),
            (Strategy::TWO_PHASE, 8.0),
            (Strategy::ROOT_GATHER, 1.0),
        ];
        let used = self::used(&mut plan(&prices), &took, 100);
        let count = |strategy| used.iter().filter(|&&one| one == strategy).count();
        assert_eq!(used[..4], [Strategy::SERVER_DIRECTED; 4]);
        assert_eq!((count(Strategy::INDEPENDENT), count(Strategy::ROOT_GATHER)), (2, 0), "{used:?}");
        assert_eq!(used[60..], [Strategy::TWO_PHASE; 40], "{used:?}");
        let long = |some: &[(Strategy, f64)]| some.iter().map(|one| (one.0, 2000.0 * one.1)).collect::<Vec<_>>();
        let used = self::used(&mut plan(&long(&prices)), &long(&took), 100);
        assert_eq!(used, [Strategy::SERVER_DIRECTED; 100], "a trial of 20 s is felt");
    }

    /// All others take nearly twice as long, so that each is measured twice.
    #[test]
    fn trials_cost_no_more_than_they_may() {
        let prices = Strategy::ALL.iter().filter(|&&one| one != Strategy::SERVER_DIRECTED).zip(0..);
        let prices: Vec<_> = prices.map(|(&strategy, i)| (strategy, 10.5 + 0.5 * f64::from(i))).collect();
        let prices = [&[(Strategy::SERVER_DIRECTED, 10.0)], &prices[..]].concat();
        let took =
            Strategy::ALL.map(|strategy| (strategy, if strategy == Strategy::SERVER_DIRECTED { 10.0 } else { 19.0 }));
        let used = used(&mut plan(&prices), &took, 150);
        let (mut lost, mut most) = (0.0, 0.0_f64);
        for (transfers, strategy) in (1..).zip(&used) {
            lost += if *strategy == Strategy::SERVER_DIRECTED { 0.0 } else { 9.0 };
            most = most.max(lost - SPENT_ON_TRIALS * 10.0 * f64::from(transfers));
        }
        // What a trial costs is known only after it.
        assert!(lost > 3.0 * 18.0 && most <= 18.0, "{lost} ms, {most} too much: {used:?}");
    }

    /// What leaves much to be made durable later is not faster, whatever the call itself takes.
    #[test]
    fn what_making_durable_takes_later_counts() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5)]);
        let mut used = Vec::new();
        for _ in 0..60 {
            let strategy = trials.choice(|_| true).parameters.strategy;
            let (seconds, later) = if strategy == Strategy::INDEPENDENT { (6e-3, 9e-3) } else { (10e-3, 2e-3) };
            let taken = trials.in_use().0;
            trials.hear(seconds, |_| 1.0);
            trials.hear_later(taken, later);
            used.push(strategy);
        }
        assert!(used.contains(&Strategy::INDEPENDENT), "{used:?}");
        assert_eq!(used[20..], [Strategy::SERVER_DIRECTED; 40], "{used:?}");
    }

    #[test]
    fn the_first_choice_has_another_chance_once_caches_are_warm() {
        for (warm, stays) in [(8.0, Strategy::INDEPENDENT), (16.0, Strategy::ROOT_GATHER)] {
            let mut trials = plan(&[(Strategy::INDEPENDENT, 2.0), (Strategy::ROOT_GATHER, 2.4)]);
            let mut used = Vec::new();
            for turn in 0..20 {
                let strategy = trials.choice(|_| true).parameters.strategy;
                let cold = if turn < 2 { 18.0 } else { warm };
                trials.hear(if strategy == Strategy::INDEPENDENT { cold } else { 13.0 } / 1e3, |_| 1.0);
                used.push(strategy);
            }
            assert_eq!(
                used[..6],
                [
                    Strategy::INDEPENDENT,
                    Strategy::INDEPENDENT,
                    Strategy::ROOT_GATHER,
                    Strategy::ROOT_GATHER,
                    Strategy::ROOT_GATHER,
                    Strategy::INDEPENDENT
                ]
            );
            assert_eq!(used[6..], [stays; 14], "{warm}");
        }
    }

    #[test]
    fn what_cannot_be_is_not_taken() {
        let mut trials =
            plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5), (Strategy::TWO_PHASE, 40.0)]);
        let asked = std::cell::Cell::new(0);
        let can = |one: &Parameters| {
            asked.set(asked.get() + 1);
            one.strategy != Strategy::INDEPENDENT
        };
        for _ in 0..9 {
            assert_eq!(trials.choice(can).parameters.strategy, Strategy::SERVER_DIRECTED);
            trials.hear(0.02, |_| 1.0);
        }
        assert_eq!(asked.get(), 1);
    }

    /// Nor one that failed only after it had been measured, or even was the best by then.
    #[test]
    fn what_fails_later_is_not_taken_again() {
        for works in 1..9 {
            let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5)]);
            let mut used = Vec::new();
            for _ in 0..99 {
                used.push(trials.choice(|_| true).parameters.strategy);
                let times = used.iter().filter(|&&one| one == Strategy::INDEPENDENT).count();
                match used.last() == Some(&Strategy::INDEPENDENT) {
                    true if times > works => trials.fails(),
                    true => trials.hear(0.006, |_| 1.0),
                    false => trials.hear(0.01, |_| 1.0),
                }
            }
            let times = used.iter().filter(|&&one| one == Strategy::INDEPENDENT).count();
            assert_eq!(times, works + 1, "{used:?}");
        }
    }

    /// A transfer that fails in a trial fails once: the next one is carried out as before.
    #[test]
    fn what_failed_is_not_tried_again() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5)]);
        let mut used = Vec::new();
        for _ in 0..99 {
            used.push(trials.choice(|_| true).parameters.strategy);
            match used.last() == Some(&Strategy::SERVER_DIRECTED) {
                true => trials.hear(0.01, |_| 1.0),
                false => trials.fails(),
            }
        }
        assert_eq!(used.iter().filter(|&&one| one == Strategy::INDEPENDENT).count(), 1, "{used:?}");
        trials.fails();
        assert_eq!(trials.choice(|_| true).parameters.strategy, Strategy::SERVER_DIRECTED, "the best is no trial");
    }

    #[test]
    fn what_was_nearly_as_fast_has_its_turn_when_the_best_gets_slower() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5)]);
        used(&mut trials, &[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 9.5)], 40);
        assert_eq!(trials.taken, trials.best);
        let used = used(&mut trials, &[(Strategy::SERVER_DIRECTED, 20.0), (Strategy::INDEPENDENT, 9.5)], 20);
        assert_eq!(used[10..], [Strategy::INDEPENDENT; 10], "{used:?}");
    }

    #[test]
    fn what_takes_far_too_long_is_tried_once() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5)]);
        let used = used(&mut trials, &[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 900.0)], 400);
        assert_eq!(used.iter().filter(|&&one| one == Strategy::INDEPENDENT).count(), 1, "{used:?}");
    }

    /// Neither a first transfer beside cold caches pays for trials, nor is a call so short that its trials are not paid for
    /// when what it leaves takes long to be made durable.
    #[test]
    fn trials_are_paid_for_by_what_transfers_usually_take() {
        let first_trial = |cold: f64, later: f64| {
            let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 10.5)]);
            let turn = |turn: &usize| {
                let taken = trials.in_use().0;
                trials.hear(if *turn == 0 { cold } else { 0.01 }, |_| 1.0);
                trials.hear_later(taken, later);
                trials.choice(|_| true).parameters.strategy == Strategy::INDEPENDENT
            };
            (0..99).find(turn)
        };
        for (cold, later) in [(0.01, 0.0), (0.1, 0.0), (0.01, 1.0)] {
            let after = first_trial(cold, later);
            assert!(matches!(after, Some(3 | 4)), "{after:?} transfers beside {cold} and {later} s");
        }
    }

    #[test]
    fn one_odd_measurement_turns_nothing() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 18.0)]);
        used(&mut trials, &[(Strategy::SERVER_DIRECTED, 10.0)], 5);
        trials.hear(1.0, |_| 1.0);
        assert_eq!(used(&mut trials, &[(Strategy::SERVER_DIRECTED, 10.0)], 9), [Strategy::SERVER_DIRECTED; 9]);
    }

    #[test]
    fn candidates_that_do_the_same_work_are_not_tried_for_each_other() {
        let mut trials =
            plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::TWO_PHASE, 10.1), (Strategy::SERVER_DIRECTED, 9.9)]);
        assert_eq!(used(&mut trials, &[(Strategy::SERVER_DIRECTED, 30.0)], 99), [Strategy::SERVER_DIRECTED; 99]);
        assert_eq!(trials.tried.len(), 1);
    }

    #[test]
    fn where_all_transfers_take_longer_than_was_said_nothing_is_tried() {
        let mut trials =
            plan(&[(Strategy::SERVER_DIRECTED, 10.0), (Strategy::INDEPENDENT, 18.0), (Strategy::TWO_PHASE, 19.0)]);
        for _ in 0..9 {
            assert_eq!(trials.choice(|_| true).parameters.strategy, Strategy::SERVER_DIRECTED);
            trials.hear(0.03, |_| 3.0);
        }
    }

    #[test]
    fn what_follows_a_hiccup_counts_however_short() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 0.6), (Strategy::INDEPENDENT, 1.1)]);
        for seconds in [5e-3, 6e-4, 6e-4, 5e-3, 6e-4] {
            trials.hear(seconds, |_| 1.0);
            assert_eq!(trials.choice(|_| true).parameters.strategy, Strategy::SERVER_DIRECTED);
        }
        // Nor is anything tried then for which nothing speaks.
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 0.6), (Strategy::INDEPENDENT, 0.7)]);
        trials.hear(1.1e-3, |_| 1.0);
        assert_eq!(used(&mut trials, &[(Strategy::SERVER_DIRECTED, 0.6)], 99), [Strategy::SERVER_DIRECTED; 99]);
    }

    #[test]
    fn short_transfers_and_nonsense_teach_nothing() {
        let mut trials = plan(&[(Strategy::SERVER_DIRECTED, 0.1), (Strategy::INDEPENDENT, 0.1)]);
        for seconds in [5e-4, f64::NAN, f64::INFINITY, -1.0, 0.0] {
            (0..9).for_each(|_| trials.hear(seconds, |_| 1.0));
        }
        assert!(trials.tried.is_empty());
    }
}
