//! What is begun in an object store, and where it lies.

use super::super::marker::Marker;
use super::super::records::OWNER;
use hyperslab_world::{ATTEMPT_TAG, Bucket, Fault, Names};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The way of object stores.
pub(crate) struct ByMetadata {
    pub(super) bucket: Arc<dyn Bucket>,
    pub(super) state: Mutex<PuttingState>,
}

#[derive(Default)]
pub(super) struct PuttingState {
    /// What was begun and is not over, by its hidden name.
    pub(super) begun: BTreeMap<String, Begun>,
    /// What is or was made longer, by its name: the attempt that does, and those whose objects it may replace.
    pub(super) grown: BTreeMap<String, Vec<Arc<str>>>,
}

/// Something that is begun.
pub(super) struct Begun {
    /// Its visible name, below the home.
    pub(super) to: String,
    /// The attempt that makes it, and those whose objects it may replace.
    pub(super) attempts: Vec<Arc<str>>,
    pub(super) record: Marker,
}

impl ByMetadata {
    pub(crate) fn new(bucket: Arc<dyn Bucket>) -> ByMetadata {
        ByMetadata { bucket, state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, PuttingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bucket(&self) -> &dyn Bucket {
        &*self.bucket
    }

    /// The key of a name below the home.
    pub(super) fn key(&self, names: &dyn Names, name: &str) -> String {
        let full = names.full(name.trim_end_matches('/'));
        full.strip_prefix(&*self.bucket.label()).unwrap_or(&full).trim_start_matches('/').to_string()
    }

    /// Keys of all that lies below a name, and their names in it.
    pub(super) fn below(&self, names: &dyn Names, name: &str) -> Result<Vec<(String, String)>, Fault> {
        let prefix = format!("{}/", self.key(names, name));
        let prefix = prefix.trim_start_matches('/');
        let keys = self.bucket().keys(prefix)?;
        let named = |key: String| (key.clone(), key[prefix.len()..].to_string());
        Ok(keys.into_iter().map(named).collect())
    }

    /// Of what was begun and has this name or has something of this name in it: the visible name, the attempt, and those
    /// whose objects it may replace.
    pub(super) fn inside(&self, name: &str) -> Option<(String, Vec<Arc<str>>)> {
        let name = name.trim_end_matches('/');
        self.state().begun.iter().find_map(|(hidden, begun)| {
            let rest = name.strip_prefix(&**hidden).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
            Some((format!("{}{rest}", begun.to), begun.attempts.clone()))
        })
    }

    /// Deletes objects below a name that one of these attempts put.
    pub(super) fn delete_of(&self, names: &dyn Names, name: &str, attempts: &[Arc<str>]) -> Result<(), Fault> {
        for (key, _) in self.below(names, name)? {
            let Some(head) = self.bucket.head(&key)? else { continue };
            let of = head.tags.get(ATTEMPT_TAG);
            if of.is_some_and(|of| attempts.iter().any(|known| **known == **of)) {
                self.bucket().remove_version(&key, &head.version)?;
            }
        }
        Ok(())
    }

    /// Removes what lies below a name; of a root, its owner last.
    pub(super) fn remove_hidden(&self, names: &dyn Names, name: &str) -> Result<(), Fault> {
        let mut all = self.below(names, name)?;
        all.sort_by_key(|(_, name)| name == OWNER);
        all.iter().try_for_each(|(key, _)| self.bucket().remove(key))
    }

    /// What has metadata is there.
    pub(super) fn has_metadata(&self, names: &dyn Names, name: &str, key: &str) -> Result<bool, Fault> {
        Ok(self.bucket.head(&self.key(names, &format!("{name}/{key}")))?.is_some())
    }
}
