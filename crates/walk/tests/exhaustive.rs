//! All small transfers, with the fewest legal slots and steps ahead and with more; and, for some, all orders in which
//! their messages can be delivered.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::Ranks;
use crate::common::array::Array;
use crate::common::case::Case;
use crate::common::pieces::{Piece, Pieces};
use hyperslab_layout::stored::{Change, Coding, Keys};
use hyperslab_layout::{Dim, Distribution, ElementType, IndexSet, Kind, Region, Section, product};
use hyperslab_plan::{Direction, Exchange, Parameters, Role, Spread, Stored, Strategy, Told, Transfer, TransferArray};
use std::collections::BTreeSet;
use std::sync::Arc;

const ELEMENT: ElementType = ElementType::native(Kind::UInt16);

/// An array of this shape in a file, or in chunks of extent 2.
fn array(number: usize, shape: &[u64], chunked: bool) -> Array {
    let stored = if chunked {
        let keys = Keys::nested(format!("a{number}/"));
        Stored::in_chunks(shape, ELEMENT, &vec![2; shape.len()], keys, Coding::Trailer).changed(Change::Replace)
    } else {
        Stored::in_file(shape, ELEMENT, format!("f{number}"), 3)
    };
    Array::new(number, stored, ELEMENT, ElementType::native(Kind::Int32))
}

fn kinds(extent: u64, ranks: u64) -> Vec<Dim> {
    vec![Dim::Whole, Dim::Block, Dim::BlockOf(extent.div_ceil(ranks) + 1), Dim::Cyclic(1), Dim::Cyclic(2)]
}

