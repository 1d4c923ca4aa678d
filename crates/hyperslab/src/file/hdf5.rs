//! HDF5 files: their datasets are the arrays, whose names are paths.
//!
//! A new file is elements first: each array gets its place when it is added, one after another behind the superblock; the metadata
//! follow behind them when the file is closed, and the superblock last. Of a file that exists, rank 0 reads the metadata
//! and tells the others what there is; where chunks lie is looked up when they are read.

use super::File;
use super::disk::SeenFile;
use super::form::{Described, FileArray, FileEnd, FileSize, Form, LookAt, Lookup, Unread};
use crate::comm::Comm;
use crate::error::{Error, format_fault};
use crate::options::{OpenOptions, WriteOptions};
use crate::zarr::{ArrayWrite, Mode};
use hyperslab_format::hdf5::{
    Dataset, DatasetStorage, Datatype, Dialect, Hdf5Attribute, Hdf5File, Hdf5Metadata, ListedDataset, MetadataSource,
    NewDataset, NewGroup, NewMember, NewStorage, OF_DIMENSIONS, Pipeline, SUPERBLOCK_BYTES,
};
use hyperslab_format::zarr::{Map, Value, fill_from_json, fill_to_json};
use hyperslab_layout::stored::{Address, Objects, OtherCodec, Table};
use hyperslab_layout::{Codec, ElementType, Section, Stored};
use hyperslab_pack::convert_scalar;
use hyperslab_world::{Fault, FaultKind, Location, Names, Reader, Writer};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Where elements begin in a new file \[B\].
const DATA_AT: u64 = 2048;
/// Arrays of at least this size \[B\] begin with a page, as direct I/O wants it; others where an element may lie.
const LARGE: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// Bytes of metadata that are read at once.
const READ_BYTES: u64 = 64 << 10;
/// Most chunks of an array that one call reads: where they lie is told to all ranks.
const CHUNKS_MAX: u64 = 1 << 20;

/// What a new HDF5 file is.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Hdf5Options {
    /// Attributes of the file.
    pub attributes: Map<String, Value>,
    /// Whether it is one of netCDF-4: names of dimensions make dimensions.
    pub netcdf: bool,
}

impl Hdf5Options {
    /// With these attributes of the file.
    #[must_use]
    pub fn attributes(mut self, attributes: Map<String, Value>) -> Hdf5Options {
        self.attributes = attributes;
        self
    }

    /// As a netCDF-4 file.
    #[must_use]
    pub fn netcdf(mut self) -> Hdf5Options {
        self.netcdf = true;
        self
    }

    fn is_given(&self) -> bool {
        !self.attributes.is_empty()
    }

    fn dialect(&self) -> Dialect {
        if self.netcdf { Dialect::Netcdf } else { Dialect::H5py }
    }
}

/// Where the elements of an array lie.
#[derive(Clone, PartialEq, Debug)]
enum ElementsAt {
    /// From this byte on.
    At(u64),
    /// Nowhere: nobody wrote them.
    Nowhere,
    /// In chunks of this shape, which went through these filters; the index is that of the dataset with this header.
    Chunked { chunk: Vec<u64>, filters: Pipeline, header: u64 },
}

/// An array.
#[derive(Clone, PartialEq, Debug)]
struct Hdf5Array {
    array: FileArray,
    place: ElementsAt,
    /// One element for what was never written, as stored.
    fill: Vec<u8>,
    dimensions: Option<Vec<Option<String>>>,
    attributes: Map<String, Value>,
}

/// What is known of a file.
#[derive(Debug)]
struct Hdf5 {
    arrays: Vec<Hdf5Array>,
    attributes: Map<String, Value>,
    /// Datasets that are no arrays, and why.
    others: BTreeMap<String, Unread>,
    end: u64,
    /// Of a file that exists, its first bytes, with which it says how far it goes.
    superblock: Vec<u8>,
    options: Hdf5Options,
}

/// The bytes of a file, as its parser asks for them: what lies together is read together.
struct Bytes<'a> {
    names: &'a dyn Names,
    name: &'a str,
    length: u64,
    /// A stretch that was read last, by its first byte.
    last: Mutex<(u64, Arc<[u8]>)>,
}

