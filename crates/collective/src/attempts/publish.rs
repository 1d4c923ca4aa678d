//! Publishing: attempts take their visible names.

use super::home::{FoundBy, Made};
use super::journal::{Entry, Noted, end_journal, half_published, journal_of, replace};
use super::marker::Marker;
use super::marks::Replacing;
use super::opening::{Opening, TURNS_MAX};
use super::records::{ASIDE, NEW, OWNER};
use hyperslab_world::{Fault, FaultKind, Hold, Names, Publishing};
use std::sync::PoisonError;

/// How something took its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Took {
    /// Nothing had it.
    Free,
    /// What had it lies under the hidden name now.
    Replaced,
}

/// What a file that gets its name does to another one of that name.
#[derive(Clone, Copy)]
pub struct ReplacedFile<'a> {
    /// Whether it may replace it.
    pub may: bool,
    /// The marker of updates of it in place.
    pub marker: &'a str,
    /// What must hold of it when nobody changes it in place any more.
    pub holds: &'a dyn Fn() -> Result<(), Fault>,
}

impl Opening {
    /// Publishes a raw file: its hidden name is gone then, and so is its owner. What it replaces, if anything, nobody changes
    /// in place at this moment, who would have a marker of this name.
    pub fn publish_file(&self, replaces: ReplacedFile) -> Result<(), Fault> {
        self.name_file(replaces, None)
    }

    /// The same of a file that is changed where it lies from then on: it is held, and its lock is kept, so that nobody who heeds
    /// it has the file open in between.
    pub fn show_file(&self, replaces: ReplacedFile) -> Result<(), Fault> {
        // By its hidden name: its own may be another one's by the time that it is looked for.
        let held = self.names().hold(&self.file())?;
        self.name_file(replaces, Some(held))
    }

    /// Gives a file its name; it is `held` from then on, if at all.
    fn name_file(&self, replaces: ReplacedFile, held: Option<Hold>) -> Result<(), Fault> {
        let (from, to) = (self.file(), self.home.base.clone());
        if self.durable {
            // Ranks sync what they write, and may have written nothing.
            if self.names().parts() > 1 {
                // By the list of owners, an opening finds what is left to do of a file that has parts in several places.
                self.names().sync_files(&[from.clone(), self.home.owners()])?;
            } else {
                // Its hidden name need not last: after a crash, what is being renamed has one of the two names, or none.
                self.names().sync_content(&from)?;
            }
        }
        self.home.check_above()?;
        let published = self.take_name((&from, &to), replaces);
        // Of a file with parts in several directories, the first decides, and the others may have failed.
        let marked = self.unless_half(published)?;
        // A first name goes before names are made durable: after a loss of power it would be one more of what is published.
        let made = self.state().made.take();
        let by_first = made.as_ref().is_none_or(|made| matches!(made.found_by, FoundBy::FirstName));
        let unnamed = if by_first { self.forget_first(made.as_ref(), &to) } else { Ok(()) };
        let synced = if self.durable { self.sync_published("", &to) } else { Ok(()) };
        // An update that did not end is replaced, too.
        let unmarked = marked.map_or(Ok(()), |marker| {
            let name = self.names().full(&marker.name);
            self.unmark(marker, false).map_err(|fault| {
                let what = format!("'{}' is published, but the marker of its update may stay", self.names().full(&to));
                let fault = fault.as_kind(FaultKind::Unsynced).context(what).about(&*name);
                fault.hint(format!("remove '{name}' if it is there and nobody changes the file"))
            })
        });
        let forgotten = made.as_ref().filter(|_| !by_first).map_or(Ok(()), |made| self.forget(made));
        if held.is_some() {
            self.state().shown = made.map(|made| made.lock);
            *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
        }
        synced.and(unmarked).and(unnamed).and(forgotten)
    }

    /// Takes the first name away from what is published; also where this was given up meanwhile, and nobody has noted it any more.
    fn forget_first(&self, made: Option<&Made>, published: &str) -> Result<(), Fault> {
        if let Some(made) = made {
            return self.forget(made);
        }
        let (names, first) = (self.names(), self.home.first());
        let identity = |name: &str| names.identity(name).ok().flatten();
        let is_same = names.exists(&first) && identity(&first).is_some() && identity(&first) == identity(published);
        if is_same { names.remove(&first) } else { Ok(()) }
    }

