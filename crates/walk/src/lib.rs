//! DOES: carries programs out over the seams. There is one walker.
//!
//! A collective call is: agree on what is asked ([`Consensus`]), walk the program ([`Walk`]), agree on how it went.
//! All three are polled and never block, so many ranks can run in one thread and in virtual time; [`Party::drive`]
//! is the one place that waits.
//!
//! # Files
//!
//! `trace.rs` is a recorder that a party may carry: walks and agreements note their spans in it. `consensus.rs` is a
//! question to all ranks over a tree of degree four; `inbox.rs` sorts what arrives, since a fast rank may be a call
//! ahead; `indexing.rs` reads where chunks lie in shards, before a walk; `room.rs` finds room for chunks whose size was
//! not known, which `giving.rs` gives out, and tells where they lie; `dividing.rs` divides bytes among ranks in the same way; `party.rs` is a rank's life in a communicator and
//! the only loop that waits, within what `limits.rs` says; `closing.rs` is how a call ends that cannot go on.
#![forbid(unsafe_code)]

mod changes;
mod closing;
mod compared;
mod consensus;
mod dividing;
mod giving;
mod inbox;
mod indexing;
mod limits;
mod names;
mod party;
mod policy;
mod room;
mod telling;
pub mod trace;
mod tree;
mod walk;

pub use compared::{Compared, Fields};
pub use consensus::{Agreed, Consensus, Decide, Failed, Question, Votes, Ways};
pub use dividing::RoomRequest;
pub use indexing::{Indexed, Indexing};
pub use limits::{Awaited, Limits, Pace, Waits};
pub use party::{Driving, Party};
pub use room::{PlacedChunk, TellingPlaces, ToldPlaces};
pub use telling::Telling;
pub use walk::{Walk, Walked};
