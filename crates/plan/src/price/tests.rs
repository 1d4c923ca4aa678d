//! Checks of the model against what was worked out by hand.

use super::look::Look;
use super::pipeline::delays;
use super::*;
use crate::choose::Planner;
use crate::profile::{Cache, Disk, Layout, Profile, Requests, Topology, built_in};
use crate::strategy::Strategy;
use crate::transfer::{Direction, Exchange, Spread, TransferArray};
use hyperslab_layout::stored::{Change, Coding, Keys, Stored};
use hyperslab_layout::{
    Axis, Codec, CodecError, Dim, Distribution, ElementType, IndexSet, Kind, Listed, Policies, Section, ShardIndex,
    Term, Triplet, View,
};

const US: f64 = 1e3;
const MS: f64 = 1e6;

/// A server asks two clients and takes their data in order (Chen et al. 1996, figure 1 (b)): it waits for the first as
/// long as that one takes, but for asking the second; the second has answered meanwhile.
#[test]
fn a_server_waits_for_what_asking_and_receiving_do_not_hide() {
    // Asking takes 10 us each, the clients answer after 100 us and 90 us, receiving takes 30 us each.
    // D(1) = 100 - 10 = 90; D(2) = max(0, 90 - (90 + 30)) = 0.
    assert_eq!(delays(20.0 * US, &[(100.0 * US, 30.0 * US), (90.0 * US, 30.0 * US)]), 90.0 * US);
    // A slow second one: D(2) = 200 - (90 + 30) = 80.
    assert_eq!(delays(20.0 * US, &[(100.0 * US, 30.0 * US), (200.0 * US, 30.0 * US)]), 170.0 * US);
    // So many clients that the first has answered before the last is asked: D = 0.
    let many = vec![(100.0 * US, 30.0 * US); 20];
    assert_eq!(delays(20.0 * 10.0 * US, &many), 0.0);
    assert_eq!(delays(0.0, &[]), 0.0);
}

/// A machine of round numbers: nodes of one rank each, and a local disk that writes behind.
fn round_numbers() -> Profile {
    let mut profile = built_in();
    profile.measured = None;
    profile.nodes = crate::profile::Nodes { ranks_per_node: 1, cores_per_node: 1 };
    let processor = &mut profile.processor;
    (processor.copy_rate, processor.run_ns, processor.step_ns, processor.piece_ns) = (1e9, 0.0, 100.0 * US, 50.0 * US);
    let messages = &mut profile.messages;
    (messages.send_ns, messages.receive_ns) = (10.0 * US, 20.0 * US);
    (messages.send_byte_ns, messages.receive_byte_ns) = (10.0, 20.0);
    (messages.slot_run_ns, messages.array_run_ns) = (0.0, 0.0);
    (messages.eager_bytes, messages.header_bytes, messages.bytes_max) = (1 << 30, 0, 1 << 30);
    messages.requests = Requests::Slots;
    profile.network.topology = Topology::Switch;
    (profile.network.latency_ns, profile.network.link_rate) = (5.0 * US, 1e15);
    let storage = &mut profile.storage;
    (storage.call_ns, storage.call_byte_ns, storage.calls_at_once) = (30.0 * US, 0.0, 1);
    storage.cache = Cache::WriteBehind { limit_bytes: 1 << 40, copy_rate: 1e9, cluster_bytes: 1 };
    storage.disk = Disk::Rated { read_rate: 1e6, write_rate: 1e6, position_ns: 0.0, request_ns: 0.0 };
    let servers = &mut storage.servers;
    (servers.layout, servers.disks) = (Layout::Local, 1);
    (servers.request_ns, servers.write_byte_ns, servers.read_byte_ns) = (0.0, 0.0, 0.0);
    profile
}

/// Arrays of 8 x 8 elements of 8 B, one chunk each, on a mesh of 2 x 1 clients, with rank 2 as server.
fn arrays(count: usize) -> Arc<Transfer> {
    let shape = vec![8, 8];
    let distribution = Distribution::new(&shape, &[2], &[Dim::Block, Dim::Whole]).unwrap();
    let element = ElementType::native(Kind::Float64);
    let ask = |number: usize| {
        let stored = Stored::in_chunks(&shape, element, &shape, Keys::nested(format!("a{number}/")), Coding::Plain);
        let (name, section) = (format!("a{number}"), Section::whole(&shape));
        TransferArray { name, section, spread: Spread::Regular(distribution.clone()), memory: element, stored }
    };
    Arc::new(Transfer {
        direction: Direction::Write,
        asks: (0..count).map(ask).collect(),
        ranks: 3,
        policies: Policies::of(Durability::Now),
    })
}

