//! All small transfers, with the fewest legal slots and steps ahead and with more; and, for some, all orders in which
//! their messages can be delivered.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

mod common;

use common::Ranks;
use common::array::Array;
use common::case::Case;
use hyperslab_format::zarr::{Codecs, KeyEncoding};
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section, product};
use hyperslab_plan::{Ask, Direction, Parameters, Placement, Stored, Strategy, Transfer};
use std::sync::Arc;

const ELEMENT: ElementType = ElementType::native(Kind::UInt16);

/// An array of this shape in a file, or in chunks of extent 2.
fn array(number: usize, shape: &[u64], chunked: bool) -> Array {
    let placement = if chunked {
        Placement::Chunks {
            prefix: format!("a{number}/").into(),
            chunk: vec![2; shape.len()],
            keys: KeyEncoding::default(),
            codecs: Arc::new(Codecs::plain(true)),
            fresh: false,
        }
    } else {
        Placement::File { object: format!("f{number}").into(), offset: 3 }
    };
    let order = (0..shape.len()).collect();
    let stored = Stored { shape: shape.to_vec(), element: ELEMENT, fill: Arc::new([]), order, placement };
    Array::new(number, stored, ELEMENT, ElementType::native(Kind::Int32))
}

fn kinds(extent: u64, ranks: u64) -> Vec<Dim> {
    vec![Dim::Whole, Dim::Block, Dim::BlockOf(extent.div_ceil(ranks) + 1), Dim::Cyclic(1), Dim::Cyclic(2)]
}

fn whole(array: &Array, distribution: &Distribution, direction: Direction) -> Ask {
    array.ask(Section::whole(&array.stored.shape), distribution.clone(), direction)
}

/// Parameters from the fewest legal on, with the steps ahead.
fn parameters(strategy: Strategy, ranks: u32, elements: u64) -> [(Parameters, usize); 3] {
    let few = Parameters {
        strategy,
        servers: (0..ranks.min(2)).rev().collect(),
        slots: 1,
        subchunk_bytes: elements * ELEMENT.bytes(),
        direct_run_bytes: 0,
        ..Parameters::default()
    };
    let more = Parameters { slots: 2, direct_run_bytes: 1 << 20, servers: (0..ranks).collect(), ..few.clone() };
    [(few.clone(), 1), (few, 256), (more, 3)]
}

/// Writes and reads the array whole in all ways. Returns how many transfers that were.
fn all_ways(shape: &[u64], ranks: u32, distribution: &Distribution) -> u64 {
    let mut count = 0;
    for (chunked, strategy, elements) in
        [false, true].iter().flat_map(|&c| Strategy::ALL.into_iter().flat_map(move |s| [(c, s, 1), (c, s, 3)]))
    {
        for (parameters, window) in parameters(strategy, ranks, elements) {
            let mut case = Case::new(fastrand::Rng::with_seed(1), count, ranks, vec![array(0, shape, chunked)]);
            for direction in [Direction::Write, Direction::Read] {
                let transfer = case.transfer(direction, vec![whole(&case.arrays[0], distribution, direction)]);
                if strategy.feasible(&transfer, &parameters).is_ok() {
                    case.run(&transfer, &parameters, Some(window));
                    count += 1;
                }
            }
        }
    }
    count
}

#[test]
fn all_small_vectors() {
    let mut count = 0;
    for extent in [0, 1, 2, 3, 5, 6] {
        for ranks in 1..5 {
            for dim in kinds(extent, u64::from(ranks)) {
                let d = Distribution::new(&[extent], &[u64::from(ranks)], std::slice::from_ref(&dim), None);
                // Without a distributed dimension the mesh replicates.
                count += all_ways(&[extent], ranks, &d.unwrap());
            }
        }
    }
    println!("{count} transfers");
    assert!(count > 7000, "only {count} were feasible");
}

#[test]
fn all_small_matrices() {
    let mut count = 0;
    for shape in [[1, 3], [2, 2], [4, 3]] {
        for mesh in [[1, 2], [2, 1], [2, 2], [1, 4], [3, 1]] {
            let ranks = (mesh[0] * mesh[1]) as u32;
            for dims in product(&[kinds(shape[0], mesh[0]), kinds(shape[1], mesh[1])]) {
                let over: Vec<usize> = (0..2).filter(|&d| dims[d] != Dim::Whole).collect();
                let d = Distribution::new(&shape, &mesh, &dims, Some(&over)).unwrap();
                count += all_ways(&shape, ranks, &d);
            }
        }
    }
    println!("{count} transfers");
    assert!(count > 15_000, "only {count} were feasible");
}

/// The script after that which led to these choices; `None` after the last.
fn next(choices: &[(usize, usize)]) -> Option<Vec<usize>> {
    let last = choices.iter().rposition(|&(choice, of)| choice + 1 < of)?;
    let mut script: Vec<usize> = choices[..=last].iter().map(|&(choice, _)| choice).collect();
    script[last] += 1;
    Some(script)
}

/// Runs a transfer in all orders of delivery, and says how many there are.
fn all_orders(ranks: u32, shapes: &[&[u64]], dim: &Dim, direction: Direction, slots: u32, window: usize) -> u64 {
    let (mut script, mut count) = (Some(Vec::new()), 0);
    while let Some(choices) = script {
        let arrays: Vec<Array> = shapes.iter().enumerate().map(|(i, shape)| array(i, shape, i % 2 == 1)).collect();
        let mut case = Case::new(fastrand::Rng::with_seed(1), count, ranks, arrays);
        let mut asks = Vec::new();
        for array in &case.arrays {
            let d =
                Distribution::new(&array.stored.shape, &[u64::from(ranks)], std::slice::from_ref(dim), None).unwrap();
            asks.push(whole(array, &d, direction));
        }
        let transfer: Arc<Transfer> = case.transfer(direction, asks);
        let [(few, _), ..] = parameters(Strategy::ServerDirected, ranks, 2);
        let mut ranks = Ranks::scripted(ranks, choices, &case.objects);
        case.run_on(&mut ranks, &transfer, &Parameters { slots, ..few }, Some(window));
        script = next(ranks.hub.borrow().choices());
        count += 1;
    }
    count
}

#[test]
fn all_orders_of_delivery() {
    let mut total = 0;
    for direction in [Direction::Write, Direction::Read] {
        for (slots, window) in [(1, 1), (1, 64), (2, 64), (3, 2)] {
            for dim in &[Dim::Block, Dim::Cyclic(1)] {
                total += all_orders(2, &[&[8], &[3]], dim, direction, slots, window);
                total += all_orders(3, &[&[6], &[2]], dim, direction, slots, window);
                total += all_orders(4, &[&[6], &[4]], dim, direction, slots, window);
            }
        }
    }
    println!("{total} orders");
    assert!(total > 500, "only {total} orders: they are not all tried");
}
