//! Keywords of Python's calls, as mappings that hold only those that are given, made into the options of the library.

use crate::arrays::{Local, RawSection, element, locals, section};
use crate::attributes::{RawAttributes, attributes_of};
use crate::errors::raise_alone;
use crate::layout::RawOwnership;
use hyperslab::binding::{casting_named, codecs_named, exchange_named, limit_of, strategy_named};
use hyperslab::{
    ArrayOptions, Codecs, Error, FileLocking, Mode, OpenOptions, Order, Preference, ReadOptions, Sections, ShardShape,
    Strategy, WriteOptions,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A struct of keywords, each given or not, and how a mapping is made into it: what is not given takes no time.
macro_rules! keywords {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name {
            $($(#[$of])* $field: Option<$type>,)*
        }

        impl<'py> FromPyObject<'_, 'py> for $name {
            type Error = PyErr;

            fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<$name> {
                let mut keywords = $name::default();
                for (key, value) in given.cast::<PyDict>()?.iter().filter(|(_, value)| !value.is_none()) {
                    match key.cast::<PyString>()?.to_str()? {
                        $(stringify!($field) => {
                            let taken: PyResult<$type> = value.extract().map_err(Into::into);
                            let taken = taken.map_err(|error| refused(stringify!($field), &value, error));
                            keywords.$field = Some(taken?);
                        })*
                        other => return Err(PyTypeError::new_err(format!("there is no keyword '{other}'"))),
                    }
                }
                Ok(keywords)
            }
        }
    };
}

/// What an option should be, for a value that cannot be taken for it.
fn refused(name: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let expected = match name {
        "durable" | "checksum" | "overwrite" => "True or False",
        "arrival_seconds" | "progress_seconds" | "storage_seconds" => "a number of seconds",
        "buffer_bytes" | "subchunk_bytes" | "servers" => "a whole number of 1 or more",
        "zstd" => "a whole number",
        "strategy" | "exchange" | "casting" => "a string",
        "dimension_names" => "a sequence of strings, or None, one for each dimension",
        "chunks" | "shards" | "maxshape" => "whole numbers, one for each dimension",
        _ => return error,
    };
    let given = value.repr().map_or_else(|_| "something else".into(), |given| given.to_string());
    raise_alone(value.py(), Error::invalid(format!("{name} must be {expected}, got {given}")))
}

/// A name of an array, a group or a step.
pub(crate) struct Name(pub(crate) String);

impl<'py> FromPyObject<'_, 'py> for Name {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Name> {
        let text = given.cast::<PyString>().map_err(|_| {
            let shown = given.repr().map_or_else(|_| "something else".into(), |shown| shown.to_string());
            raise_alone(given.py(), Error::invalid(format!("a name must be a string, got {shown}")))
        });
        Ok(Name(text?.to_str()?.to_owned()))
    }
}

/// A failure of this rank alone, for whoever tells the others.
fn alone<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| crate::errors::raise_alone(py, error))
}

keywords! {
/// Of an opening.
OpenKeywords {
    durable: bool,
    arrival_seconds: f64,
    progress_seconds: f64,
    storage_seconds: f64,
    buffer_bytes: u64,
    subchunk_bytes: u64,
    servers: u32,
    strategy: String,
    exchange: String,
    locking: String,
}
}

impl OpenKeywords {
    pub(crate) fn options(self, py: Python<'_>) -> PyResult<OpenOptions> {
        alone(py, self.checked())
    }

    fn checked(self) -> Result<OpenOptions, Error> {
        let mut options = OpenOptions::default();
        options.durable = self.durable.unwrap_or(options.durable);
        for (name, seconds, limit) in [
            ("arrival_seconds", self.arrival_seconds, &mut options.arrival),
            ("progress_seconds", self.progress_seconds, &mut options.progress),
            ("storage_seconds", self.storage_seconds, &mut options.storage),
        ] {
            if let Some(seconds) = seconds {
                *limit = limit_of(name, seconds)?;
            }
        }
        if self.servers == Some(0) {
            return Err(Error::invalid("servers must be a whole number of 1 or more, got 0"));
        }
        options.locking = self.locking.as_deref().map(locking_named).transpose()?;
        options.preference = Preference {
            strategy: self.strategy.as_deref().map(strategy_named).transpose()?,
            exchange: self.exchange.as_deref().map(exchange_named).transpose()?,
            servers: self.servers,
            subchunk_bytes: self.subchunk_bytes,
            buffer_bytes_max: self.buffer_bytes,
            ..Preference::default()
        };
        Ok(options)
    }
}

fn locking_named(name: &str) -> Result<FileLocking, Error> {
    match name {
        "always" => Ok(FileLocking::Always),
        "best-effort" => Ok(FileLocking::BestEffort),
        "never" => Ok(FileLocking::Never),
        _ => Err(Error::invalid(format!("locking must be True, False or 'best-effort', got '{name}'"))),
    }
}

