//! HDF5 files: their datasets are the arrays, whose names are paths.
//!
//! A new file is elements first: each array gets its place when it is added, one after another behind the superblock; the metadata
//! follow behind them when the file is published, and the superblock last. Encoded chunks get room as they are written, and rank 0
//! alone knows where (`chunks.rs`). Of a file that exists, rank 0 reads the metadata and tells the others what there is
//! (`told.rs`); where chunks lie is looked up when they are read.

mod by_path;
mod chunks;
mod classic;
mod contents;
mod dimensions;
mod editing;
mod elements;
mod first_named;
mod held;
mod known_dimensions;
mod policy;
mod room;
mod told;

use super::edit::Edit;
use super::form::{
    ChangeFile, Described, FileArray, FileEnd, FileSize, Form, Lasting, ListStored, LookAt, Lookup, NewPlaces, Unread,
};
use super::texts::{check_texts, is_text};
use super::{File, OwnLock};
use crate::array_write::ArrayWrite;
use crate::comm::Comm;
use crate::error::{Error, format_fault};
use crate::mode::Mode;
use crate::options::{FileLocking, OpenOptions, WriteOptions};
use crate::said::{self, truth};
use by_path::above;
use chunks::{is_all_written, new_chunks};
pub use contents::Hdf5Options;
use contents::{Hdf5, Hdf5Array, Said};
use elements::ElementsAt;
use hyperslab_format::attribute::{AttributeValue, Attributes, Elements, ValueType};
use hyperslab_format::hdf5::{ChangedDataset, Hdf5Metadata, check_netcdf_element};
use hyperslab_format::netcdf::Type;
use hyperslab_format::zarr::{Value, fill_from_json, fill_to_json};
use hyperslab_layout::stored::Table;
use hyperslab_layout::{ElementType, Kind, Stored, cut};
use hyperslab_pack::convert_scalar;
use hyperslab_world::{Fault, FaultKind, Location, Locked, Names};
use policy::USUAL_BYTES_MAX;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
pub(super) use told::{look_at, of_told, texts_in};

impl Form for Hdf5 {
    fn extent(&self) -> FileSize {
        let growing = self.limited.iter().map(|number| (*number, &self.arrays[*number]));
        let growing = growing.filter(|(_, held)| held.grows());
        let lengths = growing.map(|(number, held)| (number, held.array.shape[0])).collect();
        FileSize { arrays: self.arrays.len(), records: 0, bytes: self.end, lengths }
    }

