//! What ranks measure together, on threads: every rank has its times, nothing stays behind, errors are everybody's.

use hyperslab::Comm;
use hyperslab_lab::calibrate::{Alone, Effort, Together, alone, together};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EFFORT: Effort = Effort { time: Duration::from_millis(1), bytes: 2 << 20 };

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("hyperslab-calibrating-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Place(path)
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.0).unwrap().next().is_none()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What each of some ranks measures.
fn on(ranks: u32, what: Together, directory: &Path, partners: &[Option<u32>]) -> Vec<Result<Value, hyperslab::Error>> {
    std::thread::scope(|scope| {
        let measure = |comm: Comm| {
            let partner = partners.get(comm.rank() as usize).copied().flatten();
            let told = together(&comm, what, directory, EFFORT, partner)?;
            Ok(serde_json::from_str(&told).unwrap())
        };
        let threads: Vec<_> = Comm::threads(ranks).into_iter().map(|comm| scope.spawn(move || measure(comm))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Kernels in a list of times, each of which must have some.
fn kernels(told: &Value) -> Vec<String> {
    let series = told.as_array().unwrap();
    for one in series {
        let seconds = one["seconds"].as_array().unwrap();
        assert!(!seconds.is_empty() && seconds.iter().all(|time| time.as_f64().unwrap() > 0.0), "{one}");
    }
    let mut names: Vec<String> = series.iter().map(|one| one["kernel"].as_str().unwrap().to_string()).collect();
    names.dedup();
    names
}

#[test]
fn one_process_measures_all_that_it_can() {
    let place = Place::new("alone");
    let expected: [&[&str]; 4] = [&["copy"], &["encode", "decode"], &["plan"], &["write", "read"]];
    for (what, expected) in Alone::ALL.into_iter().zip(expected) {
        let told = alone(what, &place.0, EFFORT, &mut || false).unwrap();
        let found = kernels(&serde_json::from_str(&told).unwrap());
        assert!(expected.iter().all(|kernel| found.iter().any(|it| it == kernel)), "{what:?}: {found:?}");
        assert!(place.is_empty(), "{what:?}");
    }
}

#[test]
fn ranks_measure_together() {
    let place = Place::new("together");
    for ranks in [1, 2, 3] {
        let agreed = on(ranks, Together::Agreements, &place.0, &[]);
        for (rank, told) in agreed.into_iter().enumerate() {
            let late = ranks > 1 && rank as u32 == ranks - 1;
            let expected: &[&str] = if late { &["agree", "late-agree"] } else { &["agree"] };
            assert_eq!(kernels(&told.unwrap()), expected);
        }
        for told in on(ranks, Together::Writers, &place.0, &[]) {
            assert_eq!(kernels(&told.unwrap()), ["own-file", "one-file", "own-sync", "one-sync", "create-together"]);
        }
        for told in on(ranks, Together::Copies, &place.0, &[]) {
            assert_eq!(kernels(&told.unwrap()), ["copy", "turn", "touch"]);
        }
        assert!(place.is_empty());
    }
}

#[test]
fn messages_go_between_partners() {
    let place = Place::new("messages");
    let told = on(3, Together::Messages, &place.0, &[Some(2), None, Some(0)]);
    let told: Vec<Value> = told.into_iter().map(Result::unwrap).collect();
    assert_eq!(kernels(&told[0]), ["message", "echo"]);
    assert_eq!(kernels(&told[1]), [""; 0], "who has no partner has no times");
    assert_eq!(kernels(&told[2]), ["message", "echo"]);
    let rounds = |told: &Value| told[0]["seconds"].as_array().unwrap().len();
    assert_eq!(rounds(&told[0]), rounds(&told[2]));
}

#[test]
fn an_error_is_everybodys() {
    let place = Place::new("errors");
    for told in on(2, Together::Messages, &place.0, &[Some(7), None]) {
        let error = told.unwrap_err();
        assert!(error.is_invalid(), "{error}");
        assert!(error.message().contains("rank 0 cannot exchange messages with rank 7"), "{error}");
    }
    let lost = place.0.join("file");
    std::fs::write(&lost, "in the way").unwrap();
    for told in on(2, Together::Writers, &lost, &[]) {
        assert!(told.unwrap_err().to_string().contains("file"), "a file is no directory");
    }
}