fn panda() -> Parameters {
    let servers = [2].into();
    Parameters { strategy: Strategy::SERVER_DIRECTED, servers, slots: 1, subchunk_bytes: 1, ..Parameters::default() }
}

fn careful(profile: &Profile, transfer: &Arc<Transfer>) -> Price {
    let machine = Machine { ranks_per_node: 1, cores_per_node: 1, maps_files: false };
    Pricing::new(Priced { profile, machine }, transfer, &|_| None).price(&panda(), Effort::CAREFUL)
}

/// Panda 2.0.5 is one instance: one buffer, each chunk by itself, clients asked first, data taken in order.
///
/// A subchunk of 512 B overlaps two clients with 256 B each. Formulas F7 to F13:
///
/// ```text
/// T_find                        100 us
/// 2 (T_bound + send(request))   2 (50 + 10)                                           = 120 us
/// H                             wire 5 + receive 20 + send 10 + 256 x 10 ns + wire 5  = 42.56 us
/// D(1)                          H - send(request) to the second = 42.56 - 10          = 32.56 us
/// 2 recv(256 B)                 2 (20 + 256 x 20 ns)                                  = 50.24 us
/// T_fs                          call 30 + copy 512 x 1 ns                             = 30.512 us
/// ```
#[test]
fn panda_s_subchunk_costs_what_the_formulas_say() {
    let mut fast = round_numbers();
    fast.storage.disk = Disk::Instant;
    let subchunk = (100.0 + 120.0 + 32.56 + 50.24 + 30.512) * US;
    let one = careful(&fast, &arrays(1));
    assert!((one.moving_ns() - subchunk).abs() < 1.0, "{one:?}, expected {subchunk}");
    // With one buffer, subchunks follow each other.
    let ten = careful(&fast, &arrays(10));
    assert!((ten.moving_ns() - 10.0 * subchunk).abs() < 10.0, "{ten:?}");
    assert_eq!(ten.bottleneck, Resource::Server);
}

/// F14: what the disk has not written when the last subchunk is accepted is waited for.
#[test]
fn a_slow_disk_is_waited_for_at_the_end() {
    let slow = round_numbers();
    // 1000 subchunks of 512 B at 1 MB/s: 512 ms; assembling takes 333 ms.
    let price = careful(&slow, &arrays(1000));
    assert!((price.moving_ns() - 512.0 * MS).abs() < 1.0 * MS, "{price:?}");
    assert!((price.phase(Phase::Sync) - (512.0 - 333.3) * MS).abs() < 2.0 * MS, "{price:?}");
}

/// What is shared bounds the whole: two servers of one node with one core take turns.
#[test]
fn cores_are_shared() {
    let mut profile = round_numbers();
    profile.storage.disk = Disk::Instant;
    let parameters = Parameters { servers: [0, 1].into(), ..panda() };
    let priced =
        Priced { profile: &profile, machine: Machine { ranks_per_node: 3, cores_per_node: 1, maps_files: false } };
    let transfer = arrays(64);
    let price = Pricing::new(priced, &transfer, &|_| None).price(&parameters, Effort::CAREFUL);
    let [server, cores] = [Resource::Server, Resource::Cores].map(|one| price.resources[one as usize]);
    assert!((cores - 2.0 * server).abs() < 0.01 * cores, "{price:?}");
    assert_eq!((price.bottleneck, price.moving_ns()), (Resource::Cores, cores));
}

/// Prices are finite and above zero for every strategy, on a machine whose numbers are as odd as a profile may hold.
#[test]
fn odd_numbers_make_odd_prices_and_no_panic() {
    let mut odd = built_in();
    odd.processor.copy_rate = 1e-3;
    odd.storage.call_ns = 0.0;
    if let Some(measured) = &mut odd.measured {
        (measured.files.write_rate, measured.neighbours.rate, measured.files.sync_rate) = (1e-3, 1e-3, 1e18);
    }
    let transfer = arrays(3);
    for strategy in Strategy::ALL {
        let parameters = Parameters { strategy, subchunk_bytes: 1 << 20, ..panda() };
        if strategy.feasible(&transfer, &parameters).is_err() {
            continue;
        }
        for ranks_per_node in [0, 1, 1000] {
            let machine = Machine { ranks_per_node, cores_per_node: 0, maps_files: false };
            let priced = Priced { profile: &odd, machine };
            let price = Pricing::new(priced, &transfer, &|_| None).price(&parameters, Effort::QUICK);
            assert!(price.ns().is_finite() && price.ns() > 0.0, "{strategy}: {price:?}");
        }
    }
}

