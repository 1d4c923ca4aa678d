//! NetCDF classic files: their variables are the arrays, and those with the unlimited dimension grow.

use super::disk::SeenFile;
use super::edit::Edit;
use super::form::{Described, FileArray, FileSize, Form, Lasting, LookAt, NumbersByName};
use super::hdf5::LockedFor;
use super::{File, OwnLock};
use crate::array_write::ArrayWrite;
use crate::comm::Comm;
use crate::error::{Error, format_fault};
use crate::mode::Mode;
use crate::options::{OpenOptions, WriteOptions};
use crate::said;
use hyperslab_format::attribute::Attributes;
use hyperslab_format::hdf5::SIGNATURE;
use hyperslab_format::netcdf::{
    Arranged, Attribute, HEADER_BYTES_FIRST, HEADER_BYTES_MAX, NetcdfHeader, NewVariable, Version,
};
use hyperslab_format::zarr::{fill_from_json, fill_to_json};
use hyperslab_layout::{ElementType, Stored};
use hyperslab_pack::convert_scalar;
use hyperslab_world::{Fault, FaultKind, Location, Names};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a new NetCDF file is.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct NetcdfOptions {
    /// Version of the format; the oldest that holds what is written, but for the first, when not given.
    pub version: Option<Version>,
    /// Name of the dimension that may grow.
    pub unlimited: Option<String>,
    /// Attributes of the file.
    pub attributes: Attributes,
}

impl NetcdfOptions {
    /// This version of the format.
    #[must_use]
    pub fn version(mut self, version: Version) -> NetcdfOptions {
        self.version = Some(version);
        self
    }

    /// With a dimension of this name that may grow.
    #[must_use]
    pub fn unlimited(mut self, name: impl Into<String>) -> NetcdfOptions {
        self.unlimited = Some(name.into());
        self
    }

    /// With these attributes of the file.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> NetcdfOptions {
        self.attributes = attributes;
        self
    }

    fn is_given(&self) -> bool {
        *self != NetcdfOptions::default()
    }

    fn new_header(&self) -> Result<NetcdfHeader, Fault> {
        let attributes = Attribute::of_values(&self.attributes, None).map_err(format_fault)?;
        let mut header = NetcdfHeader::new(self.version.unwrap_or(Version::Offset64), attributes);
        // Its attributes may need a newer version.
        header.add(&[], None, self.version).map_err(format_fault)?;
        Ok(header)
    }
}

/// A NetCDF header, and how it is changed.
#[derive(Debug)]
struct Netcdf {
    header: NetcdfHeader,
    found: Option<HeaderFound>,
    options: NetcdfOptions,
    numbers: NumbersByName,
    /// How many rows were seen or written of those that have fewer than there are records: the rest are fill values, until they are
    /// appended in turn.
    behind: BTreeMap<usize, u64>,
    /// Whether what the file begins with may have become too long for its room.
    outgrown: bool,
}

/// The header of a file that exists.
#[derive(Debug)]
struct HeaderFound {
    bytes: Vec<u8>,
    /// How many records they stand for.
    records: u64,
    /// All but the number of records: others may append while this one reads. There may be thousands of variables, and each call
    /// asks for it.
    lasting: Lasting,
}

/// Rank 0's part of opening: the header as it is in the file, behind the length of the file, which ranks are told with it.
fn look_at(directory: &dyn Names, name: &str, actual: u64) -> Result<SeenFile, Fault> {
    // Others may be appending: a file is as long as its header says before the header says so.
    let length_now = || directory.length(name).unwrap_or(actual);
    let path = directory.full(name);
    let mut wanted = HEADER_BYTES_FIRST;
    loop {
        let prefix = directory.read_prefix(name, wanted)?.unwrap_or_default();
        let actual = length_now();
        match NetcdfHeader::parse(&prefix, actual, &path).map_err(format_fault)? {
            Some((header, bytes)) => {
                header.check_size(actual, &path).map_err(format_fault)?;
                return Ok(([&actual.to_be_bytes()[..], &prefix[..bytes as usize]].concat(), Vec::new()));
            }
            None if wanted < HEADER_BYTES_MAX => wanted *= 4,
            None => {
                let text = format!("'{path}' has a header of more than {HEADER_BYTES_MAX} B");
                return Err(Fault::new(FaultKind::Unsupported, text).about(path));
            }
        }
    }
}

/// What is told of a file begins with one of these.
const OF_CLASSIC: u8 = 0;
const OF_HDF5: u8 = 1;

