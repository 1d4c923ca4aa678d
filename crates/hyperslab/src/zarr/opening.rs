//! Opening a store: what rank 0 finds and makes, and what it tells of that.

use super::nodes::{ROOT, is_shown, kind_of, place, read_node};
use crate::error::format_fault;
use crate::listing;
use crate::mode::Mode;
use hyperslab_collective::attempts::is_token;
use hyperslab_collective::attempts::{Attempts, Found, Home, INSIDE, MARKER, Whose, recover, was_left_torn};
use hyperslab_format::zarr::{GroupMetadata, METADATA_KEY, Map, NodeType, Value, consolidated, node_type, v2};
use hyperslab_world::{Fault, FaultKind, Locked, Mount, Names, Publishing, Reader, Writer, fingerprint};
use std::time::Instant;

/// What rank 0 finds and makes.
pub(super) struct Opened {
    pub(super) attempts: Attempts,
    metadata: Vec<u8>,
    found: Found,
    /// Groups above the store whose consolidated metadata go stale when it changes.
    above: Vec<String>,
    nodes: Vec<listing::Found>,
}

/// What all ranks are told of it.
pub(super) struct Heard {
    pub(super) home: Home,
    pub(super) opening: u64,
    pub(super) attributes: Map<String, Value>,
    pub(super) found: Found,
    pub(super) above: Vec<String>,
    pub(super) nodes: Vec<listing::Found>,
    /// The mount by which rank 0 sees it, where not all see the same.
    pub(super) mount: Option<Mount>,
}

/// So many nodes are looked at when a group is opened, each of which takes some 10 us on a disk of this host and longer
/// elsewhere; of larger groups, each rank finds what nodes are when it lists them.
pub(super) const KINDS_MAX: usize = 128;

/// The nodes of a group, and what they are.
pub(super) fn nodes_of(names: &dyn Names, group: &str) -> Result<Vec<listing::Found>, Fault> {
    let mut listed = names.list(group)?;
    listed.retain(|name| is_shown(name));
    let many = listed.len() > KINDS_MAX;
    let look = |name: String| {
        if many {
            return Some((name, None));
        }
        match kind_of(names, &place(group, &name)) {
            Ok(None) => None,
            // What is wrong with one node is said by whoever looks at it.
            found => Some((name, found.ok().flatten())),
        }
    };
    Ok(listed.into_iter().filter_map(look).collect())
}

/// Nodes for other ranks.
pub(super) fn tell_nodes(w: Writer, nodes: &[listing::Found]) -> Writer {
    let kind = |kind: Option<NodeType>| match kind {
        None => 0,
        Some(NodeType::Array) => 1,
        Some(NodeType::Group) => 2,
    };
    let w = w.number(nodes.len() as u64);
    nodes.iter().fold(w, |w, (name, found)| w.bytes(name.as_bytes()).number(kind(*found)))
}

/// What [`tell_nodes`] told.
pub(super) fn hear_nodes(r: &mut Reader) -> Result<Vec<listing::Found>, Fault> {
    let node = |r: &mut Reader| {
        let (name, kind) = (r.text()?, r.number()?);
        Some((name, [None, Some(NodeType::Array), Some(NodeType::Group)].get(kind as usize).copied().flatten()))
    };
    let broken = || Fault::new(FaultKind::Peer, "what rank 0 told of a group cannot be decoded");
    let count = r.number().ok_or_else(broken)?;
    (0..count).map(|_| node(r).ok_or_else(broken)).collect()
}

impl Opened {
    pub(super) fn told(&self) -> Vec<u8> {
        let Opened { attempts, metadata, found, above, nodes } = self;
        let told =
            Writer::default().bytes(attempts.home.names.full("").as_bytes()).bytes(attempts.home.base.as_bytes());
        let told = told.number(attempts.opening).bytes(metadata);
        let told = Mount::tell(attempts.home.names.mount().as_ref(), told);
        let told = found.tell(tell_nodes(told, nodes));
        above.iter().fold(told, |told, name| told.bytes(name.as_bytes())).0
    }
}

impl Heard {
    pub(super) fn of(names: &dyn Names, told: &[u8]) -> Result<Heard, Fault> {
        let mut r = Reader::new(told);
        let broken = || Fault::new(FaultKind::Peer, "what rank 0 told of a store cannot be decoded");
        let (Some(home), Some(base), Some(opening)) = (r.text(), r.text(), r.number()) else { return Err(broken()) };
        let metadata = r.bytes().ok_or_else(broken)?;
        let attributes = GroupMetadata::parse(metadata, METADATA_KEY).map_err(format_fault)?.attributes;
        let mount = Mount::hear(&mut r).ok_or_else(broken)?;
        let nodes = hear_nodes(&mut r)?;
        let found = Found::hear(&mut r).ok_or_else(broken)?;
        let above: Vec<String> = std::iter::from_fn(|| r.text()).collect();
        let names = names.at(&home);
        let home = if base.is_empty() { Home::inside(names) } else { Home::beside(names, &base) };
        Ok(Heard { home, opening, attributes, found, above, nodes, mount })
    }
}

