//! What rank 0 does for a write of arrays: metadata and markers before bytes move, publishing or taking back afterwards.

use super::consolidating::{drop_again, drop_consolidated};
use super::nodes::{check_elements_changeable, kind_of};
use super::shapes::{Open, reshaped};
use super::shards::choose_shards;
use super::stored::{stored, stored_below};
use super::texts::{covers_chunks, in_slots};
use super::{METADATA_KEY, Store};
use crate::error::format_fault;
use crate::options::WriteOptions;
use crate::pinned::Pinned;
use crate::planning::{Shaped, choose_shape, is_possible, said_of_chunks};
use hyperslab_collective::attempts::{ARRAY, Change, Entry, MARKER, Marker, New, Replacing, TouchedParts};
use hyperslab_collective::{ArrayRequest, Decision, Each, Selected, Target, natural_chunks};
use hyperslab_format::zarr::{ArrayMetadata, NodeType};
use hyperslab_layout::stored::Stored;
use hyperslab_layout::{Object, Section};
use hyperslab_plan::{Beside, MemoryLayout, Parameters, Transfer, TransferArray, Use};
use hyperslab_world::{Fault, FaultKind, Names, Proof, Publishing, Root};
use std::sync::Arc;
use std::time::Instant;

/// Kinds of new arrays of one call whose chunks are chosen.
const KINDS_MAX: usize = 8;

/// Rank 0's side of a write.
pub(super) struct Writing {
    store: Store,
    arrays: Vec<ArrayRequest>,
    /// Of new arrays; once they are looked at, in the chunks that are the best for them.
    metadata: Vec<ArrayMetadata>,
    shaped: Shaped,
    new: WriteOptions,
    update: bool,
    /// Where new arrays lie until they are published: in a step, where they will be in the step.
    hidden: Vec<String>,
    /// What several of them were begun in.
    begun: Option<String>,
    /// Their metadata, where others than rank 0 write them.
    beside: Vec<Beside>,
    /// Of the arrays that are updated, and whether an earlier update of them stays unfinished.
    markers: Vec<(Marker, bool)>,
    /// Arrays of which an earlier update that did not end is over with this one.
    ended: Vec<String>,
    /// The arrays that are updated, and what proves that other ranks see the same.
    held: Option<(Pinned, Vec<Proof>)>,
}

impl Writing {
    /// A write of new arrays, with these metadata, or an update of some that are there.
    pub(super) fn new(
        store: Store,
        arrays: Vec<ArrayRequest>,
        metadata: Vec<ArrayMetadata>,
        new: WriteOptions,
        update: bool,
    ) -> Writing {
        let (hidden, markers, ended) = (Vec::new(), Vec::new(), Vec::new());
        let (shaped, begun, beside) = (Shaped::default(), None, Vec::new());
        Writing { store, arrays, metadata, shaped, new, update, hidden, begun, beside, markers, ended, held: None }
    }

    fn directory(&self) -> Arc<dyn Names> {
        self.store.directory()
    }

    /// The visible name of an array.
    fn at(&self, array: &ArrayRequest) -> String {
        format!("{}{}", self.store.base(), array.name)
    }

    fn publishes(&self) -> bool {
        !self.update && self.store.staged.is_none()
    }

    fn durable(&self) -> bool {
        self.store.options.durable
    }

    /// The existing arrays that are updated.
    fn found(&mut self) -> Result<Vec<Stored>, Fault> {
        for array in &self.arrays {
            self.store.attempts.check_changes(&self.at(array), "would be changed where readers see it")?;
        }
        // Before their metadata are read; but what is wrong with those says more.
        let held = Pinned::of(self.directory(), self.arrays.iter().map(|array| self.at(array)));
        let each = self.arrays.iter().zip(0..).map(|(array, root)| {
            let found = self.store.found(&array.name)?;
            check_elements_changeable(&array.name, &found)?;
            let (metadata, node) = found;
            let Selected::Section(section) = &array.selected else {
                return Ok((stored(&metadata, root, false), node.proof));
            };
            let metadata = in_slots(array, metadata, self.new.of(root as usize).element, |metadata| {
                covers_chunks(section, &metadata.shape, &metadata.chunk_shape)
            })?;
            Ok((stored(&metadata, root, false), node.proof))
        });
        let (stored, proofs) = each.collect::<Result<Vec<_>, Fault>>()?.into_iter().unzip();
        self.held = Some((held?, proofs));
        Ok(stored)
    }

