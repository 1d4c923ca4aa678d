//! The processor.

use crate::{Fault, Ticket};

/// What a piece of work costs, told beside the work itself so that a simulated machine can charge for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Copying between strided memories, perhaps converting.
    Copy {
        /// Bytes copied.
        bytes: u64,
        /// Contiguous runs they lie in.
        runs: u64,
    },
    /// Writing one value over memory.
    Fill {
        /// Bytes written.
        bytes: u64,
    },
    /// Compressing or decompressing a chunk.
    Code {
        /// Bytes on the uncompressed side.
        bytes: u64,
    },
}

/// Work to be done: what it leaves (encoded bytes, or nothing) comes back with its ticket.
pub type Job = Box<dyn FnOnce() -> Result<Vec<u8>, Fault> + Send>;

/// Runs work, at once or on other threads.
pub trait Compute {
    /// Is told that the rank has just derived so many steps of its program, besides messages, and so many pieces of
    /// messages. That work is done already; a simulated machine charges for it.
    fn planned(&mut self, steps: u64, pieces: u64);
    /// Hands work over.
    fn submit(&mut self, ticket: Ticket, cost: Cost, job: Job);
    /// Appends what has finished.
    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Vec<u8>, Fault>)>);
}

/// Runs work at once, on the caller's thread.
#[derive(Default)]
pub struct InlineCompute {
    done: Vec<(Ticket, Result<Vec<u8>, Fault>)>,
}

impl Compute for InlineCompute {
    fn planned(&mut self, _steps: u64, _pieces: u64) {}

    fn submit(&mut self, ticket: Ticket, _cost: Cost, job: Job) {
        self.done.push((ticket, job()));
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Vec<u8>, Fault>)>) {
        done.append(&mut self.done);
    }
}
