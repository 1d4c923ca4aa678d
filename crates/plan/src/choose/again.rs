//! What is chosen when a transfer comes again.

use super::candidates::complexity;
use super::choice::{Candidate, Choice};
use super::margins::{MARGIN, PAST_CACHE_MARGIN};
use crate::strategy::Sequence;
use crate::transfer::Transfer;
use std::sync::Arc;

impl Choice {
    /// What is chosen instead when the transfer comes again, and buffers that are touched now will have been touched the next
    /// time: of the candidates that are clearly cheaper then, the simplest of the cheapest.
    pub fn again(&self, transfer: &Arc<Transfer>) -> Option<Choice> {
        let cost = |one: &Candidate| {
            let margin = if one.parameters.strategy.order() == Sequence::Disk { PAST_CACHE_MARGIN } else { 0.0 };
            one.moving_ns() * (1.0 + margin)
        };
        let now = self.candidates.iter().find(|one| one.parameters == self.parameters)?;
        let is_better =
            |one: &&Candidate| one.price.first_ns > now.price.first_ns && cost(one) < cost(now) * (1.0 - MARGIN);
        let can = |one: &&Candidate| one.parameters.strategy.feasible(transfer, &one.parameters).is_ok();
        let better: Vec<&Candidate> = self.candidates.iter().filter(is_better).filter(can).collect();
        let least = better.iter().map(|one| cost(one)).min_by(f64::total_cmp)?;
        let equal = better.into_iter().filter(|one| cost(one) <= least * (1.0 + MARGIN));
        let Candidate { parameters, price } =
            equal.min_by_key(|one| complexity(&one.parameters, transfer.ranks))?.clone();
        let why = format!("it comes again, and is worth more buffers; the first time: {}", self.why);
        Some(Choice { parameters, price, why, ..self.clone() })
    }
}
