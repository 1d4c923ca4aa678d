//! Markers: what tells others that something is being changed in place, or about to be replaced, and keeps them from doing
//! the same.

use super::home::{Home, has_its_name};
use super::marker::{Marker, Notes, earlier};
use super::opening::Opening;
use super::owner::{Owner, line_of, lines};
use super::records::{RESTS, UPDATES, disowned_line, is_attempt, is_disowned, is_torn, unfinished_line};
use super::touched::{TOUCHED, TouchedParts};
use hyperslab_world::{Claim, Fault, FaultKind, Lock, Locked, Locks, fingerprint};
use serde_json::Map;
use std::fmt;

/// A change that needs a marker.
pub enum Change<'a> {
    /// In place, of which readers may see half when it ends in the middle.
    Torn {
        /// What replaces something is made in this directory, if anything is.
        updates: Option<&'a str>,
        /// What it touches, for those who say it.
        touched: &'a dyn Fn() -> TouchedParts,
    },
    /// In place, of which readers see nothing before its end.
    Unseen(&'a str),
    /// Something else takes the whole place; `noted` in the root, if that is a directory.
    Replaced {
        /// Whether it is.
        noted: bool,
    },
}

/// The failure of a change to what somebody else has removed or renamed.
pub fn gone(name: &str, store: impl fmt::Display) -> Fault {
    let text = format!("'{name}' of '{store}' is gone: somebody else removed or renamed it meanwhile");
    Fault::new(FaultKind::Outdated, text).hint("look at what is there now")
}

/// How something is about to be replaced.
#[derive(Clone, Copy)]
pub struct Replacing {
    /// Whether that is noted in the root.
    pub noted: bool,
    /// Whether nobody else may be about to replace it, too.
    pub alone: bool,
}

/// Whether the last owner of a marker is about to replace what has it.
fn is_of_replacement(note: &[u8]) -> bool {
    lines(note).last().and_then(|line| line.get("replaced")?.as_str().map(|replaced| replaced == "yes")) == Some(true)
}

impl Opening {
    /// Marks something that is about to be changed, and keeps other owners from doing the same until the marker is dropped.
    ///
    /// # Errors
    /// When another one does, or nobody can know whether he lives.
    pub fn mark(&self, marker: &str, name: &str, change: &Change) -> Result<Marker, Fault> {
        match self.try_to_mark(marker, name, change)? {
            Ok(marker) => Ok(marker),
            Err(note) => Err(self.is_being_changed(&note, &format!("'{name}' of '{}'", self.home.shown()))),
        }
    }

    /// The same; gives the note of another owner who does.
    fn try_to_mark(&self, marker: &str, name: &str, change: &Change) -> Result<Result<Marker, Vec<u8>>, Fault> {
        self.check_kept()?;
        self.check_still_there().map_err(|fault| self.at_no_rest(fault))?;
        if matches!(change, Change::Torn { updates: None, .. })
            && let Some(marker) = self.resumed(marker)?
        {
            return Ok(Ok(marker));
        }
        let (torn, updates) = match *change {
            Change::Torn { updates, .. } => (true, updates),
            Change::Unseen(updates) => (false, Some(updates)),
            Change::Replaced { noted } => (false, noted.then_some("")),
        };
        let (line, notes) = self.notes(change);
        let what = format!("'{name}' of '{}'", self.home.shown());
        // Before the marker is made: of what is not noted, nobody would know who finds this root without its owner.
        if updates.is_some() {
            self.note_update(name, torn)?;
        }
        let marked = |lock, before: Option<u64>, earlier: Vec<Option<TouchedParts>>, contents: &[u8]| {
            let (name, shown) = (marker.to_string(), name.to_string());
            let notes = notes.clone().filter(|_| before.is_none() && contents == line);
            Ok(Ok(Marker { name, shown, lock, before, earlier, contents: fingerprint(contents), notes }))
        };
        let by_link = |fault| match self.names().is_link(marker) {
            true => {
                let marker = self.names().full(marker);
                let text = format!("'{marker}' lies beyond a symbolic link, and is not changed through it");
                Fault::new(FaultKind::Invalid, text).hint("open the store in which it really lies")
            }
            false => fault,
        };
        let claimed = self.names().claim(marker, &line, self.durable && torn).map_err(by_link);
        match claimed.map_err(|fault| self.unless_replaced(self.unless_gone(fault, marker, name)))? {
            Claim::New(lock) => marked(lock, None, Vec::new(), &line),
            Claim::Busy(note) => Ok(Err(note)),
            Claim::Left(lock, note) => {
                self.take_over(&note, &*lock, marker, &what)?;
                lock.add(&line)?;
                let before = is_torn(&note).then_some(note.len() as u64);
                marked(lock, before, earlier(&note), &[&note[..], &line].concat())
            }
        }
    }

