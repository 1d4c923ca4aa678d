//! More arrays for a file that has its name, and cannot get any where it lies: they are added to a hidden copy, which takes the
//! name with the next publication; of a file that was there when it was opened, at the end of the call.

use super::File;
use super::form::FileSize;
use super::phase::FilePhase;
use super::policy::COPY_BYTES;
use crate::error::Error;
use crate::options::WriteOptions;
use crate::zarr::ArrayWrite;
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
        if let Some(unfinished) = self.unfinished.list().first() {
            let text = format!("an update of '{unfinished}' did not end, which a copy with new arrays would not tell");
            return Err(Fault::new(FaultKind::Invalid, text)
                .about(self.path().display().to_string())
                .hint("write again what was being written, and then add arrays")
                .into());
        }
        let before = inside.form.extent();
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
            if self.comm.rank() == 0 && !self.comm.is_poisoned() {
                drop(self.attempts.end());
            }
        }
        shown
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

    /// Refuses to replace what is seen by a hidden copy if somebody else has changed it since it was copied.
    pub(super) fn check_copied(&self) -> Result<(), Fault> {
        let copied = self.inside().copied.clone();
        let Some(version) = copied else { return Ok(()) };
        self.attempts.check_still_there()?;
        if self.directory.version(&self.name)? == version { Ok(()) } else { Err(self.changed_by_others()) }
    }

    fn changed_by_others(&self) -> Fault {
        let path = self.directory.full(&self.name);
        let text = format!("'{path}' was changed by another program, while this one added arrays to a copy of it");
        Fault::new(FaultKind::Busy, text).about(path).hint("open it again, and write the new arrays again")
    }
}
