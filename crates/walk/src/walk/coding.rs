//! What coding takes of memory.

use hyperslab_world::Ticket;
use std::collections::BTreeMap;

/// Bytes that coding holds besides slots: encoded forms until they are decoded or written, and chunks outside of their
/// slots while they are coded.
#[derive(Default)]
pub(super) struct Coding {
    held: BTreeMap<Coded, u64>,
    now: u64,
    /// Most at one time.
    pub(super) most: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Coded {
    Register(u64),
    Copy(Ticket),
}

impl Coding {
    pub(super) fn begin(&mut self, what: Coded, bytes: usize) {
        self.held.insert(what, bytes as u64);
        self.now += bytes as u64;
        self.most = self.most.max(self.now);
    }

    pub(super) fn end(&mut self, what: Coded) {
        self.now -= self.held.remove(&what).unwrap_or(0);
    }
}
