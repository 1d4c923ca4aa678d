//! HeaderReader a header, which may be hostile.

use super::attribute::Attribute;
use super::build::List;
use super::types::{Type, Version};
use super::{Dimension, NetcdfHeader, Variable};
use crate::error::{Context, Error, excerpt};
use crate::size::{NDIM_MAX, array_bytes};
use std::collections::HashSet;

/// What is read ends before the header does: more of the file is needed.
struct More;

/// Why reading stops.
enum Stop {
    More,
    Wrong(Error),
}

impl From<More> for Stop {
    fn from(_: More) -> Stop {
        Stop::More
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Wrong(error)
    }
}

impl NetcdfHeader {
    /// Parses the header at the start of `bytes`, which may be longer, and says where it ends \[B\]; `None` when it is longer
    /// than those. `file_bytes` is the length of the whole file, from which the number of records follows where its writer left
    /// it open.
    ///
    /// # Errors
    /// When it is none, or of a kind that is not supported.
    pub fn parse(bytes: &[u8], file_bytes: u64, name: &str) -> Result<Option<(NetcdfHeader, u64)>, Error> {
        let context = Context::new("read the NetCDF header of", name);
        match header(bytes, context) {
            Ok((mut header, open, length)) => {
                header.check(length as u64, context)?;
                if open {
                    header.count_records(file_bytes);
                }
                Ok(Some((header, length as u64)))
            }
            Err(Stop::More) if (bytes.len() as u64) < file_bytes => Ok(None),
            Err(Stop::More) => {
                let error = context.corrupt("a whole header", format!("a file of {file_bytes} B that ends in it"));
                Err(error.with_hint("restore the file, which was cut short"))
            }
            Err(Stop::Wrong(error)) => Err(error),
        }
    }

    /// Refuses what cannot be stored anywhere.
    fn check(&self, header_bytes: u64, context: Context) -> Result<(), Error> {
        let (mut names, record) = (HashSet::new(), self.record_bytes());
        for (number, variable) in self.variables.iter().enumerate() {
            let fail = |expected: &str| context.corrupt(expected, format!("variable '{}'", excerpt(&variable.name)));
            if !names.insert(&variable.name) {
                return Err(fail("variables of different names"));
            }
            let later = variable.dimensions.iter().skip(1);
            if later.into_iter().any(|&dimension| self.dimensions[dimension].length.is_none()) {
                return Err(fail("the unlimited dimension as the first of a variable"));
            }
            let shape = self.shape(number);
            if array_bytes(&shape, variable.kind.bytes()).is_none() || self.end_in(number, record).is_none() {
                return Err(fail("variables that end before 2^62 B"));
            }
        }
        self.check_apart(header_bytes, context)
    }

    /// Refuses variables that lie in each other. Slabs of records lie one behind another from the first on.
    fn check_apart(&self, header_bytes: u64, context: Context) -> Result<(), Error> {
        let begin = |number: usize| self.variables[number].begin;
        let mut order: Vec<usize> = (0..self.variables.len()).collect();
        order.sort_by_key(|&number| begin(number));
        let (mut end, mut before) = (header_bytes, None);
        let (first, record) = (self.record_variables().map(begin).min(), self.record_bytes().unwrap_or(0));
        for number in order {
            let slab = begin(number).saturating_add(self.slab_bytes(number).unwrap_or(u64::MAX));
            let behind = first.is_some_and(|first| first < begin(number));
            let of_records = self.is_record(number);
            let beyond = first.is_some_and(|first| of_records && slab - first > record);
            if begin(number) < end || (behind && !of_records) || beyond {
                let name = |number: usize| excerpt(&self.variables[number].name);
                let other = before.map_or("the header".into(), |before| format!("'{}'", name(before)));
                let error = context.corrupt("variables that lie apart", format!("'{}' in {other}", name(number)));
                return Err(error.with_hint("SciPy makes such files of variables without dimensions beside records"));
            }
            (end, before) = (slab, Some(number));
        }
        Ok(())
    }

    /// As many records as there is room for; the last may lack what pads it.
    fn count_records(&mut self, file_bytes: u64) {
        let record = self.record_bytes().unwrap_or(0);
        let room = |number: usize| {
            let slab_end = self.variables[number].begin.checked_add(self.slab_bytes(number)?)?;
            Some(file_bytes.checked_sub(slab_end)?.checked_div(record)? + 1)
        };
        let each = self.record_variables().map(|number| room(number).unwrap_or(0));
        self.records = each.min().unwrap_or(0).min(self.version.length_max());
    }
}

/// The header, whether the number of records is open, and where it ends \[B\].
fn header(bytes: &[u8], context: Context) -> Result<(NetcdfHeader, bool, usize), Stop> {
    let version = version(bytes, context)?;
    let mut r = HeaderReader { version, rest: &bytes[4..], context };
    let records = r.number()?;
    let open = records == if version.is_wide() { u64::MAX } else { u64::from(u32::MAX) };
    let records = if open { 0 } else { r.length(records)? };
    let dimensions = r.list(List::Dimensions, HeaderReader::dimension)?;
    if dimensions.iter().filter(|dimension| dimension.length.is_none()).count() > 1 {
        return Err(context.corrupt("one unlimited dimension at most", "several").into());
    }
    let attributes = r.list(List::Attributes, HeaderReader::attribute)?;
    let count = dimensions.len();
    let variables = r.list(List::Variables, |r| r.variable(count))?;
    let length = bytes.len() - r.rest.len();
    let arranged = variables.len();
    let header = NetcdfHeader::new(version, attributes);
    Ok((NetcdfHeader { records, dimensions, variables, arranged, ..header }, open, length))
}

