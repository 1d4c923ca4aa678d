//! Zarr v3 groups: a store, its arrays, and steps that become visible whole or not at all.
//!
//! What is not published lies in a hidden directory beside the store, where no reader looks; one rename publishes it.
//! Where that cannot be (the directory above belongs to somebody else, or is another file system), it lies below
//! `.hyperslab` in the store, which readers of Zarr pass over, some with a warning.

mod call;
mod explain;
mod requests;
mod shapes;
mod step;
#[cfg(test)]
mod tests;
mod writing;

use crate::array::LocalArray;
use crate::comm::Comm;
use crate::course::new_target;
use crate::error::{Error, format_fault};
use crate::holding::Holding;
use hyperslab_format::zarr::{ArrayMetadata, Codecs, GroupMetadata, METADATA_KEY, Map, NodeType, Value, node_type};
use hyperslab_layout::{Distribution, ElementType, Kind, Section};
use hyperslab_plan::Preference;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Location, Names, Reader, Writer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use call::{checked_section, destinations, listed, memory_type, wanted};
pub use explain::{Layout, Planned, explain};
pub use step::Step;

/// Where unpublished things lie in the root of a store, when they cannot lie beside it.
const INNER_STAGING: &str = ".hyperslab";
/// Below that, where steps lie, and where arrays lie that are written outside of steps.
const STEPS: &str = "steps";
const ARRAYS: &str = "arrays";
/// Ends the name of what was put aside to be replaced.
const ASIDE: &str = ".old";
/// Names an update of an array in place that has not ended.
pub(crate) const MARKER: &str = ".hyperslab-update";

/// How a store is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// To read; it must exist.
    Read,
    /// To read and change; it must exist.
    Update,
    /// Anew; an existing store is erased.
    Write,
    /// Anew; it must not exist, except as an empty directory.
    Create,
}

impl Mode {
    /// The mode with this name: r, r+, w or x.
    pub fn from_name(name: &str) -> Option<Mode> {
        Some(match name {
            "r" => Mode::Read,
            "r+" => Mode::Update,
            "w" => Mode::Write,
            "x" => Mode::Create,
            _ => return None,
        })
    }

    /// Whether something may be written.
    pub const fn writes(self) -> bool {
        !matches!(self, Mode::Read)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Read => "r",
            Mode::Update => "r+",
            Mode::Write => "w",
            Mode::Create => "x",
        }
    }
}

/// How a store behaves.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Whether what is published is on disk first, so that it survives a loss of power.
    pub durable: bool,
    /// How long a call waits for other ranks to arrive.
    pub arrival: Duration,
    /// How long a call waits for progress of any rank.
    pub progress: Duration,
    /// What the user wants of the planner.
    pub wish: Preference,
}

impl Default for Options {
    fn default() -> Options {
        let limits = hyperslab_walk::Limits::default();
        Options { durable: true, arrival: limits.arrival, progress: limits.progress, wish: Preference::default() }
    }
}

/// What a new array shall be on disk.
#[derive(Clone, PartialEq, Debug)]
pub struct NewArray {
    /// Shape of the chunks; what one rank holds, or what is worth it more, when not given.
    pub chunks: Option<Vec<u64>>,
    /// Extents of what is read later, of which `None` leaves some open: `chunks` are then where the choice begins.
    pub typical: Option<Vec<Option<u64>>>,
    /// Kind of the stored elements; that of the memory when not given.
    pub kind: Option<Kind>,
    /// How chunks become bytes; uncompressed, with a checksum, when not given.
    pub codecs: Option<Codecs>,
    /// What elements are that were never written; zero when not given.
    pub fill_value: Option<Value>,
    /// Names of the dimensions.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Attributes.
    pub attributes: Map<String, Value>,
    /// Whether an array of that name may be replaced.
    pub overwrite: bool,
}

