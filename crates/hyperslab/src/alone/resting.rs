//! Reading parts of arrays at rest: what a rank alone asks for most, in a few requests.
//!
//! A transfer plans, agrees and walks, also where one rank moves one element: that takes a hundred microseconds, and a chunk is
//! decoded for each. Here nothing is planned: what says how the array is stored is remembered as long as its file has not
//! changed, and so are decoded chunks. Whatever is not as usual is left to a transfer, which also says what is wrong: here
//! nothing ever fails.
//!
//! What is promised of reads holds here, too. A file that was changed a moment ago does not rest, and nothing is remembered of
//! it. Of files far away nobody knows when they change, so only those on this host are read here. And of an array whose
//! chunks are files, its metadata are looked at again when all was read: so all of it is of one array.

use super::chunk_cache::{CACHE_BYTES, ChunkCache, Remembered};
use super::selected::{PlacedPart, SelectedParts, TouchedUnit};
use super::sieved::{self, Between};
use super::sight::{Sight, WantedSection};
use hyperslab_format::zarr::verified;
use hyperslab_layout::stored::{Objects, Shards, Stored, Stretch, Table};
use hyperslab_layout::{Region, View};
use hyperslab_pack::Memory;
use hyperslab_world::{FileReader, FileSeen, Names};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most that is decoded at once \[B\].
const DECODED_BYTES: u64 = CACHE_BYTES / 2;
/// Most arrays that are remembered; then all are forgotten.
const ARRAYS_MAX: usize = 256;

/// What a rank remembers of arrays that it reads alone.
#[derive(Default)]
pub(crate) struct Resting {
    sights: Mutex<HashMap<String, Arc<Sight>>>,
    chunks: ChunkCache,
    between: Between,
}

/// Looks up where the chunks lie that are read.
pub(crate) type FindChunks<'a> = &'a dyn Fn(&Sight) -> Option<Stored>;

impl Resting {
    fn sights(&self) -> MutexGuard<'_, HashMap<String, Arc<Sight>>> {
        self.sights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a section, if all that it needs is at rest. `look` says how the array is stored, and `find` where its chunks lie,
    /// for an array of which only a table knows. Whether it did; if not, some of the memory may be written.
    pub(crate) fn read(
        &self,
        name: &str,
        wanted: &WantedSection,
        look: impl FnOnce() -> Option<Sight>,
        find: FindChunks,
    ) -> bool {
        self.sight(name, wanted, look).is_some_and(|sight| self.read_of(&sight, wanted, find).is_some())
    }

    /// How an array is stored, if that fits what is wanted.
    pub(super) fn sight(
        &self,
        name: &str,
        wanted: &WantedSection,
        look: impl FnOnce() -> Option<Sight>,
    ) -> Option<Arc<Sight>> {
        let fits = |sight: &Arc<Sight>| {
            let stored = &sight.stored;
            let same = stored.shape == wanted.shape && stored.element.kind == wanted.into.element.kind;
            same && stored.numbered.is_none() && stored.texts.is_empty()
        };
        let known = self.sights().get(name).cloned();
        if let Some(sight) = known.filter(|sight| sight.is_still_so(wanted.names)) {
            return Some(sight).filter(fits);
        }
        let sight = Arc::new(look()?);
        let mut sights = self.sights();
        if sights.len() >= ARRAYS_MAX {
            sights.clear();
        }
        sights.insert(name.into(), sight.clone());
        Some(sight).filter(fits)
    }

    fn read_of(&self, sight: &Sight, wanted: &WantedSection, find: FindChunks) -> Option<()> {
        let (stored, into) = (&sight.stored, wanted.into);
        let counts = wanted.section.shape();
        let whole = Region::whole(&counts);
        let parts =
            SelectedParts { wanted, counts: &counts, to: View::held(&whole, into.offset, &into.strides, into.element) };
        let units = parts.units(stored)?;
        let stored = sight.with_chunks(&units, find)?;
        let reads = self.read_units(sight, &stored, &parts, &units)?;
        (reads == 0 || sight.was_so_all_along(wanted.names)).then_some(())
    }

