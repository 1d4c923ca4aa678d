//! Parts of machines, each alone: times that can be worked out by hand.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use hyperslab_layout::{Dim, Distribution, Durability, ElementType, Kind, Policies, Section, View, dense_strides};
use hyperslab_pack::Memory;
use hyperslab_plan::profile::{
    Bus, Cache, Disk, Layout, Messages, Metadata as MetadataCosts, Network, Nodes, Processor, Profile, Queue, Requests,
    Servers, Storage, Topology,
};
use hyperslab_plan::{Direction, Facts, Parameters, Spread, Stored, Strategy, Transfer, TransferArray};
use hyperslab_sim::{
    DiskLayout, Lived, Move, Outcome, Part, Payload, Period, Rehearsal, Scene, SimNames, Size, WhatIf, Who,
};
use hyperslab_walk::trace::Kind as Span;
use hyperslab_world::{Exposed, Fault, MemoryTree, Names};
use std::rc::Rc;
use std::sync::Arc;

const US: f64 = 1e3;
const MS: u64 = 1_000_000;

/// A machine on which nothing costs anything, with one file server apart.
fn free() -> Profile {
    Profile {
        name: "free".into(),
        description: "costs nothing".into(),
        nodes: Nodes { ranks_per_node: 1, cores_per_node: 1 },
        processor: Processor {
            copy_rate: 1e18,
            run_ns: 0.0,
            turn_ns: 0.0,
            touch_rate: 1e18,
            code_rate: 1e18,
            step_ns: 0.0,
            piece_ns: 0.0,
        },
        messages: Messages {
            send_ns: 0.0,
            receive_ns: 0.0,
            send_byte_ns: 0.0,
            receive_byte_ns: 0.0,
            slot_run_ns: 0.0,
            array_run_ns: 0.0,
            eager_bytes: 1 << 40,
            header_bytes: 0,
            bytes_max: 1 << 40,
            requests: Requests::Slots,
        },
        network: Network { topology: Topology::Switch, latency_ns: 0.0, link_rate: 1e18 },
        measured: None,
        storage: Storage {
            servers: Servers {
                layout: Layout::Apart { count: 1, unit_bytes: 1 << 40, width: 1, gathers: false },
                disks: 1,
                request_ns: 0.0,
                write_byte_ns: 0.0,
                read_byte_ns: 0.0,
                crowding: 0.0,
                requests_at_once: 8,
                link_rate: 1e18,
            },
            cache: Cache::None,
            bus: None,
            disk: Disk::Instant,
            queue: Queue::Fcfs,
            metadata: MetadataCosts {
                open_ns: 0.0,
                open_manager_ns: 0.0,
                close_ns: 0.0,
                close_manager_ns: 0.0,
                query_ns: 0.0,
                query_manager_ns: 0.0,
            },
            call_ns: 0.0,
            call_byte_ns: 0.0,
            calls_at_once: 1,
        },
    }
}

/// All open the same thing, and keep it open.
fn open(names: &SimNames) -> Result<(), Fault> {
    names.hold("").map(std::mem::forget)
}

fn call(offset: u64, pitch: u64, bytes: u64, write: bool) -> Scene {
    Scene::range(Who::Clients, "file".into(), (offset, pitch, bytes), write)
}

fn rehearse(profile: Profile, size: (u32, u32), scenes: Vec<Scene>) -> Result<Outcome, Fault> {
    rehearsal(profile, size, scenes).run()
}

fn rehearsal(profile: Profile, (clients, servers): (u32, u32), scenes: Vec<Scene>) -> Rehearsal {
    Rehearsal {
        profile,
        size: Size { ranks: clients + servers, servers },
        what_if: WhatIf::default(),
        on_disk: DiskLayout::Contiguous,
        seed: 1,
        period: Period::default(),
        scenes,
        lengths: vec![("file".into(), 1 << 20)],
        tree: MemoryTree::new(),
        payload: Payload::Lengths,
        faults: None,
        traced: false,
    }
}

fn run(profile: &Profile, clients: u32, scenes: Vec<Scene>) -> Outcome {
    rehearse(profile.clone(), (clients, 0), scenes).expect("it comes to its end")
}