impl Default for NewArray {
    fn default() -> NewArray {
        NewArray {
            chunks: None,
            typical: None,
            kind: None,
            codecs: None,
            fill_value: None,
            dimension_names: None,
            attributes: Map::new(),
            overwrite: false,
        }
    }
}

/// One array to write.
#[derive(Clone, Debug)]
pub struct WriteAsk {
    /// Its name.
    pub name: String,
    /// This rank's part: one array, or one for each of its boxes.
    pub arrays: Vec<LocalArray>,
    /// How the ranks hold it.
    pub holding: Holding,
    /// The part of an existing array to write; without it, a new array is made.
    pub section: Option<Section>,
}

impl WriteAsk {
    /// A new array.
    pub fn new(name: impl Into<String>, array: LocalArray, distribution: Distribution) -> WriteAsk {
        WriteAsk { name: name.into(), arrays: vec![array], holding: distribution.into(), section: None }
    }

    /// A new array that each rank holds in pieces of its own.
    pub fn pieces(name: impl Into<String>, arrays: Vec<LocalArray>, holding: Holding) -> WriteAsk {
        WriteAsk { name: name.into(), arrays, holding, section: None }
    }

    /// Type of the elements in memory; a rank without pieces has none.
    pub(crate) fn element(&self) -> Option<ElementType> {
        self.arrays.first().map(|array| array.element)
    }
}

/// What an array on disk is.
#[derive(Clone, Debug)]
pub struct ArrayInfo {
    /// Its metadata.
    pub metadata: ArrayMetadata,
}

/// An open Zarr group.
#[derive(Clone)]
pub struct Store {
    comm: Comm,
    /// Tells its requests from those of others; groups of a store have the same, steps their own.
    target: u64,
    /// Bytes of the buffers' budget that copies of arrays have \[B\].
    held: u64,
    /// Names below the store's root.
    names: Arc<dyn Names>,
    /// Path of the group below the root; empty, or ending with `/`.
    group: String,
    /// Where unpublished things lie: absolute, or relative to the root.
    staging: String,
    /// While the group is a step that is not published: where it lies instead.
    staged: bool,
    ranks: u32,
    mode: Mode,
    options: Options,
    removed: Vec<String>,
    unfinished: Vec<String>,
    attributes: Map<String, Value>,
}

impl Store {
    /// Opens a store on all ranks of `comm`.
    ///
    /// Opening for update removes what an earlier run left unpublished; [`Store::removed`] names it. Two programs must
    /// not have one store open for writing at the same time.
    ///
    /// # Errors
    /// On all ranks the same, when the path does not fit the mode or the ranks differ.
    pub fn open(comm: &Comm, location: impl Into<Location>, mode: Mode, options: Options) -> Result<Store, Error> {
        let location = location.into();
        comm.set_limits(options.arrival, options.progress);
        let what = format!("open '{location}' (mode {})", mode.name());
        let fields = vec![
            ("path".to_string(), location.to_string()),
            ("mode".to_string(), mode.name().to_string()),
            ("durable".to_string(), options.durable.to_string()),
            ("preferences".to_string(), format!("{:?}", options.wish)),
        ];
        let names = match location {
            Location::Striped(_) => {
                Err(Fault::new(FaultKind::Unsupported, format!("{what}: a store cannot be striped"))
                    .hint("stripe directories hold raw and npy files; give one directory"))
            }
            _ => comm.names(&location),
        };
        let fault = names.as_ref().err().cloned();
        let question = Question::opening(what.clone(), fields, fault);
        let told = comm.agree(question, || {
            let names = names.as_ref().map_err(Fault::clone)?;
            open_root(&**names, mode).map_err(|fault| fault.context(&what))
        })?;
        let mut r = Reader::new(&told);
        let broken = || Fault::new(FaultKind::Peer, "rank 0 told of a store in a way that makes no sense");
        let names = names?.at(&r.text().ok_or_else(broken)?);
        let staging = r.text().ok_or_else(broken)?;
        let attributes =
            GroupMetadata::parse(r.bytes().ok_or_else(broken)?, METADATA_KEY).map_err(format_fault)?.attributes;
        let count = r.number().ok_or_else(broken)?;
        let mut removed: Vec<String> = std::iter::from_fn(|| r.text()).collect();
        let unfinished = removed.split_off(removed.len().min(count as usize));
        Ok(Store {
            comm: comm.clone(),
            target: new_target(),
            held: 0,
            names,
            group: String::new(),
            staging,
            staged: false,
            ranks: comm.size(),
            mode,
            options,
            removed,
            unfinished,
            attributes,
        })
    }

