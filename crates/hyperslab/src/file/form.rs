//! What the bytes of a file mean: which arrays it holds, and where. Each format of files is one of these.

use super::disk::SeenFile;
use super::edit::Edit;
use crate::array_write::ArrayWrite;
pub(crate) use crate::contents::FileArray;
use crate::options::WriteOptions;
use hyperslab_format::attribute::Attributes;
use hyperslab_format::netcdf::Arranged;
use hyperslab_format::raw::Order;
use hyperslab_format::zarr::Value;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{ElementType, Section, Stored, tuple};
use hyperslab_walk::PlacedChunk;
use hyperslab_world::{Fault, FaultKind, Names, fingerprint};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::Arc;

impl FileArray {
    pub(super) fn bytes(&self) -> Result<u64, Fault> {
        volume(&self.shape)
            .and_then(|elements| elements.checked_mul(self.element.bytes()))
            .filter(|&b| b < 1 << 62)
            .ok_or_else(|| {
                Fault::new(
                    FaultKind::Invalid,
                    format!("array '{}' of shape {} is too large", self.name, tuple(&self.shape)),
                )
            })
    }
}

/// How rank 0 looks at a file that exists, given its directory, name and length \[B\]: what ranks are told, and what they must see.
pub(super) type LookAt = fn(&dyn Names, &str, u64) -> Result<SeenFile, Fault>;

/// What a call touches of an array.
#[derive(Clone, Copy)]
pub(super) struct TouchedPart<'a> {
    /// Which part; all of it if not given.
    pub(super) section: Option<&'a Section>,
    /// Where it is written, from which byte on there is room for units that have no place yet \[B\].
    pub(super) room: Option<u64>,
    /// Whether readers are told then how long the array is.
    pub(super) lengthens: bool,
}

/// Looks up where the units lie that a call touches, in this directory and file.
pub(super) type Lookup = Box<dyn FnOnce(Stored, TouchedPart, (&dyn Names, &Arc<str>)) -> Result<Stored, Fault> + Send>;

/// Looks up which units are stored, behind the last one of before and at most so many.
pub(super) type ListStored =
    Box<dyn FnOnce(Option<&[u64]>, usize, (&dyn Names, &Arc<str>)) -> Result<StoredUnits, Fault> + Send>;

/// Places in the grid of chunks of some that are stored, in the order in which they are looked up.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoredUnits {
    /// Coordinates of each, one behind the other.
    pub coordinates: Vec<u64>,
    /// Whether there may be more behind the last.
    pub more: bool,
}

/// Chunks that got room while they were written, by the numbers of their arrays.
pub(super) type NewPlaces = BTreeMap<usize, Vec<PlacedChunk>>;

/// Finds out, in this directory and file, what is written to a file that exists so that what lies elsewhere now is found.
pub(super) type ChangeFile = Box<dyn FnOnce(&dyn Names, &str) -> Result<FileChange, Fault> + Send>;

/// What is written to a file that exists, in this order, so that it has changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct FileChange {
    /// Where what is behind all else begins \[B\].
    pub(super) at: u64,
    /// The bytes there.
    pub(super) behind: Vec<u8>,
    /// Bytes in place, each at its address.
    pub(super) in_place: Vec<(u64, Vec<u8>)>,
    /// What was there before.
    pub(super) before: Vec<(u64, Vec<u8>)>,
}

/// What is said of an array besides its shape and type.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Described {
    /// Names of its dimensions, where the format has any.
    pub dimension_names: Option<Vec<Option<String>>>,
    /// Its attributes.
    pub attributes: Attributes,
    /// What elements are that nobody wrote, as JSON.
    pub fill_value: Value,
    /// Shape of its chunks, where it lies in chunks.
    pub chunks: Option<Vec<u64>>,
    /// How chunks become bytes, where they do not lie as they are.
    pub codecs: Vec<Value>,
}

/// Why something in a file is no array that can be read here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unread {
    /// Whether it is damaged, rather than of a kind that is not supported.
    pub damaged: bool,
    /// What was expected, and what was found.
    pub why: String,
}

/// What is written of a new file when it is published.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FileEnd {
    /// The bytes with which it begins, and which make it valid.
    pub beginning: Vec<u8>,
    /// Bytes behind the last array.
    pub ending: Vec<u8>,
}

