//! A strategy that does not come with the library is one description, and one line in a list that whoever asks is given.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::rooted;
use crate::common::case::Case;
use crate::common::random::{any_array, any_parameters, any_spread};
use crate::common::{Ranks, Told, seeds};
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Policies, Section};
use hyperslab_plan::{
    Direction, Limits, Machine, Parameters, Planner, Preference, Spec, Spread, Stored, Strategy, Transfer,
    TransferArray, explain, profile,
};
use hyperslab_world::lockstep::Hub;
use hyperslab_world::wrappers::Shuffling;
use std::sync::Arc;

const CASES: u64 = 400;

/// As independent writers, but crumb by crumb, each of which goes through a buffer.
static CRUMBS: Spec = Spec {
    name: "crumbs",
    about: "each rank moves its own pieces, 64 bytes at a time",
    complexity: 6,
    program: |transfer, parameters, facts, rank, views| {
        let subchunk_bytes = parameters.subchunk_bytes.min(64);
        let small = Parameters { subchunk_bytes, direct_run_bytes: u64::MAX, ..parameters.clone() };
        Strategy::INDEPENDENT.program(transfer, &small, facts, rank, views)
    },
    ..*Strategy::INDEPENDENT.spec()
};

const SEVENTH: Strategy = Strategy::new(&CRUMBS);

fn seven() -> Vec<Strategy> {
    Strategy::ALL.into_iter().chain([SEVENTH]).collect()
}

#[test]
fn random_transfers_by_it_equal_the_oracle() {
    let (mut asked, mut feasible) = (0, 0);
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, mut file) = (random.u32(1..9), random.u64(0..50));
        let arrays = (0..random.usize(1..4)).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        let store = |rank| Shuffling::new(rooted(&case.objects), seed + u64::from(rank));
        let mut on = Ranks::new(Hub::new(ranks, seed, 0), ranks, seed, store);
        for direction in [Direction::Write, Direction::Read] {
            let asks: Vec<TransferArray> =
                (0..case.arrays.len()).map(|array| any_spread(&mut case, array, direction)).collect();
            let transfer = case.transfer(direction, asks);
            let parameters = any_parameters(&mut case.random, SEVENTH, ranks);
            asked += 1;
            if SEVENTH.feasible(&transfer, &parameters).is_ok() {
                feasible += 1;
                case.run_on(&mut on, &transfer, &parameters, None);
            }
            case.settle();
        }
    }
    assert!(asked == 2 || feasible * 2 > asked, "{feasible} of {asked}");
}

/// A vector in blocks, to a file.
fn transfer() -> Arc<Transfer> {
    let element = ElementType::native(Kind::Float64);
    let distribution = Distribution::new(&[4096], &[4], &[Dim::Block]).unwrap();
    let stored = Stored::in_file(&[4096], element, "file", 0);
    let spread = Spread::Regular(distribution);
    let ask = TransferArray { name: "a".into(), section: Section::whole(&[4096]), spread, memory: element, stored };
    Arc::new(Transfer { direction: Direction::Write, asks: vec![ask], ranks: 4, policies: Policies::default() })
}

#[test]
fn planner_explain_and_help_know_those_that_they_are_given() {
    let (profile, transfer) = (profile::built_in(), transfer());
    let machine = Machine { ranks_per_node: 4, cores_per_node: 4, maps_files: false };
    for strategies in [Strategy::ALL.to_vec(), seven(), vec![SEVENTH]] {
        let known = strategies.contains(&SEVENTH);
        let planner = Planner { profile: &profile, machine, strategies: &strategies };
        let choice = planner.choose(&transfer, &Preference::default(), &|_| None).unwrap();
        let priced = choice.candidates.iter().find(|one| one.parameters.strategy == SEVENTH);
        assert_eq!(priced.is_some_and(|one| one.price.ns().is_finite()), known);
        assert_eq!(choice.parameters.strategy == SEVENTH, strategies == [SEVENTH], "nobody takes it who need not");
        let limits = Limits { ranks: 4, rounds: 1, steps: 2000 };
        let told = explain(&transfer, &choice, limits, &[], |_| Vec::new()).to_string();
        assert_eq!(told.contains("crumbs"), known, "{told}");
        assert_eq!(
            Strategy::help(&strategies).contains("crumbs           each rank moves its own pieces"),
            strategies.len() == 7
        );
        assert_eq!(Strategy::named("crumbs", &strategies), known.then_some(SEVENTH));
        let bytes = Parameters { strategy: SEVENTH, ..Parameters::default() }.to_bytes();
        assert_eq!(Parameters::from_bytes(&bytes, &strategies).map(|read| read.strategy), known.then_some(SEVENTH));
    }
    let hints = Preference { strategy: Some(SEVENTH), ..Preference::default() };
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    let forced = planner.choose(&transfer, &hints, &|_| None).unwrap();
    assert_eq!(forced.parameters.strategy, SEVENTH);
}
