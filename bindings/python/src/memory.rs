//! Stores and object stores in memory, and where things are stored.

use crate::errors::{not_pickled, raise_alone};
use hyperslab::{BucketNames, Cleaned, Death, Location, MemoryTree, Names, ObjectMemory, Striped, Trouble, clean};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::time::Duration;

/// A tree of files in the memory of this process.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Memory(MemoryTree);

#[pymethods]
impl Memory {
    /// Refuses to be pickled.
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled(
            "a store in memory",
            "it is in this process only: copy it to a path, and open that where it lands",
        ))
    }

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

/// An object store in the memory of this process, as one program sees it.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct MemoryObjects(ObjectMemory);

impl MemoryObjects {
    fn names(&self) -> BucketNames {
        BucketNames::from(&self.0)
    }
}

#[pymethods]
impl MemoryObjects {
    #[new]
    fn new() -> MemoryObjects {
        MemoryObjects(ObjectMemory::new())
    }

    /// The same objects, as another program sees them.
    fn program(&self) -> MemoryObjects {
        MemoryObjects(self.0.program())
    }

    /// The absolute name of a key.
    fn full(&self, name: &str) -> String {
        self.0.below(name).to_string()
    }

    /// Length of an object [B], `None` when there is no such object.
    fn length(&self, name: &str) -> Option<u64> {
        self.names().length(name)
    }

    /// Keys and lengths [B] of all objects.
    fn lengths(&self, py: Python<'_>) -> Vec<(String, u64)> {
        py.detach(|| self.0.lengths())
    }

    /// The bytes of an object, `None` when there is no such object.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let read = py.detach(|| self.names().read_prefix(name, u64::MAX));
        let read = read.map_err(|fault| raise_alone(py, fault.into()))?;
        Ok(read.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Puts a whole object.
    fn put(&self, py: Python<'_>, name: &str, content: &[u8]) -> PyResult<()> {
        let names = BucketNames::from(&self.0.below(name));
        let written = names.resolve().and_then(|_| names.write("", content, false));
        written.map_err(|fault| raise_alone(py, fault.into()))
    }

    /// Deletes an object, or all whose keys begin with this name and a slash; returns whether there was one.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let there = self.names().exists(name);
        py.detach(|| self.names().remove(name)).map_err(|fault| raise_alone(py, fault.into()))?;
        Ok(there)
    }

    /// Stops this program at its first change after so many.
    fn stop(&self, after: u64) {
        self.0.stop(after);
    }

    /// Waits until this program is stopped, at most so long [s]; returns whether it is.
    fn wait_stopped(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        py.detach(|| self.0.wait_stopped(limit))
    }

    /// Lets this program go on.
    fn go_on(&self) {
        self.0.go_on();
    }

    /// Lets this program die after so many more changes.
    fn dies(&self, after: u64, late: bool, known: bool) {
        self.0.dies(Death { after, late, known });
    }

    /// Whether this program has died.
    fn is_dead(&self) -> bool {
        self.0.is_dead()
    }

    /// Lets a change be carried out late, or its reply be lost: that with this number from now on, from 0.
    fn disturb(&self, number: u64, late: bool) {
        self.0.disturb(number, if late { Trouble::Late } else { Trouble::Lost });
    }

    /// The same for so many of a thousand changes, by chance.
    fn disturb_by_chance(&self, seed: u64, of_thousand: u32) {
        self.0.disturb_by_chance(seed, of_thousand);
    }

    /// Carries out the changes that are late; returns how many.
    fn deliver(&self) -> usize {
        self.0.deliver()
    }

    /// What this program asked to change, in words.
    fn changes(&self) -> Vec<String> {
        self.0.changes()
    }

    /// Removes what owners left of a store who do not live for certain: kind, name, note.
    fn clean(&self, py: Python<'_>, name: &str, dry_run: bool) -> PyResult<Vec<(&'static str, String, String)>> {
        let cleaned = py.detach(|| clean(&BucketNames::from(&self.0.below(name)), dry_run));
        let cleaned = cleaned.map_err(|fault| raise_alone(py, fault.into()))?;
        Ok(cleaned.into_iter().map(|Cleaned { kind, name, note }| (kind, name, note)).collect())
    }
}

/// Where something is stored, as the public package gives it.
#[derive(FromPyObject)]
pub(crate) enum Place {
    Memory(Py<Memory>, String),
    Objects(Py<MemoryObjects>, String),
    Striped(Vec<PathBuf>, String, u64),
    Path(PathBuf),
}

impl From<Place> for Location {
    fn from(place: Place) -> Location {
        match place {
            Place::Memory(memory, name) => Location::Memory(memory.get().0.below(&name)),
            Place::Objects(objects, name) => Location::Objects(objects.get().0.below(&name)),
            Place::Striped(directories, name, unit_bytes) => Striped { directories, unit_bytes, name }.into(),
            Place::Path(path) => Location::Path(path),
        }
    }
}
