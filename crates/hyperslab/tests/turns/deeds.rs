//! What programs do to stores and files in memory, and what readers see of them.

use hyperslab::{
    ArrayWrite, AttributeEdit, Comm, Contents, Dim, Distribution, ElementType, Error, File, FileArray, Hdf5Options,
    Kind, LocalArray, MemoryTree, Mode, NetcdfOptions, OpenOptions, ReadOptions, Section, Sections, Store,
    WriteOptions,
};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Elements of each array at first.
const EXTENT: u64 = 6;
/// Elements of a chunk.
const CHUNK: u64 = 3;

/// What a program does with a value of its own.
pub(crate) type Run = fn(&MemoryTree, f64) -> Result<(), Error>;

/// All that readers see: by name, the elements.
pub(crate) type Seen = BTreeMap<String, Vec<f64>>;

/// Arrays and attributes, and the names of arrays of which an update has not ended.
type Looked = Result<(Seen, Vec<String>), Error>;

/// Something that is written: how it is made, what can be done to it, what readers see.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) make: fn(&MemoryTree),
    pub(crate) deeds: &'static [(&'static str, Run)],
    pub(crate) see: fn(&MemoryTree) -> Looked,
    /// Elements that an update in place leaves all old or all new.
    pub(crate) together: usize,
    /// Opens it for writing and closes it, which clears up.
    pub(crate) tidy: fn(&MemoryTree),
}

thread_local! {
    /// Whether a program of this thread repeats a call that failed, once, in the same opening.
    pub(crate) static REPEATS: Cell<bool> = const { Cell::new(false) };
}

fn again<T>(call: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let is_final = |error: &Error| !REPEATS.get() || error.is_unsynced();
    call().or_else(|error| if is_final(&error) { Err(error) } else { call() })
}

fn alone() -> Comm {
    Comm::alone()
}

fn ask(name: &str, extent: u64, value: f64) -> ArrayWrite {
    let spread = Distribution::new(&[extent], &[1], &[Dim::Block]).unwrap();
    ArrayWrite::new(name, LocalArray::from_f64(&[extent], &vec![value; extent as usize]), spread)
}

fn full(name: &str, value: f64) -> ArrayWrite {
    ask(name, EXTENT, value)
}

fn chunked() -> WriteOptions {
    WriteOptions::default().chunks(vec![CHUNK])
}

fn growing() -> WriteOptions {
    chunked().maxshape(vec![None])
}

/// The second chunk, and a part of the first.
fn middle() -> (Sections, u64) {
    (Sections::from(Section::of(std::iter::once(2..EXTENT))), EXTENT - 2)
}

fn marked(value: f64) -> AttributeEdit {
    AttributeEdit::setting([("value", value)].into_iter().collect())
}

fn number(attributes: &hyperslab::Attributes) -> Option<f64> {
    attributes.get("value").and_then(hyperslab::AttributeValue::as_f64)
}

// ---- Zarr

fn open(tree: &MemoryTree, mode: Mode) -> Result<Store, Error> {
    Store::open(&alone(), tree.below("run.zarr"), mode, OpenOptions::default())
}

fn make_store(tree: &MemoryTree) {
    let store = open(tree, Mode::Write).unwrap();
    store.write(&[full("a", 1.0), full("b", 1.0)], &chunked()).unwrap();
    store.close().unwrap();
}

fn see_group(store: &Store, prefix: &str, seen: &mut Seen) -> Result<(), Error> {
    let names = store.arrays()?;
    for name in &names {
        let (arrays, _) = store.read(&[name], ReadOptions::default())?;
        seen.insert(format!("{prefix}{name}"), arrays[0].to_f64());
        if let Some(value) = store.info(name)?.metadata.attributes.get("value").and_then(hyperslab::Value::as_f64) {
            seen.insert(format!("{prefix}{name} says"), vec![value]);
        }
    }
    if let Some(value) = number(&store.attributes()) {
        seen.insert(format!("{prefix} says"), vec![value]);
    }
    for name in store.groups()? {
        see_group(&store.group(&name)?, &format!("{prefix}{name}/"), seen)?;
    }
    Ok(())
}

