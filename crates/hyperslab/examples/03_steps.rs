//! Steps are visible whole or not at all; a restart begins with the last one.

use hyperslab::{Attributes, Comm, Dim, Distribution, Error, Mode, OpenOptions, Store, WriteOptions};
use std::path::{Path, PathBuf};

fn rank(comm: &Comm, path: &Path) -> Result<(), Error> {
    let rows = Distribution::new(&[8, 2], &[4], &[Dim::Block, Dim::Whole])?;
    let store = Store::open(comm, path, Mode::UpdateOrCreate, OpenOptions::default())?;
    for number in 1..=3 {
        let attributes: Attributes = [("time", number as f64 / 2.0)].into_iter().collect();
        let step = store.step(&format!("step_{number}"), attributes, false)?;
        step.group.write_values("u", &[number as f64; 4], &rows, &WriteOptions::default())?;
        step.publish()?;
    }
    store.delete("step_1")?;
    let steps = store.steps()?;
    assert_eq!(steps, ["step_2", "step_3"]);
    let last = store.group(&steps[1])?;
    assert_eq!(last.attributes()["time"].as_f64(), Some(1.5));
    assert_eq!(last.read_values::<f64>("u", &rows)?, [3.0; 4]);
    store.close()
}

pub(crate) fn main() {
    let directory = std::env::temp_dir().join(format!("hyperslab-03_steps-{}", std::process::id()));
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
