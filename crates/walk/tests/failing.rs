//! Storage that fails, arguments that differ: all ranks end, with one and the same error.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::{Array, rooted};
use crate::common::case::{Case, users};
use crate::common::random::{any_array, any_parameters, any_spread};
use crate::common::{Ranks, Told, seeds};
use hyperslab_plan::{Direction, Strategy, TransferArray};
use hyperslab_walk::{Agreed, Question, Votes, Walked};
use hyperslab_world::lockstep::Hub;
use hyperslab_world::wrappers::Failing;
use hyperslab_world::{Fault, FaultKind, MemoryStore};

const CASES: u64 = 400;

fn disk_full() -> Fault {
    Fault::new(FaultKind::Storage, "no space left on device").hint("remove something")
}

/// Closes a call whose walk went like this on each rank.
fn close(ranks: &mut Ranks<Failing<MemoryStore>>, walked: &[Result<Walked, Fault>]) -> Vec<Result<Vec<u8>, Fault>> {
    let question = |result: &Result<Walked, Fault>| Question {
        what: "write".into(),
        fault: result.clone().err(),
        ..Question::default()
    };
    ranks.agree(walked.iter().map(question).collect(), &Ok(Vec::new()))
}

/// Lets the n-th request of one rank fail; returns whether that rank had so many.
fn fail_at(case: &mut Case, direction: Direction, failing: u32, nth: u64) -> bool {
    let (size, seed) = (case.ranks, case.seed);
    // The same choices for every n.
    case.random = fastrand::Rng::with_seed(seed);
    let asks: Vec<TransferArray> = (0..case.arrays.len()).map(|array| any_spread(case, array, direction)).collect();
    let transfer = case.transfer(direction, asks);
    let strategies = Strategy::ALL.into_iter().skip(seed as usize % Strategy::ALL.len()).chain(Strategy::ALL);
    let mut parameters = strategies.map(|strategy| any_parameters(&mut case.random, strategy, size));
    let parameters = parameters.find(|p| p.strategy.feasible(&transfer, p).is_ok()).expect("one can");
    let parts = case.parts(&transfer);
    let objects = case.objects.clone();
    let store = |rank| {
        let nth = if rank == failing { nth } else { u64::MAX };
        Failing::new(rooted(&objects), nth, disk_full())
    };
    let mut ranks = Ranks::new(Hub::new(size, seed, 0), size, seed, store);
    let facts = case.facts(&mut ranks, &transfer, &parameters, &parts);
    let walked = ranks.walk(&transfer, &parameters, None, &users(&parts), &facts);
    let failed = walked[failing as usize].is_err();
    for (rank, result) in walked.iter().enumerate() {
        match result {
            Err(fault) if rank as u32 == failing => assert_eq!(*fault, disk_full()),
            result => assert!(result.is_ok(), "rank {rank}: {result:?}"),
        }
    }
    for result in close(&mut ranks, &walked) {
        match result {
            Err(fault) if failed => {
                // Who is alone does not have to know which rank it was.
                let of = if size > 1 { format!("on rank {failing}: ") } else { String::new() };
                assert_eq!(fault.text(), format!("{of}no space left on device"));
                assert_eq!((fault.kind, fault.hint.clone()), (FaultKind::Storage, disk_full().hint.clone()));
            }
            result => assert!(!failed && result.is_ok(), "{result:?}"),
        }
    }
    if !failed {
        case.compare(&transfer, &parts, &format!("{transfer:?} {parameters:?}"));
    }
    failed
}

#[test]
fn every_request_may_fail() {
    let (mut failures, seeds) = (0, seeds(CASES));
    let floor = 2 * (seeds.end - seeds.start - 1);
    for seed in seeds {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.u32(1..6);
        let mut file = 0;
        let arrays: Vec<Array> = (0..2).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        let direction = if seed % 2 == 0 { Direction::Write } else { Direction::Read };
        let failing = case.random.u32(0..ranks);
        let mut nth = 0;
        while nth < 40 && fail_at(&mut case, direction, failing, nth) {
            nth += 1;
        }
        failures += nth;
    }
    println!("{failures} failures");
    assert!(failures >= floor, "only {failures} failures");
}

fn question(shape: &str) -> Question {
    let fields = [("call", "write"), ("shape of 'rho'", shape)].map(|(n, v)| (n.to_string(), v.to_string()));
    Question::opening("write of 'rho'", Vec::from(fields), None)
}

/// What all ranks get when rank i asks `questions[i]`.
///
/// # Panics
/// When two ranks get different answers.
fn agree(questions: Vec<Question>, seed: u64, decided: &Result<Vec<u8>, Fault>) -> Result<Vec<u8>, Fault> {
    let size = questions.len() as u32;
    let mut results = Ranks::in_memory(size, seed, &Default::default()).agree(questions, decided);
    results.dedup();
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0)
}

#[test]
fn ranks_that_agree_get_the_decision_of_rank_0() {
    for size in 1..21 {
        let questions = vec![question("[8, 8]"); size];
        assert_eq!(agree(questions.clone(), size as u64, &Ok(vec![1, 2])), Ok(vec![1, 2]));
        assert_eq!(agree(questions, size as u64, &Err(disk_full())), Err(disk_full()));
    }
}

