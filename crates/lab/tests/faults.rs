//! What goes wrong by a seed goes wrong again, all ranks that live hear the same, nobody waits longer than the limits, what is
//! visible afterwards is whole, and whoever comes next clears up and can do the same.

mod common;

use common::{OpensFile, SHAPE, file_program, found, hdf5, netcdf, raw, run_among, whole, zarr_program};
use hyperslab::{Comm, Location, MemoryTree, Mode, OpenOptions, ReadOptions, Store};
use hyperslab_lab::imagined::ProgramPart;
use hyperslab_sim::{Faults, Harm, LifeEnd, Outcome, Payload, Seam};
use hyperslab_walk::Limits;
use std::collections::BTreeMap;
use std::time::Duration;

const RANKS: u32 = common::RANKS;
const SEEDS: u64 = 420;
const LIMITS: Limits =
    Limits { arrival: Duration::from_secs(20), progress: Duration::from_secs(10), storage: Duration::from_secs(30) };

/// How long a call may take at most where something goes wrong: until the longest limit, and until all know of it \[ns\].
const ENDS_NS: u64 = (30 + 10 + 20) * 1_000_000_000;

/// A program in which something goes wrong, and what may be seen of it afterwards.
struct Rehearsed {
    machine: &'static str,
    program: fn() -> Vec<(bool, ProgramPart)>,
    check: fn(&MemoryTree),
    /// Opens what it made for writing, and closes it.
    tidy: fn(&MemoryTree),
}

const ZARR: Rehearsed =
    Rehearsed { machine: "nvme-workstation", program: zarr_program, check: check_store, tidy: tidy_store };
/// On another machine data travel as messages, and files are far away.
const FAR: Rehearsed = Rehearsed { machine: "lustre-like", ..ZARR };
const HDF5: Rehearsed = Rehearsed {
    machine: "lustre-like",
    program: || file_program("run.h5", hdf5),
    check: |tree| check_file(tree, "run.h5", hdf5),
    tidy: |tree| tidy_file(tree, "run.h5", hdf5),
};
const NETCDF: Rehearsed = Rehearsed {
    machine: "nvme-workstation",
    program: || file_program("run.nc", netcdf),
    check: |tree| check_file(tree, "run.nc", netcdf),
    tidy: |tree| tidy_file(tree, "run.nc", netcdf),
};
const RAW: Rehearsed = Rehearsed {
    machine: "lustre-like",
    program: || file_program("run.raw", raw),
    check: |tree| check_file(tree, "run.raw", raw),
    tidy: |tree| tidy_file(tree, "run.raw", raw),
};

fn seeds() -> Vec<u64> {
    let times = std::env::var("HYPERSLAB_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let one = std::env::var("HYPERSLAB_SEED").ok().and_then(|seed| seed.parse().ok());
    one.map_or_else(|| (0..SEEDS * times).collect(), |seed| vec![seed])
}

struct Told(u64, Faults);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mishaps: Vec<String> = self.1.mishaps.iter().map(ToString::to_string).collect();
            let test = std::thread::current().name().unwrap_or_default().to_string();
            let command = format!("HYPERSLAB_SEED={} cargo test -p hyperslab-lab --test faults {test}", self.0);
            eprintln!("failing case: {}; run again with {command}", mishaps.join("; "));
        }
    }
}

/// How the lives of ranks ended that did not die.
fn alike(outcome: &Outcome, faults: &Faults) -> &'static str {
    let live: Vec<(usize, &LifeEnd)> =
        outcome.ends.iter().enumerate().filter(|(_, end)| **end != LifeEnd::Dead).collect();
    let dead = live.len() < outcome.ends.len();
    let stalls = faults.mishaps.iter().any(|mishap| matches!(mishap.harm, Harm::Stalls(_)));
    let heard = !faults.mishaps.iter().any(|mishap| mishap.rank == 0 && mishap.seam == Seam::Signals);
    let Some((_, first)) = live.first() else { return "all died" };
    match first {
        LifeEnd::Through => {
            assert!(live.iter().all(|(_, end)| **end == LifeEnd::Through), "{:?}", outcome.ends);
            if dead { "went on without the dead" } else { "came through" }
        }
        LifeEnd::Failed(_, fault) => {
            for (rank, end) in &live {
                let LifeEnd::Failed(_, same) = end else { panic!("rank {rank} came through: {:?}", outcome.ends) };
                // Who is away while the others end a call hears something else when he comes back, and of rank 0 some may have
                // heard before it died; where nobody hears of it what it decides, each is left with its own words.
                if !stalls && !dead {
                    assert_eq!(fault.kind, same.kind, "{:?}", outcome.ends);
                }
                if !stalls && !dead && heard {
                    assert_eq!(fault.text(), same.text());
                }
            }
            "failed together"
        }
        LifeEnd::Dead => unreachable!("only those that live"),
    }
}