/// The same of a file that may be one of netCDF-4, which is HDF5: names do not tell.
fn look_at_either(directory: &dyn Names, name: &str, actual: u64, keeping: LockedFor) -> Result<SeenFile, Fault> {
    let prefix = directory.read_prefix(name, SIGNATURE.len() as u64)?.unwrap_or_default();
    let (kind, (told, proofs)) = match prefix == SIGNATURE {
        true => {
            let actual = super::hdf5::locked(directory, name, actual, keeping)?;
            (OF_HDF5, super::hdf5::look_at(directory, name, actual)?)
        }
        false => (OF_CLASSIC, look_at(directory, name, actual)?),
    };
    Ok(([&[kind][..], &told].concat(), proofs))
}

impl Netcdf {
    /// What rank 0 found, as all ranks know it.
    fn of_told(told: &[u8], path: &str) -> Result<Netcdf, Fault> {
        let broken = || Fault::new(FaultKind::Peer, "what rank 0 told of a NetCDF file does not hold its header");
        let (length, bytes) = told.split_first_chunk().ok_or_else(broken)?;
        let parsed = NetcdfHeader::parse(bytes, u64::from_be_bytes(*length), path).map_err(format_fault)?;
        let (header, _) = parsed.ok_or_else(broken)?;
        let (at, field) = header.records_field();
        let lasting = Lasting::of(bytes, at + field.len() as u64);
        let found = Some(HeaderFound { bytes: bytes.to_vec(), records: header.records, lasting });
        Ok(Netcdf { found, ..Netcdf::of_header(header, NetcdfOptions::default()) })
    }

    fn of_header(header: NetcdfHeader, options: NetcdfOptions) -> Netcdf {
        Netcdf {
            header,
            found: None,
            options,
            numbers: NumbersByName::default(),
            behind: BTreeMap::new(),
            outgrown: false,
        }
    }

    /// Of an array that grows, so many rows are there.
    fn has_rows(&mut self, number: usize, rows: u64) {
        if rows < self.header.records {
            self.behind.insert(number, rows);
        } else {
            self.behind.remove(&number);
        }
    }

    /// There are more records than so many: what had all of those has only these now, but for what has these rows.
    fn has_grown(&mut self, before: u64, given: &[(usize, u64)]) {
        if self.header.records > before {
            let growing: Vec<usize> = self.header.record_variables().collect();
            for number in growing {
                self.behind.entry(number).or_insert(before);
            }
        }
        given.iter().for_each(|(number, rows)| self.has_rows(*number, *rows));
    }
}

impl Form for Netcdf {
    fn extent(&self) -> FileSize {
        let NetcdfHeader { variables, records, .. } = &self.header;
        let lengths = self.behind.iter().map(|(number, rows)| (*number, *rows)).collect();
        FileSize { arrays: variables.len(), records: *records, bytes: self.header.padded_end(), lengths }
    }