keywords! {
/// Of a write.
WriteKeywords {
    /// One for each array.
    sections: Vec<RawSection>,
    chunks: Vec<u64>,
    shards: Vec<u64>,
    /// That no shards are wanted.
    unsharded: bool,
    /// Extents of typical requests.
    typical: Vec<Option<u64>>,
    dtype: String,
    checksum: bool,
    zstd: i32,
    /// As JSON, in place of both.
    codecs: String,
    /// How far datasets of HDF5 may grow.
    maxshape: Vec<Option<u64>>,
    /// As JSON.
    fill_value: String,
    dimension_names: Vec<Option<String>>,
    attributes: RawAttributes,
    /// Of each array, where they differ: names of dimensions, and attributes.
    each: Vec<(Option<Vec<Option<String>>>, Option<RawAttributes>)>,
    overwrite: bool,
    casting: String,
    strategy: String,
}
}

fn sections(each: Option<Vec<RawSection>>) -> Sections {
    each.map_or(Sections::Whole, |each| Sections::Each(each.into_iter().map(section).collect()))
}

impl WriteKeywords {
    pub(crate) fn options(self, py: Python<'_>) -> PyResult<WriteOptions> {
        let mut options = WriteOptions::default();
        options.section = sections(self.sections);
        (options.chunks, options.typical) = (self.chunks, self.typical);
        options.maxshape = self.maxshape;
        options.shards = match (self.shards, self.unsharded) {
            (Some(shape), _) => ShardShape::Given(shape),
            (None, Some(true)) => ShardShape::Never,
            (None, _) => ShardShape::Chosen,
        };
        options.element = self.dtype.as_deref().map(element).transpose()?;
        if self.codecs.is_some() && self.zstd.is_some() {
            let error = Error::invalid("codecs and zstd are both given").with_hint("name zstd among the codecs");
            return Err(raise_alone(py, error));
        }
        options.codecs = match (self.codecs, self.zstd, self.checksum) {
            (Some(json), ..) => Some(alone(py, codecs_named(&json))?),
            (None, None, None) => None,
            (None, None, Some(checksum)) => Some(Codecs::plain(checksum)),
            (None, Some(level), checksum) => Some(Codecs::zstd(level, checksum.unwrap_or(true))),
        };
        let fill = self.fill_value.map(|json| serde_json::from_str(&json)).transpose();
        let no_json = |error| PyValueError::new_err(format!("the fill value is no JSON: {error}"));
        options.fill_value = fill.map_err(no_json)?;
        options.dimension_names = self.dimension_names;
        options.attributes = self.attributes.map(attributes_of).transpose()?.unwrap_or_default();
        for (names, attributes) in self.each.unwrap_or_default() {
            let mut one = ArrayOptions::default();
            (one.dimension_names, one.attributes) = (names, attributes.map(attributes_of).transpose()?);
            options.each.push(one);
        }
        options.overwrite = self.overwrite.unwrap_or_default();
        if let Some(name) = self.casting {
            options.casting = alone(py, casting_named(&name))?;
        }
        options.strategy = alone(py, self.strategy.as_deref().map(strategy_named).transpose())?;
        Ok(options)
    }
}

keywords! {
/// Of a read.
ReadKeywords {
    dist: RawOwnership,
    /// Of each array, where they differ.
    dists: Vec<Option<RawOwnership>>,
    /// One for each array.
    sections: Vec<RawSection>,
    /// The arrays to read into.
    out: Vec<Py<Local>>,
    casting: String,
    strategy: String,
}
}

impl ReadKeywords {
    pub(crate) fn options(self, py: Python<'_>) -> PyResult<ReadOptions> {
        let mut options = ReadOptions::default();
        options.holding = self.dist.map(RawOwnership::holding);
        let each = self.dists.unwrap_or_default().into_iter();
        options.holdings = each.map(|held| held.map(RawOwnership::holding)).collect();
        options.section = sections(self.sections);
        options.into = self.out.map(locals);
        if let Some(name) = self.casting {
            options.casting = alone(py, casting_named(&name))?;
        }
        options.strategy = alone(py, self.strategy.as_deref().map(strategy_named).transpose())?;
        Ok(options)
    }
}

/// Names of the strategies.
#[pyfunction]
pub(crate) fn strategies() -> Vec<&'static str> {
    Strategy::ALL.iter().map(|strategy| strategy.name()).collect()
}

/// What the strategies do, a line each.
#[pyfunction]
pub(crate) fn strategy_help() -> String {
    Strategy::help(&Strategy::ALL)
}

pub(crate) fn mode(py: Python<'_>, name: &str) -> PyResult<Mode> {
    hyperslab::binding::mode_named(name).map_err(|error| raise_alone(py, error))
}

pub(crate) fn order(name: &str) -> PyResult<Order> {
    match name {
        "C" => Ok(Order::RowMajor),
        "F" => Ok(Order::ColumnMajor),
        _ => Err(PyValueError::new_err(format!("order '{name}' is neither 'C' (row-major) nor 'F' (column-major)"))),
    }
}