    /// Reads units; gives how many were not remembered.
    fn read_units(
        &self,
        sight: &Sight,
        stored: &Stored,
        parts: &SelectedParts,
        units: &[TouchedUnit],
    ) -> Option<usize> {
        let whole = stored.is_read_whole();
        let (mut missing, mut here, mut reads, mut cost) = (Vec::new(), Vec::new(), 0, 0.0);
        for unit in units {
            let Some(found) = self.find(sight, stored, parts, unit)? else {
                parts.fill(unit, stored)?;
                continue;
            };
            if !whole {
                (cost, reads) = (cost + parts.cost_ns(&found, unit, stored.element)?, reads + 1);
                here.push((unit, found));
                continue;
            }
            match self.remembered(&found) {
                Some(elements) => parts.copy(&elements, &found, unit)?,
                None => missing.push((unit, found)),
            }
        }
        let decoded = stored.chunk_bytes().unwrap_or(0).saturating_mul(missing.len() as u64);
        if cost > sieved::WORTH_NS || decoded > DECODED_BYTES {
            return None;
        }
        for (unit, found) in here {
            parts.read(sight, &found, unit, stored.element, &self.between)?;
        }
        reads += missing.len();
        let decoded = in_parallel(&missing, parts.wanted.hands, |(unit, found)| {
            self.decoded(sight, stored, found, unit, parts.wanted.names)
        });
        for ((unit, found), elements) in missing.iter().zip(decoded) {
            match elements? {
                Some(elements) => parts.copy(&elements, found, unit)?,
                None => parts.fill(unit, stored)?,
            }
        }
        Some(reads)
    }

    /// The elements of a chunk, if they are remembered and its file is what it was.
    pub(super) fn remembered(&self, found: &PlacedPart) -> Option<Memory> {
        let now = found.now.filter(|now| now.rests)?;
        match self.chunks.get(&found.key(), now.state)? {
            Remembered::Elements(elements) => Some(elements),
            Remembered::Index(_) => None,
        }
    }

    /// Where a unit lies, `None` inside where it was never written.
    pub(super) fn find(
        &self,
        sight: &Sight,
        stored: &Stored,
        parts: &SelectedParts,
        unit: &TouchedUnit,
    ) -> Option<Option<PlacedPart>> {
        let names = parts.wanted.names;
        let indexed;
        let (stored, now) = match stored.shards() {
            Some(shards) => match self.index(sight, shards, &unit.at, names)? {
                Some((shards, now)) => {
                    indexed = Stored { objects: Objects::Shards(Arc::new(shards)), ..stored.clone() };
                    (&indexed, Some(now))
                }
                None => return Some(None),
            },
            None => (stored, None),
        };
        let Some((object, view)) = stored.place(parts.wanted.section, &unit.at, &unit.low) else { return Some(None) };
        let stretch = stored.extent_of(&unit.at).and_then(|(_, stretch)| stretch);
        let name: Arc<str> = format!("{}{}", sight.below, object.name).into();
        let mut found = PlacedPart { name, stretch, view, now };
        if sight.file.is_some() {
            found.now = Some(FileSeen { state: sight.witness.1, rests: true });
        } else if found.now.is_none() && stored.is_read_whole() && self.chunks.has(&found.key()) {
            // Only of one that may be remembered it matters what it is now; who opens it hears of it, too.
            found.now = names.seen(&found.name).ok()?;
        }
        Some(Some(found))
    }

    /// The index of the shard that a chunk lies in; `None` inside where there is no such shard.
    fn index(
        &self,
        sight: &Sight,
        shards: &Arc<Shards>,
        at: &[u64],
        names: &dyn Names,
    ) -> Option<Option<(Shards, FileSeen)>> {
        let (at, _) = shards.shard_of(at);
        let object: Arc<str> = shards.keys.name(&at).into();
        let name: Arc<str> = format!("{}{object}", sight.below).into();
        let key = (name.clone(), u64::MAX);
        let with = |stretches: Arc<[Stretch]>, now| {
            let known = [(object.clone(), stretches)].into_iter().collect();
            Some(Some((Shards { known: Some(Arc::new(known)), ..(**shards).clone() }, now)))
        };
        if self.chunks.has(&key) {
            let Some(now) = names.seen(&name).ok()? else { return Some(None) };
            if let Some(Remembered::Index(stretches)) = self.chunks.get(&key, now.state) {
                return with(stretches, now);
            }
        }
        let Some((now, file)) = names.reader(&name).ok()? else { return Some(None) };
        let index = shards.codec.index()?;
        let bytes = index.bytes();
        let first = if index.is_at_end() { now.state.bytes.checked_sub(bytes)? } else { 0 };
        let content = contents(&*file, (first, bytes))?;
        let stretches: Arc<[Stretch]> = index.stretches(&content, first, &name).ok()?.into();
        if now.rests && file.seen().ok()? == now {
            self.chunks.keep(key, now.state, Remembered::Index(stretches.clone()));
        }
        with(stretches, now)
    }