fn version(bytes: &[u8], context: Context) -> Result<Version, Stop> {
    if bytes.starts_with(b"\x89HDF\r\n\x1a\n") {
        let error = context.unsupported("a NetCDF classic file", "a netCDF-4 file, which is HDF5");
        return Err(error.with_hint("convert it with 'nccopy -k cdf5'").into());
    }
    let magic = bytes.get(..4).ok_or(More)?;
    let known = Version::ALL.into_iter().find(|version| magic[..3] == *b"CDF" && magic[3] == version.code());
    let found = || excerpt(&String::from_utf8_lossy(magic));
    known.ok_or_else(|| {
        context.corrupt("a NetCDF classic file (CDF-1, CDF-2 or CDF-5)", format!("{:?}", found())).into()
    })
}

struct HeaderReader<'a> {
    version: Version,
    rest: &'a [u8],
    context: Context<'a>,
}

impl<'a> HeaderReader<'a> {
    fn take(&mut self, bytes: u64) -> Result<&'a [u8], More> {
        let (taken, rest) = usize::try_from(bytes).ok().and_then(|b| self.rest.split_at_checked(b)).ok_or(More)?;
        self.rest = rest;
        Ok(taken)
    }

    fn wide(&mut self) -> Result<u64, More> {
        Ok(u64::from_be_bytes(self.take(8)?.try_into().expect("8 B were taken")))
    }

    fn tag(&mut self) -> Result<u32, More> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into().expect("4 B were taken")))
    }

    fn number(&mut self) -> Result<u64, More> {
        if self.version.is_wide() { self.wide() } else { Ok(u64::from(self.tag()?)) }
    }

    /// A number that is a length, and so has no sign; though netCDF-C makes files with lengths of up to 2^32 - 4.
    fn length(&self, number: u64) -> Result<u64, Error> {
        let fits = number <= self.version.length_max() || !self.version.is_wide() && number <= u64::from(u32::MAX - 3);
        if fits {
            Ok(number)
        } else {
            Err(self.context.corrupt("a length that is not negative", format!("{number:#x}")))
        }
    }

    fn count(&mut self) -> Result<u64, Stop> {
        let number = self.number()?;
        Ok(self.length(number)?)
    }

    fn padded(&mut self, bytes: u64) -> Result<&'a [u8], Stop> {
        let all = super::padded(bytes).ok_or(More)?;
        Ok(&self.take(all)?[..bytes as usize])
    }

    fn name(&mut self) -> Result<String, Stop> {
        let bytes = self.count()?;
        let bytes = self.padded(bytes)?;
        let unfit = |_| self.context.corrupt("a name in UTF-8", format!("{bytes:x?}"));
        // Old writers counted the zeros that end a text in C.
        Ok(std::str::from_utf8(bytes).map(|name| name.trim_end_matches('\0').to_owned()).map_err(unfit)?)
    }

    /// A list with this tag, or none. Nothing is allocated for what is not there: each takes some bytes.
    fn list<T>(&mut self, list: List, mut each: impl FnMut(&mut Self) -> Result<T, Stop>) -> Result<Vec<T>, Stop> {
        let (tag, found) = (list as u32, self.tag()?);
        let count = self.count()?;
        if found != tag && (found, count) != (0, 0) {
            let error = self.context.corrupt(format!("a list with tag {tag}, or none"), format!("tag {found}"));
            return Err(error.into());
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(each(self)?);
        }
        Ok(items)
    }

    fn kind(&mut self) -> Result<Type, Stop> {
        let code = self.tag()?;
        let known = Type::of_code(code).filter(|kind| kind.since() <= self.version);
        Ok(known.ok_or_else(|| self.context.corrupt("a type of this version of NetCDF", format!("number {code}")))?)
    }

    fn dimension(&mut self) -> Result<Dimension, Stop> {
        let name = self.name()?;
        let length = self.count()?;
        Ok(Dimension { name, length: Some(length).filter(|&length| length > 0) })
    }

    fn attribute(&mut self) -> Result<Attribute, Stop> {
        let (name, kind, count) = (self.name()?, self.kind()?, self.count()?);
        let bytes = count.checked_mul(kind.bytes()).ok_or(More)?;
        Ok(Attribute::of_bytes(name, kind, self.padded(bytes)?.to_vec()))
    }

    fn variable(&mut self, dimensions: usize) -> Result<Variable, Stop> {
        let name = self.name()?;
        let ndim = self.count()?;
        if ndim > NDIM_MAX as u64 {
            let found = format!("{ndim} of '{}'", excerpt(&name));
            return Err(self.context.unsupported(format!("at most {NDIM_MAX} dimensions"), found).into());
        }
        let mut of = Vec::new();
        for _ in 0..ndim {
            let number = self.count()?;
            let known = usize::try_from(number).ok().filter(|&number| number < dimensions);
            let unknown =
                || self.context.corrupt(format!("one of {dimensions} dimensions"), format!("number {number}"));
            of.push(known.ok_or_else(unknown)?);
        }
        let attributes = self.list(List::Attributes, HeaderReader::attribute)?;
        let kind = self.kind()?;
        // What is said of its size follows from its dimensions, and is wrong for large ones.
        self.number()?;
        let begin = if self.version == Version::Classic { u64::from(self.tag()?) } else { self.wide()? };
        if begin > self.version.begin_max() {
            let found = format!("{begin:#x} of '{}'", excerpt(&name));
            return Err(self.context.corrupt("a beginning that is not negative", found).into());
        }
        Ok(Variable { name, dimensions: of, attributes, kind, begin })
    }
}
