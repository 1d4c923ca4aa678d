//! NetCDF classic files, in their three versions: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit data).
//!
//! ```text
//! | header | fixed variables, one after another | record 0 of all record variables | record 1 | ...
//! ```
//!
//! The header lists dimensions, attributes and variables, and says where each variable begins; elements are big-endian. One
//! dimension may be unlimited: a variable whose first dimension it is has a slab in each record, padded to 4 B, unless it is the
//! only one. The format is that of the specification in the netCDF User's Guide, "The NetCDF Classic Format
//! Specification", and of PnetCDF's "CDF-5 file format specification".

mod adding;
mod arranging;
mod attribute;
mod build;
mod counted;
mod editing;
mod names;
mod parse;
mod policy;
#[cfg(test)]
mod tests;
mod types;

use crate::error::{Context, Error};
use crate::size::bytes_of;
pub use adding::NewVariable;
pub use arranging::{Arranged, Shifted};
pub use attribute::Attribute;
use counted::CountedHeader;
use hyperslab_layout::ElementType;
use hyperslab_layout::stored::{Stored, Strides};
pub(crate) use names::FILL_VALUE;
pub use names::check_name;
pub use policy::{HEADER_BYTES_FIRST, HEADER_BYTES_MAX};
use std::sync::Arc;
pub use types::{Type, Version};

/// A dimension, by whose number variables refer to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// How many indices it has; `None` for the unlimited one, which has as many as the file has records.
    pub length: Option<u64>,
}

/// A variable, which elsewhere is called an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Numbers of its dimensions, from the slowest to the fastest.
    pub dimensions: Vec<usize>,
    /// Its attributes.
    pub attributes: Vec<Attribute>,
    /// Type of its elements.
    pub kind: Type,
    /// Where it, or its slab of the first record, begins \[B\].
    pub begin: u64,
}

/// What a file holds, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetcdfHeader {
    /// Which version of the format.
    pub version: Version,
    /// How many records the file has.
    pub records: u64,
    /// The dimensions.
    pub dimensions: Vec<Dimension>,
    /// The attributes of the file.
    pub attributes: Vec<Attribute>,
    /// The variables.
    pub variables: Vec<Variable>,
    /// How many of them, the first ones, lie where the format has them. What follows are drafts, in a file that nobody else reads yet:
    /// each lies in one stretch, until all are [arranged](NetcdfHeader::arrange).
    pub arranged: usize,
    /// How long what it says of variables is, as far as that was counted.
    counted: CountedHeader,
}

impl NetcdfHeader {
    /// That of a file without variables.
    pub fn new(version: Version, attributes: Vec<Attribute>) -> NetcdfHeader {
        let (dimensions, variables) = (Vec::new(), Vec::new());
        NetcdfHeader {
            version,
            records: 0,
            dimensions,
            attributes,
            variables,
            arranged: 0,
            counted: CountedHeader::default(),
        }
    }

    /// Whether a variable has a slab in each record.
    pub fn is_record(&self, number: usize) -> bool {
        let first = self.variables[number].dimensions.first();
        first.is_some_and(|&dimension| self.dimensions[dimension].length.is_none())
    }

