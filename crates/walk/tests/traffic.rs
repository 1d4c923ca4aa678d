//! What crosses between ranks, and what goes to and from storage, is what theory says of each strategy.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::{Array, byte_in_file, rooted};
use crate::common::case::Case;
use crate::common::ledger::{Book, Ledger};
use crate::common::pieces::Piece;
use crate::common::random::{any_array, any_ask, any_parameters, any_physical_order, any_spread};
use crate::common::{Ranks, Told, oracle, seeds};
use hyperslab_layout::{Dim, Distribution, ElementType, Holes, Kind, Policies, Region, Section, Triplet};
use hyperslab_plan::{
    Action, Direction, Exchange, Parameters, Stored, Strategy, Transfer, TransferArray, Units, shared_extent, tally,
};
use hyperslab_walk::Walked;
use hyperslab_world::lockstep::Hub;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

const CASES: u64 = 3000;
const ELEMENT: ElementType = ElementType::native(Kind::Float64);
const DIRECTIONS: [Direction; 2] = [Direction::Write, Direction::Read];
/// Strategies in which servers handle storage.
const SERVING: [Strategy; 4] =
    [Strategy::ROOT_GATHER, Strategy::TWO_PHASE, Strategy::SERVER_DIRECTED, Strategy::DISK_DIRECTED];

/// What one transfer did.
struct Done {
    book: Rc<RefCell<Book>>,
    walked: Vec<Walked>,
    /// Messages, and bytes in them.
    messages: u64,
    bytes: u64,
}

fn run(case: &mut Case, transfer: &Arc<Transfer>, parameters: &Parameters) -> Done {
    let book = Rc::<RefCell<Book>>::default();
    let store = |_| Ledger::new(rooted(&case.objects), &book);
    let mut ranks = Ranks::new(Hub::new(case.ranks, case.seed, 0), case.ranks, case.seed, store);
    let walked = case.run_on(&mut ranks, transfer, parameters, None);
    let hub = ranks.hub.borrow();
    Done { walked, messages: hub.messages, bytes: hub.bytes, book }
}

/// A file of float64 and a transfer of a section of it.
fn one(shape: &[u64], section: Section, d: &Distribution, direction: Direction) -> (Case, Arc<Transfer>) {
    let stored = Stored::in_file(shape, ELEMENT, "data", 0);
    let array = Array::new(0, stored, ELEMENT, ELEMENT);
    let ask = array.ask(section, d.clone(), direction);
    let case = Case::new(fastrand::Rng::with_seed(3), 1, d.ranks() as u32, vec![array]);
    let transfer = case.transfer(direction, vec![ask]);
    (case, transfer)
}

#[test]
fn each_byte_crosses_once_and_is_moved_once() {
    // 32 subchunks of 128 elements, in each of which each of 4 ranks has 32.
    let d = Distribution::new(&[4096], &[4], &[Dim::Cyclic(16)]).unwrap();
    for direction in DIRECTIONS {
        for strategy in SERVING {
            let (mut case, transfer) = one(&[4096], Section::whole(&[4096]), &d, direction);
            let order = if strategy == Strategy::DISK_DIRECTED { vec![(20, 12), (0, 20)] } else { Vec::new() };
            let parameters =
                Parameters { strategy, servers: [2, 1].into(), subchunk_bytes: 1024, order, ..Parameters::default() };
            let done = run(&mut case, &transfer, &parameters);
            let book = done.book.borrow();
            let moved = if direction == Direction::Write { &book.written } else { &book.read };
            assert_eq!(moved["data"], vec![1; 4096 * 8], "{strategy}");
            assert_eq!(book.requests, 32, "{strategy}");
            // What the server of a subchunk holds itself, a quarter, stays.
            assert_eq!((done.messages, done.bytes), (32 * 3, 4096 * 8 * 3 / 4), "{strategy}");
            let by_rank: Vec<u64> = done.walked.iter().map(|walked| walked.store_bytes).collect();
            let all = 4096 * 8;
            let expected = if strategy == Strategy::ROOT_GATHER { [all, 0, 0, 0] } else { [0, all / 2, all / 2, 0] };
            assert_eq!(by_rank, expected, "{strategy}");
        }
        for strategy in [Strategy::INDEPENDENT, Strategy::DATA_SIEVING] {
            let (mut case, transfer) = one(&[4096], Section::whole(&[4096]), &d, direction);
            let parameters = Parameters { strategy, subchunk_bytes: 1024, ..Parameters::default() };
            let done = run(&mut case, &transfer, &parameters);
            // Each rank has something of each subchunk.
            assert_eq!((done.messages, done.book.borrow().requests), (0, 32 * 4), "{strategy}");
        }
    }
}