    /// What a marker says of a change; and what it says while it is under way and while it rests, where it may.
    fn notes(&self, change: &Change) -> (Vec<u8>, Option<Notes>) {
        let owner = Owner::of(&self.token(), self.names());
        let (readers, updates, replaced, touched) = match *change {
            Change::Torn { updates, touched } => ("torn", updates, "no", Some(touched)),
            Change::Unseen(updates) => ("whole", Some(updates), "no", None),
            Change::Replaced { .. } => ("whole", None, "yes", None),
        };
        let directory = updates.and_then(|updates| updates.rsplit('/').next()).unwrap_or_default();
        let words = [("updates", directory), ("readers", readers), ("replaced", replaced)];
        if !matches!(change, Change::Torn { updates: None, .. }) || !self.at_once || self.durable {
            let text = touched.and_then(|touched| touched().text());
            let said = text.iter().map(|text| (TOUCHED, text.as_str()));
            return (owner.line(&words.into_iter().chain(said).collect::<Vec<_>>()), None);
        }
        // Other ranks know it by what it says, which is the same in each update; what one touched that failed it says then.
        let line = owner.line(&words);
        let notes = Notes::new(line, owner.line(&[("readers", "whole"), (RESTS, "yes")]));
        (notes.works.clone(), Some(notes))
    }

    /// The marker of an earlier change of this opening, at work again, if it rests and nobody else had it meanwhile.
    fn resumed(&self, name: &str) -> Result<Option<Marker>, Fault> {
        let Some(marker) = self.state().resting.take_if(|marker| marker.name == name) else { return Ok(None) };
        let Notes { works, rests } = marker.notes.as_ref().expect("a marker that rests says so");
        match marker.lock.resume(rests, works) {
            Ok(resumes) => Ok(Some(marker).filter(|_| resumes)),
            Err(fault) => {
                self.state().resting = Some(marker);
                Err(fault)
            }
        }
    }

    /// Removes the marker that rests, unless somebody else has had it since.
    pub(super) fn end_rest(&self) -> Result<(), Fault> {
        let Some(marker) = self.state().resting.take() else { return Ok(()) };
        let rests = &marker.notes.as_ref().expect("a marker that rests says so").rests;
        // What fails once may not fail twice.
        let resumes = marker.lock.resume(rests, rests).or_else(|_| marker.lock.resume(rests, rests));
        resumes.and_then(|resumes| if resumes { self.remove_marker(&marker) } else { Ok(()) }).map_err(|fault| {
            let left = self.left_behind(&marker.name, fault);
            // The next one to end it may have more luck.
            self.state().resting = Some(marker);
            left
        })
    }

