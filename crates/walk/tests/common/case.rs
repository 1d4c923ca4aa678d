//! A test case: stored arrays, transfers of them, and the comparison with the oracle.

use super::array::{Array, Contents};
use super::part::Part;
use super::pieces::{Piece, Pieces};
use super::{Ranks, oracle};
use hyperslab_layout::stored::Change;
use hyperslab_layout::{Durability, Holes, Policies};
use hyperslab_plan::{Direction, Facts, Parameters, Transfer, TransferArray};
use hyperslab_walk::Walked;
use hyperslab_world::{Exposed, Objects, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Stored arrays, in a store and as the oracle knows them.
pub(crate) struct Case {
    pub(crate) random: fastrand::Rng,
    pub(crate) seed: u64,
    pub(crate) ranks: u32,
    pub(crate) arrays: Vec<Array>,
    pub(crate) objects: Objects,
    /// By array, which pieces each rank holds in the next transfer, where no distribution says so.
    pub(crate) explicit: BTreeMap<usize, Pieces>,
    /// Whether ranks tell each other of them by messages; else what is told is handed over.
    pub(crate) by_message: bool,
    /// How often each element was written: sets what a write writes apart from what earlier ones did.
    salt: u64,
}

impl Case {
    pub(crate) fn new(random: fastrand::Rng, seed: u64, ranks: u32, arrays: Vec<Array>) -> Case {
        let (objects, explicit) = (Objects::default(), BTreeMap::new());
        let case = Case { random, seed, ranks, arrays, objects, explicit, by_message: false, salt: 4 };
        let mut objects = case.expected();
        case.arrays.iter().for_each(|array| array.code(&mut objects, true));
        *case.objects.lock().unwrap() = objects;
        case
    }

    fn expected(&self) -> Contents {
        let mut objects = Contents::new();
        self.arrays.iter().for_each(|array| array.store(&mut objects));
        objects
    }

    /// From now on chunks may exist, so that writes must merge with them.
    pub(crate) fn settle(&mut self) {
        for array in &mut self.arrays {
            if array.stored.makes_objects() {
                array.stored.change = Change::Replace;
            }
        }
    }

    /// A transfer of one section of each array.
    pub(crate) fn transfer(&self, direction: Direction, asks: Vec<TransferArray>) -> Arc<Transfer> {
        let durability = if self.seed.is_multiple_of(2) { Durability::Now } else { Durability::Cached };
        let in_parts = asks.iter().all(|ask| !ask.stored.is_written_whole());
        let holes = if in_parts && self.seed % 3 == 2 { Holes::Kept } else { Holes::MayBeRewritten };
        let policies = Policies { holes, ..Policies::of(durability) };
        Arc::new(Transfer { direction, asks, ranks: self.ranks, policies })
    }

    /// What a rank holds of each array.
    fn pieces(&self, transfer: &Transfer, rank: u32) -> Vec<Vec<Piece>> {
        let of = |(array, ask): (usize, &TransferArray)| match ask.spread.regular() {
            Some(distribution) => vec![Piece::regular(distribution, rank)],
            None => self.explicit[&array][rank as usize].clone(),
        };
        transfer.asks.iter().enumerate().map(of).collect()
    }

    /// What each rank brings to a transfer: memories full for a write, else with what a read must not touch.
    pub(crate) fn parts(&mut self, transfer: &Transfer) -> Vec<Part> {
        let write = transfer.direction == Direction::Write;
        self.salt += 1;
        let pieces: Vec<_> = (0..self.ranks).map(|rank| self.pieces(transfer, rank)).collect();
        let (salt, arrays, random) = (self.salt, &self.arrays, &mut self.random);
        let value = |array: usize, index: &[u64]| {
            let array: &Array = &arrays[array];
            if write { oracle::value(array.number, index, salt, array.limit) } else { array.get(index) }
        };
        let imaginary = |array: usize| arrays[array].imaginary;
        pieces.iter().map(|pieces| Part::random(random, transfer, pieces, value, imaginary, write)).collect()
    }

    /// What each rank learns of the others' pieces.
    pub(crate) fn facts<S: Store>(
        &mut self,
        ranks: &mut Ranks<S>,
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        parts: &[Part],
    ) -> Vec<Arc<Facts>> {
        let mut all: Vec<Facts> = parts.iter().map(|part| Facts::of_mine(part.mine.clone())).collect();
        let told = all.iter().enumerate().map(|(rank, facts)| facts.to_tell(transfer, parameters, rank as u32));
        let told: Vec<_> = told.collect();
        if self.by_message {
            for (facts, heard) in all.iter_mut().zip(ranks.tell(told)) {
                heard.into_iter().for_each(|(from, told)| facts.hear(from, told));
            }
        } else {
            let each = told.into_iter().enumerate();
            let mut told: Vec<_> =
                each.flat_map(|(from, told)| told.into_iter().map(move |(to, told)| (from, to, told))).collect();
            self.random.shuffle(&mut told);
            told.into_iter().for_each(|(from, to, told)| all[to as usize].hear(from as u32, told));
        }
        all.into_iter().map(Arc::new).collect()
    }

    /// Carries a transfer out over a hub of its own and compares.
    pub(crate) fn run(&mut self, transfer: &Arc<Transfer>, parameters: &Parameters, window: Option<usize>) {
        let mut ranks = Ranks::in_memory(self.ranks, self.seed, &self.objects);
        self.run_on(&mut ranks, transfer, parameters, window);
    }

    /// The same, over these ranks.
    pub(crate) fn run_on<S: Store>(
        &mut self,
        ranks: &mut Ranks<S>,
        transfer: &Arc<Transfer>,
        parameters: &Parameters,
        window: Option<usize>,
    ) -> Vec<Walked> {
        let parts = self.parts(transfer);
        let told = format!("{transfer:?}\n{parameters:?} window {window:?}");
        let facts = self.facts(ranks, transfer, parameters, &parts);
        let overlap = facts.iter().find_map(|facts| facts.overlap(transfer, parameters));
        assert_eq!(overlap, None, "{told}");
        let results = ranks.walk(transfer, parameters, window, &users(&parts), &facts);
        let results = results.into_iter().collect::<Result<Vec<Walked>, _>>();
        let walked = results.unwrap_or_else(|fault| panic!("{told}\n{fault}"));
        self.compare(transfer, &parts, &told);
        walked
    }

    /// Compares all memories and all stored bytes after a transfer.
    pub(crate) fn compare(&mut self, transfer: &Transfer, parts: &[Part], told: &str) {
        parts.iter().enumerate().for_each(|(rank, part)| part.check(&format!("{told}\nrank {rank}")));
        if transfer.direction == Direction::Write {
            self.note_written(transfer);
        }
        let mut found = self.objects.lock().unwrap().clone();
        self.arrays.iter().for_each(|array| array.code(&mut found, false));
        let expected = self.expected();
        assert!(found.keys().eq(expected.keys()), "{told}\nobjects {:?}, not {:?}", found.keys(), expected.keys());
        for (key, bytes) in &expected {
            assert_eq!(&found[key], bytes, "{told}\nobject {key}");
        }
    }

    /// What the oracle says that a write did.
    fn note_written(&mut self, transfer: &Transfer) {
        for (i, (ask, array)) in transfer.asks.iter().zip(&mut self.arrays).enumerate() {
            let selected: Vec<Vec<u64>> = ask.section.dims.iter().map(|&t| oracle::selected(t)).collect();
            let written: Vec<Vec<u64>> = match ask.spread.regular() {
                Some(_) => oracle::indices(&ask.section.shape()),
                None => self.explicit[&i].iter().flatten().flat_map(Piece::elements).collect(),
            };
            for position in written {
                let index: Vec<u64> = position.iter().zip(&selected).map(|(&p, all)| all[p as usize]).collect();
                array.set(&index, oracle::value(array.number, &index, self.salt, array.limit));
            }
        }
    }
}

/// The arrays of each rank.
pub(crate) fn users(parts: &[Part]) -> Vec<Vec<Exposed>> {
    parts.iter().map(|part| part.users.clone()).collect()
}
