//! Stores in memory, and where things are stored.

use crate::errors::raise_alone;
use hyperslab::{Location, MemoryTree, Names, Striped};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// A tree of files in the memory of this process.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Memory(MemoryTree);

#[pymethods]
impl Memory {
    #[new]
    fn new() -> Memory {
        Memory(MemoryTree::new())
    }

    /// The absolute name of a name in it.
    fn full(&self, name: &str) -> String {
        self.0.below(name).to_string()
    }

    /// Length of a file [B], `None` when there is no such file.
    fn length(&self, name: &str) -> Option<u64> {
        self.0.length(name)
    }

    /// Names and lengths [B] of all files.
    fn lengths(&self, py: Python<'_>) -> Vec<(String, u64)> {
        py.detach(|| self.0.lengths())
    }

    /// The bytes of a file, `None` when there is no such file.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.0.length(name).is_none() {
            return Ok(None);
        }
        let read = py.detach(|| self.0.read_prefix(name, u64::MAX)).map_err(|fault| raise_alone(py, fault.into()))?;
        Ok(read.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Writes a whole file, and makes the directories above it.
    fn put(&self, py: Python<'_>, name: &str, content: &[u8]) -> PyResult<()> {
        let written = self.0.below(name).resolve().and_then(|_| {
            if let Some((above, _)) = name.trim_end_matches('/').rsplit_once('/') {
                self.0.make(above)?;
            }
            self.0.write(name, content, false)
        });
        written.map_err(|fault| raise_alone(py, fault.into()))
    }

    /// Removes a file, or a directory with all that is in it; returns whether it was there.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let there = self.0.exists(name);
        py.detach(|| self.0.remove(name)).map_err(|fault| raise_alone(py, fault.into()))?;
        Ok(there)
    }
}

/// Where something is stored, as the public package gives it.
#[derive(FromPyObject)]
pub(crate) enum Place {
    Memory(Py<Memory>, String),
    Striped(Vec<PathBuf>, String, u64),
    Path(PathBuf),
}

impl From<Place> for Location {
    fn from(place: Place) -> Location {
        match place {
            Place::Memory(memory, name) => Location::Memory(memory.get().0.below(&name)),
            Place::Striped(directories, name, unit_bytes) => Striped { directories, unit_bytes, name }.into(),
            Place::Path(path) => Location::Path(path),
        }
    }
}
