//! The same programs move the same bytes on imagined machines as on the worst legal transport, on threads and on MPI: all
//! are compared with one oracle. And the same rehearsal gives the same trace, byte for byte.
#![allow(clippy::disallowed_methods, reason = "tests may read files and the environment")]

#[path = "../../walk/tests/common/mod.rs"]
mod common;

use common::array::{Array, object_of, rooted};
use common::case::{Case, users};
use common::random::{any_array, any_feasible, any_spread};
use common::{Ranks, Told, seeds};
use hyperslab_layout::Object;
use hyperslab_plan::profile::{self, Layout, Profile};
use hyperslab_plan::{Direction, Facts, Parameters, Transfer};
use hyperslab_sim::{DiskLayout, Move, Outcome, Part, Payload, Period, Rehearsal, Scene, Size, WhatIf};
use hyperslab_world::{Exposed, MemoryStore, MemoryTree};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

const CASES: u64 = 400;

/// The machines that come with hyperslab.
fn machines() -> Vec<Profile> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let parsed = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a text");
        profile::parse(&path.display().to_string(), &text, &[]).expect("a machine")
    };
    files.iter().map(parsed).collect()
}

/// A random strategy that can do the transfer.
fn any_period(random: &mut fastrand::Rng) -> Period {
    Period { blocking_sends: random.bool(), linear_start: random.bool(), look_ahead: random.usize(0..6) }
}

/// One collective call.
struct Call<'a> {
    machine: &'a Profile,
    ranks: u32,
    period: Period,
    seed: u64,
    transfer: Arc<Transfer>,
    parameters: Parameters,
    users: Vec<Vec<Exposed>>,
    facts: Vec<Arc<Facts>>,
    lengths: Vec<(Object, u64)>,
}

impl Call<'_> {
    fn run(&self, contents: MemoryStore) -> Outcome {
        let payload = Payload::Objects(contents);
        let (users, facts) = (self.users.clone(), self.facts.clone());
        let bring =
            Rc::new(move |rank: u32| Part { users: users[rank as usize].clone(), facts: facts[rank as usize].clone() });
        let (transfer, parameters) = (self.transfer.clone(), self.parameters.clone());
        let told = format!("{transfer:?}\n{parameters:?}\n{:?}", self.machine.name);
        let ranks_serve = matches!(self.machine.storage.servers.layout, Layout::Ranks { .. });
        let rehearsal = Rehearsal {
            profile: self.machine.clone(),
            size: Size { ranks: self.ranks, servers: (self.ranks / 3).max(1) },
            what_if: WhatIf { instant_disk: self.seed.is_multiple_of(7), instant_network: self.seed.is_multiple_of(5) },
            on_disk: if ranks_serve { DiskLayout::ALL[self.seed as usize % 3] } else { DiskLayout::Contiguous },
            seed: self.seed,
            period: self.period,
            scenes: vec![Scene::agree(), Scene::walk(Move { transfer, parameters, bring }), Scene::agree()],
            lengths: self.lengths.clone(),
            tree: MemoryTree::new(),
            payload,
            faults: None,
            traced: true,
        };
        rehearsal.run().unwrap_or_else(|fault| panic!("{told}\n{fault}"))
    }
}

#[test]
fn imagined_machines_move_the_same_bytes() {
    let machines = machines();
    for seed in seeds(CASES) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let (ranks, mut file) = (random.u32(1..9), 0);
        let arrays: Vec<Array> =
            (0..random.usize(1..4)).map(|number| any_array(&mut random, number, &mut file)).collect();
        let mut case = Case::new(random, seed, ranks, arrays);
        for direction in [Direction::Write, Direction::Read, Direction::Write, Direction::Read] {
            let asks = (0..case.arrays.len()).map(|array| any_spread(&mut case, array, direction)).collect();
            let transfer = case.transfer(direction, asks);
            let parameters = any_feasible(&mut case.random, &transfer);
            let parts = case.parts(&transfer);
            let mut hub = Ranks::in_memory(ranks, seed, &case.objects);
            let facts = case.facts(&mut hub, &transfer, &parameters, &parts);
            let machine = &machines[case.random.usize(0..machines.len())];
            let period = any_period(&mut case.random);
            let users = users(&parts);
            let objects = case.objects.lock().unwrap().clone();
            let lengths = objects.iter().map(|(name, bytes)| (object_of(name), bytes.len() as u64)).collect();
            let transfer = transfer.clone();
            let call =
                Call { machine, ranks, period, seed, transfer: transfer.clone(), parameters, users, facts, lengths };
            let before = Arc::new(Mutex::new(objects));
            let first = call.run(rooted(&case.objects));
            let told = format!("{}, {transfer:?}\n{:?}", machine.name, call.parameters);
            case.compare(&transfer, &parts, &told);
            assert_eq!(call.run(rooted(&before)), first, "twice the same: {told}");
            case.settle();
        }
    }
}