    fn array(&self, number: usize) -> Cow<'_, FileArray> {
        let name = self.header.variables[number].name.clone();
        Cow::Owned(FileArray { name, shape: self.header.shape(number), element: self.header.element(number) })
    }

    fn names(&self) -> Vec<&str> {
        self.header.variables.iter().map(|variable| variable.name.as_str()).collect()
    }

    fn numbers_of(&self, names: &[Cow<str>]) -> Vec<Option<usize>> {
        let variables = &self.header.variables;
        self.numbers.of(names, variables.len(), |number| &variables[number].name)
    }

    fn described(&self, number: usize) -> Described {
        let names = self.header.dimension_names(number).into_iter().map(|name| Some(name.to_owned()));
        let (stored, native) = (self.header.element(number), ElementType::native(self.header.element(number).kind));
        // Of characters, no bytes have an order.
        let fill = match (self.header.fill(number), native.kind.is_opaque()) {
            (fill, true) => fill,
            (fill, false) => convert_scalar(&fill, stored, native).to_vec(),
        };
        Described {
            dimension_names: Some(names.collect()),
            attributes: values(&self.header.variables[number].attributes),
            fill_value: fill_to_json(native.kind, &fill[..native.bytes() as usize]).unwrap_or_default(),
            ..Described::default()
        }
    }

    fn attributes(&self) -> Attributes {
        values(&self.header.attributes)
    }

    fn stored(&self, numbers: &[usize], object: &Arc<str>) -> Vec<Stored> {
        self.header.stored(numbers, object)
    }

    fn beginning(&self) -> Vec<u8> {
        let Some(HeaderFound { bytes, records, .. }) = &self.found else {
            let mut bytes = self.header.to_bytes();
            // It may be longer than the room that there is before all is arranged.
            let room = self.header.variables.iter().map(|variable| variable.begin).min();
            bytes.truncate(room.map_or(bytes.len(), |room| bytes.len().min(room as usize)));
            return bytes;
        };
        let mut bytes = bytes.clone();
        if self.header.records != *records {
            let (at, field) = self.header.records_field();
            bytes[at as usize..][..field.len()].copy_from_slice(&field);
        }
        bytes
    }

    fn lasting(&self) -> Option<Lasting> {
        self.found.as_ref().map(|found| found.lasting)
    }

    fn is_shown(&mut self) -> bool {
        let bytes = self.header.to_bytes();
        let (at, field) = self.header.records_field();
        let lasting = Lasting::of(&bytes, at + field.len() as u64);
        self.found = Some(HeaderFound { bytes, records: self.header.records, lasting });
        true
    }

    fn is_hidden_again(&mut self) {
        self.found = None;
    }

    fn interleaves(&self) -> bool {
        self.header.record_variables().nth(1).is_some()
    }

    fn looks_by(&self) -> Option<LookAt> {
        Some(look_at)
    }

    fn renew(&mut self, told: &[u8], path: &str) -> Result<(), Fault> {
        let options = std::mem::take(&mut self.options);
        *self = Netcdf { options, ..Netcdf::of_told(told, path)? };
        Ok(())
    }

    fn check(&self, options: &WriteOptions) -> Result<(), Fault> {
        options.check_for_netcdf()
    }

    fn add(&mut self, new: &[(&ArrayWrite, ElementType)], options: &WriteOptions) -> Result<(), Fault> {
        let fill = |(number, (ask, element)): (usize, &(&ArrayWrite, ElementType))| {
            let given = options.of(number).fill_value.as_ref();
            given.map(|value| fill_from_json(element.kind, value, &ask.name)).transpose().map_err(format_fault)
        };
        let fills = new.iter().enumerate().map(fill).collect::<Result<Vec<_>, Fault>>()?;
        let variables = new.iter().zip(&fills).enumerate().map(|(number, ((ask, element), fill))| NewVariable {
            name: &ask.name,
            shape: ask.shape(),
            kind: element.kind,
            dimension_names: options.dimension_names_of(number),
            attributes: options.attributes_of(number),
            fill: fill.as_deref(),
        });
        let variables: Vec<NewVariable> = variables.collect();
        let NetcdfOptions { unlimited, version, .. } = &self.options;
        let before = self.header.records;
        let added = self.header.add(&variables, unlimited.as_deref(), *version).map_err(format_fault)?;
        let growing = added.iter().zip(&variables).filter(|(number, _)| self.header.is_record(**number));
        let rows: Vec<(usize, u64)> = growing.map(|(number, variable)| (*number, variable.shape[0])).collect();
        added.into_iter().for_each(|number| self.numbers.push(&self.header.variables[number].name, number));
        self.has_grown(before, &rows);
        Ok(())
    }

    fn grows(&self, number: usize) -> bool {
        self.header.is_record(number)
    }

    fn growing_together(&self) -> Vec<usize> {
        self.header.record_variables().collect()
    }

    fn rows(&self, number: usize) -> u64 {
        self.behind.get(&number).copied().unwrap_or(self.header.records)
    }

    fn behind(&self) -> Vec<usize> {
        self.behind.keys().copied().collect()
    }

    fn grows_by_sections(&self) -> bool {
        true
    }

    fn unarranged(&self) -> Option<Arranged> {
        if self.header.is_arranged() && !self.outgrown { None } else { self.header.clone().arrange() }
    }

    fn edited(&self, edit: &Edit) -> Result<Option<Box<dyn Form>>, Fault> {
        let mut header = self.header.clone();
        let number = |name: &str| {
            let found = header.variables.iter().position(|variable| variable.name == name);
            let text = format!("there is no array '{name}'");
            found.ok_or_else(|| Fault::new(FaultKind::NotFound, text).hint("list what there is with arrays()"))
        };
        let edited = match edit {
            Edit::Attributes { of, edit } => {
                let of = if of.is_empty() { None } else { Some(number(of)?) };
                header.edit_attributes(of, edit)
            }
            Edit::Rename { from, to } => {
                let number = number(from)?;
                header.rename(number, to)
            }
            _ => return Ok(None),
        };
        edited.map_err(format_fault)?;
        let (options, behind) = (self.options.clone(), self.behind.clone());
        Ok(Some(Box::new(Netcdf { behind, outgrown: true, ..Netcdf::of_header(header, options) })))
    }

    fn adds_by_copy(&self) -> bool {
        true
    }

    fn fills_by_writing(&self, _shape: &[u64]) -> bool {
        true
    }

    fn outgrows(&self, new: &[ArrayWrite], options: &WriteOptions) -> bool {
        let unlimited = self.header.dimensions.iter().find(|dimension| dimension.length.is_none());
        let unlimited = unlimited.map(|dimension| &*dimension.name).or(self.options.unlimited.as_deref());
        // Whoever is alone need not say how an array is held.
        let rows =
            |ask: &ArrayWrite| ask.shape().first().copied().or_else(|| ask.arrays.first()?.shape.first().copied());
        let longer = |(number, ask): (usize, &ArrayWrite)| {
            let names = options.dimension_names_of(number);
            let first = names.and_then(|names| names.first()?.as_deref());
            first == unlimited && rows(ask).is_some_and(|rows| rows > self.header.records)
        };
        !self.header.is_arranged() && unlimited.is_some() && new.iter().enumerate().any(longer)
    }

    fn is_arranged(&mut self) {
        self.header.arrange();
        self.outgrown = false;
    }

    fn grow(&mut self, numbers: &[usize], by: u64) -> Result<(), Fault> {
        let before = self.header.records;
        let rows: Vec<_> = numbers.iter().map(|number| (*number, self.rows(*number).saturating_add(by))).collect();
        let grown = rows.iter().map(|(_, rows)| *rows).fold(before, u64::max);
        self.header.grow(grown, "the records of the file").map_err(format_fault)?;
        self.has_grown(before, &rows);
        Ok(())
    }

    fn back_to(&mut self, before: FileSize) {
        self.behind = before.lengths.into_iter().collect();
        if before.arrays < self.header.variables.len() {
            self.header.back_to(before.arrays, before.records);
            self.numbers.forget();
        }
        self.header.records = before.records;
    }
}

