//! What may be said of an opening, a write and a read, with what holds where nothing is said. Every door fills these.

mod locking;
mod together;

pub use locking::FileLocking;

use crate::contents::Contents;
use crate::error::format_fault;
use crate::format::Format;
use crate::mode::Mode;
use crate::said::{self, NOT_GIVEN, quoted, truth};
use crate::selection::Sections;
use hyperslab_collective::{Compared, Fields, LocalArray, Ownership};
use hyperslab_format::attribute::Attributes;
use hyperslab_format::zarr::{Codecs, Value};
use hyperslab_layout::{Casting, ElementType, tuple};
use hyperslab_plan::{Exchange, Preference, Strategy};
use hyperslab_world::{Fault, FaultKind};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Sets a field, for calls in a row.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $type) -> Self {
            self.$field = $value;
            self
        }
    )*};
}

/// How a store or a file is opened.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Whether what is published is on disk first, so that it survives a loss of power; it is, if nothing is said.
    pub durable: bool,
    /// How long a call waits for other ranks to arrive; 30 minutes.
    pub arrival: Duration,
    /// How long a call waits for progress of any rank; 60 s.
    pub progress: Duration,
    /// How long a call waits for storage that does not answer; 10 minutes.
    pub storage: Duration,
    /// What the user wants of the planner; nothing.
    pub preference: Preference,
    /// Whether the lock of HDF5's library is honoured; as its variable `HDF5_USE_FILE_LOCKING` says.
    pub locking: Option<FileLocking>,
    /// Of [`open`](crate::open): the format; by the name or the first bytes, when not given.
    pub format: Option<Format>,
    /// Of [`open`](crate::open), of a new NetCDF or HDF5 file: names of the dimensions that may grow; in NetCDF classic one.
    pub unlimited: Vec<String>,
    /// Of [`open`](crate::open), of a new NetCDF or HDF5 file: its attributes.
    pub attributes: Attributes,
    /// Of [`open`](crate::open), of a raw file: its order, its header, and the arrays of one that exists.
    pub contents: Option<Contents>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        let hyperslab_walk::Limits { arrival, progress, storage } = hyperslab_walk::Limits::default();
        OpenOptions {
            durable: true,
            arrival,
            progress,
            storage,
            preference: Preference::default(),
            locking: None,
            format: None,
            unlimited: Vec::new(),
            attributes: Attributes::new(),
            contents: None,
        }
    }
}

impl OpenOptions {
    setters! {
        /// With another durability.
        durable: bool = durable;
        /// With another limit on waiting for ranks to arrive.
        arrival: Duration = arrival;
        /// With another limit on waiting for progress.
        progress: Duration = progress;
        /// With another limit on waiting for storage.
        storage: Duration = storage;
        /// With what the user wants of the planner.
        preference: Preference = preference;
        /// With this rule for the lock of HDF5's library.
        locking: FileLocking = Some(locking);
        /// Of this format.
        format: Format = Some(format);
        /// With these dimensions that may grow.
        unlimited: Vec<String> = unlimited;
        /// With these attributes.
        attributes: Attributes = attributes;
        /// Of a raw file with this header and these arrays.
        contents: Contents = Some(contents);
    }

    /// The limits on waiting.
    pub(crate) fn limits(&self) -> hyperslab_walk::Limits {
        hyperslab_walk::Limits { arrival: self.arrival, progress: self.progress, storage: self.storage }
    }
}

/// A limit on waiting in seconds, by the name of its keyword: waiting for others may be no time at all, no other may.
///
/// # Errors
/// When it is no such time.
pub fn limit_of(name: &str, seconds: f64) -> Result<Duration, crate::Error> {
    const MOST: f64 = 1e9;
    let may_be_none = name == "arrival_seconds";
    let fits = seconds < MOST && (seconds > 0.0 || may_be_none && seconds == 0.0);
    let least = if may_be_none { "at least" } else { "more than" };
    Duration::try_from_secs_f64(seconds).ok().filter(|_| fits).ok_or_else(|| {
        crate::Error::invalid(format!("{name} must be {least} 0 and less than 1e9, got {}", plain(seconds)))
    })
}

/// The strategy with this name.
///
/// # Errors
/// When there is none.
pub fn strategy_named(name: &str) -> Result<Strategy, crate::Error> {
    known("strategy", name, Strategy::named(name, &Strategy::ALL), Strategy::ALL.map(Strategy::name).as_slice())
}

