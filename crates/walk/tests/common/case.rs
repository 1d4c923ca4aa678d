//! A test case: stored arrays, transfers of them, and the comparison with the oracle.

use super::array::{Array, Contents};
use super::part::Part;
use super::{Ranks, oracle};
use hyperslab_plan::{Ask, Direction, Parameters, Placement, Transfer};
use hyperslab_walk::Walked;
use hyperslab_world::{Exposed, Objects, Store};
use std::sync::Arc;

/// Stored arrays, in a store and as the oracle knows them.
pub(crate) struct Case {
    pub(crate) random: fastrand::Rng,
    pub(crate) seed: u64,
    pub(crate) ranks: u32,
    pub(crate) arrays: Vec<Array>,
    pub(crate) objects: Objects,
    /// How often each element was written: sets what a write writes apart from what earlier ones did.
    salt: u64,
}

impl Case {
    pub(crate) fn new(random: fastrand::Rng, seed: u64, ranks: u32, arrays: Vec<Array>) -> Case {
        let case = Case { random, seed, ranks, arrays, objects: Objects::default(), salt: 4 };
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
            if let Placement::Chunks { fresh, .. } = &mut array.stored.placement {
                *fresh = false;
            }
        }
    }

    /// A transfer of one section of each array.
    pub(crate) fn transfer(&self, direction: Direction, asks: Vec<Ask>) -> Arc<Transfer> {
        Arc::new(Transfer { direction, asks, ranks: self.ranks, sync: self.seed.is_multiple_of(2) })
    }

    /// The memories of all ranks, for each array: full for a write, else with what a read must bring beside them.
    pub(crate) fn parts(&mut self, transfer: &Transfer) -> Vec<Vec<Part>> {
        let write = transfer.direction == Direction::Write;
        self.salt += 1;
        let (salt, random) = (self.salt, &mut self.random);
        let mut part = |rank: u32, ask: &Ask, array: &Array| {
            let written = |index: &[u64]| oracle::value(array.number, index, salt, array.limit);
            let value = |index: &[u64]| if write { written(index) } else { array.get(index) };
            Part::random(random, ask, rank, value, array.imaginary, write)
        };
        let pairs = || transfer.asks.iter().zip(&self.arrays);
        (0..self.ranks).map(|rank| pairs().map(|(ask, array)| part(rank, ask, array)).collect()).collect()
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
        let results = ranks.walk(transfer, parameters, window, &users(&parts));
        let results = results.into_iter().collect::<Result<Vec<Walked>, _>>();
        let walked = results.unwrap_or_else(|fault| panic!("{told}\n{fault}"));
        self.compare(transfer, &parts, &told);
        walked
    }

    /// Compares all memories and all stored bytes after a transfer.
    pub(crate) fn compare(&mut self, transfer: &Transfer, parts: &[Vec<Part>], told: &str) {
        for (rank, parts) in parts.iter().enumerate() {
            parts.iter().enumerate().for_each(|(i, part)| part.check(&format!("{told}\nrank {rank}, array {i}")));
        }
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
        for (ask, array) in transfer.asks.iter().zip(&mut self.arrays) {
            let selected: Vec<Vec<u64>> = ask.section.dims.iter().map(|&t| oracle::selected(t)).collect();
            for position in oracle::indices(&ask.section.shape()) {
                let index: Vec<u64> = position.iter().zip(&selected).map(|(&p, all)| all[p as usize]).collect();
                array.set(&index, oracle::value(array.number, &index, self.salt, array.limit));
            }
        }
    }
}

/// The arrays of each rank.
pub(crate) fn users(parts: &[Vec<Part>]) -> Vec<Vec<Exposed>> {
    parts.iter().map(|parts| parts.iter().map(|part| part.user.clone()).collect()).collect()
}