#[test]
fn what_one_rank_cannot_do_all_ranks_hear_of() {
    for size in 1..21_u32 {
        for odd in 0..size {
            let of = |rank| Question {
                votes: Votes {
                    cannot: if rank == odd { 2 } else { rank & 4 },
                    reach: (rank % 3 > 0).then(|| (u64::from(10 + rank), u64::from(20 + rank))),
                    sum: rank * 77 % 5,
                    waiting: (rank + odd) % 3 * 1000,
                    changed: rank == odd && rank % 2 == 0,
                    held: (rank % 4 > 1).then(|| u64::from(rank) << 40),
                },
                ..question("[8]")
            };
            let questions: Vec<Question> = (0..size).map(of).collect();
            let votes = questions.iter().map(|question| question.votes);
            let cannot = votes.clone().fold(0, |all, votes| all | votes.cannot);
            let sum = votes.clone().fold(0, |all, votes| all ^ votes.sum);
            let waiting = votes.clone().map(|votes| votes.waiting).min().unwrap();
            let held = votes.clone().filter_map(|votes| votes.held).reduce(|a, b| a + b);
            let reach = votes.filter_map(|votes| votes.reach).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            let changed = odd % 2 == 0;
            let all = Votes { cannot, reach, sum, waiting, changed, held };
            let agreed =
                Ranks::in_memory(size, u64::from(odd), &Default::default()).agree_on_ways(questions, &Ok(vec![1]));
            assert_eq!(agreed, vec![Ok(Agreed { payload: vec![1], votes: all }); size as usize]);
        }
    }
}

#[test]
fn what_differs_is_named_with_ranks() {
    for size in 2..21_u32 {
        for odd in 1..size {
            let of = |rank| question(if rank == odd { "[8, 9]" } else { "[8, 8]" });
            let fault = agree((0..size).map(of).collect(), u64::from(odd), &Ok(Vec::new())).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Disagreement);
            let line = format!("shape of 'rho' is [8, 8] on rank 0, but [8, 9] on rank {odd}");
            assert!(fault.text().starts_with("write of 'rho': ") && fault.text().contains(&line), "{fault}");
            assert!(!fault.text().contains("call is"), "{fault}");
        }
    }
}

#[test]
fn at_most_eight_ranks_are_named() {
    for seed in 0..50 {
        let questions = (0..20).map(|rank| question(if rank < 4 { "[1]" } else { "[2]" })).collect();
        let fault = agree(questions, seed, &Ok(Vec::new())).unwrap_err();
        let line = "shape of 'rho' is [1] on rank 0, but [2] on ranks 4, 5, 6, 7, 8, 9, 10, 11 and 8 more";
        assert!(fault.text().contains(line), "{fault}");
    }
}

#[test]
fn everybody_different_is_still_an_answer() {
    for size in 2..21_u32 {
        let mut questions: Vec<Question> = (0..size).map(|rank| question(&format!("[{rank}]"))).collect();
        // One rank asks for less, and so lacks a field.
        questions[1] = Question::opening("write of 'rho'", vec![("call".to_string(), "write".to_string())], None);
        let fault = agree(questions, u64::from(size), &Ok(Vec::new())).unwrap_err();
        assert!(fault.text().contains("shape of 'rho' is [0] on rank 0, but "), "{fault}");
        assert!(fault.text().lines().count() <= 6, "{fault}");
    }
}

#[test]
fn failures_before_the_call_are_everybodys() {
    for size in 1..21_u32 {
        let late = Fault::new(FaultKind::Invalid, "the array is not contiguous").hint("copy it");
        for sick in [vec![size - 1], (0..size).filter(|rank| rank % 2 == 0).collect()] {
            let of = |rank| Question { fault: sick.contains(&rank).then(|| late.clone()), ..question("[8]") };
            let fault = agree((0..size).map(of).collect(), u64::from(size), &Ok(Vec::new())).unwrap_err();
            let named: Vec<String> = sick.iter().take(8).map(u32::to_string).collect();
            let ranks = if named.len() == 1 { "rank" } else { "ranks" };
            let of = if size > 1 { format!("on {ranks} {}: ", named.join(", ")) } else { String::new() };
            assert!(fault.text().starts_with(&format!("{of}the array")), "{fault}");
            assert_eq!(fault.text().contains("more ranks"), sick.len() > 8, "{fault}");
            assert_eq!((fault.kind, fault.hint.as_str()), (FaultKind::Invalid, "copy it"));
        }
    }
}

#[test]
fn agreements_follow_each_other_in_order() {
    let mut ranks = Ranks::in_memory(9, 1, &Default::default());
    for call in 0..30_u8 {
        let questions = vec![question(&format!("[{call}]")); 9];
        let results = ranks.agree(questions, &Ok(vec![call]));
        assert!(results.iter().all(|result| result.as_deref() == Ok(&[call])), "{results:?}");
    }
}
