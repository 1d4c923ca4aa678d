//! Records: small files and directories beside data or in them, which are believed only if whoever made them could have changed
//! the data anyway, and which have the permissions of the data.

use crate::below::Spot;
use crate::doing::posix_fault;
use crate::likeness::Likeness;
use crate::regular;
use crate::trust::{Data, Standing};
use crate::users::shown_user;
use hyperslab_world::{Fault, FaultKind};
use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A record by its path, and the data that it speaks of, where that matters.
pub(super) struct Record<'a> {
    pub(super) path: &'a Path,
    pub(super) data: Option<&'a Data>,
}

/// Why a record is not believed.
#[derive(Debug)]
struct Foreign(String);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Foreign {}

fn foreign(why: String) -> io::Error {
    io::Error::other(Foreign(why))
}

impl Record<'_> {
    /// Makes sure that an open file is a record that is believed.
    pub(super) fn check(&self, held: &Metadata) -> io::Result<()> {
        regular::check(held)?;
        let Some(data) = self.data else { return Ok(()) };
        data.check(self.path, Standing::from(held)).map_err(foreign)?;
        if held.nlink() > 1 && data.has_strangers_beside(self.path)? {
            return Err(foreign(format!("it has {} names, and others may have given it this one", held.nlink())));
        }
        Ok(())
    }

    /// The same of one of which only the lock says something.
    pub(super) fn check_maker(&self, held: &Metadata) -> io::Result<()> {
        regular::check(held)?;
        self.data.map_or(Ok(()), |data| data.check_maker(self.path, Standing::from(held)).map_err(foreign))
    }

    /// Makes sure that what has the name, a directory or a hidden file, is believed; nothing there is.
    pub(super) fn check_name(&self, spot: &Spot) -> io::Result<()> {
        let Some(data) = self.data else { return Ok(()) };
        let opened = match spot.open_to_look() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&opened)?;
        let made = Standing::from(&stat);
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFDIR => data.check(self.path, made).map_err(foreign),
            libc::S_IFREG => data.check_maker(self.path, made).map_err(foreign),
            _ => Err(foreign("it is neither a file nor a directory".into())),
        }
    }

    /// What a record is like that is made, which has its name here.
    pub(super) fn like(&self, at: &Spot) -> Option<Likeness> {
        let data = self.data?.spot(self.path, at).ok()?;
        Some(data.likeness().ok()??.of_note())
    }

    /// Opens it to read it, never by a link, and without waiting for a pipe.
    pub(super) fn open(&self) -> io::Result<File> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.path)?;
        self.check(&file.metadata()?)?;
        Ok(file)
    }

    /// The failure of what was done with it.
    pub(super) fn failed(&self, verb: &'static str, error: &io::Error) -> Fault {
        let path = self.path.display().to_string();
        if let Some(why) = error.get_ref().and_then(|inner| inner.downcast_ref::<Foreign>()) {
            return Fault::new(FaultKind::Foreign, format!("'{path}' is not believed: {why}"))
                .about(path)
                .hint("nothing that it says is done; let its owner or an administrator remove it");
        }
        let fault = posix_fault(verb, self.path, error);
        // A full disk, or one that fails, has nothing to do with whose it is.
        let is_about_disk =
            matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::EIO | libc::EMFILE));
        let asks = self.data.is_some() && !is_about_disk;
        let owner = std::fs::symlink_metadata(self.path).ok().filter(|_| asks);
        let hint = "let its owner or an administrator remove it, unless it is what a program has just made";
        owner.map_or(fault.clone(), |found| {
            let is_link = if found.is_symlink() { "a symbolic link that " } else { "" };
            fault.also(format!("it is {is_link}of {}", shown_user(found.uid()))).hint(hint)
        })
    }
}