#[test]
fn guard_cells_lie_between_the_rows_of_every_rank() {
    // 6 x 5 elements of 4 B with a halo of one cell on every side, the first dimension the fastest.
    let laid = MemoryLayout::new(&[(6, 4), (5, 32)], 4);
    assert_eq!((laid.order.clone(), laid.pitch, laid.padding.clone()), (vec![1, 0], 4, vec![2, 0]));
    assert_eq!(laid.strides(&[6, 5]), [4, 32]);
    assert_eq!(laid.strides(&[3, 9]), [4, 20]);
    // Interleaved with another variable, and of one row, whose distance to the next says nothing.
    assert_eq!(
        MemoryLayout::new(&[(1, 1), (7, 8)], 4),
        MemoryLayout { order: vec![1, 0], pitch: 4, padding: vec![1, 0], held: vec![1, 7], scattered: false }
    );
    assert_eq!(
        MemoryLayout::new(&[(7, 56), (7, 8)], 4),
        MemoryLayout { order: vec![0, 1], pitch: 8, padding: vec![0, 0], held: vec![7, 7], scattered: false }
    );
}

/// A section of every `step`-th index of an array of 37 x 24 x 10 elements, on a mesh.
fn every(
    memory: Kind,
    (mesh, dims): &(&[u64], [Dim; 3]),
    order: &[usize],
    direction: Direction,
    (step, stored): (u64, Stored),
) -> Arc<Transfer> {
    let shape = stored.shape.clone();
    let triplet = |&n: &u64| Triplet { start: 0, stride: step, count: n / step, block: 1 };
    let section = Section { dims: shape.iter().map(triplet).collect() };
    let spread = Spread::Regular(Distribution::new(&section.shape(), mesh, dims).unwrap());
    let (memory, stored) = (ElementType::native(memory), stored.ordered(order.to_vec()));
    let ask = TransferArray { name: "a".into(), section, spread, memory, stored };
    Arc::new(Transfer {
        direction,
        asks: vec![ask],
        ranks: mesh.iter().product::<u64>() as u32,
        policies: Policies::default(),
    })
}

/// Of each byte it is known that it moves once, so what a careful look sees needs no correction.
#[test]
fn a_careful_look_sees_each_byte_once() {
    let kinds = [(Kind::Float64, Kind::Float64), (Kind::Float64, Kind::Float32), (Kind::UInt8, Kind::UInt8)];
    let meshes: [(&[u64], [Dim; 3]); 4] = [
        (&[5], [Dim::Block, Dim::Whole, Dim::Whole]),
        (&[5], [Dim::Whole, Dim::Cyclic(3), Dim::Whole]),
        (&[2, 2], [Dim::Block, Dim::Whole, Dim::Cyclic(1)]),
        (&[2, 3], [Dim::Whole, Dim::Block, Dim::Block]),
    ];
    let orders: [&[usize]; 2] = [&[0, 1, 2], &[2, 1, 0]];
    let mut seen = 0;
    let shape = [37, 24, 10];
    let chunks = |element, coding| {
        Stored::in_chunks(&shape, element, &[10, 24, 3], Keys::nested("a/"), coding).changed(Change::Replace)
    };
    let stored = |element, case| match case {
        0 => Stored::in_file(&shape, element, "f", 24),
        1 => chunks(element, Coding::Plain),
        _ => chunks(element, Coding::Trailer),
    };
    for case in 0..3 * 4 * 2 * 2 * 2 * 3 * Strategy::ALL.len() {
        let (kind, mesh, order) = (kinds[case % 3], &meshes[case / 3 % 4], orders[case / 12 % 2]);
        let direction = [Direction::Write, Direction::Read][case / 24 % 2];
        let (step, stored) = (1 + case as u64 / 48 % 2, stored(ElementType::native(kind.1), case / 96 % 3));
        let strategy = Strategy::ALL[case / 288];
        let transfer = every(kind.0, mesh, order, direction, (step, stored.clone()));
        let parameters = Parameters { strategy, servers: [0, 2].into(), subchunk_bytes: 4096, ..Parameters::default() };
        if strategy.feasible(&transfer, &parameters).is_err() {
            continue;
        }
        let class = &classes::of(&transfer, &|_| None)[0];
        let machine = Machine { ranks_per_node: 1, cores_per_node: 1, maps_files: false };
        let memories = Memories::new(class, &|_| None, Priced { profile: &built_in(), machine });
        let look = Look::at(class, &parameters, &memories, Effort::CAREFUL, true);
        let shares = (look.share, look.most);
        assert!(
            (shares.0 - 1.0).abs() < 1e-9,
            "{kind:?} {mesh:?} {order:?} {direction:?} {step} {stored:?} {strategy:?}: {shares:?}"
        );
        seen += 1;
    }
    assert!(seen > 400, "{seen} cases are feasible");
}

