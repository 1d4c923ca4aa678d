//! A program of the library, and imagined machines that run it.
#![allow(dead_code, reason = "each test uses a part of it")]

use hyperslab::{
    ArrayWrite, Comm, Contents, Dim, Distribution, ElementType, File, FileArray, FileStep, Hdf5Options, Kind,
    LocalArray, Location, MemoryTree, Mode, NetcdfOptions, OpenOptions, ReadOptions, Section, Step, Store,
    WriteOptions,
};
use hyperslab_lab::imagined::{ChosenCall, ProgramPart, ProgramState, Programs};
use hyperslab_plan::profile::{self, Profile};
use hyperslab_sim::{DiskLayout, Faults, Outcome, Payload, Period, Rehearsal, Size, WhatIf};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const SHAPE: [u64; 2] = [12, 10];
pub(crate) const RANKS: u32 = 4;

pub(crate) fn machine(name: &str) -> Profile {
    let text = hyperslab_lab::simulate::MACHINES.iter().find(|machine| machine.0 == name).unwrap().1;
    profile::parse(name, text, &[]).unwrap()
}

pub(crate) fn rows() -> Distribution {
    Distribution::new(&SHAPE, &[u64::from(RANKS)], &[Dim::Block, Dim::Whole]).unwrap()
}

pub(crate) fn columns() -> Distribution {
    Distribution::new(&SHAPE, &[u64::from(RANKS)], &[Dim::Whole, Dim::Cyclic(2)]).unwrap()
}

/// What a rank holds: elements are `begin` and their number in the array.
pub(crate) fn part(rank: u32, distribution: &Distribution, begin: f64) -> LocalArray {
    let owned = distribution.owned(rank);
    let indices: Vec<Vec<u64>> = owned.dims.iter().map(|set| set.iter().collect()).collect();
    let values: Vec<f64> =
        indices[0].iter().flat_map(|i| indices[1].iter().map(move |j| begin + (i * SHAPE[1] + j) as f64)).collect();
    LocalArray::from_f64(&owned.shape(), &values)
}

pub(crate) fn whole(begin: f64) -> Vec<f64> {
    (0..SHAPE[0] * SHAPE[1]).map(|number| begin + number as f64).collect()
}

/// Runs parts of a program on all ranks; gives what came out, what was chosen, and the names and bytes at the end.
pub(crate) fn run(
    machine_name: &str,
    parts: Vec<(bool, ProgramPart)>,
    payload: Payload,
) -> (Outcome, Vec<ChosenCall>, MemoryTree) {
    run_among(machine_name, parts, payload, None)
}

/// The same where things go wrong.
pub(crate) fn run_among(
    machine_name: &str,
    parts: Vec<(bool, ProgramPart)>,
    payload: Payload,
    faults: Option<Faults>,
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
        faults,
        traced: true,
    };
    let outcome = rehearsal.run().unwrap_or_else(|fault| panic!("{fault}"));
    drop(programs);
    let chosen = std::mem::take(&mut *chosen.borrow_mut());
    (outcome, chosen, tree)
}

pub(crate) fn store(kept: &mut ProgramState) -> &mut Store {
    kept.get_mut("store").and_then(|kept| kept.downcast_mut()).expect("it is open")
}

pub(crate) fn does(
    moves: bool,
    part: impl Fn(&Comm, &mut ProgramState) -> Result<(), hyperslab::Error> + Send + Sync + 'static,
) -> (bool, ProgramPart) {
    (moves, Arc::new(part))
}

