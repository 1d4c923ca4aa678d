//! Numbers that people may want to change.

/// Servers on the node of rank 0 where one client handles storage for all: more than one, since each waits for the file system, and few,
/// since they share that client.
pub(crate) const ONE_CLIENT_SERVERS: u32 = 4;

/// Places that are remembered in which a program has written by one client; with so many, all count as written.
pub(crate) const WRITTEN_PLACES_MAX: usize = 4096;

/// Most bytes of a text of any length that is written \[B\]: each of the others takes as many in memory.
pub(crate) const TEXT_BYTES_MAX: u64 = 1 << 20;