    /// Takes away by what a root was found, which is gone.
    pub(super) fn forget(&self, made: &Made) -> Result<(), Fault> {
        self.home.forget(made).map_err(|fault| self.left_behind(&self.home.finder(&made.found_by), fault))
    }

    /// Gives the hidden file its name. Gives the marker of an update that did not end: of the file that it replaces, or of one that
    /// was removed.
    fn take_name(&self, (from, to): (&str, &str), replaces: ReplacedFile) -> Result<Option<Marker>, Fault> {
        if replaces.may && self.names().exists(to) {
            return self.replace_file(from, to, replaces);
        }
        let marked = self.mark_removed(replaces.marker, to);
        let fault = match self.names().rename_new(from, to) {
            Ok(true) => return Ok(marked),
            Err(fault) => fault,
            Ok(false) => {
                let text = format!("'{}' exists already: another program made it meanwhile", self.names().full(to));
                Fault::new(FaultKind::Exists, text).hint("open it with mode 'w' to replace it")
            }
        };
        match self.withdrawn(marked, fault) {
            fault if replaces.may && fault.kind == FaultKind::Exists => self.replace_file(from, to, replaces),
            fault => Err(fault),
        }
    }

    /// The marker of an update of a file that was removed before the update ended, if there is one: it says nothing of the next file
    /// with this name, and goes when that has it. Not one whose owner is at work, in the file without a name.
    fn mark_removed(&self, marker: &str, to: &str) -> Option<Marker> {
        let how = Replacing { noted: false, alone: false };
        if self.names().exists(marker) { self.mark_replaced(marker, to, how).ok().flatten() } else { None }
    }

    /// Renames a file over another one, which nobody changes in place meanwhile. Gives its marker.
    fn replace_file(&self, from: &str, to: &str, replaces: ReplacedFile) -> Result<Option<Marker>, Fault> {
        let marked = self.mark_replaced(replaces.marker, to, Replacing { noted: false, alone: false })?;
        let renamed = (replaces.holds)();
        let renamed = renamed.and_then(|()| self.names().take_mode(to, from));
        let renamed = renamed.and_then(|()| self.names().rename(from, to));
        match renamed {
            Ok(()) => Ok(marked),
            Err(fault) => Err(self.withdrawn(marked, fault)),
        }
    }

    /// Makes attempts visible, one rename after another.
    pub(super) fn publish_by_renames(&self, entries: &[Entry]) -> Result<(), Fault> {
        let names = &*self.home.names;
        if let [entry] = entries {
            return self.publish_alone(entry);
        }
        let journal = self.begin_journal(entries)?;
        // What can fail is done before anything is visible; the journal marks what it names.
        let versions = entries.iter().map(|entry| names.version(&entry.from)).collect::<Result<Vec<_>, Fault>>();
        let versions = versions.map_err(|fault| self.without_journal(&journal, fault))?;
        let mut published = Vec::new();
        for (entry, ours) in entries.iter().zip(versions) {
            match publish_one(names, entry) {
                Ok(took) => published.push((entry, took, ours)),
                Err(fault) if fault.kind == FaultKind::Unsynced => return self.unless_half(Err(fault)),
                Err(fault) => {
                    let mut stay = Vec::new();
                    let taken_back = published.into_iter().rev().all(|(entry, took, ours)| {
                        let is_ours = names.version(&entry.to).is_ok_and(|found| found == ours);
                        if !is_ours {
                            stay.push(names.full(&entry.to));
                        }
                        !is_ours || take_back(names, entry, took)
                    });
                    if taken_back {
                        return Err(self.without_journal(&journal, still_there(fault, &stay)));
                    }
                    return self.unless_half(Err(half_published(names, &entry.to, &fault)));
                }
            }
        }
        self.end_journal(entries, &journal)
    }

    /// Renames small files over others that nobody else changes meanwhile, all or none.
    pub(super) fn replace_files(&self, entries: &[Entry]) -> Result<(), Fault> {
        let names = &*self.home.names;
        let read = |entry: &Entry| names.read(&entry.to).map(Option::unwrap_or_default);
        let before = entries.iter().map(read).collect::<Result<Vec<_>, Fault>>()?;
        let journal = self.begin_journal(entries)?;
        for (number, entry) in entries.iter().enumerate() {
            let Err(fault) = names.rename(&entry.from, &entry.to) else { continue };
            let done = entries[..number].iter().zip(&before);
            let mut taken_back = done.map(|(entry, bytes)| names.write(&entry.to, bytes, self.durable));
            // From a journal that stays, the next opening publishes those that are left, and no others.
            if taken_back.all(|written| written.is_ok()) && self.give_up(&journal).is_ok() {
                return Err(fault);
            }
            return self.unless_half(Err(half_published(names, &entry.to, &fault)));
        }
        self.secure_published(entries)?;
        // Whatever goes wrong now cannot be told as a failure of the change. What fails once may not fail twice.
        let remove = || names.remove(&journal);
        remove().or_else(|_| remove()).map_err(|fault| self.left_behind(&journal, fault))
    }