fn see_store(tree: &MemoryTree) -> Looked {
    let (store, mut seen) = (open(tree, Mode::Read)?, Seen::new());
    see_group(&store, "", &mut seen)?;
    Ok((seen, store.unfinished()))
}

fn in_store(tree: &MemoryTree, run: impl Fn(&Store) -> Result<(), Error>) -> Result<(), Error> {
    let store = again(|| open(tree, Mode::Update))?;
    let done = again(|| run(&store));
    done.and(store.close())
}

fn step(tree: &MemoryTree, name: &str, value: f64) -> Result<(), Error> {
    in_store(tree, |store| {
        let step = store.step(name, Default::default(), false)?;
        if let Err(error) = step.group.write(&[full("x", value), full("y", value)], &chunked()) {
            step.discard();
            return Err(error);
        }
        step.publish()
    })
}

const ZARR: &[(&str, Run)] = &[
    ("new", |tree, value| in_store(tree, |store| store.write(&[full("x", value)], &chunked()).map(drop))),
    ("several", |tree, value| {
        in_store(tree, |store| store.write(&[full("x", value), full("y", value)], &chunked()).map(drop))
    }),
    ("overwrite", |tree, value| {
        in_store(tree, |store| store.write(&[full("a", value)], &chunked().overwrite(true)).map(drop))
    }),
    ("overwrite several", |tree, value| {
        let asks = [full("a", value), full("x", value), full("b", value)];
        in_store(tree, |store| store.write(&asks, &chunked().overwrite(true)).map(drop))
    }),
    ("delete", |tree, _| in_store(tree, |store| store.delete("a"))),
    ("rename", |tree, _| in_store(tree, |store| store.rename("a", "x"))),
    ("step", |tree, value| step(tree, "s", value)),
    ("another step", |tree, value| step(tree, if value > 2.5 { "t" } else { "u" }, value)),
    ("append", |tree, value| {
        in_store(tree, |store| store.append(&[ask("a", 4, value)], 0, &WriteOptions::default()).map(drop))
    }),
    ("append several", |tree, value| {
        let asks = [ask("a", 3, value), ask("b", 3, value)];
        in_store(tree, |store| store.append(&asks, 0, &WriteOptions::default()).map(drop))
    }),
    ("section", |tree, value| {
        let (section, extent) = middle();
        let options = WriteOptions::default().section(section);
        in_store(tree, |store| store.write(&[ask("a", extent, value)], &options).map(drop))
    }),
    ("cut", |tree, _| in_store(tree, |store| store.resize("a", &[4]))),
    ("attributes", |tree, value| in_store(tree, |store| store.edit_attributes("a", &marked(value)))),
    ("attributes of the group", |tree, value| in_store(tree, |store| store.edit_attributes("", &marked(value)))),
    ("consolidate", |tree, _| in_store(tree, Store::consolidate)),
    ("mode w", |tree, value| {
        let store = again(|| open(tree, Mode::Write))?;
        let done = again(|| store.write(&[full("z", value)], &chunked()).map(drop));
        done.and(store.close())
    }),
];

// ---- raw, NetCDF and HDF5 files

/// What is not made durable.
fn cached(tree: &MemoryTree) -> Result<File, Error> {
    raw_with(tree, Mode::Update, OpenOptions::default().durable(false))
}

fn raw(tree: &MemoryTree, mode: Mode) -> Result<File, Error> {
    raw_with(tree, mode, OpenOptions::default())
}

fn raw_with(tree: &MemoryTree, mode: Mode, options: OpenOptions) -> Result<File, Error> {
    let array =
        |name: &str| FileArray { name: name.into(), shape: vec![EXTENT], element: ElementType::native(Kind::Float64) };
    let arrays = if mode == Mode::Write { vec![] } else { vec![array("a"), array("b")] };
    let contents = Contents { arrays, ..Contents::default() };
    File::open(&alone(), tree.below("run.raw"), mode, options, contents)
}