    /// The communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    /// Absolute path of the group; of a step, the path that it will have once it is published.
    pub fn path(&self) -> PathBuf {
        self.names.full(&self.group.replace("%2F", "/")).into()
    }

    /// Names of steps and arrays that an earlier run left unpublished, removed when the store was opened.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Names of arrays in the root of which an update in place began and did not end: each chunk is old or new. Writing
    /// all of the array again makes it whole.
    pub fn unfinished(&self) -> &[String] {
        &self.unfinished
    }

    /// Attributes of the group.
    pub fn attributes(&self) -> &Map<String, Value> {
        &self.attributes
    }

    /// How it was opened.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Path of the group's directory below the root, empty or ending with `/`.
    fn base(&self) -> String {
        if self.staged { format!("{}/{STEPS}/{}", self.staging, self.group) } else { self.group.clone() }
    }

    fn directory(&self) -> Arc<dyn Names> {
        self.names.clone()
    }

    /// Names of the arrays in the group, sorted. Not collective, but it waits for requests under way that write.
    pub fn arrays(&self) -> Result<Vec<String>, Error> {
        self.nodes(NodeType::Array)
    }

    /// Names of the groups and published steps in the group, sorted. Not collective; waits as [`Store::arrays`].
    pub fn groups(&self) -> Result<Vec<String>, Error> {
        self.nodes(NodeType::Group)
    }

