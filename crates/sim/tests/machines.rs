//! The machines that come with the library: many files are as fast as one, and keep all disks at work.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

use hyperslab_layout::Object;
use hyperslab_plan::profile::{self, Layout, Profile};
use hyperslab_sim::{DiskLayout, Outcome, Payload, Period, Rehearsal, Scene, Size, WhatIf, Who};
use hyperslab_world::MemoryTree;

/// What part of the mean the disk with the least has at least.
const FEWEST: f64 = 0.9;
/// How much of the rate of one shared file a file for each rank is to reach.
const AS_FAST: f64 = 0.8;
/// Units of striping that a rank moves.
const UNITS: u64 = 32;
/// What a rank moves where files are not striped, and at least \[B\].
const LEAST_BYTES: u64 = 8 << 20;

fn machines() -> Vec<Profile> {
    let directory = format!("{}/../../machines", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let parsed = paths.iter().map(|path| {
        let name = path.display().to_string();
        profile::parse(&name, &std::fs::read_to_string(path).unwrap(), &[]).unwrap()
    });
    parsed.collect()
}

/// Ranks that call, two for each disk where servers are apart, and those that serve.
fn size(profile: &Profile) -> (u32, u32) {
    let servers = &profile.storage.servers;
    match servers.layout {
        Layout::Local => (4 * profile.nodes.ranks_per_node, 0),
        Layout::Ranks { .. } => (16, 16),
        Layout::Apart { count, .. } => ((2 * count * servers.disks).max(8), 0),
    }
}

/// What each rank moves \[B\].
fn bytes(profile: &Profile) -> u64 {
    match profile.storage.servers.layout {
        Layout::Local => LEAST_BYTES,
        Layout::Ranks { unit_bytes } | Layout::Apart { unit_bytes, .. } => (UNITS * unit_bytes).max(LEAST_BYTES),
    }
}

fn run(profile: &Profile, scenes: Vec<Scene>, lengths: Vec<(Object, u64)>) -> Outcome {
    let (clients, servers) = size(profile);
    let rehearsal = Rehearsal {
        profile: profile.clone(),
        size: Size { ranks: clients + servers, servers },
        what_if: WhatIf::default(),
        on_disk: DiskLayout::Contiguous,
        seed: 1,
        period: Period::default(),
        scenes,
        lengths,
        tree: MemoryTree::new(),
        payload: Payload::Lengths,
        faults: None,
        traced: false,
    };
    rehearsal.run().unwrap_or_else(|fault| panic!("{}: {}", profile.name, fault.text()))
}

/// All ranks write or read their parts of one file, or files of their own.
fn shared(profile: &Profile, write: bool) -> Outcome {
    let bytes = bytes(profile);
    let call = Scene::range(Who::Clients, "all".into(), (0, bytes, bytes), write);
    run(profile, vec![call], vec![("all".into(), u64::from(size(profile).0) * bytes)])
}

fn apart(profile: &Profile, write: bool) -> Outcome {
    let bytes = bytes(profile);
    let name = |rank: u32| Object::from(format!("rank {rank:05}").as_str());
    let ranks = 0..size(profile).0;
    let call = |rank| Scene::range(Who::Rank(rank), name(rank), (0, 0, bytes), write);
    run(profile, ranks.clone().map(call).collect(), ranks.map(|rank| (name(rank), bytes)).collect())
}

/// How many disks one file lies on.
fn of_one_file(profile: &Profile) -> usize {
    let servers = &profile.storage.servers;
    match servers.layout {
        Layout::Local => size(profile).0.div_ceil(profile.nodes.ranks_per_node) as usize,
        Layout::Ranks { .. } => (size(profile).1 * servers.disks) as usize,
        Layout::Apart { width, .. } => (width * servers.disks) as usize,
    }
}

/// How much of the mean the disk with the least has, of the first so many that have most.
fn least_share(outcome: &Outcome, disks: usize) -> f64 {
    let mut all: Vec<u64> = outcome.disks.iter().flat_map(|server| server.each.clone()).collect();
    all.sort_unstable_by_key(|&bytes| std::cmp::Reverse(bytes));
    all.truncate(disks);
    all[disks - 1] as f64 / (all.iter().sum::<u64>() as f64 / disks as f64)
}

#[test]
fn files_of_ranks_are_as_fast_as_one_file_and_keep_all_disks_busy() {
    for profile in machines() {
        for write in [true, false] {
            let (one, many) = (shared(&profile, write), apart(&profile, write));
            let name = format!("{}, {}", profile.name, if write { "written" } else { "read" });
            let (once, all) = (of_one_file(&profile), many.disks.iter().map(|server| server.each.len()).sum());
            let shares = [least_share(&one, once), least_share(&many, all)];
            assert!(shares.iter().all(|&share| share >= FEWEST), "{name}: a disk has {shares:.2?} of the mean");
            let ratio = one.settled_ns as f64 / many.settled_ns as f64;
            println!("{name}: files of ranks at {ratio:.2} of one file's rate, disks with {shares:.2?} of the mean");
            assert!(ratio >= AS_FAST, "{name}: files of ranks come to {ratio:.2} of one file's rate");
        }
    }
}
