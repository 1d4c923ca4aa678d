//! Rank 0's work on a file: what it is called, how long it is, and where it lies on its disk.

use super::policy::{EARLY_LOOKS_MAX, LOOKS_MAX, NPY_HEADER_MAX};
use super::twice::Making;
use crate::error::format_fault;
use crate::mode::Mode;
use hyperslab_collective::attempts::{
    Attempts, Found, Home, Whose, complete, drop_idle_marker, recover, was_left_torn,
};
use hyperslab_format::npy::NpyHeader;
use hyperslab_plan::{Extent, Parameters, Strategy, Transfer, physical_order};
use hyperslab_world::{Fault, FaultKind, Hold, Mount, Names, Proof, Publishing, Reader, Root, Writer, fingerprint};
use std::sync::Arc;

/// The name of the file that says that an update has not ended.
pub(super) fn marker(name: &str) -> String {
    format!(".{name}.hyperslab-update")
}

pub(super) fn not_there(path: &str) -> Fault {
    Fault::new(FaultKind::NotFound, format!("'{path}' does not exist"))
}

/// The directory and the name of a file. It is read, changed or made where it really lies, so that its owners meet there by
/// whatever link they came, and links stay.
pub(super) fn parts(file: &dyn Names) -> Result<(Arc<dyn Names>, String), Fault> {
    let path = file.resolve()?;
    let real = if file.at(&path).is_link("") { file.at(&path).followed()? } else { None };
    let path = real.unwrap_or(path);
    let (directory, name) = file.at(&path).above().ok_or_else(|| {
        Fault::new(FaultKind::Invalid, format!("'{path}' does not end with a file name"))
            .hint("a file has a name in a directory, or in a store in memory")
    })?;
    Ok((file.at(&directory), name))
}

/// What rank 0 finds and makes when a file is opened.
pub(super) struct FoundFile {
    pub(super) attempts: Arc<Attempts>,
    header: Vec<u8>,
    /// What other ranks must see, too, where the file exists.
    proofs: Vec<Proof>,
    found: Found,
}

/// What all ranks are told of it.
pub(super) struct Heard {
    pub(super) home: Home,
    pub(super) opening: u64,
    pub(super) hidden: String,
    pub(super) header: Vec<u8>,
    pub(super) proofs: Vec<Proof>,
    pub(super) found: Found,
    /// Whether it lies on a disk or in memory of rank 0's host.
    pub(super) at_hand: bool,
    /// The mount by which rank 0 sees it, where not all see the same.
    pub(super) mount: Option<Mount>,
}

impl FoundFile {
    pub(super) fn told(&self) -> Vec<u8> {
        let FoundFile { attempts, header, proofs, found } = self;
        let (names, name) = (&attempts.home.names, &attempts.home.base);
        let told = Writer::default().bytes(names.full("").as_bytes()).bytes(name.as_bytes());
        let root = Root { opening: attempts.opening, proofs: proofs.clone(), ..Root::new(names.full(name)) };
        let told = told.bytes(attempts.file().as_bytes()).bytes(header).bytes(&Root::encode(&[root]));
        found.tell(Mount::tell(names.mount().as_ref(), told.number(attempts.at_once(1).into()))).0
    }
}

impl Heard {
    pub(super) fn of(names: &dyn Names, told: &[u8]) -> Result<Heard, Fault> {
        let mut r = Reader::new(told);
        let broken = || Fault::new(FaultKind::Peer, "what rank 0 told of a file cannot be decoded");
        let (Some(directory), Some(name), Some(hidden)) = (r.text(), r.text(), r.text()) else { return Err(broken()) };
        let header = r.bytes().ok_or_else(broken)?.to_vec();
        let root = r.bytes().and_then(Root::decode).and_then(|mut roots| roots.pop()).ok_or_else(broken)?;
        let at_hand = r.number().ok_or_else(broken)? != 0;
        let mount = Mount::hear(&mut r).ok_or_else(broken)?;
        let found = Found::hear(&mut r).ok_or_else(broken)?;
        let home = Home::beside(names.at(&directory), &name);
        Ok(Heard { home, opening: root.opening, hidden, header, proofs: root.proofs, found, at_hand, mount })
    }
}

