//! Attributes: messages in the header of their object, or in a heap where there are many (sections IV.A.2.m and v).

use super::datatypes::datatype;
use super::fetch::Fetcher;
use super::fields::{FieldReader, text};
use super::header::{MessageKind, ObjectHeader};
use super::heap_fractal::FractalHeap;
use super::heap_kept::GlobalHeaps;
use super::messages::{committed, dataspace};
use super::superblock::Hdf5File;
use super::tree_v2::all_records;
use super::values::value;
use crate::error::{Context, Error};
use crate::hdf5::content::{Hdf5Attribute, MetadataSource};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

/// An attribute by its name, or why it cannot be read.
pub type NamedAttribute = (String, Result<Hdf5Attribute, Error>);

impl Hdf5File {
    /// The attributes of the object whose header is at `address`: in the order in which they were made where the file has
    /// it, or else by name. One that cannot be read does not hide the others.
    ///
    /// # Errors
    /// When the header, or where it keeps its attributes, is damaged.
    pub fn attributes_at(&self, source: &dyn MetadataSource, address: u64) -> Result<Vec<NamedAttribute>, Error> {
        self.attributes_sharing(source, address, &Rc::default())
    }

    /// The same of one of many objects, which share what is read of values of variable length.
    pub(in crate::hdf5) fn attributes_sharing(
        &self,
        source: &dyn MetadataSource,
        address: u64,
        heaps: &Rc<RefCell<GlobalHeaps>>,
    ) -> Result<Vec<NamedAttribute>, Error> {
        let context = Context::new("read HDF5 attributes of", &self.name);
        let fetcher = Fetcher::new(source, self.widths, context).sharing(heaps);
        let header = ObjectHeader::read(&fetcher, address)?;
        let mut found = Vec::new();
        for message in header.messages.iter().filter(|message| message.is(MessageKind::Attribute)) {
            let attribute = if message.is_shared() {
                let cause = fetcher.context.unsupported("attributes in headers", "one in a table of shared messages");
                (String::new(), Err(cause))
            } else {
                attribute(&fetcher, &message.body)
            };
            found.push((message.order.map(u32::from), attribute));
        }
        for DenseAttribute { order, shared, body } in dense_attributes(&fetcher, &header)? {
            let attribute = if shared {
                let cause = fetcher.context.unsupported("attributes of their own", "one in a table of shared messages");
                (String::new(), Err(cause))
            } else {
                attribute(&fetcher, &body)
            };
            found.push((order, attribute));
        }
        if found.iter().all(|(order, _)| order.is_some()) {
            found.sort_by_key(|(order, _)| *order);
        } else {
            found.sort_by(|(_, one), (_, other)| one.0.cmp(&other.0));
        }
        Ok(found.into_iter().map(|(_, attribute)| attribute).collect())
    }
}

/// An attribute that lies in a heap.
pub(super) struct DenseAttribute {
    pub(super) order: Option<u32>,
    /// Whether it is only said where it is.
    pub(super) shared: bool,
    pub(super) body: Vec<u8>,
}

/// Attributes in a heap, to which records of a tree lead.
pub(super) fn dense_attributes(fetcher: &Fetcher, header: &ObjectHeader) -> Result<Vec<DenseAttribute>, Error> {
    let Some(info) = header.find(MessageKind::AttributeInfo) else { return Ok(Vec::new()) };
    let mut fields = fetcher.fields(&info.body, "attribute info message");
    fields.version(0..=0)?;
    let flags = fields.byte()?;
    fields.skip(if flags & 1 != 0 { 2 } else { 0 })?;
    let (heap, names) = (fields.address()?, fields.address()?);
    let Some((heap, names)) = heap.zip(names) else { return Ok(Vec::new()) };
    let heap = FractalHeap::read(fetcher, heap)?;
    let (_, records) = all_records(fetcher, names, &[8])?;
    let mut found = Vec::with_capacity(records.len());
    for record in &records {
        let mut fields = fetcher.fields(record, "record of an attribute");
        let id = fields.take(heap.id_bytes())?;
        let (message_flags, order) = (fields.byte()?, fields.four()?);
        let shared = message_flags & 2 != 0;
        let body = if shared { Vec::new() } else { heap.object(id)?.to_vec() };
        found.push(DenseAttribute { order: (flags & 1 != 0).then_some(order), shared, body });
    }
    Ok(found)
}

/// The name of an attribute, by its message.
pub(super) fn attribute_name(fetcher: &Fetcher, message: &[u8]) -> Result<String, Error> {
    Ok(AttributeParts::of(&mut fetcher.fields(message, "attribute message"))?.name)
}

/// Attribute message, versions 1 to 3.
fn attribute(fetcher: &Fetcher, message: &[u8]) -> NamedAttribute {
    let mut fields = fetcher.fields(message, "attribute message");
    match AttributeParts::of(&mut fields) {
        Ok(parts) => (parts.name.clone(), parts.read(fetcher)),
        Err(cause) => (String::new(), Err(cause)),
    }
}

/// The parts of an attribute message.
struct AttributeParts<'a> {
    name: String,
    datatype: FieldReader<'a>,
    has_committed_type: bool,
    dataspace: FieldReader<'a>,
    elements: &'a [u8],
}

impl<'a> AttributeParts<'a> {
    fn of(fields: &mut FieldReader<'a>) -> Result<AttributeParts<'a>, Error> {
        let version = fields.version(1..=3)?;
        let flags = fields.byte()?;
        let sizes = [fields.two()?, fields.two()?, fields.two()?];
        if version == 3 {
            fields.skip(1)?;
        }
        // AttributeParts of version 1 are padded to multiples of 8 B.
        let [name, datatype, dataspace] = sizes.map(u64::from);
        let padded = |bytes: u64| if version == 1 { bytes.next_multiple_of(8) } else { bytes };
        let name = text(fields.take(padded(name))?);
        if version > 1 && flags & 2 != 0 {
            return Err(fields.context.unsupported("attributes with shapes", "one with a shared dataspace"));
        }
        Ok(AttributeParts {
            name,
            datatype: FieldReader { rest: fields.take(padded(datatype))?, what: "datatype message", ..*fields },
            has_committed_type: version > 1 && flags & 1 != 0,
            dataspace: FieldReader { rest: fields.take(padded(dataspace))?, what: "dataspace message", ..*fields },
            elements: fields.rest,
        })
    }

    fn read(mut self, fetcher: &Fetcher) -> Result<Hdf5Attribute, Error> {
        let described = if self.has_committed_type {
            Cow::Owned(committed(&mut self.datatype)?.read(fetcher)?)
        } else {
            Cow::Borrowed(self.datatype.rest)
        };
        let datatype = datatype(&mut fetcher.fields(&described, "datatype message"))?;
        let shape = dataspace(&mut self.dataspace)?.shape;
        let count = shape.as_ref().map_or(Some(0), |shape| crate::size::array_bytes(shape, 1));
        let count = count.ok_or_else(|| fetcher.context.corrupt("attributes below 2^63 elements", "a larger one"))?;
        let value = value(fetcher, &datatype, count, self.elements)?;
        Ok(Hdf5Attribute { name: self.name, datatype, shape, value })
    }
}
