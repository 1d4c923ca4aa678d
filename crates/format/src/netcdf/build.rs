//! The bytes of a header.

use super::attribute::Attribute;
use super::types::Version;
use super::{NetcdfHeader, Variable, padded};

/// What a list is of; its number stands before it.
#[derive(Clone, Copy)]
pub(super) enum List {
    Dimensions = 0x0A,
    Variables = 0x0B,
    Attributes = 0x0C,
}

impl NetcdfHeader {
    /// The header as files begin with it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Building { version: self.version, bytes: Vec::new() };
        out.bytes.extend_from_slice(b"CDF");
        out.bytes.push(self.version.code());
        out.number(self.records);
        out.list(List::Dimensions, &self.dimensions, |out, dimension| {
            out.name(&dimension.name);
            out.number(dimension.length.unwrap_or(0));
        });
        out.attributes(&self.attributes);
        let numbered: Vec<(usize, &Variable)> = self.variables.iter().enumerate().collect();
        out.list(List::Variables, &numbered, |out, (number, variable)| {
            out.name(&variable.name);
            out.number(variable.dimensions.len() as u64);
            variable.dimensions.iter().for_each(|&dimension| out.number(dimension as u64));
            out.attributes(&variable.attributes);
            out.tag(variable.kind.code());
            out.size(self.slab_bytes(*number).and_then(padded).unwrap_or(u64::MAX));
            out.begin(variable.begin);
        });
        out.bytes
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

    /// A tag, a count and each; of nothing, two zeros.
    fn list<T>(&mut self, list: List, items: &[T], each: impl Fn(&mut Building, &T)) {
        self.tag(if items.is_empty() { 0 } else { list as u32 });
        self.number(items.len() as u64);
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
