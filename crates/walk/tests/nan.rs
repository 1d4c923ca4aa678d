//! A NaN that was to become an integer is an error of one rank that names the array, by every strategy.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::Ranks;
use crate::common::array::Array;
use crate::common::case::{Case, users};
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section};
use hyperslab_plan::{Direction, Parameters, Stored, Strategy};
use hyperslab_walk::Walked;
use hyperslab_world::{Fault, FaultKind};

const RANKS: u32 = 3;
const EXTENT: u64 = 60;
const REAL: ElementType = ElementType::native(Kind::Float64);
const WHOLE: ElementType = ElementType::native(Kind::Int32);

/// Two arrays in one file that are floats on one side and integers on the other; the second has a NaN, perhaps.
fn walk(direction: Direction, strategy: Strategy, dim: &Dim, nan: bool) -> Vec<Result<Walked, Fault>> {
    let element = if direction == Direction::Read { REAL } else { WHOLE };
    let stored = |number: u64| Stored::in_file(&[EXTENT], element, "data", number * EXTENT * element.bytes());
    let arrays: Vec<Array> = (0..2).map(|number| Array::new(number, stored(number as u64), REAL, WHOLE)).collect();
    let spread = Distribution::new(&[EXTENT], &[u64::from(RANKS)], std::slice::from_ref(dim)).unwrap();
    let asks = arrays.iter().map(|array| array.ask(Section::whole(&[EXTENT]), spread.clone(), direction)).collect();
    let mut case = Case::new(fastrand::Rng::with_seed(5), 5, RANKS, arrays);
    let transfer = case.transfer(direction, asks);
    let parameters = Parameters { strategy, servers: [0, 2].into(), subchunk_bytes: 80, ..Parameters::default() };
    let parts = case.parts(&transfer);
    let users = users(&parts);
    if nan && direction == Direction::Read {
        let at = (EXTENT + 31) as usize * 8;
        case.objects.lock().unwrap().get_mut("data").unwrap()[at..at + 8].copy_from_slice(&f64::NAN.to_ne_bytes());
    } else if nan {
        let second = &users[1][1];
        second.memory.write_bytes(second.view.base as u64, &f64::NAN.to_ne_bytes());
    }
    let mut ranks = Ranks::in_memory(RANKS, 5, &case.objects);
    let facts = case.facts(&mut ranks, &transfer, &parameters, &parts);
    ranks.walk(&transfer, &parameters, None, &users, &facts)
}

#[test]
fn one_rank_says_which_array_it_is_in() {
    let mut refused = 0;
    for direction in [Direction::Read, Direction::Write] {
        for strategy in Strategy::ALL {
            for dim in [Dim::Block, Dim::Cyclic(7)] {
                assert!(walk(direction, strategy, &dim, false).iter().all(Result::is_ok), "{strategy} {direction:?}");
                let faults: Vec<Fault> =
                    walk(direction, strategy, &dim, true).into_iter().filter_map(Result::err).collect();
                let [fault] = &faults[..] else { panic!("{strategy} {direction:?}: {faults:?}") };
                assert_eq!(fault.kind, FaultKind::Invalid);
                let begin = "'a1': a NaN of float64 cannot become int32, among elements [";
                assert!(fault.text().starts_with(begin), "{strategy} {direction:?}: {fault}");
                refused += 1;
            }
        }
    }
    assert_eq!(refused, 2 * 2 * Strategy::ALL.len());
}
