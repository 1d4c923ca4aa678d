//! What takes the place of something has its permissions: mode, owner where that is allowed, group, and lists of others
//! ([`crate::acl`]). It is never open wider than that in between.

use crate::acl;
use rustix::fs::{FileType, Gid, Mode, Stat, Uid};
use std::io;
use std::os::fd::AsFd;

/// The bits of a mode that say who may do what.
pub(crate) fn rights(mode: u32) -> u32 {
    mode & 0o777
}

/// The permissions of something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Likeness {
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) mode: u32,
    access: Option<Vec<u8>>,
    default: Option<Vec<u8>>,
    is_directory: bool,
    is_of_file: bool,
}

impl Likeness {
    /// Of something with these lists of others; `None` where it is neither a file nor a directory.
    pub(crate) fn new(
        stat: &Stat,
        list: impl Fn(&'static str) -> io::Result<Option<Vec<u8>>>,
    ) -> io::Result<Option<Likeness>> {
        let is_directory = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => true,
            FileType::RegularFile => false,
            _ => return Ok(None),
        };
        let kept = if is_directory { libc::S_ISGID | libc::S_ISVTX } else { 0 };
        Ok(Some(Likeness {
            owner: stat.st_uid,
            group: stat.st_gid,
            mode: rights(stat.st_mode) | stat.st_mode & kept,
            access: list(acl::ACCESS)?,
            default: if is_directory { list(acl::DEFAULT)? } else { None },
            is_directory,
            is_of_file: !is_directory,
        }))
    }

    /// The same for a small file that says something of this: nobody executes it, and its owner may read and write it.
    pub(crate) fn of_note(self) -> Likeness {
        let mode = if self.is_directory { self.mode & 0o666 } else { self.mode } | 0o600;
        Likeness { mode, default: None, is_directory: false, ..self }
    }

    /// The same for a file that takes its place, or lies in it.
    pub(crate) fn of_file(self) -> Likeness {
        if self.is_directory { self.of_note() } else { self.writable() }
    }

    /// The same, which its owner may write to.
    pub(crate) fn writable(self) -> Likeness {
        let least = if self.is_directory { 0o700 } else { 0o600 };
        Likeness { mode: self.mode | least, ..self }
    }

    /// The same for a directory in which what is hidden is made: who may only add names to the other one adds none to it.
    pub(crate) fn of_root(self) -> Likeness {
        let closed = if self.mode & libc::S_ISVTX == 0 { 0 } else { libc::S_ISVTX | 0o022 };
        Likeness { mode: self.mode & !closed, ..self }.writable()
    }

    /// What only its owner may do: nobody else is let in before it has the rest.
    pub(crate) fn first_mode(&self) -> Mode {
        Mode::from_raw_mode(self.mode & 0o700)
    }

    /// What a note that says something of a directory is made with: all that others may do with that. One that says something of
    /// a file may become its data.
    pub(crate) fn note_mode(&self) -> Mode {
        if self.is_of_file { self.first_mode() } else { Mode::from_raw_mode(self.mode) }
    }

    /// Whether it has a list of others.
    pub(crate) fn has_list(&self) -> bool {
        self.access.is_some()
    }

    /// [Gives](Likeness::give) it to what was made with its mode, where that is not what came of it.
    pub(crate) fn give_if_other(&self, made: impl AsFd) -> io::Result<()> {
        let stat = rustix::fs::fstat(&made)?;
        let is_same = (stat.st_uid, stat.st_gid, rights(stat.st_mode)) == (self.owner, self.group, self.mode);
        if is_same && self.access.is_none() { Ok(()) } else { self.give(made) }
    }

    /// Gives what was made with the [first mode](Likeness::first_mode) the rest.
    ///
    /// # Errors
    /// When the system refuses the mode. Owner and group are kept where that is allowed; of another group than the one that
    /// was there, members get no more than everybody.
    pub(crate) fn give(&self, made: impl AsFd) -> io::Result<()> {
        let stat = rustix::fs::fstat(&made)?;
        let mut group = stat.st_gid;
        if (stat.st_uid, group) != (self.owner, self.group) {
            let (owner, to_group) = (Uid::from_raw(self.owner), Gid::from_raw(self.group));
            let both = rustix::fs::fchown(&made, Some(owner), Some(to_group));
            if both.is_ok() || group == self.group || rustix::fs::fchown(&made, None, Some(to_group)).is_ok() {
                group = self.group;
            }
        }
        let same_group = group == self.group;
        let access = self.access.as_deref().filter(|_| same_group);
        let listed = acl::give(&made, acl::ACCESS, access);
        if self.is_directory {
            let _ = acl::give(&made, acl::DEFAULT, self.default.as_deref());
        }
        // Without the list, the bits of the group are those of all whom it names.
        let as_everybody = !same_group || self.access.is_some() && listed.is_err();
        let mode = if as_everybody {
            self.mode & !libc::S_IRWXG | self.mode & libc::S_IRWXG & self.mode << 3
        } else {
            self.mode
        };
        Ok(rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?)
    }
}