    /// Refuses names that are taken; a group, with all in it, also where arrays may be replaced.
    fn check_free(&self) -> Result<(), Fault> {
        for array in &self.arrays {
            let name = &array.name;
            // What cannot be read may be replaced.
            let is_group = || matches!(kind_of(&*self.directory(), &self.at(array)), Ok(Some(NodeType::Group)));
            let is_taken = self.new.overwrite || self.store.attempts.is_taken(&self.at(array), METADATA_KEY)?;
            if is_taken && is_group() {
                let text = format!("'{name}' in '{}' is a group, or a step", self.store.path().display());
                return Err(Fault::new(FaultKind::Exists, text)
                    .hint("choose another name: only arrays can be replaced, changed or made longer"));
            }
            if is_taken && !self.new.overwrite {
                let text = format!("'{name}' exists already in '{}'", self.store.path().display());
                return Err(Fault::new(FaultKind::Exists, text).hint(
                    "replace it with overwrite, change a part of it with section, or make it longer with append",
                ));
            }
        }
        Ok(())
    }

    /// Begins new arrays.
    fn make(&mut self, stored: &mut [Stored]) -> Result<Vec<Root>, Fault> {
        let replaces = self.publishes() && self.new.overwrite;
        if let ([_, _, ..], false) = (&*stored, replaces)
            && let Some(above) = self.begin_several()?
        {
            return self.leave_to_make(stored, &above);
        }
        self.make_each(stored)
    }

    /// Begins several new arrays that replace none, and gives the hidden directory that they shall lie in, where that can be.
    fn begin_several(&mut self) -> Result<Option<String>, Fault> {
        let attempts = self.store.attempts.clone();
        if self.publishes() {
            self.begun = attempts.begin_several(&self.store.group)?;
            return Ok(self.begun.clone());
        }
        let in_directories = matches!(self.directory().publishing(), Publishing::Rename);
        Ok(in_directories.then(|| self.above()))
    }

