//! What rank 0 does for a write of arrays: metadata and markers before bytes move, publishing or taking back afterwards.

use super::call::{Told, checked_section, stored, tell};
use super::shapes::{Open, reshaped};
use super::{MARKER, METADATA_KEY, NewArray, Store, WriteAsk, read_array};
use crate::attempts::{Change, Entry, Marker};
use crate::casting::check_cast;
use crate::course::Target;
use crate::error::format_fault;
use crate::held::Held;
use crate::planning::{Shaped, choose_parameters, choose_shape, said_of_chunks};
use hyperslab_format::zarr::ArrayMetadata;
use hyperslab_layout::{Casting, Section};
use hyperslab_plan::{Direction, Laid, Transfer};
use hyperslab_walk::Ways;
use hyperslab_world::{Fault, FaultKind, Names, Proof, Root, fingerprint};
use std::sync::Arc;
use std::time::Instant;

/// Kinds of new arrays of one call whose chunks are chosen.
const KINDS_MAX: usize = 8;

/// Rank 0's side of a write.
pub(super) struct Writing {
    pub(super) store: Store,
    /// What is done, for messages.
    pub(super) what: String,
    pub(super) asks: Vec<WriteAsk>,
    pub(super) metadata: Vec<ArrayMetadata>,
    pub(super) new: NewArray,
    pub(super) update: bool,
    /// How this rank's arrays lie in memory.
    pub(super) laid: Vec<Option<Laid>>,
    /// Where new arrays lie until they are published: in a step, where they will be in the step.
    pub(super) hidden: Vec<String>,
    /// Of the arrays that are updated, and whether an earlier update of them stays unfinished.
    pub(super) markers: Vec<(Marker, bool)>,
    /// The arrays that are updated.
    pub(super) held: Option<Held>,
}

impl Writing {
    fn directory(&self) -> Arc<dyn Names> {
        self.store.directory()
    }

    /// The visible name of an array.
    fn at(&self, ask: &WriteAsk) -> String {
        format!("{}{}", self.store.base(), ask.name)
    }

    fn publishes(&self) -> bool {
        !self.update && self.store.staged.is_none()
    }

    fn durable(&self) -> bool {
        self.store.options.durable
    }

    /// The existing arrays that are updated, and what proves that other ranks see the same.
    fn found(&self) -> Result<Vec<(Told, Proof)>, Fault> {
        let (directory, base) = (self.directory(), self.store.base());
        let each = self.asks.iter().map(|ask| {
            let (metadata, bytes) = read_array(&*directory, &base, &ask.name)?;
            let key = directory.full(&format!("{base}{}/{METADATA_KEY}", ask.name));
            let told = Told { prefix: self.store.prefix(&ask.name), fresh: false, metadata };
            Ok((told, Proof::Contents(key.into(), fingerprint(&bytes))))
        });
        each.collect()
    }

    /// Refuses names that are taken.
    fn check_free(&self) -> Result<(), Fault> {
        let directory = self.directory();
        match self.asks.iter().find(|ask| !self.new.overwrite && directory.exists(&self.at(ask))) {
            None => Ok(()),
            Some(ask) => Err(Fault::new(
                FaultKind::Exists,
                format!("'{}' exists already in '{}'", ask.name, self.store.path().display()),
            )
            .hint("overwrite replaces it, section= changes it, append() makes it longer")),
        }
    }

