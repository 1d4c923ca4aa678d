//! The metadata of a new file, as a tree of what it holds, made into bytes.
//!
//! The elements of datasets are written by others, where it was decided; what is made here lies behind them, and the superblock,
//! which makes the file valid, comes last. Headers, links and attributes are those of HDF5 1.8 (headers of version 2, a few links
//! and attributes in them, more links in heaps, in the order in which they were made, as netCDF-4 wants it), and chunks are found by B-trees of
//! version 1, which every library of HDF5 reads.

mod datatypes;
mod header;
mod heap;
mod links;
mod messages;
mod new;
mod scales;
mod tree;

use super::content::{Hdf5Attribute, NOWHERE};
use super::dense::{COMPACT_MAX, DenseLinks, LargeAttribute, MadeLinks, ORDER_AHEAD, large_attributes};
use super::lookup3::checked;
use super::policy::{NAME_BYTES_MAX, SECTOR_BYTES};
use super::reading::{MessageKind, SIGNATURE};
use crate::error::{Context, Error};
pub(super) use header::MESSAGE_BYTES_MAX;
use header::NewHeader;
pub(super) use heap::Heap;
pub(super) use links::{table, table_message};
pub(super) use messages::{GROUP_INFO_BODY, chunked_layout, link, link_message};
pub use new::{CHUNK_BYTES_MAX, ChunkPlace, NewDataset, NewGroup, NewMember, NewStorage};
pub(super) use scales::{KnownDimensions, NO_COORDINATE, NO_VARIABLE, USES_MAX, scale_name};
use std::collections::BTreeSet;
pub(super) use tree::{
    CHILDREN_MAX, TreeChild, chunks as tree_of_chunks, index as chunk_index, node, node_bytes, past,
};

/// What a file consists of besides the elements of its datasets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hdf5Metadata {
    /// What lies from the given address on, to the end of the file.
    pub bytes: Vec<u8>,
    /// What lies at address 0, and makes the file valid.
    pub superblock: Vec<u8>,
}

/// Bytes of a superblock, before which no dataset begins \[B\].
pub const SUPERBLOCK_BYTES: u64 = 48;

impl Hdf5Metadata {
    /// Whether the metadata of a file with this root can be made.
    ///
    /// # Errors
    /// As [`Hdf5Metadata::of`].
    pub fn check(root: &NewGroup) -> Result<(), Error> {
        check_names(root, "/")?;
        WritePass::default().group(&scales::with_scales(root)?, "/").map(drop)
    }

    /// The metadata of a file with this root, that lie from this address on.
    ///
    /// # Errors
    /// When names, shapes, attributes or chunks are not such that HDF5 has a place for them.
    pub fn of(root: &NewGroup, at: u64) -> Result<Hdf5Metadata, Error> {
        check_names(root, "/")?;
        let at = at.next_multiple_of(8).max(SUPERBLOCK_BYTES);
        let scaled = scales::with_scales(root)?;
        // Nothing in a header depends on addresses in its length, so the first pass finds all lengths with any.
        let mut first = WritePass::default();
        first.group(&scaled, "/")?;
        let mut places = Places { at, ..Places::default() };
        places.give(&first);
        let mut second = WritePass { places, ..WritePass::default() };
        let root_at = second.group(&scaled, "/")?;
        let bytes = second.bytes(at);
        let superblock = superblock(root_at, at + bytes.len() as u64);
        Ok(Hdf5Metadata { bytes, superblock })
    }
}

/// Objects for groups of a file that exists.
pub(super) struct NewObjects {
    /// All of them, from the given address on.
    pub(super) bytes: Vec<u8>,
    /// Names of those that are not in each other, and the addresses of their headers.
    pub(super) members: Vec<(String, u64)>,
    /// Paths of the datasets among them, and the addresses of their headers.
    pub(super) datasets: Vec<(String, u64)>,
    /// Which of them have which dimensions of the file: addresses of both, and which of theirs each is.
    pub(super) uses: Vec<(u64, Vec<(u64, u32)>)>,
}

impl NewObjects {
    /// What is in this group, which lies in the file at this path with a `/` at its end, and of whose dimensions these are known.
    ///
    /// # Errors
    /// As [`Hdf5Metadata::of`].
    pub(super) fn of(group: &NewGroup, path: &str, known: &mut KnownDimensions, at: u64) -> Result<NewObjects, Error> {
        check_names(group, path)?;
        let scaled = scales::with_scales_there(group, &format!("/{path}"), known)?;
        let mut first = WritePass::default();
        first.members(&scaled, path)?;
        let mut places = Places { at, ..Places::default() };
        places.give(&first);
        let mut second = WritePass { places, ..WritePass::default() };
        let members = second.members(&scaled, path)?;
        let members = members.into_iter().map(|(name, at)| (name.to_string(), at)).collect();
        let uses = known.are_made(&second.places.headers);
        Ok(NewObjects { bytes: second.bytes(at), members, datasets: second.datasets, uses })
    }
}

