//! Names that lead to what is not there any more.
//!
//! Another client of a shared file system replaces or removes something, and this one still knows the name as it was: using it gives
//! ESTALE. Trying again at once does not help, but the name is right when the client has asked for it again: after its timeout, or
//! as soon as the directory has been listed.

use crate::policy::{PAUSES, VISIBLE_NS};
use crate::{monotonic, progress};
use std::io;
use std::path::Path;

/// Does something by a name, again while that is stale.
pub(crate) fn by_name<T>(path: &Path, mut run: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let (began, mut pause) = (monotonic::monotonic_ns(), PAUSES.0);
    loop {
        match run() {
            Err(error) if is_stale(&error) && monotonic::monotonic_ns() - began < VISIBLE_NS => {}
            done => return done,
        }
        progress::note();
        // A long list takes long, and what several of them did not help waits for the timeout.
        if pause < PAUSES.1 {
            list_around(path);
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PAUSES.1);
    }
}

/// Waits a moment, and has the client look at a name again.
pub(crate) fn pause(path: &Path) {
    progress::note();
    std::thread::sleep(PAUSES.1);
    list_around(path);
}

/// Lists the directory of a name, by which the client learns what has the names in it.
fn list_around(path: &Path) {
    if let Some(Ok(names)) = path.parent().map(std::fs::read_dir) {
        names.for_each(drop);
    }
}

fn is_stale(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESTALE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stale_is_tried_again_and_nothing_else_is() {
        let mut left = 3;
        let stale = || io::Error::from_raw_os_error(libc::ESTALE);
        let tried = by_name(Path::new("/dev/shm/x"), || {
            left -= 1;
            if left > 0 { Err(stale()) } else { Ok(left) }
        });
        assert_eq!(tried.unwrap(), 0);
        let mut calls = 0;
        let failed = by_name(Path::new("x"), || {
            calls += 1;
            Err::<(), _>(io::Error::from_raw_os_error(libc::ENOENT))
        });
        assert!(failed.is_err() && calls == 1);
    }
}