    /// The elements of a chunk that is not remembered; `None` inside where it is not there.
    pub(super) fn decoded(
        &self,
        sight: &Sight,
        stored: &Stored,
        found: &PlacedPart,
        unit: &TouchedUnit,
        names: &dyn Names,
    ) -> Option<Option<Memory>> {
        let opened;
        let (file, before): (&dyn FileReader, FileSeen) = match &sight.file {
            Some(file) => (&**file, found.now?),
            None => match names.reader(&found.name).ok()? {
                Some((seen, file)) => {
                    opened = file;
                    (&*opened, seen)
                }
                None => return Some(None),
            },
        };
        let (first, bytes) = found.stretch.unwrap_or((0, before.state.bytes));
        let plain = stored.chunk_bytes().filter(|plain| *plain <= DECODED_BYTES)?;
        let content = contents(file, (first, bytes))?;
        let elements = match stored.codec_at(&unit.at) {
            Some(codec) => codec.decode(&content, plain, &found.name).ok()?,
            None => verified(content, &found.name).ok()?,
        };
        if elements.len() as u64 != plain {
            return None;
        }
        let elements = Memory::from_vec(elements);
        if before.rests && file.seen().ok()? == before {
            self.chunks.keep(found.key(), before.state, Remembered::Elements(elements.clone()));
        }
        Some(Some(elements))
    }
}

impl Sight {
    /// How it is stored, with where these units lie.
    pub(super) fn with_chunks(&self, units: &[TouchedUnit], find: FindChunks) -> Option<Stored> {
        let Some(addresses) = &self.addresses else { return Some(self.stored.clone()) };
        let numbers = || units.iter().map(|unit| self.stored.chunk_number(&unit.at));
        let mut known = addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > ADDRESSES_MAX {
            known.clear();
        }
        if numbers().any(|number| !known.contains_key(&number)) {
            let found = find(self)?;
            let Objects::Table(table) = &found.objects else { return None };
            if !table.others.is_empty() {
                // Chunks that went through other filters than the rest.
                return None;
            }
            known.extend(numbers().map(|number| (number, table.get(number).copied())));
        }
        let addresses = numbers().filter_map(|number| known.get(&number).copied().flatten()).collect();
        let table = Table::of(self.witness.0.as_str(), addresses);
        Some(Stored { objects: Objects::Table(Arc::new(table)), ..self.stored.clone() })
    }
}

/// Most addresses of chunks that are remembered of an array.
const ADDRESSES_MAX: usize = 1 << 16;

/// All of these bytes of a file, if they are not too many.
pub(super) fn contents(file: &dyn FileReader, (first, bytes): Stretch) -> Option<Vec<u8>> {
    // What metadata say may be nonsense, and what is read to pick from takes memory.
    if bytes > DECODED_BYTES {
        return None;
    }
    let memory = Memory::for_vec(bytes).ok()?;
    (file.read_into(first, &memory, 0, bytes).ok()? == bytes).then(|| memory.into_vec())
}

/// Does work for each, on some more threads where there is more than one; in their order.
pub(super) fn in_parallel<T: Sync, R: Send>(each: &[T], hands: u32, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let helpers = (hands as usize).min(each.len().saturating_sub(1));
    if helpers == 0 {
        return each.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some((at, one)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, each.get(at)?)))
        {
            done.push((at, work(one)));
        }
        done
    };
    let mut all = std::thread::scope(|scope| {
        let helping: Vec<_> = (0..helpers).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for hand in helping {
            match hand.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}
