//! Views of the crate ndarray, of any strides, and complex numbers; with the features `ndarray` and `num-complex`.

use hyperslab::{Comm, Dim, Distribution, Error, Mode, OpenOptions, Store, WriteOptions};
use ndarray::{Array, Array2, s};
use num_complex::Complex64;
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let store = Store::open(comm, path, Mode::Write, OpenOptions::default())?;
    let columns = Distribution::new(&[3, 8], &[4], &[Dim::Whole, Dim::Block])?;

    // Inside of a halo of one cell, in Fortran's order of memory.
    let field = Array2::from_shape_fn((4, 5), |(column, row)| (10 * row + column) as f64);
    let inner = field.t().slice_move(s![1..4, 1..3]);
    store.write_view("rho", &inner, &columns, &WriteOptions::default())?;
    assert_eq!(store.read_array::<f64>("rho", &columns)?, inner.into_dyn());

    let waves = Array::from_elem((3, 2), Complex64::new(0.5, f64::from(comm.rank())));
    store.write_view("psi", &waves, &columns, &WriteOptions::default())?;
    assert_eq!(store.read_array::<Complex64>("psi", &columns)?, waves.into_dyn());

    // A view of another shape than this rank's part is an error on all ranks.
    let error = store.write_view("phi", &field, &columns, &WriteOptions::default()).unwrap_err();
    assert!(error.is_invalid(), "{error}");
    store.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-07_ndarray-{}", std::process::id()));
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