#[test]
fn two_phase_domains_are_contiguous() {
    let d = Distribution::new(&[4096], &[4], &[Dim::Cyclic(16)]).unwrap();
    let (_, transfer) = one(&[4096], Section::whole(&[4096]), &d, Direction::Write);
    let parameters = Parameters {
        strategy: Strategy::TWO_PHASE,
        servers: [3, 0, 2].into(),
        subchunk_bytes: 1024,
        ..Parameters::default()
    };
    // 32 subchunks for 3 aggregators: 11, 11 and 10.
    for (rank, expected) in [(3, (0, 1408)), (0, (1408, 2816)), (2, (2816, 4096))] {
        let program = parameters.strategy.program(&transfer, &parameters, &Arc::default(), rank, &[]);
        let written = program.lanes.into_iter().flatten().filter_map(|step| match step.action {
            Action::Write { region, .. } => region.as_box().map(|bounds| bounds[0]),
            _ => None,
        });
        let written: Vec<(u64, u64)> = written.collect();
        assert!(written.windows(2).all(|pair| pair[0].1 == pair[1].0), "rank {rank}: {written:?}");
        assert_eq!((written[0].0, written[written.len() - 1].1), expected, "rank {rank}");
    }
}

#[test]
fn sharers_exchange_with_those_who_share_extents() {
    // 8 rows of 64, of which pairs of ranks hold 2 each.
    let d = Distribution::new(&[8, 64], &[4, 2], &[Dim::Block, Dim::Block]).unwrap();
    for direction in DIRECTIONS {
        let (mut case, transfer) = one(&[8, 64], Section::whole(&[8, 64]), &d, direction);
        let ask = &transfer.asks[0];
        assert_eq!([200, 512, 1025].map(|enough| shared_extent(ask, enough)), [Some(256), Some(1024), Some(4096)]);
        let parameters = Parameters {
            strategy: Strategy::TWO_PHASE,
            exchange: Exchange::Sharers,
            subchunk_bytes: 1024,
            ..Parameters::default()
        };
        let done = run(&mut case, &transfer, &parameters);
        // 4 extents of 2 rows, of each of which one of a pair sends the other half.
        assert_eq!((done.messages, done.bytes, done.book.borrow().requests), (4, 4 * 512, 4));
        for rank in 0..8 {
            let tally = tally(parameters.strategy.program(&transfer, &parameters, &Arc::default(), rank, &[]));
            assert_eq!(tally.messages, BTreeMap::from([(rank ^ 1, 1)]), "rank {rank}");
        }
    }
}

/// The ends of a message, and the bounds of its parts.
type Message = (u32, u32, Vec<Vec<(u64, u64)>>);

/// All programs' messages about one array.
fn messages(transfer: &Arc<Transfer>, parameters: &Parameters) -> Vec<Message> {
    let of = |rank: u32| {
        let program = parameters.strategy.program(transfer, parameters, &Arc::default(), rank, &[]);
        program.lanes.into_iter().flatten().filter_map(move |step| match step.action {
            Action::Send { to: peer, parts } | Action::Recv { from: peer, parts } => {
                let hull = |region: Region| region.dims.iter().map(|set| set.hull().unwrap_or((0, 0))).collect();
                let hulls = parts.into_iter().map(|(_, region, _)| hull(region));
                Some((rank, peer, hulls.collect()))
            }
            _ => None,
        })
    };
    (0..transfer.ranks).flat_map(of).collect()
}

