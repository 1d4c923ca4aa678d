//! Zarr v3 groups: a store, its arrays, and steps that become visible whole or not at all.
//!
//! What is not published lies in a hidden root beside the store (`attempts`), where no reader looks; one rename publishes it.
//! Where that cannot be (the directory above belongs to somebody else, or is another file system; the store's name is a
//! link), it lies below `.hyperslab` in the store, which readers of Zarr pass over, some with a warning.

mod appending;
mod call;
mod consolidating;
mod editing;
mod explain;
mod known;
mod nested;
mod nodes;
mod opening;
mod policy;
mod requests;
mod resizing;
mod shapes;
mod shards;
mod step;
mod stored;
#[cfg(test)]
mod tests;
mod texts;
mod told;
mod writing;

use crate::alone::Alone;
use crate::apart::RankMounts;
use crate::array_write::listed;
use crate::comm::Comm;
use crate::course::{End, Publish};
use crate::error::{Error, format_fault};
use crate::line::new_target;
use crate::listing::{Coming, Listing};
use crate::mode::Mode;
use crate::options::{OpenOptions, preferred};
use crate::said::{quoted, truth};
use crate::unfinished::Unfinished;
use hyperslab_collective::attempts::{Attempts, Home};
use hyperslab_format::attribute::Attributes;
use hyperslab_format::zarr::{ArrayMetadata, GroupMetadata, METADATA_KEY, NodeType, consolidated, node_type};
use hyperslab_plan::Preference;
use hyperslab_walk::Question;
use hyperslab_world::{Fault, FaultKind, Location, Names, Reader, Writer};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use consolidating::drop_consolidated;
pub use explain::{Layout, Planned, explain};
use nodes::{check_there, is_shown, kind_of, place, read_array, read_node};
use opening::{Opened, hear_nodes, marker_of, nodes_of, tell_nodes};
pub use step::Step;

/// How often others may publish while consolidated metadata are written.
const CONSOLIDATE_TURNS_MAX: usize = 100;

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
    /// What it writes and has not published; only rank 0 makes anything of it.
    attempts: Arc<Attempts>,
    /// Path of the group below the store's root; empty, or ending with `/`.
    group: String,
    /// While the group is a step that is not published: where it lies instead, below the home of attempts.
    staged: Option<String>,
    ranks: u32,
    mode: Mode,
    options: OpenOptions,
    removed: Vec<String>,
    unfinished: Unfinished,
    passed_over: Vec<String>,
    above: Vec<String>,
    /// Shared by all who have the group open here.
    attributes: Arc<Mutex<Attributes>>,
    known: known::Known,
    listing: Listing,
    /// This rank's own way to read it.
    alone: Alone,
    /// How ranks see it.
    mounts: RankMounts,
    told: told::ToldNodes,
}

