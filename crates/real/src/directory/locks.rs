//! Locks on small files, whose notes say who holds them.

use super::records::Record;
use crate::below::{Spot, identity};
use crate::clients;
use crate::doing::{close, posix_fault};
use crate::mounts::file_system;
use crate::policy::REPLACED_WAIT;
use crate::posix::at_hand;
use hyperslab_world::{Change, Claim, Fault, FaultKind, Lock, Locked, Locks, NOTE_BYTES_MAX, Then};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, retry_on_intr};
use std::fs::{File, Metadata, TryLockError};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a name may change its meaning while it is claimed.
const TURNS_MAX: usize = 1000;
/// Whoever edits a small file has it locked for some microseconds, or while he looks at a few other locks; one that takes
/// longer has stopped.
const EDIT_WAIT: Duration = Duration::from_millis(500);
/// Until it is tried again.
pub(crate) const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Whoever only looks whether an owner lives has his lock for some microseconds.
const LOOK_WAIT: Duration = Duration::from_millis(50);

/// Locks a file, also where somebody looks at its lock at this moment.
fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    let until = Instant::now() + LOOK_WAIT;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            locked => return locked,
        }
    }
}

/// What a small file holds, once it is not empty: its owner writes it as soon as it is made. After a loss of power it stays empty.
pub(super) fn patiently(note: impl Fn() -> Result<Option<Vec<u8>>, Fault>) -> Result<Option<Vec<u8>>, Fault> {
    let until = Instant::now() + LOOK_WAIT;
    loop {
        match note()? {
            Some(empty) if empty.is_empty() && Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            found => return Ok(found),
        }
    }
}

/// An open file description that has a file locked, where the file system has locks.
struct FileLock {
    file: File,
    path: PathBuf,
    real: bool,
}

impl FileLock {
    /// Whether the name by which it was locked still means this file.
    fn is_named(&self) -> io::Result<bool> {
        let there = match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            there => there?,
        };
        let held = self.file.metadata()?;
        Ok((held.dev(), held.ino()) == (there.dev(), there.ino()))
    }
}

impl Lock for FileLock {
    fn add(&self, note: &[u8]) -> Result<(), Fault> {
        let added = self.file.metadata().and_then(|found| {
            // Nobody would find another line behind the half of one.
            let back = |_: &io::Error| drop(self.file.set_len(found.len()));
            self.file.write_all_at(note, found.len()).inspect_err(back)
        });
        added.map_err(|error| posix_fault("writing", &self.path, &error))
    }

    fn cut(&self, bytes: u64) -> Result<(), Fault> {
        self.file.set_len(bytes).map_err(|error| posix_fault("writing", &self.path, &error))
    }

    fn has_its_name(&self) -> Result<bool, Fault> {
        self.is_named().map_err(|error| posix_fault("looking at", &self.path, &error))
    }

    fn keeps_others_out(&self) -> bool {
        self.real
    }

    fn rest(&self, note: &[u8]) -> bool {
        self.real && self.file.write_all_at(note, 0).is_ok() && self.file.unlock().is_ok()
    }

    fn resume(&self, rested: &[u8], note: &[u8]) -> Result<bool, Fault> {
        let failed = |verb, error: &io::Error| {
            let _ = self.file.unlock();
            posix_fault(verb, &self.path, error)
        };
        match self.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(failed("locking", &error)),
        }
        let there = self::note(&self.file).map_err(|error| failed("reading", &error))?;
        let is_named = self.is_named().map_err(|error| failed("looking at", &error))?;
        if there != rested || !is_named {
            let _ = self.file.unlock();
            return Ok(false);
        }
        if note == rested {
            return Ok(true);
        }
        self.file.write_all_at(note, 0).map(|()| true).map_err(|error| {
            let _ = self.file.write_all_at(rested, 0);
            failed("writing", &error)
        })
    }
}

/// Whether a name still means the file that was opened by it.
fn is_there(spot: &Spot, held: &Metadata) -> bool {
    spot.stat().is_ok_and(|stat| identity(&stat) == (held.dev(), held.ino()))
}

/// What a file holds.
pub(super) fn note(file: &File) -> io::Result<Vec<u8>> {
    note_of(file, file.metadata()?.len())
}

/// The same of one that has so many bytes.
fn note_of(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let mut note = vec![0; length.min(NOTE_BYTES_MAX) as usize];
    match file.read_exact_at(&mut note, 0) {
        // It was cut meanwhile.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => self::note(file),
        read => read.map(|()| note),
    }
}

