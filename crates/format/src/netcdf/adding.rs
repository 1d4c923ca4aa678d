//! New variables in a file that is being made, and more records.

use super::attribute::Attribute;
use super::names::FILL_VALUE;
use super::names::check_name;
use super::policy::{PAGE_BYTES, ROOM_BYTES, ROOM_BYTES_MAX, ROOM_PART};
use super::types::{Type, Version};
use super::{Dimension, NetcdfHeader, Variable, padded};
use crate::attribute::{Attributes, shown};
use crate::error::{Context, Error, excerpt};
use hyperslab_layout::{Kind, tuple};
use std::collections::HashSet;

/// A variable to add.
#[derive(Clone, Debug)]
pub struct NewVariable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its extents.
    pub shape: &'a [u64],
    /// What its elements are.
    pub kind: Kind,
    /// Names of its dimensions; where one has none, it is called by its extent, as `dim_64`.
    pub dimension_names: Option<&'a [Option<String>]>,
    /// Its attributes.
    pub attributes: &'a Attributes,
    /// What elements are that nobody wrote: one, in native byte order.
    pub fill: Option<&'a [u8]>,
}

/// What a header was, but for what was added behind it.
struct Before {
    version: Version,
    records: u64,
    dimensions: usize,
    arranged: usize,
    begins: Vec<u64>,
}

impl Before {
    fn of(header: &NetcdfHeader) -> Before {
        let begins = header.variables.iter().map(|variable| variable.begin).collect();
        let NetcdfHeader { version, records, arranged, .. } = *header;
        Before { version, records, dimensions: header.dimensions.len(), arranged, begins }
    }

    fn restore(self, header: &mut NetcdfHeader) {
        header.variables.truncate(self.begins.len());
        header.counted.keep(self.begins.len());
        header.variables.iter_mut().zip(self.begins).for_each(|(variable, begin)| variable.begin = begin);
        header.dimensions.truncate(self.dimensions);
        (header.version, header.records, header.arranged) = (self.version, self.records, self.arranged);
    }
}

impl NetcdfHeader {
    /// Adds variables, and gives their numbers. The dimension called `unlimited` becomes the one of records, which may grow; as
    /// many records are there then as the longest of them has. Fixed variables lie behind each other from a round address on, which
    /// leaves room for a longer header; records follow them. What has no place without that others move, since there are records or
    /// the header has no more room, is a draft behind all else. With `version`, that version of the format it stays, or else becomes
    /// the oldest that has all that is needed, but for the first.
    ///
    /// # Errors
    /// When the format has no place for one of them; nothing is added then.
    pub fn add(
        &mut self,
        new: &[NewVariable],
        unlimited: Option<&str>,
        version: Option<Version>,
    ) -> Result<Vec<usize>, Error> {
        let old = Before::of(self);
        let added = self.add_all(new, unlimited, version);
        if added.is_err() {
            old.restore(self);
        }
        added
    }

    /// The same; of what was added when it failed, some is there.
    fn add_all(
        &mut self,
        new: &[NewVariable],
        unlimited: Option<&str>,
        version: Option<Version>,
    ) -> Result<Vec<usize>, Error> {
        let (first, before) = (self.variables.len(), self.records);
        let drafts = self.arranged < first || before > 0 && !new.is_empty();
        let is_taken = self.taken(new);
        for (variable, is_taken) in new.iter().zip(is_taken) {
            self.add_one(variable, unlimited, !is_taken)?;
        }
        let numbers: Vec<usize> = (first..self.variables.len()).collect();
        self.count(before, new, &numbers);
        self.suit(version, first)?;
        if self.records > before && self.arranged < first {
            // Drafts have no room for more of them.
            let context = Context::new("add the NetCDF variable", new.last().map_or("", |new| new.name));
            return Err(
                context.invalid(format!("at most {before} records before all is arranged"), self.records.to_string())
            );
        }
        let mut placed = self.place_new(first, drafts);
        if placed.is_err() && version.is_none() && self.version == Version::Classic {
            // One that exists becomes the next, which all tools read that read the first.
            self.version = Version::Offset64;
            placed = self.place_new(first, drafts);
        }
        placed?;
        Ok(numbers)
    }

