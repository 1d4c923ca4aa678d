//! Explanations of small transfers, as they are printed; and that their tables agree with one another.
//!
//! After a change that is meant: `HYPERSLAB_GOLDEN=1 cargo test -p hyperslab-plan --test explained`, and look at what
//! changed in `tests/explained`.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use hyperslab_layout::stored::{Coding, Keys};
use hyperslab_layout::{
    Dim, Distribution, Durability, ElementType, Kind, Policies, Region, Section, Triplet, View, dense_strides,
};
use hyperslab_plan::{
    Choice, Direction, Effort, Exchange, Explanation, Facts, Limits, Machine, Mine, Parameters, Planner, Preference,
    Spread, Stored, Strategy, Transfer, TransferArray, explain, profile,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const BLOCKS: [Dim; 2] = [Dim::Block, Dim::Block];

const STORED: ElementType = ElementType::native(Kind::Float64);

fn file(shape: &[u64]) -> Stored {
    Stored::in_file(shape, STORED, "rho.raw", 64)
}

fn chunks(shape: &[u64], chunk: &[u64]) -> Stored {
    Stored::in_chunks(shape, STORED, chunk, Keys::nested("rho/"), Coding::Trailer)
}

fn ask(stored: Stored, section: Section, spread: Spread) -> TransferArray {
    TransferArray { name: "rho".into(), section, spread, memory: ElementType::native(Kind::Float32), stored }
}

/// All of an array on a mesh of 2 x 2 ranks.
fn whole(stored: Stored, dims: &[Dim], direction: Direction) -> Arc<Transfer> {
    let distribution = Distribution::new(&stored.shape, &[2, 2], dims).unwrap();
    let asks = vec![ask(stored.clone(), Section::whole(&stored.shape), Spread::Regular(distribution))];
    Arc::new(Transfer { direction, asks, ranks: 4, policies: Policies::of(Durability::Now) })
}

fn chosen(transfer: &Arc<Transfer>, strategy: Option<Strategy>, subchunk_bytes: Option<u64>) -> Choice {
    let hints = Preference { strategy, subchunk_bytes, servers: Some(2), ..Preference::default() };
    let (profile, machine) = (profile::built_in(), Machine { ranks_per_node: 4, cores_per_node: 4, maps_files: false });
    Planner { profile: &profile, machine, strategies: &Strategy::ALL }.choose(transfer, &hints, &|_| None).unwrap()
}

/// Where a rank's parts lie: each dense, in the order of the array's dimensions.
fn views(transfer: &Transfer, mine: &BTreeMap<u32, Vec<Mine>>, rank: u32) -> Vec<Arc<View>> {
    let view = |region: &Region, element: ElementType| {
        let order: Vec<usize> = (0..region.ndim()).collect();
        let strides = dense_strides(&region.shape(), &order, element.bytes());
        Arc::new(View::held(region, 0, &strides, element))
    };
    let of = |ask: &TransferArray| ask.spread.regular().map(|d| view(&d.owned(rank), ask.memory));
    let regular = transfer.asks.iter().filter_map(of);
    regular.chain(mine.values().flatten().map(|mine| view(&mine.region, transfer.asks[0].memory))).collect()
}

fn explained(
    transfer: &Arc<Transfer>,
    choice: &Choice,
    limits: Limits,
    mine: Vec<BTreeMap<u32, Vec<Mine>>>,
) -> Explanation {
    let facts = Facts::of_all(transfer, &choice.parameters, mine.clone());
    let facts: Vec<Arc<Facts>> = facts.into_iter().map(Arc::new).collect();
    let none = BTreeMap::new();
    explain(transfer, choice, limits, &facts, |rank| views(transfer, mine.get(rank as usize).unwrap_or(&none), rank))
}

/// Compares the text with the one that is kept, and checks that its tables agree.
fn check(name: &str, transfer: &Arc<Transfer>, choice: &Choice, mine: Vec<BTreeMap<u32, Vec<Mine>>>) {
    let told = explained(transfer, choice, Limits { rounds: 3, ..Limits::default() }, mine.clone());
    golden(&format!("{name}.txt"), &told.to_string());
    agree(name, &explained(transfer, choice, Limits { rounds: u64::MAX, ..Limits::default() }, mine));
}

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explained").join(name);
    if std::env::var_os("HYPERSLAB_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == found, "{name} differs from what is kept:\n{found}\ninstead of:\n{kept}");
}

/// What servers say of a rank must be what the rank says of itself.
fn agree(name: &str, told: &Explanation) {
    let write = told.transfer.direction == Direction::Write;
    let mut moved = 0;
    for share in &told.ranks {
        let rounds = told.rounds.iter().flat_map(|round| round.peers.iter().map(move |peer| (round.server, peer)));
        let mine: Vec<_> = rounds.filter(|(_, peer)| peer.rank == share.rank).collect();
        let others: u64 =
            mine.iter().filter(|(server, _)| *server != share.rank).map(|(_, peer)| peer.counts.bytes).sum();
        let served: u64 = told
            .rounds
            .iter()
            .filter(|round| round.server == share.rank)
            .flat_map(|round| &round.peers)
            .filter(|peer| peer.rank != share.rank)
            .map(|peer| peer.counts.bytes)
            .sum();
        let expected = if write { (others, served) } else { (served, others) };
        assert_eq!((share.sent.1.bytes, share.received.1.bytes), expected, "{name}: rank {}", share.rank);
        moved += mine.iter().map(|(_, peer)| peer.counts.elements).sum::<u64>();
    }
    let held = |ask: &TransferArray| match &ask.spread {
        Spread::Regular(d) if write => d.shape().iter().product(),
        Spread::Regular(d) => (0..4).map(|rank| d.owned(rank).elements()).sum(),
        Spread::Explicit => moved,
    };
    let held: u64 = told.transfer.asks.iter().map(held).sum();
    assert_eq!(moved, held, "{name}: elements moved");
    let json = told.to_json();
    assert_eq!(json["rounds"].as_array().map(Vec::len), Some(told.rounds.len()), "{name}");
    assert_eq!(json["servers"][0]["extents"].as_u64(), Some(told.servers[0].extents), "{name}");
}

#[test]
fn a_row_major_file_by_every_strategy() {
    let transfer = whole(file(&[16, 16]), &BLOCKS, Direction::Write);
    for strategy in Strategy::ALL {
        check(strategy.name(), &transfer, &chosen(&transfer, Some(strategy), Some(512)), Vec::new());
    }
    let read = whole(file(&[16, 16]), &[Dim::Block, Dim::Cyclic(4)], Direction::Read);
    check("data-sieving-read", &read, &chosen(&read, Some(Strategy::DATA_SIEVING), Some(512)), Vec::new());
}

#[test]
fn two_phase_between_ranks_that_share_extents() {
    let transfer = whole(file(&[16, 16]), &BLOCKS, Direction::Write);
    let mut choice = chosen(&transfer, Some(Strategy::TWO_PHASE), Some(512));
    choice.parameters.exchange = Exchange::Sharers;
    check("two-phase-sharers", &transfer, &choice, Vec::new());
}

#[test]
fn disk_directed_in_the_order_of_the_disk() {
    let transfer = whole(file(&[16, 16]), &BLOCKS, Direction::Read);
    let mut choice = chosen(&transfer, Some(Strategy::DISK_DIRECTED), Some(512));
    choice.parameters.order = vec![(2, 2), (0, 2)];
    check("disk-directed-order", &transfer, &choice, Vec::new());
}

#[test]
fn chunks_that_ranks_share_and_chunks_that_they_do_not() {
    let shared = whole(chunks(&[16, 16], &[6, 6]), &BLOCKS, Direction::Write);
    check("chunks-shared", &shared, &chosen(&shared, None, None), Vec::new());
    let own = whole(chunks(&[16, 16], &[8, 4]), &BLOCKS, Direction::Write);
    check("chunks-own", &own, &chosen(&own, None, None), Vec::new());
}

#[test]
fn a_strided_section() {
    let triplet = |start| Triplet { start, stride: 5, count: 4, block: 2 };
    let section = Section { dims: vec![triplet(0), triplet(1)] };
    let distribution = Distribution::new(&section.shape(), &[2, 2], &BLOCKS).unwrap();
    let asks = vec![ask(file(&[20, 20]), section, Spread::Regular(distribution))];
    let transfer = Arc::new(Transfer { direction: Direction::Write, asks, ranks: 4, policies: Policies::default() });
    check("section", &transfer, &chosen(&transfer, None, Some(320)), Vec::new());
}

#[test]
fn a_replicated_read() {
    let transfer = whole(file(&[16, 16]), &[Dim::Block, Dim::Whole], Direction::Read);
    check("replicated", &transfer, &chosen(&transfer, None, Some(512)), Vec::new());
}

#[test]
fn small_arrays_of_one_file() {
    // The fourth lies apart from the others.
    let arrays = [0, 128, 256, 400].map(|offset| Stored::in_file(&[4, 4], STORED, "plot.raw", offset));
    let distribution = Distribution::new(&[4, 4], &[2, 2], &BLOCKS).unwrap();
    for direction in [Direction::Write, Direction::Read] {
        let ask = |stored: &Stored| ask(stored.clone(), Section::whole(&[4, 4]), Spread::Regular(distribution.clone()));
        let transfer = Arc::new(Transfer {
            direction,
            asks: arrays.iter().map(ask).collect(),
            ranks: 4,
            policies: Policies::default(),
        });
        let given = Parameters { servers: [0].into(), ..Parameters::default() };
        let choice = Choice { parameters: given, ..chosen(&transfer, Some(Strategy::SERVER_DIRECTED), None) };
        let told = explained(&transfer, &choice, Limits { ranks: 4, rounds: 4, steps: 1000 }, Vec::new());
        let server = &told.servers[0];
        assert_eq!((server.reads + server.writes, server.extents, server.bytes), (2, 2, 512), "{told}");
        check(if server.writes > 0 { "small-arrays" } else { "small-arrays-read" }, &transfer, &choice, Vec::new());
    }
}

#[test]
fn boxes_of_each_ranks_own() {
    let boxes: [&[[(u64, u64); 2]]; 4] =
        [&[[(0, 8), (0, 8)], [(12, 16), (0, 16)]], &[[(0, 8), (8, 16)]], &[], &[[(8, 12), (4, 6)]]];
    let mine = |boxes: &&[[(u64, u64); 2]]| {
        let piece = |(number, bounds): (usize, &[(u64, u64); 2])| {
            let (low, high): (Vec<u64>, Vec<u64>) = bounds.iter().copied().unzip();
            Mine { exposed: number as u32, region: Region::boxed(&low, &high) }
        };
        BTreeMap::from([(0, boxes.iter().enumerate().map(piece).collect())])
    };
    let asks = vec![ask(file(&[16, 16]), Section::whole(&[16, 16]), Spread::Explicit)];
    let transfer = Arc::new(Transfer { direction: Direction::Write, asks, ranks: 4, policies: Policies::default() });
    check("boxes", &transfer, &chosen(&transfer, None, Some(512)), boxes.iter().map(mine).collect());
}

#[test]
fn what_is_shown_is_bounded() {
    let shape = [1 << 20];
    let distribution = Distribution::new(&shape, &[1000], &[Dim::Cyclic(1)]).unwrap();
    let asks: Vec<TransferArray> = (0..20)
        .map(|i| {
            let mut ask = ask(file(&shape), Section::whole(&shape), Spread::Regular(distribution.clone()));
            ask.name = format!("array{i}");
            ask
        })
        .collect();
    let transfer = Arc::new(Transfer { direction: Direction::Write, asks, ranks: 1000, policies: Policies::default() });
    let given = Parameters { servers: (0..1000).rev().collect(), subchunk_bytes: 1 << 16, ..Parameters::default() };
    let (profile, machine) =
        (profile::built_in(), Machine { ranks_per_node: 1000, cores_per_node: 4, maps_files: false });
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    let price = planner.price(&transfer, &given, &|_| None, Effort::QUICK);
    let (why, candidates, refused) = ("to see how it looks".into(), Vec::new(), Vec::new());
    let strategies = Strategy::ALL.to_vec();
    let choice = Choice { parameters: given, why, price, candidates, strategies, refused, unfinished: false };
    let limits = Limits { ranks: 3, rounds: 2, steps: 36_000 };
    let told = explain(&transfer, &choice, limits, &[], |_| Vec::new());
    assert_eq!((told.ranks.len(), told.servers.len(), told.more_servers), (3, 3, 997));
    // Programs of servers are longer than their part of what is looked at, so of one round there is all, of the next a part.
    let shown: Vec<(u64, u64)> = told.rounds.iter().map(|round| (round.round, round.more.0)).collect();
    assert_eq!(shown, [(0, 997), (0, 997), (0, 997), (1, 497), (1, 497), (1, 497)], "{told}");
    assert!(told.rounds.iter().all(|round| round.peers.len() == 3), "{told}");
    assert!(told.servers.iter().all(|requests| requests.cut), "{told}");
    golden("bounded.txt", &told.to_string());
}
