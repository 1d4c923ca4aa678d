//! Rank 0's work on a file: what it is called, how long it is, and where it lies on its disk.

use super::FileArray;
use crate::zarr::Mode;
use hyperslab_plan::{Extent, Parameters, Strategy, Transfer, physical_order};
use hyperslab_world::{Fault, FaultKind, Names, Writer};
use std::sync::Arc;

/// The name of a file until it is published.
pub(super) fn hidden(name: &str) -> String {
    format!(".{name}.hyperslab-partial")
}

/// The name of the file that says that an update has not ended.
pub(super) fn marker(name: &str) -> String {
    format!(".{name}.hyperslab-update")
}

pub(super) fn not_there(path: &str) -> Fault {
    Fault::new(FaultKind::NotFound, format!("'{path}' does not exist"))
}

/// The directory and the name of a file.
pub(super) fn parts(file: &dyn Names) -> Result<(Arc<dyn Names>, String), Fault> {
    let path = file.resolve()?;
    let (directory, name) = file.at(&path).above().ok_or_else(|| {
        Fault::new(FaultKind::Invalid, format!("'{path}' does not end with a file name"))
            .hint("a file has a name in a directory, or in a store in memory")
    })?;
    Ok((file.at(&directory), name))
}

/// Where arrays begin, and where the last one ends.
pub(super) fn lay_out(header_bytes: u64, arrays: &[FileArray]) -> Result<(Vec<u64>, u64), Fault> {
    let mut end = header_bytes;
    let mut offsets = Vec::with_capacity(arrays.len());
    for array in arrays {
        offsets.push(end);
        end = end.checked_add(array.bytes()?).filter(|&end| end < 1 << 62).ok_or_else(|| {
            Fault::new(FaultKind::Invalid, format!("the file would be too large with array '{}'", array.name))
        })?;
    }
    Ok((offsets, end))
}

pub(super) fn open_file_told(
    directory: &dyn Names,
    name: &str,
    header: &[u8],
    removed: &[String],
) -> Result<Vec<u8>, Fault> {
    let told = Writer::default().bytes(directory.full("").as_bytes()).bytes(name.as_bytes()).bytes(header);
    Ok(removed.iter().fold(told, |told, name| told.bytes(name.as_bytes())).0)
}

/// Rank 0's part of opening.
pub(super) fn open_file(
    file: &dyn Names,
    mode: Mode,
    header: &[u8],
    header_bytes: u64,
    end: u64,
) -> Result<Vec<u8>, Fault> {
    let (directory, name) = parts(file)?;
    let directory = &*directory;
    if !directory.exists("") {
        let parent = directory.full("");
        return Err(Fault::new(FaultKind::NotFound, format!("the directory '{parent}' does not exist")));
    }
    directory.complete(&hidden(&name), &name)?;
    if mode == Mode::Create && directory.exists(&name) {
        return Err(Fault::new(FaultKind::Exists, "the file exists already").hint("mode w replaces it"));
    }
    if mode.writes_new() {
        let mut removed = Vec::new();
        if directory.exists(&hidden(&name)) {
            directory.remove(&hidden(&name))?;
            removed.push(hidden(&name));
        }
        return open_file_told(directory, &name, header, &removed);
    }
    directory.check(&name)?;
    let actual = directory.length(&name).ok_or_else(|| not_there(&directory.full(&name)))?;
    if actual != end {
        return Err(Fault::new(
            FaultKind::Corrupt,
            format!("the header and the arrays named need {end} B, but the file has {actual} B"),
        )
        .hint("name all arrays of the file in order, with the types stored, and the length of its header"));
    }
    let header = directory.read_prefix(&name, header_bytes)?.unwrap_or_default();
    open_file_told(directory, &name, &header, &[])
}

/// Lets disk-directed I/O know the order of a file on its disk; of a new file, after its space is reserved \[B\].
pub(super) fn follow_disk(
    parameters: &mut Parameters,
    transfer: &Transfer,
    directory: &dyn Names,
    (name, new_bytes): (&str, u64),
) -> Result<(), Fault> {
    if parameters.strategy != Strategy::DiskDirected {
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

/// Gives a new file its header and its length so far.
pub(super) fn lengthen(directory: &dyn Names, hidden: &str, header: &[u8], end: u64, first: bool) -> Result<(), Fault> {
    if first {
        return directory.create(hidden, header, end);
    }
    directory.resize(hidden, end)
}
