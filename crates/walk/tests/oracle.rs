//! Any random transfer, by any strategy with any parameters, does what an element-by-element oracle says.

mod common;

use common::case::Case;
use common::random::{any_array, any_ask, any_parameters};
use common::{Told, seeds};
use hyperslab_plan::{Ask, Direction, Parameters, Strategy, Transfer};

const CASES: u64 = 20_000;

/// How often each strategy was asked, and could.
#[derive(Default)]
struct Share {
    asked: u64,
    feasible: u64,
}

/// A random strategy that can do the transfer, with random parameters.
fn parameters(random: &mut fastrand::Rng, transfer: &Transfer, shares: &mut [Share; 3]) -> Parameters {
    let first = random.usize(0..3);
    for i in [first, (first + 1) % 3, (first + 2) % 3] {
        let parameters = any_parameters(random, Strategy::ALL[i], transfer.ranks);
        shares[i].asked += 1;
        if parameters.strategy.feasible(transfer, &parameters).is_ok() {
            shares[i].feasible += 1;
            return parameters;
        }
    }
    panic!("no strategy can do it");
}

fn run(case: &mut Case, direction: Direction, shares: &mut [Share; 3]) {
    let ranks = case.ranks;
    let asks: Vec<Ask> =
        case.arrays.iter().map(|array| any_ask(&mut case.random, array, ranks, direction)).collect();
    let transfer = case.transfer(direction, asks);
    let parameters = parameters(&mut case.random, &transfer, shares);
    let window = [None, Some(1), Some(2), Some(5)][case.random.usize(0..4)];
    case.run(&transfer, &parameters, window);
}

#[test]
fn random_transfers_equal_the_oracle() {
    let mut shares = <[Share; 3]>::default();
    let seeds = seeds(CASES);
    let all = seeds.end - seeds.start > 1;
    for seed in seeds {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.u32(1..9);
        let mut file = random.u64(0..50);
        let arrays = (0..random.usize(1..5)).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        // What the first write leaves is what the second merges into.
        for direction in [Direction::Write, Direction::Read, Direction::Write, Direction::Read] {
            run(&mut case, direction, &mut shares);
            case.settle();
        }
    }
    for (strategy, share) in Strategy::ALL.iter().zip(&shares) {
        println!("{strategy}: {} of {} feasible", share.feasible, share.asked);
        let floor = if *strategy == Strategy::Independent { 0.5 } else { 1.0 };
        assert!(!all || share.feasible as f64 >= floor * share.asked as f64, "{strategy} is hardly ever feasible");
    }
}
