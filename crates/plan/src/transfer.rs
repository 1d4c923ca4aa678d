//! What is asked: a transfer of sections of arrays between the memories of ranks and storage.

use crate::rough::Rough;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Distribution, Durability, ElementType, Object, Policies, Section, Stored};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What direct requests are aligned to \[B\].
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Whether a file's page begins with this byte: direct I/O that begins between pages is slower, and so planned otherwise.
pub fn begins_page(byte: u64) -> bool {
    byte.is_multiple_of(PAGE_BYTES)
}

/// Which way the data move.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From memories to storage.
    Write,
    /// From storage to memories.
    Read,
}

/// Who holds which elements of a section's index space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spread {
    /// In closed form, which every rank knows.
    Regular(Distribution),
    /// Each rank knows its own pieces: boxes of an adaptive mesh, element maps. The ranks that handle storage are told
    /// of those that they need; see [`Facts`](crate::Facts).
    Explicit,
}

impl Spread {
    /// The closed form, where there is one.
    pub fn regular(&self) -> Option<&Distribution> {
        match self {
            Spread::Regular(distribution) => Some(distribution),
            Spread::Explicit => None,
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Spread::Regular(distribution) => distribution.fmt(f),
            Spread::Explicit => f.write_str("pieces of each rank's own"),
        }
    }
}

/// One array of a transfer.
#[derive(Clone, Debug)]
pub struct TransferArray {
    /// Its name, for messages.
    pub name: String,
    /// Which part of the stored array moves.
    pub section: Section,
    /// How the section's index space is spread over the ranks.
    pub spread: Spread,
    /// Type of the elements in the memories.
    pub memory: ElementType,
    /// The array on disk.
    pub stored: Stored,
}

impl TransferArray {
    /// Whether what this array costs, the other costs too: all is the same but names and places in files.
    pub(crate) fn is_like(&self, other: &TransferArray) -> bool {
        self.stored.is_like(&other.stored)
            && (&self.section, &self.spread, self.memory) == (&other.section, &other.spread, other.memory)
    }

    /// Hashes what a plan depends on of the section. Where an array is cut freely, one that begins elsewhere costs the same, but
    /// for direct I/O between pages: programs step through a file section by section.
    fn hash_section(&self, hasher: &mut impl Hasher) {
        let starts: Vec<u64> = self.section.dims.iter().map(|triplet| triplet.start).collect();
        match self.stored.offset_of(&starts).filter(|_| self.stored.chunk().is_none()) {
            Some(offset) => {
                let each = self.section.dims.iter().map(|triplet| (triplet.stride, triplet.count, triplet.block));
                (each.collect::<Vec<_>>(), begins_page(offset)).hash(hasher);
            }
            None => self.section.hash(hasher),
        }
    }

    /// Bytes that the section has on disk.
    pub fn stored_bytes(&self) -> u64 {
        volume(&self.section.shape()).unwrap_or(u64::MAX).saturating_mul(self.stored.element.bytes())
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// The arrays, in order.
    pub asks: Vec<TransferArray>,
    /// Number of ranks of the communicator.
    pub ranks: u32,
    /// What is promised beyond moving the elements.
    pub policies: Policies,
}

impl Transfer {
    /// The same for a communicator of so many ranks.
    #[must_use]
    pub fn among(self: Arc<Transfer>, ranks: u32) -> Arc<Transfer> {
        if self.ranks == ranks {
            return self;
        }
        Arc::new(Transfer { ranks, ..Arc::unwrap_or_clone(self) })
    }

    /// Whether what is written is made durable by the ranks that write it, at the end.
    pub fn is_synced(&self) -> bool {
        self.policies.durability == Durability::Now
    }

    /// What the names of all objects of the transfer begin with.
    pub fn objects_below(&self) -> Arc<[Object]> {
        let mut all: Vec<Object> = self.asks.iter().map(|ask| ask.stored.below()).collect();
        all.dedup();
        all.into()
    }

    /// A number that is the same for transfers of which all that a plan depends on is the same. Names are not among it:
    /// a simulation dumps the same arrays under ever new names.
    pub fn fingerprint(&self) -> u64 {
        self.hashed(DefaultHasher::new())
    }

