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
        let mut search = Search::new(self, transfer, memory);
        for strategy in candidates::strategies(self.strategies, transfer, self.profile, hints) {
            for exchange in candidates::exchanges(strategy, hints) {
                search.enter(strategy, exchange, hints);
            }
        }
        search.vary(hints);
        search.take(hints)
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
        let chosen =
            Choice { parameters: parameters.clone(), why, price, candidates, refused: Vec::new(), ..other.clone() };
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
fn cheaper(a: &Candidate, b: &Candidate) -> Ordering {
    a.price.compared_ns().total_cmp(&b.price.compared_ns())
}

/// A search among candidates.
pub(super) struct Search<'a> {
    planner: &'a Planner<'a>,
    transfer: &'a Arc<Transfer>,
    /// One array of each kind, for the question whether a strategy is feasible.
    one_of_each: Arc<Transfer>,
    pricing: Pricing<'a>,
    effort: Effort,
    /// Steps that were looked at, about.
    pub(super) steps: f64,
    pub(super) priced: Vec<Candidate>,
    refused: Vec<(Strategy, Infeasible)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(planner: &'a Planner<'a>, transfer: &'a Arc<Transfer>, memory: Memory<'a>) -> Search<'a> {
        let pricing = Pricing::new(planner.priced(), transfer, memory);
        Search {
            planner,
            transfer,
            one_of_each: pricing.one_of_each(),
            pricing,
            effort: Effort::QUICK,
            steps: 0.0,
            priced: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Prices the parameters that a strategy begins with, or notes why there are none.
    pub(super) fn enter(&mut self, strategy: Strategy, exchange: Exchange, hints: &Preference) {
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

    fn best(&self) -> Option<&Candidate> {
        self.priced.iter().min_by(|a, b| cheaper(a, b))
    }

    /// Whether more may be looked at.
    fn affords_more(&self) -> bool {
        let seconds = self.best().map_or(0.0, |best| best.price.seconds());
        self.steps < STEPS_MIN.max(STEPS_A_SECOND * seconds)
    }

    /// Varies what came near the best.
    fn vary(&mut self, hints: &Preference) {
        if self.best().is_some_and(|best| best.price.seconds() > LONG_SECONDS) {
            self.effort = Effort::USUAL;
            for Candidate { parameters, .. } in std::mem::take(&mut self.priced) {
                self.add(parameters);
            }
        }
        let Some(best) = self.best().map(Candidate::first_ns) else { return };
        let mut near: Vec<Candidate> =
            self.priced.iter().filter(|one| one.first_ns() <= best * NEAR).cloned().collect();
        near.sort_by(cheaper);
        for candidate in near {
            self.descend(candidate, hints);
        }
    }

    /// Goes on to what is cheaper, one parameter at a time; then to servers that hold what they serve.
    fn descend(&mut self, candidate: Candidate, hints: &Preference) {
        let at = self.descended(candidate, hints);
        if hints.server_ranks.is_some() || at.parameters.role() != Role::Servers || !self.affords_more() {
            return;
        }
        self.steps += at.parameters.servers.len() as f64;
        if let Some(servers) = servers::holding(&self.one_of_each, &at.parameters) {
            self.consider(Parameters { servers, ..at.parameters });
        }
    }

    /// Where going on to what is cheaper ends.
    fn descended(&mut self, mut at: Candidate, hints: &Preference) -> Candidate {
        for _ in 0..TURNS {
            let mut better = false;
            for parameters in variants(&self.one_of_each, self.planner.machine, hints, &at.parameters) {
                if !self.affords_more() {
                    return at;
                }
                let enough = at.price.compared_ns() * (1.0 - MARGIN / 5.0);
                if let Some(last) = self.consider(parameters).filter(|last| last.price.compared_ns() < enough) {
                    at = last.clone();
                    better = true;
                }
            }
            if !better {
                break;
            }
        }
        at
    }

    /// Prices parameters, if they are feasible and were not priced yet.
    fn consider(&mut self, parameters: Parameters) -> Option<&Candidate> {
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
    fn take(mut self, hints: &Preference) -> Result<Choice, Infeasible> {
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
            let why = why::why(&chosen, &self.priced, &self.refused, hints);
            let Candidate { parameters, price } = chosen;
            let strategies = self.planner.strategies.to_vec();
            return Ok(Choice { parameters, why, price, candidates: self.priced, strategies, refused: self.refused });
        }
        // The first refusal is that of the strategy that is tried first, or of the forced one.
        let no = self.refused.into_iter().next().map(|(_, no)| no);
        Err(no.unwrap_or_else(|| Infeasible {
            reason: "no strategy can be priced on this machine".into(),
            hint: "look at the numbers of the machine's profile".into(),
        }))
    }
}
