//! What fuzzers found once holds: each saved case of a crate is given to its target again (see `fuzz/`).
//! Other crates have this file by its path.

use std::path::Path;

/// What a target asserts of any input.
type Check = fn(&[u8]);

/// Carries the targets of the crate in this directory out on their cases.
pub(crate) fn replay(crate_directory: &str, targets: &[(&str, Check)]) {
    for (name, check) in targets {
        let folder = Path::new(crate_directory).join("tests/fuzzing/cases").join(name);
        let cases = std::fs::read_dir(&folder).unwrap_or_else(|_| panic!("no cases of {name}"));
        for case in cases.map(|entry| entry.unwrap().path()) {
            // Shown if it fails.
            println!("{}", case.display());
            check(&std::fs::read(&case).unwrap());
        }
    }
}
