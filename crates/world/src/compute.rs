//! The processor.

use crate::{Exposed, Fault, Ticket};
use hyperslab_layout::{Region, View, nests};

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

impl Cost {
    /// Of a copy of these elements between two memories.
    fn of_copy(region: &Region, from: &View, to: &View) -> Cost {
        let runs = nests(region, from, to).map(|nest| nest.runs(from.element.bytes(), to.element.bytes())).sum();
        Cost::Copy { bytes: region.elements() * to.element.bytes(), runs }
    }
}

/// The work of copying elements from where they lie to where they shall, converting them if their type differs.
pub fn copy_job(region: Region, from: Exposed, to: Exposed) -> (Cost, Job) {
    let cost = Cost::of_copy(&region, &from.view, &to.view);
    let job = move || {
        for nest in nests(&region, &from.view, &to.view) {
            hyperslab_pack::copy(&nest, &from.memory, from.view.element, &to.memory, to.view.element)
                .map_err(|error| Fault::of_copy(error, Some(&region)))?;
        }
        Ok(Vec::new())
    };
    (cost, Box::new(job))
}

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

impl InlineCompute {
    /// Runs work for somebody who waits for nothing else.
    ///
    /// # Errors
    /// When the work fails.
    pub fn run(&mut self, (cost, job): (Cost, Job)) -> Result<Vec<u8>, Fault> {
        self.submit(0, cost, job);
        self.done.pop().map_or(Ok(Vec::new()), |(_, done)| done)
    }
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
