//! Numbers that people may want to change.

use std::time::Duration;

/// A name that is stale is used again for so long: longer than clients of NFS keep names and attributes by default (nfs(5): 60 s) \[ns\].
pub(crate) const VISIBLE_NS: u64 = 90_000_000_000;
/// The first and the longest pause between two tries.
pub(crate) const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));

/// Another client of a shared file system may know for so long that a small file is there which is not.
pub(crate) const REPLACED_WAIT: Duration = Duration::from_millis(1500);
/// How long a program is waited for that gives a name to a file.
pub(crate) const GUARD_WAIT: Duration = Duration::from_secs(5);
/// A guard that has been unlocked for so long belongs to a dead owner.
pub(crate) const GUARD_DEAD: Duration = Duration::from_secs(1);