    /// Of each new variable, whether its name is that of one that is there, or of one before it.
    fn taken(&self, new: &[NewVariable]) -> Vec<bool> {
        if let [one] = new {
            return vec![self.variables.iter().any(|variable| variable.name == one.name)];
        }
        // There may be many thousands.
        let mut taken: HashSet<&str> = self.variables.iter().map(|variable| variable.name.as_str()).collect();
        new.iter().map(|variable| !taken.insert(variable.name)).collect()
    }

    fn place_new(&mut self, first: usize, drafts: bool) -> Result<(), Error> {
        if drafts || !self.has_room(first) {
            self.draft(first);
        } else {
            self.place(first);
        }
        self.check_limits()
    }

    /// Takes back all variables but the first, and all records but the first.
    pub fn back_to(&mut self, variables: usize, records: u64) {
        self.variables.truncate(variables);
        self.counted.keep(variables);
        self.arranged = self.arranged.min(variables);
        let used = self.variables.iter().flat_map(|variable| &variable.dimensions).max();
        self.dimensions.truncate(used.map_or(0, |&last| last + 1));
        self.records = records;
    }

    /// Makes it so many records, of a file whose variables are all [arranged](NetcdfHeader::is_arranged).
    ///
    /// # Errors
    /// When the version has no number for it, or the file would be too large.
    pub fn grow(&mut self, records: u64, name: &str) -> Result<(), Error> {
        let before = std::mem::replace(&mut self.records, records);
        let record = self.record_bytes();
        let ends = self.record_variables().all(|number| self.end_in(number, record).is_some());
        if records <= self.version.length_max() && ends {
            return Ok(());
        }
        self.records = before;
        let context = Context::new("append to", name);
        let expected = format!("at most {} records", self.version.length_max());
        Err(context.invalid(expected, format!("{records} records")).with_hint("NETCDF3_64BIT_DATA has room for more"))
    }

    fn add_one(&mut self, new: &NewVariable, unlimited: Option<&str>, is_free: bool) -> Result<(), Error> {
        let NewVariable { name, kind, .. } = *new;
        let context = Context::new("add the NetCDF variable", name);
        check_name(name)?;
        if !is_free {
            return Err(context.invalid("variables of different names", format!("'{}' twice", excerpt(name))));
        }
        let kind = Type::of(kind).ok_or_else(|| {
            let found = if kind.is_opaque() { kind.to_string() } else { format!("elements of type {kind}") };
            let error = context.unsupported("integers, float32, float64 or characters (S1)", found);
            error.with_hint(match kind {
                Kind::Opaque(opaque) if opaque.time().is_some() => {
                    "write array.view(\"int64\"), with the attribute units such as \"seconds since 1970-01-01\""
                }
                Kind::Opaque(opaque) if opaque.is_text() => {
                    "split it into characters, with one dimension more: netCDF4.stringtochar(array.astype(\"S\"))"
                }
                Kind::Opaque(opaque) if opaque.float().is_some() => "write array.astype(\"float32\")",
                Kind::Opaque(_) => "write each field as a variable of its own, or into a Zarr store",
                _ => "write it with another dtype; complex numbers as two variables, truth values as int8",
            })
        })?;
        let dimensions = self.dimensions_of(new, unlimited, context)?;
        let mut attributes = Attribute::of_values(new.attributes, Some(kind))?;
        let unfit =
            |attribute: &&Attribute| attribute.name == FILL_VALUE && (attribute.kind, attribute.count()) != (kind, 1);
        if let Some(unfit) = attributes.iter().find(unfit) {
            let found = excerpt(&shown(&unfit.to_value()));
            return Err(context.invalid(format!("one {} as {FILL_VALUE}", kind.name()), found));
        }
        if let Some(fill) = new.fill {
            attributes.retain(|attribute| attribute.name != FILL_VALUE);
            attributes.insert(0, Attribute::of_fill(kind, fill));
        }
        self.variables.push(Variable { name: name.into(), dimensions, attributes, kind, begin: u64::MAX });
        Ok(())
    }

    /// Makes it as many records as the longest of the new variables has, or as many as there were.
    fn count(&mut self, before: u64, new: &[NewVariable], numbers: &[usize]) {
        let growing = new.iter().zip(numbers).filter(|(_, number)| self.is_record(**number));
        self.records = growing.map(|(variable, _)| variable.shape[0]).fold(before, u64::max);
    }

