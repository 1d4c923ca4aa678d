//! Numbers that people may want to change.

use std::time::Duration;

/// A name that is stale is used again for so long: longer than clients of NFS keep names and attributes by default (nfs(5): 60 s) \[ns\].
pub(crate) const VISIBLE_NS: u64 = 90_000_000_000;
/// The first and the longest pause between two tries.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
