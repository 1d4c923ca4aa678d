//! Numbers that somebody may want to change.

/// How often a file is looked at that somebody replaces meanwhile.
pub(super) const LOOKS_MAX: u32 = 100;

/// Longest header of an npy file that is looked for \[B\].
pub(super) const NPY_HEADER_MAX: u64 = 1 << 20;

/// How much is copied at once of a file that gets more arrays as a copy \[B\].
pub(super) const COPY_BYTES: u64 = 4 << 20;
