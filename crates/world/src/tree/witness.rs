//! Who watches what is asked of a tree in memory, before it is done: tests that count, hold up and refuse.

use crate::Fault;

/// What somebody asks of a tree.
#[derive(Clone, Copy, Debug)]
pub struct TreeDeed<'a> {
    /// What shall be done, as "writing".
    pub verb: &'static str,
    /// To what, by its name in the tree.
    pub name: &'a str,
    /// Whether it may change something.
    pub changes: bool,
    /// Whether it is asked again, since another owner still had the file to himself: only what that one does can help.
    pub waits: bool,
}

/// Hears of each deed before it is done, from the thread that asks for it. It may hold that up, or refuse it: then nothing is
/// done, and a question is answered as if nothing were there.
pub trait Witness: Send + Sync {
    /// Hears of a deed.
    ///
    /// # Errors
    /// Where it refuses.
    fn before(&self, deed: TreeDeed<'_>) -> Result<(), Fault>;
}
