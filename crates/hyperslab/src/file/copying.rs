//! More arrays for a file that has its name, and cannot get any where it lies: it goes on as a hidden copy, which takes the name
//! with the next publication.

use super::File;
use super::phase::FilePhase;
use super::policy::COPY_BYTES;
use crate::options::WriteOptions;
use crate::zarr::ArrayWrite;
use hyperslab_world::{Fault, FaultKind};

impl File {
    /// Lets a file of this opening that is seen be hidden again, if it gets new arrays and cannot where it lies. Gives whether it
    /// was.
    pub(super) fn hide_again(&self, asks: &[ArrayWrite], options: &WriteOptions) -> bool {
        if !self.mode.writes_new() {
            return false;
        }
        self.await_calls();
        if self.is_new() || asks.is_empty() || !options.section.is_whole() {
            return false;
        }
        let mut inside = self.inside();
        let names: Vec<&str> = asks.iter().map(|ask| ask.name.as_str()).collect();
        if inside.form.takes_new() || inside.form.numbers_of(&self.paths(&names)).iter().any(Option::is_some) {
            return false;
        }
        inside.form.is_hidden_again();
        inside.begun = None;
        drop(inside);
        self.phase.set(FilePhase::Hidden);
        true
    }

    /// It is seen as it was, since what it was hidden for has failed.
    pub(super) fn unhide(&self) {
        let mut inside = self.inside();
        inside.form.is_shown();
        (inside.begun, inside.copied) = (None, None);
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
        Fault::new(FaultKind::Busy, text).about(path).hint("write all arrays before the first flush()")
    }
}