/// Where rounds are alike, a quick look at some of them needs next to no correction either, also of converted elements.
#[test]
fn a_quick_look_at_equal_rounds_sees_about_what_moves() {
    let shape = vec![1 << 20];
    for case in 0..2 * 2 * Strategy::ALL.len() {
        let (wide, direction) = (case % 2 == 0, [Direction::Write, Direction::Read][case / 2 % 2]);
        let (memory, stored) = if wide { (Kind::Float64, Kind::Float32) } else { (Kind::Float32, Kind::Float64) };
        let (memory, element) = (ElementType::native(memory), ElementType::native(stored));
        let stored = Stored::in_file(&shape, element, "f", 0);
        let spread = Spread::Regular(Distribution::new(&shape, &[8], &[Dim::Block]).unwrap());
        let ask = TransferArray { name: "a".into(), section: Section::whole(&shape), spread, memory, stored };
        let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks: 8, policies: Policies::default() });
        let (strategy, servers) = (Strategy::ALL[case / 4], (0..8).collect());
        let parameters = Parameters { strategy, servers, subchunk_bytes: 16 << 10, ..Parameters::default() };
        let class = &classes::of(&transfer, &|_| None)[0];
        let machine = Machine { ranks_per_node: 1, cores_per_node: 1, maps_files: false };
        let memories = Memories::new(class, &|_| None, Priced { profile: &built_in(), machine });
        let look = Look::at(class, &parameters, &memories, Effort::QUICK, true);
        let shares = (look.share, look.most);
        assert!(
            (0.9..1.1).contains(&shares.0) && (0.9..1.1).contains(&shares.1),
            "{strategy:?} {direction:?}: {shares:?}"
        );
    }
}

/// What is made durable is the same whoever writes it: chunks that reach beyond the array are whole files, too.
#[test]
fn making_durable_takes_as_long_however_many_write_a_fixed_number_of_chunks() {
    let (shape, chunk) = (vec![15, 68, 47, 51], vec![15, 40, 26, 33]);
    let element = ElementType::native(Kind::UInt8);
    let stored = Stored::in_chunks(&shape, element, &chunk, Keys::nested("a/"), Coding::Trailer);
    let spread = Spread::Regular(Distribution::new(&shape, &[4, 1, 1, 2], &[const { Dim::Block }; 4]).unwrap());
    let ask = TransferArray { name: "a".into(), section: Section::whole(&shape), spread, memory: element, stored };
    let transfer = Arc::new(Transfer {
        direction: Direction::Write,
        asks: vec![ask],
        ranks: 8,
        policies: Policies::of(Durability::Now),
    });
    let profile = built_in();
    let machine = Machine { ranks_per_node: 8, cores_per_node: 2, maps_files: false };
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    let sync = |strategy, servers: u32, exchange| {
        let servers = (0..servers).collect();
        let parameters = Parameters { strategy, servers, exchange, ..Parameters::default() };
        planner.price(&transfer, &parameters, &|_| None, Effort::QUICK).phase(Phase::Sync)
    };
    let one = sync(Strategy::SERVER_DIRECTED, 1, Exchange::All);
    assert!(one > 0.0);
    for (strategy, servers, exchange) in [
        (Strategy::SERVER_DIRECTED, 3, Exchange::All),
        (Strategy::SERVER_DIRECTED, 8, Exchange::All),
        (Strategy::TWO_PHASE, 2, Exchange::All),
        (Strategy::TWO_PHASE, 8, Exchange::Sharers),
    ] {
        let other = sync(strategy, servers, exchange);
        assert!((other / one - 1.0).abs() < 1e-9, "{strategy} by {servers}: {other} ns, by one {one} ns");
    }
}

/// Two ranks with half of each row of an array each, which is moved so.
fn halves_of_rows(direction: Direction, shape: [u64; 2], stored: Stored) -> Price {
    let spread = Spread::Regular(Distribution::new(&shape, &[2], &[Dim::Whole, Dim::Block]).unwrap());
    let (section, memory) = (Section::whole(&shape), stored.element);
    let ask = TransferArray { name: "a".into(), section, spread, memory, stored };
    let policies = Policies::of(Durability::Now);
    let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks: 2, policies });
    let (profile, machine) = (built_in(), Machine { ranks_per_node: 2, cores_per_node: 2, maps_files: false });
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    let parameters = Parameters { strategy: Strategy::INDEPENDENT, ..Parameters::default() };
    planner.price(&transfer, &parameters, &|_| None, Effort::CAREFUL)
}