/// The step is whole, and each array old or new unless an update is told of.
fn check_store(tree: &MemoryTree) {
    let comm = Comm::alone();
    let open = |path: &str| Store::open(&comm, tree.below(path), Mode::Read, OpenOptions::default());
    let Ok(store) = open("run.zarr") else { return };
    let torn = |name: &str| store.unfinished().iter().any(|unfinished| unfinished.contains(name));
    for name in store.arrays().unwrap() {
        let values = found(&store, &name);
        let old = if name == "a" { whole(0.0) } else { whole(500.0) };
        let new = if name == "a" { whole(2000.0) } else { old.iter().copied().chain(whole(620.0)).collect() };
        assert!(values == old || values == new || torn(&name), "array '{name}'");
    }
    if let Ok(step) = open("run.zarr/step0") {
        assert_eq!(found(&step, "c"), whole(9000.0));
    }
}

fn tidy_store(tree: &MemoryTree) {
    let store = Store::open(&Comm::alone(), tree.below("run.zarr"), Mode::UpdateOrCreate, OpenOptions::default());
    store.unwrap().close().unwrap();
}

/// The file is not there or whole: each array old or new, or element by element where an update is told of.
fn check_file(tree: &MemoryTree, name: &str, opens: OpensFile) {
    let at = tree.below(name);
    if tree.lengths().iter().all(|(there, _)| there != name) {
        return;
    }
    let file = opens(&Comm::alone(), Location::from(&at), Mode::Read).expect("what is visible can be read");
    let torn = !file.unfinished().is_empty();
    let elements = (SHAPE[0] * SHAPE[1]) as usize;
    for array in file.arrays() {
        let values = file.read(&[&array.name], ReadOptions::default()).unwrap().0[0].to_f64();
        let (old, new, more) = match &*array.name {
            "a" => (whole(0.0), whole(2000.0), whole(2120.0)),
            "b" => (whole(500.0), whole(500.0), whole(620.0)),
            _ => (whole(9000.0), whole(9000.0), Vec::new()),
        };
        let (first, grown) = values.split_at(elements);
        let is_either = first.iter().zip(old.iter().zip(&new)).all(|(found, (old, new))| found == old || found == new);
        assert!(first == old || first == new || (torn && is_either), "array '{}'", array.name);
        assert!(grown.is_empty() || grown == more, "what was appended to '{}'", array.name);
    }
    assert!(!file.steps().contains(&"step0".into()) || file.arrays().len() == 3, "a step without its array");
}

fn tidy_file(tree: &MemoryTree, name: &str, opens: OpensFile) {
    if tree.lengths().iter().any(|(there, _)| there == name) {
        let file = opens(&Comm::alone(), Location::from(tree.below(name)), Mode::Update);
        file.unwrap().close().unwrap();
    }
    opens(&Comm::alone(), Location::from(tree.below(name)), Mode::Write).unwrap().discard();
}

/// Lets something go wrong by each seed; gives how often it ended how.
fn rehearse(rehearsed: &Rehearsed) {
    let run = |faults| run_among(rehearsed.machine, (rehearsed.program)(), Payload::Files, faults);
    let (healthy, ..) = run(None);
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in seeds() {
        let faults = Faults::drawn(seed, RANKS, LIMITS);
        let _told = Told(seed, faults.clone());
        let (outcome, _, tree) = run(Some(faults.clone()));
        *kinds.entry(alike(&outcome, &faults)).or_default() += 1;
        let away: u64 = faults
            .mishaps
            .iter()
            .map(|mishap| match mishap.harm {
                Harm::Late(ns) | Harm::Stalls(ns) => ns,
                _ => 0,
            })
            .sum();
        let most = healthy.end_ns + ENDS_NS + away;
        assert!(outcome.end_ns <= most, "{} s, at most {}", outcome.end_ns / 1_000_000_000, most / 1_000_000_000);
        (rehearsed.check)(&tree);
        // All who had locks are gone: whoever comes next removes what they left, but for what names an update in place.
        (rehearsed.tidy)(&tree);
        let names: Vec<String> = tree.lengths().into_iter().map(|(name, _)| name).collect();
        let stays =
            |name: &&String| name.contains("hyperslab") && !name.ends_with("-update") && !name.ends_with("owners");
        assert_eq!(names.iter().find(stays), None, "left: {names:?}");
        (rehearsed.check)(&tree);
    }
    let all = std::env::var("HYPERSLAB_SEED").is_err();
    for end in ["came through", "failed together"] {
        assert!(!all || kinds.get(end).is_some_and(|&many| many > 20), "{kinds:?}");
    }
}

#[test]
fn stores_on_one_node() {
    rehearse(&ZARR);
}

#[test]
fn stores_far_away() {
    rehearse(&FAR);
}

#[test]
fn hdf5_files() {
    rehearse(&HDF5);
}

#[test]
fn netcdf_files() {
    rehearse(&NETCDF);
}

#[test]
fn raw_files() {
    rehearse(&RAW);
}

#[test]
fn a_seed_gives_the_same_again() {
    for seed in [1, 5, 12, 40] {
        let run = || {
            let faults = Faults::drawn(seed, RANKS, LIMITS);
            run_among("lustre-like", zarr_program(), Payload::Files, Some(faults)).0
        };
        assert_eq!(run(), run());
    }
}
