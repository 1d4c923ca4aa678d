//! Small objects that are written beside arrays: the ranks that handle storage take turns, in a lane of their own.

use crate::emit::Emitter;
use crate::facts::Facts;
use crate::program::{Action, After, Lane, Step};
use crate::transfer::Transfer;
use std::sync::Arc;

/// What one rank writes of them, if anything: its turn is this one of so many.
pub(crate) fn lane(transfer: &Arc<Transfer>, facts: &Arc<Facts>, (next, turns): (usize, usize)) -> Option<Lane> {
    let lane = Besides { transfer: transfer.clone(), facts: facts.clone(), next, turns, synced: false };
    (next < facts.beside.len()).then(|| Box::new(lane.steps()) as Lane)
}

struct Besides {
    transfer: Arc<Transfer>,
    facts: Arc<Facts>,
    /// Number of the next one that is this rank's.
    next: usize,
    /// Ranks that take turns.
    turns: usize,
    synced: bool,
}

impl Besides {
    fn steps(mut self) -> impl Iterator<Item = Step> {
        let mut emitter = Emitter::default();
        std::iter::from_fn(move || {
            if let Some(beside) = self.facts.beside.get(self.next) {
                self.next += self.turns;
                let action = Action::Make { object: beside.object.clone(), bytes: beside.bytes.clone() };
                return Some(emitter.step(&After::none(), action));
            }
            if std::mem::replace(&mut self.synced, true) || !self.transfer.is_synced() {
                return None;
            }
            let below = self.transfer.objects_below();
            Some(emitter.step(&emitter.since(0), Action::Sync { below }))
        })
    }
}