    fn array(&self, number: usize) -> Cow<'_, FileArray> {
        Cow::Borrowed(&self.arrays[number].array)
    }

    fn names(&self) -> Vec<&str> {
        self.arrays.iter().map(|held| held.array.name.as_str()).collect()
    }

    fn numbers_of(&self, names: &[Cow<str>]) -> Vec<Option<usize>> {
        names.iter().map(|name| self.arrays.number(name)).collect()
    }

    fn takes_texts(&self) -> bool {
        !self.options.classic
    }

    fn has_texts(&self) -> bool {
        self.has_texts
    }

    fn reaches(&mut self, end: u64) {
        self.end = self.end.max(end);
    }

    fn reaching(&self, end: u64) -> Option<ChangeFile> {
        let kept = self.kept.clone();
        self.exists().then(|| -> ChangeFile {
            Box::new(move |directory, name| {
                editing::change((directory, name), end, &kept, |edits| {
                    edits.reach();
                    Ok(())
                })
            })
        })
    }

    fn is_netcdf4(&self) -> bool {
        self.options.netcdf
    }

    fn others(&self) -> Option<&BTreeMap<String, Unread>> {
        Some(&self.others)
    }

    fn described(&self, number: usize) -> Described {
        let Hdf5Array { array, place, fill, dimensions, attributes, .. } = &self.arrays[number];
        let native = ElementType::native(array.element.kind);
        let value = converted(fill, array.element, native);
        let (chunks, codecs) = match place.chunk() {
            Some((chunk, filters)) => (Some(chunk.to_vec()), filters.names()),
            None => (None, Vec::new()),
        };
        Described {
            dimension_names: dimensions.clone(),
            attributes: attributes.get(),
            fill_value: match native.kind {
                Kind::Opaque(opaque) if opaque.is_reference() => "".into(),
                kind => fill_to_json(kind, &value).unwrap_or_default(),
            },
            chunks,
            codecs: codecs.into_iter().map(Value::from).collect(),
        }
    }

    fn attributes(&self) -> Attributes {
        self.attributes.get()
    }

    fn stored(&self, numbers: &[usize], object: &Arc<str>) -> Vec<Stored> {
        numbers.iter().map(|&number| self.arrays[number].stored(object)).collect()
    }

    fn lookup(&self, number: usize) -> Option<Lookup> {
        let array = &self.arrays[number];
        match &array.place {
            ElementsAt::Chunked { .. } | ElementsAt::InRoom { .. } | ElementsAt::Named | ElementsAt::InHeader => {
                let array = array.clone();
                Some(Box::new(move |stored, asked, file| array.located(stored, asked, file)))
            }
            ElementsAt::At(_) | ElementsAt::Nowhere | ElementsAt::Grid { .. } => None,
        }
    }

    fn stored_units(&self, number: usize) -> Option<ListStored> {
        chunks::stored_units(&self.arrays[number])
    }

    fn gets_room(&self, number: usize) -> bool {
        matches!(self.arrays[number].place, ElementsAt::InRoom { .. })
    }

    fn put_in_room(&mut self, placed: NewPlaces, end: u64) -> Result<Option<ChangeFile>, Fault> {
        let (changed, end) = (chunks::put(&mut self.arrays, placed)?, end.next_multiple_of(8));
        if !self.exists() {
            self.end = self.end.max(end);
            return Ok(None);
        }
        let (new, kept) = (self.new_tree(None)?.made(), self.kept.clone());
        Ok(Some(Box::new(move |directory, name| {
            editing::change((directory, name), end, &kept, |edits| {
                for (at, path, dataset) in changed {
                    edits.change_named(&path, at, |at| ChangedDataset { at, ..dataset })?;
                }
                if new.members.is_empty() { Ok(()) } else { edits.add(&new).map(drop) }
            })
        })))
    }

    fn has_changed(&mut self, end: u64, beginning: Vec<u8>, alone: bool) {
        (self.end, self.superblock) = (end, beginning);
        self.kept.settle(alone);
    }

    fn last_change(&self) -> Option<ChangeFile> {
        if self.kept.is_unsaid() { self.by(|edits| edits.add_unsaid()) } else { None }
    }

    fn is_taken_back(&mut self) {
        self.kept.take_back();
    }

    fn check_changeable(&self, number: usize) -> Result<(), Fault> {
        let Hdf5Array { array, place, texts, .. } = &self.arrays[number];
        let why = match place {
            _ if !texts.is_empty() => "has texts that end with a zero or with spaces",
            ElementsAt::Nowhere => "has no place in the file, since nobody wrote it",
            ElementsAt::InHeader => "lies in the header of its dataset (compact)",
            _ => return Ok(()),
        };
        let text = format!("'{}' {why}", array.name);
        Err(Fault::new(FaultKind::Unsupported, text).hint("write a new file; h5py changes it on one rank"))
    }

    fn beginning(&self) -> Vec<u8> {
        // A new one is not valid before it is published.
        self.superblock.clone()
    }

    /// Until others make the file longer, of which a refresh tells.
    fn lasting(&self) -> Option<Lasting> {
        Some(Lasting::of(&self.superblock, 0)).filter(|lasting| lasting.to > 0)
    }

    fn closing(&self, with: Option<&Edit>) -> Result<FileEnd, Fault> {
        let metadata = Hdf5Metadata::of(&self.tree(with)?, self.end).map_err(format_fault)?;
        let gap = self.end.next_multiple_of(8) - self.end;
        let ending = [vec![0; gap as usize], metadata.bytes].concat();
        Ok(FileEnd { beginning: metadata.superblock, ending })
    }

    fn is_shown(&mut self) -> bool {
        // Dimensions of netCDF-4 refer to each other, so there all metadata are made anew.
        self.is_there = !self.options.netcdf;
        if self.is_there {
            self.settle();
        }
        self.is_there
    }

    fn is_in_step(&self, path: &str) -> bool {
        self.step_of(path).is_some()
    }

    fn looks_by(&self) -> Option<LookAt> {
        Some(look_at)
    }

    fn renew(&mut self, told: &[u8], _path: &str) -> Result<(), Fault> {
        let (unlimited, kept) = (std::mem::take(&mut self.options.unlimited), self.kept.looked_again());
        *self = Hdf5 { kept, ..Hdf5::of_told(told)? };
        self.options.unlimited = unlimited;
        Ok(())
    }

    fn check(&self, options: &WriteOptions) -> Result<(), Fault> {
        options.check_for_hdf5()
    }

    fn grows(&self, number: usize) -> bool {
        self.arrays[number].grows()
    }

    fn behind(&self) -> Vec<usize> {
        self.behind_others()
    }

    fn grows_by_sections(&self) -> bool {
        self.options.netcdf
    }

    fn grow(&mut self, numbers: &[usize], by: u64) -> Result<(), Fault> {
        let grown = |held: &Hdf5Array| {
            let extent = held.array.shape[0].checked_add(by);
            let most = held.limits[0].unwrap_or(u64::MAX >> 2);
            extent.filter(|extent| *extent <= most).ok_or_else(|| {
                let text = format!("'{}' cannot grow that far along its first dimension", held.array.name);
                let found = format!("{} and {by} more", held.array.shape[0]);
                Fault::new(FaultKind::Invalid, text).expected(format!("at most {most}"), found)
            })
        };
        let extents = numbers.iter().map(|number| grown(&self.arrays[*number])).collect::<Result<Vec<_>, _>>()?;
        for (number, extent) in numbers.iter().zip(extents) {
            self.arrays[*number].array.shape[0] = extent;
            self.grown.insert(*number);
        }
        Ok(())
    }

    fn add(&mut self, new: &[(&ArrayWrite, ElementType)], options: &WriteOptions) -> Result<(), Fault> {
        let before = self.extent();
        let added = new.iter().enumerate().try_for_each(|(number, one)| {
            let (ask, element) = one;
            self.check_path(&ask.name)?;
            self.check_no_group(&ask.name)?;
            if self.options.netcdf {
                check_netcdf_element(&ask.name, *element).map_err(format_fault)?;
            }
            let own = options.of(number);
            check_texts(&ask.name, *element, own)?;
            let given = own.fill_value.as_ref().filter(|_| !is_text(*element));
            let fill = given.map(|value| fill_from_json(element.kind, value, &ask.name)).transpose();
            let usual = || netcdf_fill(*element).filter(|_| self.options.netcdf);
            let fill = fill.map_err(format_fault)?.or_else(usual).unwrap_or_else(|| vec![0; element.bytes() as usize]);
            let fill = converted(&fill, ElementType::native(element.kind), *element);
            let mut attributes = options.attributes_of(number).clone();
            if given.is_some() && self.options.netcdf && !attributes.has("_FillValue") {
                let of = match element.kind {
                    Kind::Opaque(opaque) if opaque.is_text() => ValueType::Bytes(opaque.bytes()),
                    _ => ValueType::Element(*element),
                };
                let value = Elements { of, shape: Some(Vec::new()), bytes: fill.clone() };
                attributes.set("_FillValue", AttributeValue::Elements(value));
            }
            let dimensions = options.dimension_names_of(number).map(<[_]>::to_vec);
            if let Some(names) = dimensions.as_ref().filter(|names| names.len() != ask.shape().len()) {
                let text = format!("names of dimensions do not fit array '{}'", ask.name);
                let expected = format!("{} names of dimensions", ask.shape().len());
                return Err(Fault::new(FaultKind::Invalid, text).expected(expected, names.len().to_string()));
            }
            let limits = self.limits_of(ask, dimensions.as_deref(), own)?;
            self.options.check_classic(&ask.name, *element, &limits)?;
            let cut = new_chunks((ask, *element), own, &limits, &fill)?;
            let all_written = is_all_written(ask);
            self.push(one, Said { cut, limits, fill, dimensions, attributes, all_written })
        });
        // What cannot be stored is refused now, and not when the file is closed; what is there was looked at when it came.
        let added = added.and_then(|()| self.check_new(before.arrays));
        for number in before.arrays..if self.options.netcdf { self.arrays.len() } else { 0 } {
            self.first_named.note(number, self.arrays[number].named());
        }
        added.inspect_err(|_| self.back_to(before))
    }

    fn takes_new(&self) -> bool {
        true
    }

    /// What has no dimensions has no chunks, which are what can be left out.
    fn fills_by_writing(&self, shape: &[u64]) -> bool {
        shape.is_empty()
    }

    fn are_added(&mut self, first: usize) {
        let paths: Vec<String> = self.arrays[first..].iter().map(|held| held.array.name.clone()).collect();
        paths.iter().for_each(|path| self.note_groups(path));
        if self.exists() {
            self.note_dimensions(first);
            self.settle();
        }
    }

    fn names_in(&self, within: &str) -> Vec<(usize, &str)> {
        let numbers = self.arrays.numbers_in(within).into_iter();
        numbers.map(|number| (number, self.arrays[number].array.name.as_str())).collect()
    }

    fn groups_in(&self, within: &str) -> Option<Vec<&str>> {
        Some(self.groups_seen(within).map(|group| group.path.as_str()).collect())
    }

    fn has_group(&self, path: &str) -> Option<bool> {
        Some(self.groups.number(path).is_some() && self.step_of(path).is_none())
    }

    fn group_attributes(&self, path: &str) -> Attributes {
        self.groups.number(path).map(|number| self.groups[number].attributes.get()).unwrap_or_default()
    }

    fn steps_in(&self, within: &str) -> Vec<&str> {
        let all = self.groups.numbers_in(within).into_iter().map(|number| &self.groups[number]);
        all.filter(|group| group.is_step).map(|group| group.path.as_str()).collect()
    }

    fn hidden_in(&self, number: usize) -> Option<&str> {
        self.step_of(&self.arrays[number].array.name)
    }

    fn change_of(&self, edit: &Edit) -> Result<Option<ChangeFile>, Fault> {
        self.changing(edit)
    }

    fn leaves_room(&mut self, path: &str) {
        if self.has_further_names {
            return;
        }
        let gone = self.arrays.iter_mut().filter(|held| editing::is_in(&held.array.name, path));
        gone.filter_map(|held| held.room.take()).for_each(|room| self.free.put(room));
    }

    fn has_edited(&mut self, edit: &Edit) -> Vec<usize> {
        self.has_changed_by(edit)
    }

    fn back_to(&mut self, before: FileSize) {
        let given = self.arrays[before.arrays..].iter().filter_map(|held| held.room.clone());
        given.filter(|room| room.end <= before.bytes).for_each(|room| self.free.put(room));
        self.arrays.truncate(before.arrays);
        self.settled.1 = self.settled.1.min(before.arrays);
        self.limited.retain(|number| *number < before.arrays);
        self.first_named.truncate(before.arrays);
        for (number, length) in before.lengths {
            self.arrays[number].array.shape[0] = length;
        }
        self.end = before.bytes;
    }
}