/// Two ranks write a vector of 64 elements, of which each holds half, through rank 0.
fn gather(profile: &Profile, sync: bool) -> Outcome {
    let element = ElementType::native(Kind::Float64);
    let distribution = Distribution::new(&[64], &[2], &[Dim::Block]).expect("blocks");
    let stored = Stored::in_file(&[64], element, "file", 0);
    let spread = Spread::Regular(distribution.clone());
    let ask = TransferArray { name: "a".into(), section: Section::whole(&[64]), spread, memory: element, stored };
    let policies = Policies::of(if sync { Durability::Now } else { Durability::Cached });
    let transfer = Arc::new(Transfer { direction: Direction::Write, asks: vec![ask], ranks: 2, policies });
    let parameters = Parameters { strategy: Strategy::ROOT_GATHER, ..Parameters::default() };
    let bring = Rc::new(move |rank: u32| {
        let region = distribution.owned(rank);
        let view = Arc::new(View::held(&region, 0, &dense_strides(&region.shape(), &[0], 8), element));
        let users = vec![Exposed { memory: Memory::from_vec(Vec::new()), view }];
        Part { users, facts: Arc::new(Facts::default()) }
    });
    run(profile, 2, vec![Scene::walk(Move { transfer, parameters, bring })])
}

fn rated(rate: f64) -> Disk {
    Disk::Rated { read_rate: rate, write_rate: rate, position_ns: 0.0, request_ns: 0.0 }
}

#[test]
fn what_costs_nothing_takes_no_time() {
    assert_eq!(gather(&free(), true).settled_ns, 0);
}

#[test]
fn a_message_asks_crosses_and_is_placed() {
    let mut profile = free();
    profile.storage.servers.layout = Layout::Local;
    profile.messages.send_ns = 10.0 * US;
    profile.messages.receive_ns = 7.0 * US;
    profile.messages.slot_run_ns = 3.0 * US;
    profile.messages.array_run_ns = 2.0 * US;
    profile.network.latency_ns = 5.0 * US;
    profile.network.link_rate = 256e6;
    // The question: 10 + 5 + 7. The data: 10 + 2, 5, 1 for 256 B, 7 + 3.
    assert_eq!(gather(&profile, false).end_ns, 22_000 + 12_000 + 6_000 + 10_000);
    // A long message exchanges a question and an answer before.
    profile.messages.eager_bytes = 100;
    let outcome = gather(&profile, false);
    assert_eq!(outcome.end_ns, 50_000 + 2 * 22_000);
    assert_eq!((outcome.tally.messages, outcome.tally.message_bytes, outcome.tally.questions), (1, 256, 3));
}

#[test]
fn neighbours_copy_instead() {
    let mut profile = free();
    profile.storage.servers.layout = Layout::Local;
    profile.nodes = Nodes { ranks_per_node: 2, cores_per_node: 2 };
    profile.messages.send_ns = 10.0 * US;
    profile.processor.copy_rate = 256e6;
    // Its own half and the other's, each 256 B, by rank 0.
    assert_eq!(gather(&profile, false).end_ns, 2_000);
}

#[test]
fn a_program_that_is_derived_costs_steps_and_pieces() {
    let mut profile = free();
    profile.processor.step_ns = 5.0 * US;
    profile.processor.piece_ns = 1.0 * US;
    let outcome = gather(&profile, false);
    // Rank 0: one piece to receive; a copy and a write besides. Rank 1: one piece to send.
    let planned: Vec<u64> = outcome.processors.iter().map(|processor| processor.kinds[0]).collect();
    assert_eq!(planned[..2], [11_000, 1_000]);
}

#[test]
fn writes_behind_end_when_they_are_copied_until_there_is_no_room() {
    let mut profile = free();
    profile.storage.cache = Cache::WriteBehind { limit_bytes: 3000, copy_rate: 1e9, cluster_bytes: 1 };
    profile.storage.disk = rated(1e6);
    let one = run(&profile, 1, vec![call(0, 0, 2000, true)]);
    assert_eq!((one.end_ns, one.settled_ns), (2_000, 2 * MS + 2_000));
    // The second fits in only when the first is on the disk.
    let two = run(&profile, 1, vec![call(0, 0, 2000, true), call(2000, 0, 2000, true)]);
    assert_eq!(two.end_ns, 2 * MS + 4_000);
    // A durable write waits for all.
    profile.storage.cache = Cache::WriteBehind { limit_bytes: 1 << 20, copy_rate: 1e18, cluster_bytes: 1 };
    assert_eq!(gather(&profile, true).end_ns, 512_000);
    assert_eq!(gather(&profile, false).end_ns, 0);
}

