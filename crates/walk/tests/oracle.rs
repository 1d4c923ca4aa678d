//! Any random transfer, by any strategy with any parameters, does what an element-by-element oracle says.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::{Array, rooted};
use crate::common::case::{Case, users};
use crate::common::pieces::{Piece, Pieces};
use crate::common::random::{any_array, any_feasible, any_parameters, any_physical_order, any_spread};
use crate::common::{Ranks, Told, seeds};
use hyperslab_format::zarr::{BytesCodec, Codecs};
use hyperslab_layout::stored::{Address, Change, Coding, Keys, Objects, Table};
use hyperslab_layout::{Distribution, ElementType, Kind, Overlapping, Section, product};
use hyperslab_plan::{
    Direction, Machine, Parameters, Planner, Preference, Spread, Stored, Strategy, Transfer, TransferArray, profile,
};
use hyperslab_world::MemoryStore;
use hyperslab_world::lockstep::Hub;
use hyperslab_world::wrappers::Shuffling;
use std::collections::BTreeSet;
use std::sync::Arc;

const CASES: u64 = 8_000;

/// How often each strategy was asked, with ample buffers, and could.
#[derive(Default)]
struct Share {
    asked: u64,
    feasible: u64,
}

/// What was tried.
#[derive(Default)]
struct Shares {
    of: [Share; Strategy::ALL.len()],
    /// Transfers in which ranks had pieces of their own, those among them in which they told each other by messages,
    /// transfers with tight buffers, and with the order of a disk.
    explicit: u64,
    by_message: u64,
    tight: u64,
    ordered: u64,
    profile: BuiltIn,
}

/// What the planner takes for the machine.
struct BuiltIn(profile::Profile);

impl Default for BuiltIn {
    fn default() -> BuiltIn {
        BuiltIn(profile::built_in())
    }
}

/// A random strategy that can do the transfer, with random parameters; now and then what the planner chooses.
fn parameters(random: &mut fastrand::Rng, transfer: &Arc<Transfer>, shares: &mut Shares) -> Parameters {
    if random.u8(0..8) == 0 {
        let machine = Machine { ranks_per_node: random.u32(1..5), cores_per_node: random.u32(1..5), maps_files: false };
        let hints = Preference { subchunk_bytes: random.bool().then_some(128), ..Preference::default() };
        let planner = Planner { profile: &shares.profile.0, machine, strategies: &Strategy::ALL };
        return planner.choose(transfer, &hints, &|_| None).expect("the planner finds a strategy").parameters;
    }
    let tight = random.u8(0..4) == 0;
    let (first, all) = (random.usize(0..Strategy::ALL.len()), Strategy::ALL.len());
    for i in (first..first + all).map(|i| i % all) {
        let mut parameters = any_parameters(random, Strategy::ALL[i], transfer.ranks);
        any_physical_order(random, transfer, &mut parameters);
        if tight {
            parameters.buffer_bytes_max = 1 << random.u32(5..14);
            if parameters.strategy.feasible(transfer, &parameters).is_ok() {
                shares.tight += 1;
                return parameters;
            }
            parameters.buffer_bytes_max = 1 << 26;
        }
        shares.of[i].asked += 1;
        if parameters.strategy.feasible(transfer, &parameters).is_ok() {
            shares.of[i].feasible += 1;
            return parameters;
        }
    }
    panic!("no strategy can do it");
}

fn run(case: &mut Case, on: &mut Ranks<Shuffling<MemoryStore>>, direction: Direction, shares: &mut Shares) {
    let asks: Vec<TransferArray> = (0..case.arrays.len()).map(|array| any_spread(case, array, direction)).collect();
    let transfer = case.transfer(direction, asks);
    let parameters = parameters(&mut case.random, &transfer, shares);
    let window = [None, Some(1), Some(2), Some(5)][case.random.usize(0..4)];
    case.by_message = case.random.u8(0..4) == 0;
    let explicit = transfer.asks.iter().any(|ask| ask.spread.regular().is_none());
    shares.explicit += u64::from(explicit);
    shares.by_message += u64::from(explicit && case.by_message);
    shares.ordered += u64::from(parameters.strategy == Strategy::DISK_DIRECTED && !parameters.order.is_empty());
    // Storage that ends one request at a time in any order, or all at once.
    let walked = if case.random.u8(0..3) > 0 {
        case.run_on(on, &transfer, &parameters, window)
    } else {
        let mut at_once = Ranks::in_memory(case.ranks, case.seed, &case.objects);
        case.run_on(&mut at_once, &transfer, &parameters, window)
    };
    assert!(walked.iter().all(|walked| walked.buffer_bytes <= parameters.buffer_bytes_max));
}

