//! What fuzzers found once holds.
#![allow(clippy::disallowed_methods, reason = "tests may read files")]

mod fuzzing;
#[path = "../../format/tests/replay/mod.rs"]
mod replay;

#[test]
fn saved_cases_hold() {
    replay::replay(env!("CARGO_MANIFEST_DIR"), fuzzing::TARGETS);
}