    /// The same for transfers of which extents differ by less than a quarter, too. Not where chunks go through codecs.
    pub fn kind(&self) -> Option<u64> {
        let coded = self.asks.iter().any(|ask| ask.stored.codec().is_some());
        (!coded).then(|| self.hashed(Rough::default()))
    }

    fn hashed(&self, mut hasher: impl Hasher) -> u64 {
        (self.direction, self.ranks, self.policies, self.asks.len()).hash(&mut hasher);
        let mut last: Option<Object> = None;
        let mut before: Option<&TransferArray> = None;
        for ask in &self.asks {
            // Writers of one file share its lock; and direct I/O that begins between its pages is slower.
            let same_file = ask.stored.object().map(|(object, offset)| {
                let same = last.as_ref() == Some(&object);
                last = Some(object);
                (same, !same && begins_page(offset))
            });
            // Of hundreds of arrays in one call, nearly all are like the one before them.
            let again = before.replace(ask).is_some_and(|before| before.is_like(ask));
            (same_file, again).hash(&mut hasher);
            if again {
                continue;
            }
            ask.hash_section(&mut hasher);
            (ask.memory.kind, ask.memory == ask.stored.element, ask.spread.regular()).hash(&mut hasher);
            ask.stored.hash_likeness(&mut hasher);
        }
        hasher.finish()
    }

    /// Bytes of the indexes of all shards that it reads \[B\].
    pub fn index_bytes(&self) -> u64 {
        let reads = self.direction == Direction::Read;
        let each = self.asks.iter().filter(|_| reads).map(|ask| ask.stored.index_bytes(&ask.section));
        each.fold(0, u64::saturating_add)
    }

    /// Bytes that move to or from storage, without padding.
    pub fn stored_bytes(&self) -> u64 {
        self.asks.iter().map(TransferArray::stored_bytes).fold(0, u64::saturating_add)
    }
}

/// Between whom data cross in strategies that exchange them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Exchange {
    /// Anybody sends to any server.
    All,
    /// What is written or read in one round passes through one of the ranks that hold a part of it, so data cross only
    /// between ranks that share extents of the file.
    Sharers,
}

impl Exchange {
    /// All.
    pub const ALL: [Exchange; 2] = [Exchange::All, Exchange::Sharers];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Exchange::All => "all",
            Exchange::Sharers => "sharers",
        }
    }

    /// The exchange with this name.
    pub fn from_name(name: &str) -> Option<Exchange> {
        Exchange::ALL.into_iter().find(|exchange| exchange.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write of an array that begins at this byte of a file.
    fn at(object: &str, offset: u64) -> Transfer {
        let element = ElementType::native(hyperslab_layout::Kind::Int32);
        let stored = Stored::in_file(&[9], element, object, offset);
        let ask = TransferArray {
            name: object.into(),
            section: Section::whole(&[9]),
            spread: Spread::Explicit,
            memory: element,
            stored,
        };
        Transfer { direction: Direction::Write, asks: vec![ask], ranks: 1, policies: Policies::default() }
    }

    #[test]
    fn transfers_of_about_the_same_extents_are_of_a_kind() {
        let of = |extent: u64| {
            let mut transfer = at("a", 0);
            transfer.asks[0].stored.shape = vec![extent];
            transfer.asks[0].section = Section::whole(&[extent]);
            transfer
        };
        assert_ne!(of(10_000).fingerprint(), of(10_001).fingerprint());
        assert_eq!(of(10_000).kind(), of(10_001).kind());
        assert_ne!(of(10_000).kind(), of(12_500).kind());
        assert_ne!(of(10_000).kind(), at("a", 0).kind());
    }

    #[test]
    fn plans_are_found_again_under_other_names_and_offsets_but_not_out_of_step_with_pages() {
        assert_eq!(at("a", 8192).fingerprint(), at("b", 0).fingerprint());
        assert_eq!(at("a", 24).fingerprint(), at("b", 8000).fingerprint());
        assert_ne!(at("a", 8192).fingerprint(), at("a", 8193).fingerprint());
    }
}
