//! Names in a file system: what rank 0 does before and after data move.
//!
//! Publishing is one rename. Whatever is not published lies under a name that says so and that readers pass over.

use crate::extents;
use crate::posix::write_back;
use crate::posix_fault;
use hyperslab_world::{Extent, Fault, FaultKind, Names};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        Err(posix_fault("syncing the file system of", &self.0, &io::Error::last_os_error()))
    }
}

/// A directory of a file system, as the root of names.
#[derive(Clone, Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// The directory at this path, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory(path.into())
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }
}

/// Whether nothing can have the path.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

impl Names for Directory {
    fn full(&self, name: &str) -> String {
        let path = self.path(name);
        match path.to_string_lossy().trim_end_matches('/') {
            "" if path.is_absolute() => "/".into(),
            text => text.into(),
        }
    }

    fn resolve(&self) -> Result<String, Fault> {
        let absolute = std::path::absolute(&self.0).map_err(|error| {
            Fault::new(FaultKind::Storage, format!("'{}' has no absolute path: {error}", self.0.display()))
        })?;
        Ok(Directory(absolute).full(""))
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        Arc::new(Directory::new(root))
    }

    fn above(&self) -> Option<(String, String)> {
        let name = self.0.file_name()?.to_str()?;
        Some((Directory::new(self.0.parent()?).full(""), name.into()))
    }

    fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        let path = self.path(name);
        fs::create_dir_all(&path).map_err(|error| posix_fault("making directory", &path, &error))
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        use std::io::Read;
        let path = self.path(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(posix_fault("reading", &path, &error)),
        };
        let mut prefix = Vec::new();
        file.take(bytes_max).read_to_end(&mut prefix).map_err(|error| posix_fault("reading", &path, &error))?;
        Ok(Some(prefix))
    }

    fn length(&self, name: &str) -> Option<u64> {
        fs::metadata(self.path(name)).ok().filter(|metadata| !metadata.is_dir()).map(|metadata| metadata.len())
    }

    /// Beside its place, synced when asked, then renamed over it.
    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        let path = self.path(name);
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

    /// Under its own name, of which alone the directory is synced: one commit of the journal where a file that is written
    /// beside its place takes two, which cost most of what a short durable update takes (ext4: 480 us, so 210).
    fn mark(&self, name: &str, note: &[u8], sync: bool) -> Result<(), Fault> {
        let path = self.path(name);
        if self.exists(name) {
            // It may be somebody else's, and its note must outlast a disk that is full.
            return self.write(name, note, sync);
        }
        let marked = File::create(&path).and_then(|mut file| file.write_all(note)).and_then(|()| match path.parent() {
            Some(parent) if sync => File::open(parent)?.sync_all(),
            _ => Ok(()),
        });
        marked.map_err(|error| {
            let _ = fs::remove_file(&path);
            posix_fault("writing", &path, &error)
        })
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        use std::os::unix::fs::FileExt;
        let path = self.path(name);
        let created = File::create(&path).and_then(|file| {
            file.set_len(bytes)?;
            file.write_all_at(prefix, 0)
        });
        created.map_err(|error| posix_fault("creating", &path, &error))
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let path = self.path(name);
        let file = fs::OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(bytes)).map_err(|error| posix_fault("resizing", &path, &error))
    }

    fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        let path = self.path(name);
        let file = fs::OpenOptions::new().write(true).open(&path);
        let reserved = file.and_then(|file| extents::reserve(&file, bytes));
        reserved.map_err(|error| posix_fault("reserving the space of", &path, &error))
    }

    /// What was written to the file is sent to the device first, so that it has a place.
    fn extents(&self, name: &str) -> Result<Option<Vec<Extent>>, Fault> {
        let path = self.path(name);
        let found = File::open(&path).and_then(|file| extents::extents(&file));
        found.map_err(|error| posix_fault("asking for the places of", &path, &error))
    }

    fn can_rename_from(&self, name: &str) -> bool {
        use std::os::unix::fs::MetadataExt;
        let path = self.path(name);
        let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
        let made = fs::create_dir(&path).is_ok();
        let same = (made || path.is_dir()) && device(&path).is_some() && device(&path) == device(&self.0);
        if made {
            let _ = fs::remove_dir(&path);
        }
        same
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        let path = self.path(name);
        let entries = match fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(posix_fault("listing", &path, &error)),
        };
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        let path = self.path(to);
        fs::rename(self.path(from), &path).map_err(|error| posix_fault("publishing", &path, &error))
    }

    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault> {
        use std::os::unix::ffi::OsStrExt;
        let (a, b) = (self.path(a), self.path(b));
        let c_string = |path: &Path| std::ffi::CString::new(path.as_os_str().as_bytes());
        let (Ok(from), Ok(to)) = (c_string(&a), c_string(&b)) else { return Ok(false) };
        let here = libc::AT_FDCWD;
        // SAFETY: both are strings that end with a zero byte and live through the call.
        let result = unsafe { libc::renameat2(here, from.as_ptr(), here, to.as_ptr(), libc::RENAME_EXCHANGE) };
        if result == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINVAL | libc::ENOSYS | libc::ENOTSUP) => Ok(false),
            _ => Err(posix_fault("publishing", &b, &error)),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        let path = self.path(name);
        let removed = match path.symlink_metadata() {
            Err(_) => return Ok(()),
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
        };
        removed.map_err(|error| posix_fault("removing", &path, &error))
    }

    /// A file that is open keeps its space after its name is gone, so all are emptied first: after a full disk there
    /// must be room for another attempt.
    fn discard(&self, name: &str) {
        let mut left = vec![self.path(name)];
        while let Some(path) = left.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
                Err(_) => drop(fs::OpenOptions::new().write(true).truncate(true).open(&path)),
            }
        }
        let _ = self.remove(name);
    }

    fn remove_empty(&self, name: &str) {
        let _ = fs::remove_dir(self.path(name));
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        if names.len() > SINGLE_SYNCS_MAX {
            return FileSystem::open(&self.0)?.sync();
        }
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        let mut files = Vec::with_capacity(paths.len());
        for path in &paths {
            let file = File::open(path).map_err(|error| posix_fault("opening", path, &error))?;
            write_back(&file, 0, 0, libc::SYNC_FILE_RANGE_WRITE)
                .map_err(|error| posix_fault("syncing", path, &error))?;
            files.push((path, file));
        }
        for (path, file) in files {
            file.sync_all().map_err(|error| posix_fault("syncing", path, &error))?;
        }
        let directories: BTreeSet<&Path> = paths.iter().map(|path| path.parent().unwrap_or(&self.0)).collect();
        for directory in directories {
            let synced = File::open(directory).and_then(|file| file.sync_all());
            synced.map_err(|error| posix_fault("syncing", directory, &error))?;
        }
        Ok(())
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        let path = self.path(name);
        File::open(&path).and_then(|file| file.sync_all()).map_err(|error| posix_fault("syncing", &path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_world::{MemoryTree, conformance};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A new directory, removed at the end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Temporary {
            let path = std::env::temp_dir().join(format!("hyperslab-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Temporary(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn it_keeps_the_contract_of_names() {
        let temporary = Temporary::new("names");
        conformance::names(&Directory::new(&temporary.0));
    }

    #[test]
    fn absolute_names_have_one_form() {
        let here = std::env::current_dir().unwrap();
        let expected = here.join("a/b").to_str().unwrap().to_string();
        for path in ["a/b", "a//b/", "./a/b", "a/./b//"] {
            assert_eq!(Directory::new(path).resolve().unwrap(), expected, "{path}");
        }
        assert_eq!(Directory::new("/").full(""), "/");
        assert_eq!(Directory::new("/").above(), None);
        assert_eq!(Directory::new("/a").above(), Some(("/".into(), "a".into())));
        assert_eq!(Directory::new("/a/..").above(), None);
        assert!(Directory::new("").resolve().unwrap_err().text.contains("no absolute path"));
    }

    /// Others see the old state or the new one while names are exchanged and files replaced.
    fn changes_are_atomic(names: &dyn Names) {
        for (directory, content) in [("a", b"1"), ("b", b"2")] {
            names.make(directory).unwrap();
            names.write(&format!("{directory}/f"), content, false).unwrap();
        }
        let can = names.exchange("a", "b").unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..300u32 {
                    if can {
                        names.exchange("a", "b").unwrap();
                    }
                    names.write("f", &turn.to_le_bytes().repeat(200), false).unwrap();
                }
                over.store(true, Ordering::Release);
            });
            let mut last = 0;
            while !over.load(Ordering::Acquire) {
                assert!(names.read("a/f").unwrap().is_some_and(|found| found == b"1" || found == b"2"));
                let Some(found) = names.read("f").unwrap() else { continue };
                assert_eq!(found.len(), 800);
                let turn = u32::from_le_bytes(found[..4].try_into().unwrap());
                assert!(found.chunks(4).all(|part| part == turn.to_le_bytes()) && turn >= last);
                last = turn;
            }
        });
    }

    #[test]
    fn others_see_the_old_state_or_the_new_one() {
        let temporary = Temporary::new("atomic");
        changes_are_atomic(&Directory::new(&temporary.0));
        changes_are_atomic(&MemoryTree::new());
    }
}