impl<'a> Bytes<'a> {
    fn of(names: &'a dyn Names, name: &'a str, length: u64) -> Bytes<'a> {
        Bytes { names, name, length, last: Mutex::new((0, Arc::from([]))) }
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
        if let Some(found) = within(&last) {
            return Ok(found);
        }
        let part = self.part(at, READ_BYTES.max(bytes as u64));
        *last = (at, part.map_err(|fault| hyperslab_format::Error::unreadable(self.name, fault.text()))?);
        within(&last).ok_or_else(|| {
            let found = format!("{} B", last.1.len());
            hyperslab_format::Error::cut_short(self.name, format!("{bytes} B from byte {at} on"), found)
        })
    }
}

/// What rank 0 found, as all ranks know it.
pub(super) fn of_told(told: &[u8]) -> Result<Box<dyn Form>, Fault> {
    Ok(Box::new(Hdf5::of_told(told)?))
}

/// Rank 0's part of opening: what the file holds, which ranks are told.
pub(super) fn look_at(directory: &dyn Names, name: &str, actual: u64) -> Result<SeenFile, Fault> {
    let path = directory.full(name);
    let source = Bytes::of(directory, name, actual);
    let file = Hdf5File::open(&source, &path).map_err(format_fault)?;
    let listing = file.listing(&source).map_err(format_fault)?;
    let attributes = |attributes: &[Hdf5Attribute]| json(attributes, listing.is_netcdf);
    let w = Writer::default().number(file.end()).number(listing.is_netcdf.into());
    let w = w.bytes(attributes(&listing.attributes).as_bytes());
    let w = w.number(listing.datasets.len() as u64);
    let w = listing.datasets.iter().fold(w, |w, listed| tell(w, listed, &attributes(&listed.attributes)));
    let superblock = directory.read_prefix(name, SUPERBLOCK_BYTES)?.unwrap_or_default();
    Ok((w.bytes(&superblock).0, Vec::new()))
}

/// Attributes as JSON; to netCDF, one value is no list of one.
fn json(attributes: &[Hdf5Attribute], is_netcdf: bool) -> String {
    let alone = |value: Value| match value {
        Value::Array(mut values) if is_netcdf && values.len() == 1 => values.remove(0),
        value => value,
    };
    let shown = attributes.iter().filter(|attribute| !OF_DIMENSIONS.contains(&attribute.name.as_str()));
    let each = shown.filter_map(|attribute| Some((attribute.name.clone(), alone(attribute.to_json()?))));
    Value::Object(each.collect()).to_string()
}

/// A dataset in what ranks are told.
fn tell(w: Writer, listed: &ListedDataset, attributes: &str) -> Writer {
    let w = w.bytes(listed.path.as_bytes()).bytes(attributes.as_bytes());
    let names = listed.dimensions.iter().flatten();
    let w = w.number(listed.dimensions.as_ref().map_or(u64::MAX, |names| names.len() as u64));
    let w = names.fold(w, |w, name| w.number(name.is_some().into()).bytes(name.as_deref().unwrap_or("").as_bytes()));
    match &listed.dataset {
        Err(error) => {
            let why = format!("expected {}, found {}", error.expected(), error.found());
            w.number(0).number(error.is_corrupt().into()).bytes(why.as_bytes())
        }
        Ok(dataset) => tell_dataset(w.number(1), dataset, &listed.path),
    }
}

fn tell_dataset(w: Writer, dataset: &Dataset, path: &str) -> Writer {
    let numbers = |w: Writer, all: &[u64]| all.iter().fold(w.number(all.len() as u64), |w, &one| w.number(one));
    let element = dataset.datatype.element(path).map(ElementType::numpy).unwrap_or_default();
    let w = numbers(w, dataset.shape.as_deref().unwrap_or_default()).bytes(element.as_bytes());
    let w = w.bytes(dataset.fill.as_deref().unwrap_or_default());
    match &dataset.storage {
        DatasetStorage::Contiguous { at: Some(at), .. } => w.number(1).number(*at),
        DatasetStorage::Chunked { chunk, .. } => {
            let filters = Pipeline::of(&dataset.filters, path).map(|filters| filters.to_bytes()).unwrap_or_default();
            numbers(w.number(2), chunk).bytes(&filters).number(dataset.at)
        }
        _ => w.number(0),
    }
}

