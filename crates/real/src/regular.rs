//! Opening files by paths that links may lead through, and nothing but files: a pipe, a device or a socket in the place of
//! one could keep whoever opens it waiting for ever, or never end.

use crate::stale;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens a file to read it, and perhaps to write to it.
pub(crate) fn open(path: &Path, write: bool) -> io::Result<File> {
    open_known(path, write).map(|(file, _)| file)
}

/// The same, with what the system knows of the file.
pub(crate) fn open_known(path: &Path, write: bool) -> io::Result<(File, Metadata)> {
    stale::by_name(path, || opened(path, write))
}

fn opened(path: &Path, write: bool) -> io::Result<(File, Metadata)> {
    // Opening alone may do something to a device.
    check(&std::fs::metadata(path)?)?;
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path)?;
    let known = file.metadata()?;
    check(&known)?;
    Ok((file, known))
}

/// Whether nothing can have the path.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Where a link leads at whose end nothing is.
pub(crate) fn leads_to(link: &Path) -> Option<PathBuf> {
    let mut path = link.to_path_buf();
    // As many as Linux follows.
    for _ in 0..40 {
        match path.read_link() {
            Ok(target) => path = path.parent()?.join(target),
            Err(_) if path == link => return None,
            Err(_) => {
                let real = path.parent()?.canonicalize().map(|above| Some(above.join(path.file_name()?)));
                return real.unwrap_or(Some(path));
            }
        }
    }
    None
}

/// Room that is made at once for what is read of a small file \[B\].
const ROOM_BYTES: u64 = 1 << 20;

/// So many bytes of a file from there on, or those that there are.
pub(crate) fn read(path: &Path, at: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
    let (mut file, known) = open_known(path, false)?;
    // With a byte more than there is, the end is found by the first read.
    let room = known.len().saturating_sub(at).saturating_add(1).min(bytes_max).min(ROOM_BYTES);
    let mut part = Vec::with_capacity(room as usize);
    if at > 0 {
        file.seek(SeekFrom::Start(at))?;
    }
    file.take(bytes_max).read_to_end(&mut part)?;
    Ok(part)
}

/// Refuses what is no file.
pub(crate) fn check(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => return Err(io::Error::from_raw_os_error(libc::EISDIR)),
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::other(format!("it is {what} and not a regular file")))
}
