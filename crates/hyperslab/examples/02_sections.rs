//! A section of an array, read by all ranks together and changed in place.

use hyperslab::{
    Comm, Dim, Distribution, Error, Mode, OpenOptions, ReadOptions, Section, Store, Triplet, WriteOptions,
};
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let rows = |extent| Distribution::new(&[extent], &[4], &[Dim::Block]);
    let store = Store::open(comm, path, Mode::Write, OpenOptions::default())?;
    let first = 3 * comm.rank() as i64;
    store.write_values("numbers", &[first, first + 1, first + 2], &rows(12)?, &WriteOptions::default())?;

    // Every second number from 2 on, four of them.
    let section = Section::of([Triplet::from(2..10).every(2)]);
    let options = ReadOptions::default().holding(rows(4)?).section(section.clone());
    let (arrays, _) = store.read(&["numbers"], options)?;
    assert_eq!(arrays[0].to_values::<i64>()?, [2 + 2 * comm.rank() as i64]);

    store.write_values("numbers", &[-1i64], &rows(4)?, &WriteOptions::default().section(section))?;
    let whole = Distribution::replicated(&[12], 4)?;
    assert_eq!(store.read_values::<i64>("numbers", &whole)?, [0, 1, -1, 3, -1, 5, -1, 7, -1, 9, 10, 11]);
    store.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-02_sections-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let path: PathBuf = directory.join("run.zarr");
    // Threads are the ranks; `Comm::mpi` joins those of an MPI program.
    let ranks = Comm::threads(4).into_iter().map(|comm| {
        let path = path.clone();
        std::thread::spawn(move || rank(&comm, &path))
    });
    for rank in ranks.collect::<Vec<_>>() {
        rank.join().expect("the rank ends").expect("the rank succeeds");
    }
    std::fs::remove_dir_all(&directory).expect("the directory goes");
}
