//! Checks of the planner.

use super::*;
use crate::profile::built_in;
use crate::transfer::{Ask, Direction, Placement, Spread, Stored};
use hyperslab_format::zarr::{Codecs, KeyEncoding};
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section};

fn transfer(shape: &[u64], mesh: &[u64], dims: &[Dim], chunk: Option<&[u64]>, direction: Direction) -> Arc<Transfer> {
    let element = ElementType::native(Kind::Float64);
    let placement = match chunk {
        None => Placement::File { object: "a".into(), offset: 0 },
        Some(chunk) => Placement::Chunks {
            prefix: "a/".into(),
            chunk: chunk.to_vec(),
            keys: KeyEncoding::default(),
            codecs: Arc::new(Codecs::plain(true)),
            fresh: true,
        },
    };
    let order = (0..shape.len()).collect();
    let stored = Stored { shape: shape.to_vec(), element, fill: vec![0; 8].into(), order, placement };
    let distribution = Distribution::new(shape, mesh, dims, None).unwrap();
    let ranks = distribution.ranks() as u32;
    let (section, spread) = (Section::whole(shape), Spread::Regular(distribution));
    let ask = Ask { name: "a".into(), section, spread, memory: element, stored };
    Arc::new(Transfer { direction, asks: vec![ask], ranks, sync: false })
}

fn choose(transfer: &Arc<Transfer>, wish: &Preference, learned: &[(Strategy, f64)]) -> Result<Choice, Infeasible> {
    let profile = built_in();
    let machine = Machine { ranks_per_node: transfer.ranks, cores_per_node: 2 };
    Planner { profile: &profile, machine, learned }.choose(transfer, wish, &|_| None)
}

const BLOCKS: [Dim; 3] = [const { Dim::Block }; 3];

#[test]
fn what_is_known_to_be_best_on_one_node_is_chosen() {
    let cube = [512, 512, 256];
    let strategy = |mesh: &[u64], dims: &[Dim], chunk: Option<&[u64]>, direction| {
        choose(&transfer(&cube, mesh, dims, chunk, direction), &Preference::default(), &[]).unwrap().parameters.strategy
    };
    // Long runs, and chunks of a rank's own, need nobody else.
    assert_eq!(strategy(&[2, 1, 1], &BLOCKS, None, Direction::Write), Strategy::Independent);
    assert_eq!(strategy(&[2, 2, 2], &BLOCKS, Some(&[256, 256, 128]), Direction::Write), Strategy::Independent);
    // Runs of 1 KiB of a file that lets one writer in are assembled by few.
    let assembled = |strategy| matches!(strategy, Strategy::ServerDirected | Strategy::TwoPhase);
    assert!(assembled(strategy(&[2, 2, 2], &BLOCKS, None, Direction::Write)));
    assert!(assembled(strategy(&[4], &[Dim::Whole, Dim::Whole, Dim::Cyclic(1)], None, Direction::Write)));
    // Chunks that ranks share have one owner each.
    assert!(assembled(strategy(&[2, 2, 2], &BLOCKS, Some(&[200, 200, 100]), Direction::Write)));
}

#[test]
fn candidates_are_sorted_and_hold_the_chosen_one() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let choice = choose(&asked, &Preference::default(), &[]).unwrap();
    assert!(choice.candidates.len() > 8, "{}", choice.candidates.len());
    assert!(choice.candidates.is_sorted_by(|a, b| a.price.ns() <= b.price.ns()));
    let chosen = choice.candidates.iter().find(|one| one.parameters == choice.parameters).unwrap();
    assert_eq!(chosen.price, choice.price);
    assert!(choice.price.moving_ns() <= choice.candidates[0].price.moving_ns() * (1.0 + MARGIN));
    // The same question gets the same answer.
    assert_eq!(choose(&asked, &Preference::default(), &[]).unwrap(), choice);
}

#[test]
fn what_the_user_forces_is_kept_and_the_rest_is_chosen() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let wish = Preference {
        strategy: Some(Strategy::TwoPhase),
        subchunk_bytes: Some(1 << 20),
        server_ranks: Some(vec![1, 5]),
        ..Preference::default()
    };
    let choice = choose(&asked, &wish, &[]).unwrap();
    for one in &choice.candidates {
        let Parameters { strategy, servers, subchunk_bytes, .. } = &one.parameters;
        assert_eq!((*strategy, &servers[..], *subchunk_bytes), (Strategy::TwoPhase, &[1, 5][..], 1 << 20));
    }
}

#[test]
fn every_choice_is_within_the_budget() {
    for budget in [1 << 12, 1 << 16, 1 << 20, 1 << 26] {
        let asked = transfer(&[64, 64, 64], &[2, 2, 2], &BLOCKS, None, Direction::Write);
        let wish = Preference { buffer_bytes_max: Some(budget), ..Preference::default() };
        let choice = choose(&asked, &wish, &[]).unwrap();
        for one in &choice.candidates {
            assert!(one.price.buffer_bytes <= budget, "{budget}: {one:?}");
        }
    }
    let chunked = transfer(&[64, 64, 64], &[2, 2, 2], &BLOCKS, Some(&[48, 48, 48]), Direction::Write);
    let wish = Preference { buffer_bytes_max: Some(1 << 10), ..Preference::default() };
    let refused = choose(&chunked, &wish, &[]).unwrap_err().to_string();
    assert!(refused.contains("may have 1024 B") && refused.contains("hint: "), "{refused}");
}

#[test]
fn what_was_learned_of_one_strategy_turns_a_choice() {
    let asked = transfer(&[512, 512, 256], &[2, 2, 2], &BLOCKS, None, Direction::Write);
    let before = choose(&asked, &Preference::default(), &[]).unwrap();
    let worse = [(before.parameters.strategy, 4.0)];
    let after = choose(&asked, &Preference::default(), &worse).unwrap();
    assert_ne!(after.parameters.strategy, before.parameters.strategy);
    // What all share changes none.
    let all: Vec<(Strategy, f64)> = Strategy::ALL.map(|strategy| (strategy, 4.0)).to_vec();
    let same = choose(&asked, &Preference::default(), &all).unwrap();
    assert_eq!(same.parameters.strategy, before.parameters.strategy);
}
