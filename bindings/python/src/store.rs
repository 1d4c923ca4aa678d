//! Zarr stores and steps.

use crate::arrays::{Local, RawSection, element, locals, section};
use crate::comm::{Comm, Report, Request};
use crate::errors::{kind, raise, raise_alone};
use crate::files::order;
use crate::layout::Held;
use crate::memory::Place;
use hyperslab::{
    Casting, Codecs, Direction, Exchange, Kind, Layout, Limits, Map, Mode, NewArray, Options, Planned, Preference,
    Strategy, Unready, Value, WriteAsk,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Durable, seconds to wait for arrival, for progress and for storage, buffer bytes, subchunk bytes, servers, strategy, exchange.
pub(crate) type RawOptions =
    (bool, (f64, f64, f64), Option<u64>, Option<u64>, Option<u32>, Option<String>, Option<String>);

/// Chunks, typical requests, stored kind, checksum, zstd level, fill value as JSON, dimension names, attributes as JSON,
/// overwrite, unsafe casting.
pub(crate) type RawNew = (
    Option<Vec<u64>>,
    Option<Vec<Option<u64>>>,
    Option<String>,
    bool,
    Option<i32>,
    Option<String>,
    Option<Vec<Option<String>>>,
    String,
    bool,
    bool,
);

/// Name, this rank's part, who holds what, and the part of the array.
type RawAsk = (String, Vec<Py<Local>>, Held, Option<RawSection>);

fn asks(raw: Vec<RawAsk>) -> Vec<WriteAsk> {
    let ask = |(name, arrays, held, part): RawAsk| WriteAsk {
        name,
        arrays: locals(arrays),
        holding: held.holding().into(),
        section: section(part),
    };
    raw.into_iter().map(ask).collect()
}

pub(crate) fn mode(name: &str) -> PyResult<Mode> {
    Mode::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "mode '{name}' is not one of r, r+, w, x\n  hint: r reads, r+ changes, w makes anew, x makes new only"
        ))
    })
}

fn strategy(name: Option<String>) -> PyResult<Option<Strategy>> {
    let parse = |name: String| {
        let known: Vec<&str> = Strategy::ALL.iter().map(|s| s.name()).collect();
        Strategy::from_name(&name).ok_or_else(|| {
            PyValueError::new_err(format!("there is no strategy '{name}'\n  hint: there are {}", known.join(", ")))
        })
    };
    name.map(parse).transpose()
}

pub(crate) fn options(raw: RawOptions) -> PyResult<Options> {
    let (durable, limits, buffer_bytes_max, subchunk_bytes, servers, name, exchange) = raw;
    let parse = |name: String| {
        Exchange::from_name(&name).ok_or_else(|| {
            PyValueError::new_err(format!("there is no exchange '{name}'\n  hint: there are all, sharers"))
        })
    };
    let exchange = exchange.map(parse).transpose()?;
    let limit = |seconds: f64| {
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            PyValueError::new_err(format!(
                "a limit of {seconds} s makes no sense\n  hint: give a number of seconds, 0 or more"
            ))
        })
    };
    let wish = Preference {
        strategy: strategy(name)?,
        exchange,
        servers,
        subchunk_bytes,
        buffer_bytes_max,
        ..Preference::default()
    };
    let (arrival, progress, storage) = (limit(limits.0)?, limit(limits.1)?, limit(limits.2)?);
    Ok(Options { durable, arrival, progress, storage, wish })
}

pub(crate) fn map(json: &str) -> PyResult<Map<String, Value>> {
    match serde_json::from_str(json) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(PyValueError::new_err("attributes must be a mapping of names to JSON values")),
    }
}

/// The rule for changes of the element type.
pub(crate) fn casting(unsafe_cast: bool) -> Casting {
    if unsafe_cast { Casting::Unsafe } else { Casting::SameKind }
}

