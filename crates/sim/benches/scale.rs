//! What a rehearsal costs for each rank: a server-directed write by blocks in three dimensions on a machine of the size of
//! Frontier and Orion. `cargo bench -p hyperslab-sim --bench scale` runs 1,000, 10,000 and 100,000 ranks; `cargo test` only
//! the first, at a hundredth.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads files, the clock and its arguments")]

use hyperslab_layout::{Dim, Distribution, Durability, ElementType, Kind, Policies, Section, View, dense_strides};
use hyperslab_pack::Memory;
use hyperslab_plan::profile::{self, Profile};
use hyperslab_plan::{Direction, Facts, Parameters, Spread, Stored, Strategy, Transfer, TransferArray};
use hyperslab_sim::{DiskLayout, Move, Part, Payload, Period, Rehearsal, Scene, SimNames, Size, WhatIf, Who};
use hyperslab_world::{Exposed, Fault, MemoryTree, Names};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Ranks for each server of the library.
const CLIENTS_PER_SERVER: usize = 20;

/// All open the same file, and keep it open.
fn open(names: &SimNames) -> Result<(), Fault> {
    names.hold("").map(std::mem::forget)
}

fn machine() -> Profile {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/orion-like.toml");
    profile::parse(path, &std::fs::read_to_string(path).expect("a machine"), &[]).expect("a machine")
}

/// Each rank of the mesh writes a block of 128 x 100 x 107 doubles, 10.45 MiB.
fn rehearsal(mesh: [u64; 3]) -> (u64, Rehearsal) {
    let shape: Vec<u64> = mesh.iter().zip([128, 100, 107]).map(|(m, n)| m * n).collect();
    let ranks = mesh.iter().product::<u64>() as u32;
    let element = ElementType::native(Kind::Float64);
    let distribution = Distribution::new(&shape, &mesh, &[Dim::Block, Dim::Block, Dim::Block]).expect("blocks");
    let stored = Stored::in_file(&shape, element, "data", 0);
    let spread = Spread::Regular(distribution.clone());
    let ask = TransferArray { name: "data".into(), section: Section::whole(&shape), spread, memory: element, stored };
    let transfer = Arc::new(Transfer {
        direction: Direction::Write,
        asks: vec![ask],
        ranks,
        policies: Policies::of(Durability::Now),
    });
    let parameters = Parameters {
        strategy: Strategy::SERVER_DIRECTED,
        servers: (0..ranks).step_by(CLIENTS_PER_SERVER).collect(),
        subchunk_bytes: 4 << 20,
        ..Parameters::default()
    };
    let bring = Rc::new(move |rank: u32| {
        let region = distribution.owned(rank);
        let view = View::held(&region, 0, &dense_strides(&region.shape(), &[0, 1, 2], 8), element);
        let users = vec![Exposed { memory: Memory::from_vec(Vec::new()), view: Arc::new(view) }];
        Part { users, facts: Arc::new(Facts::default()) }
    });
    let bytes = transfer.stored_bytes();
    let rehearsal = Rehearsal {
        profile: machine(),
        size: Size { ranks, servers: 0 },
        what_if: WhatIf::default(),
        on_disk: DiskLayout::Contiguous,
        seed: 1,
        period: Period::default(),
        scenes: vec![
            Scene::names(Who::All, open),
            Scene::agree(),
            Scene::walk(Move { transfer, parameters, bring }),
            Scene::agree(),
        ],
        lengths: Vec::new(),
        tree: MemoryTree::new(),
        payload: Payload::Lengths,
        faults: None,
        traced: false,
    };
    (bytes, rehearsal)
}

/// Most memory that this process ever held \[MiB\].
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    let all = std::env::args().any(|argument| argument == "--bench");
    let only: Option<u64> = std::env::args().find_map(|argument| argument.parse().ok());
    let meshes: &[[u64; 3]] = if all { &[[10, 10, 10], [20, 25, 20], [40, 50, 50]] } else { &[[5, 5, 4]] };
    println!(
        "{:>8} {:>9} {:>10} {:>9} {:>12} {:>11} {:>10}",
        "ranks", "TiB", "virtual s", "wall s", "ms a rank", "events", "peak MiB"
    );
    for &mesh in meshes {
        let ranks = mesh.iter().product::<u64>();
        if only.is_some_and(|only| only != ranks) {
            continue;
        }
        let (bytes, rehearsal) = rehearsal(mesh);
        let start = Instant::now();
        let outcome = rehearsal.run().expect("it comes to its end");
        let wall = start.elapsed().as_secs_f64();
        println!(
            "{ranks:>8} {:>9.3} {:>10.3} {wall:>9.1} {:>12.2} {:>11} {:>10}",
            bytes as f64 / f64::from(1 << 30) / 1024.0,
            outcome.end_ns as f64 / 1e9,
            wall * 1e3 / ranks as f64,
            outcome.events,
            peak_mib()
        );
    }
}
