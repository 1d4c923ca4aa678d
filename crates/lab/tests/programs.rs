//! Whole programs of the library on imagined machines: stores that are opened, arrays that are made, changed and appended to,
//! steps that are published, files. The bytes are those that the library finds there on this machine.

use hyperslab::{
    Comm, Contents, Dim, Distribution, ElementType, File, FileArray, Kind, LocalArray, MemoryTree, Mode, OpenOptions,
    Order, ReadOptions, Section, Step, Store, WriteAsk, WriteOptions,
};
use hyperslab_lab::imagined::{ChosenCall, ProgramPart, ProgramState, Programs};
use hyperslab_plan::profile::{self, Profile};
use hyperslab_sim::{DiskLayout, Outcome, Payload, Period, Rehearsal, Size, WhatIf};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

const SHAPE: [u64; 2] = [12, 10];
const RANKS: u32 = 4;

fn machine(name: &str) -> Profile {
    let text = hyperslab_lab::simulate::MACHINES.iter().find(|machine| machine.0 == name).unwrap().1;
    profile::parse(name, text, &[]).unwrap()
}

fn rows() -> Distribution {
    Distribution::new(&SHAPE, &[u64::from(RANKS)], &[Dim::Block, Dim::Whole], None).unwrap()
}

fn columns() -> Distribution {
    Distribution::new(&SHAPE, &[u64::from(RANKS)], &[Dim::Whole, Dim::Cyclic(2)], None).unwrap()
}

/// What a rank holds: elements are `begin` and their number in the array.
fn part(rank: u32, distribution: &Distribution, begin: f64) -> LocalArray {
    let owned = distribution.owned(rank);
    let indices: Vec<Vec<u64>> = owned.dims.iter().map(|set| set.iter().collect()).collect();
    let values: Vec<f64> =
        indices[0].iter().flat_map(|i| indices[1].iter().map(move |j| begin + (i * SHAPE[1] + j) as f64)).collect();
    LocalArray::from_f64(&owned.shape(), &values)
}

fn whole(begin: f64) -> Vec<f64> {
    (0..SHAPE[0] * SHAPE[1]).map(|number| begin + number as f64).collect()
}

/// Runs parts of a program on all ranks; gives what came out, what was chosen, and the names and bytes at the end.
fn run(
    machine_name: &str,
    parts: Vec<(bool, ProgramPart)>,
    payload: Payload,
) -> (Outcome, Vec<ChosenCall>, MemoryTree) {
    let (profile, tree) = (machine(machine_name), MemoryTree::new());
    let programs = Programs::new(profile.clone());
    let chosen: Rc<RefCell<Vec<ChosenCall>>> = Rc::default();
    let scene = |(moves, part): (bool, ProgramPart)| {
        let chosen = chosen.clone();
        programs.scene(moves, part, Rc::new(move |moved| chosen.borrow_mut().push(moved)))
    };
    let rehearsal = Rehearsal {
        profile,
        size: Size { ranks: RANKS, servers: 0 },
        what_if: WhatIf::default(),
        on_disk: DiskLayout::Contiguous,
        seed: 3,
        period: Period::default(),
        scenes: parts.into_iter().map(scene).collect(),
        lengths: Vec::new(),
        tree: tree.clone(),
        payload,
        traced: true,
    };
    let outcome = rehearsal.run().unwrap_or_else(|fault| panic!("{fault}"));
    drop(programs);
    let chosen = std::mem::take(&mut *chosen.borrow_mut());
    (outcome, chosen, tree)
}

fn store(kept: &mut ProgramState) -> &mut Store {
    kept.get_mut("store").and_then(|kept| kept.downcast_mut()).expect("it is open")
}

fn does(
    moves: bool,
    part: impl Fn(&Comm, &mut ProgramState) -> Result<(), hyperslab::Error> + Send + Sync + 'static,
) -> (bool, ProgramPart) {
    (moves, Arc::new(part))
}

/// Opens a store, makes two arrays of one call, changes a section of one in place, appends to the other, writes a step and
/// publishes it, and reads the first again in another distribution.
fn zarr_program() -> Vec<(bool, ProgramPart)> {
    let section = || Section::whole(&SHAPE);
    vec![
        does(false, |comm, kept| {
            let store = Store::open(comm, Path::new("run.zarr"), Mode::Write, OpenOptions::default())?;
            kept.insert("store".into(), Box::new(store));
            Ok(())
        }),
        does(true, |comm, kept| {
            let asks = [("a", 0.0), ("b", 500.0)]
                .map(|(name, begin)| WriteAsk::new(name, part(comm.rank(), &rows(), begin), rows()));
            store(kept).write(&asks, &WriteOptions::default()).map(drop)
        }),
        does(true, move |comm, kept| {
            let ask = WriteAsk::new("a", part(comm.rank(), &columns(), 2000.0), columns());
            store(kept).write(&[ask], &WriteOptions::default().section(section())).map(drop)
        }),
        does(true, |comm, kept| {
            let ask = WriteAsk::new("b", part(comm.rank(), &rows(), 620.0), rows());
            store(kept).append(&[ask], 0, &WriteOptions::default()).map(drop)
        }),
        does(false, |_, kept| {
            let step = store(kept).step("step0", Default::default(), false)?;
            kept.insert("step".into(), Box::new(step));
            Ok(())
        }),
        does(true, |comm, kept| {
            let step: &mut Step = kept.get_mut("step").and_then(|kept| kept.downcast_mut()).expect("it is begun");
            let ask = WriteAsk::new("c", part(comm.rank(), &rows(), 9000.0), rows());
            step.group.write(&[ask], &WriteOptions::default()).map(drop)
        }),
        does(false, |_, kept| {
            let step = kept.remove("step").and_then(|kept| kept.downcast::<Step>().ok()).expect("it is begun");
            step.publish(None)
        }),
        does(true, |comm, kept| {
            let into = LocalArray { memory: memory(comm.rank(), &columns()), ..part(comm.rank(), &columns(), 0.0) };
            let options = ReadOptions::default().holding(columns()).into(vec![into.clone()]);
            let (read, _) = store(kept).read(&["a"], options)?;
            assert_eq!(read[0].to_f64(), part(comm.rank(), &columns(), 2000.0).to_f64());
            Ok(())
        }),
        does(false, |_, kept| {
            let store = kept.remove("store").and_then(|kept| kept.downcast::<Store>().ok()).expect("it is open");
            store.close()
        }),
    ]
}