impl Store {
    /// Opens a store on all ranks of `comm`.
    ///
    /// Opening for writing removes what dead owners left unpublished; [`Store::removed`] names it. Several programs may
    /// have one store open for writing at the same time: each publishes what it makes new, and of two that make the same
    /// one gets an error.
    ///
    /// # Errors
    /// On all ranks the same, when the path does not fit the mode or the ranks differ.
    pub fn open(comm: &Comm, location: impl Into<Location>, mode: Mode, options: OpenOptions) -> Result<Store, Error> {
        let location = location.into();
        comm.set_limits(options.limits());
        let at_location = location.clone();
        let what = format!("open '{location}' (mode {})", mode.name());
        let fields = vec![
            ("path".to_string(), quoted(&location)),
            ("mode".to_string(), quoted(mode.name())),
            ("durable".to_string(), truth(options.durable).to_string()),
            ("options".to_string(), preferred(&options.preference)),
        ];
        let names = Store::names_of(comm, &location, mode, &what);
        let fault = names.as_ref().err().cloned();
        let question = Question::opening(what.clone(), fields, fault);
        let opened: Arc<Mutex<Option<Opened>>> = Arc::default();
        let (at, kept) = (names.as_ref().ok().cloned(), opened.clone());
        let (durable, storage) = (options.durable, options.limits().storage);
        // Making a durable store waits for its disk.
        let waits = options.durable && matches!(mode, Mode::Write | Mode::Create);
        let told = comm.agree_on_opening(question, at, waits, move |names, at_hand| {
            let found =
                opening::open_root(names, mode, opening::How { durable, at_hand, until: Instant::now() + storage })
                    .map_err(|fault| fault.context(&what))?;
            let told = found.told();
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            Ok(told)
        })?;
        let mine = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let heard = opening::Heard::of(&*names?, &told)?;
        let attempts = match mine {
            Some(opened) => opened.attempts,
            None => Attempts::new(heard.home, heard.opening, false, durable, None),
        };
        let attempts = Arc::new(attempts);
        comm.watch(&attempts);
        let mounts = comm.compare_mounts(heard.mount, &attempts.home, mode.writes())?;
        let place = format!("{}/", attempts.home.shown());
        let listing = comm.listings().open(place, heard.nodes, comm.line().settled());
        let store = Store {
            comm: comm.clone(),
            target: new_target(),
            held: 0,
            attempts,
            group: String::new(),
            staged: None,
            ranks: comm.size(),
            mode,
            options,
            removed: heard.found.removed,
            unfinished: Unfinished::new(heard.found.unfinished),
            passed_over: heard.found.passed_over,
            above: heard.above,
            attributes: Arc::new(Mutex::new(editing::shown_attributes(heard.attributes))),
            known: known::Known::default(),
            listing,
            alone: Alone::new(at_location),
            mounts,
            told: told::ToldNodes::default(),
        };
        store.tell([""]);
        Ok(store)
    }

    fn names_of(comm: &Comm, location: &Location, mode: Mode, what: &str) -> Result<Arc<dyn Names>, Fault> {
        match location {
            Location::Striped(_) => {
                Err(Fault::new(FaultKind::Unsupported, format!("{what}: a store cannot be striped"))
                    .hint("give one directory; only raw, npy and NetCDF files can be striped"))
            }
            _ => comm.names_for(location, mode.writes()),
        }
    }

    /// The communicator.
    pub fn comm(&self) -> &Comm {
        &self.comm
    }

    fn home(&self) -> &Home {
        &self.attempts.home
    }

    /// Names in the home of the store's attempts.
    fn directory(&self) -> Arc<dyn Names> {
        self.home().names.clone()
    }

    /// Absolute path of the group; of a step, the path that it will have once it is published.
    pub fn path(&self) -> PathBuf {
        self.directory().full(&self.home().name(self.group.trim_end_matches('/'))).into()
    }

    /// Names of steps and arrays that dead owners left unpublished, removed when the store was opened.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Names of arrays of which an update in place began and did not end, here or in an earlier program: each chunk is old or new.
    /// Writing what was being written again, or more, ends it. Also what is only half published, and what is left of owners who may be alive.
    pub fn unfinished(&self) -> Vec<String> {
        let known = self.unfinished.list().into_iter();
        known.filter_map(|name| Some(name.strip_prefix(&self.group)?.to_string())).collect()
    }

    /// Records beside the store that are not believed, since others made them who may not change it, or that cannot be read;
    /// each with the reason.
    pub fn passed_over(&self) -> &[String] {
        &self.passed_over
    }

    /// Paths of the groups above a store that is open for writing that have consolidated metadata: changes of the store do
    /// not show there.
    pub fn consolidated_above(&self) -> &[String] {
        &self.above
    }