/// Bytes that do not change when a file grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lasting {
    /// Where they begin \[B\].
    pub(crate) from: u64,
    /// Where they end \[B\].
    pub(crate) to: u64,
    /// By which they are told from others.
    pub(crate) fingerprint: u64,
}

impl Lasting {
    /// All of what a file begins with from this byte on.
    pub(super) fn of(beginning: &[u8], from: u64) -> Lasting {
        Lasting { from, to: beginning.len() as u64, fingerprint: fingerprint(&beginning[from as usize..]) }
    }
}

/// How far a file goes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FileSize {
    /// How many arrays it has.
    pub(crate) arrays: usize,
    /// How many records, where arrays grow.
    pub(crate) records: u64,
    /// Its length \[B\].
    pub(crate) bytes: u64,
    /// First extents of arrays that grow each by itself, by their numbers; of others that grow, how many rows were seen or written,
    /// where these are fewer than the records.
    pub(crate) lengths: Vec<(usize, u64)>,
}

/// The arrays of a file, as all ranks know them.
pub(crate) trait Form: Debug + Send {
    /// How far it goes.
    fn extent(&self) -> FileSize;
    /// The array with this number.
    fn array(&self, number: usize) -> Cow<'_, FileArray>;
    /// Names of all, in their order.
    fn names(&self) -> Vec<&str>;
    /// The numbers of arrays of these names, where there are such. There may be many thousands: a name is found without looking
    /// at all others.
    fn numbers_of(&self, names: &[Cow<str>]) -> Vec<Option<usize>>;
    /// What is said of one besides.
    fn described(&self, number: usize) -> Described;
    /// Attributes of the file.
    fn attributes(&self) -> Attributes {
        Attributes::new()
    }
    /// How arrays lie in the object with this name, each of them.
    fn stored(&self, numbers: &[usize], object: &Arc<str>) -> Vec<Stored>;
    /// How it is found out where the units of one lie, where that must be looked up in the file, which nobody does while he
    /// has the form to himself: storage may not answer.
    fn lookup(&self, _number: usize) -> Option<Lookup> {
        None
    }
    /// How it is found out which units of one are stored, of a file that exists, where perhaps not all are.
    fn stored_units(&self, _number: usize) -> Option<ListStored> {
        None
    }
    /// Whether units of a new one get room as they are written, and rank 0 hears afterwards where.
    fn gets_room(&self, _number: usize) -> bool {
        false
    }
    /// Rank 0 has heard where units lie, and where that room ends. Gives how a file that exists is changed so that they are
    /// found.
    ///
    /// # Errors
    /// When there is no way to note that.
    fn put_in_room(&mut self, _placed: NewPlaces, _end: u64) -> Result<Option<ChangeFile>, Fault> {
        Ok(None)
    }
    /// The file was changed so: it ends there now, and begins with this. Whether rank 0 changes it `alone`, since it holds a lock
    /// that keeps other programs out.
    fn has_changed(&mut self, _end: u64, _beginning: Vec<u8>, _alone: bool) {}
    /// Of a file that exists, on rank 0, what earlier changes have left to be done when it is closed.
    fn last_change(&self) -> Option<ChangeFile> {
        None
    }
    /// The last change of the file was taken back: what rank 0 kept of it does not hold any more.
    fn is_taken_back(&mut self) {}
    /// Refuses to change the elements of one that is there.
    ///
    /// # Errors
    /// When they cannot be changed in place.
    fn check_changeable(&self, _number: usize) -> Result<(), Fault> {
        Ok(())
    }
    /// Whether arrays may be texts of any length, which are written before the elements that say where they lie.
    fn takes_texts(&self) -> bool {
        false
    }
    /// Whether some array has texts of any length.
    fn has_texts(&self) -> bool {
        false
    }
    /// What lies up to here is used by something that is no array.
    fn reaches(&mut self, _end: u64) {}
    /// How a file that exists says that it goes that far.
    fn reaching(&self, _end: u64) -> Option<ChangeFile> {
        None
    }
    /// Whether it is a file of netCDF-4 that exists.
    fn is_netcdf4(&self) -> bool {
        false
    }
    /// What lies in the file and is no array that can be read here, by name, where the format has such.
    fn others(&self) -> Option<&BTreeMap<String, Unread>> {
        None
    }
    /// The bytes with which the file begins, before the first array.
    fn beginning(&self) -> Vec<u8>;
    /// What a new file gets when it is published, with what a change adds that is published with it.
    ///
    /// # Errors
    /// When there is no place for it.
    fn closing(&self, _with: Option<&Edit>) -> Result<FileEnd, Fault> {
        Ok(FileEnd { beginning: self.beginning(), ending: Vec::new() })
    }
    /// What was new of the file is seen now. Gives whether it is changed where it lies from then on, as one that exists; else
    /// what is added gathers behind its end until it is published, by another ending and one write of what it begins with.
    fn is_shown(&mut self) -> bool {
        true
    }
    /// It is new again, and may get arrays.
    fn is_hidden_again(&mut self) {}
    /// Whether a path is that of a step that is not published, or lies in one.
    fn is_in_step(&self, _path: &str) -> bool {
        false
    }
    /// Which of these say what the file is, and do not change when it grows.
    fn lasting(&self) -> Option<Lasting> {
        None
    }
    /// Whether between elements of an array may lie those of others.
    fn interleaves(&self) -> bool {
        false
    }
    /// How rank 0 looks at a file of this format again, where others may append to it.
    fn looks_by(&self) -> Option<LookAt> {
        None
    }
    /// What rank 0 saw when it looked again.
    ///
    /// # Errors
    /// When that is no header.
    fn renew(&mut self, _told: &[u8], _path: &str) -> Result<(), Fault> {
        Ok(())
    }
    /// Refuses options that its arrays cannot have.
    ///
    /// # Errors
    /// When one of them is given.
    fn check(&self, options: &WriteOptions) -> Result<(), Fault>;
    /// Adds new arrays behind the others, with the types that are to be stored.
    ///
    /// # Errors
    /// When there is no place for one; none is added then.
    fn add(&mut self, new: &[(&ArrayWrite, ElementType)], options: &WriteOptions) -> Result<(), Fault>;
    /// Whether one may become longer along its first dimension.
    fn grows(&self, _number: usize) -> bool {
        false
    }
    /// Numbers of the arrays that grow together: what is not given of them gets fill values.
    fn growing_together(&self) -> Vec<usize> {
        Vec::new()
    }
    /// How many rows of an array that grows were seen or written by this opening: what is appended lies behind these.
    fn rows(&self, number: usize) -> u64 {
        self.array(number).shape.first().copied().unwrap_or(0)
    }
    /// Numbers of the arrays that have fewer rows than others in the same records, of which this opening wrote some.
    fn behind(&self) -> Vec<usize> {
        Vec::new()
    }
    /// Whether a section may be written behind the last row, up to which the array grows then.
    fn grows_by_sections(&self) -> bool {
        false
    }
    /// What has to be moved before arrays grow, or the file is seen, since some lie where the format does not have them.
    fn unarranged(&self) -> Option<Arranged> {
        None
    }
    /// Whether something has to be moved first, if these new arrays are added.
    fn outgrows(&self, _new: &[ArrayWrite], _options: &WriteOptions) -> bool {
        false
    }
    /// All was moved.
    fn is_arranged(&mut self) {}
    /// Makes these longer along their first dimension, and those that grow with them.
    ///
    /// # Errors
    /// When one does not grow, or not as far; none does then.
    fn grow(&mut self, _numbers: &[usize], _by: u64) -> Result<(), Fault> {
        Err(Fault::new(FaultKind::Unsupported, "arrays of this format do not grow")
            .hint("use a NetCDF file or a Zarr store for arrays that grow"))
    }
    /// Forgets what was added.
    fn back_to(&mut self, before: FileSize);
    /// Whether arrays may be added to a file that exists.
    fn takes_new(&self) -> bool {
        false
    }
    /// The same with a change that is not carried out where the file lies, but on a copy.
    ///
    /// # Errors
    /// When it is not possible.
    fn edited(&self, _edit: &Edit) -> Result<Option<Box<dyn Form>>, Fault> {
        Ok(None)
    }
    /// Whether elements of a new array of this shape that no rank writes are fill values only where these are written.
    fn fills_by_writing(&self, _shape: &[u64]) -> bool {
        false
    }
    /// Whether a file that exists gets new arrays as a copy, since what is there has to move.
    fn adds_by_copy(&self) -> bool {
        false
    }
    /// The arrays from this number on are written; those of a file that exists are in it now, but for those of steps that are not
    /// published.
    fn are_added(&mut self, _first: usize) {}
    /// Numbers and names of the arrays in a group and in groups of it, in their order; its path ends with a slash, or is empty.
    fn names_in(&self, within: &str) -> Vec<(usize, &str)> {
        self.names().into_iter().enumerate().filter(|(_, name)| name.starts_with(within)).collect()
    }
    /// Paths of all groups below such a path that can be seen, where the format has any.
    fn groups_in(&self, _within: &str) -> Option<Vec<&str>> {
        None
    }
    /// Whether there is a group with this path that can be seen, where the format has any.
    fn has_group(&self, _path: &str) -> Option<bool> {
        None
    }
    /// Attributes of a group.
    fn group_attributes(&self, _path: &str) -> Attributes {
        Attributes::new()
    }
    /// Paths of the groups below such a path that are published steps.
    fn steps_in(&self, _within: &str) -> Vec<&str> {
        Vec::new()
    }
    /// The step that is not published yet in which an array with this number lies, if one.
    fn hidden_in(&self, _number: usize) -> Option<&str> {
        None
    }
    /// Whether a change is possible, and how rank 0 carries it out, where the file exists.
    ///
    /// # Errors
    /// When it is not.
    fn change_of(&self, edit: &Edit) -> Result<Option<ChangeFile>, Fault> {
        Err(edit.refused())
    }
    /// What is deleted with this path is gone for good, and nothing else reads the file: its room is for new arrays.
    fn leaves_room(&mut self, _path: &str) {}
    /// The change was carried out. Gives the numbers of arrays that are gone, in their order.
    fn has_edited(&mut self, _edit: &Edit) -> Vec<usize> {
        Vec::new()
    }
}

