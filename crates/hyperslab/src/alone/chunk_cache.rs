//! Chunks as they were decoded, as long as there is room, by the files that they come from: each is given only while its file is
//! what it was.

use hyperslab_layout::Stretch;
use hyperslab_pack::Memory;
use hyperslab_world::FileState;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What they have together \[B\].
pub(crate) const CACHE_BYTES: u64 = 64 << 20;

/// Which chunk: the name of its file, and its first byte in it.
pub(super) type ChunkKey = (Arc<str>, u64);

/// What is kept of a file.
#[derive(Clone)]
pub(super) enum Remembered {
    /// A chunk's elements.
    Elements(Memory),
    /// The index of a shard.
    Index(Arc<[Stretch]>),
}

impl Remembered {
    fn bytes(&self) -> u64 {
        match self {
            Remembered::Elements(memory) => memory.bytes(),
            Remembered::Index(stretches) => size_of_val(&**stretches) as u64,
        }
    }
}

struct CachedChunk {
    kept: Remembered,
    of: FileState,
    used: u64,
}

/// See the module. Threads share it.
#[derive(Default)]
pub(super) struct ChunkCache(Mutex<CachedChunks>);

#[derive(Default)]
struct CachedChunks {
    entries: HashMap<ChunkKey, CachedChunk>,
    /// By when they were used last.
    turns: BTreeMap<u64, ChunkKey>,
    turn: u64,
    bytes: u64,
}

impl ChunkCache {
    fn inside(&self) -> MutexGuard<'_, CachedChunks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept under this key of a file that is so now.
    pub(super) fn get(&self, key: &ChunkKey, now: FileState) -> Option<Remembered> {
        self.inside().get(key, now)
    }

    /// Whether anything is kept under this key, perhaps of a file that is another one by now.
    pub(super) fn has(&self, key: &ChunkKey) -> bool {
        self.inside().entries.contains_key(key)
    }

    /// Keeps something of a file that was so before and after it was read; what was used longest ago goes.
    pub(super) fn keep(&self, key: ChunkKey, of: FileState, kept: Remembered) {
        // One that takes most of the room would drive out all others.
        if kept.bytes() <= CACHE_BYTES / 2 {
            self.inside().keep(key, of, kept);
        }
    }
}

impl CachedChunks {
    fn get(&mut self, key: &ChunkKey, now: FileState) -> Option<Remembered> {
        let entry = self.entries.get_mut(key)?;
        if entry.of != now {
            self.remove(key);
            return None;
        }
        self.turn += 1;
        let before = std::mem::replace(&mut entry.used, self.turn);
        let key = self.turns.remove(&before).expect("each entry has a turn");
        self.turns.insert(self.turn, key);
        Some(entry.kept.clone())
    }

    fn keep(&mut self, key: ChunkKey, of: FileState, kept: Remembered) {
        self.remove(&key);
        self.turn += 1;
        self.bytes += kept.bytes();
        self.turns.insert(self.turn, key.clone());
        self.entries.insert(key, CachedChunk { kept, of, used: self.turn });
        while self.bytes > CACHE_BYTES
            && let Some((_, oldest)) = self.turns.pop_first()
        {
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &ChunkKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.turns.remove(&entry.used);
            self.bytes -= entry.kept.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(number: i64) -> FileState {
        FileState { identity: (1, 2), bytes: 3, modified_ns: number, changed_ns: number }
    }

    fn chunk(bytes: u64) -> Remembered {
        Remembered::Elements(Memory::allocate(bytes).unwrap())
    }

    #[test]
    fn nothing_is_given_of_a_file_that_has_changed() {
        let cache = ChunkCache::default();
        let key: ChunkKey = ("a".into(), 0);
        cache.keep(key.clone(), state(1), chunk(100));
        assert!(cache.get(&key, state(1)).is_some());
        assert!(cache.get(&key, state(2)).is_none());
        assert!(!cache.has(&key), "nobody will ask for it");
        assert_eq!(cache.inside().bytes, 0);
    }

    #[test]
    fn what_was_used_longest_ago_goes() {
        let cache = ChunkCache::default();
        let key = |number: u64| -> ChunkKey { ("a".into(), number) };
        for number in 0..4 {
            cache.keep(key(number), state(1), chunk(CACHE_BYTES / 4));
        }
        assert!(cache.get(&key(0), state(1)).is_some());
        cache.keep(key(4), state(1), chunk(CACHE_BYTES / 4));
        let left: Vec<u64> = (0..5).filter(|number| cache.has(&key(*number))).collect();
        assert_eq!(left, [0, 2, 3, 4]);
        cache.keep(key(5), state(1), chunk(CACHE_BYTES));
        assert!(!cache.has(&key(5)), "there is no room for so much");
        cache.keep(key(0), state(2), chunk(8));
        let inside = cache.inside();
        assert_eq!((inside.entries.len(), inside.turns.len()), (4, 4));
        assert_eq!(inside.bytes, inside.entries.values().map(|entry| entry.kept.bytes()).sum::<u64>());
    }
}
