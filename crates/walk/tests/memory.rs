//! Buffers of a rank, coding included, stay within what it may have: in every walk, and between walks.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::{Array, rooted};
use crate::common::case::Case;
use crate::common::random::{any_array, any_parameters, any_spread};
use crate::common::{Ranks, Told, seeds};
use hyperslab_format::zarr::{BytesCodec, Codecs};
use hyperslab_layout::stored::{Change, Keys};
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section};
use hyperslab_plan::{Direction, Infeasible, Parameters, Stored, Strategy, tally};
use hyperslab_world::lockstep::Hub;
use hyperslab_world::wrappers::Shuffling;
use std::sync::Arc;

const CASES: u64 = 500;
const DIRECTIONS: [Direction; 2] = [Direction::Write, Direction::Read];

#[test]
fn buffers_stay_within_the_budget() {
    let (mut walked, mut refused) = (0, 0);
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, mut file) = (random.u32(1..6), 0);
        let arrays: Vec<Array> = (0..2).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        let store = |rank| Shuffling::new(rooted(&case.objects), seed + u64::from(rank));
        let mut on = Ranks::new(Hub::new(ranks, seed, 0), ranks, seed, store);
        // One communicator for transfers of all sizes: buffers are kept from one to the next.
        for i in 0..6 {
            let direction = DIRECTIONS[i % 2];
            let asks = (0..2).map(|array| any_spread(&mut case, array, direction)).collect();
            let transfer = case.transfer(direction, asks);
            let strategy = Strategy::ALL[case.random.usize(0..6)];
            let mut parameters = any_parameters(&mut case.random, strategy, ranks);
            parameters.buffer_bytes_max = 1 << case.random.u32(4..15);
            match strategy.feasible(&transfer, &parameters) {
                Ok(()) => {
                    for (rank, did) in case.run_on(&mut on, &transfer, &parameters, None).iter().enumerate() {
                        let most = parameters.buffer_bytes_max;
                        let told = format!("{transfer:?}\n{parameters:?}\nrank {rank}");
                        assert!(did.buffer_bytes <= most, "{told}: {} B", did.buffer_bytes);
                        let server = did.buffer_bytes > 0;
                        let pooled = on.parties[rank].pooled_bytes();
                        assert!(!server || pooled <= most, "{told}: {pooled} B are kept");
                    }
                    walked += 1;
                }
                Err(Infeasible { reason, .. }) => {
                    let budget = format!("the buffers of a rank may have {} B", parameters.buffer_bytes_max);
                    let other = ["cannot share a chunk", "are not known beforehand"].iter().any(|r| reason.contains(r));
                    assert!(other || reason.contains(&budget), "{reason}");
                    refused += u64::from(!other);
                }
            }
            case.settle();
        }
    }
    println!("{walked} walked, {refused} refused for want of memory");
    let all = seeds(CASES).end - seeds(CASES).start;
    assert!(all == 1 || (walked > 2 * all && refused > all), "{walked} walked, {refused} refused");
}

/// 4 ranks, and an array of 1 MiB in a file or in compressed chunks.
fn large(chunked: bool, direction: Direction) -> (Case, Arc<hyperslab_plan::Transfer>) {
    const SHAPE: [u64; 2] = [512, 256];
    let element = ElementType::native(Kind::Float64);
    let zstd = BytesCodec::Zstd { level: 1, checksum: false };
    let codecs = Codecs { chain: vec![zstd], ..Codecs::plain(true) };
    let stored = if chunked {
        let chunks = Stored::in_chunks(&SHAPE, element, &[8, 8], Keys::nested("a0/"), codecs.coding());
        chunks.changed(Change::Replace)
    } else {
        Stored::in_file(&SHAPE, element, "data", 0)
    };
    let array = Array::new(0, stored, element, element);
    // Chunks lie in one rank each, so that all strategies can do it; the file is cut across its rows.
    let d = Distribution::new(&SHAPE, &[2, 2], &[Dim::Block, Dim::Cyclic(8)]).unwrap();
    let ask = array.ask(Section::whole(&SHAPE), d, direction);
    let case = Case::new(fastrand::Rng::with_seed(7), 1, 4, vec![array]);
    let transfer = case.transfer(direction, vec![ask]);
    (case, transfer)
}

#[test]
fn a_transfer_of_a_hundred_times_the_budget() {
    const BUDGET: u64 = 10 << 10;
    for (chunked, direction) in
        [(false, DIRECTIONS[0]), (false, DIRECTIONS[1]), (true, DIRECTIONS[0]), (true, DIRECTIONS[1])]
    {
        for strategy in Strategy::ALL {
            let (mut case, transfer) = large(chunked, direction);
            assert!(transfer.stored_bytes() >= 100 * BUDGET);
            let (slots, subchunk_bytes) = (2, 4096);
            let servers = vec![1, 2];
            let parameters = Parameters {
                strategy,
                servers: servers.into(),
                slots,
                subchunk_bytes,
                buffer_bytes_max: BUDGET,
                ..Parameters::default()
            };
            assert_eq!(strategy.feasible(&transfer, &parameters), Ok(()), "{strategy}");
            let mut ranks = Ranks::in_memory(4, 3, &case.objects);
            let walked = case.run_on(&mut ranks, &transfer, &parameters, None);
            for (rank, did) in walked.iter().enumerate() {
                assert!(did.buffer_bytes <= BUDGET, "{strategy}, rank {rank}: {} B", did.buffer_bytes);
                let program = strategy.program(&transfer, &parameters, &Arc::default(), rank as u32, &[]);
                let slots = tally(program).slot_bytes;
                // Encoded chunks are counted besides.
                assert_eq!(chunked && did.store_bytes > 0, did.buffer_bytes > slots, "{strategy}, rank {rank}");
            }
        }
    }
}

#[test]
fn buffers_are_kept_as_far_as_the_budget_goes() {
    let array = || {
        let element = ElementType::native(Kind::Float64);
        let stored = Stored::in_file(&[4096], element, "data", 0);
        Array::new(0, stored, element, element)
    };
    let mut case = Case::new(fastrand::Rng::with_seed(7), 1, 1, vec![array()]);
    let d = Distribution::new(&[4096], &[1], &[Dim::Block]).unwrap();
    let ask = case.arrays[0].ask(Section::whole(&[4096]), d, Direction::Write);
    let transfer = case.transfer(Direction::Write, vec![ask]);
    let mut ranks = Ranks::in_memory(1, 3, &case.objects);
    // Slots and their size, the budget, and what is left in the pool afterwards.
    for (slots, subchunk_bytes, buffer_bytes_max, kept) in [
        (2, 1024, 1 << 20, 2 * 1024),
        (2, 2048, 1 << 20, 2 * 1024 + 2 * 2048),
        // Nothing new: two of those at hand will do.
        (2, 512, 1 << 20, 2 * 1024 + 2 * 2048),
        // One of 2048 and the slots of 1024 are within the budget.
        (2, 1024, 4096, 2 * 1024 + 2048),
        (1, 4096, 4096, 4096),
        (2, 64, 128, 2 * 64),
        (2, 64, 127 + 64, 2 * 64),
    ] {
        let parameters = Parameters { slots, subchunk_bytes, buffer_bytes_max, ..Parameters::default() };
        case.run_on(&mut ranks, &transfer, &parameters, None);
        assert_eq!(ranks.parties[0].pooled_bytes(), kept, "{parameters:?}");
    }
}
