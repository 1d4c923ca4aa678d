//! Names below a root that no symbolic link leads away from: what is made, written, renamed or removed by them lies where
//! they say. The path of the root itself may contain links.

use crate::acl;
use crate::likeness::Likeness;
use crate::progress;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// To look names up in, and nothing more.
const LOOK: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// What files are made and opened with besides: never by a link, and never waiting for whoever has the other end of a pipe.
const PLAIN: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o777);
/// A note in a directory in which each may only remove his own.
const OWN_NOTE_MODE: Mode = Mode::from_raw_mode(0o644);

/// A name in a directory that is held.
pub(crate) struct Spot {
    directory: Arc<OwnedFd>,
    last: OsString,
}

/// A directory, whose path may contain links.
pub(crate) fn root(path: &Path) -> io::Result<Arc<OwnedFd>> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(retry_on_intr(|| rustix::fs::openat(CWD, path, LOOK, Mode::empty())).map(Arc::new)?)
}

/// A directory in another one, and no link to one.
fn step(directory: BorrowedFd, name: &OsStr) -> io::Result<OwnedFd> {
    Ok(retry_on_intr(|| rustix::fs::openat(directory, name, LOOK | OFlags::NOFOLLOW, Mode::empty()))?)
}

/// Opens a directory that is held, to make the names in it durable.
pub(crate) fn open_to_sync(directory: &OwnedFd) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(retry_on_intr(|| rustix::fs::openat(directory, ".", flags, Mode::empty())).map(File::from)?)
}

/// The directory below a root with this relative path.
pub(crate) fn descend(root: Arc<OwnedFd>, path: &Path) -> io::Result<Arc<OwnedFd>> {
    path.iter().try_fold(root, |directory, name| step(directory.as_fd(), name).map(Arc::new))
}

/// The same; directories that are not there are made, perhaps like another one. Tells of each that was made its number among
/// the parts of the path.
pub(crate) fn make_way(
    root: Arc<OwnedFd>,
    path: &Path,
    like: Option<&Likeness>,
    mut made: impl FnMut(usize),
) -> io::Result<Arc<OwnedFd>> {
    path.iter().enumerate().try_fold(root, |directory, (number, name)| match step(directory.as_fd(), name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mode = like.map_or(DIRECTORY_MODE, Likeness::first_mode);
            let is_new = match rustix::fs::mkdirat(&directory, name, mode) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(error.into()),
            };
            let stepped = step(directory.as_fd(), name)?;
            if is_new {
                made(number);
                like.map_or(Ok(()), |like| like.give(open_to_sync(&stepped)?))?;
            }
            Ok(Arc::new(stepped))
        }
        found => found.map(Arc::new),
    })
}

impl Spot {
    /// A name in a directory that is held already.
    pub(crate) fn new(directory: impl Into<Arc<OwnedFd>>, last: &OsStr) -> Spot {
        Spot { directory: directory.into(), last: last.into() }
    }

    /// The name of a path below a root.
    pub(crate) fn find(root: Arc<OwnedFd>, path: &Path) -> io::Result<Spot> {
        let last = path.file_name().ok_or_else(|| io::Error::from(Errno::INVAL))?;
        let directory = descend(root, path.parent().unwrap_or(Path::new("")))?;
        Ok(Spot::new(directory, last))
    }

    /// Another name in the same directory.
    pub(crate) fn beside(&self, name: impl FnOnce(&str) -> String) -> io::Result<Spot> {
        Ok(Spot::new(self.directory.clone(), name(&self.last.to_string_lossy()).as_ref()))
    }

    /// Whether its directory has been removed.
    pub(crate) fn is_nowhere(&self) -> bool {
        rustix::fs::fstat(&self.directory).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// A name in the same directory, or that itself.
    pub(crate) fn sibling(&self, name: &OsStr) -> Spot {
        Spot::new(self.directory.clone(), name)
    }

    /// What has the name, a link itself and not where it leads to.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.directory, &self.last, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// A path of it for calls that take no directory: of the name in this directory, wherever that lies by now.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(&self.last)
    }

