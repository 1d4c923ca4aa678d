//! What is read or changed by name, rank by rank, while others may give its name to something else.

use hyperslab_world::{Fault, FaultKind, Hold, Names};
use std::sync::Arc;

/// So many are kept from being forgotten, each of which takes a descriptor; of others the number is remembered.
const KEPT_MAX: usize = 64;

/// Directories or files as they were when a call began. On rank 0.
pub(crate) struct Pinned {
    names: Arc<dyn Names>,
    each: Vec<(String, Hold)>,
}

impl Pinned {
    /// Holds what has these names now.
    pub(crate) fn of(names: Arc<dyn Names>, each: impl Iterator<Item = String>) -> Result<Pinned, Fault> {
        let mut held = Vec::new();
        for name in each {
            let Hold { identity, keep } = names.hold(&name)?;
            let keep = if held.len() < KEPT_MAX { keep } else { Box::new(()) };
            held.push((name, Hold { identity, keep }));
        }
        Ok(Pinned { names, each: held })
    }

    /// Makes sure that the names still mean the same: ranks may else have met one and the other. `meanwhile` something was
    /// done with them.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn check(&self, meanwhile: &str) -> Result<(), Fault> {
        for (name, held) in &self.each {
            if self.names.identity(name)? == Some(held.identity) {
                continue;
            }
            let text = format!(
                "'{}' was replaced or removed by somebody else while it was {meanwhile}",
                self.names.full(name)
            );
            return Err(Fault::new(FaultKind::Outdated, text).hint("look at what is there now, and do it again"));
        }
        Ok(())
    }
}
