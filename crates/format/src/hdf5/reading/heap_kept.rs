//! Collections of values of variable length that were read, which the objects of one listing share.

use crate::error::Error;
use crate::hdf5::policy::KEPT_BYTES_MAX;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// The collections that were read, and where objects are in them. Attributes of many objects have their values in one collection,
/// which is read once where these objects share this.
#[derive(Default)]
pub(in crate::hdf5) struct GlobalHeaps {
    collections: HashMap<u64, Collection>,
    /// Bytes of all of them \[B\].
    kept: usize,
}

/// A collection, and where its objects are in it, by their numbers.
pub(super) struct Collection {
    pub(super) block: Vec<u8>,
    pub(super) objects: HashMap<u16, Range<usize>>,
}

impl GlobalHeaps {
    /// The collection at this address, which is read where it was not.
    pub(super) fn collection(
        &mut self,
        at: u64,
        read: impl FnOnce() -> Result<Collection, Error>,
    ) -> Result<&Collection, Error> {
        if self.kept > KEPT_BYTES_MAX {
            *self = GlobalHeaps::default();
        }
        Ok(match self.collections.entry(at) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let read = read()?;
                self.kept += read.block.len();
                new.insert(read)
            }
        })
    }
}