/// The home beside a store, if there can be one: not beside a link, since what it leads to may lie anywhere.
fn beside(directory: &dyn Names) -> Option<Home> {
    let (above, name) = directory.above()?;
    let names = directory.at(&above);
    if names.is_link(&name) { None } else { Some(Home::beside(names, &name)) }
}

fn inside(directory: &dyn Names) -> Home {
    Home::inside(directory.at(&directory.full("")))
}

/// Where a store's attempts lie: beside it, if things can be made and renamed from there.
fn home(directory: &dyn Names, mode: Mode, left: &Found) -> Home {
    let can_rename = |home: &Home| home.names.can_rename(&format!(".{}.hyperslab-owners", home.base), &home.base);
    // Where somebody else has taken the name of the list, there is one in the store.
    let can_list = |home: &Home| left.passed_over.is_empty() || home.can_list();
    let usable = |home: &Home| !mode.writes() || can_list(home) && can_rename(home);
    beside(directory).filter(usable).unwrap_or_else(|| inside(directory))
}

/// How often others may make a store where one is about to be made.
const TURNS_MAX: usize = 10;

/// How a store is opened.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) durable: bool,
    /// Whether it is known to lie on a disk of this host.
    pub(super) at_hand: bool,
    /// When all other ranks have given it up.
    pub(super) until: Instant,
}

impl How {
    /// Nothing is erased of which the other ranks were told that it failed: rank 0 may have been stopped meanwhile.
    fn check_time(self) -> Result<(), Fault> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(Fault::new(FaultKind::Timeout, "the other ranks have given it up meanwhile, and nothing was erased"))
    }
}

/// Rank 0's part of opening a store.
pub(super) fn open_root(names: &dyn Names, mode: Mode, how: How) -> Result<Opened, Fault> {
    for _ in 1..TURNS_MAX {
        // Where another program made something meanwhile, mode w erases that, too, and mode x fails.
        if let Some(opened) = try_to_open(names, mode, how)? {
            return Ok(opened);
        }
    }
    let text = format!("'{}' is made and removed by others all the time", names.full(""));
    Err(Fault::new(FaultKind::Busy, text))
}

/// The same, if nobody else makes something there meanwhile.
fn try_to_open(names: &dyn Names, mode: Mode, how: How) -> Result<Option<Opened>, Fault> {
    let How { durable, at_hand, .. } = how;
    // Owners of a store meet where it really lies, by whatever link they came.
    let directory = names.at(&names.resolve()?);
    let real = if directory.is_link("") { directory.followed()? } else { None };
    let directory = real.map_or(directory, |real| names.at(&real));
    let directory = &*directory;
    let root = directory.full("");
    let whose = if mode.writes() { Whose::Dead } else { Whose::Named };
    let mut left = beside(directory).map_or(Ok(Found::default()), |home| recover(&home, whose))?;
    let mode = match mode {
        Mode::UpdateOrCreate if directory.exists(METADATA_KEY) => Mode::Update,
        Mode::UpdateOrCreate => Mode::Create,
        mode => mode,
    };
    let (found, kind) = match mode {
        Mode::Read => found_to_read(directory)?,
        _ => (directory.read(METADATA_KEY)?, NodeType::Group),
    };
    let is_array = |bytes: &Vec<u8>| node_type(bytes, METADATA_KEY).is_ok_and(|kind| kind == NodeType::Array);
    if mode == Mode::Update && found.as_ref().is_some_and(is_array) {
        return Err(is_an_array(&root));
    }
    let there = directory.exists("");
    if there && directory.length("").is_some() {
        return Err(is_a_file(&root, mode));
    }
    match (mode, &found) {
        (Mode::Create, _) if there && !is_vacant(directory) => {
            return Err(Fault::new(FaultKind::Exists, format!("'{root}' exists already"))
                .hint("open it with mode 'r+' to change it; mode 'w' erases it and makes a new one"));
        }
        (Mode::Read | Mode::Update, None) => {
            return Err(is_no_store(directory, &root, there));
        }
        // Never erase what is not ours to erase; but a store of ours may have lost its metadata when it was erased.
        (Mode::Write | Mode::Create, None) if there => {
            let listed = directory.list("")?;
            if !listed.iter().all(|name| is_unborn(name)) && !listed.iter().any(|name| name == INSIDE) {
                return Err(Fault::new(FaultKind::Exists, format!("'{root}' is not a Zarr v3 store, and not empty"))
                    .hint("choose another path, or remove the directory"));
            }
        }
        _ => {}
    }
    let key = format!("{root}/{METADATA_KEY}");
    if there {
        left = left.and(recover(&inside(directory), whose)?);
    }
    let opening = fingerprint(directory.token().as_bytes());
    let fresh = GroupMetadata::default().to_json();
    let anew = matches!(mode, Mode::Write | Mode::Create);
    if anew && there && found.is_none() {
        // Whoever was killed while he opened a new store left no more.
        directory.list("")?.iter().filter(|name| is_unborn(name)).try_for_each(|name| directory.remove(name))?;
    }
    if anew && !there && !make_root(directory, durable)? {
        return Ok(None);
    }
    let held = |home: &Home| Ok::<_, Fault>(Some(home.names.hold(&home.base)?));
    let home = home(directory, mode, &left);
    let attempts = if anew && there && !is_vacant(directory) {
        if let Some(name) = directory.list("")?.iter().find(|name| is_busy(directory, name)) {
            let text = format!("'{name}' of '{root}' is being changed in place by another owner at this moment");
            return Err(Fault::new(FaultKind::Busy, text).hint("wait until it is done, or choose another path"));
        }
        erase(directory, &home, opening, how, &fresh)?
    } else {
        if anew && !begin(directory, &fresh, durable)? {
            return Ok(None);
        }
        let held = if mode.writes() { held(&home)? } else { None };
        Attempts::new(home, opening, at_hand, durable, held)
    };
    let mut metadata = if anew { fresh } else { found.unwrap_or_default() };
    let parsed = GroupMetadata::parse(&metadata, &key).map_err(format_fault)?;
    if consolidated::may_have(&metadata) {
        // What all nodes below say is told to nobody, and kept by nobody.
        metadata = parsed.to_json();
    }
    if !anew {
        left.unfinished.extend(unfinished(directory)?);
    }
    let above = if mode.writes() { consolidated_above(directory) } else { Vec::new() };
    let nodes = match kind {
        NodeType::Array => vec![(ROOT.to_string(), Some(kind))],
        NodeType::Group if anew => Vec::new(),
        NodeType::Group => nodes_of(directory, "")?,
    };
    Ok(Some(Opened { attempts, metadata, found: left.and(Found::default()), above, nodes }))
}

