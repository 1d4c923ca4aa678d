//! Rank 0's side of whatever changes a file: of writes, and of changes of what it says.

use super::File;
use super::disk::{self, follow_disk, marker};
use super::form::{ChangeFile, FileChange, FileSize, NewPlaces};
use crate::selection::Sections;
use hyperslab_collective::attempts::{Change, Marker, TouchedParts};
use hyperslab_collective::{Decision, Each, Target};
use hyperslab_layout::Stored;
use hyperslab_plan::{MemoryLayout, Parameters, Transfer};
use hyperslab_walk::PlacedChunk;
use hyperslab_world::{Fault, FaultKind, Proof, Root};
use std::sync::Arc;

/// Rank 0's side of a write.
pub(super) struct Putting {
    pub(super) file: File,
    pub(super) stored: Vec<Stored>,
    /// Number of each array in the file, and what is written of it.
    pub(super) numbers: Vec<usize>,
    pub(super) sections: Sections,
    /// Whether arrays become longer.
    pub(super) lengthens: bool,
    /// Whether they are new in a file that exists.
    pub(super) adds: bool,
    /// Whether it writes what is no array, but lies behind all else.
    pub(super) reaches: bool,
    /// Whether readers are not told yet how far the file goes.
    pub(super) untold: bool,
    /// Whether what is new has fill values already, of which they are not told.
    pub(super) filled: bool,
    /// Where units lie that got room, and where that ends; of a file that exists, how long it was before.
    pub(super) placed: Option<(NewPlaces, u64)>,
    pub(super) length: Option<u64>,
    /// Whether all units got room, so that nothing is lost of what was there.
    pub(super) spares: bool,
    /// What was in place before, where something of it was changed.
    pub(super) replaced: Vec<(u64, Vec<u8>)>,
    /// How far the file went before.
    pub(super) before: FileSize,
    /// What it began with before, where that may change when it grows.
    pub(super) beginning: Option<Vec<u8>>,
    /// Where the last ends now \[B\].
    pub(super) end: u64,
    /// Whether nothing stays of what the file had.
    pub(super) whole: bool,
    pub(super) marker: Option<Marker>,
    /// Whether it made the new file.
    pub(super) made: bool,
    /// Whether readers may have been told how far it goes now.
    pub(super) told: bool,
    /// Whether an earlier update that did not end is over with this one.
    pub(super) ends_earlier: bool,
}

impl Putting {
    pub(super) fn new(file: File, before: FileSize, beginning: Option<Vec<u8>>) -> Putting {
        Putting {
            file,
            stored: Vec::new(),
            numbers: Vec::new(),
            sections: Sections::Whole,
            lengthens: false,
            adds: false,
            reaches: false,
            untold: false,
            filled: false,
            placed: None,
            length: None,
            spares: false,
            replaced: Vec::new(),
            end: before.bytes,
            before,
            beginning,
            whole: false,
            marker: None,
            made: false,
            told: false,
            ends_earlier: false,
        }
    }

    /// Tells readers how far the file goes, by what it begins with, where it says so there and nowhere else.
    fn tell(&self, beginning: &[u8]) -> Result<(), Fault> {
        let file = &self.file;
        file.directory.overwrite(&file.name, &beginning[..self.telling(beginning)], file.options.durable)
    }

    /// How many of the bytes with which the file begins tell how far it goes.
    fn telling(&self, beginning: &[u8]) -> usize {
        self.file.inside().form.lasting().map_or(beginning.len(), |lasting| lasting.from as usize)
    }

    /// The failure of a change, of which nothing is seen any more; or it says that readers may see it.
    fn taken_back(&mut self, fault: Fault) -> Fault {
        if self.told {
            self.file.inside().form.is_taken_back();
        }
        if self.untell() {
            (self.told, self.replaced) = (false, Vec::new());
            return fault;
        }
        let text = "readers may see the change already, since it cannot be taken back";
        fault.also(text).hint("look at the disk, and open the file again, before you repeat it")
    }

    /// Tells them again how far it went. Gives whether they know.
    fn untell(&self) -> bool {
        if !self.replaced.is_empty() {
            let back = |(at, bytes): &(u64, Vec<u8>)| self.file.directory.overwrite_part(&self.file.name, *at, bytes);
            return self.replaced.iter().rev().all(|one| back(one).is_ok()) && self.synced().is_ok();
        }
        !self.told || self.beginning.as_ref().is_some_and(|before| self.tell(before).is_ok())
    }

