//! What is recorded of walks and agreements: every step once, in an order that can be true, and nothing without a recorder.

use crate::common::array::Array;
use crate::common::case::{Case, users};
use crate::common::random::{any_array, any_feasible, any_spread};
use crate::common::{Ranks, Told, seeds};
use hyperslab_plan::Direction;
use hyperslab_walk::trace::{Kind, NONE, Recorder, Span};
use hyperslab_world::World;
use std::collections::BTreeMap;

const CASES: u64 = 60;

/// Whether one rank's record can be true.
fn check(spans: &[Span], steps: u64) {
    let is_step = |span: &&Span| span.step != NONE && span.kind != Kind::Wait;
    let ends: BTreeMap<(u8, u32), u64> =
        spans.iter().filter(is_step).map(|span| ((span.lane, span.step), span.end_ns)).collect();
    assert_eq!((ends.len() as u64, spans.iter().filter(is_step).count() as u64), (steps, steps), "each step once");
    for span in spans {
        assert!(span.ready_ns <= span.begin_ns && span.begin_ns <= span.end_ns, "{span:?}");
        if span.after != NONE && span.kind != Kind::Wait {
            assert!(ends[&(span.lane, span.after)] <= span.begin_ns, "{span:?} began before what it follows had ended");
        }
    }
    let waits: Vec<&Span> = spans.iter().filter(|span| span.kind == Kind::Wait).collect();
    assert!(waits.windows(2).all(|pair| pair[0].end_ns <= pair[1].begin_ns), "a rank waits for one thing at a time");
    assert!(waits.iter().all(|wait| wait.of != Kind::Wait), "what is waited for is known");
}

/// Messages by sender, receiver, and whose record it is: how many, and their pieces.
fn messages(all: &[Vec<Span>]) -> BTreeMap<(u32, u32), [(u64, u64); 2]> {
    let mut pairs: BTreeMap<(u32, u32), [(u64, u64); 2]> = BTreeMap::new();
    for (rank, spans) in (0u32..).zip(all) {
        for span in spans {
            let (pair, side) = match span.kind {
                Kind::Send => ((rank, span.peer), 0),
                Kind::Receive => ((span.peer, rank), 1),
                _ => continue,
            };
            let (count, pieces) = &mut pairs.entry(pair).or_default()[side];
            (*count, *pieces) = (*count + 1, *pieces + u64::from(span.pieces));
        }
    }
    pairs
}

#[test]
fn what_is_recorded_can_be_true() {
    let (mut waits, mut sent) = (0, 0);
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, mut file) = (random.u32(1..7), 0);
        let arrays: Vec<Array> =
            (0..random.usize(1..4)).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        for direction in [Direction::Write, Direction::Read] {
            let asks = (0..case.arrays.len()).map(|array| any_spread(&mut case, array, direction)).collect();
            let transfer = case.transfer(direction, asks);
            let parameters = any_feasible(&mut case.random, &transfer);
            let parts = case.parts(&transfer);
            let mut on = Ranks::in_memory(ranks, seed, &case.objects);
            let facts = case.facts(&mut on, &transfer, &parameters, &parts);
            for (world, party) in on.worlds.iter_mut().zip(&mut on.parties) {
                party.trace = Some(Box::new(Recorder::new(world)));
                assert!(world.clock().stamp_ns() < u64::MAX);
            }
            let walked = on.walk(&transfer, &parameters, None, &users(&parts), &facts);
            let all: Vec<Vec<Span>> =
                on.parties.iter_mut().map(|party| party.trace.as_mut().unwrap().take().spans).collect();
            for (spans, walked) in all.iter().zip(walked) {
                check(spans, walked.expect("nothing fails").steps);
                waits += spans.iter().filter(|span| span.kind == Kind::Wait).count();
            }
            for ((from, to), [sends, receives]) in messages(&all) {
                assert_eq!(sends, receives, "messages from {from} to {to}");
                sent += sends.0;
            }
            case.settle();
        }
    }
    assert!(waits > 0 && sent > 0, "{waits} waits and {sent} messages test nothing");
}
