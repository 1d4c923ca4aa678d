//! Calls that do not block, and dedicated servers, as a program in Rust uses them.

use hyperslab::{ArrayWrite, Comm, Dim, Distribution, LocalArray, Mode, OpenOptions, ReadOptions, Store, WriteOptions};
use std::path::{Path, PathBuf};

const EXTENT: u64 = 60;

/// A directory that goes with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(std::env::temp_dir().join(format!("hyperslab-{name}-{}", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn spread(comm: &Comm) -> Distribution {
    Distribution::new(&[EXTENT], &[u64::from(comm.size())], &[Dim::Cyclic(1)]).unwrap()
}

/// This rank's elements of an array that begins with `start`.
fn part(comm: &Comm, start: f64) -> LocalArray {
    let mine = spread(comm).owned(comm.rank()).dims[0].clone();
    let values: Vec<f64> = (0..mine.len()).map(|i| start + mine.select(i).unwrap() as f64).collect();
    LocalArray::from_f64(&[values.len() as u64], &values)
}

fn write_and_read(comm: &Comm, path: &Path) {
    let options = OpenOptions::default().durable(false);
    let store = Store::open(comm, path, Mode::Write, options).unwrap();
    let new = WriteOptions::default().chunks(vec![20]);
    let ask = |name: &str, start: f64| vec![ArrayWrite::new(name, part(comm, start), spread(comm))];
    let requests: Vec<_> =
        (0..4).map(|i| store.write_later(ask(&format!("a{i}"), f64::from(i)), new.clone(), i % 2 == 0)).collect();
    store.write(&ask("b", 9.0), &new).unwrap();
    for request in &requests {
        assert!(request.test(), "what is made first is over first");
        assert_eq!(request.wait().unwrap().1.bytes(), 8 * EXTENT);
    }
    let read = store.read_later(vec!["a3".into(), "b".into()], ReadOptions::default().holding(spread(comm)));
    let (arrays, _) = read.wait().unwrap();
    assert_eq!(arrays[0].to_f64(), part(comm, 3.0).to_f64());
    assert_eq!(arrays[1].to_f64(), part(comm, 9.0).to_f64());
    drop(store.write_later(ask("b", 0.0), new.clone(), false));
    let refused = store.close().unwrap_err();
    assert!(refused.message().contains("'b' exists already"), "{refused}");
}

#[test]
fn requests_are_carried_out_in_order() {
    let place = Place::new("requests");
    std::thread::scope(|scope| {
        for comm in Comm::threads(3) {
            let path = place.0.as_path();
            scope.spawn(move || write_and_read(&comm, path));
        }
    });
}

#[test]
fn servers_serve_until_the_clients_end_it() {
    let place = Place::new("servers");
    std::thread::scope(|scope| {
        for (rank, comm) in Comm::threads_with_servers(5, &[3, 1]).unwrap().into_iter().enumerate() {
            let path = place.0.as_path();
            scope.spawn(move || {
                if rank == 1 || rank == 3 {
                    assert_eq!((comm.rank(), comm.size()), (u32::from(rank == 1), 2));
                    return comm.serve().unwrap();
                }
                assert_eq!((comm.rank(), comm.size(), comm.servers()), (rank.div_ceil(2) as u32, 3, 2));
                write_and_read(&comm, path);
                comm.end_service().unwrap();
            });
        }
    });
}

#[test]
fn servers_that_cannot_be_are_refused() {
    for servers in [&[][..], &[0, 0], &[4], &[0, 1, 2, 3]] {
        let refused = Comm::threads_with_servers(4, servers).err().unwrap();
        assert!(refused.is_invalid(), "{refused}");
        assert!(refused.message().contains("cannot be the dedicated servers"), "{refused}");
    }
}