    /// Numbers of the dimensions of a new variable, which are added where there are none of these names.
    fn dimensions_of(
        &mut self,
        new: &NewVariable,
        unlimited: Option<&str>,
        context: Context,
    ) -> Result<Vec<usize>, Error> {
        let NewVariable { shape, dimension_names: given, .. } = *new;
        if let Some(given) = given.filter(|given| given.len() != shape.len()) {
            let found = format!("{} names", given.len());
            return Err(context.invalid(format!("a name for each of {} dimensions", shape.len()), found));
        }
        let mut of = Vec::with_capacity(shape.len());
        for (d, &extent) in shape.iter().enumerate() {
            let given = given.and_then(|given| given[d].as_deref());
            let name = given.map_or_else(|| self.name_for(extent, &of), str::to_owned);
            check_name(&name)?;
            let length = (Some(name.as_str()) != unlimited).then_some(extent);
            let known = self.dimensions.iter().position(|dimension| dimension.name == name);
            // What was once said to be unlimited stays so.
            let grows = length.is_none() || known.is_some_and(|known| self.dimensions[known].length.is_none());
            if grows && d > 0 {
                let found = format!("'{name}' as number {d}");
                return Err(context.invalid("the unlimited dimension as the first of a variable", found));
            }
            if !grows && extent == 0 {
                let error = context.unsupported("extents of at least 1", tuple(shape));
                return Err(error.with_hint("in NetCDF classic only the unlimited dimension may have no index"));
            }
            of.push(match known {
                None => self.add_dimension(name, length, context)?,
                Some(known) if grows && self.dimensions[known].length.is_some() => {
                    let error = context.invalid(format!("'{name}' as it is: not unlimited"), "unlimited");
                    return Err(error.with_hint("say so when it is first used"));
                }
                Some(known) if !grows && self.dimensions[known].length != length => {
                    let is = self.dimensions[known].length.unwrap_or(0);
                    let error = context.invalid(format!("'{name}' of {is} indices, as it is"), extent.to_string());
                    return Err(
                        error.with_hint("choose another name: dimensions of one name have one length in all of a file")
                    );
                }
                Some(known) => known,
            });
        }
        Ok(of)
    }

    /// A name for a dimension that has none: that of its extent, and another one for each of an array.
    fn name_for(&self, extent: u64, taken: &[usize]) -> String {
        let same = |&&d: &&usize| self.dimensions[d].length == Some(extent);
        match taken.iter().filter(same).count() {
            0 => format!("dim_{extent}"),
            before => format!("dim_{extent}_{}", before + 1),
        }
    }

    fn add_dimension(&mut self, name: String, length: Option<u64>, context: Context) -> Result<usize, Error> {
        let other = self.dimensions.iter().find(|dimension| dimension.length.is_none());
        if let Some(other) = other.filter(|_| length.is_none()) {
            let expected = format!("one unlimited dimension, '{}'", other.name);
            return Err(context.unsupported(expected, format!("also '{name}'")));
        }
        self.dimensions.push(Dimension { name, length });
        Ok(self.dimensions.len() - 1)
    }

    /// The version that is asked for, or else the oldest that has what variables from this number on need, and is not older than
    /// this one, which has what those before need.
    fn suit(&mut self, asked: Option<Version>, first: usize) -> Result<(), Error> {
        let new = &self.variables[first..];
        let attributes = || self.attributes.iter().chain(new.iter().flat_map(|v| &v.attributes));
        let types = new.iter().map(|v| v.kind.since()).chain(attributes().map(Attribute::since));
        let of_types = types.max().unwrap_or(Version::Classic);
        let fits = |version: Version| {
            let lengths = self.dimensions.iter().filter_map(|d| d.length).chain([self.records]);
            let slabs = (first..self.variables.len()).map(|n| self.slab_bytes(n).unwrap_or(u64::MAX));
            lengths.max().unwrap_or(0) <= version.length_max() && slabs.max().unwrap_or(0) <= version.slab_bytes_max()
        };
        if let Some(asked) = asked {
            self.version = asked;
            if of_types <= asked {
                return Ok(());
            }
            let newer = new.iter().find(|v| v.kind.since() > asked);
            let attribute = attributes().find(|attribute| attribute.since() > asked);
            let of_attribute =
                |a: &Attribute| format!("the attribute '{}', {}", excerpt(&a.name), excerpt(&shown(&a.to_value())));
            let found = match newer {
                Some(v) => format!("'{}' of type {}", excerpt(&v.name), v.kind.name()),
                None => attribute.map(of_attribute).unwrap_or_default(),
            };
            let error = Context::new("write the NetCDF version", asked.name()).unsupported("types that it has", found);
            return Err(error
                .with_hint("open the new file with format='NETCDF3_64BIT_DATA', or write with a dtype such as int32"));
        }
        let needed = if fits(Version::Offset64) { of_types } else { Version::Data64 };
        self.version = needed.max(self.version);
        Ok(())
    }

