//! DOES: carries programs out over the seams. There is one walker.
//!
//! A collective call is: agree on what is asked ([`Consensus`]), walk the program ([`Walk`]), agree on how it went.
//! All three are polled and never block, so many ranks can run in one thread and in virtual time; [`Party::drive`]
//! is the one place that waits.
#![forbid(unsafe_code)]

mod consensus;
mod inbox;
mod names;
mod party;
mod telling;
pub mod trace;
mod tree;
mod walk;

pub use consensus::{Agreed, Consensus, Decide, Question, Ways};
pub use party::{Limits, Party, Waits};
pub use telling::Telling;
pub use walk::{Walk, Walked};