fn whole(array: &Array, distribution: &Distribution, direction: Direction) -> TransferArray {
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
                let d = Distribution::new(&[extent], &[u64::from(ranks)], std::slice::from_ref(&dim));
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
                let d = Distribution::over_mesh(&shape, &mesh, &dims, &over).unwrap();
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

/// How ranks hold the arrays of [`all_orders`].
#[derive(Clone)]
enum Dealing {
    Dealt(Dim),
    /// Rank 0 a box at the beginning; the others every so-manieth element of the rest, but for the last, backwards.
    Explicit,
}

/// The pieces of one array, where each rank has its own.
fn own_pieces(elements: u64, ranks: u32) -> Pieces {
    let (boxed, others) = (elements / 3, u64::from(ranks - 1));
    let list = |rank: u64| (boxed..elements - 1).rev().filter(|i| i % others == rank - 1).collect();
    let of = |rank| if rank == 0 { Piece::boxed(&[(0, boxed)]) } else { Piece::list(vec![list(rank)]) };
    (0..u64::from(ranks)).map(|rank| vec![of(rank)]).collect()
}

/// Runs a transfer of vectors in all orders of delivery, and says how many there are.
fn all_orders(
    ranks: u32,
    extents: &[u64],
    held: &[Dealing],
    direction: Direction,
    parameters: &Parameters,
    window: usize,
) -> u64 {
    let (mut script, mut count) = (Some(Vec::new()), 0);
    while let Some(choices) = script {
        let arrays: Vec<Array> = extents.iter().enumerate().map(|(i, &n)| array(i, &[n], i % 2 == 1)).collect();
        let mut case = Case::new(fastrand::Rng::with_seed(1), count, ranks, arrays);
        let mut asks = Vec::new();
        for (i, (&extent, held)) in extents.iter().zip(held.iter().cycle()).enumerate() {
            let dim = if let Dealing::Dealt(dim) = held { dim.clone() } else { Dim::Block };
            let d = Distribution::new(&[extent], &[u64::from(ranks)], &[dim]).unwrap();
            let mut ask = whole(&case.arrays[i], &d, direction);
            if let Dealing::Explicit = held {
                ask.spread = Spread::Explicit;
                case.explicit.insert(i, own_pieces(extent, ranks));
            }
            asks.push(ask);
        }
        let transfer: Arc<Transfer> = case.transfer(direction, asks);
        let mut ranks = Ranks::scripted(ranks, choices, &case.objects);
        case.run_on(&mut ranks, &transfer, parameters, Some(window));
        script = next(ranks.hub.borrow().choices());
        count += 1;
    }
    count
}

/// Few slots and steps ahead, and more.
const SLOTS_AND_WINDOWS: [(u32, usize); 4] = [(1, 1), (1, 64), (2, 64), (3, 2)];

/// Two servers, and subchunks of two elements.
fn two_servers(strategy: Strategy, ranks: u32, slots: u32) -> Parameters {
    let [(few, _), ..] = parameters(strategy, ranks, 2);
    Parameters { slots, ..few }
}

#[test]
fn all_orders_of_delivery() {
    let mut total = 0;
    for direction in [Direction::Write, Direction::Read] {
        for (slots, window) in SLOTS_AND_WINDOWS {
            for dim in [Dim::Block, Dim::Cyclic(1)] {
                for (ranks, extents) in [(2, [8, 3]), (3, [6, 2]), (4, [6, 4])] {
                    let parameters = two_servers(Strategy::SERVER_DIRECTED, ranks, slots);
                    let held = [Dealing::Dealt(dim.clone())];
                    total += all_orders(ranks, &extents, &held, direction, &parameters, window);
                }
            }
        }
    }
    println!("{total} orders");
    assert!(total > 500, "only {total} orders: they are not all tried");
}

#[test]
fn all_orders_of_delivery_for_all_strategies() {
    let kinds = [
        (Strategy::ROOT_GATHER, Exchange::All, Vec::new()),
        (Strategy::INDEPENDENT, Exchange::All, Vec::new()),
        (Strategy::DATA_SIEVING, Exchange::All, Vec::new()),
        (Strategy::TWO_PHASE, Exchange::All, Vec::new()),
        (Strategy::TWO_PHASE, Exchange::Sharers, Vec::new()),
        (Strategy::DISK_DIRECTED, Exchange::All, vec![(2, 2), (0, 1), (1, 1)]),
    ];
    for (strategy, exchange, order) in kinds {
        let mut total = 0;
        for direction in [Direction::Write, Direction::Read] {
            for (slots, window) in SLOTS_AND_WINDOWS {
                for (ranks, extents) in [(2, [8, 3]), (3, [6, 2])] {
                    let few = two_servers(strategy, ranks, slots);
                    let parameters = Parameters { exchange, order: order.clone(), ..few };
                    let alone = [Strategy::INDEPENDENT, Strategy::DATA_SIEVING].contains(&strategy);
                    // Alone, ranks cannot write what they share.
                    let extents = if alone { &extents[..1] } else { &extents[..] };
                    let held = [Dealing::Dealt(Dim::Cyclic(1))];
                    total += all_orders(ranks, extents, &held, direction, &parameters, window);
                }
            }
        }
        println!("{strategy}, {exchange:?}: {total} orders");
        let least = match strategy.spec().role {
            Role::Own => 16,
            Role::Root => 20,
            Role::Servers | Role::Holders => 30,
        };
        assert!(total >= least, "only {total} orders: they are not all tried");
    }
}

#[test]
fn all_orders_of_delivery_of_pieces() {
    let serving = [Strategy::TWO_PHASE, Strategy::SERVER_DIRECTED, Strategy::DISK_DIRECTED];
    for strategy in serving {
        let mut total = 0;
        for direction in [Direction::Write, Direction::Read] {
            for (slots, window) in SLOTS_AND_WINDOWS {
                for held in [vec![Dealing::Explicit], vec![Dealing::Dealt(Dim::Cyclic(1)), Dealing::Explicit]] {
                    for (ranks, extents) in [(2, [8, 4]), (3, [6, 3])] {
                        let order = vec![(1, 3), (0, 1)];
                        let parameters = Parameters { order, ..two_servers(strategy, ranks, slots) };
                        total += all_orders(ranks, &extents, &held, direction, &parameters, window);
                    }
                }
            }
        }
        println!("{strategy}: {total} orders");
        assert!(total > 100, "only {total} orders: they are not all tried");
    }
}

/// What one rank heard, and from whom.
type Heard = Vec<(u32, Told)>;

/// What each rank heard when ranks tell each other in one order of delivery, and the choices that were made.
fn tell(ranks: u32, script: Vec<usize>) -> (Vec<Heard>, Vec<(usize, usize)>) {
    let mut on = Ranks::scripted(ranks, script, &Default::default());
    let part = |from: u32, to: u32| {
        let region = Region { dims: vec![IndexSet::range(u64::from(from), u64::from(from + 1))].into() };
        (to, vec![(u64::from(to), 0, region)])
    };
    // Each tells itself and the next.
    let told = (0..ranks).map(|rank| [rank, (rank + 1) % ranks].map(|to| part(rank, to)).into_iter().collect());
    let heard = on.tell(told.collect());
    let choices = on.hub.borrow().choices().to_vec();
    (heard, choices)
}

#[test]
fn all_orders_of_telling() {
    for ranks in 1..4 {
        let (mut script, mut count) = (Some(Vec::new()), 0);
        let mut first = None;
        while let Some(choices) = script.filter(|_| count < 30_000) {
            let (heard, choices) = tell(ranks, choices);
            for (rank, heard) in heard.iter().enumerate() {
                let from: BTreeSet<u32> = heard.iter().map(|heard| heard.0).collect();
                let rank = rank as u32;
                assert_eq!(from, BTreeSet::from([rank, (rank + ranks - 1) % ranks]));
            }
            assert_eq!(first.get_or_insert_with(|| heard.clone()), &heard);
            script = next(&choices);
            count += 1;
        }
        println!("{ranks} ranks: {count} orders");
        assert!(ranks == 1 || count > 3, "only {count} orders: they are not all tried");
    }
}
