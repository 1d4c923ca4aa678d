//! Root-gather: every byte passes through rank 0, which alone touches storage, one buffer at a time.
//!
//! The way of the original Chameleon output routines (Thakur, Gropp, Lusk 1996, section 4.2): no overlap and no
//! parallel storage. Kept as the baseline that the others must beat.

use crate::strategy::{Role, Spec};

/// Ranks above which it is not looked at, unless it is asked for.
const RANKS_MAX: u32 = 64;

pub(super) const SPEC: Spec = Spec {
    name: "root-gather",
    about: "all data pass through rank 0",
    role: Role::Root,
    complexity: 5,
    worth: |transfer, _| transfer.ranks <= RANKS_MAX,
    tells_layouts: false,
    ..Spec::SERVED
};