#[test]
fn random_sharers_share_the_unit() {
    for seed in seeds(CASES / 10) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = random.u32(2..12);
        let array = any_array(&mut random, 0, &mut 0);
        let ask = any_ask(&mut random, &array, ranks, DIRECTIONS[seed as usize % 2]);
        let held = |rank: u32| -> BTreeSet<Vec<u64>> {
            ask.spread.regular().map(|d| Piece::regular(d, rank).elements().collect()).unwrap_or_default()
        };
        let held: Vec<BTreeSet<Vec<u64>>> = (0..ranks).map(held).collect();
        let direction = DIRECTIONS[seed as usize % 2];
        let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks, policies: Policies::default() });
        let mut parameters = any_parameters(&mut random, Strategy::TWO_PHASE, ranks);
        // Units of their own, not groups of several.
        (parameters.exchange, parameters.subchunk_bytes) = (Exchange::Sharers, 1);
        let units = Units::new(&transfer, 1);
        let units: Vec<_> = (0..units.count()).map(|number| units.unit(number)).collect();
        for (rank, peer, parts) in messages(&transfer, &parameters) {
            for hull in parts {
                let inside = |bounds: &[(u64, u64)]| {
                    hull.iter().zip(bounds).all(|(&(low, high), &(from, to))| from <= low && high <= to)
                };
                let unit = units.iter().find(|unit| inside(&unit.bounds)).expect("a part lies in one unit");
                let in_unit = |element: &Vec<u64>| {
                    element.iter().zip(&unit.bounds).all(|(&i, &(low, high))| low <= i && i < high)
                };
                assert!(held[peer as usize].iter().any(in_unit), "rank {peer} has nothing of {unit:?} from {rank}");
            }
        }
    }
}

#[test]
fn data_sieving_moves_holes() {
    // Each rank has 32 of the 128 elements of a subchunk, every fourth: 125 elements cover them.
    let cyclic = Distribution::new(&[1024], &[4], &[Dim::Cyclic(1)]).unwrap();
    let parameters = Parameters { strategy: Strategy::DATA_SIEVING, subchunk_bytes: 1024, ..Parameters::default() };
    let (mut case, transfer) = one(&[1024], Section::whole(&[1024]), &cyclic, Direction::Read);
    let done = run(&mut case, &transfer, &parameters);
    assert_eq!((done.book.borrow().bytes(), done.book.borrow().requests), ((4 * 8 * 1000, 0), 4 * 8));
    // Others write into the holes, so they are left alone.
    let (mut case, transfer) = one(&[1024], Section::whole(&[1024]), &cyclic, Direction::Write);
    let done = run(&mut case, &transfer, &parameters);
    assert_eq!((done.book.borrow().bytes(), done.book.borrow().requests), ((0, 1024 * 8), 4 * 8));
    // Every fourth element is written, a quarter of them by each rank: nobody else writes into the holes.
    let section = Section { dims: vec![Triplet { start: 0, stride: 4, count: 256, block: 1 }] };
    let blocks = Distribution::new(&[256], &[4], &[Dim::Block]).unwrap();
    let (mut case, transfer) = one(&[1024], section, &blocks, Direction::Write);
    let done = run(&mut case, &transfer, &parameters);
    assert_eq!((done.book.borrow().bytes(), done.book.borrow().requests), ((8 * 1000, 8 * 1000), 2 * 8));
}

/// Of each byte of a file, how many pieces of this transfer hold it; what a distribution spreads counts as one piece.
fn held_bytes(case: &Case, transfer: &Transfer) -> Vec<u32> {
    let mut held = vec![0; 1 << 16];
    for (i, ask) in transfer.asks.iter().enumerate() {
        if ask.stored.object().is_none() {
            continue;
        }
        let selected: Vec<Vec<u64>> = ask.section.dims.iter().map(|&t| oracle::selected(t)).collect();
        let positions: Vec<Vec<u64>> = match ask.spread.regular() {
            Some(_) => oracle::indices(&ask.section.shape()),
            None => case.explicit[&i].iter().flatten().flat_map(Piece::elements).collect(),
        };
        for position in positions {
            let index: Vec<u64> = position.iter().zip(&selected).map(|(&p, all)| all[p as usize]).collect();
            let size = ask.stored.element.bytes();
            let at = byte_in_file(&ask.stored, &index);
            held[at as usize..(at + size) as usize].iter_mut().for_each(|times| *times += 1);
        }
    }
    held
}