#[test]
fn random_transfers_equal_the_oracle() {
    let mut shares = Shares::default();
    let seeds = seeds(CASES);
    let cases = seeds.end - seeds.start;
    let all = cases > 1;
    for seed in seeds {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let ranks = if random.u8(0..40) > 0 { random.u32(1..9) } else { random.u32(9..40) };
        let mut file = random.u64(0..50);
        let arrays = (0..random.usize(1..5)).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        let store = |rank| Shuffling::new(rooted(&case.objects), seed + u64::from(rank));
        let (arity, blocking_sends) = (case.random.u32(1..6), case.random.u8(0..3) == 0);
        let mut on = Ranks::new(Hub::new(ranks, seed, 0), ranks, seed, store).of_the_period(arity, blocking_sends);
        // What the first write leaves is what the second merges into.
        for direction in [Direction::Write, Direction::Read, Direction::Write, Direction::Read] {
            run(&mut case, &mut on, direction, &mut shares);
            case.settle();
        }
    }
    let Shares { of, explicit, by_message, tight, ordered, .. } = shares;
    println!("{explicit} with explicit pieces, {by_message} by message; {tight} with tight buffers; {ordered} ordered");
    for (strategy, share) in Strategy::ALL.iter().zip(of) {
        println!("{strategy}: {} of {} feasible", share.feasible, share.asked);
        // Refused to those who would share a chunk, or do not know with whom.
        let refused = [Strategy::INDEPENDENT, Strategy::DATA_SIEVING, Strategy::TWO_PHASE].contains(strategy);
        let floor = if refused { 0.55 } else { 1.0 };
        assert!(!all || share.feasible as f64 >= floor * share.asked as f64, "{strategy} is hardly ever feasible");
    }
    assert!(!all || [explicit, by_message, tight, ordered].iter().all(|&count| count > cases / 10));
}

const FLOAT64: ElementType = ElementType::native(Kind::Float64);

/// Writes (by these parameters) and reads (by those) a vector of 64 elements in pieces, in 30 orders of events.
fn in_pieces(stored: &Stored, pieces: &Pieces, [write, read]: [&Parameters; 2]) {
    let ranks = pieces.len() as u32;
    for seed in 0..30 {
        let _told = Told(seed);
        let random = fastrand::Rng::with_seed(seed);
        let mut case = Case::new(random, seed, ranks, vec![Array::new(0, stored.clone(), FLOAT64, FLOAT64)]);
        let store = |rank| Shuffling::new(rooted(&case.objects), seed + u64::from(rank));
        let mut on = Ranks::new(Hub::new(ranks, seed, 0), ranks, seed, store);
        for (direction, parameters) in [(Direction::Write, write), (Direction::Read, read)] {
            let d = Distribution::replicated(&[64], u64::from(ranks)).unwrap();
            let mut ask = case.arrays[0].ask(Section::whole(&[64]), d, direction);
            ask.spread = Spread::Explicit;
            case.explicit.insert(0, pieces.clone());
            let transfer = case.transfer(direction, vec![ask]);
            case.run_on(&mut on, &transfer, parameters, None);
            case.run(&transfer, parameters, None);
        }
    }
}

