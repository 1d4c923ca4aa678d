//! Raw and npy files.

use crate::arrays::{Local, RawSection, element, locals, section};
use crate::comm::{Comm, Report, Request};
use crate::errors::{kind as fault_kind, raise, raise_alone};
use crate::layout::Held;
use crate::memory::Place;
use crate::store::{RawOptions, casting, mode, options};
use hyperslab::{Contents, FileArray, Order, Unready};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) fn order(name: &str) -> PyResult<Order> {
    match name {
        "C" => Ok(Order::RowMajor),
        "F" => Ok(Order::ColumnMajor),
        _ => Err(PyValueError::new_err(format!("order '{name}' is neither 'C' (row-major) nor 'F' (column-major)"))),
    }
}

/// A file of arrays, until it is closed.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct RawFile(Mutex<Option<hyperslab::RawFile>>);

impl RawFile {
    fn lock(&self) -> MutexGuard<'_, Option<hyperslab::RawFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut hyperslab::RawFile) -> Result<T, hyperslab::Error> + Send,
    ) -> PyResult<T> {
        // Nobody waits for the handle meanwhile: another thread may use what is local.
        let result = py.detach(|| {
            let file = self.lock().clone();
            file.map(|mut file| run(&mut file))
        });
        match result {
            Some(result) => result.map_err(|error| raise(py, error)),
            None => Err(PyRuntimeError::new_err("the file is closed")),
        }
    }
}

#[pymethods]
impl RawFile {
    #[staticmethod]
    #[pyo3(name = "open")]
    #[allow(clippy::too_many_arguments)]
    fn open_place(
        py: Python<'_>,
        comm: &Comm,
        place: Place,
        name: &str,
        raw: RawOptions,
        order_name: &str,
        header: Vec<u8>,
        header_bytes: u64,
        arrays: Vec<(String, Vec<u64>, String)>,
    ) -> PyResult<RawFile> {
        let (mode, options, order, comm) = (mode(name)?, options(raw)?, order(order_name)?, comm.0.clone());
        let arrays =
            arrays.into_iter().map(|(name, shape, kind)| Ok(FileArray { name, shape, element: element(&kind)? }));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        let opened = py.detach(move || {
            let contents = Contents { order, header: &header, header_bytes, arrays: &arrays };
            hyperslab::RawFile::open(&comm, place, mode, options, contents)
        });
        opened.map(|file| RawFile(Mutex::new(Some(file)))).map_err(|error| raise(py, error))
    }

    #[staticmethod]
    fn open_npy(py: Python<'_>, comm: &Comm, place: Place, raw: RawOptions) -> PyResult<RawFile> {
        let (options, comm) = (options(raw)?, comm.0.clone());
        let opened = py.detach(move || hyperslab::RawFile::open_npy(&comm, place, options));
        opened.map(|file| RawFile(Mutex::new(Some(file)))).map_err(|error| raise(py, error))
    }

    fn header(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        self.with(py, |file| Ok(file.header().to_vec()))
    }

