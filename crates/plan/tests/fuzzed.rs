//! What fuzzers found once holds: each saved case is given to its target again (see `fuzz/`).
#![allow(clippy::disallowed_methods, reason = "tests may read files")]

mod fuzzing;

use std::path::Path;

#[test]
fn saved_cases_hold() {
    for (name, check) in fuzzing::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/cases").join(name);
        for case in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            // Shown if it fails.
            println!("{}", case.display());
            check(&std::fs::read(&case).unwrap());
        }
    }
}