/// The first ranks hold the beginning of the file: who serves all of it sends most of it to others.
#[test]
fn a_quick_look_sees_rounds_from_all_over_a_file() {
    let shape = [6848, 769];
    let element = ElementType::native(Kind::Int16);
    let held = Distribution::new(&shape, &[2], &[Dim::Blocks(vec![1731, 6848].into()), Dim::Whole]).unwrap();
    let chunks = Stored::in_chunks(&shape, element, &[119, 276], Keys::nested("a/"), Coding::Trailer);
    let profile = built_in();
    let machine = Machine { ranks_per_node: 2, cores_per_node: 2, maps_files: false };
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    for (stored, direction) in [
        (chunks.clone(), Direction::Read),
        (chunks, Direction::Write),
        (Stored::in_file(&shape, element, "a", 0), Direction::Read),
    ] {
        let (section, spread) = (Section::whole(&shape), Spread::Regular(held.clone()));
        let ask = TransferArray { name: "a".into(), section, spread, memory: element, stored };
        let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks: 2, policies: Policies::default() });
        for strategy in [Strategy::ROOT_GATHER, Strategy::SERVER_DIRECTED, Strategy::TWO_PHASE] {
            let servers = if strategy == Strategy::ROOT_GATHER { vec![0] } else { vec![0, 1] };
            let parameters = Parameters { strategy, servers: servers.into(), ..Parameters::default() };
            let [quick, careful] = [Effort::QUICK, Effort::CAREFUL]
                .map(|effort| planner.price(&transfer, &parameters, &|_| None, effort).moving_ns());
            let ratio = quick / careful;
            assert!(ratio > 0.75 && ratio < 1.3, "{strategy} {direction:?}: {quick} ns in place of {careful}");
        }
    }
}

/// Of each cell the variables lie beside each other in memory; in the file each variable is by itself.
#[test]
fn lines_that_stay_in_the_cache_come_from_memory_once() {
    let element = ElementType::native(Kind::Float64);
    let profile = built_in();
    let machine = Machine { ranks_per_node: 1, cores_per_node: 2, maps_files: true };
    let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
    // By element, of the first so many of 24 variables in memory.
    let exchange = |variables: u64, cells: u64, subchunk: u64| {
        let shape = [variables, cells];
        let held = Distribution::new(&shape, &[1], &[Dim::Whole, Dim::Block]).unwrap();
        let laid = MemoryLayout {
            order: vec![1, 0],
            pitch: 8,
            padding: vec![24 - variables, 0],
            held: shape.to_vec(),
            scattered: false,
        };
        let ask = TransferArray {
            name: "a".into(),
            section: Section::whole(&shape),
            spread: Spread::Regular(held),
            memory: element,
            stored: Stored::in_file(&shape, element, "data", 0),
        };
        let policies = Policies::default();
        let transfer = Arc::new(Transfer { direction: Direction::Read, asks: vec![ask], ranks: 1, policies });
        let subchunk_bytes = 8 * subchunk;
        let parameters = Parameters { strategy: Strategy::INDEPENDENT, subchunk_bytes, ..Parameters::default() };
        let price = planner.price(&transfer, &parameters, &|_| Some(laid.clone()), Effort::CAREFUL);
        price.moving_ns() / (variables * cells) as f64
    };
    // 2 MiB of lines stay from one variable to the next, 64 MiB do not.
    let [few, many] = [1 << 15, 1 << 20].map(|cells| exchange(24, cells, cells));
    assert!(many > 2.0 * few, "{many} ns, {few} ns");
    // Nor where only a part of them is moved at a time.
    let parts = exchange(24, 1 << 20, 1 << 15);
    assert!(parts > 2.0 * few, "{parts} ns, {few} ns");
    // Where nothing else of a line is wanted, it has come for nothing.
    assert!(exchange(1, 1 << 15, 1 << 15) > 1.5 * few);
}

/// 256 ranges of four pages of each rank, which lie in one folio each, or in three.
#[test]
fn ranges_between_folios_take_longer_to_write_and_to_sync() {
    let shape = [256, 4096];
    let at = |byte: u64| {
        let stored = Stored::in_file(&shape, ElementType::native(Kind::Float64), "data", byte);
        halves_of_rows(Direction::Write, shape, stored)
    };
    let (aligned, between) = (at(0), at(128));
    let further = 2.0 * 256.0 * 2.0 * built_in().measured.unwrap().files.write_range_ns;
    let more = |phase| between.phase(phase) - aligned.phase(phase);
    let (written, synced) = (more(Phase::Storage), more(Phase::Sync));
    // The file's lock lets one in at a time; a part of what is synced is sent while the rest is written.
    assert!((0.5 * further..1.1 * further).contains(&written), "{written} ns of {further} ns");
    assert!((0.2 * further..1.1 * further).contains(&synced), "{synced} ns of {further} ns");
}

#[derive(Debug)]
struct Coded {
    compresses: bool,
}

impl Codec for Coded {
    fn encode(&self, plain: &[u8], _object: &str) -> Result<Vec<u8>, CodecError> {
        Ok(plain.to_vec())
    }