    /// The permissions of what has the name; `None` where nothing has it, or a link.
    pub(crate) fn likeness(&self) -> io::Result<Option<Likeness>> {
        let stat = match self.stat() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            stat => stat?,
        };
        Likeness::new(&stat, |which| match acl::of_path(&self.path(), which) {
            // It was removed meanwhile, or the system shows no descriptors.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            list => list,
        })
    }

    fn open_with(&self, flags: OFlags) -> io::Result<File> {
        self.open_with_mode(flags, FILE_MODE)
    }

    fn open_with_mode(&self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let open = || rustix::fs::openat(&self.directory, &self.last, flags | PLAIN, mode);
        Ok(File::from(retry_on_intr(open)?))
    }

    /// Makes a file, or empties one that is there.
    pub(crate) fn create(&self) -> io::Result<File> {
        self.open_with(OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)
    }

    /// Makes a file that is not there.
    pub(crate) fn create_new(&self) -> io::Result<File> {
        self.create_new_with(FILE_MODE)
    }

    /// The same with this mode, or less, as the system has it.
    pub(crate) fn create_new_with(&self, mode: Mode) -> io::Result<File> {
        self.open_with_mode(OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)
    }

    /// Makes a file with this mode, never one that somebody else has made: an older one goes.
    pub(crate) fn create_anew(&self, mode: Mode) -> io::Result<File> {
        match self.create_new_with(mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.unlink()?;
                self.create_new_with(mode)
            }
            made => made,
        }
    }

    /// Makes a file with the permissions of another one, or of nothing; an older one goes.
    pub(crate) fn create_like(&self, like: Option<&Likeness>) -> io::Result<File> {
        let file = self.create_anew(like.map_or(FILE_MODE, Likeness::first_mode))?;
        if let Some(Err(error)) = like.map(|like| like.give(&file)) {
            let _ = self.unlink();
            return Err(error);
        }
        Ok(file)
    }

    /// Makes a small file that says something of what has these permissions, if it is not there.
    pub(crate) fn create_note(&self, like: Option<&Likeness>) -> io::Result<File> {
        let Some(like) = like else { return self.create_new() };
        let file = self.create_new_with(like.note_mode())?;
        if let Err(error) = like.give_if_other(&file) {
            let _ = self.unlink();
            return Err(error);
        }
        Ok(file)
    }

    /// Opens a file to read and write it, and makes it if it is not there: like the data of which it says something, or else
    /// for all who may make files in its directory and remove those of others.
    pub(crate) fn open_shared(&self, like: impl FnOnce() -> Option<Likeness>) -> io::Result<File> {
        match self.open() {
            // Systems may refuse to open with CREATE what another user has made in a directory like /tmp.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let like = like();
        let above = rustix::fs::fstat(&self.directory)?.st_mode;
        let mode = like.as_ref().map_or(OWN_NOTE_MODE, Likeness::note_mode);
        let file = match self.create_new_with(mode) {
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return self.open(),
            made => made?,
        };
        let writers = above & 0o022;
        if let Some(like) = like {
            like.give_if_other(&file)?;
        } else if writers != 0 && above & libc::S_ISVTX == 0 {
            let mode = rustix::fs::fstat(&file)?.st_mode | writers | writers << 1;
            // Where it is not ours any more, somebody else has done so.
            let _ = rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o666));
        }
        Ok(file)
    }

    /// Opens a file to add to its end, and makes it if it is not there.
    pub(crate) fn open_to_append(&self) -> io::Result<File> {
        self.open_with(OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
    }

    /// Opens a file to read and write it.
    pub(crate) fn open(&self) -> io::Result<File> {
        self.open_with(OFlags::RDWR)
    }

    /// Opens a file or directory to sync it.
    pub(crate) fn open_to_sync(&self) -> io::Result<File> {
        self.open_with(OFlags::RDONLY)
    }

    /// Makes a directory.
    pub(crate) fn make_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.directory, &self.last, DIRECTORY_MODE)?)
    }

    /// The same with the permissions of another one.
    pub(crate) fn make_directory_like(&self, like: &Likeness) -> io::Result<()> {
        rustix::fs::mkdirat(&self.directory, &self.last, like.first_mode())?;
        like.give(self.open_directory()?)
    }

    /// Whether a file of this name would have a list of others by itself.
    pub(crate) fn inherits_list(&self) -> bool {
        let directory = Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(".");
        acl::of_path(&directory, acl::DEFAULT).is_ok_and(|list| list.is_some())
    }

    /// Opens what has the name, itself and not where it leads to, to look at it and nothing more.
    pub(crate) fn open_to_look(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(retry_on_intr(|| rustix::fs::openat(&self.directory, &self.last, flags, Mode::empty()))?)
    }

    /// Makes the names in its directory durable.
    pub(crate) fn sync_directory(&self) -> io::Result<()> {
        progress::syncing(|| open_to_sync(&self.directory)?.sync_all())
    }

    pub(crate) fn rename(&self, to: &Spot) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.directory, &self.last, &to.directory, &to.last)?)
    }

    /// Gives a file one more name, if that is free.
    pub(crate) fn link_to(&self, to: &Spot) -> Result<(), Errno> {
        rustix::fs::linkat(&self.directory, &self.last, &to.directory, &to.last, AtFlags::empty())
    }

    /// The same; returns whether that is free, and the file system can.
    pub(crate) fn link(&self, to: &Spot) -> io::Result<bool> {
        match self.link_to(to) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST | Errno::PERM | Errno::MLINK | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Exchanges what two names mean; returns whether the file system can.
    pub(crate) fn exchange(&self, other: &Spot) -> io::Result<bool> {
        match self.rename_with(other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn rename_with(&self, to: &Spot, flags: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(&self.directory, &self.last, &to.directory, &to.last, flags)
    }

    pub(crate) fn unlink(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.last, AtFlags::empty())?)
    }

    pub(crate) fn remove_directory(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.directory, &self.last, AtFlags::REMOVEDIR)?)
    }

    /// Removes a file, or a directory with all that is in it; a link itself. Nothing there is fine. With `emptied`, a file
    /// that has no other name is cut first, so that its space is free even while somebody has it open.
    pub(crate) fn remove_tree(&self, emptied: bool) -> io::Result<()> {
        // Somebody may still put names into a directory while it is emptied.
        const TURNS_MAX: usize = 100;
        let stat = match self.stat() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            stat => stat?,
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                for turn in 1.. {
                    self.remove_inside(emptied)?;
                    match self.remove_directory() {
                        Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && turn < TURNS_MAX => {}
                        result => return result,
                    }
                }
                return Ok(());
            }
            FileType::RegularFile if emptied && stat.st_nlink == 1 => {
                drop(self.open().and_then(|file| file.set_len(0)));
            }
            _ => {}
        }
        match self.unlink() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn remove_inside(&self, emptied: bool) -> io::Result<()> {
        let directory = match self.open_directory() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        let directory = Arc::new(directory);
        for name in names_in(&directory)? {
            Spot::new(directory.clone(), &name).remove_tree(emptied)?;
        }
        Ok(())
    }

    pub(crate) fn open_directory(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(retry_on_intr(|| rustix::fs::openat(&self.directory, &self.last, flags, Mode::empty()))?)
    }
}