/// What [`tell`] told: an array, or why it is none.
fn hear(r: &mut Reader) -> Option<(String, Result<Hdf5Array, Unread>)> {
    let (name, attributes) = (r.text()?, map(&r.text()?)?);
    let dimensions = match r.number()? {
        u64::MAX => None,
        count => Some((0..count).map(|_| Some((r.number()? == 1, r.text()?))).collect::<Option<Vec<_>>>()?),
    };
    let dimensions = dimensions.map(|names| names.into_iter().map(|(is, name)| is.then_some(name)).collect());
    if r.number()? == 0 {
        return Some((name, Err(Unread { damaged: r.number()? == 1, why: r.text()? })));
    }
    let numbers = |r: &mut Reader| (0..r.number()?).map(|_| r.number()).collect::<Option<Vec<u64>>>();
    let shape = numbers(r)?;
    let element = ElementType::from_numpy(&r.text()?)?;
    let fill = r.bytes()?.to_vec();
    let fill = if fill.is_empty() { vec![0; element.bytes() as usize] } else { fill };
    let place = match r.number()? {
        1 => ElementsAt::At(r.number()?),
        2 => {
            ElementsAt::Chunked { chunk: numbers(r)?, filters: Pipeline::from_bytes(r.bytes()?)?, header: r.number()? }
        }
        // What has no elements has them anywhere.
        _ if shape.contains(&0) => ElementsAt::At(0),
        _ => ElementsAt::Nowhere,
    };
    let array = FileArray { name: name.clone(), shape, element };
    Some((name, Ok(Hdf5Array { array, place, fill, dimensions, attributes })))
}

fn map(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text).ok()? {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

impl Hdf5 {
    fn new(options: Hdf5Options) -> Result<Hdf5, Fault> {
        // What cannot be stored is refused before anything is written.
        Hdf5Attribute::of_map(&options.attributes, None, options.dialect()).map_err(format_fault)?;
        let attributes = options.attributes.clone();
        Ok(Hdf5 {
            arrays: Vec::new(),
            attributes,
            others: BTreeMap::new(),
            end: DATA_AT,
            superblock: Vec::new(),
            options,
        })
    }

    /// What rank 0 found, as all ranks know it.
    fn of_told(told: &[u8]) -> Result<Hdf5, Fault> {
        let heard = || {
            let mut r = Reader::new(told);
            let (end, netcdf, attributes) = (r.number()?, r.number()? == 1, map(&r.text()?)?);
            let (mut arrays, mut others) = (Vec::new(), BTreeMap::new());
            for _ in 0..r.number()? {
                match hear(&mut r)? {
                    (_, Ok(held)) => arrays.push(held),
                    (name, Err(why)) => drop(others.insert(name, why)),
                }
            }
            let options = Hdf5Options { netcdf, ..Hdf5Options::default() };
            Some(Hdf5 { arrays, attributes, others, end, superblock: r.bytes()?.to_vec(), options })
        };
        heard().ok_or_else(|| Fault::new(FaultKind::Peer, "what rank 0 told of an HDF5 file is cut short"))
    }

    fn push(&mut self, (ask, element): &(&ArrayWrite, ElementType), said: Said) -> Result<(), Fault> {
        let array = FileArray { name: ask.name.clone(), shape: ask.shape().to_vec(), element: *element };
        let bytes = array.bytes()?;
        let at = self.end.next_multiple_of(if bytes >= LARGE { PAGE } else { 16 });
        let end = at.checked_add(bytes).filter(|&end| end < 1 << 62).ok_or_else(|| {
            Fault::new(FaultKind::Invalid, format!("the file would be too large with array '{}'", array.name))
        })?;
        let Said { fill, dimensions, attributes } = said;
        self.arrays.push(Hdf5Array { array, place: ElementsAt::At(at), fill, dimensions, attributes });
        self.end = end;
        Ok(())
    }

    /// The tree of what is written, from the array with this number on.
    fn tree(&self, first: usize) -> Result<NewGroup, Fault> {
        let dialect = self.options.dialect();
        let attributes = Hdf5Attribute::of_map(&self.attributes, None, dialect).map_err(format_fault)?;
        let mut root = NewGroup { attributes, netcdf: self.options.netcdf, ..NewGroup::default() };
        for held in &self.arrays[first..] {
            let dataset = held.dataset(&self.options)?;
            let (above, _) = held.array.name.rsplit_once('/').unwrap_or_default();
            group_in(&mut root, above).members.push(NewMember::Dataset(dataset));
        }
        Ok(root)
    }
}

/// The group with this path, made where it is missing.
fn group_in<'a>(root: &'a mut NewGroup, path: &str) -> &'a mut NewGroup {
    path.split('/').filter(|name| !name.is_empty()).fold(root, |group, name| {
        let is_it = |member: &NewMember| matches!(member, NewMember::Group(group) if group.name == name);
        let at = group.members.iter().position(is_it).unwrap_or_else(|| {
            group.members.push(NewMember::Group(NewGroup { name: name.into(), ..NewGroup::default() }));
            group.members.len() - 1
        });
        match &mut group.members[at] {
            NewMember::Group(inner) => inner,
            NewMember::Dataset(_) => unreachable!("it was found as a group"),
        }
    })
}

