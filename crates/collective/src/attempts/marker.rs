//! What a marker is to its owner.

use hyperslab_world::{Lock, Names, Proof};

/// The marker of something that is being changed, which its owner has locked.
pub struct Marker {
    pub(super) name: String,
    pub(super) shown: String,
    pub(super) lock: Box<dyn Lock>,
    /// Length of the note of an earlier owner \[B\]; of one who died before he changed anything, 0.
    pub(super) before: Option<u64>,
    /// What the marker holds now.
    pub(super) contents: u64,
    /// What it says, where it may rest between two changes.
    pub(super) notes: Option<Notes>,
}

impl Marker {
    /// Whether an earlier update did not end.
    pub fn was_there(&self) -> bool {
        self.before.is_some_and(|before| before > 0)
    }

    /// By what another rank knows that it sees this marker.
    pub fn proof(&self, names: &dyn Names) -> Proof {
        Proof::Contents(names.full(&self.name).into(), self.contents)
    }
}

/// What a marker says while its owner is at work and while it rests, in as many bytes.
#[derive(Clone)]
pub(super) struct Notes {
    pub(super) works: Vec<u8>,
    pub(super) rests: Vec<u8>,
}

impl Notes {
    /// The shorter one gets empty lines behind it.
    pub(super) fn new(mut works: Vec<u8>, mut rests: Vec<u8>) -> Notes {
        let bytes = works.len().max(rests.len());
        works.resize(bytes, b'\n');
        rests.resize(bytes, b'\n');
        Notes { works, rests }
    }
}