    /// Makes the directories of new arrays, with their metadata.
    fn make(&mut self, told: &mut [Told]) -> Result<Vec<Root>, Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        let mut roots = Vec::with_capacity(told.len());
        for (told, ask) in told.iter_mut().zip(&self.asks) {
            let hidden = if self.publishes() {
                let at = self.at(ask);
                let replaced = self.new.overwrite && directory.exists(&at);
                attempts.array(&self.store.shown(&ask.name), replaced.then_some(&*at))?
            } else {
                let hidden = self.at(ask);
                directory.remove(&hidden)?;
                directory.make_new(&hidden)?;
                hidden
            };
            self.hidden.push(hidden.clone());
            told.prefix = format!("{}/", directory.full(&hidden));
            let json = told.metadata.to_json(&ask.name).map_err(format_fault)?;
            directory.create(&format!("{hidden}/{METADATA_KEY}"), &json, json.len() as u64)?;
            roots.push(attempts.ground(&hidden));
        }
        Ok(roots)
    }

    /// Marks arrays before they are updated in place.
    fn mark(&mut self, told: &[Told], proofs: Vec<Proof>) -> Result<Vec<Root>, Fault> {
        let attempts = self.store.attempts.clone();
        let updates = attempts.updates()?;
        let mut roots = Vec::with_capacity(told.len());
        for ((told, proof), ask) in told.iter().zip(proofs).zip(&self.asks) {
            let at = self.at(ask);
            let marker = attempts.mark(
                &format!("{at}/{MARKER}"),
                &self.store.shown(&ask.name),
                &Change::Torn(Some(&updates)),
            )?;
            // Only writing all of it ends an earlier update that did not end.
            let stays = marker.was_there() && ask.holding.shape() != told.metadata.shape;
            self.markers.push((marker, stays));
            roots.push(attempts.ground_in_place(&at, proof, &updates));
        }
        self.check_held()?;
        Ok(roots)
    }

    /// The new arrays in the chunks that are the best for them. Those that are alike are shaped alike; where there are
    /// many kinds, which would take long to think about, the last keep their usual chunks.
    fn shaped(&self) -> (Vec<ArrayMetadata>, Shaped) {
        let (started, mut said) = (Instant::now(), String::new());
        let like = |a: usize, b: usize| {
            let (one, other) = (&self.asks[a], &self.asks[b]);
            self.metadata[a].shape == self.metadata[b].shape
                && one.holding == other.holding
                && one.element() == other.element()
        };
        let mut kinds: Vec<Vec<usize>> = Vec::new();
        for number in 0..self.asks.len() {
            match kinds.iter().position(|kind| like(kind[0], number)) {
                Some(kind) => kinds[kind].push(number),
                None if kinds.len() < KINDS_MAX => kinds.push(vec![number]),
                None => {}
            }
        }
        let mut metadata = self.metadata.clone();
        for kind in kinds {
            let (first, usual) = (kind[0], &self.metadata[kind[0]].chunk_shape);
            let open = self.open(first, kind.len());
            let ladders = open.ladders(&self.new);
            let taken = choose_shape(&self.store.comm, usual, &ladders, |chunk| open.uses(&self.new, chunk));
            said += &said_of_chunks(&self.asks[first].name, &taken, usual);
            for number in kind {
                metadata[number] = reshaped(&self.metadata[number], taken.chunk.clone());
            }
        }
        (metadata, Shaped { said, planning_ns: started.elapsed().as_nanos() as u64 })
    }

    /// A new array of which the chunks are open, and so many like it.
    fn open(&self, number: usize, arrays: usize) -> Open<'_> {
        let (ask, metadata) = (&self.asks[number], &self.metadata[number]);
        Open {
            metadata,
            ask: ask.asked(Section::whole(&metadata.shape), stored(metadata, "", true)),
            arrays,
            laid: self.laid.get(number).cloned().flatten(),
            wish: self.store.options.wish.clone(),
            ranks: self.store.ranks,
            policies: self.store.policies_of_writes(),
        }
    }

    /// Chooses, then makes what is needed.
    fn ready(&mut self) -> Result<Vec<u8>, Fault> {
        let (mut told, proofs, shaped): (Vec<Told>, Vec<Proof>, Shaped) = if self.update {
            // Before their metadata are read; but what is wrong with those says more.
            let held = Held::of(self.directory(), self.asks.iter().map(|ask| self.at(ask)));
            let (told, proofs): (Vec<Told>, Vec<Proof>) = self.found()?.into_iter().unzip();
            self.held = Some(held?);
            for (told, ask) in told.iter().zip(&self.asks) {
                check_cast(&ask.name, &ask.arrays, told.metadata.stored_element(), self.new.casting, 0)?;
            }
            (told, proofs, Shaped::default())
        } else {
            self.check_free()?;
            let (metadata, shaped) = self.shaped();
            let new = |metadata| Told { prefix: String::new(), fresh: true, metadata };
            (metadata.into_iter().map(new).collect(), Vec::new(), shaped)
        };
        let asks = told.iter().zip(&self.asks).map(|(told, ask)| {
            let section = checked_section(&ask.name, ask.section.as_ref(), &told.metadata.shape, ask.holding.shape())?;
            Ok(ask.asked(section, stored(&told.metadata, &told.prefix, told.fresh)))
        });
        let asks = asks.collect::<Result<Vec<_>, Fault>>()?;
        let transfer = Transfer {
            direction: Direction::Write,
            asks,
            ranks: self.store.ranks,
            policies: self.store.policies_of_writes(),
        };
        let wish = self.store.options.wish.clone();
        let chosen = choose_parameters(&self.store.comm, transfer, &wish, self.store.held, &self.laid, &shaped)?;
        let roots = if self.update { self.mark(&told, proofs)? } else { self.make(&mut told)? };
        tell(chosen.bytes(&Root::encode(&roots)), &told)
    }

    /// Whether the arrays that are updated are still those whose metadata were read.
    fn check_held(&self) -> Result<(), Fault> {
        self.held.as_ref().map_or(Ok(()), |held| held.check("changed in place"))
    }

    /// The directory in which new arrays become visible.
    fn above(&self) -> String {
        self.store.base().trim_end_matches('/').into()
    }

    /// Keeps others from changing in place what is about to be replaced, by these markers.
    fn mark_replaced(&self, entries: &[Entry], marked: &mut Vec<Marker>) -> Result<(), Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        for (entry, ask) in entries.iter().zip(&self.asks).filter(|(entry, _)| entry.replaces) {
            // A link is replaced itself.
            if directory.exists(&entry.to) && !directory.is_link(&entry.to) {
                let marker = format!("{}/{MARKER}", entry.to);
                marked.extend(attempts.mark_replaced(&marker, &self.store.shown(&ask.name), true)?);
            }
        }
        Ok(())
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |(from, ask): (&String, &WriteAsk)| Entry {
            from: from.clone(),
            to: self.at(ask),
            replaces: self.new.overwrite,
        };
        self.hidden.iter().zip(&self.asks).map(entry).collect()
    }
}

