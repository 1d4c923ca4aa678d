//! Numbers that people may want to change.

/// Servers on the node of rank 0 where one client handles storage for all: more than one, since each waits for the file system, and few,
/// since they share that client.
pub(crate) const ONE_CLIENT_SERVERS: u32 = 4;
