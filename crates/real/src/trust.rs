//! Whether what a record says is believed: only where whoever made it could have changed the data anyway that it speaks of.
//!
//! In a directory that others may write to, such as `/tmp`, anybody can make a file of any name beside somebody else's data. So
//! a record is believed if its owner is the owner of the data, root, the running user himself, or one who may write the data; and
//! if nobody else may write to it. All of this is said of the file that is open, never of its name.

use crate::acl::Writers;
use crate::below::Spot;
use crate::users::{knows_all_users, shown_user, this_user};
use rustix::fs::Stat;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whom a file or directory belongs to, and who may do what with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    user: u32,
    group: u32,
    mode: u32,
}

impl From<&Metadata> for Standing {
    fn from(found: &Metadata) -> Standing {
        Standing { user: found.uid(), group: found.gid(), mode: found.mode() }
    }
}

impl From<&Stat> for Standing {
    fn from(found: &Stat) -> Standing {
        Standing { user: found.st_uid, group: found.st_gid, mode: found.st_mode }
    }
}

/// The data that records speak of, by their path.
#[derive(Clone, Debug)]
pub(crate) struct Data(PathBuf);

impl Data {
    pub(crate) fn at(path: PathBuf) -> Data {
        Data(path)
    }

    /// Makes sure that whoever made a record with this path could have changed the data.
    ///
    /// # Errors
    /// Why it is not believed.
    pub(crate) fn check_maker(&self, path: &Path, record: Standing) -> Result<(), String> {
        if record.user == this_user() {
            return Ok(());
        }
        let (of, data) = self.of(path).map_err(|error| unknown(record.user, &error))?;
        if data.is_changed_by(record.user, &of) {
            return Ok(());
        }
        Err(format!("it belongs to {}, who may not change '{}'", shown_user(record.user), of.display()))
    }

    /// The same, also of all who may write to it.
    pub(crate) fn check(&self, path: &Path, record: Standing) -> Result<(), String> {
        self.check_maker(path, record)?;
        if record.mode & (libc::S_IWOTH | libc::S_IWGRP) == 0 {
            return Ok(());
        }
        let (of, data) = self.of(path).map_err(|error| unknown(record.user, &error))?;
        let group = record.mode & libc::S_IWOTH == 0 && data.lets(libc::S_IWGRP) && record.group == data.group;
        // Where all may rename and remove what lies in the directory, all could have put other data there.
        let replaceable = || made(of.parent().unwrap_or(Path::new(""))).is_ok_and(|above| above.lets(libc::S_IWOTH));
        if group || data.lets(libc::S_IWOTH) || replaceable() {
            return Ok(());
        }
        let mode = record.mode & 0o7777;
        Err(format!("users may write to it (mode {mode:03o}) who may not change '{}'", of.display()))
    }

    /// Where what a record speaks of has its name, which has its own here; of a record in the data, the directory that it lies in.
    pub(crate) fn spot(&self, record: &Path, at: &Spot) -> io::Result<Spot> {
        let data = self.inner(record);
        match (record.parent(), data.file_name()) {
            (Some(beside), _) if beside == data => return Ok(at.sibling(".".as_ref())),
            (Some(beside), Some(name)) if data.parent() == Some(beside) => return Ok(at.sibling(name)),
            _ => {}
        }
        let name = data.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        Ok(Spot::new(crate::below::root(data.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Whether others may give files names in the directory in which a record lies.
    pub(crate) fn has_strangers_beside(&self, record: &Path) -> io::Result<bool> {
        let above = made(record.parent().unwrap_or(Path::new("")))?;
        Ok(above.mode & (libc::S_IWOTH | libc::S_IWGRP) != 0 || ![0, this_user()].contains(&above.user))
    }

    /// What stands for the data: of a record in them, the directory that it lies in; where there are no data yet, the directory
    /// that they would lie in.
    fn of(&self, record: &Path) -> io::Result<(PathBuf, Standing)> {
        let data = self.inner(record);
        match made(data) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let above = data.parent().unwrap_or(Path::new(""));
                Ok((above.into(), made(above)?))
            }
            found => Ok((data.into(), found?)),
        }
    }
}

impl Data {
    /// The data, or the directory in them in which a record lies that is not itself hidden.
    fn inner<'a>(&'a self, record: &'a Path) -> &'a Path {
        let parent = record.parent().unwrap_or(Path::new(""));
        let is_hidden = |path: &Path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let below = record.strip_prefix(&self.0).ok().filter(|below| !below.as_os_str().is_empty());
        let is_inside = below.is_some_and(|below| !below.parent().unwrap_or(below).ancestors().any(is_hidden));
        if is_inside { parent } else { &self.0 }
    }
}

fn unknown(user: u32, error: &io::Error) -> String {
    format!("it belongs to {}, and it is not known who may change the data: {error}", shown_user(user))
}

/// What is known of a path; of a link, itself.
fn made(path: &Path) -> io::Result<Standing> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::fs::symlink_metadata(path).map(|found| Standing::from(&found))
}

impl Standing {
    /// Whether others may change what is there: in a directory, names as well, which a sticky one keeps for their owners.
    fn lets(self, bits: u32) -> bool {
        self.mode & bits != 0 && (self.mode & libc::S_ISVTX == 0 || self.mode & libc::S_IFMT != libc::S_IFDIR)
    }

    /// Whether a user other than the running one may change what has this path.
    fn is_changed_by(self, user: u32, path: &Path) -> bool {
        if user == 0 || self.lets(libc::S_IWOTH) {
            return true;
        }
        // What stands for all whom this namespace of users does not know.
        if user == 65534 && !knows_all_users() {
            return false;
        }
        user == self.user || self.lets(libc::S_IWGRP) && Writers::of(path, self.group).has(user)
    }
}