#[test]
fn what_fills_no_cluster_waits_for_more_or_for_a_sync() {
    let mut profile = free();
    profile.storage.cache = Cache::WriteBehind { limit_bytes: 1 << 20, copy_rate: 1e18, cluster_bytes: 1000 };
    profile.storage.disk = rated(1e6);
    let written = |calls: &[(u64, u64)]| {
        let scenes = calls.iter().map(|&(offset, bytes)| call(offset, 0, bytes, true)).collect();
        let outcome = run(&profile, 1, scenes);
        (outcome.disks[0].requests, outcome.settled_ns)
    };
    // At the end all is written.
    assert_eq!(written(&[(0, 900)]), (1, 900_000));
    assert_eq!(written(&[(0, 400), (400, 400), (800, 400)]), (2, 1_200_000));
    assert_eq!(written(&[(0, 900), (5000, 100)]), (2, MS));
    assert_eq!(gather(&profile, true).end_ns, 512_000);
    // Who waits for room does not wait for more to follow.
    profile.storage.cache = Cache::WriteBehind { limit_bytes: 1000, copy_rate: 1e18, cluster_bytes: 4000 };
    let scenes = vec![call(0, 0, 900, true), call(900, 0, 900, true)];
    assert_eq!(run(&profile, 1, scenes).end_ns, 900_000);
}

#[test]
fn a_disk_that_must_find_a_place_takes_longer() {
    let mut profile = free();
    profile.storage.disk = Disk::Rated { read_rate: 1e6, write_rate: 1e6, position_ns: 500.0 * US, request_ns: 0.0 };
    let follows = run(&profile, 1, vec![call(0, 0, 1000, true), call(1000, 0, 1000, true)]);
    let jumps = run(&profile, 1, vec![call(0, 0, 1000, true), call(5000, 0, 1000, true)]);
    assert_eq!(jumps.end_ns - follows.end_ns, 500_000);
}

#[test]
fn a_bus_is_shared_by_the_disks_of_a_server() {
    let mut profile = free();
    profile.storage.bus = Some(Bus { rate: 1e6, transaction_ns: 10.0 * US });
    // Two writes cross it one after another, each a transaction and 1 ms.
    assert_eq!(run(&profile, 2, vec![call(0, 1000, 1000, true)]).end_ns, 2 * (MS + 10_000));
    // A read needs one transaction for the command and one for the data.
    assert_eq!(run(&profile, 1, vec![call(0, 0, 1000, false)]).end_ns, MS + 20_000);
}

#[test]
fn servers_take_longer_for_each_that_waits() {
    let mut profile = free();
    profile.storage.servers.request_ns = 100.0 * US;
    assert_eq!(run(&profile, 3, vec![call(0, 1, 1, true)]).end_ns, 300_000);
    profile.storage.servers.crowding = 0.5;
    assert_eq!(run(&profile, 3, vec![call(0, 1, 1, true)]).end_ns, 100_000 + 150_000 + 200_000);
}

#[test]
fn files_are_striped_over_servers() {
    let mut profile = free();
    profile.storage.disk = rated(1e6);
    let mut time = |count, width, gathers| {
        profile.storage.servers.layout = Layout::Apart { count, unit_bytes: 100, width, gathers };
        let outcome = run(&profile, 1, vec![call(0, 0, 1200, true)]);
        (outcome.end_ns, outcome.tally.requests)
    };
    assert_eq!(time(1, 1, false), (1_200_000, 12));
    assert_eq!(time(4, 4, false), (300_000, 12));
    assert_eq!(time(4, 2, false), (600_000, 12));
    assert_eq!(time(4, 4, true), (300_000, 4));
}

#[test]
fn one_manager_opens_for_all() {
    let mut profile = free();
    profile.storage.metadata.open_ns = 3.0 * US;
    profile.storage.metadata.open_manager_ns = 10.0 * US;
    let outcome = run(&profile, 5, vec![Scene::names(Who::All, open)]);
    assert_eq!(outcome.end_ns, 53_000);
    let calls = &outcome.tally.calls["open"];
    assert_eq!((calls.count, calls.ns), (5, (13 + 23 + 33 + 43 + 53) * 1000));
}

/// Ranks with a cache of blocks in front of one disk.
fn cached() -> Profile {
    let mut profile = free();
    profile.storage.servers.layout = Layout::Ranks { unit_bytes: 1024 };
    profile.storage.cache = Cache::Blocks { block_bytes: 1024, blocks_per_rank: 4, lookup_ns: 0.0 };
    profile.storage.disk = rated(1.024e6);
    profile
}

