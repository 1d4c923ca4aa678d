//! More arrays for a file that has its name, and cannot get any where it lies: they are added to a hidden copy, which takes the
//! name with the next publication; of a file that was there when it was opened, at the end of the call.

use super::File;
use super::form::{FileSize, Form};
use super::phase::FilePhase;
use super::policy::COPY_BYTES;
use crate::array_write::ArrayWrite;
use crate::error::Error;
use crate::options::WriteOptions;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind};

impl File {
    /// Lets a file that is seen be hidden again, if it gets new arrays and cannot where it lies. Gives how far it went, if it was.
    ///
    /// # Errors
    /// When what an update of it left half done would not be named any more.
    pub(super) fn hide_again(&self, asks: &[ArrayWrite], options: &WriteOptions) -> Result<Option<FileSize>, Error> {
        if !self.mode.writes() {
            return Ok(None);
        }
        self.await_calls();
        if self.is_new() || asks.is_empty() || !options.section.is_whole() {
            return Ok(None);
        }
        let mut inside = self.inside();
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        let can = if self.mode.writes_new() { !inside.form.takes_new() } else { inside.form.adds_by_copy() };
        if !can || inside.form.numbers_of(&self.paths(&names)).iter().any(Option::is_some) {
            return Ok(None);
        }
        self.check_finished()?;
        let before = inside.form.extent();
        inside.shown = inside.form.lasting().map(|_| inside.form.beginning());
        inside.form.is_hidden_again();
        inside.begun = None;
        drop(inside);
        self.phase.set(FilePhase::Hidden);
        Ok(Some(before))
    }

    /// A file that was there when it was opened, and that was hidden to get new arrays, is seen with these. Collective.
    pub(super) fn show_again(&self, before: FileSize) -> Result<(), Error> {
        if self.mode.writes_new() {
            return Ok(());
        }
        let path = self.path().display().to_string();
        let fields = vec![("operation".into(), "write of new arrays".into())];
        let shown = self.show((format!("write of new arrays to '{path}'"), fields), None);
        if shown.as_ref().is_err_and(|error| !error.is_unsynced()) {
            let mut inside = self.inside();
            inside.added.truncate(before.arrays);
            inside.form.back_to(before);
            drop(inside);
            self.unhide();
            self.end_copy();
        }
        shown
    }

    /// Changes what a file says that cannot be changed where it lies: of one that is seen, in a copy, which takes its place. Collective.
    pub(super) fn edit_copy(
        &self,
        (what, fields): (String, Vec<(String, String)>),
        form: Box<dyn Form>,
    ) -> Result<(), Error> {
        let (hidden, before) = (self.is_new(), self.inside().form.extent());
        let mut all = vec![("operation".to_string(), what.clone())];
        all.extend(fields);
        let fault = if hidden { None } else { self.check_finished().err() };
        if !hidden {
            let mut inside = self.inside();
            inside.shown = inside.form.lasting().map(|_| inside.form.beginning());
        }
        let question = Question::opening(what.clone(), all.clone(), fault.map(|fault| fault.context(&what)));
        let file = self.clone();
        let copies = move || if hidden { Ok(Vec::new()) } else { file.make_copy(before.bytes).map(|()| Vec::new()) };
        self.comm.agree_on(question, false, copies)?;
        let old = {
            let mut inside = self.inside();
            inside.changed = true;
            std::mem::replace(&mut inside.form, form)
        };
        if hidden {
            return Ok(());
        }
        self.inside().form.is_hidden_again();
        self.phase.set(FilePhase::Hidden);
        let shown = self.show((what, all), None);
        if shown.as_ref().is_err_and(|error| !error.is_unsynced()) {
            self.inside().form = old;
            self.unhide();
            self.end_copy();
        }
        shown
    }

    /// Rank 0 makes a hidden copy of so many bytes that are seen.
    fn make_copy(&self, bytes: u64) -> Result<(), Fault> {
        let made = self.attempts.make_file(&[], bytes).and_then(|()| self.copy_shown(bytes));
        match made {
            Ok(()) => self.inside().begun = Some((Vec::new(), bytes)),
            Err(_) => drop(self.attempts.end()),
        }
        made
    }

    /// Nothing stays of a copy that never took the place of the file.
    fn end_copy(&self) {
        if self.comm.rank() == 0 && !self.comm.is_poisoned() {
            drop(self.attempts.end());
        }
    }

    /// Refuses to make a copy where that would not tell what an update left half done.
    fn check_finished(&self) -> Result<(), Fault> {
        let Some(unfinished) = self.unfinished.list().into_iter().next() else { return Ok(()) };
        let text = format!("an update of '{unfinished}' did not end, which a copy would not tell");
        let hint = "write again what was being written before";
        Err(Fault::new(FaultKind::Invalid, text).about(self.path().display().to_string()).hint(hint))
    }

    /// It is seen as it was, since what it was hidden for has failed.
    pub(super) fn unhide(&self) {
        let mut inside = self.inside();
        inside.form.is_shown();
        (inside.begun, inside.copied, inside.aside) = (None, None, None);
        drop(inside);
        self.phase.set(FilePhase::There);
    }

    /// Rank 0 copies so many bytes that are seen to the hidden file that was made.
    pub(super) fn copy_shown(&self, bytes: u64) -> Result<(), Fault> {
        let (directory, name) = (&self.directory, &self.name);
        self.attempts.check_still_there()?;
        let version = directory.version(name)?;
        // What another program added since this one opened the file would not be in the copy, and nothing would tell of it.
        let shown = self.inside().shown.clone();
        shown.map_or(Ok(()), |beginning| self.check_begins(&beginning))?;
        let mut at = 0;
        while at < bytes {
            let part = directory.read_part(name, at, COPY_BYTES.min(bytes - at))?.unwrap_or_default();
            if part.is_empty() {
                return Err(self.changed_by_others());
            }
            // What is made has zeros already, and holes stay holes.
            if part.iter().any(|byte| *byte != 0) {
                directory.overwrite_part(&self.hidden, at, &part)?;
            }
            at += part.len() as u64;
        }
        self.inside().copied = Some(version);
        Ok(())
    }

    /// Makes sure that what is seen begins so.
    pub(super) fn check_begins(&self, beginning: &[u8]) -> Result<(), Fault> {
        let (directory, name) = (&self.directory, &self.name);
        if directory.read_prefix(name, beginning.len() as u64)?.as_deref() == Some(beginning) {
            return Ok(());
        }
        let path = directory.full(name);
        let text = format!("'{path}' has another header than when it was opened: another program has changed it");
        Err(Fault::new(FaultKind::Busy, text).about(path).hint("open it again, to see what it holds now"))
    }

    /// Refuses to replace what is seen by a hidden copy if somebody else has changed it since it was copied.
    pub(super) fn check_copied(&self) -> Result<(), Fault> {
        let copied = self.inside().copied.clone();
        let Some(version) = copied else { return Ok(()) };
        self.attempts.check_still_there()?;
        if self.directory.version(&self.name)? == version { Ok(()) } else { Err(self.changed_by_others()) }
    }

    fn changed_by_others(&self) -> Fault {
        let path = self.directory.full(&self.name);
        let text = format!("'{path}' was changed by another program, while this one made a changed copy of it");
        Fault::new(FaultKind::Busy, text).about(path).hint("open it again, and change it again")
    }
}
