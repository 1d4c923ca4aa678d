//! How a new file comes to be seen: it gets its name with its first step or flush, or when it is closed.
//!
//! ```text
//! hidden       in the format's order (`arranging.rs`) | contents, synced | what makes it valid, synced | its name | the directory, synced      -> there, or gathering
//! gathering    what is new behind the end, synced | one write of what leads there, synced              -> gathering
//! there        is changed where it lies (`putting.rs`)
//! ```
//!
//! What a format can change in a file that exists decides which of the two comes after the first publication
//! ([`Form::is_shown`]). One that cannot get new arrays then begins again as a hidden copy (`copying.rs`).

use super::edit::Edit;
use super::form::{FileChange, FileEnd};
use super::phase::FilePhase;
use super::putting::Putting;
use super::{Contained, File, disk, unseen};
use crate::course::{End, Publish};
use crate::error::Error;
use crate::mode::Mode;
use hyperslab_collective::attempts::ReplacedFile;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Root};
use std::sync::PoisonError;

impl File {
    /// Whether nothing of it is seen, since it has no name yet.
    pub(super) fn is_hidden(&self) -> bool {
        self.phase.get() == FilePhase::Hidden
    }

    /// Whether what is written to it is seen only when it is published.
    pub(super) fn is_new(&self) -> bool {
        self.phase.get() != FilePhase::There
    }

    /// Whether there is something that the next publication lets others see.
    fn has_unseen(&self) -> bool {
        unseen(&self.phase, &self.inside).is_some()
    }

    /// Waits for all requests; of a new file, makes visible what is whole. What is written to a step stays hidden until the step
    /// ends. Collective.
    ///
    /// # Errors
    /// The failure of a request of this file that nobody waited for, or of publishing; the same on all ranks.
    pub fn flush(&self) -> Result<(), Error> {
        self.await_calls();
        let in_step = self.inside().form.is_in_step(self.within.trim_end_matches('/'));
        if in_step || !self.has_unseen() {
            return self.settle();
        }
        let what = format!("flush of '{}'", self.path().display());
        self.sync_written(what.clone(), "flush", true)?;
        self.show((what, vec![("operation".into(), "flush".into())]), None)
    }