/// Opens a store, makes two arrays of one call, changes a section of one in place, appends to the other, writes a step and
/// publishes it, and reads the first again in another distribution.
pub(crate) fn zarr_program() -> Vec<(bool, ProgramPart)> {
    let section = || Section::whole(&SHAPE);
    vec![
        does(false, |comm, kept| {
            let store = Store::open(comm, Path::new("run.zarr"), Mode::Write, OpenOptions::default())?;
            kept.insert("store".into(), Box::new(store));
            Ok(())
        }),
        does(true, |comm, kept| {
            let asks = [("a", 0.0), ("b", 500.0)]
                .map(|(name, begin)| ArrayWrite::new(name, part(comm.rank(), &rows(), begin), rows()));
            store(kept).write(&asks, &WriteOptions::default()).map(drop)
        }),
        does(true, move |comm, kept| {
            let ask = ArrayWrite::new("a", part(comm.rank(), &columns(), 2000.0), columns());
            store(kept).write(&[ask], &WriteOptions::default().section(section())).map(drop)
        }),
        does(true, |comm, kept| {
            let ask = ArrayWrite::new("b", part(comm.rank(), &rows(), 620.0), rows());
            store(kept).append(&[ask], 0, &WriteOptions::default()).map(drop)
        }),
        does(false, |_, kept| {
            let step = store(kept).step("step0", Default::default(), false)?;
            kept.insert("step".into(), Box::new(step));
            Ok(())
        }),
        does(true, |comm, kept| {
            let step: &mut Step = kept.get_mut("step").and_then(|kept| kept.downcast_mut()).expect("it is begun");
            let ask = ArrayWrite::new("c", part(comm.rank(), &rows(), 9000.0), rows());
            step.group.write(&[ask], &WriteOptions::default()).map(drop)
        }),
        does(false, |_, kept| {
            let step = kept.remove("step").and_then(|kept| kept.downcast::<Step>().ok()).expect("it is begun");
            step.publish()
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

fn opened(kept: &mut ProgramState) -> &mut File {
    kept.get_mut("file").and_then(|kept| kept.downcast_mut()).expect("it is open")
}

fn closed(kept: &mut ProgramState) -> Result<(), hyperslab::Error> {
    kept.remove("file").and_then(|kept| kept.downcast::<File>().ok()).expect("it is open").close()
}

/// Opens a file for one of the programs below.
pub(crate) type OpensFile = fn(&Comm, Location, Mode) -> Result<File, hyperslab::Error>;

pub(crate) fn hdf5(comm: &Comm, at: Location, mode: Mode) -> Result<File, hyperslab::Error> {
    File::open_hdf5(comm, at, mode, OpenOptions::default(), Hdf5Options::default())
}

pub(crate) fn netcdf(comm: &Comm, at: Location, mode: Mode) -> Result<File, hyperslab::Error> {
    let options = NetcdfOptions::default();
    let options = if mode == Mode::Write { options.unlimited("time") } else { options };
    File::open_netcdf(comm, at, mode, OpenOptions::default(), options)
}

pub(crate) fn raw(comm: &Comm, at: Location, mode: Mode) -> Result<File, hyperslab::Error> {
    let element = ElementType::native(Kind::Float64);
    let arrays = ["a", "b"].map(|name| FileArray { name: name.into(), shape: SHAPE.to_vec(), element });
    let arrays = if mode == Mode::Write { vec![] } else { arrays.into() };
    let contents = Contents { arrays, ..Contents::default() };
    File::open(comm, at, mode, OpenOptions::default(), contents)
}

/// Makes a file of two arrays, opens it again, changes a section of one in place, and appends to the other and makes a step
/// where the format can.
pub(crate) fn file_program(name: &'static str, opens: OpensFile) -> Vec<(bool, ProgramPart)> {
    let path = || Location::from(Path::new(name));
    let opening = move |mode| {
        does(false, move |comm: &Comm, kept: &mut ProgramState| {
            kept.insert("file".into(), Box::new(opens(comm, path(), mode)?));
            Ok(())
        })
    };
    let new = match name.ends_with(".nc") {
        true => WriteOptions::default().dimension_names(vec![Some("time".into()), Some("x".into())]),
        false => WriteOptions::default(),
    };
    let new = match name.ends_with(".h5") {
        true => new.chunks(vec![4, 10]).maxshape(vec![None, Some(SHAPE[1])]),
        false => new,
    };
    let mut all = vec![
        opening(Mode::Write),
        does(true, move |comm, kept| {
            let asks = [("a", 0.0), ("b", 500.0)]
                .map(|(name, begin)| ArrayWrite::new(name, part(comm.rank(), &rows(), begin), rows()));
            opened(kept).write(&asks, &new).map(drop)
        }),
        does(false, |_, kept| closed(kept)),
        opening(Mode::Update),
        does(true, |comm, kept| {
            let ask = ArrayWrite::new("a", part(comm.rank(), &columns(), 2000.0), columns());
            opened(kept).write(&[ask], &WriteOptions::default().section(Section::whole(&SHAPE))).map(drop)
        }),
    ];
    if !name.ends_with(".raw") {
        all.push(does(true, |comm, kept| {
            let asks = [("a", 2120.0), ("b", 620.0)]
                .map(|(name, begin)| ArrayWrite::new(name, part(comm.rank(), &rows(), begin), rows()));
            opened(kept).append(&asks, 0, &WriteOptions::default()).map(drop)
        }));
    }
    if name.ends_with(".h5") {
        all.push(does(false, |_, kept| {
            let step = opened(kept).step("step0", Default::default(), false)?;
            kept.insert("step".into(), Box::new(step));
            Ok(())
        }));
        all.push(does(true, |comm, kept| {
            let step: &mut FileStep = kept.get_mut("step").and_then(|kept| kept.downcast_mut()).expect("it is begun");
            let ask = ArrayWrite::new("c", part(comm.rank(), &rows(), 9000.0), rows());
            step.group.write(&[ask], &WriteOptions::default()).map(drop)
        }));
        all.push(does(false, |_, kept| {
            let step = kept.remove("step").and_then(|kept| kept.downcast::<FileStep>().ok()).expect("it is begun");
            step.publish()
        }));
    }
    all.push(does(false, |_, kept| closed(kept)));
    all
}

/// Fresh memory for a part.
pub(crate) fn memory(rank: u32, distribution: &Distribution) -> hyperslab::Memory {
    hyperslab::Memory::allocate(part(rank, distribution, 0.0).bytes()).unwrap()
}

pub(crate) fn found(store: &Store, name: &str) -> Vec<f64> {
    store.read(&[name], ReadOptions::default()).unwrap().0[0].to_f64()
}