    fn decode(&self, stored: &[u8], _plain_bytes: u64, _object: &str) -> Result<Vec<u8>, CodecError> {
        Ok(stored.to_vec())
    }

    fn encoded_bytes_max(&self, plain_bytes: u64) -> u64 {
        plain_bytes
    }

    fn compresses(&self) -> bool {
        self.compresses
    }

    fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }

    fn index(&self) -> Option<&dyn ShardIndex> {
        None
    }

    fn numbering(&self) -> Option<&hyperslab_layout::Numbering> {
        None
    }
}

/// The first chunks of a section have one row of it each, so that little is copied out of them.
#[test]
fn whole_chunks_are_decoded_however_little_is_read_of_the_first() {
    let (shape, chunk, rows) = ([256, 131_072], [32, 512], 31..256);
    let element = ElementType::native(Kind::Float64);
    let moving = |coding| {
        let stored = Stored::in_chunks(&shape, element, &chunk, Keys::nested("a/"), coding);
        let section = Section::of([Triplet::from(rows.clone()), Triplet::from(0..shape[1])]);
        let held = Distribution::new(&[rows.end - rows.start, shape[1]], &[2], &[Dim::Whole, Dim::Block]).unwrap();
        let ask = TransferArray { name: "a".into(), section, spread: Spread::Regular(held), memory: element, stored };
        let (direction, policies) = (Direction::Read, Policies::default());
        let transfer = Arc::new(Transfer { direction, asks: vec![ask], ranks: 2, policies });
        let (profile, machine) = (built_in(), Machine { ranks_per_node: 2, cores_per_node: 2, maps_files: false });
        let planner = Planner { profile: &profile, machine, strategies: &Strategy::ALL };
        let parameters = Parameters { strategy: Strategy::INDEPENDENT, ..Parameters::default() };
        planner.price(&transfer, &parameters, &|_| None, Effort::QUICK).moving_ns()
    };
    let coded = |compresses| moving(Coding::Encoded(Arc::new(Coded { compresses })));
    let (processor, bytes) = (built_in().processor, (shape[0] * shape[1] * 8 / 2) as f64 * 1e9);
    let expected = bytes / processor.code_rate - 2.0 * bytes / processor.copy_rate;
    let found = coded(true) - coded(false);
    assert!((0.9..1.1).contains(&(found / expected)), "{found} ns for {expected} ns");
}

#[test]
fn codecs_that_do_not_compress_cost_two_copies() {
    let (shape, chunk) = ([1024, 1024], [256, 512]);
    let element = ElementType::native(Kind::Float64);
    for direction in [Direction::Read, Direction::Write] {
        let moving = |coding| {
            let stored = Stored::in_chunks(&shape, element, &chunk, Keys::nested("a/"), coding);
            halves_of_rows(direction, shape, stored).moving_ns()
        };
        let coded = |compresses| moving(Coding::Encoded(Arc::new(Coded { compresses })));
        let processor = built_in().processor;
        let bytes = (1024 * 512 * 8) as f64 * 1e9;
        let expected = bytes / processor.code_rate - 2.0 * bytes / processor.copy_rate;
        let found = coded(true) - coded(false);
        // A chunk is encoded while the one before it is written.
        assert!((0.85..1.05).contains(&(found / expected)), "{direction:?}: {found} ns for {expected} ns");
    }
}

/// What takes so many milliseconds: 64 rounds of 1 MiB of one file, which `servers` of 4 ranks write; exchanging a round
/// takes a millisecond times `exchange`, and writing it a millisecond.
fn rounds_of_one_file(servers: &[u32], cores_per_node: u32, exchange: f64) -> f64 {
    const ROUND: u64 = 1 << 20;
    let mut profile = built_in();
    let rate = ROUND as f64 * 1e3;
    let measured = profile.measured.as_mut().expect("the built-in profile is of a machine at hand");
    let files = &mut measured.files;
    (files.write_ns, files.write_range_ns, files.gather_ns, files.writers) = (0.0, 0.0, 0.0, 1);
    (files.write_rate, files.write_rate_kept) = (rate, rate);
    let near = &mut measured.neighbours;
    (near.message_ns, near.rate, near.run_ns, near.array_run_ns, near.wake_ns) = (0.0, rate / exchange, 0.0, 0.0, 0.0);
    measured.agreements.crowded_ns = 0.0;
    let processor = &mut profile.processor;
    (processor.copy_rate, processor.run_ns, processor.step_ns, processor.piece_ns) = (rate / exchange, 0.0, 0.0, 0.0);

    let shape = vec![64 * ROUND / 8];
    let element = ElementType::native(Kind::Float64);
    let stored = Stored::in_file(&shape, element, "data", 0);
    let spread = Spread::Regular(Distribution::new(&shape, &[4], &[Dim::Block]).unwrap());
    let ask = TransferArray { name: "a".into(), section: Section::whole(&shape), spread, memory: element, stored };
    let transfer =
        Arc::new(Transfer { direction: Direction::Write, asks: vec![ask], ranks: 4, policies: Policies::default() });
    let strategy = Strategy::SERVER_DIRECTED;
    let parameters =
        Parameters { strategy, servers: servers.into(), slots: 2, subchunk_bytes: ROUND, ..Parameters::default() };
    let machine = Machine { ranks_per_node: 4, cores_per_node, maps_files: false };
    let price = Pricing::new(Priced { profile: &profile, machine }, &transfer, &|_| None);
    price.price(&parameters, Effort::CAREFUL).moving_ns() / MS
}