    /// Makes durable what was written to a file that is not seen yet, on all ranks, when all requests are over. Collective. Where
    /// rank 0 is about to publish it, `publishes`, it may do that for all of its host.
    pub(super) fn sync_written(&self, what: String, called: &str, publishes: bool) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let below = Root::new(self.directory.full(self.object()));
        let sync = Some(below).filter(|_| self.options.durable && self.is_new());
        let end = End { sync, publishing_syncs: publishes && self.at_hand, ..End::of(what, called, &path) };
        Ok(self.comm.sync_and(end, self.target, Publish::nothing())?)
    }

    /// Makes visible what is whole, with what a change adds to it: what it does, for people, and what ranks compare. Collective.
    pub(super) fn show(
        &self,
        (what, fields): (String, Vec<(String, String)>),
        edit: Option<&Edit>,
    ) -> Result<(), Error> {
        self.await_calls();
        self.arrange()?;
        let path = self.path().display().to_string();
        let possible = self.check_writable().and_then(|()| match edit {
            Some(edit) => self.inside().form.change_of(edit).map(drop),
            None => Ok(()),
        });
        let mut all = vec![("file or store".to_string(), path)];
        all.extend(fields);
        let fault = possible.err().map(|fault| fault.context(&what));
        let question = Question::opening(what, all, fault);
        let (file, with) = (self.clone(), edit.cloned());
        let work = move || file.publish(with.as_ref(), false).map(|()| Vec::new());
        let done = self.comm.agree_on(question, self.attempts.at_once_durable(1), work);
        if done.as_ref().err().is_none_or(|fault| fault.kind == FaultKind::Unsynced) {
            edit.iter().for_each(|edit| self.has_edited(edit));
            self.has_shown();
        }
        Ok(done.map(drop)?)
    }

    /// All ranks know that what is whole is seen.
    fn has_shown(&self) {
        let phase = {
            let mut inside = self.inside();
            (inside.changed, inside.copied) = (false, None);
            inside.seen = inside.form.extent().arrays;
            let there = inside.form.is_shown();
            inside.begun = Some((Vec::new(), inside.form.extent().bytes)).filter(|_| !there);
            if there { FilePhase::There } else { FilePhase::Gathering }
        };
        self.phase.set(phase);
    }

    /// Rank 0's part of a publication; `ends` when nothing comes after it.
    pub(super) fn publish(&self, edit: Option<&Edit>, ends: bool) -> Result<(), Fault> {
        match self.phase.get() {
            FilePhase::Hidden => self.give_name(edit, ends),
            FilePhase::Gathering => self.lead_to_all(edit),
            FilePhase::There if ends => {
                let last = self.inside().form.last_change();
                last.map_or(Ok(()), |change| self.changed(change))
            }
            FilePhase::There => Ok(()),
        }
    }

    /// Gives a hidden file what makes it valid, and then its name.
    fn give_name(&self, edit: Option<&Edit>, ends: bool) -> Result<(), Fault> {
        self.check_copied()?;
        let attempts = &self.attempts;
        // Nobody has it to himself while storage is asked, which may not answer.
        let (closing, begun, bytes) = {
            let inside = self.inside();
            (inside.form.closing(edit)?, inside.begun.clone(), inside.form.extent().bytes)
        };
        let FileEnd { beginning, ending } = closing;
        let length = begun.as_ref().map_or(bytes, |(_, length)| *length);
        if begun.is_none() {
            attempts.make_file(&beginning, bytes)?;
        }
        let named = || {
            if !ending.is_empty() || length != bytes {
                attempts.end_file(bytes, &ending)?;
            }
            // Only now all of it is known, such as how many records there are.
            if begun.as_ref().is_some_and(|(begun, _)| *begun != beginning) {
                attempts.begin_file(&beginning)?;
            }
            let (marker, holds) = (disk::marker(&self.name), || self.check_copied());
            let replaces = ReplacedFile { may: self.replaces(), marker: &marker, holds: &holds };
            if ends { attempts.publish_file(replaces) } else { attempts.show_file(replaces) }
        };
        let done = named();
        let mut inside = self.inside();
        if done.as_ref().err().is_none_or(|fault| fault.kind == FaultKind::Unsynced) {
            inside.form.has_changed(bytes + ending.len() as u64, beginning, false);
        } else if !ends {
            // More may be written, and finds no bytes of this behind what there was.
            let cut = self.directory.resize(&self.hidden, bytes);
            inside.begun = Some((Vec::new(), if cut.is_ok() { bytes } else { bytes + ending.len() as u64 }));
        }
        done
    }

    /// Lets a file that gathers lead to all that is whole: behind its end lies another table of contents, and one write of
    /// what it begins with leads there.
    fn lead_to_all(&self, edit: Option<&Edit>) -> Result<(), Fault> {
        let (closing, at, old) = {
            let inside = self.inside();
            if !inside.changed && edit.is_none() {
                return Ok(());
            }
            (inside.form.closing(edit)?, inside.form.extent(), inside.form.beginning())
        };
        let change = FileChange {
            at: at.bytes,
            behind: closing.ending,
            in_place: vec![(0, closing.beginning)],
            before: vec![(0, old.clone())],
        };
        Putting::new(self.clone(), at, Some(old)).edit(Box::new(move |_, _| Ok(change)))
    }

    /// Whether its name may be that of another file, which it then replaces.
    fn replaces(&self) -> bool {
        self.mode != Mode::Create || self.phase.was_shown()
    }

    /// Ends the use of the file on all ranks; a new one is published, unless there is a fault.
    pub(super) fn finish(self, fault: Option<String>) -> Result<(), Error> {
        let what = format!("close '{}'", self.path().display());
        let fault = fault.map(|text| Fault::new(FaultKind::Peer, format!("{what}: the program gave it up: {text}")));
        self.await_calls();
        let new = self.is_new();
        let sync = new && self.options.durable;
        let file = Root::new(self.directory.full(self.object()));
        let path = self.path().display().to_string();
        let end =
            End { sync: sync.then_some(file), publishing_syncs: self.at_hand, fault, ..End::of(what, "close", &path) };
        let (attempts, hidden, closes) = (self.attempts.clone(), self.is_hidden(), self.clone());
        let work = move || {
            closes.publish(None, true)?;
            if hidden { Ok(()) } else { attempts.end() }
        };
        // Of a file that is there nothing is left to sync, or little.
        let at_once = if new || self.inside().form.last_change().is_some() {
            self.attempts.at_once_durable(1)
        } else {
            self.attempts.at_once(1)
        };
        let publish = if self.mode.writes() { Publish::by(at_once, work) } else { Publish::nothing() };
        let result = self.comm.sync_and(end, self.target, publish);
        self.is_over();
        drop(self.own_lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.attempts.is_done();
        if result.as_ref().is_err_and(|fault| fault.kind != FaultKind::Unsynced) {
            self.given_up();
        }
        Ok(result?)
    }

    /// Ends a new file that was never published, on rank 0, and what of one that was is not seen. Where nobody knows who still
    /// writes, nobody will use its name.
    pub(super) fn given_up(&self) {
        self.is_over();
        if self.within.is_empty() && self.mode.writes_new() && self.comm.rank() == 0 && !self.comm.is_poisoned() {
            self.attempts.is_done();
            let attempts = self.attempts.clone();
            self.comm.work_later(self.attempts.at_once(1), move || drop(attempts.end()));
        }
    }
}

impl Contained {
    /// What is in a file, and which request added what.
    pub(super) fn of(form: Box<dyn super::Form>) -> Contained {
        let added = vec![0; form.extent().arrays];
        Contained { form, added, begun: None, changed: false, shown: None, copied: None, aside: None, seen: 0 }
    }
}
