//! The door for a rank alone: it reads in a communicator of its own, waits for no other rank and no request, and its error is
//! its own.

mod chunk_cache;
pub(crate) mod listed;
pub(crate) mod resting;
mod selected;
mod sieved;
pub(crate) mod sight;

use crate::comm::Comm;
use crate::error::Error;
use crate::options::OpenOptions;
use hyperslab_world::Location;
use resting::Resting;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A rank's own way to read what it has opened together with others.
#[derive(Clone)]
pub(crate) struct Alone {
    /// Where that lies.
    location: Location,
    /// Communicators that nobody uses now: one for each thread that reads at the same time.
    idle: Arc<Mutex<Vec<Comm>>>,
    /// What it remembers of arrays at rest.
    pub(crate) resting: Arc<Resting>,
}

impl Alone {
    /// For what was opened here.
    pub(crate) fn new(location: Location) -> Alone {
        Alone { location, idle: Arc::default(), resting: Arc::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Comm>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs with a communicator of this rank alone, beside the one that it has with others.
    pub(crate) fn run<T>(
        &self,
        beside: &Comm,
        options: &OpenOptions,
        run: impl FnOnce(&Comm) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let kept = self.idle().pop();
        let comm = kept.unwrap_or_else(|| beside.alone_beside());
        // What lies in memory is reached by whoever has asked for its names.
        comm.names(&self.location)?;
        comm.set_limits(options.limits());
        let result = run(&comm);
        // One that reached a limit is of no use any more.
        if !comm.is_poisoned() {
            self.idle().push(comm);
        }
        result
    }
}
