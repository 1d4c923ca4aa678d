//! What a transfer of many arrays costs in agreements, messages and requests.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::array::{Array, rooted};
use crate::common::case::Case;
use crate::common::random::{any_array, any_ask, any_parameters};
use crate::common::{Ranks, Told};
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section};
use hyperslab_plan::{Direction, Parameters, Role, Stored, Strategy, tally};
use hyperslab_walk::Question;
use hyperslab_world::lockstep::Hub;
use hyperslab_world::wrappers::{Recording, Shuffling};
use std::sync::Arc;

const RANKS: u32 = 4;
const ELEMENT: ElementType = ElementType::native(Kind::Float64);

fn arrays(count: usize, elements: u64) -> Vec<Array> {
    let stored =
        |number: usize| Stored::in_file(&[elements], ELEMENT, "data", number as u64 * elements * ELEMENT.bytes());
    (0..count).map(|number| Array::new(number, stored(number), ELEMENT, ELEMENT)).collect()
}

fn questions(opens: bool, stores: bool) -> Vec<Question> {
    (0..RANKS).map(|_| Question { what: "write".into(), opens, stores, ..Question::default() }).collect()
}

#[test]
fn many_small_arrays_share_messages() {
    const ARRAYS: u64 = 2048;
    const BYTES: u64 = 4096;
    let arrays = arrays(ARRAYS as usize, BYTES / ELEMENT.bytes());
    let d = Distribution::new(&[BYTES / 8], &[u64::from(RANKS)], &[Dim::Block]).unwrap();
    let asks = arrays.iter().map(|a| a.ask(Section::whole(d.shape()), d.clone(), Direction::Write)).collect();
    let mut case = Case::new(fastrand::Rng::with_seed(3), 1, RANKS, arrays);
    let transfer = case.transfer(Direction::Write, asks);
    let servers = [1, 3].into();
    let parameters = Parameters { servers, subchunk_bytes: 1 << 20, ..Parameters::default() };
    let groups = ARRAYS * BYTES / parameters.subchunk_bytes;

    let mut ranks = Ranks::in_memory(RANKS, 7, &case.objects);
    let opened = ranks.agree(questions(true, false), &Ok(parameters.to_bytes()));
    assert!(opened.iter().all(|got| got.as_deref() == Ok(parameters.to_bytes().as_slice())));
    case.run_on(&mut ranks, &transfer, &parameters, None);
    // Of a transfer that makes something visible at its end, and of one that does not.
    for stores in [true, false] {
        assert!(ranks.agree(questions(false, stores), &Ok(Vec::new())).iter().all(Result::is_ok));
    }

    let others = u64::from(RANKS - 1);
    let hub = ranks.hub.borrow();
    assert!(ranks.parties.iter().all(|party| party.agreements == 3));
    // Each agreement goes up and down one tree; where it works in storage, rank 0 also says when it sets to work.
    assert_eq!(hub.signals_delivered, (2 + 3 + 2) * others);
    // Every rank has a part of every group, and what a server holds itself does not travel.
    assert_eq!(hub.messages, groups * others);
    assert_eq!(hub.bytes, ARRAYS * BYTES / u64::from(RANKS) * others);
    for rank in 0..RANKS {
        let tally = tally(parameters.strategy.program(&transfer, &parameters, &Arc::default(), rank, &[]));
        let to_each = |server: &u32| if *server == rank { 0 } else { groups / 2 };
        let expected: u64 = if [1, 3].contains(&rank) { groups / 2 * others } else { 0 };
        let sent: u64 = [1, 3].iter().map(to_each).sum();
        assert_eq!(tally.messages.values().sum::<u64>(), expected + sent, "rank {rank}");
        let mine = ARRAYS * BYTES / ELEMENT.bytes() / u64::from(RANKS);
        let stays = if expected > 0 { mine / 2 } else { 0 };
        assert_eq!(tally.elements_sent, mine - stays, "rank {rank}");
    }
}

