//! What is chosen when a transfer comes again.

use super::candidates::complexity;
use super::choice::{Candidate, Choice};
use super::margins::{MARGIN, PAST_CACHE_MARGIN};
use crate::strategy::Sequence;
use crate::transfer::Transfer;
use std::sync::Arc;

impl Choice {
    /// What is chosen instead when the transfer comes again, and buffers that are touched now will have been touched the next
    /// time: the simplest of the cheapest candidates, if they are clearly cheaper then.
    pub fn again(&self, transfer: &Arc<Transfer>) -> Option<Choice> {
        let cost = |one: &Candidate| {
            let margin = if one.parameters.strategy.order() == Sequence::Disk { PAST_CACHE_MARGIN } else { 0.0 };
            one.moving_ns() * (1.0 + margin)
        };
        let can = |one: &&Candidate| one.parameters.strategy.feasible(transfer, &one.parameters).is_ok();
        let now = cost(&Candidate { parameters: self.parameters.clone(), price: self.price.clone() });
        let least = self.candidates.iter().filter(can).map(cost).min_by(f64::total_cmp)?;
        if least >= now * (1.0 - MARGIN) {
            return None;
        }
        let equal = self.candidates.iter().filter(can).filter(|one| cost(one) <= least * (1.0 + MARGIN));
        let simplest = equal.min_by_key(|one| complexity(&one.parameters, transfer.ranks))?;
        let Candidate { parameters, price } = simplest.clone();
        let why = format!("it comes again, and is worth more buffers; the first time: {}", self.why);
        Some(Choice { parameters, price, why, ..self.clone() })
    }
}