impl Target for Writing {
    fn prepare(&mut self, _cannot: Ways) -> Result<Vec<u8>, Fault> {
        self.ready().map_err(|fault| fault.context(&self.what))
    }

    fn publish(&mut self) -> Result<Vec<u8>, Fault> {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        // Parts of what took its place may be of this update: its marker stays, or goes there.
        self.check_held()?;
        for (marker, stays) in self.markers.drain(..) {
            attempts.unmark(marker, stays)?;
        }
        if !self.publishes() {
            return Ok(Vec::new());
        }
        if self.durable() {
            let metadata = self.hidden.iter().map(|hidden| format!("{hidden}/{METADATA_KEY}"));
            directory.sync_files(&metadata.collect::<Vec<_>>())?;
        }
        let ancestors = self.store.ancestors(&self.store.group);
        let entries = self.entries();
        let mut marked = Vec::new();
        let ready = self.mark_replaced(&entries, &mut marked).and_then(|()| attempts.drop_consolidated(&ancestors));
        let published = ready.and_then(|()| attempts.publish(&entries));
        // What was replaced takes its marker along. Of half a publication nobody knows which is which.
        if published.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced) {
            marked.into_iter().for_each(|marker| attempts.withdraw(marker));
        }
        published?;
        let dropped = attempts.drop_again(&ancestors);
        if let Some(first) = entries.first().filter(|_| self.durable()) {
            attempts.sync_published(&self.above(), &first.to)?;
        }
        dropped.map(|()| Vec::new())
    }

    fn undo(&mut self, moved: bool) {
        let (directory, attempts) = (self.directory(), self.store.attempts.clone());
        for (marker, _) in self.markers.drain(..) {
            match moved {
                true => attempts.leave_unfinished(marker),
                false => attempts.withdraw(marker),
            }
        }
        self.hidden.drain(..).for_each(|hidden| directory.discard(&hidden));
    }

    /// What is new stays hidden: nobody writes under its name again.
    fn abandon(&mut self) {
        let attempts = self.store.attempts.clone();
        self.markers.drain(..).for_each(|(marker, _)| attempts.leave_unfinished(marker));
    }

    fn keep(&mut self) {
        let above = self.above();
        self.store.attempts.keep(&above, self.hidden.drain(..));
    }

    /// Others may read what was replaced, or have other names for its files, which keep their contents.
    fn tidy(&mut self) {
        if self.publishes() {
            let directory = self.directory();
            let kept = if self.durable() { self.store.attempts.release(&self.above()) } else { Vec::new() };
            for replaced in self.hidden.drain(..).chain(kept) {
                // What cannot be removed now goes with the root.
                let _ = directory.remove(&replaced);
            }
        }
    }
}

/// Rank 0's side of an append.
pub(super) struct Appending {
    pub(super) store: Store,
    pub(super) what: String,
    pub(super) ask: WriteAsk,
    pub(super) axis: usize,
    pub(super) casting: Casting,
    pub(super) laid: Vec<Option<Laid>>,
    /// What the array will be, and its marker.
    pub(super) grown: Option<(ArrayMetadata, Marker, Held)>,
}

impl Appending {
    fn at(&self) -> String {
        format!("{}{}", self.store.base(), self.ask.name)
    }

