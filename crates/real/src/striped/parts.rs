//! Names of the parts of a striped file.

use crate::directory::Directory;
use hyperslab_world::{Fault, Names};

/// Renames a part whose first has been renamed.
pub(super) fn rename_left(directory: &Directory, from: &str, to: &str) -> Result<(), Fault> {
    match directory.rename(from, to) {
        // Another process has opened the file, and completed it meanwhile.
        Err(_) if !directory.exists(from) => Ok(()),
        result => result,
    }
}

/// Name of the directory that a name lies in.
pub(super) fn parent(inner: &str) -> &str {
    inner.rsplit_once('/').map_or("", |(above, _)| above)
}