    /// Leaves it to the ranks that handle storage to make directories of arrays in this one, and their metadata.
    fn leave_to_make(&mut self, stored: &mut [Stored], above: &str) -> Result<Vec<Root>, Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        for (number, one) in stored.iter_mut().enumerate() {
            let (array, metadata) = (&self.arrays[number], &self.metadata[number]);
            let hidden = format!("{above}/{}", array.name);
            if self.begun.is_none() && directory.exists(&hidden) {
                // A write that failed left it in the step.
                directory.remove(&hidden)?;
            }
            self.hidden.push(hidden);
            let prefix = format!("{}/", array.name);
            *one = stored_below(metadata, (0, &prefix), true);
            let json = metadata.to_json(&array.name).map_err(format_fault)?;
            let object = Object::from(&*format!("{prefix}{METADATA_KEY}"));
            let bytes = match self.beside.last().filter(|last| *last.bytes == *json) {
                Some(last) => last.bytes.clone(),
                None => json.into(),
            };
            self.beside.push(Beside { object, bytes });
        }
        Ok(vec![attempts.ground(above)])
    }

    /// Makes the directories of new arrays, with their metadata.
    fn make_each(&mut self, stored: &mut [Stored]) -> Result<Vec<Root>, Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        let mut roots = Vec::with_capacity(stored.len());
        for (number, one) in stored.iter_mut().enumerate() {
            let array = &self.arrays[number];
            let hidden = if self.publishes() {
                let (of, to) = (self.store.shown(&array.name), self.at(array));
                let overwrite = self.new.overwrite;
                attempts.begin(&New { kind: ARRAY, of: &of, to: &to, key: METADATA_KEY, overwrite })?
            } else {
                let hidden = self.at(array);
                attempts.renew(&hidden)?;
                hidden
            };
            self.hidden.push(hidden.clone());
            let json = self.metadata[number].to_json(&array.name).map_err(format_fault)?;
            *one = self::stored(&self.metadata[number], number as u32, true);
            let like = format!("{}/{METADATA_KEY}", self.at(array));
            directory.create_like(&format!("{hidden}/{METADATA_KEY}"), &json, json.len() as u64, &like)?;
            let replaces = self.new.overwrite && directory.exists(&like);
            let like = replaces.then(|| directory.full(&like).into());
            roots.push(Root { like, ..attempts.ground(&hidden) });
        }
        Ok(roots)
    }

    /// Marks arrays before they are updated in place.
    fn mark(&mut self, stored: &[Stored]) -> Result<Vec<Root>, Fault> {
        let attempts = self.store.attempts.clone();
        let updates = attempts.updates()?;
        let proofs = self.held.as_ref().map_or(Vec::new(), |(_, proofs)| proofs.clone());
        let mut roots = Vec::with_capacity(stored.len());
        for ((stored, proof), array) in stored.iter().zip(proofs).zip(&self.arrays) {
            let (at, shown) = (self.at(array), self.store.shown(&array.name));
            let section = if let Selected::Section(section) = &array.selected { Some(section.clone()) } else { None };
            let touched = TouchedParts::from_iter([(shown.clone(), section)]);
            let change = Change::Torn { updates: Some(&updates), touched: &|| touched.clone() };
            let marker = attempts.mark(&format!("{at}/{MARKER}"), &shown, &change)?;
            // An earlier update that did not end is over when all that it touched was written again.
            let whole = array.holding.as_ref().is_some_and(|holding| holding.shape() == stored.shape);
            let stays = marker.was_there() && !whole && !marker.is_ended_by(&touched);
            if marker.was_there() && !stays {
                self.ended.push(shown);
            }
            self.markers.push((marker, stays));
            roots.push(attempts.ground_in_place(&at, proof, &updates));
        }
        self.check_held()?;
        Ok(roots)
    }

    /// Lets new arrays have the chunks that are the best for them. Those that are alike are shaped alike; where there are
    /// many kinds, which would take long to think about, the last keep their usual chunks.
    fn shape(&mut self, laid: Each<'_>) {
        let (started, mut said) = (Instant::now(), String::new());
        let like = |a: usize, b: usize| {
            let (one, other) = (&self.arrays[a], &self.arrays[b]);
            self.metadata[a].shape == self.metadata[b].shape
                && self.new.of(a).shaped_as(self.new.of(b))
                && one.holding == other.holding
                && one.memory.first() == other.memory.first()
        };
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for number in 0..self.arrays.len() {
            match kinds.iter().position(|kind| like(kind[0], number)) {
                Some(kind) => kinds[kind].push(number),
                None if kinds.len() < KINDS_MAX => kinds.push(vec![number]),
                None => {}
            }
        }
        let mut metadata = self.metadata.clone();
        for kind in kinds {
            let (first, usual) = (kind[0], &self.metadata[kind[0]].chunk_shape);
            let laid = laid(first);
            let Some(open) = self.open(first, kind.len(), laid) else { continue };
            let new = self.new.of(first);
            let ladders = open.ladders(new);
            let taken = choose_shape(self.store.comm.plans(), usual, &ladders, |chunk| open.uses(new, chunk));
            said += &said_of_chunks(&self.arrays[first].name, &taken, usual);
            for &number in &kind {
                metadata[number] = reshaped(&self.metadata[number], taken.chunk.clone());
            }
            let Some(holding) = self.arrays[first].holding.as_deref() else { continue };
            let budget = self.store.options.preference.buffer_bytes_max;
            let natural = natural_chunks(holding, metadata[first].element.bytes());
            let possible = |one: &Use| is_possible(self.store.comm.plans(), one);
            let chosen = choose_shards(&open, new, &metadata[first], &natural, budget, possible);
            let Some((sharded, saved)) = chosen else { continue };
            said += &saved;
            for number in kind {
                let (codecs, chunk) = (sharded.codecs.clone(), sharded.chunk_shape.clone());
                metadata[number] = reshaped(&ArrayMetadata { codecs, ..metadata[number].clone() }, chunk);
            }
        }
        self.metadata = metadata;
        self.shaped = Shaped { said, planning_ns: started.elapsed().as_nanos() as u64 };
    }

    /// A new array of which the chunks are open, and so many like it.
    fn open(&self, number: usize, arrays: usize, laid: Option<MemoryLayout>) -> Option<Open<'_>> {
        let (array, metadata) = (&self.arrays[number], &self.metadata[number]);
        let memory = array.memory.first().copied().unwrap_or(metadata.stored_element());
        Some(Open {
            metadata,
            ask: TransferArray {
                name: array.name.clone(),
                section: Section::whole(&metadata.shape),
                spread: array.holding.as_ref()?.spread(),
                memory,
                stored: stored(metadata, 0, true),
            },
            arrays,
            laid,
            hints: self.store.options.preference.clone(),
            ranks: self.store.ranks,
            policies: self.store.policies_of_writes(),
        })
    }

    /// Whether the arrays that are updated are still those whose metadata were read.
    fn check_held(&self) -> Result<(), Fault> {
        self.held.as_ref().map_or(Ok(()), |(held, _)| held.check("changed in place"))
    }

    /// The directory in which new arrays become visible.
    fn above(&self) -> String {
        self.store.base().trim_end_matches('/').into()
    }

    /// Keeps others from changing in place what is about to be replaced, by these markers; and from replacing it, too, where
    /// several are: they would be some of one attempt and some of the other.
    fn mark_replaced(&self, entries: &mut [Entry], marked: &mut Vec<Marker>) -> Result<(), Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        let alone = entries.len() > 1 && matches!(directory.publishing(), Publishing::Rename);
        let mut each: Vec<_> = entries.iter_mut().zip(&self.arrays).filter(|(entry, _)| entry.replaces).collect();
        // Of two who replace the same ones, the first to come gets all of them.
        each.sort_by(|a, b| a.0.to.cmp(&b.0.to));
        for (entry, array) in each {
            // A link is replaced itself.
            let is_link = directory.is_link(&entry.to);
            let is_taken = attempts.is_taken(&entry.to, METADATA_KEY)?;
            let marker = if is_taken && !is_link {
                let (marker, how) = (format!("{}/{MARKER}", entry.to), Replacing { noted: true, alone });
                attempts.mark_replaced(&marker, &self.store.shown(&array.name), how)?
            } else {
                None
            };
            // What comes later is another attempt's.
            entry.replaces = !alone || is_link || marker.is_some();
            marked.extend(marker);
        }
        Ok(())
    }

    /// What is hidden, and not needed any more: new arrays that were given up, or what they have replaced.
    fn take_hidden(&mut self) -> impl Iterator<Item = String> + use<> {
        let hidden = std::mem::take(&mut self.hidden);
        match self.begun.take() {
            Some(begun) => vec![begun].into_iter(),
            None => hidden.into_iter(),
        }
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(from, array): (&String, &ArrayRequest)| Entry {
            from: from.clone(),
            to: self.at(array),
            replaces: self.new.overwrite,
        };
        self.hidden.iter().zip(&self.arrays).map(entry).collect()
    }
}

