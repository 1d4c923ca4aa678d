//! What fuzzers found once holds, and so do files of other libraries.
#![allow(clippy::disallowed_methods, reason = "tests may read files")]

mod fuzzing;
mod replay;

use std::io::Read;
use std::path::Path;

#[test]
fn saved_cases_hold() {
    replay::replay(env!("CARGO_MANIFEST_DIR"), fuzzing::TARGETS);
}

#[test]
fn files_of_other_libraries_hold() {
    let check = |name: &str| fuzzing::TARGETS.iter().find(|(target, _)| *target == name).unwrap().1;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5/fixtures");
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        println!("{}", path.display());
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        check("hdf5_read")(&bytes);
        for change in 0..6 {
            let choices = [0, 1, change, 1, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3];
            check("hdf5_edit")(&[&choices[..], &bytes].concat());
        }
    }
}
