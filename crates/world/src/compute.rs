//! The processor.

use crate::{Exposed, Fault, Ticket};
use hyperslab_layout::{Region, nests};

/// What a piece of work costs, for which a simulated machine charges.
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
    /// Encoding or decoding a chunk.
    Code {
        /// Bytes of its elements.
        bytes: u64,
        /// Whether they are compressed, and not only summed or moved.
        compresses: bool,
    },
}

/// What a job does: it leaves encoded bytes, or nothing.
pub type Job = Box<dyn FnOnce() -> Result<Vec<u8>, Fault> + Send>;

/// Work to be done: what it leaves (encoded bytes, or nothing) comes back with its ticket.
pub enum Computation {
    /// Copying elements from where they lie to where they shall, converting them if their type differs. What it costs is
    /// counted only where it is charged for.
    Copy {
        /// Which elements.
        region: Region,
        /// Where they lie.
        from: Exposed,
        /// Where they shall.
        to: Exposed,
    },
    /// Anything else, and what it costs.
    Other(Cost, Job),
}

impl Computation {
    /// What it costs.
    pub fn cost(&self) -> Cost {
        match self {
            Computation::Copy { region, from, to } => {
                let sizes = (from.view.element.bytes(), to.view.element.bytes());
                let runs = nests(region, &from.view, &to.view).map(|nest| nest.runs(sizes.0, sizes.1)).sum();
                Cost::Copy { bytes: region.elements() * sizes.1, runs }
            }
            Computation::Other(cost, _) => *cost,
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(self) -> Result<Vec<u8>, Fault> {
        match self {
            Computation::Copy { region, from, to } => {
                hyperslab_pack::copy_region(&region, (&from.memory, &from.view), (&to.memory, &to.view))
                    .map_err(|error| Fault::of_copy(error, Some(&region)))?;
                Ok(Vec::new())
            }
            Computation::Other(_, job) => job(),
        }
    }
}

/// Runs work, at once or on other threads.
pub trait Compute {
    /// Is told that the rank has just derived so many steps of its program, besides messages, and so many pieces of
    /// messages. That work is done already; a simulated machine charges for it.
    fn planned(&mut self, steps: u64, pieces: u64);
    /// Hands work over.
    fn submit(&mut self, ticket: Ticket, work: Computation);
    /// Appends what has finished.
    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Vec<u8>, Fault>)>);
    /// Does some of what waits for other threads on the caller's, who has nothing else to do.
    fn help(&mut self) {}
    /// Gives up all that is under way, since nobody will ask for it: when this returns, none of it touches memory any more.
    fn cut(&mut self);
}

/// Runs work at once, on the caller's thread.
#[derive(Default)]
pub struct InlineCompute {
    done: Vec<(Ticket, Result<Vec<u8>, Fault>)>,
}

impl Compute for InlineCompute {
    fn planned(&mut self, _steps: u64, _pieces: u64) {}

    fn submit(&mut self, ticket: Ticket, work: Computation) {
        self.done.push((ticket, work.run()));
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Vec<u8>, Fault>)>) {
        done.append(&mut self.done);
    }

    fn cut(&mut self) {
        self.done.clear();
    }
}