fn new_array(raw: RawNew) -> PyResult<NewArray> {
    let (chunks, typical, kind, checksum, zstd, fill, dimension_names, attributes, overwrite, unsafe_cast) = raw;
    let kind = kind.map(|kind| element(&kind).map(|element| element.kind)).transpose()?;
    let codecs = match zstd {
        Some(level) => Codecs::zstd(level, checksum),
        None => Codecs::plain(checksum),
    };
    let fill = fill.map(|json| serde_json::from_str(&json)).transpose();
    let fill_value = fill.map_err(|error| PyValueError::new_err(format!("the fill value is no JSON: {error}")))?;
    Ok(NewArray {
        chunks,
        typical,
        kind,
        codecs: Some(codecs),
        fill_value,
        dimension_names,
        attributes: map(&attributes)?,
        overwrite,
        casting: casting(unsafe_cast),
    })
}

/// A group, until it is closed.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct Store(Mutex<Option<Inner>>);

/// A group of its own, or the group of a step.
enum Inner {
    Group(hyperslab::Store),
    Step(hyperslab::Step),
}

impl Inner {
    fn group(&self) -> hyperslab::Store {
        match self {
            Inner::Group(store) => store.clone(),
            Inner::Step(step) => step.group.clone(),
        }
    }
}

impl Store {
    fn lock(&self) -> MutexGuard<'_, Option<Inner>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs with the group, without the interpreter. Nobody waits for the handle meanwhile: another thread may use what is
    /// local.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut hyperslab::Store) -> Result<T, hyperslab::Error> + Send,
    ) -> PyResult<Result<T, hyperslab::Error>> {
        let result = py.detach(|| {
            let group = self.lock().as_ref().map(Inner::group);
            group.map(|mut group| run(&mut group))
        });
        result.ok_or_else(|| PyRuntimeError::new_err("the store is closed"))
    }

    /// A collective call: what goes wrong is known to all ranks.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut hyperslab::Store) -> Result<T, hyperslab::Error> + Send,
    ) -> PyResult<T> {
        self.run(py, run)?.map_err(|error| raise(py, error))
    }

    /// A local one: what goes wrong is this rank's own.
    fn with_local<T: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut hyperslab::Store) -> Result<T, hyperslab::Error> + Send,
    ) -> PyResult<T> {
        self.run(py, run)?.map_err(|error| raise_alone(py, error))
    }
}

/// Kind, shape, chunks, dimension names, attributes and fill value (as JSON).
type RawInfo = (String, Vec<u64>, Vec<u64>, Option<Vec<Option<String>>>, String, String);