    fn synced(&self) -> Result<(), Fault> {
        let File { directory, name, options, .. } = &self.file;
        if options.durable { directory.sync_files(std::slice::from_ref(name)) } else { Ok(()) }
    }

    /// Lets a file that exists say where units lie now: first what is behind all else, then what leads there.
    fn change(&mut self, change: ChangeFile) -> Result<(), Fault> {
        let (directory, name) = (self.file.directory.clone(), self.file.name.clone());
        let FileChange { at, behind, in_place, before } = change(&*directory, &name)?;
        let end = at + behind.len() as u64;
        // How long it is tells how far a program that died may write: where nothing is added, that stays.
        if !behind.is_empty() || in_place.is_empty() {
            directory.resize(&name, end)?;
        }
        if !behind.is_empty() {
            directory.overwrite_part(&name, at, &behind)?;
            self.synced()?;
        }
        for (number, ((at, bytes), before)) in in_place.iter().zip(before).enumerate() {
            self.replaced.push(before);
            self.told = true;
            directory.overwrite_part(&name, *at, bytes)?;
            // That the file goes that far must not be lost where what leads there is not.
            if number == 0 && self.replaced.len() < in_place.len() {
                self.synced()?;
            }
        }
        self.synced()?;
        // Nobody else changes it, so nobody needs to look.
        let mut beginning = self.beginning.clone().unwrap_or_default();
        in_place.iter().for_each(|(at, bytes)| lay_over(&mut beginning, *at, bytes));
        let alone = self.file.is_locked();
        self.file.inside().form.has_changed(end, beginning, alone);
        Ok(())
    }

    /// Lets readers find what was written, where the file leads to it.
    fn lead_there(&mut self) -> Result<(), Fault> {
        if self.reaches {
            let change = self.file.inside().form.reaching(self.end);
            return change.map_or(Ok(()), |change| self.change(change));
        }
        let changes = self.lengthens || self.adds;
        let placed = self.placed.take().or_else(|| changes.then(|| (NewPlaces::new(), self.end)));
        if let Some((mut places, end)) = placed {
            // Of those, the new length is told, wherever what is new lies.
            for number in self.numbers.iter().filter(|_| self.lengthens) {
                places.entry(*number).or_default();
            }
            let change = self.file.inside().form.put_in_room(places, end)?;
            change.map_or(Ok(()), |change| self.change(change))?;
        }
        if self.marker.is_some() && self.grows() && !self.untold {
            // How far it goes is the last thing that changes.
            let beginning = self.file.inside().form.beginning();
            if self.telling(&beginning) > 0 {
                self.told = true;
                self.tell(&beginning)?;
            }
        }
        Ok(())
    }

    /// Changes what a file that exists says of its arrays, and nothing else of it.
    pub(super) fn edit(mut self, change: ChangeFile) -> Result<(), Fault> {
        self.mark()?;
        self.length = self.file.directory.length(&self.file.name);
        self.spares = true;
        let changed = self.file.attempts.check_still_there().and_then(|()| self.change(change));
        let changed = changed.map_err(|fault| self.taken_back(fault));
        changed.and_then(|()| self.unmark()).inspect_err(|_| self.undo(true))
    }

    /// Marks the file as one that is being changed, which nobody else does meanwhile.
    fn mark(&mut self) -> Result<(), Fault> {
        let attempts = &self.file.attempts;
        let change = Change::Torn { updates: None, touched: &|| self.touched() };
        let marked = attempts.mark(&marker(&self.file.name), &self.file.name, &change)?;
        // From now on nobody replaces it; somebody may have, until now.
        if let Err(fault) = attempts.check_still_there().and_then(|()| self.check_beginning()) {
            return Err(attempts.withdrawn([marked], fault));
        }
        self.marker = Some(marked);
        Ok(())
    }

    /// What is written of which arrays.
    fn touched(&self) -> TouchedParts {
        let inside = self.file.inside();
        let each = self.numbers.iter().enumerate();
        each.map(|(i, number)| (inside.form.array(*number).name.to_string(), self.sections.of(i).cloned())).collect()
    }

    /// Whether readers see nothing of a change before its end.
    fn is_unseen(&self) -> bool {
        self.grows() || self.spares
    }

    /// It is changed.
    fn unmark(&mut self) -> Result<(), Fault> {
        let Some(marker) = self.marker.take() else { return Ok(()) };
        // An earlier update that did not end is over when all that it touched was written again.
        let stays = marker.was_there() && !self.whole && !marker.is_ended_by(&self.touched());
        self.ends_earlier = marker.was_there() && !stays;
        let unmarked = self.file.attempts.unmark(marker, stays);
        // It has changed, and readers know: to do it again would append the same twice.
        unmarked.map_err(|fault| match self.told {
            true => self.file.attempts.left_behind(&disk::marker(&self.file.name), fault),
            false => fault,
        })
    }

