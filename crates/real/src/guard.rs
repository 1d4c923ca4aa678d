//! Giving a name that nothing has, also where the file system cannot be asked to replace nothing.
//!
//! Without `RENAME_NOREPLACE` a file gets a new name by a link. On some shared file systems two clients that link to one name at the same
//! time both succeed (GlusterFS: 6 of 1,000 tries), and each sees its own. Making a file that is not there is exclusive on all. So
//! the program that makes the guard beside the name goes first, and the others wait.

use crate::below::Spot;
use crate::policy::{GUARD_DEAD, GUARD_WAIT, PAUSES};
use rustix::fs::{FileType, Mode, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

/// Renames to a name that is not there; returns whether it was not.
pub(crate) fn rename_new(from: &Spot, to: &Spot) -> io::Result<bool> {
    match from.rename_with(to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_new_guarded(from, to),
        Err(error) => Err(error.into()),
    }
}

/// The same on file systems without that flag. A directory with something in it is never replaced by a rename.
fn rename_new_guarded(from: &Spot, to: &Spot) -> io::Result<bool> {
    if FileType::from_raw_mode(from.stat()?.st_mode) == FileType::Directory {
        if to.stat().is_ok() {
            return Ok(false);
        }
        return match from.rename_with(to, RenameFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        };
    }
    let guard = Guard::of(to)?;
    let linked = from.link_to(to);
    drop(guard);
    match linked {
        Ok(()) => from.unlink().map(|()| true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The right to give a name, until it is dropped.
pub(crate) struct Guard {
    spot: Spot,
    /// Locked as long as its owner lives, so that others know.
    _file: File,
}

impl Guard {
    /// Waits until no other program gives something this name.
    pub(crate) fn of(name: &Spot) -> io::Result<Guard> {
        let spot = name.beside(|base| format!(".{base}.hyperslab-naming"))?;
        let (began, mut watched) = (Instant::now(), None::<(u64, Instant)>);
        loop {
            match spot.create_new_with(Mode::from_raw_mode(0o600)) {
                Ok(file) => {
                    // Where there are no locks, what a dead owner leaves stays.
                    let _ = file.try_lock();
                    return Ok(Guard { spot, _file: file });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if began.elapsed() > GUARD_WAIT {
                let text = format!("another program keeps '{}', and gives something this name", spot.path().display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if let Ok(file) = spot.open() {
                let inode = file.metadata()?.ino();
                // Its owner has it locked soon after he made it.
                let since = watched.filter(|(known, _)| *known == inode).map_or_else(Instant::now, |(_, since)| since);
                watched = Some((inode, since));
                if since.elapsed() > GUARD_DEAD && file.try_lock().is_ok() {
                    spot.unlink()?;
                }
            }
            std::thread::sleep(PAUSES.0);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.spot.unlink();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("hyperslab-guard-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn spot(directory: &Path) -> Spot {
        Spot::new(crate::below::root(directory).unwrap(), OsStr::new("a"))
    }

    #[test]
    fn one_at_a_time_gives_a_name() {
        let directory = directory("turns");
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let guard = Guard::of(&spot(&directory)).unwrap();
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(guard);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "nothing is left");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_a_dead_owner_left_keeps_nobody_out() {
        let directory = directory("dead");
        std::fs::write(directory.join(".a.hyperslab-naming"), b"").unwrap();
        drop(Guard::of(&spot(&directory)).unwrap());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
