//! Names in a file system: what rank 0 does before and after data move.
//!
//! Publishing is one rename. Whatever is not published lies under a name that says so and that readers pass over.

pub(crate) mod locks;
mod records;

use crate::below::{self, Spot};
use crate::doing::{FileSystem, SINGLE_SYNCS_MAX, close, file_bytes_max, posix_fault, write_back};
use crate::likeness::Likeness;
use crate::regular::{is_missing, leads_to};
use crate::trust::Data;
use crate::{clients, extents, guard, here, mounts, progress, regular, resting, stale};
use hyperslab_world::{
    Change, Claim, Extent, Fault, FaultKind, FileSeen, Hold, Locked, Locks, Mount, Names, OpenedFile, Process, Then,
};
use records::Record;
use std::any::Any;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of a file system, as the root of names.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    /// A directory in it, or itself, that is held: below its name changes are made there.
    pin: Option<Arc<(PathBuf, Arc<OwnedFd>)>>,
    /// The data that records speak of, where those are believed only if who made them could have changed the data.
    data: Option<Arc<Data>>,
}

impl Directory {
    /// The directory at this path, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Directory {
        Directory { path: path.into(), pin: None, data: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        debug_assert!(!name.starts_with('/'), "names are relative to a root, and this is not: {name}");
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    /// Where a root and the rest of a path part: names below the root are looked up without following links.
    fn parted(&self, name: &str) -> (PathBuf, PathBuf) {
        let path = self.path(name);
        match path.strip_prefix(&self.path) {
            Ok(below) if !below.as_os_str().is_empty() => (self.path.clone(), below.into()),
            // The root itself, or a name elsewhere.
            _ => match (path.parent(), path.file_name()) {
                (Some(parent), Some(last)) => (parent.into(), last.into()),
                _ => (path, PathBuf::new()),
            },
        }
    }

    /// Where a name is looked up, and the rest of it: in the directory that is held, if it lies below that.
    fn way(&self, name: &str) -> io::Result<(Arc<OwnedFd>, PathBuf)> {
        let pin = self.pin.as_deref().map(|(above, held)| (Path::new(name).strip_prefix(above), held));
        match pin {
            Some((Ok(below), held)) if below.file_name().is_some() => Ok((held.clone(), below.into())),
            _ => {
                let (root, below) = self.parted(name);
                Ok((below::root(&root)?, below))
            }
        }
    }

    fn spot(&self, name: &str) -> io::Result<Spot> {
        stale::by_name(&self.path(name), || {
            let (root, below) = self.way(name)?;
            Spot::find(root, &below)
        })
    }

    /// Does something to a name; what cannot be done is told with the verb.
    fn doing<T>(&self, verb: &'static str, name: &str, run: impl FnOnce(Spot) -> io::Result<T>) -> Result<T, Fault> {
        progress::note();
        progress::doing(verb, || self.spot(name).and_then(run)).map_err(|error| self.failed(verb, name, &error))
    }

    /// The same with a record: who owns it is told, too.
    fn recorded<T>(
        &self,
        verb: &'static str,
        name: &str,
        run: impl FnOnce(&Record) -> io::Result<T>,
    ) -> Result<T, Fault> {
        progress::note();
        let path = self.path(name);
        let record = Record { path: &path, data: self.data.as_deref() };
        run(&record).map_err(|error| self.told(record.failed(verb, &error), name, &error))
    }

    fn failed(&self, verb: &'static str, name: &str, error: &io::Error) -> Fault {
        self.told(posix_fault(verb, &self.path(name), error), name, error)
    }

    /// The failure, which tells of a link in the way.
    fn told(&self, fault: Fault, name: &str, error: &io::Error) -> Fault {
        let by_link = matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR)) && self.is_link(name);
        if !by_link {
            return fault;
        }
        fault
            .also("a symbolic link is in the way")
            .hint("links inside of a store are read, but nothing is written through them: open what they lead to")
    }
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
        let absolute = std::path::absolute(&self.path).map_err(|error| {
            Fault::new(FaultKind::Storage, format!("'{}' has no absolute path: {error}", self.path.display()))
        })?;
        Ok(Directory::new(absolute).full(""))
    }

    fn followed(&self) -> Result<Option<String>, Fault> {
        progress::note();
        // The kernel may forbid to follow a link that another user put into a directory where all may write.
        let real = fs::metadata(&self.path).and_then(|_| self.path.canonicalize());
        match real {
            Ok(real) => Ok(Some(Directory::new(real).full(""))),
            Err(error) if is_missing(&error) => Ok(leads_to(&self.path).map(|path| Directory::new(path).full(""))),
            Err(error) => Err(posix_fault("following", &self.path, &error)),
        }
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn at(&self, root: &str) -> Arc<dyn Names> {
        Arc::new(Directory::new(root))
    }

    fn above(&self) -> Option<(String, String)> {
        let name = self.path.file_name()?.to_str()?;
        Some((Directory::new(self.path.parent()?).full(""), name.into()))
    }

    fn believing(&self, data: &str) -> Option<Arc<dyn Names>> {
        Some(Arc::new(self.that_believes(data)))
    }

    fn check_believed(&self, name: &str) -> Result<(), Fault> {
        self.recorded("looking at", name, |record| match self.spot(name) {
            Err(error) if is_missing(&error) => Ok(()),
            spot => record.check_name(&spot?),
        })
    }

    fn process(&self) -> Process {
        here::this_process()
    }

    fn is_gone(&self, process: &Process) -> bool {
        here::is_gone(process)
    }

    fn token(&self) -> String {
        here::token()
    }

    fn exists(&self, name: &str) -> bool {
        progress::note();
        let path = self.path(name);
        stale::by_name(&path, || path.symlink_metadata()).is_ok()
    }

    fn make(&self, name: &str) -> Result<(), Fault> {
        // Directories above the root may have to be made, too.
        let made = self.way(name).or_else(|_| fs::create_dir_all(self.parted(name).0).and_then(|()| self.way(name)));
        let made = made.and_then(|(root, below)| below::make_way(root, &below, None, |_| {}));
        progress::note();
        made.map(drop).map_err(|error| self.failed("making directory", name, &error))
    }

    fn make_durable(&self, name: &str) -> Result<(), Fault> {
        let path = self.path(name);
        let missing: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
        self.make(name)?;
        for made in missing.iter().rev() {
            let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let synced = progress::syncing(|| File::open(parent).and_then(|directory| directory.sync_all()));
            synced.map_err(|error| posix_fault("syncing", parent, &error))?;
        }
        Ok(())
    }

    fn make_new(&self, name: &str) -> Result<bool, Fault> {
        self.doing("making directory", name, |spot| match spot.make_directory() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        })
    }

    fn read_prefix(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        self.read_part(name, 0, bytes_max)
    }

    fn read_part(&self, name: &str, at: u64, bytes_max: u64) -> Result<Option<Vec<u8>>, Fault> {
        progress::note();
        let path = self.path(name);
        match progress::doing("reading", || stale::by_name(&path, || regular::read(&path, at, bytes_max))) {
            Ok(part) => Ok(Some(part)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(posix_fault("reading", &path, &error)),
        }
    }

    fn length(&self, name: &str) -> Option<u64> {
        progress::note();
        let path = self.path(name);
        stale::by_name(&path, || fs::metadata(&path))
            .ok()
            .filter(|metadata| !metadata.is_dir())
            .map(|metadata| metadata.len())
    }

    /// Beside its place, synced when asked, then renamed over it.
    fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        self.doing("writing", name, |spot| {
            let hidden = spot.beside(|base| format!(".{base}.hyperslab-{}", here::token()))?;
            let written = hidden.create_like(spot.likeness()?.as_ref()).and_then(|mut file| {
                file.write_all(bytes)?;
                if sync {
                    progress::syncing(|| file.sync_all())?;
                }
                close(file)
            });
            let placed = written.and_then(|()| hidden.rename(&spot));
            placed.inspect_err(|_| drop(hidden.unlink()))?;
            if sync { spot.sync_directory() } else { Ok(()) }
        })
    }

    fn claim(&self, name: &str, note: &[u8], sync: bool) -> Result<Claim, Fault> {
        self.recorded("writing", name, |record| {
            progress::doing("claiming", || locks::claim(|| self.spot(name), record, note, sync))
        })
    }

    fn note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.recorded("reading", name, |record| match stale::by_name(record.path, || locks::note(&record.open()?)) {
            Err(error) if is_missing(&error) => Ok(None),
            note => note.map(Some),
        })
    }

    fn written_note(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        locks::patiently(|| self.note(name))
    }

    fn append(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.recorded("writing", name, |record| locks::append(&self.spot(name)?, record, bytes))
    }

    fn edit(&self, name: &str, change: Change, then: Then) -> Result<(), Fault> {
        let spot = self.doing("changing", name, Ok)?;
        locks::edit(&spot, &Record { path: &self.path(name), data: self.data.as_deref() }, change, then)
    }

    fn lock(&self, name: &str) -> Result<Locked, Fault> {
        self.recorded("locking", name, |record| match self.spot(name).and_then(|spot| locks::lock(&spot, record)) {
            Err(error) if is_missing(&error) && !self.is_link(name) => Ok(Locked::Absent),
            locked => locked,
        })
    }

    fn is_shared(&self, name: &str) -> Result<bool, Fault> {
        let shared = self.spot(name).and_then(|spot| locks::is_shared(&spot));
        shared.map_err(|error| self.failed("locking", name, &error))
    }

    fn is_at_hand(&self) -> bool {
        mounts::is_at_hand(&self.path)
    }

    fn mount(&self) -> Option<Mount> {
        clients::mount(&self.path)
    }

    fn await_others(&self, name: &str) -> bool {
        self.mount().map(|_| stale::pause(&self.path(name))).is_some()
    }

    fn locks(&self, name: &str) -> Locks {
        progress::note();
        locks::locks(&self.path(name))
    }

    fn hold(&self, name: &str) -> Result<Hold, Fault> {
        progress::note();
        let path = self.path(name);
        // Who may not read it may hold it, and nobody waits for a pipe.
        let open = || File::options().read(true).custom_flags(libc::O_PATH).open(&path);
        let held = stale::by_name(&path, || open().and_then(|file| Ok((file.metadata()?, file))));
        let (found, file) = held.map_err(|error| posix_fault("opening", &path, &error))?;
        let keep: Box<dyn Any + Send + Sync> = match found.is_dir() {
            true => Box::new(Arc::new(OwnedFd::from(file))),
            false => Box::new(file),
        };
        Ok(Hold { identity: (found.dev(), found.ino()), keep })
    }

    fn pinned(&self, name: &str, held: &Hold) -> Option<Arc<dyn Names>> {
        let held = held.keep.downcast_ref::<Arc<OwnedFd>>()?.clone();
        Some(Arc::new(Directory { pin: Some(Arc::new((name.into(), held))), ..self.clone() }))
    }

    fn identity(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        progress::note();
        let path = self.path(name);
        match stale::by_name(&path, || fs::metadata(&path)) {
            Ok(found) => Ok(Some((found.dev(), found.ino()))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(posix_fault("looking at", &path, &error)),
        }
    }

    /// A number of an inode comes again, but not with the time at which it was made.
    fn version(&self, name: &str) -> Result<String, Fault> {
        progress::note();
        let path = self.path(name);
        let found = fs::metadata(&path).map_err(|error| posix_fault("looking at", &path, &error))?;
        let made = found.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
        let made = made.map_or(0, |made| made.as_nanos());
        Ok(format!("{}.{made}.{}.{}", found.ino(), found.mtime(), found.mtime_nsec()))
    }

    fn seen(&self, name: &str) -> Result<Option<FileSeen>, Fault> {
        resting::look(&self.path(name))
    }

    fn reader(&self, name: &str) -> Result<Option<OpenedFile>, Fault> {
        resting::open(self.path(name))
    }

    fn is_link(&self, name: &str) -> bool {
        let (root, below) = self.parted(name);
        let is_link = |path: &Path| root.join(path).symlink_metadata().is_ok_and(|found| found.is_symlink());
        below.ancestors().filter(|path| !path.as_os_str().is_empty()).any(is_link)
    }

    fn create(&self, name: &str, prefix: &[u8], bytes: u64) -> Result<(), Fault> {
        self.created(name, prefix, bytes, None)
    }

    fn create_like(&self, name: &str, prefix: &[u8], bytes: u64, like: &str) -> Result<(), Fault> {
        self.created(name, prefix, bytes, Some(like))
    }

    fn make_new_like(&self, name: &str, like: &str) -> Result<bool, Fault> {
        let Some(like) = self.likeness(like)? else { return self.make_new(name) };
        self.doing("making directory", name, |spot| match spot.make_directory_like(&like.of_root()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            made => made.map(|()| true),
        })
    }

    fn resize(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        progress::note();
        let path = self.path(name);
        let resized = regular::open(&path, true).and_then(|file| {
            if bytes > file_bytes_max() {
                // The system would send a signal, of which a program dies.
                return Err(io::Error::from_raw_os_error(libc::EFBIG));
            }
            file.set_len(bytes)?;
            close(file)
        });
        resized.map_err(|error| posix_fault("resizing", &path, &error))
    }

    fn overwrite(&self, name: &str, prefix: &[u8], sync: bool) -> Result<(), Fault> {
        use std::os::unix::fs::FileExt;
        progress::note();
        let path = self.path(name);
        let overwritten = regular::open(&path, true).and_then(|file| {
            file.write_all_at(prefix, 0)?;
            if sync {
                progress::syncing(|| file.sync_data())?;
            }
            close(file)
        });
        overwritten.map_err(|error| posix_fault("overwriting", &path, &error))
    }

    fn overwrite_part(&self, name: &str, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        use std::os::unix::fs::FileExt;
        progress::note();
        let path = self.path(name);
        let overwritten = progress::doing("writing", || {
            regular::open(&path, true).and_then(|file| {
                file.write_all_at(bytes, at)?;
                close(file)
            })
        });
        overwritten.map_err(|error| posix_fault("overwriting", &path, &error))
    }

    fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        progress::note();
        let path = self.path(name);
        let reserved = regular::open(&path, true).and_then(|file| {
            let reserved = extents::reserve(&file, bytes)?;
            close(file).map(|()| reserved)
        });
        reserved.map_err(|error| posix_fault("reserving the space of", &path, &error))
    }

    /// What was written to the file is sent to the device first, so that it has a place.
    fn extents(&self, name: &str) -> Result<Option<Vec<Extent>>, Fault> {
        progress::note();
        let path = self.path(name);
        let found = regular::open(&path, false).and_then(|file| extents::extents(&file));
        found.map_err(|error| posix_fault("asking for the places of", &path, &error))
    }

    fn take_mode(&self, from: &str, to: &str) -> Result<(), Fault> {
        let Some(like) = self.likeness(from)? else { return Ok(()) };
        self.doing("setting the permissions of", to, |spot| match spot.likeness()? {
            Some(found) if found == like => Ok(()),
            _ => like.give(spot.open_to_sync()?),
        })
    }

    fn can_rename(&self, from: &str, to: &str) -> bool {
        progress::note();
        let path = self.path(from);
        let Some(parent) = path.parent() else { return false };
        let mount = below::mount(parent);
        below::is_writable(parent) && mount.is_some() && mount == below::mount(&self.path(to))
    }

    fn list(&self, name: &str) -> Result<Vec<String>, Fault> {
        progress::note();
        let path = self.path(name);
        let entries = match progress::doing("listing", || stale::by_name(&path, || fs::read_dir(&path))) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(posix_fault("listing", &path, &error)),
        };
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.doing("publishing", to, |to| self.spot(from)?.rename(&to))
    }

    fn rename_new(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.doing("publishing", to, |to| guard::rename_new(&self.spot(from)?, &to))
    }

    fn has_links(&self) -> bool {
        true
    }

    fn link(&self, from: &str, to: &str) -> Result<bool, Fault> {
        self.doing("linking", to, |to| self.spot(from)?.link(&to))
    }

    fn exchange(&self, a: &str, b: &str) -> Result<bool, Fault> {
        self.doing("publishing", b, |b| self.spot(a)?.exchange(&b))
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.removed(name, false)
    }

    /// A file that is open keeps its space after its name is gone, so all are emptied first: after a full disk there
    /// must be room for another attempt.
    fn discard(&self, name: &str) {
        let _ = self.removed(name, true);
    }

    fn remove_empty(&self, name: &str) {
        let _ = self.doing("removing", name, |spot| spot.remove_directory());
    }

    fn sync_files(&self, names: &[String]) -> Result<(), Fault> {
        if names.len() > SINGLE_SYNCS_MAX
            && let Some(file_system) = FileSystem::open(&self.path)?
        {
            return progress::syncing(|| file_system.sync());
        }
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            files.push((name, self.doing("opening", name, |spot| Ok((spot.open_to_sync()?, spot)))?));
        }
        for (name, (file, _)) in &files {
            progress::syncing(|| write_back(file, 0, 0, libc::SYNC_FILE_RANGE_WRITE))
                .map_err(|error| self.failed("syncing", name, &error))?;
        }
        for (name, (file, _)) in &files {
            progress::note();
            progress::syncing(|| file.sync_all()).map_err(|error| self.failed("syncing", name, &error))?;
        }
        let mut synced = BTreeSet::new();
        for (name, (_, spot)) in &files {
            if synced.insert(self.path(name).parent().map(Path::to_path_buf)) {
                spot.sync_directory().map_err(|error| self.failed("syncing", name, &error))?;
            }
        }
        Ok(())
    }

    fn sync_content(&self, name: &str) -> Result<(), Fault> {
        self.doing("syncing", name, |spot| progress::syncing(|| spot.open_to_sync()?.sync_all()))
    }

    fn sync(&self, name: &str) -> Result<(), Fault> {
        progress::note();
        let path = self.path(name);
        let held = self.pin.as_deref().filter(|(above, _)| above == Path::new(name));
        let opened = held.map_or_else(|| File::open(&path), |(_, held)| below::open_to_sync(held));
        let synced = progress::syncing(|| opened.and_then(|file| file.sync_all()));
        synced.map_err(|error| posix_fault("syncing", &path, &error))
    }
}

