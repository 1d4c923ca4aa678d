//! What is chosen when a transfer comes again.

use super::candidates::complexity;
use super::choice::{Candidate, Choice, Preference};
use super::margins::{MARGIN, PAST_CACHE_MARGIN, STEPS_A_SECOND, STEPS_MIN};
use super::search::{Planner, Search, cheaper};
use crate::price::Memory;
use crate::strategy::Sequence;
use crate::transfer::Transfer;
use std::sync::Arc;

/// Why something else than the first time is chosen.
const AGAIN: &str = "it comes again, and is worth more buffers, or a longer look; the first time: ";

impl Planner<'_> {
    /// Looks on where a search for a transfer ended early, which has come again since, for so long in all \[s\].
    pub fn look_on(
        &self,
        transfer: &Arc<Transfer>,
        hints: &Preference,
        memory: Memory<'_>,
        choice: &Choice,
        seconds: f64,
    ) -> Choice {
        let search = Search::new(self, transfer, hints, memory);
        let mut search = search.going_on(choice, STEPS_A_SECOND * seconds);
        search.vary();
        search.priced.sort_by(cheaper);
        Choice { candidates: search.priced, unfinished: search.cut, ..choice.clone() }
    }
}

impl Choice {
    /// Whether looking for a better one is worth it, after it was carried out for so long in all \[s\].
    pub fn is_worth_more(&self, seconds: f64) -> bool {
        self.unfinished && STEPS_A_SECOND * seconds >= STEPS_MIN / 2.0
    }

    /// What is chosen instead when the transfer comes again, and buffers that are touched now will have been touched the next
    /// time: of the candidates that are clearly cheaper then, the simplest of the cheapest.
    pub fn again(&self, transfer: &Arc<Transfer>) -> Option<Choice> {
        let cost = |one: &Candidate| {
            let margin = if one.parameters.strategy.order() == Sequence::Disk { PAST_CACHE_MARGIN } else { 0.0 };
            one.moving_ns() * (1.0 + margin)
        };
        let now = self.candidates.iter().find(|one| one.parameters == self.parameters)?;
        // Among many that were looked at some look better than they are.
        let is_better = |one: &&Candidate| cost(one) < cost(now) * (1.0 - 2.0 * MARGIN);
        let can = |one: &&Candidate| one.parameters.strategy.feasible(transfer, &one.parameters).is_ok();
        let better: Vec<&Candidate> = self.candidates.iter().filter(is_better).filter(can).collect();
        let least = better.iter().map(|one| cost(one)).min_by(f64::total_cmp)?;
        let equal = better.into_iter().filter(|one| cost(one) <= least * (1.0 + MARGIN));
        let Candidate { parameters, price } =
            equal.min_by_key(|one| complexity(&one.parameters, transfer.ranks))?.clone();
        let first = self.why.strip_prefix(AGAIN).unwrap_or(&self.why);
        let why = format!("{AGAIN}{first}");
        Some(Choice { parameters, price, why, ..self.clone() })
    }
}
