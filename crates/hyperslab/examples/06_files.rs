//! One array as an npy file, which NumPy reads.

use hyperslab::{
    ArrayWrite, Comm, Dim, Distribution, Error, File, LocalArray, OpenOptions, Order, ReadOptions, WriteOptions,
};
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let path = path.with_file_name("a.npy");
    let rows = Distribution::new(&[4, 3], &[4], &[Dim::Block, Dim::Whole])?;
    let mine = LocalArray::from_values(&[1, 3], &[comm.rank() as u16; 3])?;
    let array = ArrayWrite::new("array", mine, rows.clone());
    let (opening, writing) = (OpenOptions::default(), WriteOptions::default());
    File::save_npy(comm, &*path, array, Order::RowMajor, opening, &writing)?;

    let file = File::open_npy(comm, &*path, OpenOptions::default())?;
    let (arrays, _) = file.read(&["array"], ReadOptions::default().holding(rows))?;
    assert_eq!(arrays[0].to_values::<u16>()?, [comm.rank() as u16; 3]);
    file.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-06_files-{}", std::process::id()));
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