fn near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.03
}

#[test]
fn a_rank_stores_beside_exchanging_only_where_a_core_is_free() {
    let free = rounds_of_one_file(&[0], 8, 1.0);
    assert!(near(free, 65.0), "one round after the other, each beside the next: {free}");
    let none = rounds_of_one_file(&[0], 4, 1.0);
    assert!(near(none, 128.0), "one thing after the other: {none}");
    // Its work is spread over 2 cores, on which other ranks want to run, too: the root of 128 and 64, squared and added.
    let crowded = rounds_of_one_file(&[0], 2, 1.0);
    assert!(near(crowded, 128.0_f64.hypot(64.0)), "{crowded}");
}

#[test]
fn writers_of_one_file_take_turns_and_are_not_at_work_meanwhile() {
    // Where exchanging takes next to nothing, the file's lock is all there is, however many cores and writers.
    for (servers, cores) in [(&[0, 2][..], 8), (&[0, 2], 2), (&[0, 1, 2, 3], 2), (&[0, 1, 2, 3], 4)] {
        let locked = rounds_of_one_file(servers, cores, 1e-6);
        assert!(near(locked, 64.0), "{servers:?} on {cores} cores: {locked}");
    }
    // Nobody writes before the first exchange is over.
    let begun = rounds_of_one_file(&[0, 2], 8, 1.0);
    assert!((begun - 65.0).abs() < 0.1, "{begun}");
    // Exchanging twice as long as writing keeps the turns of two writers apart, but for the first.
    let apart = rounds_of_one_file(&[0, 2], 4, 2.0);
    assert!(near(apart, 32.0 * 3.0 + 1.0), "{apart}");
}

/// Chunks of 1 MiB, each of which takes a millisecond to read, in 100 rows of a whole one and one that begins where the
/// array ends soon: each rank reads all of 50 rows of two, however little it wants of the second.
#[test]
fn chunks_with_checksums_are_read_whole_whatever_is_wanted_of_them() {
    let mut profile = built_in();
    let measured = profile.measured.as_mut().expect("the built-in profile is of a machine at hand");
    let files = &mut measured.files;
    (files.open_ns, files.read_ns, files.read_rate, files.read_range_ns) = (0.0, 0.0, (1u64 << 20) as f64 * 1e3, 0.0);
    measured.neighbours.rate = 1e15;
    let processor = &mut profile.processor;
    (processor.copy_rate, processor.run_ns, processor.step_ns, processor.piece_ns) = (1e15, 0.0, 0.0, 0.0);

    let shape = vec![128 * 100, 1024 + 100];
    let element = ElementType::native(Kind::Float64);
    let stored = Stored::in_chunks(&shape, element, &[128, 1024], Keys::nested("a/"), Coding::Trailer);
    let stored = stored.changed(Change::Replace);
    let spread = Spread::Regular(Distribution::new(&shape, &[2], &[Dim::Block, Dim::Whole]).unwrap());
    let ask = TransferArray { name: "a".into(), section: Section::whole(&shape), spread, memory: element, stored };
    let transfer =
        Arc::new(Transfer { direction: Direction::Read, asks: vec![ask], ranks: 2, policies: Policies::default() });
    let machine = Machine { ranks_per_node: 2, cores_per_node: 8, maps_files: false };
    let price = Pricing::new(Priced { profile: &profile, machine }, &transfer, &|_| None);
    for effort in [Effort::QUICK, Effort::CAREFUL] {
        let parameters = Parameters { strategy: Strategy::INDEPENDENT, ..Parameters::default() };
        let own = price.price(&parameters, effort).moving_ns() / MS;
        assert!(near(own, 100.0), "each rank its own: {own}");
        let one = Parameters { strategy: Strategy::SERVER_DIRECTED, servers: [0].into(), ..Parameters::default() };
        let one = price.price(&one, effort).moving_ns() / MS;
        assert!(near(one, 200.0), "by one server: {one}");
    }
}