    /// Where half of something is published, all that is hidden stays for the next opening.
    pub(super) fn unless_half<T>(&self, published: Result<T, Fault>) -> Result<T, Fault> {
        published.map_err(|fault| match fault.kind {
            FaultKind::Unsynced => {
                let noted = self.noted_in().map(|noted| self.names().full(&noted));
                self.let_go();
                noted
                    .into_iter()
                    .fold(fault, |fault, noted| fault.also(format!("what is left to do is named in '{noted}'")))
            }
            _ => fault,
        })
    }

    /// Where it is named what is left to do in the root, for whoever opens the store next.
    fn noted_in(&self) -> Option<String> {
        let state = self.state();
        let made = state.made.as_ref()?;
        match (&made.found_by, self.names().publishing()) {
            (FoundBy::FirstName, _) => None,
            (FoundBy::Line(_), Publishing::Metadata(_)) => Some(format!("{}/{OWNER}", made.path)),
            (FoundBy::Line(_), _) => Some(self.home.owners()),
        }
    }

    /// The failure of a publication of which nothing is visible, once its journal is gone. Where that stays, the next opening
    /// publishes what it names, and the failure says so.
    fn without_journal(&self, journal: &str, fault: Fault) -> Fault {
        let Err(why) = self.give_up(journal) else { return fault };
        let fault = fault.as_kind(FaultKind::Unsynced).also(format!("it cannot be given up either: {}", why.text()));
        let fault = fault.hint("look at the disk; the next opening for writing publishes what is left");
        self.unless_half::<()>(Err(fault)).expect_err("a failure stays one")
    }

    /// Takes a journal away, or at least what is in it.
    fn give_up(&self, journal: &str) -> Result<(), Fault> {
        let names = self.names();
        // What fails once may not fail twice.
        let removed = names.remove(journal).or_else(|_| names.remove(journal));
        removed.or_else(|fault| match names.is_absent(journal) {
            true => Ok(()),
            false => names.resize(journal, 0).map_err(|_| fault),
        })
    }

    /// Makes the new names durable. The journal must not go before them: who comes after a loss of power would find some.
    fn secure_published(&self, entries: &[Entry]) -> Result<(), Fault> {
        if !self.durable {
            return Ok(());
        }
        // The journal stays for the next opening, as where half is published.
        self.unless_half(self.sync_all_published(entries.iter().map(|entry| entry.to.as_str())))
    }

    /// Ends a publication of which all is visible; whatever goes wrong now cannot be told as its failure.
    fn end_journal(&self, entries: &[Entry], journal: &str) -> Result<(), Fault> {
        self.secure_published(entries)?;
        end_journal(&*self.home.names, entries, journal).map_err(|fault| self.left_behind(journal, fault))
    }

