//! Files at rest, as the system shows them.

use crate::doing::posix_fault;
use crate::regular::{self, is_missing};
use hyperslab_pack::Memory;
use hyperslab_world::{Fault, FaultKind, FileReader, FileSeen, FileState, OpenedFile};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The times of files go in steps of the kernel's timer, at most 10 ms, unless the file system's own are longer (ext3: 1 s, which
/// shows by times without fractions). What was changed longer ago than this rests \[ns\].
const STEP_NS: i64 = 50_000_000;
/// The same, where times have no fractions \[ns\].
const WHOLE_SECONDS_NS: i64 = 2_100_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// What the file at a path is now, if there is one.
pub(crate) fn look(path: &Path) -> Result<Option<FileSeen>, Fault> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(seen(&found))),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(posix_fault("looking at", path, &error)),
    }
}

/// The file at a path, if there is one.
pub(crate) fn open(path: PathBuf) -> Result<Option<OpenedFile>, Fault> {
    match regular::open_known(&path, false) {
        Ok((file, known)) => Ok(Some((seen(&known), Box::new(OpenFile { file, path })))),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(posix_fault("opening", &path, &error)),
    }
}

/// What the system tells of a file.
fn seen(found: &Metadata) -> FileSeen {
    let ns = |seconds: i64, part: i64| seconds.saturating_mul(SECOND_NS).saturating_add(part);
    let (modified_ns, changed_ns) = (ns(found.mtime(), found.mtime_nsec()), ns(found.ctime(), found.ctime_nsec()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    let step = if changed_ns % SECOND_NS == 0 { WHOLE_SECONDS_NS } else { STEP_NS };
    // A clock that was set back makes times of the future, which say nothing.
    let rests = now.saturating_sub(modified_ns.max(changed_ns)) > step;
    let state = FileState { identity: (found.dev(), found.ino()), bytes: found.len(), modified_ns, changed_ns };
    FileSeen { state, rests }
}

/// A file that is open to be read.
struct OpenFile {
    file: File,
    path: PathBuf,
}

impl FileReader for OpenFile {
    fn seen(&self) -> Result<FileSeen, Fault> {
        let found = self.file.metadata().map_err(|error| posix_fault("looking at", &self.path, &error))?;
        Ok(seen(&found))
    }

    fn read_into(&self, at: u64, memory: &Memory, to: u64, bytes: u64) -> Result<u64, Fault> {
        let base = memory.host_address().filter(|_| memory.holds(to, to.saturating_add(bytes)));
        let Some(base) = base else {
            let text = format!("a memory of {} B has no bytes {to} to {to} + {bytes} to read into", memory.bytes());
            return Err(Fault::new(FaultKind::Invalid, text));
        };
        let mut read = 0;
        while read < bytes {
            let (address, left) = ((base + (to + read) as usize) as *mut libc::c_void, (bytes - read) as usize);
            // SAFETY: `left` bytes from `address` on lie in the memory, as just checked, which lives as long as this borrow; nothing
            // but raw copies ever touches them.
            let got = unsafe { libc::pread(self.file.as_raw_fd(), address, left, (at + read) as i64) };
            match got {
                0 => break,
                1.. => read += got as u64,
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(posix_fault("reading", &self.path, &error));
                    }
                }
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::thread::sleep;
    use std::time::Duration;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("hyperslab-resting-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn look(path: &Path) -> FileSeen {
        super::look(path).unwrap().unwrap()
    }

    #[test]
    fn what_was_just_changed_does_not_rest() {
        let directory = Scratch::new("just");
        let path = directory.0.join("a");
        fs::write(&path, b"0123456789").unwrap();
        assert!(!look(&path).rests);
        while !look(&path).rests {
            sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn each_change_of_what_rests_is_seen() {
        let directory = Scratch::new("each");
        let path = directory.0.join("a");
        fs::write(&path, b"0123456789").unwrap();
        let rested = || {
            while !look(&path).rests {
                sleep(Duration::from_millis(5));
            }
            look(&path).state
        };
        let before = rested();
        let file = File::options().write(true).open(&path).unwrap();
        file.write_at(b"x", 3).unwrap();
        assert_ne!(look(&path).state, before, "other bytes");
        // Whoever copies times, too, cannot hide a change.
        let modified = UNIX_EPOCH + Duration::from_nanos(before.modified_ns as u64);
        file.set_times(fs::FileTimes::new().set_modified(modified)).unwrap();
        let after = look(&path).state;
        assert!(after.modified_ns == before.modified_ns && after != before, "other times");
        let before = rested();
        fs::write(directory.0.join("b"), b"0123456789").unwrap();
        fs::rename(directory.0.join("b"), &path).unwrap();
        assert_ne!(look(&path).state, before, "another file");
    }

    #[test]
    fn bytes_are_read_to_where_they_shall_lie() {
        let directory = Scratch::new("bytes");
        let path = directory.0.join("a");
        fs::write(&path, b"0123456789").unwrap();
        let (_, file) = open(path).unwrap().unwrap();
        let memory = Memory::from_vec(vec![b'.'; 8]);
        assert_eq!(file.read_into(2, &memory, 3, 4).unwrap(), 4);
        assert_eq!(memory.to_vec(0, 8), b"...2345.");
        assert_eq!(file.read_into(8, &memory, 0, 8).unwrap(), 2, "the file ends");
        assert!(file.read_into(0, &memory, 5, 4).is_err(), "the memory ends");
    }
}