impl Directory {
    /// The same, where records are believed only if who made them could have changed what has this name.
    pub(crate) fn that_believes(&self, data: &str) -> Directory {
        Directory { data: Some(Arc::new(Data::at(self.path(data)))), ..self.clone() }
    }

    /// The permissions of what has a name.
    fn likeness(&self, name: &str) -> Result<Option<Likeness>, Fault> {
        progress::note();
        match self.spot(name).and_then(|spot| spot.likeness()) {
            Err(error) if is_missing(&error) => Ok(None),
            found => found.map_err(|error| self.failed("looking at", name, &error)),
        }
    }

    /// Makes a file, perhaps with the permissions of another one.
    fn created(&self, name: &str, prefix: &[u8], bytes: u64, like: Option<&str>) -> Result<(), Fault> {
        use std::os::unix::fs::FileExt;
        let like = like.map_or(Ok(None), |like| self.likeness(like))?.map(Likeness::of_file);
        self.doing("creating", name, |spot| {
            let file = spot.create_like(like.as_ref())?;
            if bytes > prefix.len() as u64 {
                file.set_len(bytes)?;
            }
            file.write_all_at(prefix, 0)?;
            close(file)
        })
    }

    /// Removes what has a name, a link itself; nothing there is fine.
    fn removed(&self, name: &str, emptied: bool) -> Result<(), Fault> {
        progress::note();
        let removed = match self.spot(name) {
            Err(error) if is_missing(&error) && !self.is_link(name) => return Ok(()),
            spot => spot.and_then(|spot| progress::doing("removing", || spot.remove_tree(emptied))),
        };
        removed.map_err(|error| self.failed("removing", name, &error))
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
        assert!(Directory::new("").resolve().unwrap_err().text().contains("no absolute path"));
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
