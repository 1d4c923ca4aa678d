//! Names of objects that are spread over several directories: the same as in one directory, as nearly as it can be.
//!
//! Several names cannot change at once. What is new lies under a hidden name in every directory, and is published by
//! renaming it in one after another. The *first* directory decides: once its rename is done (and durable), the new
//! object is the one that counts, and whoever opens it first renames what is left. To tell this from an object that
//! was never finished, hidden files are made in the first directory first and removed from it last, so that
//!
//! ```text
//! hidden in the first directory             not published: what was there before is whole
//! hidden in others, but not in the first    published: the others are still to be renamed
//! ```
//!
//! holds after a crash at any moment. While renames are under way, a program that reads the files by itself may see
//! some of them old and some new; and so may one that has the object open for reading through this library.

use crate::directory::Directory;
use crate::stripes::Stripes;
use hyperslab_world::{Fault, FaultKind};
use std::path::Path;

/// Directories and what is spread over them.
#[derive(Clone, Debug)]
pub struct StripedDirectory {
    stripes: Stripes,
    directories: Vec<Directory>,
}

impl StripedDirectory {
    /// Objects spread like this. Nothing is looked at yet; see [`Stripes::check`].
    pub fn new(stripes: Stripes) -> StripedDirectory {
        let directories = stripes.directories.iter().map(Directory::new).collect();
        StripedDirectory { stripes, directories }
    }

    /// How objects are spread.
    pub fn stripes(&self) -> &Stripes {
        &self.stripes
    }

    /// Path of the first directory.
    pub fn path(&self) -> &Path {
        self.first().path()
    }

    fn first(&self) -> &Directory {
        self.directories.first().expect("stripes have a directory")
    }

    /// The directories with their numbers, the first one last.
    fn backwards(&self) -> impl Iterator<Item = (usize, &Directory)> {
        self.directories.iter().enumerate().rev()
    }

    /// Whether a file with this name exists anywhere; with the empty name, whether all directories do.
    pub fn exists(&self, name: &str) -> bool {
        let mut each = self.directories.iter();
        if name.is_empty() { each.all(|d| d.exists("")) } else { each.any(|d| d.exists(name)) }
    }

