//! What rank 0 does for a write of arrays: metadata and markers before bytes move, publishing or taking back afterwards.

use super::call::{Told, checked_section, stored, tell};
use super::shapes::{Open, reshaped};
use super::{ARRAYS, ASIDE, MARKER, METADATA_KEY, NewArray, Store, WriteAsk, read_array, sweep};
use crate::error::format_fault;
use crate::planning::{Shaped, choose_parameters, choose_shape, said_of_chunks};
use hyperslab_format::zarr::ArrayMetadata;
use hyperslab_layout::Section;
use hyperslab_plan::{Direction, Laid, Transfer};
use hyperslab_world::{Fault, FaultKind, Names};
use std::cell::RefCell;
use std::time::Instant;

/// Kinds of new arrays of one call whose chunks are chosen.
const KINDS_MAX: usize = 8;

/// Rank 0's side of a write.
pub(super) struct Writing<'a> {
    pub(super) store: &'a Store,
    pub(super) asks: &'a [WriteAsk],
    pub(super) metadata: &'a [ArrayMetadata],
    pub(super) new: &'a NewArray,
    pub(super) update: bool,
    /// How this rank's arrays lie in memory.
    pub(super) laid: Vec<Option<Laid>>,
    /// Arrays that bear the marker of an earlier update that did not end; only writing all of them would end it.
    pub(super) marked: RefCell<Vec<String>>,
    /// Markers that this call has set, and what was in their places.
    pub(super) before: RefCell<Vec<(String, Option<Vec<u8>>)>>,
}