/// The metadata of a root that is read, and what it is: that of one that is an array are those of a group without anything.
fn found_to_read(directory: &dyn Names) -> Result<(Option<Vec<u8>>, NodeType), Fault> {
    let Some(node) = read_node(directory, "")? else { return Ok((None, NodeType::Group)) };
    match node_type(&node.metadata, &directory.full(METADATA_KEY)).map_err(format_fault)? {
        NodeType::Group => Ok((Some(node.metadata), NodeType::Group)),
        NodeType::Array => Ok((Some(GroupMetadata::default().to_json()), NodeType::Array)),
    }
}

/// Makes the directory of a new store, and those above it. Returns whether it was not there.
fn make_root(directory: &dyn Names, durable: bool) -> Result<bool, Fault> {
    let Some((above, name)) = directory.above() else { return Ok(false) };
    let above = directory.at(&above);
    match above.exists("") {
        true => {}
        false if durable => above.make_durable("")?,
        false => above.make("")?,
    }
    let made = above.make_new(&name)?;
    if made && durable {
        above.sync("")?;
    }
    Ok(made)
}

/// Makes the metadata of a new store, by which it is one. Returns whether there were none.
fn begin(directory: &dyn Names, fresh: &[u8], durable: bool) -> Result<bool, Fault> {
    directory.write_new(METADATA_KEY, fresh, durable)
}

/// Groups above a store that have consolidated metadata, which tell of the store too.
fn consolidated_above(directory: &dyn Names) -> Vec<String> {
    let mut found = Vec::new();
    let mut next = directory.above();
    while let Some((above, _)) = next {
        let names = directory.at(&above);
        let Ok(Some(bytes)) = names.read(METADATA_KEY) else { break };
        match consolidated::strip(&bytes, METADATA_KEY) {
            Ok(Some(_)) => found.push(above),
            Ok(None) => {}
            Err(_) => break,
        }
        next = names.above();
    }
    found
}