fn raw_info(info: hyperslab::ArrayInfo) -> RawInfo {
    let metadata = info.metadata;
    let fill = hyperslab::fill_to_json(metadata.element, &metadata.fill_value).unwrap_or(Value::Null).to_string();
    let attributes = Value::Object(metadata.attributes).to_string();
    let kind: Kind = metadata.element;
    (kind.numpy_code().into(), metadata.shape, metadata.chunk_shape, metadata.dimension_names, attributes, fill)
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(name = "open")]
    fn open_place(py: Python<'_>, comm: &Comm, place: Place, name: &str, raw: RawOptions) -> PyResult<Store> {
        let (mode, options, comm) = (mode(name)?, options(raw)?, comm.0.clone());
        let opened = py.detach(move || hyperslab::Store::open(&comm, place, mode, options));
        opened.map(|store| Store(Mutex::new(Some(Inner::Group(store))))).map_err(|error| raise(py, error))
    }

    fn group(&self, py: Python<'_>, name: String) -> PyResult<Store> {
        let group = self.with(py, |store| store.group(&name))?;
        Ok(Store(Mutex::new(Some(Inner::Group(group)))))
    }

    fn path(&self, py: Python<'_>) -> PyResult<String> {
        self.with_local(py, |store| Ok(store.path().to_string_lossy().into_owned()))
    }

    fn arrays(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |store| store.arrays())
    }

    fn groups(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |store| store.groups())
    }

    fn removed(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |store| Ok(store.removed().to_vec()))
    }

    fn unfinished(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |store| Ok(store.unfinished().to_vec()))
    }

    fn consolidated_above(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_local(py, |store| Ok(store.consolidated_above().to_vec()))
    }

    /// Writes consolidated metadata of all nodes below the group.
    fn consolidate(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.consolidate())
    }

    fn attributes(&self, py: Python<'_>) -> PyResult<String> {
        self.with_local(py, |store| Ok(Value::Object(store.attributes().clone()).to_string()))
    }

    /// Kind, shape, chunks, dimension names, attributes and fill value (as JSON) of an array.
    fn info(&self, py: Python<'_>, name: &str) -> PyResult<RawInfo> {
        self.with_local(py, |store| store.info(name)).map(raw_info)
    }

    /// The same of several arrays, on all ranks.
    fn describe(&self, py: Python<'_>, names: Vec<String>, doing: &str, fresh: bool) -> PyResult<Vec<RawInfo>> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = self.with(py, |store| store.describe(&names, doing, fresh))?;
        Ok(found.into_iter().map(raw_info).collect())
    }

    /// Prefers a strategy from now on; returns the one preferred before.
    fn prefer(&self, py: Python<'_>, name: Option<String>) -> PyResult<Option<&'static str>> {
        let strategy = strategy(name)?;
        let before = py.detach(|| {
            let mut inner = self.lock();
            let store = match inner.as_mut()? {
                Inner::Group(store) => store,
                Inner::Step(step) => &mut step.group,
            };
            let before = store.preference().clone();
            store.set_preference(Preference { strategy, ..before.clone() });
            Some(before.strategy.map(Strategy::name))
        });
        before.ok_or_else(|| PyRuntimeError::new_err("the store is closed"))
    }

    fn write(&self, py: Python<'_>, raw: Vec<RawAsk>, new: RawNew) -> PyResult<Report> {
        let (asks, new) = (asks(raw), new_array(new)?);
        self.with(py, move |store| store.write(&asks, &new)).map(Report)
    }

    fn write_later(&self, py: Python<'_>, raw: Vec<RawAsk>, new: RawNew, staged: bool) -> PyResult<Request> {
        let (asks, new) = (asks(raw), new_array(new)?);
        self.with(py, move |store| Ok(store.write_later(asks, new, staged))).map(Request)
    }

    /// A request that fails on all ranks, since this one cannot make its call.
    fn attend_later(&self, py: Python<'_>, what: &str, name: &str, text: String, hint: String) -> PyResult<Request> {
        let why = Unready { kind: kind(name), text, hint };
        self.with(py, |store| Ok(store.attend_later(what, why))).map(Request)
    }

    /// Waits for all requests; raises what went wrong in those that nobody waited for.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.flush())
    }

    fn append(
        &self,
        py: Python<'_>,
        name: String,
        arrays: Vec<Py<Local>>,
        held: Held,
        axis: usize,
        unsafe_cast: bool,
    ) -> PyResult<Report> {
        let ask = WriteAsk::pieces(name, locals(arrays), held.holding());
        self.with(py, move |store| store.append(&ask, axis, casting(unsafe_cast))).map(Report)
    }

    /// Reads into the given arrays.
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
        let read = self.with(py, move |store| {
            store.read(&names, holding.as_ref(), part.as_ref(), Some(into), casting(unsafe_cast))
        });
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
        let read =
            self.with_local(py, move |store| store.read_local(name, part.as_ref(), Some(into), casting(unsafe_cast)));
        read.map(|(_, report)| Report(report))
    }

    /// What an array is that this rank is about to read alone.
    fn look_local(&self, py: Python<'_>, name: &str) -> PyResult<RawInfo> {
        self.with_local(py, |store| store.look_local(name)).map(raw_info)
    }

    /// Takes note of what others have made or removed.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |store| store.refresh())
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
        self.with(py, move |store| Ok(store.read_later(names, holding, part, Some(into), casting(unsafe_cast))))
            .map(Request)
    }

    fn step(&self, py: Python<'_>, name: &str, attributes: &str, hooked: bool) -> PyResult<Store> {
        let attributes = map(attributes)?;
        let step = self.with(py, |store| store.step(name, attributes, hooked))?;
        Ok(Store(Mutex::new(Some(Inner::Step(step)))))
    }

    /// Replaces the attributes of a step.
    fn set_attributes(&self, py: Python<'_>, attributes: &str) -> PyResult<()> {
        let attributes = map(attributes)?;
        let set = py.detach(|| match self.lock().as_mut() {
            Some(Inner::Step(step)) => {
                step.set_attributes(attributes);
                true
            }
            _ => false,
        });
        set.then_some(())
            .ok_or_else(|| PyRuntimeError::new_err("only a step that is being written has attributes to set"))
    }

    /// Gives a step up, without the other ranks, who know.
    fn discard(&self, py: Python<'_>) {
        py.detach(|| {
            let taken = self.lock().take();
            if let Some(Inner::Step(step)) = taken {
                step.discard();
            }
        });
    }

    /// Makes what was written to a step durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let result = py.detach(|| {
            let step = match self.lock().as_ref() {
                Some(Inner::Step(step)) => Some(step.clone()),
                _ => None,
            };
            step.map_or(Ok(()), |step| step.sync())
        });
        result.map_err(|error| raise(py, error))
    }

    /// Publishes a step, or closes a group; with a fault, gives the step up.
    fn close(&self, py: Python<'_>, fault: Option<String>) -> PyResult<()> {
        let result = py.detach(|| {
            let taken = self.lock().take();
            match taken {
                Some(Inner::Step(step)) => step.publish(fault),
                Some(Inner::Group(store)) => store.close(),
                None => Ok(()),
            }
        });
        result.map_err(|error| raise(py, error))
    }
}

