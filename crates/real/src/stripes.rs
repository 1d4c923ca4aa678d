//! Spreading the bytes of one object over several directories, each of them best on a disk of its own.
//!
//! Source: the Paragon's PFS, whose files lie in stripe directories, one unit in each in turn (Thakur, Gropp, Lusk, "A
//! case for using MPI's derived datatypes to improve I/O performance", 1998, section 4.1.2; Intel's manuals).
//!
//! ```text
//! object      |0  |1  |2  |3  |4  |5  |6|     units; 3 directories
//! directory 0 |0  |3  |6|
//! directory 1 |1  |4  |
//! directory 2 |2  |5  |
//! ```

mod name;

use hyperslab_world::{Fault, FaultKind};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Most directories of one object.
const DIRECTORIES_MAX: usize = 1024;
/// Largest unit \[B\].
const UNIT_BYTES_MAX: u64 = 1 << 40;

/// Directories that share the bytes of an object, unit by unit in turn: byte `o` lies in directory
/// `(o / unit) mod n`, at `(o / (unit * n)) * unit + o mod unit`, in a file of the object's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stripes {
    /// The directories, in order.
    pub directories: Vec<PathBuf>,
    /// Bytes that lie together \[B\]. Direct requests want a multiple of the page.
    pub unit_bytes: u64,
}

/// Bytes of an object that lie together in the file of one directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stripe {
    /// Where they begin among the bytes asked for \[B\].
    pub(crate) skip: u64,
    /// Where they begin in the file \[B\].
    pub(crate) local: u64,
    /// How many there are \[B\].
    pub(crate) bytes: u64,
}

impl Stripes {
    /// Says whether these numbers of directories and bytes make sense; looks at no directory.
    ///
    /// # Errors
    /// When there is no directory, or the unit is none, or there is too much of either.
    pub(crate) fn check_numbers(&self) -> Result<(), Fault> {
        let bad = |text: String, hint: &str| Err(Fault::new(FaultKind::Invalid, text).hint(hint));
        let count = self.directories.len();
        if !(1..=DIRECTORIES_MAX).contains(&count) {
            let text = format!("a striped file needs 1 to {DIRECTORIES_MAX} directories, but {count} are given");
            return bad(text, "name the directories in the order in which they take turns");
        }
        if !(1..=UNIT_BYTES_MAX).contains(&self.unit_bytes) {
            let text = format!("the unit of a striped file is 1 B to {UNIT_BYTES_MAX} B, but {} B", self.unit_bytes);
            return bad(text, "64 KiB to some MiB suit disks");
        }
        Ok(())
    }

    /// Says whether these are stripes at all.
    ///
    /// # Errors
    /// When there is no directory, one twice, or the unit is none; when a directory does not exist.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_numbers()?;
        let mut seen = BTreeMap::new();
        for path in &self.directories {
            use std::os::unix::fs::MetadataExt;
            let Some(found) = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir) else {
                let text = format!("the directory '{}' does not exist", path.display());
                return Err(Fault::new(FaultKind::NotFound, text).hint("make the stripe directories beforehand"));
            };
            if let Some(other) = seen.insert((found.dev(), found.ino()), path) {
                let text = format!("'{}' and '{}' are the same directory", other.display(), path.display());
                return Err(
                    Fault::new(FaultKind::Invalid, text).hint("name another directory for each part of a striped file")
                );
            }
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        self.directories.len() as u64
    }

    /// How long the file in a directory is when the object has this length \[B\].
    pub(crate) fn bytes_in(&self, directory: usize, bytes: u64) -> u64 {
        let round = self.unit_bytes * self.count();
        let before = directory as u64 * self.unit_bytes;
        bytes / round * self.unit_bytes + (bytes % round).saturating_sub(before).min(self.unit_bytes)
    }

    /// The part of a range of the object that one directory holds, in rising order.
    pub(crate) fn held(&self, directory: usize, offset: u64, bytes: u64) -> impl Iterator<Item = Stripe> + use<> {
        let (unit, count, end) = (self.unit_bytes, self.count(), offset + bytes);
        let first = offset / unit;
        let turn = (directory as u64 + count - first % count) % count;
        (first + turn..).step_by(count as usize).take_while(move |number| bytes > 0 && number * unit < end).map(
            move |number| {
                let start = number * unit;
                let (low, high) = (start.max(offset), (start + unit).min(end));
                Stripe { skip: low - offset, local: number / count * unit + (low - start), bytes: high - low }
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripes(count: usize, unit_bytes: u64) -> Stripes {
        Stripes { directories: (0..count).map(|d| format!("/{d}").into()).collect(), unit_bytes }
    }

    #[test]
    fn every_byte_lies_where_the_formula_says() {
        for (count, unit) in (1..=5).flat_map(|count| [1, 2, 3, 7].map(|unit| (count, unit))) {
            let stripes = stripes(count, unit);
            let n = count as u64;
            for offset in 0..3 * unit * n {
                for bytes in 0..2 * unit * n + 2 {
                    let mut found = vec![None; bytes as usize];
                    for directory in 0..count {
                        let mut next = 0;
                        for stripe in stripes.held(directory, offset, bytes) {
                            assert!(stripe.bytes > 0 && stripe.local >= next);
                            next = stripe.local + stripe.bytes;
                            for i in 0..stripe.bytes {
                                let byte = &mut found[(stripe.skip + i) as usize];
                                assert_eq!(byte.replace((directory as u64, stripe.local + i)), None);
                            }
                        }
                    }
                    let formula = |o: u64| Some(((o / unit) % n, o / (unit * n) * unit + o % unit));
                    let expected: Vec<_> = (offset..offset + bytes).map(formula).collect();
                    assert_eq!(found, expected, "{count} directories, unit {unit}, {offset}+{bytes}");
                }
            }
            for bytes in 0..4 * unit * n {
                for directory in 0..count {
                    let held: u64 = stripes.held(directory, 0, bytes).map(|stripe| stripe.bytes).sum();
                    assert_eq!(stripes.bytes_in(directory, bytes), held);
                }
            }
        }
    }

    #[test]
    fn what_are_no_stripes_is_told() {
        let told = |stripes: Stripes| stripes.check().unwrap_err().to_string();
        assert!(told(stripes(0, 1)).contains("but 0 are given"));
        assert!(told(stripes(1, 0)).contains("but 0 B"));
        assert!(told(stripes(1, u64::MAX)).contains("hint:"));
        let here = std::env::temp_dir();
        let twice = Stripes { directories: vec![here.clone(), here.join(".")], unit_bytes: 1 };
        assert!(told(twice).contains("are the same directory"));
        let missing = Stripes { directories: vec![here.clone(), here.join("no-such-directory")], unit_bytes: 1 };
        assert!(told(missing).contains("no-such-directory' does not exist"));
    }
}