/// Erases a store: a new one takes its name at once, and the old one is removed when nobody sees it any more. What cannot
/// be renamed loses its metadata first, and then one thing after another.
fn erase(directory: &dyn Names, home: &Home, opening: u64, how: How, fresh: &[u8]) -> Result<Attempts, Fault> {
    let How { durable, at_hand, .. } = how;
    let attempts = Attempts::new(home.clone(), opening, at_hand, durable, None);
    let names = &*home.names;
    if !home.base.is_empty() {
        let new = attempts.directory_like("store", &home.base, &home.base)?;
        let key = format!("{new}/{METADATA_KEY}");
        names.create_like(&key, fresh, fresh.len() as u64, &format!("{}/{METADATA_KEY}", home.base))?;
        if durable {
            names.sync_files(std::slice::from_ref(&key))?;
        }
        how.check_time()?;
        // The store that counts from now on is this one, whoever replaces it next.
        let held = names.hold(&new)?;
        attempts.publish_store(&new)?;
        if durable {
            names.sync("")?;
        }
        names.remove(&new)?;
        Ok(attempts.holding(held))
    } else {
        let mut listed = directory.list("")?;
        how.check_time()?;
        listed.retain(|name| name != INSIDE);
        if let Publishing::Metadata(_) = names.publishing() {
            attempts.erase(&listed, METADATA_KEY)?;
            directory.write(METADATA_KEY, fresh, durable)?;
            return Ok(attempts.holding(names.hold(&home.base)?));
        }
        // Before the old metadata go, whose permissions they have.
        let key = attempts.next("metadata", "")?;
        names.create_like(&key, fresh, fresh.len() as u64, METADATA_KEY)?;
        if durable {
            names.sync_files(std::slice::from_ref(&key))?;
        }
        attempts.erase(&listed, METADATA_KEY)?;
        names.rename(&key, METADATA_KEY)?;
        if durable {
            names.sync("")?;
        }
        Ok(attempts.holding(names.hold(&home.base)?))
    }
}

/// Why something that is no store of Zarr v3 cannot be opened.
fn is_no_store(directory: &dyn Names, root: &str, there: bool) -> Fault {
    let not_found = |text: String| Fault::new(FaultKind::NotFound, text);
    if !there {
        let hint = "check the path; mode 'a' makes a store where there is none";
        return not_found(format!("'{root}' does not exist")).hint(hint);
    }
    let is_v2 = [v2::GROUP_KEY, v2::ARRAY_KEY].iter().any(|key| directory.exists(key));
    if is_v2 {
        let text = format!("'{root}' is a store of Zarr v2, which can only be read");
        return not_found(text).hint("open it with mode 'r', and write what is new to another store");
    }
    if is_vacant(directory) {
        let hint = "check the path; mode 'a' makes a store in an empty directory";
        return not_found(format!("'{root}' is an empty directory, not a Zarr store")).hint(hint);
    }
    let text = format!("'{root}' is not a Zarr store: it has no {METADATA_KEY}");
    not_found(text).hint("check the path: a store is the directory that has it")
}

/// An array is opened like a store, but not to be changed.
fn is_an_array(root: &str) -> Fault {
    let text = format!("'{root}' is an array, and arrays can only be opened for reading");
    Fault::new(FaultKind::Unsupported, text).hint("open the store that it lies in with mode 'r+', and change it there")
}

/// Where a store should be, there is a file, which may be somebody's.
fn is_a_file(root: &str, mode: Mode) -> Fault {
    let kind = if mode.writes_new() { FaultKind::Exists } else { FaultKind::NotFound };
    let fault = Fault::new(kind, format!("'{root}' is not a Zarr store")).expected("a directory", "a file");
    fault.hint(match mode.writes_new() {
        true => "choose another path, or remove the file",
        false => "open raw files with open_raw, npy files with load_npy, and NetCDF files by names that end in .nc",
    })
}

/// Whether the root is a directory with nothing in it.
fn is_vacant(directory: &dyn Names) -> bool {
    let is_empty = |names: Vec<String>| names.iter().all(|name| is_unborn(name));
    directory.length("").is_none() && directory.list("").is_ok_and(is_empty)
}

/// Whether this is the name of metadata that were about to be made: the first thing in a new store.
fn is_unborn(name: &str) -> bool {
    // Where no file system tells who came first, a guard lies beside it (`real/guard.rs`).
    name.strip_prefix(&format!(".{METADATA_KEY}.hyperslab-")).is_some_and(|rest| is_token(rest) || rest == "naming")
}

/// Whether an array is being updated in place.
fn is_busy(directory: &dyn Names, name: &str) -> bool {
    let marker = format!("{name}/{MARKER}");
    !name.starts_with('.') && matches!(directory.lock(&marker), Ok(Locked::Busy))
}

/// The marker of an array by its path in the store.
pub(super) fn marker_of(home: &Home, name: &str) -> String {
    home.name(&if name == ROOT { MARKER.into() } else { format!("{name}/{MARKER}") })
}

/// Arrays in the root of which an update in place has begun and not ended, and is not going on.
fn unfinished(directory: &dyn Names) -> Result<Vec<String>, Fault> {
    let marked = |name: &String| {
        let marker = format!("{name}/{MARKER}");
        directory.exists(&marker) && was_left_torn(directory, &marker).unwrap_or(false)
    };
    Ok(directory.list("")?.into_iter().filter(|name| !name.starts_with('.')).filter(marked).collect())
}
