//! What rank 0 finds in an HDF5 file, and how the others hear of it.

use super::by_path::ByPath;
use super::contents::{Hdf5, Hdf5Array, Hdf5Options, HeldGroup};
use super::dimensions;
use super::elements::ElementsAt;
use super::first_named::FirstNamed;
use super::held::{HeldAttributes, STEP};
use super::known_dimensions::KeptDimensions;
use super::policy::{CHANGE_READ_BYTES, READ_BYTES, READS_KEPT};
use super::room::FreeRoom;
use crate::error::format_fault;
use crate::file::disk::SeenFile;
use crate::file::form::{FileArray, Form, Unread};
use crate::file::texts::is_text;
use hyperslab_format::hdf5::{
    Dataset, DatasetStorage, Hdf5Attribute, Hdf5File, ListedDataset, MetadataSource, Pipeline, SUPERBLOCK_BYTES,
};
use hyperslab_layout::{Codec, ElementType, TextParts};
use hyperslab_world::{Fault, FaultKind, Names, Reader, Writer};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of a file, as its parser asks for them: what lies together is read together.
pub(super) struct Bytes<'a> {
    names: &'a dyn Names,
    name: &'a str,
    length: u64,
    /// How many bytes are read at once \[B\].
    each: u64,
    /// Stretches that were read last, the newest one first, by their first bytes.
    last: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

impl<'a> Bytes<'a> {
    pub(super) fn of(names: &'a dyn Names, name: &'a str, length: u64) -> Bytes<'a> {
        Bytes { names, name, length, each: READ_BYTES, last: Mutex::default() }
    }

    /// The same for a change, which looks at a few blocks here and there.
    pub(super) fn of_change(names: &'a dyn Names, name: &'a str, length: u64) -> Bytes<'a> {
        Bytes { each: CHANGE_READ_BYTES, ..Bytes::of(names, name, length) }
    }

    fn part(&self, at: u64, bytes: u64) -> Result<Arc<[u8]>, Fault> {
        let found = self.names.read_part(self.name, at, bytes)?;
        Ok(found.unwrap_or_default().into())
    }
}

impl MetadataSource for Bytes<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, hyperslab_format::Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let within = |(first, part): &(u64, Arc<[u8]>)| {
            let from = usize::try_from(at.checked_sub(*first)?).ok()?;
            Some(part.get(from..from.checked_add(bytes)?)?.to_vec())
        };
        if let Some(found) = last.iter().find_map(within) {
            return Ok(found);
        }
        let part = self.part(at, self.each.max(bytes as u64));
        let part = (at, part.map_err(|fault| hyperslab_format::Error::unreadable(self.name, fault.text()))?);
        let found = within(&part).ok_or_else(|| {
            let found = format!("{} B", part.1.len());
            hyperslab_format::Error::cut_short(self.name, format!("{bytes} B from byte {at} on"), found)
        });
        last.push_front(part);
        last.truncate(READS_KEPT);
        found
    }
}

/// What rank 0 found, as all ranks know it.
pub(in crate::file) fn of_told(told: &[u8]) -> Result<Box<dyn Form>, Fault> {
    Ok(Box::new(Hdf5::of_told(told)?))
}

/// Rank 0's part of opening: what the file holds, which ranks are told.
pub(in crate::file) fn look_at(directory: &dyn Names, name: &str, actual: u64) -> Result<SeenFile, Fault> {
    let path = directory.full(name);
    let source = Bytes::of(directory, name, actual);
    let file = Hdf5File::open(&source, &path).map_err(format_fault)?;
    let listing = file.listing(&source).map_err(format_fault)?;
    let attributes = |attributes: &[Hdf5Attribute]| HeldAttributes::told(attributes, listing.is_netcdf);
    // Behind its end may lie what ranks of a program that died still write: nothing new is put there.
    let w = Writer::default().number(file.end().max(actual));
    let w = w.number(listing.is_netcdf.into()).number(listing.is_classic.into());
    let w = w.number(listing.has_further_names.into());
    let w = w.bytes(&attributes(&listing.attributes));
    let w = dimensions::tell(w, &listing.dimensions);
    let w = w.number(listing.datasets.len() as u64);
    let w = listing.datasets.iter().fold(w, |w, listed| tell(w, listed, &attributes(&listed.attributes)));
    let w = w.number(listing.groups.len() as u64);
    let w = listing.groups.iter().fold(w, |w, group| {
        let is_step = group.attributes.iter().any(|attribute| attribute.name == STEP);
        w.bytes(group.path.as_bytes()).number(is_step.into()).bytes(&attributes(&group.attributes))
    });
    let superblock = directory.read_prefix(name, SUPERBLOCK_BYTES)?.unwrap_or_default();
    Ok((w.bytes(&superblock).0, Vec::new()))
}

/// The texts that lie in a file where these elements say.
pub(in crate::file) fn texts_in(directory: &dyn Names, name: &str, elements: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let source = Bytes::of(directory, name, directory.length(name).unwrap_or(0));
    let file = Hdf5File::open(&source, &directory.full(name)).map_err(format_fault)?;
    file.texts(&source, elements).map_err(format_fault)
}

/// A dataset in what ranks are told.
fn tell(w: Writer, listed: &ListedDataset, attributes: &[u8]) -> Writer {
    let w = w.bytes(listed.path.as_bytes()).bytes(attributes);
    let names = listed.dimensions.iter().flatten();
    let w = w.number(listed.dimensions.as_ref().map_or(u64::MAX, |names| names.len() as u64));
    let w = names.fold(w, |w, name| w.number(name.is_some().into()).bytes(name.as_deref().unwrap_or("").as_bytes()));
    match &listed.dataset {
        Err(error) => {
            let why = format!("expected {}, found {}", error.expected(), error.found());
            w.number(0).number(error.is_corrupt().into()).bytes(why.as_bytes())
        }
        Ok(dataset) => tell_dataset(w.number(1).number(listed.inner as u64), dataset, &listed.path),
    }
}

