//! The machine at hand: threads and MPI, the memory of neighbours, POSIX files, and the clock.

mod bell;
mod below;
pub mod calibration;
mod courier_bytes;
mod desk;
mod directory;
mod extents;
#[cfg(test)]
mod forked;
pub mod here;
mod machine;
mod mounts;
pub mod mpi;
pub mod neighbour;
mod posix;
mod progress;
mod regular;
pub mod relay;
pub mod renumber;
mod stores;
mod striped;
mod stripes;
mod transport;
pub mod wire;

pub use desk::{Desk, Work};
pub use directory::Directory;
pub use machine::{Interrupted, Machine, monotonic_ns};
pub use posix::{PosixStore, posix_fault};
pub use striped::StripedDirectory;
pub use stripes::Stripes;
pub use transport::Courier;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks without regard to a panic elsewhere: what the locks of this crate guard is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
