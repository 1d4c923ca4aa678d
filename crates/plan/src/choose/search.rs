//! A search among candidates.

use super::candidates::{self, first, variants};
use super::choice::{Candidate, Choice, Preference};
use super::margins::{LONG_SECONDS, MARGIN, NEAR, PAST_CACHE_MARGIN, STEPS_A_SECOND, STEPS_MIN, TURNS};
use super::{servers, why};
use crate::price::{Effort, Machine, Memory, Price, Priced, Pricing};
use crate::profile::Profile;
use crate::rounds::check_servers;
use crate::strategy::{Infeasible, Parameters, Role, Sequence, Strategy};
use crate::transfer::{Exchange, Transfer};
use std::cmp::Ordering;
use std::sync::Arc;

/// Chooses how transfers are done.
#[derive(Clone, Copy)]
pub struct Planner<'a> {
    /// What the machine costs.
    pub profile: &'a Profile,
    /// How ranks lie on it.
    pub machine: Machine,
    /// Among which strategies it chooses; those that are looked at first come first.
    pub strategies: &'a [Strategy],
}

impl Planner<'_> {
    /// Chooses parameters for a transfer.
    ///
    /// # Errors
    /// When the strategy that the user forces, or every one, is infeasible.
    pub fn choose(
        &self,
        transfer: &Arc<Transfer>,
        hints: &Preference,
        memory: Memory<'_>,
    ) -> Result<Choice, Infeasible> {
        if let Some(named) = &hints.server_ranks {
            check_servers(named, transfer.ranks)?;
        }
        if let Some((ask, fault)) = transfer.asks.iter().find_map(|ask| Some((ask, ask.stored.fault()?))) {
            let reason = format!("of '{}', {fault}", ask.name);
            return Err(Infeasible { reason, hint: "its format describes it wrongly".into() });
        }
        let mut search = Search::new(self, transfer, hints, memory);
        for strategy in candidates::strategies(self.strategies, transfer, self.profile, hints) {
            for exchange in candidates::exchanges(strategy, hints) {
                search.enter(strategy, exchange);
            }
        }
        search.vary();
        search.take()
    }

    /// Chooses what was chosen for another transfer of its kind, where that can be: at what it costs here. Not where a better
    /// choice would be worth a longer search.
    pub fn choose_as(&self, transfer: &Arc<Transfer>, other: &Choice, memory: Memory<'_>) -> Option<Choice> {
        let Choice { parameters, .. } = other;
        if transfer.asks.iter().any(|ask| ask.stored.fault().is_some()) {
            return None;
        }
        parameters.strategy.feasible(transfer, parameters).ok()?;
        let price = self.price(transfer, parameters, memory, Effort::QUICK);
        let is_brief = |price: &Price| price.seconds() * STEPS_A_SECOND <= STEPS_MIN;
        let candidates = vec![Candidate { parameters: parameters.clone(), price: price.clone() }];
        let why = format!("as before, for one of its kind: {}", other.why);
        let chosen = Choice {
            parameters: parameters.clone(),
            why,
            price,
            candidates,
            refused: Vec::new(),
            unfinished: false,
            ..other.clone()
        };
        (is_brief(&other.price) && is_brief(&chosen.price)).then_some(chosen)
    }

    /// What a transfer costs with given parameters.
    pub fn price(
        &self,
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        memory: Memory<'_>,
        effort: Effort,
    ) -> Price {
        Pricing::new(self.priced(), transfer, memory).price(parameters, effort)
    }

    fn priced(&self) -> Priced<'_> {
        Priced { profile: self.profile, machine: self.machine }
    }
}

/// The order of candidates, the cheapest first.
pub(super) fn cheaper(a: &Candidate, b: &Candidate) -> Ordering {
    a.price.compared_ns().total_cmp(&b.price.compared_ns())
}

/// How far a search goes.
#[derive(Clone, Copy)]
enum Reach {
    /// By what the transfer takes: it may be the only one, for which buffers are touched.
    Once,
    /// So many steps: it comes again, and buffers have been touched.
    Again(f64),
}

