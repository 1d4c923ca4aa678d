//! Why a candidate was taken, for people.

use super::choice::{Candidate, Preference};
use crate::price::Price;
use crate::strategy::{Infeasible, Sequence, Strategy};
use hyperslab_layout::quantity::InUnit;

/// The unit of all times that are told of a choice: that of all that it costs, now and later.
pub(crate) fn unit_of(chosen: &Price) -> InUnit {
    InUnit::of_seconds([chosen.whole_ns() / 1e9])
}

/// What a transfer takes, and what making it durable takes later.
fn with_later(price: &Price, unit: InUnit) -> String {
    let seconds = |ns: f64| unit.tell(ns / 1e9);
    match price.later_ns {
        later if later > 0.0 => format!("{} (and {} to be durable later)", seconds(price.ns()), seconds(later)),
        _ => seconds(price.ns()),
    }
}

/// Says what was compared, and what limits the one that was taken.
pub(super) fn why(
    chosen: &Candidate,
    priced: &[Candidate],
    refused: &[(Strategy, Infeasible)],
    hints: &Preference,
) -> String {
    let strategy = chosen.parameters.strategy;
    let unit = unit_of(&chosen.price);
    let with_later = |price: &Price| with_later(price, unit);
    let price = format!("{} predicted, bound by the {}", with_later(&chosen.price), chosen.price.bottleneck);
    if hints.strategy.is_some() {
        return format!("this strategy was asked for; {price}");
    }
    let other = priced.iter().find(|one| one.parameters.strategy != strategy);
    let past_cache = |one: &&Candidate| one.parameters.strategy.order() == Sequence::Disk;
    let told_apart =
        |one: &&Candidate| one.price.compared_ns() < chosen.price.compared_ns() * (1.0 - super::margins::MARGIN);
    let mut text = match other {
        Some(other) if past_cache(&other) && told_apart(&other) => {
            format!(
                "{price}; {} has {}, but what goes past the system's cache must be cheaper by a quarter",
                other.parameters.strategy,
                with_later(&other.price)
            )
        }
        Some(other) if other.price.compared_ns() <= chosen.price.compared_ns() * (1.0 + super::margins::MARGIN) => {
            format!(
                "{price}; no other is cheaper by more than the model's error ({} has {})",
                other.parameters.strategy,
                with_later(&other.price)
            )
        }
        Some(other) => {
            let times = other.price.compared_ns() / chosen.price.compared_ns().max(1.0);
            format!(
                "{price}; next is {} with {} ({times:.1} times)",
                other.parameters.strategy,
                with_later(&other.price)
            )
        }
        None => price,
    };
    // A strategy that is priced with other parameters is not out.
    let is_out = |strategy: Strategy| priced.iter().all(|one| one.parameters.strategy != strategy);
    let out = refused.iter().find(|(strategy, _)| is_out(*strategy));
    if let Some((strategy, no)) = out {
        text += &format!("; {strategy} is out, since {}", no.reason);
    }
    text
}
