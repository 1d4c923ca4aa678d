//! What is written or read, as rank 0 sees it.

use crate::decision::Decision;
use hyperslab_layout::Stored;
use hyperslab_plan::{Beside, MemoryLayout, Parameters, Transfer};
use hyperslab_walk::PlacedChunk;
use hyperslab_world::{Fault, Root};
use std::sync::Arc;

/// How arrays of a call lie in the memory of a rank, as far as known.
pub type InMemory = [Option<MemoryLayout>];
/// The same of one array of a call, by its number.
pub type Each<'a> = &'a dyn Fn(usize) -> Option<MemoryLayout>;

/// What a call writes or reads: a group of arrays, a file. It is used on rank 0 alone, perhaps on another thread, and owns
/// what it needs; nothing of anybody's memory is in it.
///
/// The course asks it in this order: [`look`](Target::look), [`choose`](Target::choose), [`begin`](Target::begin), then, once
/// all data have moved, [`publish`](Target::publish) and [`tidy`](Target::tidy). What fails is taken back:
///
/// | what failed | is followed by |
/// | --- | --- |
/// | anything before bytes move | [`undo(false)`](Target::undo) |
/// | a rank, or publishing | [`torn`](Target::torn), then [`undo`](Target::undo), `true` if that names anything |
/// | making durable what is visible ([`FaultKind::Unsynced`](hyperslab_world::FaultKind::Unsynced)) | [`keep`](Target::keep) |
/// | the communicator, so that nobody knows who still writes | [`abandon`](Target::abandon) |
pub trait Target: Send {
    /// Looks at what is there, and says how the arrays of the call lie in storage, or would: one for each of them. Of what is
    /// to be made, names may be open. `laid` says how they lie in the memory of this rank, as far as known.
    ///
    /// # Errors
    /// When something is not there, or in the way.
    fn look(&mut self, laid: Each<'_>) -> Result<Vec<Stored>, Fault>;
    /// Chooses how to carry out the transfer, in which arrays that follow each other in one object may be one.
    ///
    /// # Errors
    /// When no way is feasible.
    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &InMemory) -> Result<Decision, Fault>;
    /// Chooses what it chose before, for a transfer that differs in its place alone, if it still would: with what that is
    /// expected to take now. `before` says what it was.
    fn choose_again(&mut self, _before: &Decision, _laid: &InMemory) -> Option<Decision> {
        None
    }
    /// Makes, or marks, what is about to be written, and says where objects lie: from here on others may see that something
    /// is under way. Names that were open are filled in; of arrays that follow each other in one object, `stored` has the first.
    ///
    /// # Errors
    /// When that cannot be done.
    fn begin(
        &mut self,
        stored: &mut [Stored],
        transfer: &Arc<Transfer>,
        parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault>;
    /// Small objects, which are not there, that the ranks that handle storage write besides: of what has begun.
    fn beside(&mut self) -> Vec<Beside> {
        Vec::new()
    }
    /// Before it is published, where chunks got room when they were encoded: which lie where, by the numbers of the arrays
    /// of the call, and where the room ends that was given out.
    ///
    /// # Errors
    /// When that cannot be.
    fn placed(&mut self, _chunks: Vec<PlacedChunk>, _end: u64) -> Result<(), Fault> {
        Ok(())
    }
    /// When all ranks are done: makes it visible.
    ///
    /// # Errors
    /// When that fails, or what was read or changed is not what it was.
    fn publish(&mut self) -> Result<(), Fault> {
        Ok(())
    }
    /// Before others are told that it failed after something was changed: of what readers may see a part changed from now on.
    fn torn(&self) -> Vec<String> {
        Vec::new()
    }
    /// When it is visible: of what an earlier change did not end, which is over now.
    fn ended(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// When it failed: takes away what is not visible. Told whether readers may see a part of it
    /// ([`Target::torn`]).
    fn undo(&mut self, _moved: bool) {}
    /// When it failed in a way that nobody knows who still writes.
    fn abandon(&mut self) {}
    /// When it is visible, but perhaps not durable: keeps what it replaced.
    fn keep(&mut self) {}
    /// When all ranks know that it succeeded: removes what it replaced, which may take long.
    fn tidy(&mut self) {}
}

/// Stands for a target that has been taken back.
pub(crate) struct Nothing;

impl Target for Nothing {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        Ok(Vec::new())
    }

    fn choose(&mut self, _transfer: &Arc<Transfer>, _laid: &InMemory) -> Result<Decision, Fault> {
        unreachable!("nothing is asked of what has been taken back")
    }

    fn begin(
        &mut self,
        _stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        Ok(Vec::new())
    }
}