    /// Keeps others from changing in place what is about to be replaced: what they write would land in either. The marker
    /// goes with what is replaced. There is none where another owner is about to replace it, too, and that does not matter,
    /// since the last one wins; `alone` says that it does, since what goes with it must be of one attempt.
    ///
    /// # Errors
    /// When somebody changes it in place, or replaces it where that matters.
    pub fn mark_replaced(&self, marker: &str, name: &str, how: Replacing) -> Result<Option<Marker>, Fault> {
        let Replacing { noted, alone } = how;
        match self.try_to_mark(marker, name, &Change::Replaced { noted }) {
            Ok(Ok(marker)) => Ok(Some(marker)),
            Ok(Err(note)) if is_of_replacement(&note) && !alone => Ok(None),
            Ok(Err(note)) => Err(self.is_being_changed(&note, &format!("'{name}' of '{}'", self.home.shown()))),
            // Nobody changes it in place either, as long as that marker is there.
            Err(fault) if fault.kind == FaultKind::Foreign => Ok(None),
            // It was removed meanwhile.
            Err(_) if self.names().is_absent(marker.rsplit_once('/').map_or("", |(above, _)| above)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// What failed of something that is not there any more failed for that.
    fn unless_gone(&self, fault: Fault, marker: &str, name: &str) -> Fault {
        match marker.rsplit_once('/') {
            Some((above, _)) if fault.kind == FaultKind::Storage && self.names().is_absent(above) => {
                gone(name, self.home.shown())
            }
            _ => fault,
        }
    }

    /// Removes the marker of an owner who was about to replace what has been renamed meanwhile: it came along, and says nothing
    /// of what has the name now. Nor does one that says nothing at all: who made it had not locked it yet, and looks for its name when
    /// he does.
    pub fn drop_stray_marker(&self, marker: &str) -> Result<(), Fault> {
        match self.names().note(marker)? {
            Some(note) if is_of_replacement(&note) => self.names().remove(marker),
            Some(note) if note.is_empty() => match self.names().lock(marker)? {
                // Once more, now that nobody else can lock it.
                Locked::Ours(lock) => {
                    let is_empty = || self.names().note(marker).map(|now| now == Some(note));
                    let for_all = lock.keeps_others_out() && self.names().locks(marker) != Locks::EachHost;
                    let is_stray = for_all && has_its_name(&*lock)? && is_empty()?;
                    if is_stray { self.names().remove(marker) } else { Ok(()) }
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    pub(super) fn is_being_changed(&self, note: &[u8], what: &str) -> Fault {
        let owner = lines(note).iter().rev().find_map(Owner::of_line);
        let who = owner.map_or("another owner".into(), |owner| owner.to_string());
        let text = format!("{what} is being changed in place by {who} at this moment");
        Fault::new(FaultKind::Busy, text).hint(format!(
            "one at a time: wait until it is done, or write a new array; 'hyperslab clean {}' removes what an owner left \
             who died",
            self.home.shown()
        ))
    }

    /// Makes sure that the owners of an update that did not end are dead, and that nothing of theirs can take its name any
    /// more: what they would rename goes first.
    pub(super) fn take_over(&self, note: &[u8], lock: &dyn Lock, marker: &str, what: &str) -> Result<(), Fault> {
        let lines = lines(note);
        let owners: Vec<Owner> = lines.iter().filter_map(Owner::of_line).collect();
        let locks = self.names().locks("");
        let disowned = lines.last().is_some_and(is_disowned);
        if !disowned && !Owner::is_dead(owners.last(), self.names(), locks, lock.keeps_others_out()) {
            return Err(Owner::busy(owners.last(), what, &self.home.shown()));
        }
        for (line, owner) in lines.iter().filter_map(|line| Some((line, Owner::of_line(line)?))) {
            // Whoever may write the marker may name anything; what he names must be such a directory.
            let is_updates = |name: &&str| is_attempt(name) && name.split('-').nth(1) == Some(UPDATES);
            let directory = line.get("updates").and_then(|name| name.as_str()).filter(is_updates);
            let Some(directory) = directory else { continue };
            for home in self.homes_above(marker)? {
                // Nobody who may not change a store takes anything of it away.
                if home.names.check_believed(&home.root(&owner.token)).is_err() {
                    continue;
                }
                home.put_away(&format!("{}/{directory}", home.root(&owner.token)))?;
            }
        }
        Ok(())
    }

    /// Where an owner may have his root who changes something with this name: he may have opened any group above it, by any
    /// link.
    fn homes_above(&self, name: &str) -> Result<Vec<Home>, Fault> {
        let mut homes = Vec::new();
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut there = self.names().at(&self.names().full(directory));
        if let Some(real) = there.followed()? {
            there = there.at(&real);
        }
        while let Some((above, last)) = there.above() {
            let beside = there.at(&above);
            homes.extend([Home::inside(there), Home::beside(beside.clone(), &last)]);
            there = beside;
        }
        Ok(homes)
    }

    /// Lists something as updated in place, for whoever finds this root without its owner.
    fn note_update(&self, name: &str, torn: bool) -> Result<(), Fault> {
        let mut state = self.state();
        if !state.updated.insert((name.to_string(), torn)) {
            return Ok(());
        }
        let lock = state.made.as_ref().map(|made| &made.lock);
        let mut map = Map::new();
        map.insert("update".into(), name.into());
        map.insert("readers".into(), if torn { "torn" } else { "whole" }.into());
        lock.map_or(Ok(()), |lock| lock.add(&line_of(map)))?;
        drop(state);
        if torn {
            self.secure()?;
        }
        self.check_kept()
    }

    /// The update is over; where it replaced nothing of an earlier one that did not end, that one's marker stays.
    pub fn unmark(&self, marker: Marker, stays: bool) -> Result<(), Fault> {
        match marker.before {
            Some(before) if stays && before > 0 => marker.lock.cut(before),
            None if marker.notes.as_ref().is_some_and(|notes| marker.lock.rest(&notes.rests)) => {
                self.state().resting = Some(marker);
                Ok(())
            }
            None => self.remove_marker(&marker),
            // It was listed as unfinished.
            Some(_) => {
                self.remove_marker(&marker)?;
                self.home.strike(&unfinished_line(&marker.shown))
            }
        }
    }

    /// Where something else has taken the place of what was marked, a marker of this name is somebody else's.
    fn remove_marker(&self, marker: &Marker) -> Result<(), Fault> {
        if !has_its_name(&*marker.lock)? {
            return Ok(());
        }
        // The same here, and a marker that stays speaks of an update that is over. A sync that has failed
        // is told all the same: the next one says nothing of what it lost.
        let remove = || self.names().remove(&marker.name);
        remove().inspect_err(|_| drop(remove()))
    }

    /// The update fails before anything is changed: the failure, which tells of markers that stay.
    pub fn withdrawn(&self, markers: impl IntoIterator<Item = Marker>, fault: Fault) -> Fault {
        markers.into_iter().fold(fault, |fault, marker| {
            let marked = self.names().full(&marker.name);
            match self.withdraw(marker) {
                Ok(()) => fault,
                Err(why) => fault.also(format!("'{marked}' is left behind: {}", why.text())),
            }
        })
    }

    /// The update ended before anything was changed. Its marker does not rest: nobody may ever use what has failed again, and
    /// nobody is told of a marker at rest.
    ///
    /// # Errors
    /// When it cannot be removed; then it says what it said, and the next opening names it.
    pub fn withdraw(&self, marker: Marker) -> Result<(), Fault> {
        self.unmark(Marker { notes: None, ..marker }, true)
    }

    /// The failure of a call, which tells of the marker that rests if that cannot be removed now.
    fn at_no_rest(&self, fault: Fault) -> Fault {
        match self.end_rest() {
            Ok(()) => fault,
            Err(why) => fault.also(format!("while its marker rested: {}", why.text())),
        }
    }

    /// The update of a file ended in the middle: its marker stays beside the file without an owner, and says what may be torn.
    pub fn leave_torn(&self, marker: Marker, touched: &TouchedParts) {
        if marker.notes.is_none() {
            // It has said so all the time.
            return;
        }
        let owner = Owner::of(&self.token(), self.names());
        let text = touched.text();
        let said = text.iter().map(|text| (TOUCHED, text.as_str()));
        let words: Vec<_> = [("readers", "torn"), ("replaced", "no")].into_iter().chain(said).collect();
        // Without a word it says that all may be torn.
        let _ = marker.lock.cut(0).and_then(|()| marker.lock.add(&owner.line(&words)));
    }

    /// The update ended in the middle: its marker stays without an owner, and the next opening names it.
    pub fn leave_unfinished(&self, marker: Marker) {
        // Whoever takes it over puts away what this update may still rename, also in the same opening.
        self.state().updates = None;
        if !self.names().exists(&marker.name) {
            // It went with what was replaced meanwhile, and what is there now may have parts of the update.
            let _ = self.names().write(&marker.name, &disowned_line(), false);
        }
        let _ = self.home.list_unfinished(&marker.shown);
    }
}
