//! What is asked of a rank's own read, and what it goes by.

use hyperslab_collective::LocalArray;
use hyperslab_layout::Section;
use hyperslab_layout::stored::{Address, Stored};
use hyperslab_world::{FileReader, FileState, Names};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// How an array is stored, and what says that this has not changed.
pub(crate) struct Sight {
    pub(crate) stored: Stored,
    /// The file that says so, by its name, and what it was then.
    pub(crate) witness: (String, FileState),
    /// What the names of its objects begin with.
    pub(crate) below: String,
    /// The file, where one holds all: it is the witness, too.
    pub(crate) file: Option<Arc<dyn FileReader>>,
    /// Where chunks lie that were looked up, where that must be done.
    pub(crate) addresses: Option<Mutex<HashMap<u64, Option<Address>>>>,
}

/// What is read, and to where.
pub(crate) struct WantedSection<'a> {
    pub(crate) names: &'a dyn Names,
    /// Shape of the array as the caller knows it.
    pub(crate) shape: &'a [u64],
    pub(crate) section: &'a Section,
    pub(crate) into: &'a LocalArray,
    /// How many threads may decode besides this one.
    pub(crate) hands: u32,
}

impl Sight {
    /// Whether what was read between two looks is of one state: of the array whose metadata were seen, and of chunks that lay where
    /// a table said. Elements that lie where they always do may change meanwhile. A file that holds all was opened once, and is
    /// read whatever its name means by now.
    pub(super) fn was_so_all_along(&self, names: &dyn Names) -> bool {
        match &self.file {
            Some(file) if self.addresses.is_some() => file.seen().is_ok_and(|now| now.state == self.witness.1),
            Some(_) => true,
            None => self.is_still_so(names),
        }
    }

    /// Whether it has not changed.
    pub(super) fn is_still_so(&self, names: &dyn Names) -> bool {
        let (name, state) = &self.witness;
        matches!(names.seen(name), Ok(Some(now)) if now.rests && now.state == *state)
    }
}
