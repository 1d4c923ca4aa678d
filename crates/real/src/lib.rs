//! This machine: threads and MPI, the memory of neighbours, POSIX files, and the clock.
//!
//! # Files
//!
//! `wire.rs` (ordered datagrams between threads) and `mpi/` (the same over MPI) are the lowest common ground; `bell.rs`
//! is what a rank sleeps on, and `mpi/ringing.rs` how neighbours wake it up; `relay.rs` lets other threads use a wire
//! that only one may call; `sync.rs` gives them locks, channels and threads, in models of them those of loom;
//! `transport.rs` is one protocol over any wire; `neighbour.rs` and `neighbour/` copy between processes of one host
//! (long runs straight, short ones of many arrays by way of one buffer, `neighbour/staged.rs`);
//! `posix.rs` and `posix/` serve files from a worker thread (`posix/at_once.rs` reads what is cached, and short or on a
//! node without a free core, on the caller's own thread, by calls that never wait, and short writes go from there to file
//! systems of this host, `posix/at_hand.rs`; `posix/mapped.rs` copies what the cache
//! holds (`posix/cached.rs`) out of mappings, by `posix/windows.rs`, and `posix/lost_pages.rs` watches them; `posix/sieve.rs` reads short
//! runs and their gaps by one call,
//! `posix/coalescing.rs` writes those that follow each other by one, `posix/whole_reader.rs` reads whole objects and sums their bytes,
//! `posix/pieces.rs` goes on after calls that moved a part; `posix/direct.rs` does direct I/O; `doing.rs` tells failures of the file system; `posix/grounds.rs`
//! looks whether this node sees what rank 0 sees); `directory.rs` is names in the file system (`directory/locks.rs`:
//! notes and locks; `below.rs`: names that no link leads away from; `regular.rs`: files and nothing else; `trust.rs`: whose records are believed, `users.rs`: what the
//! system knows of users; `likeness.rs`, `acl.rs`:
//! what is replaced keeps its permissions); `desk.rs` is
//! the thread that works with names, `hands.rs` those that code chunks on idle cores, `progress.rs` shows that it comes forward, `here.rs` says which process this is, `code.rs` has this library's code mapped,
//! `mounts.rs` whether a path leads to a disk of this host, `clients.rs` what other nodes see of a file system, `stale.rs` uses names that are not what this client thinks, `guard.rs` lets one at a time give a name; `extents.rs` is places on the device; `calibration.rs` and
//! `calibration/` time copies, files and names, and say which machine this is; `stripes.rs` says where the bytes of
//! striped objects lie, `stripes/name.rs` what such objects are called, `striped.rs` is names of them; `stores.rs`
//! chooses the store of a request by the name of its object.

mod acl;
mod bell;
mod below;
pub mod calibration;
mod clients;
mod code;
mod courier_bytes;
mod desk;
mod directory;
mod doing;
mod extents;
#[cfg(test)]
mod forked;
mod guard;
mod hands;
mod here;
mod likeness;
mod machine;
mod monotonic;
mod mounts;
pub mod mpi;
pub mod neighbour;
mod policy;
mod posix;
mod progress;
mod regular;
pub mod relay;
pub mod renumber;
mod resting;
mod stale;
mod stores;
mod striped;
mod stripes;
mod sync;
mod transport;
mod trust;
mod users;
pub mod wire;

pub use clients::{PlaceSeen, place_seen};
pub use code::map_code;
pub use desk::Desk;
pub use directory::Directory;
pub use doing::posix_fault;
pub use machine::{Interrupted, Machine};
pub use monotonic::monotonic_ns;
pub use mounts::is_of_one_host;
pub use posix::{MAPPED_BYTES_MIN, PosixStore, maps_files};
pub use striped::StripedDirectory;
pub use stripes::Stripes;
pub use transport::Courier;
