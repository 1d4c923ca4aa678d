//! Errors are the same on all ranks, and have predicates and fields.

use hyperslab::{Comm, Dim, Distribution, Error, Mode, OpenOptions, Store, WriteOptions};
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let missing = Store::open(comm, path, Mode::Read, OpenOptions::default()).err().expect("nothing is there");
    assert!(missing.is_not_found() && missing.hint().contains("mode 'a'"), "{missing}");

    let rows = Distribution::new(&[4], &[4], &[Dim::Block])?;
    let store = Store::open(comm, path, Mode::Write, OpenOptions::default())?;
    store.write_values("a", &[1.0f64], &rows, &WriteOptions::default())?;
    let taken = store.write_values("a", &[2.0f64], &rows, &WriteOptions::default()).unwrap_err();
    assert!(taken.is_exists(), "{taken}");

    // One rank has too many values: all hear of it, and nothing is lost.
    let values = vec![3.0f64; if comm.rank() == 2 { 2 } else { 1 }];
    let unfit = store.write_values("b", &values, &rows, &WriteOptions::default()).unwrap_err();
    assert!(unfit.is_invalid(), "{unfit}");
    assert_eq!(store.read_values::<f64>("a", &rows)?, [1.0]);
    store.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-05_errors-{}", std::process::id()));
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