/// Numbers of things by their names, made when somebody looks for one.
#[derive(Debug, Default)]
pub(super) struct NumbersByName(OnceCell<HashMap<String, usize>>);

impl NumbersByName {
    /// Those of things with these names, out of so many, of which it is told how each is called.
    pub(super) fn of<'a>(
        &self,
        names: &[Cow<str>],
        count: usize,
        called: impl Fn(usize) -> &'a str,
    ) -> Vec<Option<usize>> {
        // Those of most calls follow each other here, too.
        let mut next = 0;
        let number = |name: &Cow<str>| {
            let follows = next < count && called(next) == name;
            let found = if follows { Some(next) } else { self.number(name, count, &called) };
            next = found.map_or(next, |found| found + 1);
            found
        };
        names.iter().map(number).collect()
    }

    fn number<'a>(&self, name: &str, count: usize, called: impl Fn(usize) -> &'a str) -> Option<usize> {
        let all = || (0..count).map(|number| (called(number).to_string(), number)).collect();
        if count == 0 { None } else { self.0.get_or_init(all).get(name).copied() }
    }

    /// One more is called so.
    pub(super) fn push(&mut self, name: &str, number: usize) {
        if let Some(numbers) = self.0.get_mut() {
            numbers.insert(name.to_string(), number);
        }
    }

    /// They are others now.
    pub(super) fn forget(&mut self) {
        self.0.take();
    }
}