/// What is said of a new array.
struct Said {
    fill: Vec<u8>,
    dimensions: Option<Vec<Option<String>>>,
    attributes: Map<String, Value>,
}

impl Hdf5Array {
    fn dataset(&self, options: &Hdf5Options) -> Result<NewDataset, Fault> {
        let FileArray { name, shape, element } = &self.array;
        let at = match self.place {
            ElementsAt::At(at) => Some(at).filter(|_| !shape.contains(&0)),
            ElementsAt::Nowhere | ElementsAt::Chunked { .. } => None,
        };
        let made = Hdf5Attribute::of_map(&self.attributes, Some(*element), options.dialect());
        let names = self.dimensions.iter().flatten().enumerate();
        // Where some have no name, all of a netCDF file need one.
        let name_of = |(d, name): (usize, &Option<String>)| name.clone().unwrap_or_else(|| format!("dim_{d}"));
        Ok(NewDataset {
            name: name.rsplit('/').next().unwrap_or_default().into(),
            shape: shape.clone(),
            limits: Vec::new(),
            datatype: Datatype::of_element(*element, name).map_err(format_fault)?,
            fill: Some(self.fill.clone()).filter(|fill| fill.iter().any(|byte| *byte != 0)),
            storage: NewStorage::Contiguous(at),
            filters: Vec::new(),
            attributes: made.map_err(format_fault)?,
            dimensions: if options.netcdf { names.map(name_of).collect() } else { Vec::new() },
        })
    }
}

impl Hdf5Array {
    /// How it is stored, with where the chunks lie that a section touches.
    fn located(
        &self,
        stored: Stored,
        section: Option<&Section>,
        (directory, name): (&dyn Names, &Arc<str>),
    ) -> Result<Stored, Fault> {
        let ElementsAt::Chunked { chunk, filters, header } = &self.place else { return Ok(stored) };
        let ranges = touched(&self.array.shape, chunk, section);
        let count = ranges.iter().map(|range| range.end - range.start).try_fold(1u64, u64::checked_mul);
        if count.is_none_or(|count| count > CHUNKS_MAX) {
            let name = &self.array.name;
            let text = format!("a call reads at most {CHUNKS_MAX} chunks of an HDF5 dataset, and '{name}' has more");
            return Err(Fault::new(FaultKind::Unsupported, text).hint("read it in sections"));
        }
        let length = directory.length(name).unwrap_or(0);
        let source = Bytes::of(directory, name, length);
        let look = || -> Result<_, hyperslab_format::Error> {
            let file = Hdf5File::open(&source, &directory.full(name))?;
            let dataset = file.dataset_at(&source, *header)?;
            file.chunks(&source, &dataset, &ranges)
        };
        let mut table = Table { below: name.clone(), ..Table::default() };
        for found in look().map_err(format_fault)? {
            let own = filters.without(found.lacks);
            if own != *filters {
                table.others.insert(found.coordinates.clone(), OtherCodec(Arc::new(own)));
            }
            let bytes = (!filters.is_plain()).then_some(found.bytes);
            table.chunks.insert(found.coordinates, Address { name: name.clone(), offset: found.at, bytes });
        }
        Ok(Stored { objects: Objects::Table(Arc::new(table)), ..stored })
    }
}