/// Fresh memory for a part.
fn memory(rank: u32, distribution: &Distribution) -> hyperslab::Memory {
    hyperslab::Memory::allocate(part(rank, distribution, 0.0).bytes()).unwrap()
}

fn found(store: &Store, name: &str) -> Vec<f64> {
    store.read(&[name], ReadOptions::default()).unwrap().0[0].to_f64()
}

#[test]
fn a_program_leaves_a_store_that_the_library_reads() {
    for machine in ["nvme-workstation", "lustre-like", "nas-sp2", "object-store"] {
        let (outcome, chosen, tree) = run(machine, zarr_program(), Payload::Files);
        assert_eq!(chosen.len(), 5, "three writes, an append, a read");
        assert!(outcome.end_ns > 0 && outcome.spans.len() == 3 * 5 + 4);
        let names: Vec<String> = tree.lengths().into_iter().map(|(name, _)| name).collect();
        assert!(names.iter().all(|name| name.starts_with("run.zarr/")), "nothing is left beside it: {names:?}");
        let comm = Comm::alone();
        let store = Store::open(&comm, tree.below("run.zarr"), Mode::Read, OpenOptions::default()).unwrap();
        assert_eq!((store.unfinished(), store.arrays().unwrap()), (&[][..], vec!["a".to_string(), "b".into()]));
        assert_eq!(found(&store, "a"), whole(2000.0));
        assert_eq!(found(&store, "b"), whole(500.0).into_iter().chain(whole(620.0)).collect::<Vec<_>>());
        let step = Store::open(&comm, tree.below("run.zarr/step0"), Mode::Read, OpenOptions::default()).unwrap();
        assert_eq!(found(&step, "c"), whole(9000.0));
    }
}

#[test]
fn it_takes_the_same_time_whether_bytes_move_or_lengths_and_each_time() {
    let program = || {
        let mut all = zarr_program();
        // What is read without payloads nobody can compare.
        all.remove(7);
        all
    };
    for machine in ["nvme-workstation", "chiba-city"] {
        let (with, ..) = run(machine, program(), Payload::Files);
        let (again, ..) = run(machine, program(), Payload::Files);
        let (without, ..) = run(machine, program(), Payload::Lengths);
        assert_eq!(with.trace, again.trace);
        assert_eq!(with, again);
        assert_eq!(with.trace, without.trace);
        assert_eq!(with, without);
    }
}

#[test]
fn opening_publishing_and_names_take_time() {
    let (outcome, ..) = run("lustre-like", zarr_program(), Payload::Files);
    let calls = &outcome.tally.calls;
    let told: Vec<(&str, u64)> = calls.iter().map(|(kind, calls)| (*kind, calls.count)).collect();
    for kind in ["open", "close", "query", "read", "write", "sync"] {
        assert!(calls.get(kind).is_some_and(|calls| calls.count > 4), "{kind} of {told:?}");
    }
    let open = outcome.spans[0];
    assert!(open.end_ns > 5_000_000, "a store is opened in no time: {open:?}");
}

#[test]
fn a_raw_file_is_published_when_it_is_closed() {
    let contents = Contents { order: Order::RowMajor, header: b"header", header_bytes: 6, arrays: &[] };
    let program = vec![
        does(false, move |comm, kept| {
            let file = File::open(comm, Path::new("out.raw"), Mode::Write, OpenOptions::default(), contents)?;
            kept.insert("file".into(), Box::new(file));
            Ok(())
        }),
        does(true, |comm, kept| {
            let file: &mut File = kept.get_mut("file").and_then(|kept| kept.downcast_mut()).expect("it is open");
            let asks = [("a", 0.0), ("b", 500.0)]
                .map(|(name, begin)| WriteAsk::new(name, part(comm.rank(), &rows(), begin), rows()));
            file.write(&asks, &WriteOptions::default()).map(drop)
        }),
        does(false, |_, kept| {
            let file = kept.remove("file").and_then(|kept| kept.downcast::<File>().ok()).expect("it is open");
            file.close(None)
        }),
    ];
    let (_, chosen, tree) = run("nas-sp2", program, Payload::Files);
    assert_eq!(chosen.len(), 1);
    let names: Vec<String> = tree.lengths().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["out.raw"]);
    let element = ElementType::native(Kind::Float64);
    let arrays = ["a", "b"].map(|name| FileArray { name: name.into(), shape: SHAPE.to_vec(), element });
    let contents = Contents { arrays: &arrays, ..contents };
    let file = File::open(&Comm::alone(), tree.below("out.raw"), Mode::Read, OpenOptions::default(), contents).unwrap();
    let (read, _) = file.read(&["a", "b"], ReadOptions::default()).unwrap();
    assert_eq!(read[1].to_f64(), whole(500.0));
    assert_eq!(read[0].to_f64(), whole(0.0));
}