fn names_in(directory: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_os_string());
        }
    }
    Ok(names)
}

/// Whether this process may make names in a directory.
pub(crate) fn is_writable(directory: &Path) -> bool {
    rustix::fs::accessat(CWD, directory, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// Which mount of which file system holds a directory: nothing is renamed from one to another.
pub(crate) fn mount(directory: &Path) -> Option<(u64, u32, u32)> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let path = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), wanted).ok()?;
    Some((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor))
}

/// Device and inode.
pub(crate) fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_made_or_opened_by_a_link() {
        let path = std::env::temp_dir().join(format!("hyperslab-below-{}", std::process::id()));
        std::fs::create_dir_all(path.join("inside")).unwrap();
        std::fs::write(path.join("elsewhere"), b"kept").unwrap();
        std::os::unix::fs::symlink("../elsewhere", path.join("inside/link")).unwrap();
        std::os::unix::fs::symlink("../not there", path.join("inside/empty")).unwrap();
        for name in ["inside/link", "inside/empty"] {
            let spot = Spot::find(root(&path).unwrap(), Path::new(name)).unwrap();
            assert!(spot.create().is_err() && spot.create_new().is_err(), "{name}");
            assert!(spot.open().is_err() && spot.open_shared(|| None).is_err(), "{name}");
            assert!(spot.open_to_append().is_err() && spot.open_to_sync().is_err(), "{name}");
        }
        assert_eq!(std::fs::read(path.join("elsewhere")).unwrap(), b"kept");
        assert!(!path.join("not there").exists());
        std::fs::remove_dir_all(&path).unwrap();
    }
}
