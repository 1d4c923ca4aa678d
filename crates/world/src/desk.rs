//! Work with names, submitted and asked for: rank 0 makes, renames and removes while all others wait, within limits.

use crate::Fault;

/// Work with names that gives something to tell the others. It owns what it needs.
pub type Work = Box<dyn FnOnce() -> Result<Vec<u8>, Fault> + Send>;

/// What work with names is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamesChore {
    /// Reads, makes or locks small files and directories.
    Metadata,
    /// Renames or removes.
    Publish,
    /// Makes durable.
    Sync,
}

/// A part of such work, between two stamps of the [clock](crate::Clock::stamp_ns) \[ns\].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamesSpan {
    /// What it was at.
    pub chore: NamesChore,
    /// From when.
    pub begin_ns: u64,
    /// Until when.
    pub end_ns: u64,
}

/// Does one piece of work with [`Names`](crate::Names) after another. Not promised: that a piece that hangs in the system
/// ever ends, or that anything of it can be taken back.
pub trait Desk {
    /// Begins, after all that was begun; `at_once`, on this thread, where the caller says that it waits for nothing far away.
    fn begin(&mut self, work: Work, at_once: bool);
    /// What came of what was begun last, once it is known.
    fn poll(&mut self) -> Option<Result<Vec<u8>, Fault>>;
    /// Does something after all that was begun; nobody asks what came of it.
    fn later(&mut self, work: Box<dyn FnOnce() + Send>, at_once: bool);
    /// Whether all that was begun is over.
    fn is_idle(&self) -> bool;
    /// Notes what work is at from now on, or no more.
    fn watch(&mut self, _watched: bool) {}
    /// What was noted since this was asked last, in order. Parts that took no time, or of which nothing is known, are left out.
    fn spent(&mut self) -> Vec<NamesSpan> {
        Vec::new()
    }
    /// How long syncs have taken in all work so far, watched or not \[ns\].
    fn synced_ns(&self) -> u64 {
        0
    }
}

/// Does everything at once, on the caller's thread.
#[derive(Default)]
pub struct InlineDesk {
    outcome: Option<Result<Vec<u8>, Fault>>,
}

impl Desk for InlineDesk {
    fn begin(&mut self, work: Work, _at_once: bool) {
        self.outcome = Some(work());
    }

    fn poll(&mut self) -> Option<Result<Vec<u8>, Fault>> {
        self.outcome.take()
    }

    fn later(&mut self, work: Box<dyn FnOnce() + Send>, _at_once: bool) {
        work();
    }

    fn is_idle(&self) -> bool {
        true
    }
}