impl Form for Hdf5 {
    fn extent(&self) -> FileSize {
        FileSize { arrays: self.arrays.len(), records: 0, bytes: self.end }
    }

    fn array(&self, number: usize) -> FileArray {
        self.arrays[number].array.clone()
    }

    fn names(&self) -> Vec<&str> {
        self.arrays.iter().map(|held| held.array.name.as_str()).collect()
    }

    fn is_netcdf4(&self) -> bool {
        self.options.netcdf
    }

    fn others(&self) -> Option<&BTreeMap<String, Unread>> {
        Some(&self.others)
    }

    fn described(&self, number: usize) -> Described {
        let Hdf5Array { array, place, fill, dimensions, attributes } = &self.arrays[number];
        let native = ElementType::native(array.element.kind);
        let value = convert_scalar(fill, array.element, native);
        let (chunks, codecs) = match place {
            ElementsAt::Chunked { chunk, filters, .. } => (Some(chunk.clone()), filters.names()),
            ElementsAt::At(_) | ElementsAt::Nowhere => (None, Vec::new()),
        };
        Described {
            dimension_names: dimensions.clone(),
            attributes: attributes.clone(),
            fill_value: fill_to_json(native.kind, &value[..native.bytes() as usize]).unwrap_or_default(),
            chunks,
            codecs: codecs.into_iter().map(Value::from).collect(),
        }
    }

    fn attributes(&self) -> Map<String, Value> {
        self.attributes.clone()
    }

    fn stored(&self, number: usize, object: &Arc<str>) -> Stored {
        let Hdf5Array { array, place, fill, .. } = &self.arrays[number];
        let FileArray { shape, element, .. } = array;
        let nowhere = |chunk: &[u64]| Stored::in_table(shape, *element, chunk, Table::default());
        let stored = match place {
            ElementsAt::At(at) => Stored::in_file(shape, *element, object.clone(), *at),
            ElementsAt::Nowhere => nowhere(&shape.iter().map(|extent| (*extent).max(1)).collect::<Vec<_>>()),
            ElementsAt::Chunked { chunk, filters, .. } => Stored { coding: filters.coding(), ..nowhere(chunk) },
        };
        Stored { fill: fill.clone().into(), ..stored }
    }

    fn lookup(&self, number: usize) -> Option<Lookup> {
        let array = self.arrays[number].clone();
        let is_chunked = matches!(array.place, ElementsAt::Chunked { .. });
        is_chunked.then(|| -> Lookup { Box::new(move |stored, section, file| array.located(stored, section, file)) })
    }

    fn check_changeable(&self, number: usize) -> Result<(), Fault> {
        let Hdf5Array { array, place, .. } = &self.arrays[number];
        let what = match place {
            ElementsAt::At(_) => return Ok(()),
            ElementsAt::Nowhere => "has no place in the file, since nobody wrote it",
            ElementsAt::Chunked { .. } => "lies in chunks",
        };
        let text = format!("'{}' {what}, and is not changed in place", array.name);
        Err(Fault::new(FaultKind::Unsupported, text).hint("write a new file; h5py changes it on one rank"))
    }

    fn beginning(&self) -> Vec<u8> {
        // A new one is not valid before it is closed.
        self.superblock.clone()
    }

    /// Until others make the file longer, of which a refresh tells.
    fn lasting(&self) -> Option<(u64, u64)> {
        Some((0, self.superblock.len() as u64)).filter(|(_, end)| *end > 0)
    }

    fn closing(&self) -> Result<FileEnd, Fault> {
        let metadata = Hdf5Metadata::of(&self.tree(0)?, self.end).map_err(format_fault)?;
        let gap = self.end.next_multiple_of(8) - self.end;
        let ending = [vec![0; gap as usize], metadata.bytes].concat();
        Ok(FileEnd { beginning: metadata.superblock, ending })
    }

    fn looks_by(&self) -> Option<LookAt> {
        Some(look_at)
    }

    fn renew(&mut self, told: &[u8], _path: &str) -> Result<(), Fault> {
        *self = Hdf5::of_told(told)?;
        Ok(())
    }

    fn check(&self, options: &WriteOptions) -> Result<(), Fault> {
        options.check_for_netcdf()
    }