impl Target for Writing {
    fn look(&mut self, laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        if self.update {
            return self.found();
        }
        self.store.attempts.while_there(self.check_free())?;
        self.shape(laid);
        Ok(self.metadata.iter().zip(0..).map(|(metadata, root)| stored(metadata, root, true)).collect())
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        self.store.decided(transfer, laid, &self.shaped)
    }

    fn begin(
        &mut self,
        stored: &mut [Stored],
        _transfer: &Arc<Transfer>,
        _parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        debug_assert_eq!(stored.len(), self.arrays.len(), "arrays in chunks are never taken as one");
        if self.update { self.mark(stored) } else { self.make(stored) }
    }

    fn beside(&mut self) -> Vec<Beside> {
        std::mem::take(&mut self.beside)
    }

    fn publish(&mut self) -> Result<(), Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        // Parts of what took its place may be of this update: its marker stays, or goes there.
        self.check_held()?;
        for (marker, stays) in self.markers.drain(..) {
            attempts.unmark(marker, stays)?;
        }
        if !self.publishes() {
            return Ok(());
        }
        if self.durable() && self.begun.is_none() {
            let metadata = self.hidden.iter().map(|hidden| format!("{hidden}/{METADATA_KEY}"));
            directory.sync_files(&metadata.collect::<Vec<_>>())?;
        }
        let ancestors = self.store.ancestors(&self.store.group);
        let mut entries = self.entries();
        let mut marked = Vec::new();
        let ready =
            self.mark_replaced(&mut entries, &mut marked).and_then(|()| drop_consolidated(&attempts, &ancestors));
        let published = ready.and_then(|()| attempts.publish(&entries));
        // What was replaced takes its marker along. Of half a publication nobody knows which is which.
        let published = published.map_err(|fault| match fault.kind {
            FaultKind::Unsynced => fault,
            _ => attempts.withdrawn(marked, fault),
        });
        published.map_err(|fault| match fault.kind {
            FaultKind::Exists if self.new.overwrite => {
                let fault = fault.as_kind(FaultKind::Busy).also("several arrays are replaced together or not at all");
                fault.hint("repeat the call")
            }
            _ => fault,
        })?;
        let dropped = drop_again(&attempts, &ancestors);
        if let Some(first) = entries.first().filter(|_| self.durable()) {
            attempts.sync_published(&self.above(), &first.to)?;
        }
        dropped
    }

    fn torn(&self) -> Vec<String> {
        self.markers.iter().map(|(marker, _)| marker.shown().to_string()).collect()
    }

    fn ended(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ended)
    }

    fn undo(&mut self, moved: bool) {
        let attempts = self.store.attempts.clone();
        for (marker, _) in self.markers.drain(..) {
            match moved {
                true => attempts.leave_unfinished(marker),
                false => drop(attempts.withdraw(marker)),
            }
        }
        self.take_hidden().for_each(|hidden| attempts.discard(&hidden));
    }

    /// What is new stays hidden: nobody writes under its name again.
    fn abandon(&mut self) {
        let attempts = self.store.attempts.clone();
        self.markers.drain(..).for_each(|(marker, _)| attempts.leave_unfinished(marker));
    }

    fn keep(&mut self) {
        let above = self.above();
        let hidden = self.take_hidden();
        self.store.attempts.keep(&above, hidden);
    }

    /// Others may read what was replaced, or have other names for its files, which keep their contents.
    fn tidy(&mut self) {
        if self.publishes() {
            let directory = self.directory();
            let kept = if self.durable() { self.store.attempts.release(&self.above()) } else { Vec::new() };
            for replaced in self.take_hidden().chain(kept) {
                // What cannot be removed now goes with the root.
                let _ = directory.remove(&replaced);
            }
        }
    }
}

/// The place in an array's grid, which may lie outside of it, of the chunk with this key.
fn chunk_with(metadata: &ArrayMetadata, key: &str) -> Option<Vec<u64>> {
    let numbers = key.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    (numbers.len() == metadata.shape.len() && metadata.chunk_key(&numbers) == key).then_some(numbers)
}

/// Whether a chunk lies outside of an array: readers do not see it.
pub(super) fn is_outside(metadata: &ArrayMetadata, key: &str) -> bool {
    let grid = metadata.grid_shape();
    chunk_with(metadata, key).is_some_and(|place| place.iter().zip(&grid).any(|(number, count)| number >= count))
}

/// Whether readers see what has this name in an array: its metadata, and chunks of its grid.
pub(super) fn is_seen(metadata: &ArrayMetadata, inside: &str) -> bool {
    inside == METADATA_KEY || chunk_with(metadata, inside).is_some() && !is_outside(metadata, inside)
}