/// Arrays one after another behind a header, of which the file says nothing.
#[derive(Debug)]
pub(super) struct Raw {
    header: Vec<u8>,
    order: Order,
    arrays: Vec<FileArray>,
    numbers: NumbersByName,
    /// Where each array begins \[B\].
    offsets: Vec<u64>,
    end: u64,
}

impl Raw {
    /// A file of these arrays, of which `header` is all that lies before them, or that many bytes of which nobody asks.
    pub(super) fn new(header: Vec<u8>, header_bytes: u64, order: Order, arrays: Vec<FileArray>) -> Result<Raw, Fault> {
        let end = header_bytes.max(header.len() as u64);
        let mut raw = Raw { header, end, ..Raw::empty(order) };
        arrays.into_iter().try_for_each(|array| raw.push(array))?;
        Ok(raw)
    }

    /// A file of nothing.
    pub(super) fn empty(order: Order) -> Raw {
        let (arrays, numbers, offsets) = (Vec::new(), NumbersByName::default(), Vec::new());
        Raw { header: Vec::new(), order, arrays, numbers, offsets, end: 0 }
    }

    /// The same, of which somebody has read what lies before the arrays.
    pub(super) fn behind(self, header: &[u8]) -> Raw {
        Raw { header: header.to_vec(), ..self }
    }

