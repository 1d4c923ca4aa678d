//! With two slots a server's messages and storage overlap, in virtual time; with one they do not.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use crate::common::Ranks;
use crate::common::array::{Array, rooted};
use crate::common::case::Case;
use hyperslab_layout::{Dim, Distribution, ElementType, Kind, Section};
use hyperslab_plan::{Direction, Parameters, Stored, Strategy};
use hyperslab_world::lockstep::Hub;
use hyperslab_world::wrappers::Delaying;

const RANKS: u32 = 4;
const ELEMENTS: u64 = 32 << 10;
const ELEMENT: ElementType = ElementType::native(Kind::Float64);

/// Times of a transfer \[ns\].
#[derive(Debug)]
struct Times {
    /// From beginning to end.
    all: f64,
    /// What the busiest server spends on messages, and on storage.
    messages: f64,
    storage: f64,
}

/// Transfers 256 KiB in subchunks of 4 KiB over links and stores that need so many ns for each KiB.
fn time(direction: Direction, servers: u32, slots: u32, (link, storage): (u64, u64)) -> Times {
    let stored = Stored::in_file(&[ELEMENTS], ELEMENT, "data", 0);
    let array = Array::new(0, stored, ELEMENT, ELEMENT);
    // Every rank has something of every subchunk, and no rank everything: a quarter of the bytes need no message.
    let d = Distribution::new(&[ELEMENTS], &[u64::from(RANKS)], &[Dim::Cyclic(16)]).unwrap();
    let ask = array.ask(Section::whole(&[ELEMENTS]), d, direction);
    let mut case = Case::new(fastrand::Rng::with_seed(3), 1, RANKS, vec![array]);
    let transfer = case.transfer(direction, vec![ask]);
    let parameters = Parameters {
        strategy: Strategy::SERVER_DIRECTED,
        servers: (0..servers).collect(),
        slots,
        subchunk_bytes: 4 << 10,
        ..Parameters::default()
    };
    let hub = Hub::new(RANKS, 5, link);
    let store = |_| Delaying::new(rooted(&case.objects), &hub, storage);
    let mut ranks = Ranks::new(hub.clone(), RANKS, 5, store).eager();
    case.run_on(&mut ranks, &transfer, &parameters, None);
    let messages = hub.borrow().bytes * link / 1024 / u64::from(servers);
    let storage = ranks.worlds.iter().map(|world| world.store.busy_ns).max().unwrap();
    let all = hub.borrow().now_ns();
    Times { all: all as f64, messages: messages as f64, storage: storage as f64 }
}

#[test]
fn two_slots_overlap_messages_and_storage() {
    for direction in [Direction::Write, Direction::Read] {
        for servers in [1, 2] {
            for rates in [(4000, 3000), (1000, 4000), (8000, 1000)] {
                let two = time(direction, servers, 2, rates);
                assert!(two.all <= 1.2 * two.messages.max(two.storage), "{direction:?}, {servers} server(s): {two:?}");
                let one = time(direction, servers, 1, rates);
                let sum = one.messages + one.storage;
                assert!((one.all - sum).abs() <= 0.1 * sum, "{direction:?}, {servers} server(s), one slot: {one:?}");
            }
        }
    }
}
