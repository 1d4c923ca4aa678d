//! Ranks tell each other of pieces that no distribution describes: overlapping writes are always found, by one of those
//! who were told.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::Array;
use crate::common::case::Case;
use crate::common::pieces::{Piece, Pieces, any_piece, any_pieces};
use crate::common::random::{any_array, any_parameters, any_physical_order, any_spread};
use crate::common::{Ranks, Told, seeds};
use hyperslab_plan::{Direction, Overlap, Parameters, Spread, Strategy, Transfer, TransferArray};
use std::collections::BTreeMap;
use std::sync::Arc;

const CASES: u64 = 4000;

/// Pieces that mostly do not overlap, but for one more or two.
fn nearly_disjoint(random: &mut fastrand::Rng, shape: &[u64], ranks: u32) -> Pieces {
    let mut all = any_pieces(random, shape, ranks, Direction::Write);
    for _ in 0..random.usize(0..3) {
        all[random.usize(0..ranks as usize)].push(any_piece(random, shape));
    }
    all
}

/// Elements that more than one piece holds, or one piece twice, and all their holders.
fn shared(pieces: &Pieces) -> BTreeMap<Vec<u64>, Vec<u32>> {
    let mut holders: BTreeMap<Vec<u64>, Vec<u32>> = BTreeMap::new();
    for (rank, pieces) in pieces.iter().enumerate() {
        pieces.iter().flat_map(Piece::elements).for_each(|e| holders.entry(e).or_default().push(rank as u32));
    }
    holders.retain(|_, holders| holders.len() > 1);
    holders
}

/// What the ranks find.
fn found(case: &mut Case, transfer: &Arc<Transfer>, parameters: &Parameters) -> Vec<Overlap> {
    let parts = case.parts(transfer);
    let mut ranks = Ranks::in_memory(case.ranks, case.seed, &case.objects);
    let facts = case.facts(&mut ranks, transfer, parameters, &parts);
    facts.iter().filter_map(|facts| facts.overlap(transfer, parameters)).collect()
}

#[test]
fn overlapping_writes_are_found_and_no_others() {
    let (mut overlapping, mut disjoint) = (0, 0);
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.u32(1..8);
        let mut file = 0;
        let arrays: Vec<Array> = (0..2).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        let mut asks: Vec<TransferArray> = (0..2).map(|array| any_spread(&mut case, array, Direction::Write)).collect();
        asks[0].spread = Spread::Explicit;
        let pieces = nearly_disjoint(&mut case.random, &asks[0].section.shape(), ranks);
        let shared = shared(&pieces);
        case.explicit.insert(0, pieces);
        case.by_message = seed % 8 == 0;
        let transfer = case.transfer(Direction::Write, asks.clone());
        for strategy in Strategy::ALL {
            let mut parameters = any_parameters(&mut case.random, strategy, ranks);
            any_physical_order(&mut case.random, &transfer, &mut parameters);
            let found = found(&mut case, &transfer, &parameters);
            assert_eq!(found.is_empty(), shared.is_empty(), "{strategy}: {found:?}, not {shared:?}");
            for Overlap { array, ranks: (first, second), at } in found {
                assert_eq!(array, 0, "{strategy}");
                let mut holders = shared[&at].clone();
                for rank in [first, second] {
                    let one = holders.iter().position(|&holder| holder == rank);
                    holders.swap_remove(one.unwrap_or_else(|| panic!("{strategy}: rank {rank} does not hold {at:?}")));
                }
            }
        }
        *(if shared.is_empty() { &mut disjoint } else { &mut overlapping }) += 1;
        // The same pieces may be read.
        let (explicit, ask) = (case.explicit.remove(&0).expect("just put"), asks.remove(0));
        case.explicit = BTreeMap::from([(0, explicit)]);
        let reading = case.transfer(Direction::Read, vec![ask]);
        let parameters = any_parameters(&mut case.random, Strategy::SERVER_DIRECTED, ranks);
        assert!(found(&mut case, &reading, &parameters).is_empty());
    }
    println!("{overlapping} overlapping, {disjoint} not");
    let cases = (seeds(CASES).end - seeds(CASES).start) as usize;
    assert!(cases == 1 || overlapping.min(disjoint) * 5 > cases, "{overlapping} overlapping, {disjoint} not");
}

#[test]
fn only_those_who_check_or_serve_are_told() {
    for seed in 0..300 {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.u32(1..8);
        let array = any_array(&mut random, 0, &mut 0);
        let mut case = Case::new(random, seed, ranks, vec![array]);
        let direction = if seed % 2 == 0 { Direction::Write } else { Direction::Read };
        let mut ask = any_spread(&mut case, 0, direction);
        ask.spread = Spread::Explicit;
        let pieces = any_pieces(&mut case.random, &ask.section.shape(), ranks, direction);
        let held: u64 = pieces.iter().flatten().map(|piece| piece.shape().iter().product::<u64>()).sum();
        case.explicit.insert(0, pieces);
        let transfer = case.transfer(direction, vec![ask]);
        for strategy in Strategy::ALL {
            let parameters = any_parameters(&mut case.random, strategy, ranks);
            let parts = case.parts(&transfer);
            let mut ranks = Ranks::in_memory(ranks, seed, &case.objects);
            let facts = case.facts(&mut ranks, &transfer, &parameters, &parts);
            let told: Vec<u64> =
                facts.iter().map(|facts| facts.met.values().flatten().map(|met| met.region.elements()).sum()).collect();
            // Of each element one rank hears, and only the servers hear; readers without servers tell nobody.
            let alone = [Strategy::INDEPENDENT, Strategy::DATA_SIEVING].contains(&strategy);
            let heard = if alone && direction == Direction::Read { 0 } else { held };
            assert_eq!(told.iter().sum::<u64>(), heard, "{strategy}");
            let root = strategy == Strategy::ROOT_GATHER;
            let server = |rank: usize| if root { rank == 0 } else { parameters.servers.contains(&(rank as u32)) };
            assert!(told.iter().enumerate().all(|(rank, &told)| told == 0 || server(rank)), "{strategy}: {told:?}");
        }
    }
}