    fn add(&mut self, new: &[(&ArrayWrite, ElementType)], options: &WriteOptions) -> Result<(), Fault> {
        let before = self.extent();
        let added = new.iter().enumerate().try_for_each(|(number, one)| {
            let (ask, element) = one;
            check_path(&ask.name, &self.names())?;
            let given = options.fill_value.as_ref();
            let fill = given.map(|value| fill_from_json(element.kind, value, &ask.name)).transpose();
            let fill = fill.map_err(format_fault)?.unwrap_or_else(|| vec![0; element.bytes() as usize]);
            let fill = convert_scalar(&fill, ElementType::native(element.kind), *element)[..fill.len()].to_vec();
            let mut attributes = options.attributes_of(number).clone();
            if let Some(value) = given.filter(|_| self.options.netcdf) {
                attributes.entry("_FillValue").or_insert_with(|| value.clone());
            }
            let dimensions = options.dimension_names_of(number).map(<[_]>::to_vec);
            self.push(one, Said { fill, dimensions, attributes })
        });
        // What cannot be stored is refused now, and not when the file is closed. Dimensions are those of the whole file.
        let first = if self.options.netcdf { 0 } else { before.arrays };
        let added = added.and_then(|()| Hdf5Metadata::check(&self.tree(first)?).map_err(format_fault));
        added.inspect_err(|_| self.back_to(before))
    }

    fn back_to(&mut self, before: FileSize) {
        self.arrays.truncate(before.arrays);
        self.end = before.bytes;
    }
}

/// Chunks that a section touches, or that lie between such.
fn touched(shape: &[u64], chunk: &[u64], section: Option<&Section>) -> Vec<Range<u64>> {
    let whole = Section::whole(shape);
    let dims = section.unwrap_or(&whole).dims.iter().zip(chunk);
    dims.map(|(triplet, chunk)| triplet.set().hull().map_or(0..0, |(low, high)| low / chunk..(high - 1) / chunk + 1))
        .collect()
}

/// Refuses a name that HDF5 cannot have, or that is a group's.
fn check_path(name: &str, taken: &[&str]) -> Result<(), Fault> {
    let bad = name.split('/').any(|part| part.is_empty() || part == "." || part == ".." || part.contains('\0'));
    if bad {
        let text = format!("'{name}' cannot be the path of an HDF5 dataset");
        return Err(Fault::new(FaultKind::Invalid, text).hint("names are parts with one '/' between them"));
    }
    let lies_in = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
    match taken.iter().find(|other| lies_in(name, other) || lies_in(other, name)) {
        None => Ok(()),
        Some(other) => {
            let text = format!("'{name}' and '{other}' would be a group and an array of one name");
            Err(Fault::new(FaultKind::Invalid, text).hint("give one of them another name"))
        }
    }
}

impl File {
    /// Opens an HDF5 file on all ranks, also one of netCDF-4. A new one becomes visible when it is closed; one that exists is
    /// read, or changed in place where its elements lie in one stretch.
    ///
    /// # Errors
    /// The same on all ranks, when the path does not fit the mode, or the file is no HDF5 file, or damaged.
    pub fn open_hdf5(
        comm: &Comm,
        location: impl Into<Location>,
        mode: Mode,
        opening: OpenOptions,
        options: Hdf5Options,
    ) -> Result<File, Error> {
        let location = location.into();
        let asked = mode;
        let mode = File::mode_found(comm, &location, mode, &opening)?;
        let what = format!("open HDF5 file '{location}' (mode {})", asked.name());
        let fields = vec![("new HDF5 file".to_string(), format!("{options:?}"))];
        let fit = match mode.writes_new() {
            true => Hdf5::new(options.clone()).map(drop),
            false if options.is_given() && asked == mode => {
                let text = "attributes are given for new files";
                Err(Fault::new(FaultKind::Invalid, text).hint("leave them out, or open with mode w or x"))
            }
            false => Ok(()),
        };
        let form = move |told: &[u8]| -> Result<Box<dyn Form>, Fault> {
            Ok(Box::new(if mode.writes_new() { Hdf5::new(options)? } else { Hdf5::of_told(told)? }))
        };
        File::open_as(comm, location, (mode, opening), (what, fields, fit), look_at, form)
    }
}