    fn path(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |file| Ok(file.path().to_string_lossy().into_owned()))
    }

    fn removed(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |file| Ok(file.removed().to_vec()))
    }

    fn unfinished(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |file| Ok(file.unfinished().to_vec()))
    }

    /// Name, shape and NumPy type of each array.
    fn arrays(&self, py: Python<'_>) -> PyResult<Vec<(String, Vec<u64>, String)>> {
        let describe = |array: &FileArray| (array.name.clone(), array.shape.clone(), array.element.numpy());
        self.with(py, |file| Ok(file.arrays().iter().map(describe).collect()))
    }

    fn write(
        &self,
        py: Python<'_>,
        arrays: Vec<(String, Vec<Py<Local>>)>,
        held: Held,
        kind: Option<String>,
        part: Option<RawSection>,
        unsafe_cast: bool,
    ) -> PyResult<Report> {
        let kind = kind.map(|kind| element(&kind)).transpose()?;
        let arrays: Vec<_> = arrays.into_iter().map(|(name, arrays)| (name, locals(arrays))).collect();
        let (holding, part) = (held.holding(), section(part));
        self.with(py, move |file| file.write(&arrays, &holding, kind, part.as_ref(), casting(unsafe_cast))).map(Report)
    }

    fn read(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        held: Option<Held>,
        part: Option<RawSection>,
        into: Vec<Py<Local>>,
        unsafe_cast: bool,
    ) -> PyResult<Report> {
        let (into, holding, part) = (locals(into), held.map(Held::holding), section(part));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let read = self
            .with(py, move |file| file.read(&names, holding.as_ref(), part.as_ref(), Some(into), casting(unsafe_cast)));
        read.map(|(_, report)| Report(report))
    }

    /// Reads all of an array, or of a section, into the given array, by this rank alone.
    fn read_local(
        &self,
        py: Python<'_>,
        name: &str,
        part: Option<RawSection>,
        into: Vec<Py<Local>>,
        unsafe_cast: bool,
    ) -> PyResult<Report> {
        let (into, part) = (locals(into), section(part));
        let result = py.detach(|| {
            let file = self.lock().clone();
            file.map(|file| file.read_local(name, part.as_ref(), Some(into), casting(unsafe_cast)))
        });
        match result {
            Some(read) => read.map(|(_, report)| Report(report)).map_err(|error| raise_alone(py, error)),
            None => Err(PyRuntimeError::new_err("the file is closed")),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "as Python calls it")]
    fn write_later(
        &self,
        py: Python<'_>,
        arrays: Vec<(String, Vec<Py<Local>>)>,
        held: Held,
        kind: Option<String>,
        part: Option<RawSection>,
        staged: bool,
        unsafe_cast: bool,
    ) -> PyResult<Request> {
        let kind = kind.map(|kind| element(&kind)).transpose()?;
        let arrays: Vec<_> = arrays.into_iter().map(|(name, arrays)| (name, locals(arrays))).collect();
        let (holding, part) = (held.holding(), section(part));
        self.with(py, move |file| Ok(file.write_later(arrays, holding, kind, part, staged, casting(unsafe_cast))))
            .map(Request)
    }

    fn read_later(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        held: Option<Held>,
        part: Option<RawSection>,
        into: Vec<Py<Local>>,
        unsafe_cast: bool,
    ) -> PyResult<Request> {
        let (into, holding, part) = (locals(into), held.map(Held::holding), section(part));
        self.with(py, move |file| Ok(file.read_later(names, holding, part, Some(into), casting(unsafe_cast))))
            .map(Request)
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    fn attend_later(&self, py: Python<'_>, what: &str, name: &str, text: String, hint: String) -> PyResult<Request> {
        let why = Unready { kind: fault_kind(name), text, hint };
        self.with(py, |file| Ok(file.attend_later(what, why))).map(Request)
    }

    /// Gives a new file up, without the other ranks, who know.
    fn discard(&self, py: Python<'_>) {
        py.detach(|| {
            let taken = self.lock().take();
            if let Some(file) = taken {
                file.discard();
            }
        });
    }

    fn close(&self, py: Python<'_>, fault: Option<String>) -> PyResult<()> {
        let result = py.detach(|| {
            let taken = self.lock().take();
            taken.map_or(Ok(()), |file| file.close(fault))
        });
        result.map_err(|error| raise(py, error))
    }
}

/// Writes a whole new npy file.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn save_npy(
    py: Python<'_>,
    comm: &Comm,
    place: Place,
    arrays: Vec<Py<Local>>,
    held: Held,
    kind: &str,
    order_name: &str,
    raw: RawOptions,
    unsafe_cast: bool,
) -> PyResult<Report> {
    let (arrays, element, order, options) = (locals(arrays), element(kind)?, order(order_name)?, options(raw)?);
    let (comm, holding) = (comm.0.clone(), held.holding());
    let (rule, kind) = (casting(unsafe_cast), (element, order));
    let saved = py.detach(move || hyperslab::RawFile::save_npy(&comm, place, arrays, &holding, kind, options, rule));
    saved.map(Report).map_err(|error| raise(py, error))
}