/// A search among candidates.
pub(super) struct Search<'a> {
    planner: &'a Planner<'a>,
    transfer: &'a Arc<Transfer>,
    hints: &'a Preference,
    /// One array of each kind, for the question whether a strategy is feasible.
    one_of_each: Arc<Transfer>,
    pricing: Pricing<'a>,
    effort: Effort,
    reach: Reach,
    /// Whether it ended before there was nothing more to look at.
    pub(super) cut: bool,
    /// Steps that were looked at, about.
    pub(super) steps: f64,
    pub(super) priced: Vec<Candidate>,
    refused: Vec<(Strategy, Infeasible)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        planner: &'a Planner<'a>,
        transfer: &'a Arc<Transfer>,
        hints: &'a Preference,
        memory: Memory<'a>,
    ) -> Search<'a> {
        let pricing = Pricing::new(planner.priced(), transfer, memory);
        Search {
            planner,
            transfer,
            hints,
            one_of_each: pricing.one_of_each(),
            pricing,
            effort: Effort::QUICK,
            reach: Reach::Once,
            cut: false,
            steps: 0.0,
            priced: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Goes on with what was looked at for a choice, for so many steps.
    pub(super) fn going_on(self, choice: &Choice, steps: f64) -> Search<'a> {
        let effort = if choice.price.seconds() > LONG_SECONDS { Effort::USUAL } else { Effort::QUICK };
        Search { priced: choice.candidates.clone(), reach: Reach::Again(steps), effort, ..self }
    }

    /// What a candidate costs.
    fn cost_ns(&self, one: &Candidate) -> f64 {
        match self.reach {
            Reach::Once => one.price.compared_ns(),
            Reach::Again(_) => one.price.whole_ns(),
        }
    }

    /// Prices the parameters that a strategy begins with, or notes why there are none.
    pub(super) fn enter(&mut self, strategy: Strategy, exchange: Exchange) {
        let hints = self.hints;
        let begun = first(&self.one_of_each, (self.planner.profile, self.planner.machine), hints, strategy, exchange);
        match begun {
            Ok(parameters) => {
                let besides = candidates::besides(&self.one_of_each, self.planner.machine, hints, &parameters);
                self.add(parameters);
                if let Some(besides) = besides {
                    self.consider(besides);
                }
            }
            Err(no) => self.refused.push((strategy, no)),
        }
    }

    /// Prices feasible parameters that were not priced yet.
    fn add(&mut self, parameters: Parameters) {
        let price = self.pricing.price(&parameters, self.effort);
        self.steps += price.looked_at as f64;
        if price.ns().is_finite() {
            self.priced.push(Candidate { parameters, price });
        }
    }

    /// The same without agreements.
    fn moving_ns(&self, one: &Candidate) -> f64 {
        match self.reach {
            Reach::Once => one.first_ns(),
            Reach::Again(_) => one.moving_ns(),
        }
    }

    fn best(&self) -> Option<&Candidate> {
        self.priced.iter().min_by(|a, b| self.cost_ns(a).total_cmp(&self.cost_ns(b)))
    }

    /// Whether more may be looked at.
    fn affords_more(&mut self) -> bool {
        let seconds = self.best().map_or(0.0, |best| best.price.seconds());
        let allowed = match self.reach {
            Reach::Once => STEPS_MIN.max(STEPS_A_SECOND * seconds),
            Reach::Again(steps) => steps,
        };
        self.cut |= self.steps >= allowed;
        !self.cut
    }

    /// Varies what came near the best; of each method the best, where all were varied before.
    pub(super) fn vary(&mut self) {
        let is_long = self.best().is_some_and(|best| best.price.seconds() > LONG_SECONDS);
        if is_long && matches!(self.reach, Reach::Once) {
            self.effort = Effort::USUAL;
            for Candidate { parameters, .. } in std::mem::take(&mut self.priced) {
                self.add(parameters);
            }
        }
        let Some(best) = self.best().map(|one| self.moving_ns(one)) else { return };
        let mut near: Vec<Candidate> =
            self.priced.iter().filter(|one| self.moving_ns(one) <= best * NEAR).cloned().collect();
        near.sort_by(|a, b| self.cost_ns(a).total_cmp(&self.cost_ns(b)));
        if let Reach::Again(_) = self.reach {
            let mut seen = Vec::new();
            near.retain(|one| {
                let method = (one.parameters.strategy, one.parameters.exchange);
                let is_first = !seen.contains(&method);
                seen.push(method);
                is_first
            });
        }
        for candidate in near {
            self.descend(candidate);
        }
    }

    /// Goes on to what is cheaper, one parameter at a time; then to servers that hold what they serve.
    fn descend(&mut self, candidate: Candidate) {
        let at = self.descended(candidate);
        if self.hints.server_ranks.is_some() || at.parameters.role() != Role::Servers || !self.affords_more() {
            return;
        }
        self.steps += at.parameters.servers.len() as f64;
        if let Some(servers) = servers::holding(&self.one_of_each, &at.parameters) {
            self.consider(Parameters { servers, ..at.parameters });
        }
    }

    /// Where going on to what is cheaper ends.
    fn descended(&mut self, mut at: Candidate) -> Candidate {
        let bytes = self.transfer.stored_bytes();
        for _ in 0..TURNS {
            let mut better = false;
            for parameters in variants((&self.one_of_each, bytes), self.planner.machine, self.hints, &at.parameters) {
                if !self.affords_more() {
                    return at;
                }
                let enough = self.cost_ns(&at) * (1.0 - MARGIN / 5.0);
                let Some(last) = self.consider(parameters).cloned() else { continue };
                if self.cost_ns(&last) < enough {
                    (at, better) = (last, true);
                }
            }
            if !better {
                break;
            }
        }
        at
    }

    /// Prices parameters, if they are feasible and were not priced yet.
    fn consider(&mut self, mut parameters: Parameters) -> Option<&Candidate> {
        let lie = (self.transfer.ranks, self.planner.machine);
        parameters.buffer_bytes_max = candidates::budget(lie, self.hints, &parameters);
        let known = self.priced.iter().any(|one| one.parameters == parameters);
        if known || parameters.strategy.feasible(&self.one_of_each, &parameters).is_err() {
            return None;
        }
        let before = self.priced.len();
        self.add(parameters);
        self.priced.get(before)
    }

    /// The cheapest of those in order, or of those that go through the system's cache, if it is not clearly cheaper.
    fn reference(&self) -> Option<&Candidate> {
        let at_hand = self.planner.profile.measured.is_some();
        let past_cache = |one: &&Candidate| at_hand && one.parameters.strategy.order() == Sequence::Disk;
        let best = self.priced.first()?;
        let through = self.priced.iter().find(|one| !past_cache(one));
        through.filter(|one| one.first_ns() <= best.first_ns() * (1.0 + PAST_CACHE_MARGIN)).or(Some(best))
    }

    /// Takes the cheapest, or what is as cheap and simpler.
    fn take(mut self) -> Result<Choice, Infeasible> {
        loop {
            self.priced.sort_by(cheaper);
            let Some(best) = self.reference().map(Candidate::first_ns) else { break };
            let equal = self.priced.iter().enumerate();
            let equal = equal.filter(|(_, one)| one.first_ns() <= best * (1.0 + MARGIN));
            let simplest = equal
                .min_by_key(|(_, one)| candidates::complexity(&one.parameters, self.transfer.ranks))
                .map_or(0, |(at, _)| at);
            let chosen = self.priced[simplest].clone();
            if let Err(no) = chosen.parameters.strategy.feasible(self.transfer, &chosen.parameters) {
                self.priced.remove(simplest);
                self.refused.push((chosen.parameters.strategy, no));
                continue;
            }
            let why = why::why(&chosen, &self.priced, &self.refused, self.hints);
            let Candidate { parameters, price } = chosen;
            let (strategies, unfinished) = (self.planner.strategies.to_vec(), self.cut);
            let Search { priced: candidates, refused, .. } = self;
            return Ok(Choice { parameters, why, price, candidates, strategies, refused, unfinished });
        }
        // The first refusal is that of the strategy that is tried first, or of the forced one.
        let no = self.refused.into_iter().next().map(|(_, no)| no);
        Err(no.unwrap_or_else(|| Infeasible {
            reason: "no strategy can be priced on this machine".into(),
            hint: "look at the numbers of the machine's profile".into(),
        }))
    }
}
