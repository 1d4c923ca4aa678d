//! Where something is stored, as a user says it.

use crate::MemoryTree;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a store or a file is. What can be opened takes anything that becomes one: paths, and trees in memory.
///
/// ```
/// use hyperslab_world::{Location, MemoryTree};
/// let memory = MemoryTree::new();
/// assert!(Location::from(memory.below("run.zarr")).to_string().ends_with("/run.zarr"));
/// ```
#[derive(Clone, Debug)]
pub enum Location {
    /// In the file system.
    Path(PathBuf),
    /// In the memory of this process, at the root of the tree.
    Memory(MemoryTree),
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Location {
        Location::Path(path.to_path_buf())
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Location {
        Location::Path(path)
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Location {
        Location::Path(path.clone())
    }
}

impl From<&MemoryTree> for Location {
    fn from(tree: &MemoryTree) -> Location {
        Location::Memory(tree.clone())
    }
}

impl From<MemoryTree> for Location {
    fn from(tree: MemoryTree) -> Location {
        Location::Memory(tree)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Path(path) => path.display().fmt(f),
            Location::Memory(tree) => tree.fmt(f),
        }
    }
}