/// Messages of attributes, for an object of a file that exists, and the values of variable length that they lead to, which lie
/// from this address on.
pub(super) fn attributes(all: &[Hdf5Attribute], at: u64) -> Result<(Vec<Vec<u8>>, Vec<u8>), Error> {
    let mut pass = WritePass::default();
    pass.places.heap = at;
    let each = all.iter().map(|attribute| pass.attribute(&scales::NewAttribute::of(attribute)));
    let messages = each.collect::<Result<Vec<_>, Error>>()?;
    Ok((messages, pass.heap.bytes()))
}

/// What a header says of a dataset: kinds of messages, and their bodies.
type DatasetMessages = Vec<(MessageKind, Vec<u8>)>;

/// What a header says of a dataset, and the index of its chunks, if it has some, which lies from this address on.
pub(super) fn dataset_messages(
    dataset: &NewDataset,
    index_at: u64,
    context: &Context,
) -> Result<(DatasetMessages, Option<Vec<u8>>), Error> {
    messages::check(dataset, context)?;
    let index = match &dataset.storage {
        NewStorage::Contiguous(_) => None,
        NewStorage::Chunked { chunk, places } => {
            Some(tree::index(&dataset.shape, (chunk, dataset.datatype.bytes().into()), places, index_at))
        }
    };
    let at = index.as_ref().filter(|index| !index.is_empty()).map_or(NOWHERE, |_| index_at);
    let mut all = vec![
        (MessageKind::Dataspace, messages::dataspace(Some(&dataset.shape), &dataset.limits)),
        (MessageKind::Datatype, datatypes::encoded(&dataset.datatype, context)?),
        (MessageKind::Fill, messages::fill(dataset)),
        (MessageKind::Layout, messages::layout(dataset, at)),
    ];
    if !dataset.filters.is_empty() {
        all.push((MessageKind::Filters, messages::filters(&dataset.filters)));
    }
    Ok((all, index))
}

/// Section II.A of the specification, version 2.
fn superblock(root: u64, end: u64) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([2, 8, 8, 0]);
    for address in [0, NOWHERE, end, root] {
        bytes.extend(address.to_le_bytes());
    }
    checked(bytes)
}

fn check_names(group: &NewGroup, path: &str) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for member in &group.members {
        let name = member.name();
        let context = Context::new("make the HDF5 object", name);
        if name.is_empty() || name == "." || name.contains(['/', '\0']) {
            return Err(context.invalid("a name that is not empty or `.`, without `/` and zeros", name));
        }
        if name.len() > NAME_BYTES_MAX {
            let context = Context::new("make an HDF5 object in group", path);
            return Err(context.invalid(format!("a name of at most {NAME_BYTES_MAX} B"), format!("{} B", name.len())));
        }
        if !seen.insert(name) {
            return Err(context.invalid(format!("one object of this name in group `{path}`"), "two"));
        }
        if let NewMember::Group(group) = member {
            check_names(group, &format!("{path}{name}/"))?;
        }
    }
    Ok(())
}

/// Addresses of everything, in the order in which it is met.
#[derive(Default)]
struct Places {
    at: u64,
    headers: Vec<u64>,
    indexes: Vec<u64>,
    tables: Vec<u64>,
    heap: u64,
}

impl Places {
    /// Gives addresses to what a pass has made.
    fn give(&mut self, made: &WritePass) {
        let mut next = self.at;
        let mut take = |bytes: u64| {
            let at = next;
            next = (next + bytes).next_multiple_of(8);
            at
        };
        let to_sector = |at: u64| at.next_multiple_of(SECTOR_BYTES) - at;
        let headers = made.headers.iter().map(|header| {
            let bytes = header.len() as u64;
            // Its first block lies in one sector.
            let (at, first) = (take(0), header::first_block(bytes));
            let crosses = at / SECTOR_BYTES != (at + first - 1) / SECTOR_BYTES;
            take(if crosses { to_sector(at) } else { 0 });
            take(bytes)
        });
        self.headers = headers.collect();
        self.indexes = made.indexes.iter().map(|index| take(index.len() as u64)).collect();
        let tables = made.tables.iter().map(|table| {
            let at = take(0);
            take(to_sector(at));
            take(table.len() as u64)
        });
        self.tables = tables.collect();
        self.heap = take(0);
    }
}

/// A pass over the tree, which makes all bytes with the addresses that it was given.
#[derive(Default)]
struct WritePass {
    places: Places,
    headers: Vec<Vec<u8>>,
    /// Indexes of chunks.
    indexes: Vec<Vec<u8>>,
    /// Links of groups that have many, and large attributes, in heaps.
    tables: Vec<Vec<u8>>,
    heap: Heap,
    /// Paths of datasets, and the addresses of their headers.
    datasets: Vec<(String, u64)>,
}

impl WritePass {
    /// The address of the header with this number; any in the first pass.
    fn header_at(&self, number: usize) -> u64 {
        self.places.headers.get(number).copied().unwrap_or(0)
    }