    /// Writes consolidated metadata of all nodes below the group into its metadata, where zarr and xarray look for them
    /// first. Collective. Any later change of the store through this library removes them.
    ///
    /// # Errors
    /// The same on all ranks, when the store cannot be written or the metadata of a node are not valid.
    pub fn consolidate(&self) -> Result<(), Error> {
        let what = format!("consolidate '{}'", self.path().display());
        let fault = self.check_writable().err().map(|fault| fault.context(&what));
        let fields = vec![("group".to_string(), self.path().display().to_string())];
        let question = Question::opening(what.clone(), fields, fault);
        let (attempts, base) = (self.attempts.clone(), self.base());
        // The blocks of groups above this one say nothing of it.
        let mut above = self.ancestors(&self.group);
        above.pop();
        self.comm.agree_on(question, false, move || {
            let listed = || {
                let mut nodes = Vec::new();
                below(&*attempts.home.names, &base, "", &mut nodes).map(|()| nodes)
            };
            drop_consolidated(&attempts, &above)?;
            let key = format!("{base}{METADATA_KEY}");
            let mut nodes = listed()?;
            for _ in 0..CONSOLIDATE_TURNS_MAX {
                let new = |bytes: &[u8]| {
                    consolidated::consolidate(bytes, &key, nodes.clone()).map(Some).map_err(format_fault)
                };
                attempts.check_still_there()?;
                attempts.amend(&key, new)?;
                // Who published meanwhile has removed the block before this one, or not.
                let now = listed()?;
                if std::mem::replace(&mut nodes, now) == nodes {
                    return Ok(Vec::new());
                }
            }
            drop_consolidated(&attempts, &[base])?;
            let text = format!("{what}: others change what is below all the time");
            Err(Fault::new(FaultKind::Busy, text).hint("consolidate when nobody writes"))
        })?;
        Ok(())
    }

    /// Attributes of the group.
    pub fn attributes(&self) -> Attributes {
        self.lock_attributes().clone()
    }

    fn lock_attributes(&self) -> MutexGuard<'_, Attributes> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it was opened.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Where the group lies below the home of attempts: empty, or ending with `/`.
    fn base(&self) -> String {
        match &self.staged {
            Some(staged) => format!("{staged}/"),
            None if self.home().base.is_empty() => self.group.clone(),
            None => format!("{}/{}", self.home().base, self.group),
        }
    }

    /// The name of an array or group of this one, as seen from the store's root.
    fn shown(&self, name: &str) -> String {
        format!("{}{name}", self.group)
    }

    /// Names of the arrays in the group, sorted: those that were there when the group was opened or [refreshed](Store::refresh),
    /// and those that this program has made since. Of requests, those that the user has waited for, or that a call that blocks
    /// has; with dedicated servers, what a write makes from the next call on. Local, and the same on all ranks at the same
    /// place of the program.
    pub fn arrays(&self) -> Result<Vec<String>, Error> {
        self.nodes(NodeType::Array)
    }

    /// Names of the groups and published steps in the group, sorted. Local, as [`Store::arrays`].
    pub fn groups(&self) -> Result<Vec<String>, Error> {
        self.nodes(NodeType::Group)
    }

