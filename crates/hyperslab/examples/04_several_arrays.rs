//! Several arrays in one call, in chunks, and appended to together, all or none.

use hyperslab::{ArrayWrite, Comm, Dim, Distribution, Error, LocalArray, Mode, OpenOptions, Store, WriteOptions};
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let columns = Distribution::new(&[2, 8], &[4], &[Dim::Whole, Dim::Block])?;
    let arrays = |value: f64| -> Result<Vec<ArrayWrite>, Error> {
        let mine = LocalArray::from_values(&[2, 2], &[value; 4])?;
        let names = ["rho", "energy"].into_iter();
        Ok(names.map(|name| ArrayWrite::new(name, mine.clone(), columns.clone())).collect())
    };
    let store = Store::open(comm, path, Mode::Write, OpenOptions::default())?;
    store.write(&arrays(1.0)?, &WriteOptions::default().chunks(vec![2, 4]))?;
    store.append(&arrays(2.0)?, 0, &WriteOptions::default())?;
    assert_eq!(store.info("energy")?.metadata.shape, [4, 8]);
    let whole = Distribution::replicated(&[4, 8], 4)?;
    let found: Vec<f64> = store.read_values("rho", &whole)?;
    assert_eq!((found[0], found[31]), (1.0, 2.0));
    store.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-04_several_arrays-{}", std::process::id()));
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