fn tell_dataset(w: Writer, dataset: &Dataset, path: &str) -> Writer {
    let numbers = |w: Writer, all: &[u64]| all.iter().fold(w.number(all.len() as u64), |w, &one| w.number(one));
    let element = dataset.datatype.element(path).map(ElementType::numpy).unwrap_or_default();
    let limits: Vec<u64> = dataset.limits.iter().map(|limit| limit.unwrap_or(u64::MAX)).collect();
    let w = numbers(w, dataset.shape.as_deref().unwrap_or_default());
    let w = numbers(w, &limits).bytes(element.as_bytes());
    let w = w.bytes(dataset.fill.as_deref().unwrap_or_default()).bytes(&dataset.datatype.texts().to_bytes());
    match &dataset.storage {
        DatasetStorage::Contiguous { at: Some(at), .. } => w.number(1).number(*at),
        DatasetStorage::Compact { .. } => w.number(3),
        DatasetStorage::Chunked { chunk, .. } => {
            let filters = Pipeline::of(&dataset.filters, path).map(|filters| filters.to_bytes()).unwrap_or_default();
            numbers(w.number(2), chunk).bytes(&filters).number(dataset.at)
        }
        _ => w.number(0),
    }
}

/// What [`tell`] told: an array, or why it is none.
fn hear(r: &mut Reader) -> Option<(String, Result<Hdf5Array, Unread>)> {
    let (name, attributes) = (r.text()?, HeldAttributes::heard(r.bytes()?));
    let dimensions = match r.number()? {
        u64::MAX => None,
        count => Some((0..count).map(|_| Some((r.number()? == 1, r.text()?))).collect::<Option<Vec<_>>>()?),
    };
    let dimensions = dimensions.map(|names| names.into_iter().map(|(is, name)| is.then_some(name)).collect());
    if r.number()? == 0 {
        return Some((name, Err(Unread { damaged: r.number()? == 1, why: r.text()? })));
    }
    let inner = usize::try_from(r.number()?).ok()?;
    let numbers = |r: &mut Reader| (0..r.number()?).map(|_| r.number()).collect::<Option<Vec<u64>>>();
    let (shape, limits) = (numbers(r)?, numbers(r)?);
    let limits = limits.into_iter().map(|limit| Some(limit).filter(|limit| *limit != u64::MAX)).collect();
    let element = ElementType::from_numpy(&r.text()?)?;
    let fill = r.bytes()?.to_vec();
    let texts = TextParts::from_bytes(r.bytes()?)?;
    let mut fill = if fill.is_empty() { vec![0; element.bytes() as usize] } else { fill };
    texts.tidy(&mut fill);
    let place = match r.number()? {
        1 => ElementsAt::At(r.number()?),
        2 => {
            let (chunk, filters) = (numbers(r)?, Pipeline::from_bytes(r.bytes()?)?);
            ElementsAt::Chunked { chunk, filters, header: Some(r.number()?) }
        }
        3 => ElementsAt::InHeader,
        // What has no elements has them anywhere.
        _ if shape.contains(&0) => ElementsAt::At(0),
        _ => ElementsAt::Nowhere,
    };
    let array = FileArray { name: name.clone(), shape, element };
    Some((
        name,
        Ok(Hdf5Array { array, place, room: None, inner, limits, fill, texts, dimensions, attributes, is_new: false }),
    ))
}

impl Hdf5 {
    /// What rank 0 found, as all ranks know it.
    pub(super) fn of_told(told: &[u8]) -> Result<Hdf5, Fault> {
        let heard = || {
            let mut r = Reader::new(told);
            let (end, netcdf, classic) = (r.number()?, r.number()? == 1, r.number()? == 1);
            let has_further_names = r.number()? == 1;
            let attributes = HeldAttributes::heard(r.bytes()?);
            let dimensions = dimensions::hear(&mut r)?;
            let (mut arrays, mut others) = (Vec::new(), BTreeMap::new());
            for _ in 0..r.number()? {
                match hear(&mut r)? {
                    (_, Ok(held)) => arrays.push(held),
                    (name, Err(why)) => drop(others.insert(name, why)),
                }
            }
            let count = r.number()?;
            let group = |_| {
                let (path, is_step) = (r.text()?, r.number()? == 1);
                Some(HeldGroup::found(&path, HeldAttributes::heard(r.bytes()?), is_step))
            };
            let groups = (0..count).map(group).collect::<Option<Vec<_>>>()?;
            let options = Hdf5Options { netcdf, classic, ..Hdf5Options::default() };
            let superblock = r.bytes()?.to_vec();
            let (arrays, groups) = (ByPath::of(arrays), ByPath::of(groups));
            let (steps, is_there) = (Vec::new(), true);
            let has_texts = arrays.iter().any(|held| is_text(held.array.element));
            let (settled, limited) = ((groups.len(), arrays.len()), Vec::new());
            let mut made = Hdf5 {
                arrays,
                attributes,
                others,
                groups,
                settled,
                dimensions,
                kept: KeptDimensions::default(),
                first_named: FirstNamed::default(),
                limited,
                has_texts,
                grown: BTreeSet::new(),
                steps,
                end,
                free: FreeRoom::default(),
                has_further_names,
                superblock,
                is_there,
                options,
            };
            made.note_limited();
            Some(made)
        };
        heard().ok_or_else(|| Fault::new(FaultKind::Peer, "what rank 0 told of an HDF5 file is cut short"))
    }
}
