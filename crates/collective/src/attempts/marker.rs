//! What a marker is to its owner.

use super::owner::lines;
use super::touched::TouchedParts;
use hyperslab_world::{Lock, Names, Proof};

/// The marker of something that is being changed, which its owner has locked.
pub struct Marker {
    pub(super) name: String,
    pub(super) shown: String,
    pub(super) lock: Box<dyn Lock>,
    /// Length of the note of an earlier owner \[B\]; of one who died before he changed anything, 0.
    pub(super) before: Option<u64>,
    /// What earlier updates that did not end touched, as far as they said.
    pub(super) earlier: Vec<Option<TouchedParts>>,
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

    /// Whether an update that ends writes all that earlier ones touched which did not end.
    pub fn is_ended_by(&self, touched: &TouchedParts) -> bool {
        self.earlier.iter().all(|earlier| earlier.as_ref().is_some_and(|earlier| touched.covers(earlier)))
    }

    /// The name of what is being changed, for people.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// By what another rank knows that it sees this marker.
    pub fn proof(&self, names: &dyn Names) -> Proof {
        Proof::Contents(names.full(&self.name).into(), self.contents)
    }
}

/// What updates touched that did not end and whose marker has this note, as far as they said.
pub(super) fn earlier(note: &[u8]) -> Vec<Option<TouchedParts>> {
    let lines = lines(note);
    let torn = lines.iter().filter(|line| line.get("readers").is_none_or(|readers| readers != "whole"));
    let touched: Vec<_> = torn.map(TouchedParts::of_line).collect();
    if lines.is_empty() { vec![None] } else { touched }
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