/// Three groups of a file, each of which all of 8 ranks hold a part of: some ranks handle one, others none, whoever is looked at.
/// It costs about what it costs where the first three ranks do, and never nothing.
#[test]
fn what_few_of_many_sharers_handle_costs_what_they_do() {
    let profile = built_in();
    let machine = Machine { ranks_per_node: 8, cores_per_node: 2, maps_files: false };
    let element = ElementType::native(Kind::Float64);
    for (rows, mesh) in [(3u64, [1u64, 8]), (3, [8, 1]), (5, [1, 8]), (7, [2, 4])] {
        let shape = vec![rows * 32, 1024];
        let spread = Spread::Regular(Distribution::new(&shape, &mesh, &[Dim::Cyclic(1), Dim::Block]).unwrap());
        let stored = Stored::in_file(&shape, element, "a", 0);
        let ask = TransferArray { name: "a".into(), section: Section::whole(&shape), spread, memory: element, stored };
        let transfer = Arc::new(Transfer {
            direction: Direction::Write,
            asks: vec![ask],
            ranks: 8,
            policies: Policies::default(),
        });
        let pricing = Pricing::new(Priced { profile: &profile, machine }, &transfer, &|_| None);
        let with = |strategy, exchange, servers: Vec<u32>| {
            let subchunk_bytes = 256 << 10;
            let all =
                Parameters { strategy, exchange, servers: servers.into(), subchunk_bytes, ..Parameters::default() };
            pricing.price(&all, Effort::QUICK).moving_ns()
        };
        let sharers = with(Strategy::TWO_PHASE, Exchange::Sharers, vec![0]);
        let turns = with(Strategy::SERVER_DIRECTED, Exchange::All, (0..8).collect());
        assert!((0.5..2.0).contains(&(sharers / turns)), "{rows} on {mesh:?}: {sharers} beside {turns} ns");
    }
}

/// 128 new arrays of one chunk: their directories lie in one, in which two ranks wait for each other; the metadata and the chunk
/// each in its own, where nobody waits.
#[test]
fn who_makes_new_arrays_waits_for_others_in_their_group_alone() {
    let mut profile = built_in();
    let measured = profile.measured.as_mut().expect("the built-in profile is of a machine at hand");
    let files = &mut measured.files;
    (files.create_ns, files.create_together_ns) = (100.0 * MS, 500.0 * MS);
    let element = ElementType::native(Kind::Float64);
    let ask = |number: usize| TransferArray {
        name: format!("a{number}"),
        section: Section::whole(&[128]),
        spread: Spread::Regular(Distribution::new(&[128], &[2], &[Dim::Block]).unwrap()),
        memory: element,
        stored: Stored::in_chunks(&[128], element, &[128], Keys::nested(format!("a{number}/")), Coding::Trailer),
    };
    let asks = (0..128).map(ask).collect();
    let transfer = Arc::new(Transfer { direction: Direction::Write, asks, ranks: 2, policies: Policies::default() });
    let machine = Machine { ranks_per_node: 2, cores_per_node: 8, maps_files: false };
    let price = Pricing::new(Priced { profile: &profile, machine }, &transfer, &|_| None);
    let of = |servers: &[u32]| {
        let parameters =
            Parameters { strategy: Strategy::SERVER_DIRECTED, servers: servers.into(), ..Parameters::default() };
        price.price(&parameters, Effort::CAREFUL).moving_ns() / MS
    };
    let (one, two) = (of(&[0]), of(&[0, 1]));
    assert!(near(one, 128.0 * 300.0), "{one}");
    assert!(near(two, 64.0 * (500.0 + 100.0 + 100.0)), "{two}");
}

/// Wherever arrays of their own lie, they cost the same as one dense array; interleaved ones lie as they do.
#[test]
fn arrays_taken_together_lie_alike_wherever_they_are() {
    let element = ElementType::native(Kind::Float64);
    let listed = |places: &[i64]| {
        let one = |(number, &at): (usize, &i64)| {
            let term = Term { start: number as u64, len: 1, step: 1, count: 1 };
            Listed { term, at, at_step: 0 }
        };
        let list = Axis::Listed(places.iter().enumerate().map(one).collect());
        let held = |extent| Axis::Owned(IndexSet::range(0, extent));
        MemoryLayout::of(&View { base: 64, axes: vec![(list, 1), (held(5), 24), (held(3), 8)], element })
    };
    let dense = MemoryLayout::new(&[(3, 120), (5, 24), (3, 8)], 8);
    assert_eq!(listed(&[0, 4096, 70_000]), dense);
    assert_eq!(listed(&[0, -4096, 1 << 40]), dense);
    let interleaved = MemoryLayout::new(&[(3, 8), (5, 24), (3, 8)], 8);
    assert_eq!(listed(&[0, 8, 16]), interleaved);
}