    /// Makes sure that the file still begins as it did when it was opened, or last grew.
    fn check_beginning(&self) -> Result<(), Fault> {
        self.beginning.as_ref().map_or(Ok(()), |beginning| self.file.check_begins(beginning))
    }

    /// Makes a new file, with room for what comes.
    fn make_file(&mut self) -> Result<(), Fault> {
        let beginning = self.file.inside().form.beginning();
        self.file.attempts.make_file(&beginning, self.end)?;
        self.made = true;
        let copies = self.file.phase.was_shown();
        let copied = if copies { self.file.copy_shown(self.before.bytes) } else { Ok(()) };
        // Of a copy, what it begins with is that of the other one.
        self.file.inside().begun = Some((if copies { Vec::new() } else { beginning }, self.end));
        copied
    }

    /// Makes a new file so long that it holds what comes. Where nothing is durable, longer than that, up to twice as long as it
    /// was, which takes no room on most disks: array after array comes, and when the file is closed it gets its length.
    fn make_longer(&self) -> Result<(), Fault> {
        let File { directory, options, .. } = &self.file;
        let object = self.file.object();
        let length = self.file.inside().begun.as_ref().map_or(0, |(_, length)| *length);
        let goes_ahead = directory.is_plain() && !options.durable;
        if goes_ahead && self.end <= length {
            return Ok(());
        }
        let ahead = self.end.saturating_add(length.min(64 << 20));
        let mut longer = self.end;
        // Files may not become as long.
        if goes_ahead && directory.resize(object, ahead).is_ok() {
            longer = ahead;
        } else {
            directory.resize(object, longer)?;
        }
        self.is_now(longer);
        Ok(())
    }

    /// The new file is so long now.
    fn is_now(&self, bytes: u64) {
        if let Some((_, length)) = &mut self.file.inside().begun {
            *length = bytes;
        }
    }

    /// Whether arrays grow.
    fn grows(&self) -> bool {
        self.end != self.before.bytes
    }

    /// Makes a file that exists so long that all chunks have room that get some. So whoever comes next knows how far a rank of
    /// this program may write that was stopped and comes back, and writes nothing there.
    fn make_room(&mut self, transfer: &Transfer) {
        let from = transfer.asks.iter().find_map(|ask| ask.stored.allotted_from());
        let Some(from) = from else { return };
        let most = transfer.asks.iter().map(|ask| ask.stored.room_bytes_max(&ask.section)).fold(0, u64::saturating_add);
        let (directory, name) = (&self.file.directory, &self.file.name);
        self.length = directory.length(name);
        if directory.is_plain() {
            // What is asked for ahead, and not used, is less than as much again. Where files cannot be as long, or have no
            // holes, it goes without.
            let _ = directory.resize(name, from.saturating_add(most.saturating_mul(2)));
        }
    }

    /// Makes a file that exists as long as it shall be. What lay behind its end, as after an append that was cut short, must
    /// not be seen between what is written now.
    fn lengthen(&self) -> Result<(), Fault> {
        let (directory, name) = (&self.file.directory, &self.file.name);
        if !self.grows() {
            return Ok(());
        }
        if !self.filled && directory.length(name).is_some_and(|length| length > self.before.bytes) {
            directory.resize(name, self.before.bytes)?;
        }
        directory.resize(name, self.end)
    }

    /// Makes it as long as it was, unless somebody else has changed that.
    fn shorten(&self) {
        let (directory, name) = (&self.file.directory, &self.file.name);
        if self.grows() && directory.length(name) == Some(self.end) {
            let _ = directory.resize(name, self.before.bytes);
        }
        // What got room lies behind it, and nobody is led there.
        if let Some(length) = self.length {
            let _ = directory.resize(name, length);
        }
    }
}

impl Target for Putting {
    fn look(&mut self, _laid: Each<'_>) -> Result<Vec<Stored>, Fault> {
        let places_are_known = {
            let inside = self.file.inside();
            self.numbers.iter().all(|number| inside.form.lookup(*number).is_none())
        };
        if places_are_known {
            return Ok(std::mem::take(&mut self.stored));
        }
        let File { directory, name, .. } = &self.file;
        // Behind its end may lie what ranks of a program that died still write.
        let length = if self.file.is_new() { None } else { directory.length(name) };
        let room = self.end.max(length.unwrap_or(0));
        self.file.located(std::mem::take(&mut self.stored), &self.numbers, &self.sections, (Some(room), self.lengthens))
    }

