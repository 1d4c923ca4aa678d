//! An array that is spread over four ranks, written and read in another distribution.

use hyperslab::{Comm, Dim, Distribution, Error, Mode, OpenOptions, Store, WriteOptions};
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let blocks = Distribution::new(&[8, 6], &[2, 2], &[Dim::Block, Dim::Block])?;
    let mine = vec![comm.rank() as f32; 12];
    let store = Store::open(comm, path, Mode::Write, OpenOptions::default())?;
    store.write_values("rho", &mine, &blocks, &WriteOptions::default())?;

    let rows = Distribution::new(&[8, 6], &[4], &[Dim::Block, Dim::Whole])?;
    let found: Vec<f32> = store.read_values("rho", &rows)?;
    let left = if comm.rank() < 2 { 0.0 } else { 2.0 };
    assert_eq!(found[..6], [left, left, left, left + 1.0, left + 1.0, left + 1.0]);
    store.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-01_write_read-{}", std::process::id()));
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
