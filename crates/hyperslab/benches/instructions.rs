//! Instructions of small calls and of planned transfers, which tell a change from noise. One rank; the kernel's are not among
//! them.
//!
//! `cargo bench -p hyperslab --bench instructions` counts them by Valgrind (`--tool=callgrind`), which must be installed: it
//! makes some calls and then twice as many, and tells the difference for each.

use hyperslab::{
    ArrayWrite, Comm, Contents, Dim, Distribution, ElementType, Error, File, FileArray, Hdf5Options, Kind, LocalArray,
    Mode, NetcdfOptions, OpenOptions, ReadOptions, Section, Store, Triplet, WriteOptions,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Elements of 8 B in 64 KiB.
const ELEMENTS: u64 = 8192;
/// Elements of 8 B of each of many arrays.
const EXTENT: u64 = 35;
/// Calls of the shorter run.
const CALLS: u64 = 200;

/// Makes so many calls, of which some are made before by both runs.
type Calls = fn(&Comm, &Path, u64) -> Result<(), Error>;

const KINDS: [(&str, Calls); 11] = [
    ("64 KiB of an open raw file, written", |comm, path, calls| raw(comm, path, calls, true)),
    ("64 KiB of an open raw file, read", |comm, path, calls| raw(comm, path, calls, false)),
    ("50 arrays of 280 B of an open raw file, written in one call", |comm, path, calls| many(comm, path, calls, true)),
    ("50 arrays of 280 B of an open raw file, read in one call", |comm, path, calls| many(comm, path, calls, false)),
    ("an array of 280 B of a new NetCDF file, all written in one call", |comm, path, calls| {
        together(File::open_netcdf(comm, path.join("a.nc"), Mode::Write, quick(), NetcdfOptions::default())?, calls)
            .and_then(File::close)
    }),
    ("an array of 280 B of a new HDF5 file, all written in one call", |comm, path, calls| {
        together(File::open_hdf5(comm, path.join("a.h5"), Mode::Write, quick(), Hdf5Options::default())?, calls)
            .and_then(File::close)
    }),
    ("an array of a NetCDF file with 1,000, looked up by its name", |comm, path, calls| {
        let opened = File::open_netcdf(comm, path.join("a.nc"), Mode::Write, quick(), NetcdfOptions::default())?;
        let file = together(opened, 1000)?;
        (0..calls).try_for_each(|number| file.look_at(&format!("a{number}")).map(drop))?;
        file.close()
    }),
    ("a new Zarr array of 64 KiB", |comm, path, calls| arrays(comm, path, calls, |_| ELEMENTS)),
    ("the same, each of another extent and so planned anew", |comm, path, calls| {
        arrays(comm, path, calls, |number| ELEMENTS - number)
    }),
    ("an array of a batch of new Zarr arrays of 64 KiB", batch),
    ("a new step with nothing in it", |comm, path, calls| {
        let store = open(comm, path)?;
        (0..calls).try_for_each(|number| store.step(&format!("{number}"), Default::default(), false)?.publish())?;
        store.close()
    }),
];

fn spread(extent: u64) -> Result<Distribution, Error> {
    Ok(Distribution::new(&[extent], &[1], &[Dim::Block])?)
}

fn open(comm: &Comm, path: &Path) -> Result<Store, Error> {
    Store::open(comm, path.join("a.zarr"), Mode::Write, quick())
}

fn quick() -> OpenOptions {
    OpenOptions::default().durable(false)
}

/// A file with so many arrays, written in one call.
fn together(file: File, arrays: u64) -> Result<File, Error> {
    let all = (0..arrays).map(|number| new(number, EXTENT)).collect::<Result<Vec<_>, _>>()?;
    file.write(&all, &WriteOptions::default())?;
    Ok(file)
}

fn raw(comm: &Comm, path: &Path, calls: u64, write: bool) -> Result<(), Error> {
    let (path, options) = (path.join("a.raw"), quick());
    std::fs::write(&path, vec![0; 64 * 8 * ELEMENTS as usize]).expect("a file");
    let element = ElementType::native(Kind::Float64);
    let known = [FileArray { name: "a".into(), shape: vec![64 * ELEMENTS], element }];
    let contents = Contents { arrays: known.into(), ..Contents::default() };
    let file = File::open(comm, path.as_path(), Mode::Update, options, contents)?;
    let values = LocalArray::from_values(&[ELEMENTS], &vec![1.0; ELEMENTS as usize])?;
    for number in 0..calls {
        let first = number % 64 * ELEMENTS;
        let section = Section::of([Triplet::from(first..first + ELEMENTS)]);
        if write {
            let array = ArrayWrite::new("a", values.clone(), spread(ELEMENTS)?);
            file.write(&[array], &WriteOptions::default().section(section))?;
        } else {
            let into = vec![values.clone()];
            file.read(&["a"], ReadOptions::default().holding(spread(ELEMENTS)?).section(section).into(into))?;
        }
    }
    file.close()
}

/// Calls with many small arrays each.
fn many(comm: &Comm, path: &Path, calls: u64, write: bool) -> Result<(), Error> {
    const ARRAYS: usize = 50;
    let (path, options) = (path.join("a.raw"), quick());
    std::fs::write(&path, vec![0; 8 * EXTENT as usize * ARRAYS]).expect("a file");
    let element = ElementType::native(Kind::Float64);
    let known = |number| FileArray { name: format!("a{number}"), shape: vec![EXTENT], element };
    let arrays: Vec<FileArray> = (0..ARRAYS).map(known).collect();
    let names: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let file = File::open(comm, path.as_path(), Mode::Update, options, Contents { arrays, ..Contents::default() })?;
    let held = spread(EXTENT)?;
    let values = LocalArray::from_values(&[EXTENT], &vec![1.0; EXTENT as usize])?;
    for _ in 0..calls {
        if write {
            let each: Vec<_> = names.iter().map(|name| ArrayWrite::new(*name, values.clone(), held.clone())).collect();
            file.write(&each, &WriteOptions::default())?;
        } else {
            let into = names.iter().map(|_| values.clone()).collect();
            file.read(&names, ReadOptions::default().holding(held.clone()).into(into))?;
        }
    }
    file.close()
}

fn new(number: u64, extent: u64) -> Result<ArrayWrite, Error> {
    let values = LocalArray::from_values(&[extent], &vec![1.0; extent as usize])?;
    Ok(ArrayWrite::new(format!("a{number}"), values, spread(extent)?))
}

fn arrays(comm: &Comm, path: &Path, calls: u64, extent: fn(u64) -> u64) -> Result<(), Error> {
    let store = open(comm, path)?;
    (0..calls)
        .try_for_each(|number| store.write(&[new(number, extent(number))?], &WriteOptions::default()).map(drop))?;
    store.close()
}

fn batch(comm: &Comm, path: &Path, calls: u64) -> Result<(), Error> {
    let store = open(comm, path)?;
    let all = (0..calls).map(|number| new(number, ELEMENTS)).collect::<Result<Vec<_>, _>>()?;
    let options = WriteOptions::together(all.iter().map(|_| (1, WriteOptions::default())).collect())?;
    store.write(&all, &options)?;
    store.close()
}

/// Instructions of a run of this program with so many calls.
fn counted(kind: usize, calls: u64, path: &Path) -> u64 {
    let program = std::env::current_exe().expect("this program");
    let valgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let mut run = Command::new("valgrind");
    run.args(valgrind).arg(program).args([kind.to_string(), calls.to_string()]).arg(path);
    let done = run.output().expect("valgrind is installed");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let line = said.lines().find_map(|line| line.split("Collected :").nth(1)).expect("callgrind counts instructions");
    line.trim().parse().expect("a number")
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let [kind, calls, path] = &given[..] {
        let comm = Comm::threads(1).pop().expect("one rank");
        let (kind, calls): (usize, u64) = (kind.parse().expect("a number"), calls.parse().expect("a number"));
        return (KINDS[kind].1)(&comm, Path::new(path), calls).expect("the calls succeed");
    }
    let above = std::env::temp_dir().join(format!("hyperslab-instructions-{}", std::process::id()));
    println!("{:>12}  of each", "instructions");
    for (kind, (name, _)) in KINDS.iter().enumerate() {
        let [few, many] = [CALLS, 2 * CALLS].map(|calls| {
            let path: PathBuf = above.join(format!("{kind}-{calls}"));
            std::fs::create_dir_all(&path).expect("a temporary directory");
            counted(kind, calls, &path)
        });
        println!("{:>12}  {name}", (many - few) / CALLS);
    }
    std::fs::remove_dir_all(&above).expect("the directory goes");
}