    fn nodes(&self, wanted: NodeType) -> Result<Vec<String>, Error> {
        self.await_writes();
        let directory = self.directory();
        let mut names = Vec::new();
        for name in directory.list(&self.base())? {
            if name.starts_with('.') {
                continue;
            }
            let key = format!("{}{name}/{METADATA_KEY}", self.base());
            let Some(bytes) = directory.read(&key)? else { continue };
            if node_type(&bytes, &key).map_err(format_fault)? == wanted {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// What is written by requests under way is to be seen by what looks at the store after them.
    fn await_writes(&self) {
        if !self.comm.is_inside() {
            self.comm.line().drain_writes();
        }
    }

    /// What an array is. Not collective, but it waits for requests under way that write.
    ///
    /// # Errors
    /// When there is no such array, or its metadata make no sense.
    pub fn info(&self, name: &str) -> Result<ArrayInfo, Error> {
        self.await_writes();
        Ok(ArrayInfo { metadata: read_array(&*self.names, &self.base(), name)? })
    }

    /// Opens a group or published step of this group. Collective.
    pub fn group(&self, name: &str) -> Result<Store, Error> {
        check_name(name)?;
        let what = format!("open group '{name}' of '{}'", self.path().display());
        let base = format!("{}{name}/", self.base());
        let question = Question::opening(what.clone(), vec![("group".into(), self.names.full(&base))], None);
        let directory = self.directory();
        let told = self.comm.agree(question, || {
            let key = format!("{base}{METADATA_KEY}");
            let bytes = directory.read(&key)?.ok_or_else(|| {
                Fault::new(FaultKind::NotFound, format!("{what}: there is no group '{name}'"))
                    .hint("groups() lists the groups and published steps")
            })?;
            GroupMetadata::parse(&bytes, &key).map_err(format_fault)?;
            Ok(bytes)
        })?;
        let attributes = GroupMetadata::parse(&told, name).map_err(format_fault)?.attributes;
        Ok(Store {
            comm: self.comm.clone(),
            target: self.target,
            held: 0,
            names: self.names.clone(),
            group: format!("{}{name}/", self.group),
            staging: self.staging.clone(),
            staged: self.staged,
            ranks: self.ranks,
            mode: self.mode,
            options: self.options.clone(),
            removed: Vec::new(),
            unfinished: Vec::new(),
            attributes,
        })
    }

    /// Changes what the user wants of the planner.
    pub fn set_preference(&mut self, wish: Preference) {
        self.options.wish = wish;
    }

    /// What the user wants of the planner.
    pub fn preference(&self) -> &Preference {
        &self.options.wish
    }

    fn check_writable(&self, what: &str) -> Result<(), Fault> {
        if self.mode == Mode::Read {
            return Err(Fault::new(FaultKind::Invalid, format!("{what}: the store is open for reading only"))
                .hint("open it with mode r+ to change it"));
        }
        Ok(())
    }

    /// Waits for all requests. Collective.
    ///
    /// # Errors
    /// The failure of a request of this store that nobody waited for, the same on all ranks.
    pub fn flush(&self) -> Result<(), Error> {
        let what = format!("flush of '{}'", self.path().display());
        Ok(self.comm.sync_and(&what, self.target, None, || Ok(Vec::new()), None)?)
    }

    /// Ends the use of the store on all ranks; what was written and published stays. Waits for all requests; the failure
    /// of one that nobody waited for is that of this call.
    pub fn close(self) -> Result<(), Error> {
        let what = format!("close '{}'", self.path().display());
        let directory = self.directory();
        let staging = self.staging.clone();
        let removable = self.mode != Mode::Read && !self.staged;
        Ok(self.comm.sync_and(
            &what,
            self.target,
            None,
            || {
                if removable {
                    sweep(&*directory, &staging);
                }
                Ok(Vec::new())
            },
            None,
        )?)
    }
}

/// Rank 0's part of opening: the absolute path, the group's metadata, and what was removed.
fn open_root(names: &dyn Names, mode: Mode) -> Result<Vec<u8>, Fault> {
    let root = names.resolve()?;
    let directory = &*names.at(&root);
    let found = directory.read(METADATA_KEY)?;
    let there = directory.exists("");
    let fresh = GroupMetadata::default().to_json();
    let mut removed = Vec::new();
    let metadata = match (mode, found) {
        (Mode::Create, _) if there && !is_vacant(directory) => {
            return Err(Fault::new(FaultKind::Exists, format!("'{root}' exists already"))
                .hint("mode w erases an existing store, r+ changes it"));
        }
        (Mode::Read | Mode::Update, None) => {
            let why = if there { "is not a Zarr v3 group: it has no zarr.json" } else { "does not exist" };
            return Err(Fault::new(FaultKind::NotFound, format!("'{root}' {why}"))
                .hint("mode w makes a new store; Zarr v2 stores (.zgroup) must be converted first"));
        }
        (Mode::Read, Some(bytes)) => bytes,
        (Mode::Update, Some(bytes)) => {
            removed = clean(directory)?;
            bytes
        }
        (Mode::Write | Mode::Create, found) => {
            // Never erase what is not ours to erase.
            let names = directory.list("")?;
            if there && found.is_none() && names.iter().any(|name| name != INNER_STAGING) {
                return Err(Fault::new(FaultKind::Exists, format!("'{root}' is not a Zarr v3 store, and not empty"))
                    .hint("choose another path, or remove it yourself"));
            }
            removed = clean(directory)?;
            directory.make("")?;
            // The metadata go last but for their replacement, so that a crash in between leaves something openable.
            for name in names.iter().filter(|name| *name != METADATA_KEY) {
                directory.remove(name)?;
            }
            directory.write(METADATA_KEY, &fresh, true)?;
            fresh
        }
    };
    GroupMetadata::parse(&metadata, &format!("{root}/{METADATA_KEY}")).map_err(format_fault)?;
    let staging = staging(directory, mode);
    let unfinished = unfinished(directory)?;
    let told = Writer::default().bytes(root.as_bytes()).bytes(staging.as_bytes()).bytes(&metadata);
    let told = told.number(removed.len() as u64);
    Ok(removed.iter().chain(&unfinished).fold(told, |told, name| told.bytes(name.as_bytes())).0)
}

/// Whether the root is a directory with nothing in it.
fn is_vacant(directory: &dyn Names) -> bool {
    directory.length("").is_none() && directory.list("").is_ok_and(|names| names.is_empty())
}

/// The hidden directory beside a store.
fn beside(directory: &dyn Names) -> Option<String> {
    let (above, name) = directory.above()?;
    Some(directory.at(&above).full(&format!(".{name}.hyperslab-partial")))
}

/// Where what is not published shall lie.
fn staging(directory: &dyn Names, mode: Mode) -> String {
    let beside = beside(directory).filter(|beside| mode.writes() && directory.can_rename_from(beside));
    beside.unwrap_or_else(|| INNER_STAGING.to_string())
}

/// Removes what an earlier run left unpublished; returns its names. What it had put aside to replace and never
/// replaced goes back to its place.
fn clean(directory: &dyn Names) -> Result<Vec<String>, Fault> {
    let mut removed = Vec::new();
    for staging in beside(directory).iter().map(String::as_str).chain([INNER_STAGING]) {
        for kind in [STEPS, ARRAYS] {
            for name in directory.list(&format!("{staging}/{kind}"))? {
                let at = name.strip_suffix(ASIDE).unwrap_or(&name).replace("%2F", "/");
                if name.ends_with(ASIDE) && !directory.exists(&at) {
                    directory.rename(&format!("{staging}/{kind}/{name}"), &at)?;
                } else {
                    removed.push(at);
                }
            }
        }
        directory.remove(staging)?;
    }
    removed.dedup();
    Ok(removed)
}

/// Removes the directories for unpublished things if nothing is in them.
fn sweep(directory: &dyn Names, staging: &str) {
    for kind in [STEPS, ARRAYS] {
        directory.remove_empty(&format!("{staging}/{kind}"));
    }
    directory.remove_empty(staging);
}

/// Arrays of a group of which an update in place has begun and not ended.
fn unfinished(directory: &dyn Names) -> Result<Vec<String>, Fault> {
    let marked = |name: &String| directory.exists(&format!("{name}/{MARKER}"));
    Ok(directory.list("")?.into_iter().filter(marked).collect())
}

/// Metadata of an array.
fn read_array(directory: &dyn Names, base: &str, name: &str) -> Result<ArrayMetadata, Fault> {
    check_name(name)?;
    let key = format!("{base}{name}/{METADATA_KEY}");
    let bytes = directory.read(&key)?.ok_or_else(|| {
        let at = directory.full(base);
        Fault::new(FaultKind::NotFound, format!("there is no array '{name}' in '{at}'"))
            .hint("arrays() lists the arrays")
    })?;
    ArrayMetadata::parse(&bytes, &key).map_err(format_fault)
}

/// Names are single path components that no tool hides or takes for something else.
fn check_name(name: &str) -> Result<(), Fault> {
    let bad = name.is_empty()
        || name.starts_with('.')
        || name.starts_with("__")
        || name.contains(['/', '\\', '\0'])
        || name == METADATA_KEY;
    if bad {
        return Err(Fault::new(FaultKind::Invalid, format!("'{name}' cannot be the name of an array or step"))
            .hint("names are not empty, do not begin with '.' or '__', and contain no '/'"));
    }
    Ok(())
}
