//! Files at rest: what was seen of one tells whether it is still the same.

use crate::Fault;
use hyperslab_pack::Memory;

/// What tells a file from any other one, and from what it becomes by a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileState {
    /// Device and inode.
    pub identity: (u64, u64),
    /// Length \[B\].
    pub bytes: u64,
    /// When its content was last changed, since 1970 \[ns\].
    pub modified_ns: i64,
    /// When anything of it was last changed; nobody can set this to an earlier time \[ns\].
    pub changed_ns: i64,
}

/// What a look at a file shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileSeen {
    /// What it is now.
    pub state: FileState,
    /// Whether the last change is so long ago that the next one will have another time: the system's clock for files goes in
    /// steps.
    pub rests: bool,
}

/// What a file was when it was opened, and the file.
pub type OpenedFile = (FileSeen, Box<dyn FileReader>);

/// A file that is open to be read.
pub trait FileReader: Send + Sync {
    /// What the file is now, whatever its name means by now.
    ///
    /// # Errors
    /// When the system does not tell.
    fn seen(&self) -> Result<FileSeen, Fault>;

    /// Reads so many bytes from there on into a memory, from its byte `to` on; says how many there were.
    ///
    /// # Errors
    /// When the memory has no such bytes, or the system cannot read.
    fn read_into(&self, at: u64, memory: &Memory, to: u64, bytes: u64) -> Result<u64, Fault>;
}