/// What was left of a file by others, which is completed or removed.
fn recovered(home: &Home, mode: Mode) -> Result<Found, Fault> {
    complete(home)?;
    let mut found = recover(home, if mode.writes() { Whose::Dead } else { Whose::Named })?;
    let (names, marker) = (&*home.names, marker(&home.base));
    let noted = if mode.writes() { drop_idle_marker(names, &marker) } else { Ok(()) };
    let torn = match mode.writes_new() {
        true => noted.map(|()| false),
        false => noted.and_then(|()| was_left_torn(names, &marker)),
    };
    match torn {
        Err(fault) if !mode.writes() || fault.kind == FaultKind::Foreign => found.passed_over.push(fault.text()),
        Err(fault) => return Err(fault),
        Ok(true) => found.unfinished.push(home.base.clone()),
        Ok(false) => {}
    }
    Ok(found)
}

/// What is about to be written or read; a file that exists is held, so that it is noticed if another one takes its place.
fn attempts(home: Home, at_hand: bool, durable: bool, held: Option<Hold>) -> Arc<Attempts> {
    let opening = fingerprint(home.names.token().as_bytes());
    Arc::new(Attempts::new(home, opening, at_hand, durable, held))
}

/// What rank 0 tells of a file that exists, given its directory, name and length \[B\]: its header, and what other ranks must see.
pub(super) type SeenFile = (Vec<u8>, Vec<Proof>);

/// Holds the directory of a file that is written: what is made beside it lies where it was opened, whatever has the directory's
/// name by then. Gives which directory it is, too.
fn held(home: Home, mode: Mode) -> Result<(Home, Option<(u64, u64)>), Fault> {
    let names = home.names.clone();
    match mode.writes().then(|| names.hold("")) {
        Some(Err(fault)) if mode.writes_new() => Err(fault),
        // All of several directories are looked at.
        Some(Ok(_)) if mode.writes_new() && names.parts() > 1 && !names.exists("") => Err(not_there(&names.full(""))),
        Some(Ok(above)) => Ok((home.within(&above), Some(above.identity))),
        _ => Ok((home, None)),
    }
}

/// Rank 0's part of opening; `look` looks at a file that exists.
pub(super) fn open_file(
    file: &dyn Names,
    (mode, durable): (Mode, bool),
    at_hand: bool,
    look: impl Fn(&dyn Names, &str, u64) -> Result<SeenFile, Fault>,
) -> Result<FoundFile, Fault> {
    if mode.writes()
        && let Publishing::Metadata(_) = file.publishing()
    {
        let text = format!("'{}' cannot be written: an object store takes whole objects only", file.full(""));
        return Err(Fault::new(FaultKind::Unsupported, text).hint(
            "give a path in a file system for raw, npy and NetCDF files; Zarr stores can lie in an object store",
        ));
    }
    let (directory, name) = parts(file)?;
    let home = Home::beside(directory.clone(), &name);
    let missing = || match directory.exists("") {
        true if directory.exists(&name) => {
            let text = format!("'{}' cannot be opened", directory.full(&name));
            let hint = "give format='zarr' if it is a Zarr store";
            Fault::new(FaultKind::NotFound, text).expected("a file", "a directory").hint(hint)
        }
        true => not_there(&directory.full(&name)),
        false => Fault::new(FaultKind::NotFound, format!("the directory '{}' does not exist", directory.full("")))
            .hint("check the path, and make the directory first"),
    };
    let (home, above) = held(home, mode).map_err(|fault| if directory.exists("") { fault } else { missing() })?;
    let made = Making::of(&*directory, &name, above);
    if mode.writes() {
        made.check_once()?;
    }
    let found = recovered(&home, mode)?;
    if mode == Mode::Create && directory.exists(&name) {
        return Err(
            Fault::new(FaultKind::Exists, "the file exists already").hint("open it with mode 'w' to replace it")
        );
    }
    if mode.writes_new() {
        let attempts = attempts(home, at_hand, durable, None);
        made.begins(&attempts)?;
        return Ok(FoundFile { attempts, header: Vec::new(), proofs: Vec::new(), found });
    }
    let seen = || {
        directory.check(&name)?;
        let actual = directory.length(&name).ok_or_else(missing)?;
        look(&*directory, &name, actual)
    };
    let held = || directory.hold(&name).map_err(|_| missing());
    let (held, (header, proofs)) = seen_at_rest(&*directory, &home, held, seen)?;
    Ok(FoundFile { attempts: attempts(home, at_hand, durable, Some(held)), header, proofs, found })
}