    /// The contents of a small object, `None` when it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Fault> {
        self.length(name).map_or(Ok(None), |bytes| self.read_prefix(name, bytes))
    }

    /// The first bytes of an object, at most this many; `None` when it does not exist.
    pub fn read_prefix(&self, name: &str, bytes: u64) -> Result<Option<Vec<u8>>, Fault> {
        let bytes = bytes.min(self.length(name).unwrap_or(0));
        let mut prefix = vec![0; bytes as usize];
        for (number, directory) in self.directories.iter().enumerate() {
            let Some(part) = directory.read_prefix(name, self.stripes.bytes_in(number, bytes))? else {
                return Ok(None);
            };
            for stripe in self.stripes.held(number, 0, bytes) {
                let (from, to, length) = (stripe.local as usize, stripe.skip as usize, stripe.bytes as usize);
                let Some(found) = part.get(from..from + length) else {
                    return Err(self.damaged(name, number, from as u64 + stripe.bytes, part.len() as u64));
                };
                prefix[to..to + length].copy_from_slice(found);
            }
        }
        Ok(Some(prefix))
    }

    /// Length of an object \[B\], `None` when a part of it does not exist.
    pub fn length(&self, name: &str) -> Option<u64> {
        self.directories.iter().map(|directory| directory.length(name)).sum()
    }

    /// Checks that all parts of an object are there, with the lengths that they must have, or none is.
    pub fn check(&self, name: &str) -> Result<(), Fault> {
        let found: Vec<Option<u64>> = self.directories.iter().map(|directory| directory.length(name)).collect();
        if found.iter().all(Option::is_none) {
            return Ok(());
        }
        if let Some(number) = found.iter().position(Option::is_none) {
            let path = self.stripes.directories[number].join(name);
            let text = format!(
                "'{}' is missing, while other directories hold their parts of the striped file",
                path.display()
            );
            return Err(Fault::new(FaultKind::Corrupt, text)
                .hint("name the directories and the unit that it was written with, or restore the part"));
        }
        let all: u64 = found.iter().flatten().sum();
        for (number, found) in found.into_iter().flatten().enumerate() {
            let expected = self.stripes.bytes_in(number, all);
            if found != expected {
                return Err(self.damaged(name, number, expected, found));
            }
        }
        Ok(())
    }

    fn damaged(&self, name: &str, number: usize, expected: u64, found: u64) -> Fault {
        let path = self.stripes.directories[number].join(name);
        let (count, unit) = (self.directories.len(), self.stripes.unit_bytes);
        let text = format!(
            "'{}' as part of a file striped over {count} directories by {unit} B should have {expected} B, but has \
             {found} B",
            path.display()
        );
        Fault::new(FaultKind::Corrupt, text)
            .hint("name the directories, their order and the unit that it was written with")
    }

    /// The parts of the first bytes of an object, by directory.
    fn cut(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let part = |number| {
            let held = self.stripes.held(number, 0, bytes.len() as u64);
            held.flat_map(|stripe| &bytes[stripe.skip as usize..(stripe.skip + stripe.bytes) as usize])
        };
        (0..self.directories.len()).map(|number| part(number).copied().collect()).collect()
    }

    /// Writes a small object whole; each part at once, but not all of them.
    pub fn write(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Fault> {
        self.directories
            .iter()
            .zip(self.cut(bytes))
            .try_for_each(|(directory, part)| directory.write(name, &part, sync))
    }

    /// Makes an object of this length, whose contents are still to be written.
    pub fn create(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        for (number, directory) in self.directories.iter().enumerate() {
            directory.create(name, self.stripes.bytes_in(number, bytes))?;
            if number == 0 {
                // The others must never be there without the first, not even after a loss of power.
                directory.sync("")?;
            }
        }
        Ok(())
    }

    /// Gives an object that exists another length.
    pub fn lengthen(&self, name: &str, bytes: u64) -> Result<(), Fault> {
        let mut each = self.directories.iter().enumerate();
        each.try_for_each(|(number, directory)| directory.lengthen(name, self.stripes.bytes_in(number, bytes)))
    }

    /// Reserves the space of the first bytes of an object, as [`Directory::reserve`]. Returns whether all file systems can.
    pub fn reserve(&self, name: &str, bytes: u64) -> Result<bool, Fault> {
        let mut all = true;
        for (number, directory) in self.directories.iter().enumerate() {
            all &= directory.reserve(name, self.stripes.bytes_in(number, bytes))?;
        }
        Ok(all)
    }

    /// Writes bytes at the start of an object that exists.
    pub fn write_prefix(&self, name: &str, bytes: &[u8]) -> Result<(), Fault> {
        self.directories
            .iter()
            .zip(self.cut(bytes))
            .try_for_each(|(directory, part)| directory.write_prefix(name, &part))
    }

    /// Renames an object to a name that does not exist, or over another. It is done once it is done in the first
    /// directory; [`StripedDirectory::complete`] does what is left then.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.first().rename(from, to)?;
        self.first().sync("")?;
        let mut others = self.directories[1..].iter();
        others.try_for_each(|directory| directory.rename(from, to)).map_err(|fault| {
            let hint = "the file is published, but not in all its directories: opening it completes that";
            Fault { hint: hint.into(), ..fault }
        })
    }

    /// Ends the rename of a hidden object that was interrupted after it was decided. Returns whether there was one.
    ///
    /// # Errors
    /// When it cannot be ended: then the object must not be read, since it is old in some directories and new in others.
    pub fn complete(&self, hidden: &str, name: &str) -> Result<bool, Fault> {
        if self.first().exists(hidden) {
            return Ok(false);
        }
        let left: Vec<&Directory> = self.directories[1..].iter().filter(|d| d.exists(hidden)).collect();
        if left.is_empty() {
            return Ok(false);
        }
        if !self.first().exists(name) {
            let text = format!(
                "'{}' is missing, while '{}' in '{}' waits to be published with it",
                self.path().join(name).display(),
                hidden,
                left[0].path().display()
            );
            return Err(Fault::new(FaultKind::Corrupt, text)
                .hint("name the directories in the order of writing; or remove what is hidden, if it is of no use"));
        }
        for directory in left {
            match directory.rename(hidden, name) {
                // Another process has completed it meanwhile.
                Err(_) if !directory.exists(hidden) => {}
                other => other.map_err(|fault| {
                    fault
                        .context("completing a publication that was interrupted")
                        .hint("let somebody who may write to all directories open the file")
                })?,
            }
        }
        self.sync("")?;
        Ok(true)
    }

    /// Removes an object or its parts; nothing there is fine.
    pub fn remove(&self, name: &str) -> Result<(), Fault> {
        for (number, directory) in self.backwards() {
            if number == 0 && self.directories.len() > 1 && directory.exists(name) {
                self.sync("")?;
            }
            directory.remove(name)?;
        }
        Ok(())
    }

    /// Removes what was never published; what is published, if not everywhere yet, stays.
    pub fn discard(&self, name: &str) {
        if self.first().exists(name) {
            self.directories.iter().for_each(|directory| directory.empty(name));
            let _ = self.remove(name);
        }
    }

    /// Makes the names durable.
    pub fn sync(&self, name: &str) -> Result<(), Fault> {
        self.directories.iter().try_for_each(|directory| directory.sync(name))
    }
}