fn run_cached(scenes: Vec<Scene>) -> Outcome {
    rehearse(cached(), (1, 1), scenes).expect("it comes to its end")
}

#[test]
fn a_cache_reads_a_block_once_and_the_next_ahead() {
    let one = run_cached(vec![call(0, 0, 8, false)]);
    assert_eq!((one.end_ns, one.disks[0].requests), (MS, 2));
    // What is there, or on its way, is not asked for again.
    let more = run_cached(vec![call(0, 0, 8, false), call(8, 0, 8, false), call(1024, 0, 8, false)]);
    assert_eq!((more.end_ns, more.disks[0].requests), (2 * MS, 3));
    // Four blocks: the first is gone when it is wanted again. Seven come in turn, the last ahead; then two again.
    let all: Vec<Scene> = [0, 1, 2, 3, 4, 5, 0].iter().map(|block| call(block * 1024, 0, 8, false)).collect();
    assert_eq!(run_cached(all).disks[0].requests, 9);
}

#[test]
fn a_cache_writes_a_block_once_it_is_full() {
    let half = run_cached(vec![call(0, 0, 512, true)]);
    assert_eq!((half.end_ns, half.settled_ns, half.disks[0].requests), (0, MS, 1));
    let full = run_cached(vec![call(512, 0, 512, true), call(0, 0, 512, true)]);
    assert_eq!((full.end_ns, full.settled_ns, full.disks[0].requests), (0, MS, 1));
    // Nothing clean to replace: the oldest is written first.
    let many: Vec<Scene> = (0..5).map(|block| call(block * 1024, 0, 512, true)).collect();
    let many = run_cached(many);
    assert_eq!((many.end_ns, many.settled_ns, many.disks[0].requests), (MS, 5 * MS, 5));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |profile: Profile, size| rehearse(profile, size, vec![Scene::agree()]).unwrap_err().to_string();
    assert!(refused(cached(), (2, 0)).contains("none of 2 is to"));
    let mut uneven = cached();
    uneven.storage.cache = Cache::Blocks { block_bytes: 512, blocks_per_rank: 4, lookup_ns: 0.0 };
    assert!(refused(uneven, (2, 1)).contains("storage.cache.block of 512 B"));
    let mut torus = free();
    torus.network.topology = Topology::Torus { shape: (2, 2), router_ns: 0.0 };
    assert!(refused(torus, (5, 0)).contains("6 nodes on machine 'free', a torus of 2 x 2"));
}

#[test]
fn recording_takes_no_virtual_time_and_tells_all_that_a_rank_lives_through() {
    let mut profile = free();
    profile.messages.send_ns = 10.0 * US;
    profile.storage.disk = rated(1e6);
    let scenes = || {
        vec![
            Scene::agree(),
            Scene::work(Who::Clients, 5000.0),
            call(0, 1000, 1000, true),
            Scene::agree(),
            Scene::agree(),
        ]
    };
    let plain = run(&profile, 3, scenes());
    let mut told: Vec<(u32, usize, Vec<Span>, u64)> = Vec::new();
    let mut listener = |lived: Lived| {
        let spans = lived.recorded.spans;
        assert!(spans.iter().all(|span| lived.begin_ns <= span.begin_ns && span.end_ns <= lived.end_ns));
        let spent: u64 = spans.iter().map(|span| span.end_ns - span.begin_ns).sum();
        told.push((lived.rank, lived.scene, spans.iter().map(|span| span.kind).collect(), spent));
    };
    let recorded =
        rehearsal(profile, (3, 0), scenes()).run_recorded(&mut || false, Some(&mut listener)).expect("it ends");
    assert_eq!(recorded, plain);
    for rank in 0..3 {
        let of: Vec<(usize, Span)> = told.iter().filter(|t| t.0 == rank).map(|t| (t.1, *t.2.last().unwrap())).collect();
        let expected = [Span::Agree, Span::Application, Span::Write, Span::Agree, Span::Agree];
        assert_eq!(of, expected.into_iter().enumerate().collect::<Vec<_>>());
    }
    // What a stage takes is what its ranks tell of it.
    for (stage, span) in plain.spans.iter().enumerate().filter(|(stage, _)| [1, 2].contains(stage)) {
        assert_eq!(told.iter().filter(|t| t.1 == stage).map(|t| t.3).sum::<u64>(), span.spent_ns);
    }
}
