//! Names in a file system: what rank 0 does before and after data move.
//!
//! Publishing is one rename. Whatever is not published lies under a name that says so and that readers pass over.

use crate::extents::{self, Extent};
use crate::posix_fault;
use hyperslab_world::Fault;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Files that are synced one by one; more are made durable by one sync of their file system, since each single sync
/// waits for the disk.
pub(crate) const SINGLE_SYNCS_MAX: usize = 32;

/// A file system, to be made durable as a whole.
pub(crate) struct FileSystem(PathBuf, File);

impl FileSystem {
    /// The one that holds a path. Errors from now on are reported by [`FileSystem::sync`].
    pub(crate) fn open(path: &Path) -> Result<FileSystem, Fault> {
        let file = File::open(path).map_err(|error| posix_fault("opening", path, &error))?;
        Ok(FileSystem(path.to_path_buf(), file))
    }

    /// Makes everything on it durable.
    pub(crate) fn sync(&self) -> Result<(), Fault> {
        use std::os::fd::AsRawFd;
        // SAFETY: the descriptor belongs to the open file.
        let result = unsafe { libc::syncfs(self.1.as_raw_fd()) };
        if result == 0 {
            return Ok(());
        }
        Err(posix_fault("syncing the file system of", &self.0, &std::io::Error::last_os_error()))
    }
}