/// Bytes of all ranks' pieces, in the type of the receiving side.
fn piece_bytes(case: &Case, transfer: &Transfer) -> u64 {
    let of = |(i, ask): (usize, &TransferArray)| {
        let element = if transfer.direction == Direction::Write { ask.stored.element } else { ask.memory };
        let elements: u64 = match ask.spread.regular() {
            // Of replicas, one sends, but all receive.
            Some(d) if transfer.direction == Direction::Read => {
                (0..transfer.ranks).map(|rank| Piece::regular(d, rank).shape().iter().product::<u64>()).sum()
            }
            Some(_) => ask.section.shape().iter().product(),
            None => case.explicit[&i].iter().flatten().map(|piece| piece.shape().iter().product::<u64>()).sum(),
        };
        elements * element.bytes()
    };
    transfer.asks.iter().enumerate().map(of).sum()
}

#[test]
fn random_transfers_move_each_byte_once() {
    let mut tried = BTreeMap::new();
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, mut file) = (random.u32(1..8), 0);
        let arrays: Vec<Array> = (0..2).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        let direction = DIRECTIONS[seed as usize % 2];
        let asks = (0..2).map(|array| any_spread(&mut case, array, direction)).collect();
        let transfer = case.transfer(direction, asks);
        let strategy = Strategy::ALL[case.random.usize(0..6)];
        let mut parameters = any_parameters(&mut case.random, strategy, ranks);
        any_physical_order(&mut case.random, &transfer, &mut parameters);
        if strategy.feasible(&transfer, &parameters).is_err() {
            continue;
        }
        *tried.entry(strategy.name()).or_insert(0) += 1;
        let done = run(&mut case, &transfer, &parameters);
        let book = done.book.borrow();
        let serving = SERVING.contains(&strategy);
        assert!(done.bytes <= piece_bytes(&case, &transfer), "{} B cross", done.bytes);
        assert!(serving || done.bytes == 0, "{} B cross", done.bytes);
        let held = held_bytes(&case, &transfer);
        // Whoever writes, nobody else writes the same byte, and who puts holes back is alone and has read them.
        let was_read = |at: usize| book.read.get("data").and_then(|all| all.get(at)).is_some_and(|&times| times > 0);
        let written = book.written.get("data").into_iter().flatten().enumerate();
        for (at, &times) in written {
            assert!(times <= 1, "byte {at} of the file is written {times} times");
            let puts_back =
                strategy != Strategy::INDEPENDENT && transfer.policies.holes == Holes::MayBeRewritten && was_read(at);
            assert!(held[at] > 0 || times == 0 || puts_back, "byte {at} is nobody's");
        }
        if direction == Direction::Write {
            let once = |at: usize| book.written.get("data").and_then(|all| all.get(at)) == Some(&1);
            assert!((0..held.len()).all(|at| held[at] == 0 || once(at)), "a byte is not written");
        }
        assert!(book.written_whole.values().all(|&times| times == 1), "{:?}", book.written_whole);
        if serving {
            for (name, read) in &book.read {
                let fault = read.iter().enumerate().find(|&(_, &times)| times > 1);
                assert!(fault.is_none(), "byte of {name}, and how often it is read: {fault:?}");
            }
            assert!(book.read_whole.values().all(|&times| times == 1), "{:?}", book.read_whole);
        }
    }
    println!("{tried:?}");
    assert!(seeds(CASES).end - seeds(CASES).start == 1 || tried.len() == Strategy::ALL.len(), "{tried:?}");
}