/// What netCDF has elements be that nobody wrote, in native byte order, where it has a type for them.
fn netcdf_fill(element: ElementType) -> Option<Vec<u8>> {
    let of = Type::of(element.kind)?;
    Some(converted(&of.usual_fill(), of.element(), ElementType::native(element.kind)))
}

/// One element as another type has it; of bytes that mean something to others only, the order may change.
fn converted(fill: &[u8], from: ElementType, to: ElementType) -> Vec<u8> {
    if !from.kind.is_opaque() {
        return convert_scalar(fill, from, to)[..to.bytes() as usize].to_vec();
    }
    let mut fill = fill.to_vec();
    if from.order != to.order {
        fill.chunks_mut(from.kind.swap_bytes() as usize).for_each(<[u8]>::reverse);
    }
    fill
}

impl Hdf5Array {
    /// How it lies in the object with this name.
    fn stored(&self, object: &Arc<str>) -> Stored {
        let Hdf5Array { array, place, fill, texts, .. } = self;
        let FileArray { shape, element, .. } = array;
        let nowhere = |chunk: &[u64]| Stored::in_table(shape, *element, chunk, Table::of(object.clone(), Vec::new()));
        let stored = match place {
            ElementsAt::At(at) => Stored::in_file(shape, *element, object.clone(), *at),
            // Where it lies is looked up.
            ElementsAt::Named | ElementsAt::InHeader => Stored::in_file(shape, *element, object.clone(), 0),
            // Sections of it are read, however large it is.
            ElementsAt::Nowhere => {
                let whole = shape.iter().map(|extent| (*extent).max(1)).collect();
                nowhere(&cut(whole, element.bytes(), USUAL_BYTES_MAX))
            }
            ElementsAt::Grid { chunk, at } => Stored::in_grid(shape, *element, chunk, object.clone(), *at),
            // Where they lie is looked up.
            ElementsAt::Chunked { chunk, filters, .. } => Stored { coding: filters.coding(), ..nowhere(chunk) },
            ElementsAt::InRoom { chunk, filters, .. } => Stored { coding: filters.coding(), ..nowhere(chunk) },
        };
        Stored { fill: fill.clone().into(), texts: texts.clone(), ..stored }
    }
}