    /// Numbers of the variables that have a slab in each record.
    pub fn record_variables(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.variables.len()).filter(|&number| self.is_record(number))
    }

    /// Numbers of those whose slabs lie in records, one behind another.
    fn interleaved(&self) -> impl Iterator<Item = usize> + '_ {
        self.record_variables().filter(|&number| number < self.arranged)
    }

    /// Extents of a variable.
    pub fn shape(&self, number: usize) -> Vec<u64> {
        let extent = |&dimension: &usize| self.dimensions[dimension].length.unwrap_or(self.records);
        self.variables[number].dimensions.iter().map(extent).collect()
    }

    /// Names of the dimensions of a variable.
    pub fn dimension_names(&self, number: usize) -> Vec<&str> {
        let name = |&dimension: &usize| self.dimensions[dimension].name.as_str();
        self.variables[number].dimensions.iter().map(name).collect()
    }

    /// Bytes of a variable, or of its slab of one record, without what pads them \[B\]; `None` where an address might not
    /// fit 63 bits.
    fn slab_bytes(&self, number: usize) -> Option<u64> {
        let variable = &self.variables[number];
        let lengths = variable.dimensions.iter().filter_map(|&dimension| self.dimensions[dimension].length);
        bytes_of(lengths, variable.kind.bytes())
    }

    /// Distance of two records \[B\]: of all slabs, each padded to 4 B, but the only one of a file is not; `None` where an
    /// address might not fit 63 bits.
    pub fn record_bytes(&self) -> Option<u64> {
        let mut each = self.interleaved();
        match (each.next(), each.next()) {
            (None, _) => Some(0),
            (Some(only), None) => self.slab_bytes(only),
            _ => self.interleaved().try_fold(0_u64, |sum, number| sum.checked_add(padded(self.slab_bytes(number)?)?)),
        }
    }

    /// Where the last element of a variable ends \[B\], if two records are so far from each other; `None` where an address might
    /// not fit 63 bits. Without records, a slab ends nowhere.
    fn end_in(&self, number: usize, record: Option<u64>) -> Option<u64> {
        let (begin, slab) = (self.variables[number].begin, self.slab_bytes(number)?);
        let record = if number < self.arranged { record } else { Some(slab) };
        let before = match (self.is_record(number), self.records) {
            (true, 0) => return Some(0),
            (true, records) => record?.checked_mul(records - 1)?,
            (false, _) => 0,
        };
        begin.checked_add(before)?.checked_add(slab).filter(|&end| end < 1 << 62)
    }

    /// Where the last element of all variables ends \[B\], or the header where none has any.
    pub fn end(&self) -> u64 {
        self.end_of(self.variables.len())
    }

    /// The same of the first so many.
    fn end_of(&self, count: usize) -> u64 {
        let record = self.record_bytes();
        let ends = (0..count).map(|number| self.end_in(number, record).unwrap_or(u64::MAX));
        ends.max().filter(|&end| end > 0).unwrap_or_else(|| self.to_bytes().len() as u64)
    }

    /// The end of the file with what pads the last slab, as other tools write it \[B\].
    pub fn padded_end(&self) -> u64 {
        self.padded_end_of(self.variables.len())
    }

    /// The same where there are only so many variables, all that are arranged among them.
    fn padded_end_of(&self, count: usize) -> u64 {
        let end = self.end_of(count);
        let mut records = self.interleaved();
        let alone = self.arranged == count && records.next().is_some() && records.next().is_none();
        if alone { end } else { padded(end).unwrap_or(end) }
    }

    /// How variables lie in the object with this name, each of them.
    pub fn stored(&self, numbers: &[usize], object: &Arc<str>) -> Vec<Stored> {
        // All variables have to be looked at for it.
        let record = numbers.iter().any(|&number| self.is_record(number)).then(|| self.record_bytes()).flatten();
        numbers.iter().map(|&number| self.stored_in(number, object, record)).collect()
    }

    /// How one does, where the distance of two records is known.
    fn stored_in(&self, number: usize, object: &Arc<str>, record: Option<u64>) -> Stored {
        let variable = &self.variables[number];
        let mut stored = Stored::in_file(&self.shape(number), variable.kind.element(), object.clone(), variable.begin);
        stored.fill = self.fill(number).into();
        let record = record.filter(|_| self.is_record(number) && number < self.arranged);
        // Records without anything between them are an array like any other.
        if let Some(distance) = record.filter(|&distance| Some(distance) != self.slab_bytes(number)) {
            stored.strides = Strides { record: Some(distance), ..stored.strides };
        }
        stored
    }

    /// Type of the stored elements of a variable.
    pub fn element(&self, number: usize) -> ElementType {
        self.variables[number].kind.element()
    }

    /// One element, big-endian, for what nobody wrote: that of the attribute `_FillValue`, or the usual one of the type.
    pub fn fill(&self, number: usize) -> Vec<u8> {
        let variable = &self.variables[number];
        let given = variable.attributes.iter().find(|attribute| attribute.name == FILL_VALUE);
        let fits = |attribute: &&Attribute| attribute.kind == variable.kind && attribute.count() == 1;
        given.filter(fits).map_or_else(|| variable.kind.usual_fill(), |attribute| attribute.bytes().to_vec())
    }

    /// Checks that the file called `name` has all that its header promises.
    ///
    /// # Errors
    /// When it ends before.
    pub fn check_size(&self, actual: u64, name: &str) -> Result<(), Error> {
        let end = self.end();
        if actual >= end {
            return Ok(());
        }
        let context = Context::new("read NetCDF file", name);
        let error = context.corrupt(format!("at least {end} B, as its header says"), format!("{actual} B"));
        Err(error.with_hint("the file was cut short, or its writer did not end"))
    }

    /// Where the number of records is written, and how \[B\].
    pub fn records_field(&self) -> (u64, Vec<u8>) {
        let wide = self.records.to_be_bytes();
        (4, if self.version == Version::Data64 { wide.to_vec() } else { wide[4..].to_vec() })
    }
}

/// A number of bytes, and what makes it a multiple of 4.
fn padded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(4)
}