    /// Whether [`Store::arrays`] lists an array of this name. Local.
    ///
    /// # Errors
    /// Never: what cannot be read is listed, too.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        Ok(self.listing.has((name, NodeType::Array), self.comm.line().settled(), self.finding())?)
    }

    fn nodes(&self, wanted: NodeType) -> Result<Vec<String>, Error> {
        Ok(self.listing.of_kind(wanted, self.comm.line().settled(), self.finding())?)
    }

    /// Finds in storage what a node of the group is. What cannot be read is listed, too: whoever reads it hears why, and it keeps
    /// nobody from the others.
    fn finding(&self) -> impl Fn(&str) -> Result<Option<NodeType>, Fault> {
        let (directory, base) = (self.directory(), self.base());
        move |name| {
            let kind = match self.told_of(name) {
                Ok(None) => kind_of(&*directory, &place(&base, name)),
                told => told.and_then(|told| told.map(|told| node_type(&told, name).map_err(format_fault)).transpose()),
            };
            Ok(kind.unwrap_or(Some(NodeType::Array)))
        }
    }

    /// Takes note of what others have made or removed in the group since it was opened. Collective.
    ///
    /// # Errors
    /// The same on all ranks, when the group cannot be read.
    pub fn refresh(&self) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let fields = vec![("operation".to_string(), "refresh".to_string()), ("file or store".into(), quoted(&path))];
        let question = Question::opening(format!("refresh '{path}'"), fields, None);
        let (directory, base) = (self.directory(), self.base());
        let (unfinished, attempts) = (self.unfinished.clone(), self.attempts.clone());
        let told = self.comm.agree_on(question, false, move || {
            let told = tell_nodes(Writer::default(), &nodes_of(&*directory, &base)?);
            Ok(unfinished.tell_ended(told, &attempts.home, |name| marker_of(&attempts.home, name))?.0)
        })?;
        let mut told = Reader::new(&told);
        self.listing.refresh(hear_nodes(&mut told)?, self.comm.line().settled());
        let broken = || Fault::new(FaultKind::Peer, "internal error: cannot decode what rank 0 told of the group");
        self.unfinished.hear_ended(&mut told).ok_or_else(broken)?;
        self.forget_all();
        self.tell([""]);
        Ok(())
    }

    /// What an array is, as this rank finds it in storage; of one that requests under way make, what it will be, but for its
    /// chunks. Local; but a rank that holds no piece of an array and was not told its type waits for the request that makes it.
    ///
    /// # Errors
    /// This rank's own: when there is no such array, or its metadata are not valid.
    pub fn info(&self, name: &str) -> Result<ArrayInfo, Error> {
        match self.listing.coming(name) {
            Some(Coming::Known(metadata)) => return Ok(ArrayInfo { metadata: *metadata }),
            // Only what is written can tell.
            Some(Coming::Untyped) => self.comm.line().drain(),
            None => {}
        }
        if let Some(told) = self.told_array(name)? {
            return Ok(told);
        }
        Ok(ArrayInfo { metadata: read_array(&*self.directory(), &self.base(), name)?.0 })
    }

    /// What arrays are, as rank 0 finds them, for something that is about to be done with them. Collective: all ranks get
    /// the same, within the limits on waiting. Unless it shall be `fresh`, what they were when this was called before
    /// may do; a read that blocks says whether they have changed since, before anything moves ([`FaultKind::Outdated`]).
    ///
    /// # Errors
    /// The same on all ranks, when there is no such array, or its metadata are not valid.
    pub fn describe(&self, names: &[&str], doing: &str, fresh: bool) -> Result<Vec<ArrayInfo>, Error> {
        if let Some(known) = self.known(names).filter(|_| !fresh) {
            return Ok(known.into_iter().map(|metadata| ArrayInfo { metadata }).collect());
        }
        let what = format!("{doing} of {} of '{}'", listed(names), self.path().display());
        let fields = vec![
            ("operation".to_string(), doing.to_string()),
            ("file or store".into(), quoted(self.path().display())),
            ("names of the arrays".into(), listed(names)),
        ];
        let question = Question::opening(what.clone(), fields, None);
        let (directory, base) = (self.directory(), self.base());
        let wanted: Vec<String> = names.iter().map(ToString::to_string).collect();
        let told = self.comm.agree_on(question, self.attempts.at_once(names.len()), move || {
            let each = wanted
                .iter()
                .try_fold(Writer::default(), |w, name| Ok(w.bytes(&read_array(&*directory, &base, name)?.1.metadata)));
            each.map(|w| w.0).map_err(|fault: Fault| fault.context(&what))
        })?;
        let mut r = Reader::new(&told);
        let each = names.iter().map(|name| {
            let senseless = || Fault::new(FaultKind::Peer, "what rank 0 told of an array cannot be decoded");
            let bytes = r.bytes().ok_or_else(senseless)?;
            let metadata = ArrayMetadata::parse(bytes, name).map_err(format_fault)?;
            self.keep_known(name, &metadata, bytes);
            self.was_told(name, bytes);
            Ok(ArrayInfo { metadata })
        });
        each.collect()
    }

    /// Opens a group or published step of this group. Collective.
    pub fn group(&self, name: &str) -> Result<Store, Error> {
        let what = format!("open group '{name}' of '{}'", self.path().display());
        let base = format!("{}{name}/", self.base());
        let fault = check_there(name).err();
        let fields = vec![("group".into(), quoted(self.directory().full(base.trim_end_matches('/'))))];
        let question = Question::opening(what.clone(), fields, fault);
        let (directory, wanted) = (self.directory(), name.to_string());
        let told = self.comm.agree_on(question, false, move || {
            let node = read_node(&*directory, base.trim_end_matches('/'))?.ok_or_else(|| {
                Fault::new(FaultKind::NotFound, format!("{what}: there is no group '{wanted}'"))
                    .hint("list the groups and published steps with groups()")
            })?;
            let bytes = node.metadata;
            let key = directory.full(&format!("{base}{METADATA_KEY}"));
            if node_type(&bytes, &key).map_err(|error| format_fault(error).context(&what))? == NodeType::Array {
                return Err(Fault::new(FaultKind::Invalid, format!("{what}: '{wanted}' is an array, not a group"))
                    .hint("open it as an array"));
            }
            GroupMetadata::parse(&bytes, &key).map_err(|error| format_fault(error).context(&what))?;
            Ok(tell_nodes(Writer::default().bytes(&bytes), &nodes_of(&*directory, &base)?).0)
        })?;
        let mut r = Reader::new(&told);
        let senseless = || Fault::new(FaultKind::Peer, "internal error: cannot decode what rank 0 told of the group");
        let metadata = r.bytes().ok_or_else(senseless)?;
        let attributes = GroupMetadata::parse(metadata, name).map_err(format_fault)?.attributes;
        let attributes = Arc::new(Mutex::new(editing::shown_attributes(attributes)));
        let place = self.directory().full(&format!("{}{name}/", self.base()));
        let listing = self.comm.listings().open(place, hear_nodes(&mut r)?, self.comm.line().settled());
        let staged = self.staged.as_ref().map(|staged| format!("{staged}/{name}"));
        let (removed, passed_over) = (Vec::new(), Vec::new());
        let group = format!("{}{name}/", self.group);
        let store = Store { group, staged, removed, passed_over, attributes, listing, ..self.clone() };
        store.tell([""]);
        Ok(store)
    }

    /// Changes what the user wants of the planner.
    pub fn set_preference(&mut self, hints: Preference) {
        self.options.preference = hints;
    }

    /// What the user wants of the planner.
    pub fn preference(&self) -> &Preference {
        &self.options.preference
    }

    fn check_writable(&self) -> Result<(), Fault> {
        if self.mode == Mode::Read {
            return Err(Fault::new(FaultKind::Invalid, "the store is open for reading only")
                .hint("open it with mode 'r+' to change it"));
        }
        Ok(())
    }

    /// Waits for all requests. Collective.
    ///
    /// # Errors
    /// The failure of a request of this store that nobody waited for, the same on all ranks.
    pub fn flush(&self) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let end = End::of(format!("flush of '{path}'"), "flush", &path);
        Ok(self.comm.sync_and(end, self.target, Publish::nothing())?)
    }

    /// Ends the use of the store on all ranks; what was written and published stays. Waits for all requests; the failure
    /// of one that nobody waited for is that of this call.
    pub fn close(self) -> Result<(), Error> {
        let path = self.path().display().to_string();
        let end = End::of(format!("close '{path}'"), "close", &path);
        // A group or step of it may be in use.
        let whole = self.mode.writes() && self.group.is_empty() && self.staged.is_none();
        let attempts = self.attempts.clone();
        let publish = match whole {
            true => Publish::by(self.attempts.at_once(1), move || attempts.end()),
            false => Publish::nothing(),
        };
        Ok(self.comm.sync_and(end, self.target, publish)?)
    }
}

/// Metadata of all nodes below a group, by their paths.
fn below(names: &dyn Names, group: &str, path: &str, nodes: &mut Vec<(String, Vec<u8>)>) -> Result<(), Fault> {
    /// Links may lead in a circle.
    const DEPTH_MAX: usize = 64;
    for name in names.list(&format!("{group}{path}"))? {
        let key = format!("{group}{path}{name}/{METADATA_KEY}");
        if !is_shown(&name) || path.matches('/').count() >= DEPTH_MAX {
            continue;
        }
        let Some(bytes) = names.read(&key)? else { continue };
        let kind = node_type(&bytes, &key).map_err(format_fault)?;
        nodes.push((format!("{path}{name}"), bytes));
        if kind == NodeType::Group {
            below(names, group, &format!("{path}{name}/"), nodes)?;
        }
    }
    Ok(())
}