/// How an array is stored: chunks of a Zarr array, or an order (C or F) and the bytes before the first array.
#[derive(FromPyObject)]
pub(crate) enum RawLayout {
    Zarr(RawNew),
    File((String, u64)),
}

/// A section, and the shape of the array that it is of.
type RawPart = (RawSection, Vec<u64>);

/// How arrays would be written or read: the text, and the same as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub(crate) fn explain(
    py: Python<'_>,
    names: Vec<String>,
    held: Vec<Held>,
    kind: &str,
    part: Option<RawPart>,
    layout: RawLayout,
    write: bool,
    raw: RawOptions,
    servers: Option<Vec<u32>>,
    node: (u32, u32),
    shown: (u32, u64),
) -> PyResult<(String, String)> {
    let planned = Planned {
        names,
        held: held.into_iter().map(Held::holding).collect(),
        element: element(kind)?,
        section: part.and_then(|(dims, shape)| Some((section(Some(dims))?, shape))),
        layout: match layout {
            RawLayout::Zarr(new) => Layout::Zarr(new_array(new)?.into()),
            RawLayout::File((name, header_bytes)) => Layout::Raw { order: order(&name)?, header_bytes },
        },
        direction: if write { Direction::Write } else { Direction::Read },
        servers,
        wish: options(raw)?.wish,
        machine: hyperslab::Machine { ranks_per_node: node.0, cores_per_node: node.1 },
        limits: Limits { ranks: shown.0, rounds: shown.1, ..Limits::default() },
    };
    let told = py.detach(|| hyperslab::explain(&planned)).map_err(|error| raise(py, error))?;
    Ok((told.to_string(), told.to_json().to_string()))
}

/// Removes what dead or unknown owners left of a store or file, or says what would be removed: kind, name, note.
#[pyfunction]
pub(crate) fn clean(py: Python<'_>, path: PathBuf, dry_run: bool) -> PyResult<Vec<(&'static str, String, String)>> {
    let cleaned = py.detach(|| hyperslab::clean(&hyperslab::Directory::new(path), dry_run));
    let cleaned = cleaned.map_err(|fault| raise_alone(py, fault.into()))?;
    Ok(cleaned.into_iter().map(|one| (one.kind, one.name, one.note)).collect())
}

/// Names of the strategies.
#[pyfunction]
pub(crate) fn strategies() -> Vec<&'static str> {
    Strategy::ALL.iter().map(|strategy| strategy.name()).collect()
}