impl Hdf5 {
    /// Refuses a name that HDF5 cannot have, or that is a group's.
    fn check_path(&self, name: &str) -> Result<(), Fault> {
        let bad = name.split('/').any(|part| part.is_empty() || part == "." || part == ".." || part.contains('\0'));
        if bad {
            let text = format!("'{name}' cannot be the path of an HDF5 dataset");
            return Err(Fault::new(FaultKind::Invalid, text).hint("names are parts with one '/' between them"));
        }
        let below = || self.arrays.iter().map(|held| &*held.array.name).find(|other| editing::is_in(other, name));
        let other = above(name).find(|group| self.arrays.number(group).is_some());
        match other.or_else(|| self.arrays.has_below(name).then(below).flatten()) {
            None => Ok(()),
            Some(other) => {
                let text = format!("'{name}' and '{other}' would be a group and an array of one name");
                Err(Fault::new(FaultKind::Invalid, text).hint("give one of them another name"))
            }
        }
    }
}

impl File {
    /// Opens an HDF5 file on all ranks, also one of netCDF-4. A new one becomes visible with its first step or
    /// [`File::flush`], or when it is closed; one that exists is read, or changed: nobody else may have it open then.
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
        let Hdf5Options { attributes, netcdf, classic, unlimited } = &options;
        let mut fields = vec![
            ("whether a new file is one of netCDF-4".to_string(), truth(*netcdf).to_string()),
            ("whether it keeps to the classic model".into(), truth(*classic).to_string()),
            ("unlimited dimensions".into(), unlimited.join(", ")),
        ];
        fields.extend(said::attributes(attributes, " of the file"));
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
        let (kept, locking) = (OwnLock::default(), opening.locking);
        let keep = kept.clone();
        let look = move |directory: &dyn Names, name: &str, actual| {
            let actual = locked(directory, name, actual, (mode, locking, &keep))?;
            look_at(directory, name, actual)
        };
        let file = File::open_as(comm, location, (mode, opening), (what, fields, fit), look, form)?;
        Ok(File { own_lock: kept, ..file })
    }
}

