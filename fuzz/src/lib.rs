//! What the targets have in common: which there are, and how much memory each input may take.
//!
//! What is asserted of an input lies beside the crate that it is about (`tests/fuzzing`), where an ordinary test carries it out
//! with the cases that were saved.

mod memory;

#[path = "../../crates/collective/tests/fuzzing/mod.rs"]
mod collective;
#[path = "../../crates/format/tests/fuzzing/mod.rs"]
mod format;
#[path = "../../crates/plan/tests/fuzzing/mod.rs"]
mod plan;

/// A target, and what is asserted of any input.
pub type FuzzTarget = (&'static str, fn(&[u8]));

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static FuzzTarget> {
    format::TARGETS.iter().chain(plan::TARGETS).chain(collective::TARGETS)
}

/// Gives some bytes to a target.
///
/// # Panics
/// When something does not hold, or there is no such target.
pub fn check(target: &str, bytes: &[u8]) {
    let (_, check) = targets().find(|(name, _)| *name == target).expect("there is such a target");
    memory::limited(bytes.len(), || check(bytes));
}
