//! The lock of HDF5's library on a file.

use crate::error::Error;

/// Whether the lock is honoured that HDF5's library has on a file that it has open, and taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileLocking {
    /// It is, and a file system without locks is an error.
    Always,
    /// It is where the file system has locks.
    BestEffort,
    /// It is not: whoever has the file open for writing is not noticed.
    Never,
}

impl FileLocking {
    /// The rule with this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<FileLocking, Error> {
        match name {
            "always" => Ok(FileLocking::Always),
            "best-effort" => Ok(FileLocking::BestEffort),
            "never" => Ok(FileLocking::Never),
            _ => Err(Error::invalid(format!("locking must be 'always', 'best-effort' or 'never', got '{name}'"))),
        }
    }

    /// What the variable of HDF5's library says.
    pub(crate) fn of_environment() -> FileLocking {
        match std::env::var("HDF5_USE_FILE_LOCKING").as_deref() {
            Ok("FALSE" | "0") => FileLocking::Never,
            Ok("BEST_EFFORT") => FileLocking::BestEffort,
            _ => FileLocking::Always,
        }
    }
}