#[test]
fn a_rank_reads_several_pieces_of_one_encoded_chunk() {
    let zstd = BytesCodec::Zstd { level: 1, checksum: false };
    let codecs = Codecs { chain: vec![zstd], ..Codecs::plain(true) };
    let stored = Stored::in_chunks(&[64], FLOAT64, &[16], Keys::nested("a0/"), codecs.coding());
    let stored = stored.changed(Change::Replace);
    let pieces = vec![(0..16).map(|i| Piece::boxed(&[(4 * i, 4 * i + 4)])).collect()];
    for strategy in [Strategy::INDEPENDENT, Strategy::DATA_SIEVING] {
        let parameters = Parameters { strategy, slots: 3, ..Parameters::default() };
        in_pieces(&stored, &pieces, [&Parameters::default(), &parameters]);
    }
}

/// Where pieces may overlap, each element is that of one of the ranks that hold it, and no other byte changes.
#[test]
fn pieces_that_overlap_leave_what_one_of_them_holds() {
    const EXTENT: u64 = 40;
    for strategy in Strategy::ALL {
        for seed in 0..40 {
            let _told = Told(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            let stored = Stored::in_file(&[EXTENT], FLOAT64, "data", 16);
            let mut case =
                Case::new(fastrand::Rng::with_seed(seed), seed, 3, vec![Array::new(0, stored, FLOAT64, FLOAT64)]);
            let before = case.objects.lock().unwrap()["data"].clone();
            let piece = |random: &mut fastrand::Rng| {
                let low = random.u64(0..EXTENT);
                Piece::boxed(&[(low, random.u64(low..EXTENT) + 1)])
            };
            let pieces: Pieces =
                (0..3).map(|_| (0..random.usize(0..3)).map(|_| piece(&mut random)).collect()).collect();
            let held: Vec<BTreeSet<u64>> = pieces
                .iter()
                .map(|pieces| pieces.iter().flat_map(Piece::elements).map(|index| index[0]).collect())
                .collect();
            case.explicit.insert(0, pieces);
            let section = Section::whole(&[EXTENT]);
            let alone = Distribution::replicated(&[EXTENT], 3).unwrap();
            let ask = TransferArray {
                spread: Spread::Explicit,
                ..case.arrays[0].ask(section, alone.clone(), Direction::Write)
            };
            let mut transfer = Transfer::clone(&case.transfer(Direction::Write, vec![ask]));
            transfer.policies.overlapping = Overlapping::Any;
            let transfer = Arc::new(transfer);
            let parameters =
                Parameters { strategy, subchunk_bytes: 64, servers: [1, 2].into(), ..Parameters::default() };
            // Each rank writes its own number.
            let mut parts = case.parts(&transfer);
            for (rank, part) in parts.iter_mut().enumerate() {
                part.fill_with(&(rank as f64 + 0.5).to_ne_bytes());
            }
            let mut on = Ranks::in_memory(3, seed, &case.objects);
            let facts = case.facts(&mut on, &transfer, &parameters, &parts);
            assert!(facts.iter().all(|facts| facts.overlap(&transfer, &parameters).is_none()));
            let walked = on.walk(&transfer, &parameters, None, &users(&parts), &facts);
            assert!(walked.iter().all(Result::is_ok), "{walked:?}");
            let after = case.objects.lock().unwrap()["data"].clone();
            assert_eq!(after[..16], before[..16]);
            for index in 0..EXTENT {
                let at = 16 + 8 * index as usize..24 + 8 * index as usize;
                let found = f64::from_le_bytes(after[at.clone()].try_into().unwrap());
                let holders: Vec<usize> = (0..3).filter(|&rank| held[rank].contains(&index)).collect();
                let one_of_them = holders.iter().any(|&rank| found == rank as f64 + 0.5);
                assert!(
                    if holders.is_empty() { after[at.clone()] == before[at] } else { one_of_them },
                    "{strategy} {index}: {found} {holders:?}"
                );
            }
        }
    }
}

/// Chunks of a file that lie, encoded, where a table says: any strategy reads them, and those that do not exist are fill values;
/// none writes them, or a chunk without a place.
#[test]
fn encoded_chunks_are_read_where_a_table_says() {
    const SHAPE: [u64; 2] = [10, 9];
    const CHUNK: [u64; 2] = [4, 2];
    let codecs = Codecs { chain: vec![BytesCodec::Zstd { level: 1, checksum: false }], ..Codecs::plain(true) };
    let mut without_place = 0;
    for seed in 0..150 {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let stored = Stored {
            coding: codecs.coding(),
            ..Stored::in_table(&SHAPE, FLOAT64, &CHUNK, Table::of("data", Vec::new()))
        };
        let mut array = Array::new(0, stored, FLOAT64, FLOAT64);
        let (mut file, mut table) = (vec![0x5A; random.usize(0..30)], Vec::new());
        let mut places: Vec<Vec<u64>> = (0..15).map(|n| vec![n / 5, n % 5]).collect();
        random.shuffle(&mut places);
        for at in places {
            let low: Vec<u64> = at.iter().zip(CHUNK).map(|(&at, chunk)| at * chunk).collect();
            if random.u8(0..4) == 0 {
                // It does not exist.
                let fill = array.fill;
                let inside = [0, 1].map(|d| (low[d]..(low[d] + CHUNK[d]).min(SHAPE[d])).collect::<Vec<_>>());
                product(&inside).for_each(|index| array.set(&index, fill));
                continue;
            }
            let codec = array.stored.codec().unwrap().clone();
            let bytes = codec.encode(&array.dense(&low, &CHUNK), "a chunk").unwrap();
            let number = array.stored.chunk_number(&at);
            table.push(Address { number, offset: file.len() as u64, bytes: bytes.len() as u64 });
            file.extend(bytes);
            file.resize(file.len() + random.usize(0..20), 0x5A);
        }
        array.stored.objects = Objects::Table(Arc::new(Table::of("data", table)));
        let ranks = random.u32(1..6);
        let mut case = Case::new(random, seed, ranks, vec![array]);
        case.objects.lock().unwrap().insert("data".into(), file);
        let ask = any_spread(&mut case, 0, Direction::Read);
        let transfer = case.transfer(Direction::Read, vec![ask.clone()]);
        let parameters = any_feasible(&mut case.random, &transfer);
        let parts = case.parts(&transfer);
        let mut on = Ranks::in_memory(ranks, seed, &case.objects);
        let facts = case.facts(&mut on, &transfer, &parameters, &parts);
        let walked = on.walk(&transfer, &parameters, None, &users(&parts), &facts);
        assert!(walked.iter().all(Result::is_ok), "{walked:?}");
        parts.iter().enumerate().for_each(|(rank, part)| part.check(&format!("{transfer:?}, rank {rank}")));

        let write = case.transfer(Direction::Write, vec![ask.clone()]);
        let plain = TransferArray { stored: Stored { coding: Coding::Plain, ..ask.stored.clone() }, ..ask };
        let inside = case.transfer(Direction::Write, vec![plain]);
        for strategy in Strategy::ALL {
            let parameters = Parameters { strategy, ..Parameters::default() };
            let refused = strategy.feasible(&write, &parameters).unwrap_err().reason;
            assert!(refused.contains("known only once it is encoded"), "{refused}");
            if let Err(infeasible) = strategy.feasible(&inside, &parameters) {
                let foreseen = ["has no place in a file yet", "are not known beforehand"];
                assert!(foreseen.iter().any(|text| infeasible.reason.contains(text)), "{infeasible}");
                without_place += u32::from(infeasible.reason.contains(foreseen[0]));
            }
        }
    }
    assert!(without_place > 100, "{without_place} writes to chunks without a place");
}

#[test]
fn groups_that_nobody_holds_do_not_free_slots() {
    let stored = Stored::in_file(&[64], FLOAT64, "data", 0);
    // Of 16 groups of 4 elements, every other one is held.
    let of = |rank: u64| (0..8).map(|i| Piece::boxed(&[(8 * i + rank, 8 * i + rank + 1)])).collect();
    let pieces: Pieces = (0..3).map(of).collect();
    for strategy in [Strategy::ROOT_GATHER, Strategy::TWO_PHASE, Strategy::SERVER_DIRECTED, Strategy::DISK_DIRECTED] {
        for slots in [1, 2] {
            let parameters = Parameters { strategy, slots, subchunk_bytes: 32, ..Parameters::default() };
            in_pieces(&stored, &pieces, [&parameters, &parameters]);
        }
    }
}