/// The exchange with this name.
///
/// # Errors
/// When there is none.
pub fn exchange_named(name: &str) -> Result<Exchange, crate::Error> {
    known("exchange", name, Exchange::from_name(name), Exchange::ALL.map(Exchange::name).as_slice())
}

fn known<T>(what: &str, name: &str, found: Option<T>, all: &[&str]) -> Result<T, crate::Error> {
    let unknown = || Fault::new(FaultKind::Invalid, format!("there is no {what} '{name}'"));
    let all = || all.iter().map(quoted).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| unknown().hint(format!("choose among {}", all())).into())
}

/// The rule with this name for changes of the element type, of those that NumPy has.
///
/// # Errors
/// When it is not known here.
pub fn casting_named(name: &str) -> Result<Casting, crate::Error> {
    Casting::from_name(name).ok_or_else(|| {
        let [usual, other] = [Casting::SameKind, Casting::Unsafe].map(Casting::name);
        crate::Error::invalid(format!("casting must be '{usual}' or '{other}', got '{name}'"))
    })
}

/// The codecs that this JSON lists, as the metadata of an array do.
///
/// # Errors
/// When it is no JSON, or they are unknown or out of order.
pub fn codecs_named(json: &str) -> Result<Codecs, crate::Error> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| crate::Error::invalid(format!("codecs are not JSON, in line {}", error.line())))?;
    let unfit = |error| format_fault(error).as_kind(FaultKind::Invalid);
    Ok(Codecs::from_json(&value, "codecs").map_err(unfit)?)
}

/// The mode with this name.
///
/// # Errors
/// When there is none.
pub fn mode_named(name: &str) -> Result<Mode, crate::Error> {
    Mode::from_name(name).ok_or_else(|| {
        Fault::new(FaultKind::Invalid, format!("mode must be 'r', 'r+', 'a', 'w' or 'x', got '{name}'"))
            .hint("give 'r' to read, 'r+' to change, 'a' to change or make, 'w' to make anew, 'x' to make what is not there")
            .into()
    })
}

/// What is said of each array, as text.
fn said_of(each: &[ArrayOptions]) -> String {
    let one = |one: &ArrayOptions| {
        let attributes = one.attributes.as_ref().map(said::all_attributes);
        format!("{} {}", some_of(&one.dimension_names, |name| quoted(name)), attributes.unwrap_or_default())
    };
    each.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn plainly(given: &Option<Vec<u64>>) -> String {
    given.as_ref().map_or(NOT_GIVEN.into(), |given| tuple(given).to_string())
}

/// A tuple of which some are left open, as Python writes it.
fn some_of<T>(given: &Option<Vec<Option<T>>>, said: impl Fn(&T) -> String) -> String {
    let one = |one: &Option<T>| one.as_ref().map_or("None".into(), &said);
    let all = |given: &Vec<Option<T>>| tuple(&given.iter().map(one).collect::<Vec<_>>()).to_string();
    given.as_ref().map_or(NOT_GIVEN.into(), all)
}

/// Bytes, as Python writes them.
pub(crate) fn as_bytes(bytes: &[u8]) -> String {
    format!("b'{}'", bytes.escape_ascii())
}

/// What the user wants of the planner, as the options are called that say it.
pub(crate) fn preferred(preference: &Preference) -> String {
    let Preference {
        strategy,
        servers,
        server_ranks,
        subchunk_bytes,
        buffer_bytes_max,
        slots,
        exchange,
        cached,
        node_budget: _,
    } = preference;
    let said = [
        strategy.map(|strategy| format!("strategy='{}'", strategy.name())),
        servers.map(|servers| format!("servers={servers}")),
        server_ranks.as_ref().map(|ranks| format!("server_ranks={ranks:?}")),
        subchunk_bytes.map(|bytes| format!("subchunk_bytes={bytes}")),
        buffer_bytes_max.map(|bytes| format!("buffer_bytes={bytes}")),
        slots.map(|slots| format!("slots={slots}")),
        exchange.map(|exchange| format!("exchange='{}'", exchange.name())),
        cached.then(|| "cached=True".to_string()),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if said.is_empty() { NOT_GIVEN.into() } else { said.join(", ") }
}

/// A number as Python writes it.
fn plain(number: f64) -> String {
    if number.is_finite() && number.fract() != 0.0 { number.to_string() } else { format!("{number:?}") }
}

/// What one array of several becomes.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct ArrayOptions {
    /// Names of its dimensions; those that hold for all when not given.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Its attributes; those that hold for all when not given.
    pub attributes: Option<Attributes>,
}

impl ArrayOptions {
    setters! {
        /// With these names of dimensions.
        dimension_names: Vec<Option<String>> = Some(dimension_names);
        /// With these attributes.
        attributes: Attributes = Some(attributes);
    }
}

/// Whether chunks of new arrays lie in shards.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum ShardShape {
    /// Where files are saved by it that are worth it.
    #[default]
    Chosen,
    /// No: each chunk is an object.
    Never,
    /// In shards of this shape, which the chunks divide.
    Given(Vec<u64>),
}

