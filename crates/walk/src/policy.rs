//! Numbers that somebody may want to change.

/// Chunks that a rank asks for at once, if it sees as many coming.
pub(crate) const AHEAD_CHUNKS: u64 = 32;

/// Of all that it has had, the part that it asks for at least where it sees no end: very small chunks need few messages so.
pub(crate) const AHEAD_PART: u64 = 32;

/// When there is room for so many chunks and no more, it asks for the next.
pub(crate) const EARLY_CHUNKS: u64 = 4;

/// What is left of so many stretches is kept, for chunks that fit in there.
pub(crate) const STRETCHES_MAX: usize = 4;

/// Chunks that one message tells of.
pub(crate) const TOLD_AT_ONCE: usize = 1 << 15;

/// Different answers told apart; further ones are only counted.
pub(crate) const GROUPS_MAX: usize = 4;

/// Failures of single ranks that travel to rank 0.
pub(crate) const FAULTS_MAX: usize = 8;

/// Polls without news after which a rank starts to doze. Few: where ranks share cores, each poll keeps from working whom
/// it waits for, and a doze begins with offering the core.
pub(crate) const EAGER_POLLS: u32 = 2;