    /// Whether there is room before the first data for what the file begins with, where so many variables have places.
    pub(super) fn has_room(&mut self, placed: usize) -> bool {
        let room = self.variables[..placed].iter().map(|variable| variable.begin).min();
        room.is_none_or(|room| self.header_bytes() <= room)
    }

    /// Lets new variables, from this number on, be drafts.
    fn draft(&mut self, first: usize) {
        let mut at = self.padded_end_of(first);
        for number in first..self.variables.len() {
            self.variables[number].begin = at;
            at = at.max(self.end_in(number, None).and_then(padded).unwrap_or(u64::MAX >> 1));
        }
    }

    /// Gives new variables, from this number on, their places in a file without records, or in all of a file.
    pub(super) fn place(&mut self, first: usize) {
        self.arranged = self.variables.len();
        let fixed: Vec<usize> = (0..self.variables.len()).filter(|&number| !self.is_record(number)).collect();
        let mut at = self.data_begin(first);
        for &number in &fixed {
            if number >= first {
                self.variables[number].begin = at;
            }
            at = at.max(self.end_in(number, None).and_then(padded).unwrap_or(u64::MAX >> 1));
        }
        for number in self.record_variables().collect::<Vec<_>>() {
            self.variables[number].begin = at;
            at = at.saturating_add(self.slab_bytes(number).and_then(padded).unwrap_or(u64::MAX >> 1));
        }
    }

    /// Where data begin: behind the header, and room for a longer one \[B\].
    fn data_begin(&mut self, first: usize) -> u64 {
        if let Some(begin) = self.variables[..first].iter().map(|variable| variable.begin).min() {
            return begin;
        }
        let bytes = (0..self.variables.len()).map(|n| self.slab_bytes(n).unwrap_or(0));
        let bytes = bytes.fold(0, u64::saturating_add);
        let room = (bytes / ROOM_PART).clamp(ROOM_BYTES, ROOM_BYTES_MAX);
        (self.header_bytes() + room).next_multiple_of(PAGE_BYTES)
    }

    /// Refuses what the version has no place for, once all is arranged.
    fn check_limits(&mut self) -> Result<(), Error> {
        if self.is_arranged() {
            return self.check_arranged();
        }
        let drafts = Before::of(self);
        self.place(0);
        let checked = self.check_arranged();
        drafts.restore(self);
        checked
    }

    fn check_arranged(&self) -> Result<(), Error> {
        let (version, record) = (self.version, self.record_bytes());
        // Also those that were there: what grows lies behind what does not.
        for number in 0..self.variables.len() {
            let name = &self.variables[number].name;
            let context = Context::new("place the NetCDF variable", name);
            let slab = self.slab_bytes(number).unwrap_or(u64::MAX);
            let begin = self.variables[number].begin;
            let extents = self.variables[number].dimensions.iter();
            let longest = extents.map(|&d| self.dimensions[d].length.unwrap_or(self.records)).max().unwrap_or(0);
            let largest = version.slab_bytes_max();
            if slab > largest || begin > version.begin_max() || longest > version.length_max() {
                let found = format!("{slab} B at byte {begin}, of shape {}", tuple(&self.shape(number)));
                let error = context.unsupported(format!("at most {largest} B in {}", version.name()), found);
                return Err(error.with_hint("NETCDF3_64BIT_DATA has room for more"));
            }
            if self.end_in(number, record).is_none() {
                return Err(context.invalid("a file of less than 2^62 B", tuple(&self.shape(number))));
            }
        }
        Ok(())
    }
}