impl fmt::Display for ShardShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShardShape::Chosen => f.write_str("'auto'"),
            ShardShape::Never => f.write_str("None"),
            ShardShape::Given(shape) => tuple(shape).fmt(f),
        }
    }
}

/// How arrays are written: what new ones become, or which part of those that are there is changed.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct WriteOptions {
    /// The parts of existing arrays to write; new arrays are written whole.
    pub section: Sections,
    /// Shape of the chunks; what one rank holds, or what is worth it more, when not given.
    pub chunks: Option<Vec<u64>>,
    /// Whether several chunks lie in one object, a shard; where that saves very many files, when not given.
    pub shards: ShardShape,
    /// Extents of what is read later, of which `None` leaves some open: `chunks` are then where the choice begins.
    pub typical: Option<Vec<Option<u64>>>,
    /// Type of the stored elements; that of the memory when not given. Zarr has no byte order.
    pub element: Option<ElementType>,
    /// How chunks become bytes; uncompressed, with a checksum, when not given.
    pub codecs: Option<Codecs>,
    /// How far each dimension may grow, `None` without limit, in HDF5 files; not at all when not given.
    pub maxshape: Option<Vec<Option<u64>>>,
    /// What elements are that were never written; zero when not given.
    pub fill_value: Option<Value>,
    /// Names of the dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Attributes.
    pub attributes: Attributes,
    /// The same of each array of a call that makes several, in their order, in place of what holds for all; or nothing.
    pub each: Vec<ArrayOptions>,
    /// All that is said of each array of a call that makes several, in their order, in place of the above; or nothing. Made by
    /// [`WriteOptions::together`].
    pub apart: Vec<WriteOptions>,
    /// Whether an array of that name may be replaced.
    pub overwrite: bool,
    /// Which changes from the type in memory to the stored one are allowed.
    pub casting: Casting,
    /// A strategy that is forced, for this call.
    pub strategy: Option<Strategy>,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            section: Sections::Whole,
            chunks: None,
            shards: ShardShape::Chosen,
            typical: None,
            element: None,
            codecs: None,
            maxshape: None,
            fill_value: None,
            dimension_names: None,
            attributes: Attributes::new(),
            each: Vec::new(),
            apart: Vec::new(),
            overwrite: false,
            casting: Casting::SameKind,
            strategy: None,
        }
    }
}

impl WriteOptions {
    setters! {
        /// Of this part of existing arrays: of all the same one, or of each its own.
        section: impl Into<Sections> = section.into();
        /// In chunks of this shape.
        chunks: Vec<u64> = Some(chunks);
        /// In shards, or in none.
        shards: ShardShape = shards;
        /// Stored as elements of this type.
        element: ElementType = Some(element);
        /// Encoded so.
        codecs: Codecs = Some(codecs);
        /// Of a dataset that may grow so far.
        maxshape: Vec<Option<u64>> = Some(maxshape);
        /// With this for what was never written.
        fill_value: Value = Some(fill_value);
        /// With these names of dimensions.
        dimension_names: Vec<Option<String>> = Some(dimension_names);
        /// With these attributes.
        attributes: Attributes = attributes;
        /// With these of each array.
        each: Vec<ArrayOptions> = each;
        /// In place of arrays of the same names.
        overwrite: bool = overwrite;
        /// With this rule for changes of the element type.
        casting: Casting = casting;
        /// By this strategy.
        strategy: Strategy = Some(strategy);
    }

    /// Names of the dimensions of one of the arrays.
    pub(crate) fn dimension_names_of(&self, number: usize) -> Option<&[Option<String>]> {
        let own = self.each.get(number).and_then(|one| one.dimension_names.as_deref());
        own.or(self.of(number).dimension_names.as_deref())
    }

    /// Attributes of one of the arrays.
    pub(crate) fn attributes_of(&self, number: usize) -> &Attributes {
        self.each.get(number).and_then(|one| one.attributes.as_ref()).unwrap_or(&self.of(number).attributes)
    }