    /// One change needs no journal: one name that is taken, or two that are exchanged.
    fn publish_alone(&self, entry: &Entry) -> Result<(), Fault> {
        let (names, Entry { from, to, replaces }) = (&*self.home.names, entry);
        if *replaces && names.exists(to) {
            match names.exchange(from, to) {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    let journal = self.begin_journal(std::slice::from_ref(entry))?;
                    self.unless_half(publish_one(names, entry)).map_err(|fault| match fault.kind {
                        FaultKind::Unsynced => fault,
                        _ => self.without_journal(&journal, fault),
                    })?;
                    return self.end_journal(std::slice::from_ref(entry), &journal);
                }
                Err(fault) if names.exists(to) => return Err(fault),
                // It is gone, and the name free.
                Err(_) => {}
            }
        }
        publish_one(names, entry).map(drop)
    }

    /// Lets a new store take the place of the old one, which is hidden then. Where that is one change, nothing of it is
    /// noted: an opening that was killed before it shall not erase anything later.
    pub fn publish_store(&self, new: &str) -> Result<(), Fault> {
        let (names, base) = (&*self.home.names, &self.home.base);
        if names.exchange(new, base)? {
            return Ok(());
        }
        let entries = [Entry { from: new.into(), to: base.clone(), replaces: true }];
        let journal = self.begin_journal(&entries)?;
        self.unless_half(replace(names, new, base)).map_err(|fault| match fault.kind {
            FaultKind::Unsynced => fault,
            _ => self.without_journal(&journal, fault),
        })?;
        self.end_journal(&entries, &journal)
    }

    /// Notes what is about to be published, so that it is published whole.
    fn begin_journal(&self, entries: &[Entry]) -> Result<String, Fault> {
        let names = &*self.home.names;
        let journal = self.next("publish", "")?;
        let mut files = vec![journal.clone()];
        let mut noted = Vec::with_capacity(entries.len());
        for entry in entries {
            let over = match entry.replaces.then(|| names.version(&entry.to)) {
                // Somebody else may have removed it.
                Some(Err(fault)) if names.exists(&entry.to) => return Err(fault),
                Some(found) => found.ok(),
                None => None,
            };
            // A small file that is renamed over another is not there any more when that is done.
            if over.is_some() && names.length(&entry.from).is_none() {
                let new = format!("{}/{NEW}", entry.from);
                names.create_like(&new, b"", 0, &self.home.base)?;
                files.push(new);
            }
            noted.push(Noted { entry: entry.clone(), over });
        }
        let bytes = journal_of(&self.home, &self.root()?, &noted);
        let noted = names.create_like(&journal, &bytes, bytes.len() as u64, &self.home.base);
        noted.map_err(|fault| match self.give_up(&journal) {
            Ok(()) => fault,
            Err(why) => fault.also(format!("'{}' may be left behind: {}", names.full(&journal), why.text())),
        })?;
        let synced = if self.durable { names.sync_files(&files).and_then(|()| self.secure()) } else { Ok(()) };
        synced.map_err(|fault| self.without_journal(&journal, fault))?;
        Ok(journal)
    }

    /// What was replaced stays hidden until what replaced it, in the directory `above`, is known to be durable.
    pub fn keep(&self, above: &str, names: impl Iterator<Item = String>) {
        self.state().kept.extend(names.map(|name| (above.to_string(), name)));
    }

    /// What was kept of a directory, once all in it is durable; to be removed.
    pub fn release(&self, above: &str) -> Vec<String> {
        let mut state = self.state();
        let (released, kept) = std::mem::take(&mut state.kept).into_iter().partition(|(of, _)| of == above);
        state.kept = kept;
        Vec::into_iter(released).map(|(_, name)| name).collect()
    }
}

fn publish_one(names: &dyn Names, entry: &Entry) -> Result<Took, Fault> {
    let Entry { from, to, replaces } = entry;
    for _ in 0..TURNS_MAX {
        if names.rename_new(from, to)? {
            return Ok(Took::Free);
        }
        if !replaces {
            let text = format!("'{}' exists already: another program made it meanwhile", names.full(to));
            return Err(Fault::new(FaultKind::Exists, text)
                .hint("choose another name: what is there was published whole by another program or call"));
        }
        match replace(names, from, to) {
            Ok(()) => return Ok(Took::Replaced),
            // Somebody else removed it, and the name is free.
            Err(fault) if fault.kind != FaultKind::Unsynced && !names.exists(to) => {}
            Err(fault) => return Err(fault),
        }
    }
    Err(Fault::new(FaultKind::Storage, format!("'{}' is made and removed by others all the time", names.full(to))))
}

/// The failure of a publication of which some stays, since others have changed or replaced it since.
fn still_there(fault: Fault, stay: &[String]) -> Fault {
    if stay.is_empty() {
        return fault;
    }
    fault.also(format!("{} was visible by then, and stays, since others went on with it", stay.join(", ")))
}

/// Takes back what was published; what it replaced is there again. Returns whether that was done.
fn take_back(names: &dyn Names, entry: &Entry, took: Took) -> bool {
    match took {
        Took::Replaced => {
            let aside = format!("{}{ASIDE}", entry.from);
            let old = if names.exists(&entry.from) { &entry.from } else { &aside };
            replace(names, old, &entry.to).is_ok()
        }
        Took::Free => names.rename(&entry.to, &entry.from).is_ok(),
    }
}
