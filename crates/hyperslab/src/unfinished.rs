//! What an update in place began to change and did not end, as all ranks know it: from the opening, and from calls since.

use hyperslab_collective::Done;
use hyperslab_collective::attempts::{Home, ended_by_others};
use hyperslab_world::{Fault, Reader, Writer};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of it; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Unfinished(Arc<Mutex<Vec<String>>>);

impl Unfinished {
    pub(crate) fn new(names: Vec<String>) -> Unfinished {
        Unfinished(Arc::new(Mutex::new(names)))
    }

    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.names().clone()
    }

    /// Notes what a write left half changed, and what it has ended; `name` says under which names these are listed.
    pub(crate) fn note(&self, done: Result<Done, Fault>, name: impl Fn(String) -> String) -> Result<Done, Fault> {
        match &done {
            Err(fault) => self.add(fault.torn.iter().cloned().map(name)),
            Ok(done) if !done.ended.is_empty() => self.names().retain(|known| !done.ended.contains(known)),
            Ok(_) => {}
        }
        done
    }

    /// On rank 0, tells other ranks what of it is over, since others have ended it; `marker_of` gives the path of the marker that
    /// something has which is changed in place.
    pub(crate) fn tell_ended(
        &self,
        told: Writer,
        home: &Home,
        marker_of: impl Fn(&str) -> String,
    ) -> Result<Writer, Fault> {
        let ended = ended_by_others(home, self.list(), marker_of)?;
        Ok(ended.iter().fold(told.number(ended.len() as u64), |told, name| told.bytes(name.as_bytes())))
    }

    /// Takes note of what rank 0 told.
    pub(crate) fn hear_ended(&self, r: &mut Reader) -> Option<()> {
        let ended = (0..r.number()?).map(|_| r.text()).collect::<Option<Vec<String>>>()?;
        self.names().retain(|known| !ended.contains(known));
        Some(())
    }

    fn add(&self, names: impl Iterator<Item = String>) {
        for name in names {
            let mut known = self.names();
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }
}