impl Writing<'_> {
    fn base(&self) -> String {
        self.store.base()
    }

    /// Where a new array lies until it is published: in a step, where it will be in the step.
    fn hidden(&self, name: &str) -> String {
        if self.store.staged {
            return format!("{}{name}", self.base());
        }
        format!("{}/{ARRAYS}/{}{name}", self.store.staging, self.store.group.replace('/', "%2F"))
    }

    pub(super) fn decide(&self) -> Result<Vec<u8>, Fault> {
        let directory = self.store.directory();
        let (new, shaped) = if self.update { (Vec::new(), Shaped::default()) } else { self.shaped() };
        let mut told = Vec::with_capacity(self.asks.len());
        for (i, ask) in self.asks.iter().enumerate() {
            if self.update {
                let metadata = read_array(&*directory, &self.base(), &ask.name)?;
                told.push(Told { prefix: self.store.prefix(&ask.name), fresh: false, metadata });
                continue;
            }
            let at = format!("{}{}", self.base(), ask.name);
            if directory.exists(&at) && !self.new.overwrite {
                return Err(Fault::new(
                    FaultKind::Exists,
                    format!("'{}' exists already in '{}'", ask.name, self.store.path().display()),
                )
                .hint("overwrite replaces it, section= changes it, append() makes it longer"));
            }
            let prefix = format!("{}/", self.store.names.full(&self.hidden(&ask.name)));
            told.push(Told { prefix, fresh: true, metadata: new[i].clone() });
        }
        let asks = told.iter().zip(self.asks).map(|(told, ask)| {
            let section = checked_section(&ask.name, ask.section.as_ref(), &told.metadata.shape, ask.holding.shape())?;
            Ok(ask.asked(section, stored(&told.metadata, &told.prefix, told.fresh)))
        });
        let asks = asks.collect::<Result<Vec<_>, Fault>>()?;
        let sync = self.store.options.durable && !self.store.staged;
        let transfer = Transfer { direction: Direction::Write, asks, ranks: self.store.ranks, sync };
        let wish = self.store.wish_of_writes();
        let chosen = choose_parameters(&self.store.comm, transfer, &wish, self.store.held, &self.laid, &shaped)?;
        for (told, ask) in told.iter().zip(self.asks) {
            if self.update {
                self.mark(&*directory, ask, &told.metadata.shape)?;
            } else {
                let hidden = self.hidden(&ask.name);
                directory.remove(&hidden)?;
                directory.make(&hidden)?;
                let json = told.metadata.to_json(&ask.name).map_err(format_fault)?;
                directory.write(&format!("{hidden}/{METADATA_KEY}"), &json, false)?;
            }
        }
        tell(chosen, &told)
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
        let mut metadata = self.metadata.to_vec();
        for kind in kinds {
            let (first, usual) = (kind[0], &self.metadata[kind[0]].chunk_shape);
            let open = self.open(first, kind.len());
            let ladders = open.ladders(self.new);
            let taken = choose_shape(&self.store.comm, usual, &ladders, |chunk| open.uses(self.new, chunk));
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
            wish: self.store.wish_of_writes(),
            ranks: self.store.ranks,
            sync: self.store.options.durable && !self.store.staged,
        }
    }

    /// Marks an array before it is updated in place.
    fn mark(&self, directory: &dyn Names, ask: &WriteAsk, shape: &[u64]) -> Result<(), Fault> {
        let marker = format!("{}{}/{MARKER}", self.base(), ask.name);
        // Of one that was there when the system crashed, the note may be lost.
        let before = directory.read(&marker)?;
        if before.is_some() && ask.holding.shape() != shape {
            self.marked.borrow_mut().push(ask.name.clone());
        }
        let section = ask.section.as_ref().map(Section::to_string).unwrap_or_default();
        let mut note = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
        note += &format!("an update of section {section} has begun and not ended: each chunk is old or new\n");
        directory.mark(&marker, note.as_bytes(), self.durable())?;
        self.before.borrow_mut().push((marker, before));
        Ok(())
    }

    /// Takes the markers back of an update that ended before anything was written.
    pub(super) fn unmark(&self) {
        let directory = self.store.directory();
        for (marker, before) in self.before.take() {
            // The call fails already; a marker too many only warns.
            let _ = match before {
                None => directory.remove(&marker),
                Some(note) => directory.mark(&marker, &note, self.durable()),
            };
        }
    }

    fn durable(&self) -> bool {
        self.store.options.durable
    }

    pub(super) fn publish(&self) -> Result<(), Fault> {
        let directory = self.store.directory();
        if self.durable() && !self.update && !self.store.staged {
            let metadata = |ask: &WriteAsk| format!("{}/{METADATA_KEY}", self.hidden(&ask.name));
            directory.sync_files(&self.asks.iter().map(metadata).collect::<Vec<_>>())?;
        }
        let mut published = Vec::new();
        for ask in self.asks {
            let at = format!("{}{}", self.base(), ask.name);
            if self.update {
                if !self.marked.borrow().contains(&ask.name) {
                    directory.remove(&format!("{at}/{MARKER}"))?;
                }
                continue;
            }
            let hidden = self.hidden(&ask.name);
            if hidden == at {
                continue;
            }
            let replaces = directory.exists(&at);
            if let Err(fault) = publish(&*directory, &hidden, &at) {
                withdraw(&*directory, published);
                return Err(fault);
            }
            published.push((hidden, at, replaces));
        }
        if !self.store.staged && self.durable() {
            directory.sync(&self.base())?;
        }
        Ok(())
    }

    /// Removes what was replaced.
    pub(super) fn tidy(&self) {
        if !self.update && !self.store.staged {
            self.undo();
        }
    }

    pub(super) fn undo(&self) {
        let directory = self.store.directory();
        for ask in self.asks {
            directory.discard(&self.hidden(&ask.name));
        }
        if !self.store.staged {
            sweep(&*directory, &self.store.staging);
        }
    }
}

/// Takes back what of a call was published before the rest could not be: what it replaced is there again.
fn withdraw(directory: &dyn Names, published: Vec<(String, String, bool)>) {
    for (hidden, at, replaces) in published.into_iter().rev() {
        // The call fails already; what cannot be taken back stays visible, and whole.
        let _ = if replaces { publish(directory, &hidden, &at) } else { directory.rename(&at, &hidden) };
    }
}

/// Renames a hidden node to its place; what was there before is hidden in its stead.
pub(super) fn publish(directory: &dyn Names, hidden: &str, at: &str) -> Result<(), Fault> {
    if !directory.exists(at) {
        return directory.rename(hidden, at);
    }
    if directory.exchange(hidden, at)? {
        return Ok(());
    }
    // Without an exchange there is a moment without either; the old one is kept until the new one is in place, and
    // goes back if it never gets there, at once or when the store is opened next.
    let aside = format!("{hidden}{ASIDE}");
    directory.rename(at, &aside)?;
    if let Err(fault) = directory.rename(hidden, at) {
        directory.rename(&aside, at)?;
        return Err(fault);
    }
    directory.rename(&aside, hidden)
}
