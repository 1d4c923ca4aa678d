//! Numbers that somebody may want to change.

/// How often a file is looked at that somebody replaces meanwhile.
pub(super) const LOOKS_MAX: u32 = 100;

/// How often a file is looked at that seems to be damaged, where a client of a shared file system may have kept an early part of it: each
/// look waits a tenth of a second, and clients of FUSE keep what they know for a second by default.
pub(super) const EARLY_LOOKS_MAX: u32 = 15;

/// Longest header of an npy file that is looked for \[B\].
pub(super) const NPY_HEADER_MAX: u64 = 1 << 20;

/// How much is copied at once of a file that gets more arrays as a copy \[B\].
pub(super) const COPY_BYTES: u64 = 4 << 20;
