//! Names: what rank 0 makes, lists, renames and removes before and after data move.

use crate::Fault;
use std::sync::Arc;

/// Bytes of a file that lie together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Where they begin in the file \[B\].
    pub logical: u64,
    /// Where they begin on the device \[B\]; comparable between files of one file system.
    pub physical: u64,
    /// How many there are \[B\].
    pub bytes: u64,
}

/// Directories and files by name, seen from one root.
///
/// A name is relative to the root, with `/` between its parts and perhaps one at its end, or it is absolute as
/// [`Names::full`] gives it; the empty name is the root itself. No part is `.` or `..`. Absolute names are also the
/// names of objects for the [`Store`](crate::Store) of the same machine: what is made here is seen there, and the
/// reverse, by all ranks, as soon as the call that made it has returned.
///
/// | call | others see |
/// | --- | --- |
/// | [`write`](Names::write), [`rename`](Names::rename), [`exchange`](Names::exchange) | the old state or the new one, at any time, also after a crash of this process |
/// | all other changes | any part of them, in any order |
///
/// An implementer whose files have parts in several places cannot change them at once. It may promise less of `write`
/// and `rename`: meanwhile and after a crash, some parts are old and some new. But each rename has *one* moment that
/// decides it, and it offers completion: before that moment the old state is whole under its name and the new one under
/// the name it has so far; after it, [`Names::complete`] does what is left. Who opens a file that others publish by a
/// rename thus calls `complete` first, and [`Names::check`] before it believes [`Names::length`].
///
/// Nothing survives a loss of power but files written with `sync`, and what [`Names::sync_files`] and [`Names::sync`]
/// were called for after the change; where nothing survives the process, these do nothing. Not promised: that two
/// callers may change the same names at once, that a change is undone when it fails half-way, that a file that was
/// removed gives its space back while somebody has it open, or that [`Names::exchange`] can be done at all.
///
/// [`conformance::names`](crate::conformance::names) tests an implementation against this.
pub trait Names: Send + Sync {
    /// The absolute name of a name.
    fn full(&self, name: &str) -> String;
    /// The absolute name of the root, whatever it was relative to (a process has a current directory).
    ///
    /// # Errors
    /// When it cannot be known, or no root can have that name.
    fn resolve(&self) -> Result<String, Fault>;
    /// The same names, seen from the root with this absolute name, which need not exist.
    fn at(&self, root: &str) -> Arc<dyn Names>;
    /// The absolute name of what the root lies in, and the root's name there; `None` when nothing is above the root.
    fn above(&self) -> Option<(String, String)>;

    /// Whether something has this name.
    fn exists(&self, name: &str) -> bool;
    /// Length of a file \[B\], `None` when there is no such file.
    fn length(&self, name: &str) -> Option<u64>;
    /// Names in a directory, sorted; none when there is no such directory.
    fn list(&self, name: &str) -> Result<Vec<String>, Fault>;
    /// The first bytes of a file, at most this many; `None` when nothing has the name.
    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault>;

    /// Makes a directory and those above it; one that exists is fine.
    fn make(&self, name: &str) -> Result<(), Fault>;
    /// Writes a small file whole, in a directory that exists; an older one is replaced. With `sync`, bytes and name are
    /// durable.
    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault>;
    /// Makes a small file that says something by being there, in a directory that exists, or gives it another note. With `sync`,
    /// its being there is durable; of the note no more is promised than that it is written.
    fn mark(&self, name: &str, note: &[u8], sync: bool) -> Result<(), Fault> {
        self.write(name, note, sync)
    }
    /// Makes a file of this length that begins with `prefix`, in a directory that exists; the rest is still to be
    /// written. An older one is gone.
    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault>;
    /// Gives a file that exists another length; bytes that it gains are zero.
    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault>;
    /// Renames something to a name that does not exist, in a directory that exists; or a file over a file.
    fn rename(&self, from: &str, to: &str) -> Result<(), Fault>;
    /// Ends a rename of a file that was decided and then interrupted, and makes it durable; nothing was renamed from `from`
    /// to `to`, or all of it, is fine. Returns whether something was left to do. Nothing ever is where a rename is one
    /// change.
    ///
    /// # Errors
    /// When it cannot be ended: then `to` is old in part and new in part, and must not be read.
    fn complete(&self, _from: &str, _to: &str) -> Result<bool, Fault> {
        Ok(false)
    }
    /// Checks that the parts of a file fit together, if it has several; nothing there is fine.
    ///
    /// # Errors
    /// When some are missing or have lengths that do not fit.
    fn check(&self, _name: &str) -> Result<(), Fault> {
        Ok(())
    }
    /// Exchanges what two names mean at once, so that neither is missing at any time. Returns whether that can be
    /// done here; if not, nothing has changed.
    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault>;
    /// Whether a directory with this name can be made, and things be renamed from it to below the root.
    fn can_rename_from(&self, name: &str) -> bool;
    /// Removes a file, or a directory with all that is in it; nothing there is fine.
    fn remove(&self, name: &str) -> Result<(), Fault>;
    /// Removes what was never published, as far as that goes, and gives its space back at once, even where ranks still
    /// have files of it open.
    fn discard(&self, name: &str);
    /// Removes a directory if nothing is in it.
    fn remove_empty(&self, name: &str);

    /// Reserves the space of the first bytes of a file that exists, so that they have their places before they are
    /// written, and room; returns whether the file system can. A lack of space is an error, which leaves the file as it
    /// was.
    fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        let _ = (name, bytes);
        Ok(false)
    }
    /// Where the bytes of a file lie on its device, in rising order of their offsets and without holes; `None` where
    /// that is not known.
    fn extents(&self, name: &str) -> Result<Option<Vec<Extent>>, Fault> {
        let _ = name;
        Ok(None)
    }

    /// Makes small files and their names durable, in as few calls as the system allows.
    fn sync_files(&self, names: &[String]) -> Result<(), Fault>;
    /// Makes the names in a directory durable.
    fn sync(&self, name: &str) -> Result<(), Fault>;
}

impl dyn Names + '_ {
    /// The contents of a small file; `None` when nothing has the name.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.read_prefix(name, u64::MAX)
    }
}
