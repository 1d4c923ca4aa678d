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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Beside;
    use crate::strategy::{Parameters, Strategy};
    use crate::transfer::{Direction, Spread, TransferArray};
    use hyperslab_layout::stored::{Coding, Keys, Stored};
    use hyperslab_layout::{Dim, Distribution, Durability, ElementType, Kind, Policies, Section};
    use std::collections::BTreeMap;

    /// Names that ranks make, with their bytes, and how many syncs follow all of a rank's own.
    fn made(strategy: Strategy, servers: &[u32], durability: Durability) -> (BTreeMap<String, Vec<u8>>, usize) {
        let (shape, element) = ([8], ElementType::native(Kind::Float64));
        let ask = TransferArray {
            name: "a".into(),
            section: Section::whole(&shape),
            spread: Spread::Regular(Distribution::new(&shape, &[4], &[Dim::Block]).unwrap()),
            memory: element,
            stored: Stored::in_chunks(&shape, element, &[2], Keys::nested("a/"), Coding::Plain),
        };
        let policies = Policies::of(durability);
        let transfer = Arc::new(Transfer { direction: Direction::Write, asks: vec![ask], ranks: 4, policies });
        let beside = (0..7u8).map(|i| Beside { object: (&*format!("a{i}/b")).into(), bytes: [i].into() });
        let facts = Arc::new(Facts { beside: beside.collect(), ..Facts::default() });
        let parameters = Parameters { strategy, servers: servers.into(), ..Parameters::default() };
        let (mut all, mut syncs) = (BTreeMap::new(), 0);
        for rank in 0..4 {
            let program = strategy.program(&transfer, &parameters, &facts, rank, &[]);
            let with = |lane: &Vec<Step>| lane.iter().any(|step| matches!(step.action, Action::Make { .. }));
            let lanes: Vec<Vec<Step>> = program.lanes.into_iter().map(Iterator::collect).filter(with).collect();
            assert!(lanes.len() <= 1, "one lane makes them");
            for step in lanes.into_iter().flatten() {
                match step.action {
                    Action::Make { object, bytes } => {
                        let twice = all.insert(object.name.to_string(), bytes.to_vec());
                        assert!(
                            twice.is_none() && step.after.is_empty(),
                            "{object} is made once, and waits for nothing"
                        );
                    }
                    Action::Sync { .. } => {
                        assert_eq!(step.after, After::range(0, step.id), "it follows all");
                        syncs += 1;
                    }
                    other => panic!("{other:?} makes nothing"),
                }
            }
        }
        (all, syncs)
    }

    #[test]
    fn the_ranks_that_handle_storage_share_what_is_made() {
        let all: BTreeMap<_, _> = (0..7u8).map(|i| (format!("a{i}/b"), vec![i])).collect();
        for (strategy, servers, makers) in [
            (Strategy::SERVER_DIRECTED, &[1, 3][..], 2),
            (Strategy::SERVER_DIRECTED, &[2], 1),
            (Strategy::INDEPENDENT, &[], 4),
            (Strategy::ROOT_GATHER, &[], 1),
        ] {
            assert_eq!(made(strategy, servers, Durability::Now), (all.clone(), makers), "{strategy}");
            assert_eq!(made(strategy, servers, Durability::Cached), (all.clone(), 0), "{strategy}");
        }
    }
}