    fn push(&mut self, array: FileArray) -> Result<(), Fault> {
        let bytes = array.bytes()?;
        let end = self.end.checked_add(bytes).filter(|&end| end < 1 << 62).ok_or_else(|| {
            Fault::new(FaultKind::Invalid, format!("the file would be too large with array '{}'", array.name))
        })?;
        self.offsets.push(std::mem::replace(&mut self.end, end));
        self.numbers.push(&array.name, self.arrays.len());
        self.arrays.push(array);
        Ok(())
    }
}

impl Form for Raw {
    fn extent(&self) -> FileSize {
        FileSize { arrays: self.arrays.len(), bytes: self.end, ..FileSize::default() }
    }

    fn array(&self, number: usize) -> Cow<'_, FileArray> {
        Cow::Borrowed(&self.arrays[number])
    }

    fn names(&self) -> Vec<&str> {
        self.arrays.iter().map(|array| array.name.as_str()).collect()
    }

    fn numbers_of(&self, names: &[Cow<str>]) -> Vec<Option<usize>> {
        self.numbers.of(names, self.arrays.len(), |number| &self.arrays[number].name)
    }

    fn described(&self, _number: usize) -> Described {
        Described::default()
    }

    fn stored(&self, numbers: &[usize], object: &Arc<str>) -> Vec<Stored> {
        let stored = |&number: &usize| {
            let FileArray { shape, element, .. } = &self.arrays[number];
            let stored = Stored::in_file(shape, *element, object.clone(), self.offsets[number]);
            match self.order {
                Order::RowMajor => stored,
                Order::ColumnMajor => stored.ordered(self.order.of_dimensions(shape.len())),
            }
        };
        numbers.iter().map(stored).collect()
    }

    fn beginning(&self) -> Vec<u8> {
        self.header.clone()
    }

    fn check(&self, options: &WriteOptions) -> Result<(), Fault> {
        options.check_for_file()
    }

    fn add(&mut self, new: &[(&ArrayWrite, ElementType)], _options: &WriteOptions) -> Result<(), Fault> {
        let before = self.extent();
        let added = new.iter().try_for_each(|(ask, element)| {
            self.push(FileArray { name: ask.name.clone(), shape: ask.shape().to_vec(), element: *element })
        });
        added.inspect_err(|_| self.back_to(before))
    }

    fn back_to(&mut self, before: FileSize) {
        self.arrays.truncate(before.arrays);
        self.numbers.forget();
        self.offsets.truncate(before.arrays);
        self.end = before.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_a_raw_file_are_found_in_any_order() {
        let element = ElementType::native(hyperslab_layout::Kind::Int16);
        let array = |name: &&str| FileArray { name: name.to_string(), shape: vec![3], element };
        let all = ["a", "b", "c", "d"];
        let mut raw = Raw::new(Vec::new(), 0, Order::RowMajor, all.iter().map(array).collect()).unwrap();
        let check = |raw: &Raw, names: &[&str]| {
            let paths: Vec<Cow<str>> = names.iter().map(|name| (*name).into()).collect();
            let there = raw.names();
            let expected: Vec<_> = names.iter().map(|name| there.iter().position(|one| one == name)).collect();
            assert_eq!(raw.numbers_of(&paths), expected, "{names:?} of {there:?}");
        };
        let asked: [&[&str]; 7] =
            [&all, &["c", "d"], &["d", "a", "b", "b", "a"], &["b", "x", "c", "e"], &["x"], &["d", "e"], &[]];
        asked.iter().for_each(|names| check(&raw, names));
        // After it was asked for others, and after what was added is gone again.
        let before = raw.extent();
        raw.push(array(&"e")).unwrap();
        asked.iter().for_each(|names| check(&raw, names));
        raw.back_to(before);
        asked.iter().for_each(|names| check(&raw, names));
        check(&Raw::empty(Order::RowMajor), &all);
    }
}