    /// Refuses what is given of each, where it is not as many as the arrays.
    pub(crate) fn check_each(&self, arrays: usize) -> Result<(), Fault> {
        let fits = |given: usize| given == 0 || given == arrays;
        if fits(self.each.len()) && fits(self.apart.len()) {
            return Ok(());
        }
        let found = format!("of {}", self.each.len().max(self.apart.len()));
        Err(Fault::new(FaultKind::Invalid, "what is said of each array").expected(format!("of {arrays} arrays"), found))
    }

    /// This, with what all ranks must say alike of new arrays. Sections are compared with the arrays that they are of.
    pub(crate) fn compared(&self, others: Compared) -> Compared {
        // Those of a batch that are said alike are compared once.
        let (others, _) = self.apart.chunk_by(|a, b| a == b).fold((others, 0), |(others, first), alike| {
            let next = first + alike.len();
            (alike[0].compared_as(others, format!(" of arrays {first} to {}", next - 1)), next)
        });
        self.compared_as(others, String::new())
    }

    /// The same, where what is said of single arrays is called so.
    fn compared_as(&self, others: Compared, of: String) -> Compared {
        let (chunks, typical, names) = (self.chunks.clone(), self.typical.clone(), self.dimension_names.clone());
        let chunks = (chunks, self.shards.clone(), self.maxshape.clone());
        let element = self.element.map(ElementType::numpy);
        let codecs = self.codecs.clone();
        let fill = self.fill_value.as_ref().map(said::value);
        // Maps cannot be hashed.
        let attributes = said::attributes(&self.attributes, "");
        let each = said_of(&self.each);
        let said = (chunks, typical, element, codecs, fill, names, (attributes, each), self.overwrite);
        others.and((said.clone(), of.clone()), move || {
            let (chunks, typical, element, codecs, fill, names, (attributes, each), overwrite) = said.clone();
            let given = |text: Option<String>| text.unwrap_or_else(|| NOT_GIVEN.into());
            let mut fields: Fields = vec![
                ("chunks".into(), plainly(&chunks.0)),
                ("shards".into(), chunks.1.to_string()),
                ("maxshape".into(), some_of(&chunks.2, u64::to_string)),
                ("typical request".into(), some_of(&typical, u64::to_string)),
                ("dtype".into(), given(element.map(quoted))),
                ("codecs".into(), given(codecs.as_ref().map(said::codecs))),
                ("fill_value".into(), given(fill)),
                ("dimension_names".into(), some_of(&names, |name| quoted(name))),
            ];
            fields.extend(attributes);
            if !each.is_empty() {
                fields.push(("what is given for each array".into(), each));
            }
            fields.push(("overwrite".into(), truth(overwrite).into()));
            fields.iter_mut().for_each(|field| field.0 += &of);
            fields
        })
    }

    /// What is said of arrays that only new ones in chunks have: the first of it that is given.
    fn of_chunks(&self) -> Option<&'static str> {
        let given = [
            ("chunks", self.chunks.is_some() || self.typical.is_some()),
            ("shards", self.shards != ShardShape::Chosen),
            ("codecs", self.codecs.is_some()),
            ("maxshape", self.maxshape.is_some()),
            ("a fill value", self.fill_value.is_some()),
            ("names of dimensions", self.dimension_names.is_some()),
            ("attributes", !self.attributes.is_empty() || !self.each.is_empty()),
        ];
        given.into_iter().find_map(|(what, given)| given.then_some(what))
    }

    /// Refuses what only arrays in chunks have.
    ///
    /// # Errors
    /// When something of it is given.
    pub(crate) fn check_for_file(&self) -> Result<(), Fault> {
        let overwrite = || {
            self.overwrite.then_some(("overwrite", "open the file with mode 'w' to replace it, or 'r+' to change it"))
        };
        self.apart.iter().try_for_each(WriteOptions::check_for_file)?;
        let given = self.of_chunks().map(|what| (what, "leave it out, or write to a Zarr store")).or_else(overwrite);
        given.map_or(Ok(()), |(what, hint)| {
            let text = format!("{what} cannot be given for arrays of a file");
            Err(Fault::new(FaultKind::Unsupported, text).hint(hint))
        })
    }

    /// Refuses what only arrays in chunks have, and NetCDF files do not.
    ///
    /// # Errors
    /// When something of it is given.
    pub(crate) fn check_for_netcdf(&self) -> Result<(), Fault> {
        let variable = self.but(|one| {
            (one.fill_value, one.dimension_names) = (None, None);
            one.attributes = Attributes::new();
            one.each = Vec::new();
        });
        variable.check_for_file()
    }

    /// Refuses what only Zarr arrays have, and not datasets of HDF5.
    ///
    /// # Errors
    /// When something of it is given.
    pub(crate) fn check_for_hdf5(&self) -> Result<(), Fault> {
        let dataset = self.but(|one| {
            (one.chunks, one.codecs, one.maxshape, one.typical) = (None, None, None, None);
        });
        dataset.check_for_netcdf()
    }

    /// Refuses options that so many arrays of a Zarr store cannot have.
    ///
    /// # Errors
    /// When one is given.
    pub(crate) fn check_for_zarr(&self, arrays: usize) -> Result<(), Fault> {
        self.section.check(arrays)?;
        self.check_each(arrays)?;
        if self.maxshape.is_none() && self.apart.iter().all(|one| one.maxshape.is_none()) {
            return Ok(());
        }
        let text = "maxshape cannot be given for arrays of a Zarr store";
        Err(Fault::new(FaultKind::Unsupported, text).hint("leave it out: they can always be appended to"))
    }

    /// Refuses what only new arrays take.
    ///
    /// # Errors
    /// When something of it is given.
    pub(crate) fn check_for_existing(&self) -> Result<(), Fault> {
        let overwrite = self.overwrite.then_some("overwrite");
        self.apart.iter().try_for_each(WriteOptions::check_for_existing)?;
        let element = self.element.is_some().then_some("a type of the stored elements");
        match self.of_chunks().or(element).or(overwrite) {
            None => Ok(()),
            Some(what) => {
                let text = format!("{what} cannot be given for an array that is there already");
                Err(Fault::new(FaultKind::Invalid, text).hint("leave it out, or write the array anew"))
            }
        }
    }
}