    /// Makes a group and all that is in it; gives its address.
    fn group(&mut self, group: &scales::Scaled, path: &str) -> Result<u64, Error> {
        // A place in the list, which its members come behind.
        let number = self.headers.len();
        self.headers.push(Vec::new());
        let links = self.members(group, path)?;
        let mut header = NewHeader::default();
        self.links(&mut header, &links)?;
        self.attributes(&mut header, &group.attributes, path)?;
        let at = self.header_at(number);
        self.headers[number] = header.bytes(&Context::new("make the HDF5 group", path), at)?;
        Ok(self.header_at(number))
    }

    /// Makes all that is in a group; gives names and addresses.
    fn members<'a>(&mut self, group: &'a scales::Scaled, path: &str) -> Result<Vec<(&'a str, u64)>, Error> {
        let each = group.members.iter().map(|(name, member)| {
            let path = format!("{path}{name}");
            let at = match member {
                scales::ScaledMember::Group(group) => self.group(group, &format!("{path}/"))?,
                scales::ScaledMember::Dataset(dataset) => self.dataset(dataset, &path)?,
            };
            Ok((name.as_str(), at))
        });
        each.collect()
    }

    fn links(&mut self, header: &mut NewHeader, all: &[(&str, u64)]) -> Result<(), Error> {
        if all.len() <= COMPACT_MAX {
            links::compact(header, all);
            return Ok(());
        }
        let at = self.places.tables.get(self.tables.len()).copied().unwrap_or(0);
        let mut dense = DenseLinks::new(true);
        for (order, (name, at)) in all.iter().enumerate() {
            dense.add(name.as_bytes(), Some(order as u64), &messages::link(name, Some(order as u64), *at))?;
        }
        let MadeLinks { behind, places, .. } = dense.made(at)?;
        self.tables.push(behind);
        header.message(messages::LINK_INFO, &messages::link_info(all.len() as u64 + ORDER_AHEAD, Some(places)));
        header.message(messages::GROUP_INFO, &messages::GROUP_INFO_BODY);
        Ok(())
    }

    fn dataset(&mut self, scaled: &scales::ScaledDataset, path: &str) -> Result<u64, Error> {
        let dataset = &*scaled.dataset;
        let context = Context::new("make the HDF5 dataset", path);
        let number = self.headers.len();
        self.headers.push(Vec::new());
        let mut header = NewHeader::default();
        let index_at = self.places.indexes.get(self.indexes.len()).copied().unwrap_or(0);
        let (messages, index) = dataset_messages(dataset, index_at, &context)?;
        messages.iter().for_each(|(kind, body)| header.message(*kind as u8, body));
        self.indexes.extend(index);
        self.attributes(&mut header, &scaled.attributes, path)?;
        self.headers[number] = header.bytes(&context, self.header_at(number))?;
        self.datasets.push((path.to_string(), self.header_at(number)));
        Ok(self.header_at(number))
    }

    fn attributes(&mut self, header: &mut NewHeader, all: &[scales::NewAttribute], path: &str) -> Result<(), Error> {
        if all.is_empty() {
            return Ok(());
        }
        if all.len() > usize::from(u16::MAX) {
            let context = Context::new("make the HDF5 attributes of", path);
            return Err(context.invalid(format!("at most {} attributes", u16::MAX), all.len().to_string()));
        }
        let made = all.iter().map(|attribute| self.attribute(attribute)).collect::<Result<Vec<_>, Error>>()?;
        if made.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX) {
            header.message(messages::ATTRIBUTE_INFO, &messages::attribute_info(all.len(), None));
            for (order, message) in made.iter().enumerate() {
                header.ordered(messages::ATTRIBUTE, order as u16, message);
            }
            return Ok(());
        }
        let at = self.places.tables.get(self.tables.len()).copied().unwrap_or(0);
        let each = all.iter().zip(&made).zip(0..).map(|((attribute, message), order)| LargeAttribute {
            name: attribute.name.as_bytes(),
            order,
            message,
        });
        let (behind, places) = large_attributes(&each.collect::<Vec<_>>(), true, at)?;
        self.tables.push(behind);
        header.message(messages::ATTRIBUTE_INFO, &messages::attribute_info(all.len(), Some(places)));
        Ok(())
    }

    fn attribute(&mut self, attribute: &scales::NewAttribute) -> Result<Vec<u8>, Error> {
        let elements = attribute.elements(&mut self.heap, self.places.heap, &self.places.headers);
        messages::attribute(attribute, &elements, &Context::new("make the HDF5 attribute", &attribute.name))
    }

    /// All of it, from this address on, where everything lies as it was given.
    fn bytes(&self, at: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (header, place) in self.headers.iter().zip(&self.places.headers) {
            bytes.resize((place - at) as usize, 0);
            bytes.extend_from_slice(header);
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let places = self.places.indexes.iter().chain(&self.places.tables);
        for (part, place) in self.indexes.iter().chain(&self.tables).zip(places) {
            bytes.resize((place - at) as usize, 0);
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        debug_assert_eq!(at + bytes.len() as u64, self.places.heap);
        bytes.extend(self.heap.bytes());
        bytes
    }
}
