//! The bytes of a header.

use super::attribute::Attribute;
use super::counted::CountedHeader;
use super::types::Version;
use super::{NetcdfHeader, padded};

/// What a list is of; its number stands before it.
#[derive(Clone, Copy)]
pub(super) enum List {
    Dimensions = 0x0A,
    Variables = 0x0B,
    Attributes = 0x0C,
}

impl NetcdfHeader {
    /// How long [`NetcdfHeader::to_bytes`] is \[B\]. Looks only at variables that are new since it was asked last.
    pub(super) fn header_bytes(&mut self) -> u64 {
        if self.counted.version != Some(self.version) {
            self.counted = CountedHeader { version: Some(self.version), ..CountedHeader::default() };
        }
        let mut out = self.building();
        for number in self.counted.variables..self.variables.len() {
            out.bytes.clear();
            self.build_variable(&mut out, number);
            self.counted.bytes += out.bytes.len() as u64;
        }
        self.counted.variables = self.variables.len();
        out.bytes.clear();
        self.build_front(&mut out);
        out.list_head(List::Variables, self.variables.len());
        out.bytes.len() as u64 + self.counted.bytes
    }

    fn building(&self) -> Building {
        Building { version: self.version, bytes: Vec::new() }
    }

    /// The header as files begin with it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.building();
        self.build_front(&mut out);
        out.list_head(List::Variables, self.variables.len());
        (0..self.variables.len()).for_each(|number| self.build_variable(&mut out, number));
        out.bytes
    }

    /// What stands before the variables.
    fn build_front(&self, out: &mut Building) {
        out.bytes.extend_from_slice(b"CDF");
        out.bytes.push(self.version.code());
        out.number(self.records);
        out.list(List::Dimensions, &self.dimensions, |out, dimension| {
            out.name(&dimension.name);
            out.number(dimension.length.unwrap_or(0));
        });
        out.attributes(&self.attributes);
    }

    fn build_variable(&self, out: &mut Building, number: usize) {
        let variable = &self.variables[number];
        out.name(&variable.name);
        out.number(variable.dimensions.len() as u64);
        variable.dimensions.iter().for_each(|&dimension| out.number(dimension as u64));
        out.attributes(&variable.attributes);
        out.tag(variable.kind.code());
        out.size(self.slab_bytes(number).and_then(padded).unwrap_or(u64::MAX));
        out.begin(variable.begin);
    }
}

struct Building {
    version: Version,
    bytes: Vec<u8>,
}

impl Building {
    fn tag(&mut self, tag: u32) {
        self.bytes.extend_from_slice(&tag.to_be_bytes());
    }

    /// A length or a number of things, which fits the version, as whoever adds something has seen to.
    fn number(&mut self, number: u64) {
        match self.version.is_wide() {
            true => self.bytes.extend_from_slice(&number.to_be_bytes()),
            false => self.tag(number as u32),
        }
    }

    /// Bytes of a slab, which readers do not rely on: what is too large is all ones \[B\].
    fn size(&mut self, bytes: u64) {
        self.number(if self.version.is_wide() { bytes } else { bytes.min(u64::from(u32::MAX)) });
    }

    fn begin(&mut self, begin: u64) {
        match self.version {
            Version::Classic => self.tag(begin as u32),
            Version::Offset64 | Version::Data64 => self.bytes.extend_from_slice(&begin.to_be_bytes()),
        }
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.number(name.len() as u64);
        self.padded(name.as_bytes());
    }

    /// A tag and a count; of nothing, two zeros.
    fn list_head(&mut self, list: List, count: usize) {
        self.tag(if count == 0 { 0 } else { list as u32 });
        self.number(count as u64);
    }

    fn list<T>(&mut self, list: List, items: &[T], each: impl Fn(&mut Building, &T)) {
        self.list_head(list, items.len());
        items.iter().for_each(|item| each(self, item));
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        self.list(List::Attributes, attributes, |out, attribute| {
            out.name(&attribute.name);
            out.tag(attribute.kind.code());
            out.number(attribute.count());
            out.padded(attribute.bytes());
        });
    }
}