/// Adds lines to the end of a file in one piece, wherever it ends by then.
fn add(spot: &Spot, file: &File, bytes: &[u8]) -> io::Result<()> {
    let appended = |bytes: &[u8]| retry_on_intr(|| pwritev2(file, &[IoSlice::new(bytes)], 0, ReadWriteFlags::APPEND));
    match appended(bytes) {
        Ok(written) if written == bytes.len() => Ok(()),
        // The half of a line is none.
        Ok(_) => match appended(&[b"\n", bytes].concat())? {
            written if written > bytes.len() => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::WriteZero)),
        },
        // Not all systems and file systems know that flag.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => {
            let mut file = spot.open_to_append()?;
            file.write_all(bytes)?;
            close(file)
        }
        Err(error) => Err(error.into()),
    }
}

/// As [`Names::claim`](hyperslab_world::Names::claim), of the spot that is found for its name again and again.
pub(super) fn claim(
    find: impl Fn() -> io::Result<Spot>,
    record: &Record,
    bytes: &[u8],
    sync: bool,
) -> io::Result<Claim> {
    let lock = |file, real| Box::new(FileLock { file, path: record.path.into(), real });
    for _ in 0..TURNS_MAX {
        let spot = find()?;
        let (file, new) = match spot.create_note(record.like(&spot).as_ref()) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match spot.open() {
                Ok(file) => (file, false),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let held = file.metadata()?;
        if !new {
            record.check(&held)?;
        }
        let real = match lock_patiently(&file) {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => return Ok(Claim::Busy(note(&file)?)),
            Err(TryLockError::Error(_)) => false,
        };
        // Whoever had it may have removed it meanwhile, or its directory has another name by now, where nobody would look for it.
        if !find().is_ok_and(|now| is_there(&now, &held)) {
            if new && is_there(&spot, &held) {
                spot.unlink()?;
            }
            continue;
        }
        if !new {
            let note = note(&file)?;
            return Ok(Claim::Left(lock(file, real), note));
        }
        let written = file.write_all_at(bytes, 0).and_then(|()| {
            if sync && at_hand::reach(&file).tells_late() {
                // Its owner keeps it open, and would hear of it too late.
                file.sync_data()?;
            }
            if sync { spot.sync_directory() } else { Ok(()) }
        });
        if let Err(error) = written {
            let _ = spot.unlink();
            return Err(error);
        }
        return Ok(Claim::New(lock(file, real)));
    }
    Err(io::Error::other("others make and remove it all the time"))
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}

/// Gives a file with these lines others. It never becomes shorter, since somebody may add to it without being alone: as
/// many lines as go there take the place of what was there, with empty lines behind them, and the rest is added.
fn put(spot: &Spot, file: &File, before: &[u8], after: &[u8]) -> io::Result<()> {
    let (mut there, mut added) = (Vec::with_capacity(before.len()), Vec::new());
    for line in lines(after) {
        let goes = added.is_empty() && there.len() + line.len() < before.len();
        let place = if goes { &mut there } else { &mut added };
        place.extend_from_slice(line);
        place.push(b'\n');
    }
    there.resize(before.len(), b'\n');
    if there != before {
        file.write_all_at(&there, 0)?;
    }
    if added.is_empty() { Ok(()) } else { add(spot, file, &added) }
}

/// Removes a file with these lines. If somebody adds to it meanwhile, what he adds goes to a new one.
fn remove_unless_added(spot: &Spot, file: &File, before: &[u8]) -> io::Result<()> {
    match spot.unlink() {
        // In a directory like /tmp, only who made it may remove it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return put(spot, file, before, b""),
        removed => removed?,
    }
    let length = file.metadata()?.len();
    if length == before.len() as u64 {
        return Ok(());
    }
    match note_of(file, length)?.get(before.len()..) {
        Some(added) if lines(added).next().is_some() => {
            let mut new = spot.open_to_append()?;
            new.write_all(added)?;
            close(new)
        }
        _ => Ok(()),
    }
}

/// As [`Names::append`](hyperslab_world::Names::append).
pub(super) fn append(spot: &Spot, record: &Record, bytes: &[u8]) -> io::Result<()> {
    // What was there may end within a line, if a disk was full.
    let bytes = [b"\n", bytes].concat();
    for _ in 0..TURNS_MAX {
        let mut file = spot.open_to_append()?;
        let held = file.metadata()?;
        record.check(&held)?;
        file.write_all(&bytes)?;
        // Whoever has it to himself may have removed it before, and then knows nothing of this.
        if is_there(spot, &held) {
            return close(file);
        }
    }
    Err(io::Error::other("others make and remove it all the time"))
}

/// As [`Names::lock`](hyperslab_world::Names::lock).
pub(super) fn lock(spot: &Spot, record: &Record) -> io::Result<Locked> {
    let path = record.path;
    // Some file systems lock only what is open for writing, and some users may not write.
    let file = spot.open().or_else(|_| spot.open_to_sync())?;
    record.check_maker(&file.metadata()?)?;
    match file.try_lock() {
        Ok(()) => Ok(Locked::Ours(Box::new(FileLock { file, path: path.into(), real: true }))),
        Err(TryLockError::WouldBlock) => Ok(Locked::Busy),
        Err(TryLockError::Error(_)) => Ok(Locked::Ours(Box::new(FileLock { file, path: path.into(), real: false }))),
    }
}

/// As [`Names::is_shared`](hyperslab_world::Names::is_shared).
pub(super) fn is_shared(spot: &Spot) -> io::Result<bool> {
    let file = spot.open_to_sync()?;
    Ok(!matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// As [`Names::edit`](hyperslab_world::Names::edit).
pub(super) fn edit(spot: &Spot, record: &Record, change: Change, then: Then) -> Result<(), Fault> {
    let (path, failed) = (record.path, |error: io::Error| record.failed("changing", &error));
    let until = Instant::now() + EDIT_WAIT;
    let mut attempt = || -> io::Result<Option<File>> {
        let file = spot.open_shared(|| record.like(spot))?;
        record.check(&file.metadata()?)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let held = file.metadata()?;
        if !is_there(spot, &held) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let before = note_of(&file, held.len())?;
        let after = change(lines(&before).flat_map(|line| [line, b"\n"].concat()).collect());
        match lines(&after).next().is_none() {
            true => remove_unless_added(spot, &file, &before)?,
            false => put(spot, &file, &before, &after)?,
        }
        Ok(Some(file))
    };
    loop {
        match attempt() {
            Ok(Some(file)) => {
                then()?;
                return close(file).map_err(failed);
            }
            Ok(None) if Instant::now() > until => {
                let text = format!("another process keeps '{}' locked for {EDIT_WAIT:?}", path.display());
                return Err(Fault::new(FaultKind::Timeout, text)
                    .hint("a process that begins or ends writing there has stopped, or waits for its disk: lslocks"));
            }
            // It was removed or replaced, perhaps by another client of a shared file system.
            Err(error) if !was_replaced(&error) || spot.is_nowhere() || Instant::now() > until + REPLACED_WAIT => {
                return Err(failed(error));
            }
            Ok(None) | Err(_) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// Whether what was open, or had the name, is something else by now.
fn was_replaced(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESTALE)
}

/// What a free lock in a directory says of its owner, as far as the mount tells.
pub(super) fn locks(directory: &Path) -> Locks {
    let Ok(file) = crate::below::root(directory) else { return Locks::EachHost };
    if at_hand::holds(&file) {
        return Locks::HostOnly;
    }
    file_system(directory).map_or(Locks::EachHost, |system| clients::locks(&system))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_file_is_not_claimed_in_a_directory_that_has_another_name_meanwhile() {
        let root = std::env::temp_dir().join(format!("hyperslab-claim-{}", std::process::id()));
        let (before, after) = (root.join("before"), root.join("after"));
        std::fs::create_dir_all(&before).unwrap();
        let turn = Cell::new(0);
        let find = || {
            // After the file was made, and before it is looked for.
            if turn.replace(turn.get() + 1) == 1 {
                std::fs::rename(&before, &after)?;
            }
            Spot::find(crate::below::root(&root)?, Path::new("before/marker"))
        };
        let marker = before.join("marker");
        let record = Record { path: &marker, data: None };
        let claimed = claim(find, &record, b"x", false);
        assert!(claimed.is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
        assert_eq!(std::fs::read_dir(&after).unwrap().count(), 0, "what was made is taken back");
        // Another directory of that name has one.
        std::fs::create_dir(&before).unwrap();
        let find = || Spot::find(crate::below::root(&root)?, Path::new("before/marker"));
        assert!(matches!(claim(find, &record, b"x", false), Ok(Claim::New(_))));
        assert_eq!(std::fs::read(before.join("marker")).unwrap(), b"x");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