fn netcdf(tree: &MemoryTree, mode: Mode) -> Result<File, Error> {
    let options = match mode {
        Mode::Write => NetcdfOptions::default().unlimited("time"),
        _ => NetcdfOptions::default(),
    };
    File::open_netcdf(&alone(), tree.below("run.nc"), mode, OpenOptions::default(), options)
}

fn hdf5(tree: &MemoryTree, mode: Mode) -> Result<File, Error> {
    File::open_hdf5(&alone(), tree.below("run.h5"), mode, OpenOptions::default(), Hdf5Options::default())
}

type Opens = fn(&MemoryTree, Mode) -> Result<File, Error>;

fn in_file(opens: impl Fn() -> Result<File, Error>, run: impl Fn(&File) -> Result<(), Error>) -> Result<(), Error> {
    let file = again(opens)?;
    match again(|| run(&file)) {
        Ok(()) => file.close(),
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

fn see_file(tree: &MemoryTree, opens: Opens) -> Looked {
    let (file, mut seen) = (opens(tree, Mode::Read)?, Seen::new());
    for FileArray { name, .. } in file.arrays() {
        let (arrays, _) = file.read(&[&name], ReadOptions::default())?;
        seen.insert(name.clone(), arrays[0].to_f64());
        if let Some(value) = number(&file.look_at(&name)?.attributes) {
            seen.insert(format!("{name} says"), vec![value]);
        }
    }
    Ok((seen, file.unfinished()))
}

fn make_file(opens: impl Fn() -> Result<File, Error>, options: &WriteOptions) {
    in_file(opens, |file| file.write(&[full("a", 1.0), full("b", 1.0)], options).map(drop)).unwrap();
}

/// A new file is flushed, so that it is seen; then the rest is done, and it is closed.
fn by_stages(
    opens: impl Fn() -> Result<File, Error>,
    (names, options): (&[&str], &WriteOptions),
    value: f64,
    rest: impl Fn(&File) -> Result<(), Error>,
) -> Result<(), Error> {
    let file = again(opens)?;
    let all: Vec<ArrayWrite> = names.iter().map(|name| full(name, value)).collect();
    // It is seen, though perhaps not durable.
    let flushed = || again(|| file.flush()).or_else(|error| if error.is_unsynced() { Ok(()) } else { Err(error) });
    let done = again(|| file.write(&all, options).map(drop)).and_then(|()| flushed());
    match done.and_then(|()| again(|| rest(&file))) {
        Ok(()) => file.close(),
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

fn in_step(file: &File, value: f64) -> Result<(), Error> {
    let step = file.step("s", Default::default(), false)?;
    if let Err(error) = step.group.write(&[full("x", value)], &growing()) {
        step.discard();
        return Err(error);
    }
    step.publish()
}

const RAW: &[(&str, Run)] = &[
    ("replace", |tree, value| {
        in_file(
            || raw(tree, Mode::Write),
            |file| file.write(&[full("a", value), full("b", value)], &WriteOptions::default()).map(drop),
        )
    }),
    ("replace and flush", |tree, value| {
        by_stages(|| raw(tree, Mode::Write), (&["a", "b"], &WriteOptions::default()), value, |_| Ok(()))
    }),
    ("section", |tree, value| {
        let (section, extent) = middle();
        let options = WriteOptions::default().section(section);
        in_file(|| raw(tree, Mode::Update), |file| file.write(&[ask("a", extent, value)], &options).map(drop))
    }),
    // The marker rests in between.
    ("cached sections", |tree, value| {
        let (section, extent) = middle();
        let options = WriteOptions::default().section(section);
        let write = |file: &File| file.write(&[ask("a", extent, value)], &options).map(drop);
        in_file(|| cached(tree), |file| (0..3).try_for_each(|_| write(file)))
    }),
];

const NETCDF: &[(&str, Run)] = &[
    ("replace", |tree, value| {
        in_file(
            || netcdf(tree, Mode::Write),
            |file| file.write(&[full("a", value)], &WriteOptions::default()).map(drop),
        )
    }),
    ("replace and flush", |tree, value| {
        let names = vec![Some("time".to_string())];
        let options = WriteOptions::default().dimension_names(names);
        by_stages(|| netcdf(tree, Mode::Write), (&["a", "b"], &options), value, |_| Ok(()))
    }),
    ("append", |tree, value| {
        in_file(
            || netcdf(tree, Mode::Update),
            |file| file.append(&[ask("a", 2, value), ask("b", 2, value)], 0, &WriteOptions::default()).map(drop),
        )
    }),
    ("section", |tree, value| {
        let (section, extent) = middle();
        let options = WriteOptions::default().section(section);
        in_file(|| netcdf(tree, Mode::Update), |file| file.write(&[ask("a", extent, value)], &options).map(drop))
    }),
];

const HDF5: &[(&str, Run)] = &[
    ("replace", |tree, value| {
        in_file(|| hdf5(tree, Mode::Write), |file| file.write(&[full("a", value)], &growing()).map(drop))
    }),
    ("replace by steps", |tree, value| {
        by_stages(|| hdf5(tree, Mode::Write), (&["a", "b"], &growing()), value, |file| in_step(file, value))
    }),
    ("new", |tree, value| {
        in_file(
            || hdf5(tree, Mode::Update),
            |file| file.write(&[full("x", value), full("y", value)], &growing()).map(drop),
        )
    }),
    ("append", |tree, value| {
        in_file(
            || hdf5(tree, Mode::Update),
            |file| file.append(&[ask("a", 4, value)], 0, &WriteOptions::default()).map(drop),
        )
    }),
    ("section", |tree, value| {
        let (section, extent) = middle();
        let options = WriteOptions::default().section(section);
        in_file(|| hdf5(tree, Mode::Update), |file| file.write(&[ask("a", extent, value)], &options).map(drop))
    }),
    ("attributes", |tree, value| {
        in_file(|| hdf5(tree, Mode::Update), |file| file.edit_attributes("a", &marked(value)))
    }),
    ("delete", |tree, _| in_file(|| hdf5(tree, Mode::Update), |file| file.delete("a"))),
    ("rename", |tree, _| in_file(|| hdf5(tree, Mode::Update), |file| file.rename("a", "x"))),
    ("step", |tree, value| in_file(|| hdf5(tree, Mode::Update), |file| in_step(file, value))),
];

/// What is seen after the first publication of a deed that has two, given what is seen after both.
pub(crate) fn first_stage(name: &str, seen: &Seen) -> Option<Seen> {
    let is_first = |name: &&String| !name.starts_with("s/");
    let first = || seen.keys().filter(is_first).map(|name| (name.clone(), seen[name].clone())).collect();
    (name == "replace by steps").then(first)
}

/// All that is written.
pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "zarr",
        make: make_store,
        deeds: ZARR,
        see: see_store,
        together: CHUNK as usize,
        tidy: |tree| open(tree, Mode::Update).unwrap().close().unwrap(),
    },
    Subject {
        name: "raw",
        make: |tree| make_file(|| raw(tree, Mode::Write), &WriteOptions::default()),
        deeds: RAW,
        see: |tree| see_file(tree, raw),
        together: 1,
        tidy: |tree| raw(tree, Mode::Update).unwrap().close().unwrap(),
    },
    Subject {
        name: "netcdf",
        make: |tree| {
            let names = vec![Some("time".to_string())];
            make_file(|| netcdf(tree, Mode::Write), &WriteOptions::default().dimension_names(names));
        },
        deeds: NETCDF,
        see: |tree| see_file(tree, netcdf),
        together: 1,
        tidy: |tree| netcdf(tree, Mode::Update).unwrap().close().unwrap(),
    },
    Subject {
        name: "hdf5",
        make: |tree| make_file(|| hdf5(tree, Mode::Write), &growing()),
        deeds: HDF5,
        see: |tree| see_file(tree, hdf5),
        together: 1,
        tidy: |tree| hdf5(tree, Mode::Update).unwrap().close().unwrap(),
    },
];