    fn choose(&mut self, transfer: &Arc<Transfer>, laid: &[Option<MemoryLayout>]) -> Result<Decision, Fault> {
        self.file.decided(transfer, laid)
    }

    fn choose_again(&mut self, before: &Decision, laid: &[Option<MemoryLayout>]) -> Option<Decision> {
        self.file.decided_again(before, laid)
    }

    fn begin(
        &mut self,
        stored: &mut [Stored],
        transfer: &Arc<Transfer>,
        parameters: &mut Parameters,
    ) -> Result<Vec<Root>, Fault> {
        let (file, end) = (self.file.clone(), self.end);
        let (directory, attempts) = (&*file.directory, &file.attempts);
        let proof = if file.is_new() {
            attempts.check_kept()?;
            file.check_in_order()?;
            if !file.is_hidden() {
                attempts.check_still_there()?;
            }
            if file.inside().begun.is_none() {
                self.make_file()?;
            } else {
                self.make_longer()?;
            }
            follow_disk(parameters, transfer, directory, (file.object(), end))?;
            Proof::File(directory.full(file.object()).into())
        } else {
            self.mark()?;
            if let Err(fault) = self.lengthen() {
                return Err(attempts.withdrawn(self.marker.take(), fault));
            }
            self.make_room(transfer);
            self.spares = self.adds || stored.iter().all(|stored| stored.allotted_from().is_some());
            let proof = self.marker.as_ref().map(|marked| marked.proof(directory)).expect("it is marked");
            follow_disk(parameters, transfer, directory, (&file.name, 0))?;
            proof
        };
        Ok(vec![self.file.root(vec![proof])])
    }

    fn placed(&mut self, chunks: Vec<PlacedChunk>, end: u64) -> Result<(), Fault> {
        let mut places = NewPlaces::new();
        for placed in chunks {
            let number = self
                .numbers
                .get(placed.chunk.array as usize)
                .ok_or_else(|| Fault::new(FaultKind::Peer, "a rank told of chunks of an array that is not written"))?;
            places.entry(*number).or_default().push(placed);
        }
        self.placed = Some((places, end));
        Ok(())
    }

    fn publish(&mut self) -> Result<(), Fault> {
        // What took its place may have parts of this update: the marker stays, without an owner.
        self.file.attempts.check_still_there()?;
        self.lead_there().map_err(|fault| self.taken_back(fault))?;
        self.unmark()
    }

    fn torn(&self) -> Vec<String> {
        if self.marker.is_none() || self.is_unseen() {
            return Vec::new();
        }
        self.touched().names().map(String::from).collect()
    }

    fn ended(&mut self) -> Vec<String> {
        if self.ends_earlier { vec![self.file.name.clone()] } else { Vec::new() }
    }

    fn undo(&mut self, moved: bool) {
        if !self.replaced.is_empty() {
            self.file.inside().form.is_taken_back();
        }
        // As long as readers may know of more, it stays.
        let back = self.marker.is_none() || self.untell();
        if self.marker.is_some() && back {
            self.shorten();
        }
        match self.marker.take() {
            // What lies behind the end that its header names nobody reads.
            Some(marker) if back && (!moved || self.is_unseen()) => drop(self.file.attempts.withdraw(marker)),
            Some(marker) => self.file.attempts.leave_torn(marker, &self.touched()),
            // Readers are led to it: what failed came after that.
            None if !self.file.is_new() || self.told => {}
            None if self.made => {
                self.file.inside().begun = None;
                drop(self.file.attempts.end());
            }
            // Nothing was begun.
            None if self.file.inside().begun.is_none() => {}
            // What was written before stays; the file must not be longer than that.
            None if self.file.directory.resize(self.file.object(), self.before.bytes).is_ok() => {
                self.is_now(self.before.bytes);
            }
            None => {}
        }
    }

    fn abandon(&mut self) {
        self.marker = None;
    }
}

/// Lays bytes over those with which a file begins, from this address on, as far as they lie there.
fn lay_over(beginning: &mut [u8], at: u64, bytes: &[u8]) {
    let over = beginning.iter_mut().skip(usize::try_from(at).unwrap_or(usize::MAX));
    over.zip(bytes).for_each(|(old, new)| *old = *new);
}
