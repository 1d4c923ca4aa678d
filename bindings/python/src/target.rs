//! What is open: Zarr groups and steps, raw and npy files.

use crate::any_target::AnyTarget;
use crate::arrays::{Local, element, locals};
use crate::attributes::{RawAttributes, attributes_of, told};
use crate::comm::{Comm, Report, Request};
use crate::described::{RawInfo, raw_info};
use crate::ending::{SharedTarget, opened};
use crate::errors::{RawUnready, raise, raise_alone};
use crate::interrupts::{call, call_with, later, unless_of_a_handler, waiting};
use crate::keyed;
use crate::layout::RawOwnership;
use crate::memory::Place;
use crate::options::{Name, OpenKeywords, ReadKeywords, WriteKeywords, mode, order};
use crate::plain::{Plain, PlainOpening};
use hyperslab::binding::Arrays;
use hyperslab::{
    ArrayWrite, AttributeEdit, Contents, Error, File, FileArray, Hdf5Options, NetcdfOptions, NetcdfVersion,
    ReadOptions, Store, WriteOptions,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{MutexGuard, OnceLock, PoisonError};

/// Name, this rank's part, and who holds what.
type RawAsk = (Name, Vec<Py<Local>>, Option<RawOwnership>);

fn ask((Name(name), arrays, held): RawAsk) -> ArrayWrite {
    ArrayWrite { name, arrays: locals(arrays), holding: held.map(RawOwnership::holding) }
}

/// What is open, from its opening until it is closed. Python makes one before it opens something, so that it can give up what a
/// handler of signals kept from its caller.
#[pyclass(frozen, module = "hyperslab._core")]
#[derive(Default)]
pub(crate) struct Target {
    inner: SharedTarget,
    /// Set when it is opened.
    known: OnceLock<KnownTarget>,
}

struct KnownTarget {
    path: String,
    is_step: bool,
}

impl From<AnyTarget> for Target {
    fn from(inner: AnyTarget) -> Target {
        let target = Target::default();
        target.hold(inner);
        target
    }
}

impl Target {
    /// It is open from now on.
    fn hold(&self, inner: AnyTarget) {
        let path = inner.arrays().path().to_string_lossy().into_owned();
        let (is_step, is_new) = (inner.is_step(), inner.is_new());
        let _ = self.known.set(KnownTarget { path, is_step });
        *self.lock() = Some(inner);
        // A step may have a hook of the user's, so whoever makes one says so.
        if is_new && !is_step {
            opened(&self.inner);
        }
    }

    /// Opens it, on all ranks. It is open also when a handler of signals raises something as soon as it is: the other ranks have
    /// it then.
    fn open_by(&self, py: Python<'_>, run: impl FnOnce() -> Result<AnyTarget, Error> + Send) -> PyResult<()> {
        call(py, || run().map(|inner| self.hold(inner)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<AnyTarget>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is open. Nobody waits for the handle meanwhile: another thread may use what is local.
    pub(crate) fn open(&self) -> PyResult<AnyTarget> {
        self.lock().clone().ok_or_else(|| {
            // It is closed on all ranks, so that all find this by themselves.
            let known = self.known.get();
            let (ended, hint) = match known.is_some_and(|known| known.is_step) {
                true => ("has ended", "move the call into the with block of the step"),
                false => ("is closed", "move the call into the with block, or open it again"),
            };
            let error = Error::invalid(format!("'{}' {ended}", self.path())).with_hint(hint);
            Python::attach(|py| raise(py, error))
        })
    }

    /// The error of something that only a group of Zarr has.
    fn no_group(&self) -> PyErr {
        let error = Error::unsupported(format!("'{}' is a file, which has no consolidated metadata", self.path()));
        Python::attach(|py| raise_alone(py, error.with_hint("leave it out: all metadata of a file are in the file")))
    }

    fn store(&self) -> PyResult<Store> {
        let group = self.open()?.store().cloned();
        group.ok_or_else(|| self.no_group())
    }

    pub(crate) fn file(&self) -> PyResult<File> {
        let file = self.open()?.file().cloned();
        file.ok_or_else(|| PyRuntimeError::new_err("a group is no file"))
    }

    /// A collective call, without the interpreter: what goes wrong is known to all ranks.
    fn with<T: Send>(&self, py: Python<'_>, run: impl FnOnce(&dyn Arrays) -> Result<T, Error> + Send) -> PyResult<T> {
        let inner = self.open()?;
        call(py, || run(inner.arrays())).inspect_err(|_| inner.fail())
    }

    /// The same of a group.
    fn with_store<T: Send>(&self, py: Python<'_>, run: impl FnOnce(&Store) -> Result<T, Error> + Send) -> PyResult<T> {
        let store = self.store()?;
        call(py, || run(&store))
    }

    /// A local call: what goes wrong is this rank's own.
    fn with_local<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&dyn Arrays) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let inner = self.open()?;
        call_with(py, || run(inner.arrays()), raise_alone)
    }
}

/// Name, shape and NumPy type of an array of a file.
type RawArray = (String, Vec<u64>, String);

/// What all have.
#[pymethods]
impl Target {
    #[new]
    fn new() -> Target {
        Target::default()
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    fn path(&self) -> &str {
        self.known.get().map_or("", |known| &known.path)
    }

    fn removed(&self) -> PyResult<Vec<String>> {
        Ok(self.open()?.arrays().removed().to_vec())
    }

    fn unfinished(&self) -> PyResult<Vec<String>> {
        Ok(self.open()?.arrays().unfinished())
    }

    fn passed_over(&self) -> PyResult<Vec<String>> {
        Ok(self.open()?.arrays().passed_over().to_vec())
    }

    /// Whether earlier runs, or other users, left something.
    fn left(&self) -> PyResult<bool> {
        Ok(!(self.removed()?.is_empty() && self.unfinished()?.is_empty() && self.passed_over()?.is_empty()))
    }

    fn write(&self, py: Python<'_>, asks: Vec<RawAsk>, keywords: WriteKeywords) -> PyResult<Report> {
        let (asks, options): (Vec<_>, _) = (asks.into_iter().map(ask).collect(), keywords.options(py)?);
        self.with(py, move |target| target.write(&asks, &options)).map(Report)
    }

    /// Writes arrays, where that is as plain as can be; else nothing happens, and nothing is returned.
    #[pyo3(signature = (name, array, dist, section=None))]
    fn write_plain(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        array: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
        section: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Report>> {
        let Some((each, opened)) = Plain::each(name, array, dist).zip(self.lock().clone()) else {
            return Ok(None);
        };
        let Some(section) = Plain::selected(&each, opened.file(), section) else { return Ok(None) };
        let options = WriteOptions::default().section(section);
        let ask = |Plain { name, held, local }| ArrayWrite { name, arrays: vec![local], holding: Some(held) };
        let asks: Vec<ArrayWrite> = each.into_iter().map(ask).collect();
        let written = call(py, || opened.arrays().write(&asks, &options)).inspect_err(|_| opened.fail());
        written.map(|report| Some(Report(report)))
    }

    /// Reads arrays of a file, where that is as plain as can be; else nothing happens, and nothing is returned.
    #[pyo3(signature = (name, dist, out, section=None))]
    fn read_plain(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        dist: &Bound<'_, PyAny>,
        out: &Bound<'_, PyAny>,
        section: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Report>> {
        let Some((each, opened)) = Plain::into(name, dist, out).zip(self.lock().clone()) else { return Ok(None) };
        // Of a group all ranks would first ask what its arrays are.
        let section = opened.file().and_then(|file| Plain::selected(&each, Some(file), section));
        let Some(section) = section else { return Ok(None) };
        let holdings = each.iter().map(|one| Some(one.held.clone())).collect();
        let (names, locals): (Vec<_>, Vec<_>) = each.into_iter().map(|one| (one.name, one.local)).unzip();
        let mut options = ReadOptions::default().section(section).into(locals);
        options.holdings = holdings;
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        call(py, || opened.arrays().read(&names, options)).map(|(_, report)| Some(Report(report)))
    }

    /// Several writes as one call.
    fn write_together(&self, py: Python<'_>, writes: Vec<(Vec<RawAsk>, WriteKeywords)>) -> PyResult<Report> {
        let (mut asks, mut each) = (Vec::new(), Vec::with_capacity(writes.len()));
        for (of_one, keywords) in writes {
            each.push((of_one.len(), keywords.options(py)?));
            asks.extend(of_one.into_iter().map(ask));
        }
        let options = WriteOptions::together(each).map_err(|error| raise_alone(py, error))?;
        self.with(py, move |target| target.write(&asks, &options)).map(Report)
    }

    fn write_later(
        &self,
        py: Python<'_>,
        asks: Vec<RawAsk>,
        keywords: WriteKeywords,
        staged: bool,
    ) -> PyResult<Request> {
        let (asks, options) = (asks.into_iter().map(ask).collect(), keywords.options(py)?);
        self.with(py, move |target| Ok(later(|| target.write_later(asks, options, staged)))).map(Request)
    }

    /// Reads into the given arrays.
    fn read(&self, py: Python<'_>, names: Vec<Name>, keywords: ReadKeywords) -> PyResult<Report> {
        let options = keywords.options(py)?;
        let names: Vec<&str> = names.iter().map(|Name(name)| name.as_str()).collect();
        self.with(py, move |target| target.read(&names, options)).map(|(_, report)| Report(report))
    }

    fn read_later(&self, py: Python<'_>, names: Vec<String>, keywords: ReadKeywords) -> PyResult<Request> {
        let options = keywords.options(py)?;
        self.with(py, move |target| Ok(later(|| target.read_later(names, options)))).map(Request)
    }

    /// Reads all of an array, or of a section, into the given array, by this rank alone.
    fn read_local(&self, py: Python<'_>, name: &str, keywords: ReadKeywords) -> PyResult<Report> {
        let options = keywords.options(py)?;
        self.with_local(py, |target| target.read_local(name, options)).map(|(_, report)| Report(report))
    }

    /// Reads what a key selects of an array of this shape and type, or elements by their numbers, by this rank alone, if all that
    /// needs is at rest; else `None`.
    fn read_at_rest<'py>(
        &self,
        array: keyed::ArrayAsked<'py>,
        key: &Bound<'py, PyAny>,
        listed: bool,
    ) -> keyed::Read<'py> {
        let read = if listed { keyed::read_elements } else { keyed::read };
        self.open().map_or(Ok(None), |inner| read(&inner, &array, key))
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    fn attend_later(&self, py: Python<'_>, what: &str, why: RawUnready) -> PyResult<Request> {
        self.with(py, |target| Ok(later(|| target.attend_later(what, why.into())))).map(Request)
    }

    /// Gives a step or a new file up, without the other ranks, who know.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || {
            let taken = self.lock().take();
            taken.into_iter().for_each(AnyTarget::discard);
        })
    }

    /// Publishes a step or a new file, or closes what is there; with a fault, gives it up.
    fn close(&self, py: Python<'_>, fault: Option<String>) -> PyResult<()> {
        call(py, || {
            let taken = self.lock().take();
            taken.map_or(Ok(()), |opened| opened.end(fault))
        })
    }

    fn open_group(
        &self,
        py: Python<'_>,
        comm: &Comm,
        place: Place,
        mode_name: &str,
        keywords: OpenKeywords,
    ) -> PyResult<()> {
        let (mode, options, comm) = (mode(py, mode_name)?, keywords.options(py)?, comm.0.clone());
        self.open_by(py, move || Store::open(&comm, place, mode, options).map(AnyTarget::Group))
    }

    fn group(&self, py: Python<'_>, name: Name) -> PyResult<Target> {
        let opened = self.open()?;
        call(py, || opened.group(&name.0)).map(Target::from)
    }

    /// Names of the arrays of a group.
    fn arrays(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |target| target.names())
    }

    /// Whether this rank can say by itself what an array is.
    fn can_look_at(&self, name: Name) -> PyResult<bool> {
        Ok(self.open()?.arrays().can_look_at(&name.0))
    }

    fn has(&self, py: Python<'_>, name: Name) -> PyResult<bool> {
        self.with_local(py, |target| target.has(&name.0))
    }

    fn groups(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |target| target.groups())
    }

    /// What lies in a file and is no array that can be read here: name, why, and whether it is damaged.
    fn others(&self) -> PyResult<Vec<(String, String, bool)>> {
        let Ok(file) = self.file() else { return Ok(Vec::new()) };
        Ok(file.others().into_iter().map(|(name, other)| (name, other.why, other.damaged)).collect())
    }

    /// Whether it is an HDF5 file that a library of netCDF-4 made.
    fn is_netcdf4(&self) -> PyResult<bool> {
        Ok(self.open()?.file().is_some_and(File::is_netcdf4))
    }

    fn consolidated_above(&self) -> PyResult<Vec<String>> {
        Ok(self.store()?.consolidated_above().to_vec())
    }

    /// Writes consolidated metadata of all nodes below the group.
    fn consolidate(&self, py: Python<'_>) -> PyResult<()> {
        self.with_store(py, Store::consolidate)
    }

    fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(told(py, &self.open()?.attributes()))
    }

    /// Kind, shape, chunks, shards, dimension names, attributes, fill value and codecs of an array.
    fn info(&self, py: Python<'_>, name: Name) -> PyResult<RawInfo> {
        self.with_local(py, |target| target.look_at(&name.0)).map(|info| raw_info(py, info))
    }

    /// The same of several arrays, on all ranks.
    fn describe(&self, py: Python<'_>, names: Vec<Name>, doing: &str, fresh: bool) -> PyResult<Vec<RawInfo>> {
        let names: Vec<&str> = names.iter().map(|Name(name)| name.as_str()).collect();
        let found = self.with(py, |target| target.look_at_all(&names, doing, fresh))?;
        Ok(found.into_iter().map(|info| raw_info(py, info)).collect())
    }

    /// What an array is that this rank is about to read alone.
    fn look_local(&self, py: Python<'_>, name: Name) -> PyResult<RawInfo> {
        self.with_local(py, |target| target.look_at_settled(&name.0)).map(|info| raw_info(py, info))
    }

    /// Waits for all requests, raises what went wrong in those that nobody waited for, and `publishes` what is whole or not.
    fn flush(&self, py: Python<'_>, publishes: bool) -> PyResult<()> {
        self.with(py, |target| if publishes { target.flush() } else { target.settle() })
    }

    /// Takes note of what others have made or removed.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |target| target.refresh())
    }

    fn append(&self, py: Python<'_>, added: Vec<RawAsk>, axis: usize, keywords: WriteKeywords) -> PyResult<Report> {
        let (added, options): (Vec<_>, _) = (added.into_iter().map(ask).collect(), keywords.options(py)?);
        self.with(py, move |target| target.append(&added, axis, &options)).map(Report)
    }

    /// Begins a step of what is open above it.
    fn begin_step(
        &self,
        py: Python<'_>,
        above: &Target,
        name: Name,
        attributes: RawAttributes,
        hooked: bool,
    ) -> PyResult<()> {
        let attributes = attributes_of(attributes)?;
        let above = above.open()?;
        self.open_by(py, || above.step(&name.0, &attributes, hooked))?;
        if !hooked {
            opened(&self.inner);
        }
        Ok(())
    }

    /// Changes attributes of an array, or of what is open where the name is empty; with those that are set.
    fn edit_attributes(
        &self,
        py: Python<'_>,
        name: &str,
        values: RawAttributes,
        removed: Vec<String>,
        clear: bool,
    ) -> PyResult<()> {
        let edit = AttributeEdit { set: attributes_of(values)?, removed, clear };
        let opened = self.open()?;
        call(py, || opened.edit_attributes(name, &edit))
    }

    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |target| target.delete(name))
    }

    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        self.with(py, |target| target.rename(old, new))
    }

    fn resize(&self, py: Python<'_>, name: &str, shape: Vec<u64>) -> PyResult<()> {
        self.with(py, |target| target.resize(name, &shape))
    }

    fn make_group(&self, py: Python<'_>, name: &str, attributes: RawAttributes, may_exist: bool) -> PyResult<Target> {
        let attributes = attributes_of(attributes)?;
        let opened = self.open()?;
        call(py, || opened.make_group(name, &attributes, may_exist)).map(Target::from)
    }

    /// Names of the published steps of a group.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let opened = self.open()?;
        call_with(py, || opened.steps(), raise_alone)
    }

    /// Makes what was written to a step durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let opened = self.open()?;
        call(py, || opened.sync())
    }

    /// Opens a raw file, where that is as plain as can be; else nothing happens, and it says so.
    #[allow(clippy::too_many_arguments, reason = "as Python calls it")]
    fn open_plain(
        &self,
        py: Python<'_>,
        comm: &Comm,
        path: &Bound<'_, PyAny>,
        mode: &Bound<'_, PyAny>,
        order: &Bound<'_, PyAny>,
        header: &Bound<'_, PyAny>,
        arrays: &Bound<'_, PyAny>,
        durable: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let path = match path.extract() {
            Ok(path) => path,
            // A path may be an object of Python's.
            Err(error) => return unless_of_a_handler(py, error).map(|_| false),
        };
        let opening = PlainOpening::of((path, mode, durable), (order, header, arrays));
        let opened = opening.map(|opening| self.open_by(py, || opening.open(&comm.0).map(AnyTarget::File)));
        Ok(opened.transpose()?.is_some())
    }

    #[allow(clippy::too_many_arguments, reason = "as Python calls it")]
    fn open_file(
        &self,
        py: Python<'_>,
        comm: &Comm,
        place: Place,
        mode_name: &str,
        keywords: OpenKeywords,
        order_name: &str,
        header: Vec<u8>,
        header_bytes: u64,
        arrays: Vec<RawArray>,
    ) -> PyResult<()> {
        let (mode, options, comm) = (mode(py, mode_name)?, keywords.options(py)?, comm.0.clone());
        let order = order(order_name)?;
        let arrays =
            arrays.into_iter().map(|(name, shape, kind)| Ok(FileArray { name, shape, element: element(&kind)? }));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        self.open_by(py, move || {
            let contents = Contents { order, header, header_bytes, arrays };
            File::open(&comm, place, mode, options, contents).map(AnyTarget::File)
        })
    }

    /// Opens a NetCDF classic file; of a new one, its version, the name of the dimension that grows, and attributes.
    fn open_netcdf(
        &self,
        py: Python<'_>,
        comm: &Comm,
        place: Place,
        mode_name: &str,
        keywords: OpenKeywords,
        new: (Option<String>, Option<String>, RawAttributes),
    ) -> PyResult<()> {
        let (mode, opening, comm) = (mode(py, mode_name)?, keywords.options(py)?, comm.0.clone());
        let mut options = NetcdfOptions::default().attributes(attributes_of(new.2)?);
        let unknown = |name: &String| PyValueError::new_err(format!("there is no version '{name}' of NetCDF classic"));
        let version = new.0.as_ref().map(|name| NetcdfVersion::named(name).ok_or_else(|| unknown(name)));
        (options.version, options.unlimited) = (version.transpose()?, new.1);
        self.open_by(py, move || File::open_netcdf(&comm, place, mode, opening, options).map(AnyTarget::File))
    }

    /// Attributes of a new file, of which format it is, and names of dimensions that may grow.
    fn open_hdf5(
        &self,
        py: Python<'_>,
        comm: &Comm,
        place: Place,
        mode_name: &str,
        keywords: OpenKeywords,
        new: (RawAttributes, String, Vec<String>),
    ) -> PyResult<()> {
        let (mode, opening, comm) = (mode(py, mode_name)?, keywords.options(py)?, comm.0.clone());
        let options = Hdf5Options::default().attributes(attributes_of(new.0)?).unlimited(new.2);
        let options = match new.1.as_str() {
            "netcdf4" => options.netcdf(),
            "netcdf4_classic" => options.netcdf_classic(),
            _ => options,
        };
        self.open_by(py, move || File::open_hdf5(&comm, place, mode, opening, options).map(AnyTarget::File))
    }

    fn open_npy(&self, py: Python<'_>, comm: &Comm, place: Place, keywords: OpenKeywords) -> PyResult<()> {
        let (options, comm) = (keywords.options(py)?, comm.0.clone());
        self.open_by(py, move || File::open_npy(&comm, place, options).map(AnyTarget::File))
    }

    fn header(&self) -> PyResult<Vec<u8>> {
        Ok(self.file()?.header())
    }

    /// Name, shape and NumPy type of each array of a file.
    fn file_arrays(&self) -> PyResult<Vec<RawArray>> {
        let describe = |array: &FileArray| (array.name.clone(), array.shape.clone(), array.element.numpy());
        Ok(self.file()?.arrays().iter().map(describe).collect())
    }
}

/// Writes a whole new npy file.
#[pyfunction]
pub(crate) fn save_npy(
    py: Python<'_>,
    comm: &Comm,
    place: Place,
    added: RawAsk,
    order_name: &str,
    opening: OpenKeywords,
    writing: WriteKeywords,
) -> PyResult<Report> {
    let (added, order, comm) = (ask(added), order(order_name)?, comm.0.clone());
    let (opening, writing) = (opening.options(py)?, writing.options(py)?);
    call(py, move || File::save_npy(&comm, place, added, order, opening, &writing)).map(Report)
}

/// Removes what dead or unknown owners left of a store or file, or says what would be removed: kind, name, note.
#[pyfunction]
pub(crate) fn clean(py: Python<'_>, path: PathBuf, dry_run: bool) -> PyResult<Vec<(&'static str, String, String)>> {
    let cleaned = py.detach(|| hyperslab::clean(&hyperslab::Directory::new(path), dry_run));
    let cleaned = cleaned.map_err(|fault| raise_alone(py, fault.into()))?;
    Ok(cleaned.into_iter().map(|one| (one.kind, one.name, one.note)).collect())
}
