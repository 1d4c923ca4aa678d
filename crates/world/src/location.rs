//! Where something is stored, as a user says it.

use crate::{BucketStore, MemoryTree, ObjectMemory, TreeStore};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a store or a file is. What can be opened takes anything that becomes one: paths, trees and object stores in memory,
/// and files that are striped.
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
    /// In an object store in the memory of this process; a store only, not a raw file.
    Objects(ObjectMemory),
    /// In several directories of the file system, with a part in each; a file only, not a store.
    Striped(Striped),
}

/// A file whose bytes are spread over several directories, unit by unit in turn: with `n` directories, byte `o` lies in
/// directory `(o / unit) mod n`, in the file of that name, at `(o / (unit * n)) * unit + o mod unit`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Striped {
    /// The directories, in order; they exist beforehand.
    pub directories: Vec<PathBuf>,
    /// Bytes that lie together \[B\].
    pub unit_bytes: u64,
    /// Name of the file, and so of its part in each directory.
    pub name: String,
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

impl From<&ObjectMemory> for Location {
    fn from(memory: &ObjectMemory) -> Location {
        Location::Objects(memory.clone())
    }
}

impl From<ObjectMemory> for Location {
    fn from(memory: ObjectMemory) -> Location {
        Location::Objects(memory)
    }
}

/// Whether an absolute name means something in the memory of this process.
pub fn is_in_memory(absolute: &str) -> bool {
    TreeStore::is_for(absolute) || BucketStore::is_for(absolute)
}

impl From<Striped> for Location {
    fn from(striped: Striped) -> Location {
        Location::Striped(striped)
    }
}

impl fmt::Display for Striped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directories: Vec<String> =
            self.directories.iter().map(|directory| format!("'{}'", directory.display())).collect();
        write!(f, "{} striped over {} by {} B", self.name, directories.join(", "), self.unit_bytes)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Path(path) => path.display().fmt(f),
            Location::Memory(tree) => tree.fmt(f),
            Location::Objects(memory) => memory.fmt(f),
            Location::Striped(striped) => striped.fmt(f),
        }
    }
}