/// What is seen of a file, which is held and stays the same while it is looked at.
fn seen_at_rest(
    directory: &dyn Names,
    home: &Home,
    hold: impl Fn() -> Result<Hold, Fault>,
    seen: impl Fn() -> Result<SeenFile, Fault>,
) -> Result<(Hold, SeenFile), Fault> {
    for looks in 0..LOOKS_MAX {
        let held = hold()?;
        let seen = seen();
        let is_early = seen.as_ref().is_err_and(|fault| fault.kind == FaultKind::Corrupt) && looks < EARLY_LOOKS_MAX;
        if is_early && directory.await_others(&home.base) {
            continue;
        }
        // Of a file that was replaced meanwhile, some of what was seen may be the other's.
        if directory.identity(&home.base)? == Some(held.identity) {
            return Ok((held, seen?));
        }
    }
    let text =
        format!("'{}' is replaced again and again, and was another file at each of {LOOKS_MAX} looks", home.shown());
    Err(Fault::new(FaultKind::Outdated, text).hint("open it again"))
}

/// Looks at a raw file, which must have so many bytes, of which the header is some.
pub(super) fn look_at_raw(
    directory: &dyn Names,
    name: &str,
    actual: u64,
    (header_bytes, end): (u64, u64),
) -> Result<SeenFile, Fault> {
    if actual != end {
        return Err(Fault::new(
            FaultKind::Corrupt,
            format!("the file has {actual} B, but the header and the arrays named need {end} B"),
        )
        .hint("name all arrays of the file in order, with the types stored, and the length of its header"));
    }
    let header = if header_bytes == 0 { None } else { directory.read_prefix(name, header_bytes)? };
    Ok((header.unwrap_or_default(), vec![Proof::Length(directory.full(name).into(), actual)]))
}

/// Looks at an npy file.
pub(super) fn look_at_npy(directory: &dyn Names, name: &str, actual: u64) -> Result<SeenFile, Fault> {
    let path = directory.full(name);
    let prefix = directory.read_prefix(name, NPY_HEADER_MAX)?.ok_or_else(|| not_there(&path))?;
    let (header, offset) = NpyHeader::parse(&prefix, &path).map_err(format_fault)?;
    header.check_size(offset, actual, &path).map_err(format_fault)?;
    let (header, full) = (prefix[..offset as usize].to_vec(), Arc::<str>::from(path));
    let proofs = vec![Proof::Length(full.clone(), actual), Proof::Stretch(full, (0, offset), fingerprint(&header))];
    Ok((header, proofs))
}

/// Lets disk-directed I/O know the order of a file on its disk; of a new file, after its space is reserved \[B\].
pub(super) fn follow_disk(
    parameters: &mut Parameters,
    transfer: &Transfer,
    directory: &dyn Names,
    (name, new_bytes): (&str, u64),
) -> Result<(), Fault> {
    if parameters.strategy != Strategy::DISK_DIRECTED {
        return Ok(());
    }
    if new_bytes > 0 {
        directory.reserve(name, new_bytes)?;
    }
    // The order only makes it faster: where nobody tells it, that of the file does. What is wrong with the file itself
    // shows when it is written or read.
    let extents = directory.extents(name).ok().flatten().unwrap_or_default();
    let known = extents.iter().map(|e| Extent { offset: e.logical, physical: e.physical, bytes: e.bytes });
    let known: Vec<Extent> = known.collect();
    parameters.order = physical_order(&Arc::new(transfer.clone()), parameters, |_| known.clone());
    Ok(())
}