fn values(attributes: &[Attribute]) -> Attributes {
    attributes.iter().map(|attribute| (attribute.name.clone(), attribute.to_value())).collect()
}

impl File {
    /// Opens a NetCDF file on all ranks: a classic one, or, if it exists, one of netCDF-4 as [`File::open_hdf5`] does. A new one
    /// becomes visible with the first [`File::flush`], or when it is closed; one that exists is changed in
    /// place, and may be appended to.
    ///
    /// # Errors
    /// The same on all ranks, when the path does not fit the mode, or the file is no NetCDF classic file, or shorter than its
    /// header says.
    pub fn open_netcdf(
        comm: &Comm,
        location: impl Into<Location>,
        mode: Mode,
        opening: OpenOptions,
        options: NetcdfOptions,
    ) -> Result<File, Error> {
        let location = location.into();
        let asked = mode;
        let mode = File::mode_found(comm, &location, mode, &opening)?;
        let what = format!("open NetCDF file '{location}' (mode {})", asked.name());
        let NetcdfOptions { version, unlimited, attributes } = &options;
        let mut fields = vec![
            ("version of a new file".to_string(), format!("{version:?}")),
            ("unlimited dimension".into(), format!("{unlimited:?}")),
        ];
        fields.extend(said::attributes(attributes, " of the file"));
        let path = location.to_string();
        let fit = match mode.writes_new() {
            true => options.new_header().map(drop),
            false if options.is_given() && asked == mode => {
                let text = "version, unlimited dimension and attributes are given for new files";
                Err(Fault::new(FaultKind::Invalid, text).hint("leave them out, or open with mode 'w' or 'x'"))
            }
            false => Ok(()),
        };
        let form = move |told: &[u8]| -> Result<Box<dyn Form>, Fault> {
            if mode.writes_new() {
                return Ok(Box::new(Netcdf::of_header(options.new_header()?, options)));
            }
            match told.split_first() {
                Some((&OF_HDF5, told)) => super::hdf5::of_told(told),
                Some((_, told)) => Ok(Box::new(Netcdf::of_told(told, &path)?)),
                None => Err(Fault::new(FaultKind::Peer, "rank 0 told nothing of a NetCDF file")),
            }
        };
        let (kept, locking) = (OwnLock::default(), opening.locking);
        let keep = kept.clone();
        let look = move |directory: &dyn Names, name: &str, actual| {
            look_at_either(directory, name, actual, (mode, locking, &keep))
        };
        let file = File::open_as(comm, location, (mode, opening), (what, fields, fit), look, form)?;
        Ok(File { own_lock: kept, ..file })
    }
}