/// Whether a file is written, which rule holds for its lock, and where that is kept.
pub(super) type LockedFor<'a> = (Mode, Option<FileLocking>, &'a OwnLock);

/// Honours the lock that HDF5's libraries have on a file (flock): whoever writes has it for himself alone, as long as he has the
/// file open. Gives how long the file is from then on \[B\].
pub(super) fn locked(
    directory: &dyn Names,
    name: &str,
    actual: u64,
    (mode, locking, keep): LockedFor,
) -> Result<u64, Fault> {
    let locking = locking.unwrap_or_else(FileLocking::of_environment);
    if locking == FileLocking::Never {
        return Ok(actual);
    }
    let busy = |by: &str| {
        let path = directory.full(name);
        let text = format!("'{path}' is open {by}, in this program or another, which has it locked");
        Fault::new(FaultKind::Busy, text).about(path).hint("close it there; lslocks says who has it")
    };
    // Best effort does without where there are none.
    let none = |fault: Fault| if locking == FileLocking::BestEffort { Ok(()) } else { Err(fault) };
    if !mode.writes() {
        if !directory.is_shared(name).or_else(|fault| none(fault).map(|()| true))? {
            return Err(busy("for writing"));
        }
    } else {
        match directory.lock(name).or_else(|fault| none(fault).map(|()| Locked::Absent))? {
            Locked::Ours(lock) => *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock),
            Locked::Busy => return Err(busy("for reading or writing")),
            Locked::Absent => {}
        }
    }
    // Whoever had it before may have made it longer.
    Ok(directory.length(name).unwrap_or(actual))
}