#[test]
fn replicated_reads_touch_storage_once() {
    let arrays = arrays(3, 500);
    let replicated = Distribution::replicated(&[500], u64::from(RANKS)).unwrap();
    let asks: Vec<_> =
        arrays.iter().map(|a| a.ask(Section::whole(&[500]), replicated.clone(), Direction::Read)).collect();
    let mut case = Case::new(fastrand::Rng::with_seed(3), 1, RANKS, arrays);
    let transfer = case.transfer(Direction::Read, asks);
    for strategy in Strategy::ALL {
        let alone = [Strategy::INDEPENDENT, Strategy::DATA_SIEVING].contains(&strategy);
        let times = if alone { RANKS } else { 1 };
        let parameters = Parameters { strategy, servers: [0, 2].into(), subchunk_bytes: 1600, ..Parameters::default() };
        let store = |_| Recording::new(rooted(&case.objects));
        let mut ranks = Ranks::new(Hub::new(RANKS, 1, 0), RANKS, 1, store);
        let walked = case.run_on(&mut ranks, &transfer, &parameters, None);
        let read: u64 = walked.iter().map(|walked| walked.store_bytes).sum();
        assert_eq!(read, u64::from(times) * 3 * 500 * ELEMENT.bytes(), "{strategy}");
        let requests: Vec<&str> = ranks.worlds.iter().flat_map(|world| world.store.requests.clone()).collect();
        let (reads, others): (Vec<&str>, Vec<&str>) = requests.into_iter().partition(|&name| name == "read");
        assert_eq!(reads.len() as u32, times * 3 * 3, "{strategy}");
        assert!(others.is_empty(), "{strategy}: {others:?}");
        let travels = ranks.hub.borrow().bytes;
        let expected = if times == 1 { u64::from(RANKS - 1) * 3 * 500 * ELEMENT.bytes() } else { 0 };
        assert_eq!(travels, expected, "{strategy}");
    }
}

#[test]
fn replicated_writes_are_written_once() {
    let arrays = arrays(2, 600);
    let replicated = Distribution::replicated(&[600], u64::from(RANKS)).unwrap();
    let asks: Vec<_> =
        arrays.iter().map(|a| a.ask(Section::whole(&[600]), replicated.clone(), Direction::Write)).collect();
    let mut case = Case::new(fastrand::Rng::with_seed(3), 1, RANKS, arrays);
    let transfer = case.transfer(Direction::Write, asks);
    for strategy in Strategy::ALL {
        let parameters = Parameters { strategy, servers: [0, 2].into(), subchunk_bytes: 800, ..Parameters::default() };
        let walked = case.run_on(&mut Ranks::in_memory(RANKS, 1, &case.objects), &transfer, &parameters, None);
        let written: u64 = walked.iter().map(|walked| walked.store_bytes).sum();
        assert_eq!(written, 2 * 600 * ELEMENT.bytes(), "{strategy}");
        // The replicas take turns.
        let wrote = walked.iter().filter(|walked| walked.store_bytes > 0).count() as u32;
        let writers = match strategy.spec().role {
            Role::Root => 1,
            Role::Own | Role::Holders => RANKS,
            Role::Servers => 2,
        };
        assert_eq!(wrote, writers, "{strategy}: {walked:?}");
    }
}

#[test]
fn sync_is_the_last_request_of_those_who_wrote() {
    for (seed, strategy) in (0..300).flat_map(|seed| Strategy::ALL.map(|strategy| (2 * seed, strategy))) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut file = 0;
        let arrays: Vec<Array> = (0..2).map(|number| any_array(&mut random, number, &mut file)).collect();
        let asks = arrays.iter().map(|a| any_ask(&mut random, a, RANKS, Direction::Write)).collect();
        let mut case = Case::new(random, seed, RANKS, arrays);
        let transfer = case.transfer(Direction::Write, asks);
        assert!(transfer.is_synced());
        let parameters = any_parameters(&mut case.random, strategy, RANKS);
        if strategy.feasible(&transfer, &parameters).is_err() {
            continue;
        }
        let store = |_| Shuffling::new(Recording::new(rooted(&case.objects)), seed);
        let mut ranks = Ranks::new(Hub::new(RANKS, seed, 0), RANKS, seed, store);
        case.run_on(&mut ranks, &transfer, &parameters, Some(2));
        for requests in ranks.worlds.iter().map(|world| &world.store.inner.requests) {
            let syncs = requests.iter().filter(|&&name| name == "sync").count();
            assert_eq!(syncs, usize::from(!requests.is_empty()), "{strategy}: {requests:?}");
            assert!(requests.last().is_none_or(|&name| name == "sync"), "{strategy}: {requests:?}");
        }
    }
}
