//! What arrays were when all ranks last looked at them together.
//!
//! Who reads needs an array's shape and type before, to make room, and looks at it, which is an agreement by itself. What
//! was seen is kept, and the next read says by a hash on what it relies; where that is not so any more, rank 0 refuses it
//! before anything moves, and the caller looks again. All ranks keep the same, since only collective calls of the caller's
//! own thread change it.

use super::Store;
use hyperslab_format::zarr::ArrayMetadata;
use hyperslab_world::{Fault, FaultKind, fingerprint};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Arrays that are kept at most; then all are forgotten.
pub(super) const ARRAYS_MAX: usize = 4096;

/// What is known, by names below the home.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<Mutex<BTreeMap<String, Seen>>>);

#[derive(Clone)]
struct Seen {
    metadata: ArrayMetadata,
    fingerprint: u64,
}

impl Known {
    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    pub(super) fn seen_as(&self, name: &str) -> String {
        format!("{}{name}", self.base())
    }

    /// All of these arrays, if each was looked at.
    pub(super) fn known(&self, names: &[&str]) -> Option<Vec<ArrayMetadata>> {
        let seen = self.known.seen();
        names.iter().map(|name| Some(seen.get(&self.seen_as(name))?.metadata.clone())).collect()
    }

    /// Keeps what all ranks saw.
    pub(super) fn keep_known(&self, name: &str, metadata: &ArrayMetadata, bytes: &[u8]) {
        let mut seen = self.known.seen();
        if seen.len() >= ARRAYS_MAX {
            seen.clear();
        }
        let one = Seen { metadata: metadata.clone(), fingerprint: fingerprint(bytes) };
        seen.insert(self.seen_as(name), one);
    }

    /// Forgets arrays that are about to be changed, or were found to be.
    pub(super) fn forget_known<'a>(&self, names: impl Iterator<Item = &'a str>) {
        if !self.comm.is_inside() {
            let mut seen = self.known.seen();
            names.for_each(|name| drop(seen.remove(&self.seen_as(name))));
        }
    }

    /// Forgets all arrays.
    pub(super) fn forget_all(&self) {
        self.known.seen().clear();
    }

    /// On what a read of these arrays relies: the fingerprint of the metadata of each, where it was looked at. One that the
    /// line carries out, perhaps after others that change them, relies on nothing.
    pub(super) fn relied(&self, names: &[&str]) -> Vec<Option<u64>> {
        let (seen, inside) = (self.known.seen(), self.comm.is_inside());
        let one = |name: &&str| seen.get(&self.seen_as(name)).filter(|_| !inside).map(|one| one.fingerprint);
        names.iter().map(one).collect()
    }
}

/// Refuses to rely on metadata that are others by now.
pub(super) fn check_relied(name: &str, relied: Option<u64>, found: u64) -> Result<(), Fault> {
    if relied.is_none_or(|relied| relied == found) {
        return Ok(());
    }
    let text = format!("'{name}' has changed since all ranks looked at it");
    Err(Fault::new(FaultKind::Outdated, text).hint("look at it again, and repeat the call: nothing was moved"))
}
