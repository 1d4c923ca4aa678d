//! Chunks with checksums that several ranks read in parts, by any strategy: the elements are right, and the parts add up, unless
//! some byte is another.

use crate::common::array::Array;
use crate::common::case::{Case, users};
use crate::common::random::{any_distribution, any_element, any_feasible, any_order};
use crate::common::{Ranks, Told, seeds};
use hyperslab_layout::stored::{Change, Coding, Keys};
use hyperslab_layout::{Section, Stored};
use hyperslab_plan::{Direction, Strategy, Transfer};
use std::collections::BTreeMap;
use std::sync::Arc;

const CASES: u64 = 3_000;

/// A read of all of an array, in chunks that ranks share, each element once.
fn whole(random: fastrand::Rng, seed: u64) -> Option<(Case, Arc<Transfer>)> {
    let mut random = random;
    let ranks = random.u32(2..7);
    let chunk: Vec<u64> = (0..random.usize(1..4)).map(|_| random.u64(1..7)).collect();
    let shape: Vec<u64> = chunk.iter().map(|&extent| extent * random.u64(1..4)).collect();
    let (element, order) = (any_element(&mut random), any_order(&mut random, shape.len()));
    let memory = if random.bool() { element } else { any_element(&mut random) };
    let stored = Stored::in_chunks(&shape, element, &chunk, Keys::nested("a/"), Coding::Trailer);
    let stored = stored.changed(Change::Replace).below_root(0).ordered(order);
    let array = Array::new(0, stored, memory, memory);
    let distribution = any_distribution(&mut random, &shape, ranks.into());
    let case = Case::new(random, seed, ranks, vec![array]);
    let ask = case.arrays[0].ask(Section::whole(&shape), distribution, Direction::Read);
    let transfer = Arc::unwrap_or_clone(case.transfer(Direction::Read, vec![ask])).in_parts();
    transfer.in_whole_chunks().is_some().then(|| (case, Arc::new(transfer)))
}

#[test]
fn what_ranks_read_of_shared_chunks_adds_up_unless_it_is_damaged() {
    let mut tried: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let Some((mut case, transfer)) = whole(fastrand::Rng::with_seed(seed), seed) else { continue };
        let parameters = any_feasible(&mut case.random, &transfer);
        *tried.entry(parameters.strategy.name()).or_default() += 1;
        let mut ranks = Ranks::in_memory(case.ranks, seed, &case.objects);
        let walked = case.run_on(&mut ranks, &transfer, &parameters, None);
        assert_eq!(walked.iter().fold(0, |all, walked| all ^ walked.sum), 0);
        // A byte of some chunk, that of its checksum perhaps.
        let mut random = fastrand::Rng::with_seed(seed);
        let Some(name) = random.choice(case.objects.lock().unwrap().keys().cloned().collect::<Vec<_>>()) else {
            continue;
        };
        {
            let mut objects = case.objects.lock().unwrap();
            let content = objects.get_mut(&name).unwrap();
            let at = random.usize(0..content.len());
            content[at] ^= random.u8(1..);
        }
        let parts = case.parts(&transfer);
        let facts = case.facts(&mut ranks, &transfer, &parameters, &parts);
        let walked = ranks.walk(&transfer, &parameters, None, &users(&parts), &facts);
        // Who read all of the chunk at once has found out by himself.
        let sum = walked.iter().try_fold(0, |all, walked| walked.as_ref().map(|walked| all ^ walked.sum));
        assert!(sum.is_err() || sum.is_ok_and(|sum| sum != 0), "{name} is damaged, and nobody knows");
    }
    assert!(seeds(CASES).count() == 1 || tried.len() == Strategy::ALL.len(), "{tried:?}");
    assert!(seeds(CASES).count() == 1 || tried.values().all(|&count| count > CASES / 60), "{tried:?}");
}