/// What is read of arrays, into what.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Who gets what; every rank everything, when not given.
    pub holding: Option<Arc<Ownership>>,
    /// The same of each array, in their order, where they are not held alike; or nothing.
    pub holdings: Vec<Option<Arc<Ownership>>>,
    /// The part of each array to read.
    pub section: Sections,
    /// This rank's local arrays to read into, array by array; fresh ones, when not given.
    pub into: Option<Vec<LocalArray>>,
    /// Which changes from the stored type to that of the memory are allowed.
    pub casting: Casting,
    /// A strategy that is forced, for this call.
    pub strategy: Option<Strategy>,
}

impl ReadOptions {
    setters! {
        /// Held so by the ranks.
        holding: impl Into<Ownership> = Some(Arc::new(holding.into()));
        /// Each held so by the ranks.
        holdings: Vec<Option<Ownership>> = holdings.into_iter().map(|held| held.map(Arc::new)).collect();
        /// Of this part: of all the same one, or of each its own.
        section: impl Into<Sections> = section.into();
        /// Into these.
        into: Vec<LocalArray> = Some(into);
        /// With this rule for changes of the element type.
        casting: Casting = casting;
        /// By this strategy.
        strategy: Strategy = Some(strategy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_holds() {
        let options = OpenOptions::default().durable(false).progress(Duration::from_secs(7));
        assert_eq!(options, OpenOptions { durable: false, progress: Duration::from_secs(7), ..OpenOptions::default() });
        let write = WriteOptions::default().chunks(vec![4]).overwrite(true);
        assert_eq!((write.chunks, write.overwrite, write.casting), (Some(vec![4]), true, Casting::SameKind));
    }

    #[test]
    fn limits_are_times() {
        assert_eq!(limit_of("arrival_seconds", 0.0).unwrap(), Duration::ZERO);
        assert_eq!(limit_of("storage_seconds", 0.5).unwrap(), Duration::from_millis(500));
        for (name, seconds, said) in [
            ("progress_seconds", 0.0, "progress_seconds must be more than 0 and less than 1e9, got 0.0"),
            ("arrival_seconds", -1.0, "arrival_seconds must be at least 0 and less than 1e9, got -1.0"),
            ("arrival_seconds", f64::NAN, "arrival_seconds must be at least 0 and less than 1e9, got NaN"),
            ("storage_seconds", f64::INFINITY, "storage_seconds must be more than 0 and less than 1e9, got inf"),
        ] {
            assert_eq!(limit_of(name, seconds).unwrap_err().message(), said);
        }
    }

    #[test]
    fn a_file_has_no_chunks() {
        assert!(WriteOptions::default().overwrite(true).check_for_file().is_err());
        let fault = WriteOptions::default().chunks(vec![1]).check_for_file().unwrap_err();
        assert_eq!(fault.text(), "chunks cannot be given for arrays of a file");
    }
}