    /// The transfer, from what is told of the grown array.
    pub(super) fn transfer(store: &Store, ask: &WriteAsk, axis: usize, told: &Told) -> Transfer {
        let section = super::call::tail(&told.metadata.shape, ask.holding.shape(), axis);
        let asks = vec![ask.asked(section, stored(&told.metadata, &told.prefix, false))];
        Transfer { direction: Direction::Write, asks, ranks: store.ranks, policies: store.policies_of_writes() }
    }
}

impl Target for Appending {
    fn prepare(&mut self, _cannot: Ways) -> Result<Vec<u8>, Fault> {
        let (store, ask) = (&self.store, &self.ask);
        let (directory, attempts, at) = (store.directory(), store.attempts.clone(), self.at());
        // Of two that append at the same time, the second shall see what the first left.
        let updates = attempts.updates()?;
        let marker = attempts.mark(&format!("{at}/{MARKER}"), &store.shown(&ask.name), &Change::Unseen(&updates));
        let marker = match marker {
            Err(_) if !directory.exists(&at) => {
                return Err(read_array(&*directory, &store.base(), &ask.name)
                    .err()
                    .unwrap_or_else(|| Fault::new(FaultKind::NotFound, format!("there is no array '{}'", ask.name))));
            }
            marker => marker?,
        };
        let held = Held::of(directory.clone(), std::iter::once(at.clone()));
        let prepared = read_array(&*directory, &store.base(), &ask.name).and_then(|(mut metadata, bytes)| {
            let grown = super::call::grow(&metadata.shape, ask.holding.shape(), self.axis);
            metadata.shape = grown.map_err(|fault| fault.context(&self.what))?;
            metadata.check(&ask.name).map_err(format_fault)?;
            check_cast(&ask.name, &ask.arrays, metadata.stored_element(), self.casting, 0)?;
            let told = Told { prefix: store.prefix(&ask.name), fresh: false, metadata };
            let transfer = Appending::transfer(store, ask, self.axis, &told);
            let (wish, shaped) = (store.options.wish.clone(), Shaped::default());
            let chosen = choose_parameters(&store.comm, transfer, &wish, store.held, &self.laid, &shaped)?;
            let key = directory.full(&format!("{at}/{METADATA_KEY}"));
            let root = attempts.ground_in_place(&at, Proof::Contents(key.into(), fingerprint(&bytes)), &updates);
            let payload = tell(chosen.bytes(&Root::encode(&[root])), std::slice::from_ref(&told))?;
            Ok((payload, told.metadata))
        });
        match prepared.and_then(|prepared| Ok((prepared, held?))) {
            Ok(((payload, metadata), held)) => {
                self.grown = Some((metadata, marker, held));
                Ok(payload)
            }
            Err(fault) => {
                attempts.withdraw(marker);
                Err(fault)
            }
        }
    }

    fn publish(&mut self) -> Result<Vec<u8>, Fault> {
        let Some((metadata, marker, held)) = self.grown.take() else { return Ok(Vec::new()) };
        // The marker went with what was replaced.
        held.check("appended to")?;
        let attempts = self.store.attempts.clone();
        let json = metadata.to_json(&self.ask.name).map_err(format_fault)?;
        let (sync, key) = (self.store.syncs_writes(), format!("{}/{METADATA_KEY}", self.at()));
        let ancestors = self.store.ancestors(&self.store.shown(""));
        let dropped = attempts.drop_consolidated(&ancestors);
        let grown = dropped.and_then(|()| attempts.replace_if(&key, &json, sync, || held.check("appended to")));
        if let Err(fault) = grown {
            attempts.withdraw(marker);
            return Err(fault);
        }
        // It has grown: to do it again would append the same twice.
        let dropped = attempts.drop_again(&ancestors);
        let synced = if sync { attempts.sync_published(&self.at(), &self.at()) } else { Ok(()) };
        let shown = self.at();
        let unmarked = attempts
            .unmark(marker, true)
            .map_err(|fault| attempts.left_behind(&format!("{shown}/{MARKER}"), &fault.text));
        synced.and(dropped).and(unmarked).map(|()| Vec::new())
    }

    /// Readers see nothing beyond the old shape.
    fn undo(&mut self, _moved: bool) {
        if let Some((_, marker, _)) = self.grown.take() {
            self.store.attempts.withdraw(marker);
        }
    }

    /// Whoever still writes may rename what it wrote into the array. The marker stays without its lock, so that the next one
    /// who changes the array puts that out of the way first.
    fn abandon(&mut self) {
        self.grown = None;
    }
}
