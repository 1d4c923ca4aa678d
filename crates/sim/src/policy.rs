//! What rehearsals of very many ranks do without.

/// Ranks from which on those that do not serve derive only so many steps ahead: each that waits takes about 1 KiB.
pub(crate) const MANY_RANKS: u32 = 2000;
/// So many steps.
pub(crate) const FEW_STEPS: usize = 16;
