//! SEAMS: what the walker asks of the world, and nothing more.
//!
//! Four narrow traits: [`Transport`] moves pieces between ranks, [`Store`] moves them between memory and named
//! objects, [`Compute`] runs work on the processor, [`Clock`] tells time. All are submit-and-poll: an operation is
//! handed over under a [`Ticket`], and the ticket comes back when it is finished. Nothing blocks but
//! [`World::doze`], so the same walker runs on threads, on MPI and in virtual time.
//!
//! A fifth, [`Names`], makes, lists, renames and removes files and directories. Only rank 0 changes anything by it, while
//! all others wait in an agreement. It is called and returns like a function, and what calls it is submitted to a
//! [`Desk`] and asked for, so that limits on waiting hold while the system does not answer.
//!
//! What the seams do *not* promise: order of completion, atomicity of a write that a crash interrupts, durability
//! before [`Request::Sync`], or that bytes move before both ends of a message have been submitted.
//!
//! # Files
//!
//! `names.rs` says what names promise and what not, `mount.rs` by which mount of a shared place they are seen; `tree.rs` and `tree/` are directories and files in memory, for users
//! whose ranks are threads and for tests; `bucket.rs` and `bucket/` say what object stores can do, with one in memory;
//! `memory_store.rs` holds objects only, and is the plainest store that tests compare with; `location.rs` is where users
//! say that something is; `conformance.rs` and `conformance/` hold the suites.
#![forbid(unsafe_code)]

mod bucket;
mod bytes;
mod clock;
mod compute;
pub mod conformance;
mod desk;
mod fault;
mod legible;
mod location;
pub mod lockstep;
mod memory_store;
mod mount;
mod names;
mod parts;
mod process;
mod resting;
mod root;
mod store;
mod transport;
mod tree;
pub mod wrappers;

pub use bucket::{
    ATTEMPT_TAG, Bucket, BucketNames, BucketStore, Death, ObjectHead, ObjectMemory, Page, PutOutcome, Tags, Trouble,
    When,
};
pub use bytes::{Reader, Writer};
pub use clock::Clock;
pub use compute::{Computation, Compute, Cost, InlineCompute, Job};
pub use desk::{Desk, InlineDesk, NamesChore, NamesSpan, Work};
pub use fault::{Fault, FaultKind, Mismatch, RoomLeft};
pub use legible::{legible, on_one_line};
pub use location::{Location, Striped, is_in_memory};
pub use memory_store::{MemoryStore, Objects, got};
pub use mount::{Mount, Strength};
pub use names::{
    Change, Claim, Extent, Hold, Lock, Locked, Locks, METADATA_BYTES_MAX, NOTE_BYTES_MAX, Names, Publishing, Then,
};
pub use parts::{PartSum, told_apart};
pub use process::Process;
pub use resting::{FileReader, FileSeen, FileState, OpenedFile};
pub use root::{Proof, Root, fingerprint};
pub use store::{Moved, Moves, Outcome, Request, Store, Within};
pub use transport::{Event, Exposed, Here, Part, Transport};
pub use tree::{MemoryTree, TreeDeed, TreeStore, Witness};

use hyperslab_pack::{Memory, OutOfMemory};
use std::time::Duration;

/// Names an operation in flight; chosen by who submits it.
pub type Ticket = u64;

/// The seams together, as one rank sees them.
pub trait World {
    /// Messages to other ranks.
    fn transport(&mut self) -> &mut dyn Transport;
    /// Stored objects.
    fn store(&mut self) -> &mut dyn Store;
    /// The processor.
    fn compute(&mut self) -> &mut dyn Compute;
    /// Time.
    fn clock(&mut self) -> &mut dyn Clock;
    /// Where work with names is done.
    fn desk(&mut self) -> &mut dyn Desk;
    /// Memory for a buffer slot, whose contents are whatever they are.
    ///
    /// # Errors
    /// When there is not so much.
    fn buffer(&mut self, bytes: u64) -> Result<Memory, OutOfMemory>;
    /// Waits until one of the seams may have news, at most for `limit`. May return early for no reason.
    fn doze(&mut self, limit: Duration);
}