/// A directory and what is in it.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The directory at this path, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory(path.into())
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    fn at(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }

    /// Whether something with this name exists; the empty name is the directory itself.
    pub fn exists(&self, name: &str) -> bool {
        self.at(name).symlink_metadata().is_ok()
    }

    /// Makes a directory and those above it.
    pub fn make(&self, name: &str) -> Result<(), Fault> {
        let path = self.at(name);
        fs::create_dir_all(&path).map_err(|error| posix_fault("making directory", &path, &error))
    }

    /// The contents of a small file, `None` when it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        let path = self.at(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(posix_fault("reading", &path, &error)),
        }
    }

    /// The first bytes of a file, at most this many; `None` when it does not exist.
    pub fn read_prefix(&self, name: &str, bytes: u64) -> Result<Option<Vec<u8>>, Fault> {
        use std::io::Read;
        let path = self.at(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(posix_fault("opening", &path, &error)),
        };
        let mut prefix = Vec::new();
        file.take(bytes).read_to_end(&mut prefix).map_err(|error| posix_fault("reading", &path, &error))?;
        Ok(Some(prefix))
    }

    /// Length of a file \[B\], `None` when it does not exist.
    pub fn length(&self, name: &str) -> Option<u64> {
        fs::metadata(self.at(name)).ok().map(|metadata| metadata.len())
    }

    /// Writes a small file whole: beside its place, synced when asked, then renamed over it.
    pub fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        let path = self.at(name);
        let base = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let beside = path.with_file_name(format!(".{base}.hyperslab-{}", std::process::id()));
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(bytes)?;
            if sync { file.sync_all() } else { Ok(()) }
        });
        let placed = written.and_then(|()| fs::rename(&beside, &path)).and_then(|()| match path.parent() {
            Some(parent) if sync => File::open(parent)?.sync_all(),
            _ => Ok(()),
        });
        placed.map_err(|error| {
            let _ = fs::remove_file(&beside);
            posix_fault("writing", &path, &error)
        })
    }

    /// Makes a file of this length, whose contents are still to be written.
    pub fn create(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let path = self.at(name);
        let created = File::create(&path).and_then(|file| file.set_len(bytes));
        created.map_err(|error| posix_fault("creating", &path, &error))
    }

    /// Gives a file that exists a greater length.
    pub fn lengthen(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let path = self.at(name);
        let file = fs::OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(bytes)).map_err(|error| posix_fault("lengthening", &path, &error))
    }

    /// Writes bytes at the start of a file that exists.
    pub fn write_prefix(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        use std::os::unix::fs::FileExt;
        let path = self.at(name);
        let file = fs::OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.write_all_at(bytes, 0)).map_err(|error| posix_fault("writing", &path, &error))
    }

    /// Reserves the space of the first bytes of a file that exists, which becomes at least as long: then its bytes have
    /// their places before the first is written, and room for them. Returns whether the file system can; one that cannot
    /// gives the file its length alone. A lack of space is an error, which leaves the file as it was.
    pub fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        let path = self.at(name);
        let file = fs::OpenOptions::new().write(true).open(&path);
        let reserved = file.and_then(|file| extents::reserve(&file, bytes));
        reserved.map_err(|error| posix_fault("reserving the space of", &path, &error))
    }

    /// Where the bytes of a file lie on its device, in rising order of their offsets and without holes; `None` where the
    /// file system does not tell. What was written to it is sent to the device first, so that it has a place.
    pub fn extents(&self, name: &str) -> Result<Option<Vec<Extent>>, Fault> {
        let path = self.at(name);
        let found = File::open(&path).and_then(|file| extents::extents(&file));
        found.map_err(|error| posix_fault("asking for the places of", &path, &error))
    }

    /// Whether a directory with this path can be made and things be renamed from it into this one.
    pub fn can_rename_from(&self, path: &str) -> bool {
        use std::os::unix::fs::MetadataExt;
        let path = self.at(path);
        let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
        let made = fs::create_dir(&path).is_ok() || path.is_dir();
        let same = made && device(&path).is_some() && device(&path) == device(&self.0);
        let _ = fs::remove_dir(&path);
        same
    }

    /// Names in a directory, sorted.
    pub fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        let path = self.at(name);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(posix_fault("listing", &path, &error)),
        };
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Renames something to a name that does not exist, or over a file.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        let path = self.at(to);
        fs::rename(self.at(from), &path).map_err(|error| posix_fault("publishing", &path, &error))
    }

    /// Exchanges two names at once, so that neither is missing at any time. Returns whether the file system can.
    pub fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault> {
        use std::os::unix::ffi::OsStrExt;
        let (a, b) = (self.at(a), self.at(b));
        let c_string = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes());
        let (Ok(from), Ok(to)) = (c_string(&a), c_string(&b)) else { return Ok(false) };
        let here = libc::AT_FDCWD;
        // SAFETY: both are strings that end with a zero byte and live through the call.
        let result = unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), libc::RENAME_EXCHANGE) };
        if result == 0 {
            return Ok(true);
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOSYS | libc::ENOTSUP) => Ok(false),
            _ => Err(posix_fault("publishing", &b, &error)),
        }
    }

    /// Removes a file or a directory with all that is in it; nothing there is fine.
    pub fn remove(&self, name: &str) -> Result<(), Fault> {
        let path = self.at(name);
        let removed = match path.symlink_metadata() {
            Err(_) => return Ok(()),
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
        };
        removed.map_err(|error| posix_fault("removing", &path, &error))
    }

    /// Removes what was never published. Ranks may still hold such files open, and a file that is open keeps its space
    /// after its name is gone, so they are emptied first: after a full disk there must be room for another attempt.
    pub fn discard(&self, name: &str) {
        self.empty(name);
        let _ = self.remove(name);
    }

    /// Gives back the space of files.
    pub(crate) fn empty(&self, name: &str) {
        let mut left = vec![self.at(name)];
        while let Some(path) = left.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
                Err(_) => drop(fs::OpenOptions::new().write(true).truncate(true).open(&path)),
            }
        }
    }

    /// Removes a directory if nothing is in it.
    pub fn remove_empty(&self, name: &str) {
        let _ = fs::remove_dir(self.at(name));
    }

    /// Makes small files and the names in their directories durable, in as few calls as the system allows.
    pub fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        if names.len() > SINGLE_SYNCS_MAX {
            return FileSystem::open(&self.0)?.sync();
        }
        for name in names {
            let path = self.at(name);
            let parent = path.parent().unwrap_or(&self.0);
            let synced = File::open(&path).and_then(|file| file.sync_all());
            let named = synced.and_then(|()| File::open(parent)?.sync_all());
            named.map_err(|error| posix_fault("syncing", &path, &error))?;
        }
        Ok(())
    }

    /// Makes the names in a directory durable.
    pub fn sync(&self, name: &str) -> Result<(), Fault> {
        let path = self.at(name);
        File::open(&path).and_then(|file| file.sync_all()).map_err(|error| posix_fault("syncing", &path, &error))
    }
}
