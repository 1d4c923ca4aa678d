//! Members of groups: old ones by a tree of names, new ones by link messages in the header or in a heap
//! (sections III.A.1, III.C, IV.A.2.c and g).

use super::dense::DensePlaces;
use super::fetch::Fetcher;
use super::fields::{FieldReader, text};
use super::header::{MessageKind, ObjectHeader, ObjectKind};
use super::heap_fractal::FractalHeap;
use super::heap_local::LocalHeap;
use super::superblock::Hdf5File;
use super::tree_v1::{TreeV1, VisitV1};
use super::tree_v2::{TreeV2, VisitV2, all_records};
use crate::error::{Context, Error};
use crate::hdf5::content::{Link, LinkTarget, MetadataSource};
use crate::hdf5::lookup3::lookup3;

impl Hdf5File {
    /// The members of the group whose header is at `address`: in the order in which they were made where the file has it,
    /// as netCDF-4 files do, or else by name.
    ///
    /// # Errors
    /// When there is no group, or it is damaged.
    pub fn group_at(&self, source: &dyn MetadataSource, address: u64) -> Result<Vec<Link>, Error> {
        let fetcher = Fetcher::new(source, self.widths, Context::new("list an HDF5 group of", &self.name));
        let header = ObjectHeader::read(&fetcher, address)?;
        if header.kind() != Some(ObjectKind::Group) {
            return Err(fetcher.context.corrupt(format!("a group at byte {address}"), "another object"));
        }
        if let Some(message) = header.find(MessageKind::SymbolTable) {
            return old_links(&fetcher, &message.body);
        }
        let mut links = Vec::new();
        for message in header.messages.iter().filter(|message| message.is(MessageKind::Link)) {
            links.push(link(&mut fetcher.fields(&message.body, "link message"))?);
        }
        for object in dense_links(&fetcher, &header)? {
            links.push(link(&mut fetcher.fields(&object, "link message"))?);
        }
        if links.iter().all(|(order, _)| order.is_some()) {
            links.sort_by_key(|(order, _)| *order);
        } else {
            links.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        }
        Ok(links.into_iter().map(|(_, link)| link).collect())
    }

    /// What a group has under a name, where it has that: of links in a heap, found by a tree.
    ///
    /// # Errors
    /// When there is no group, or it is damaged.
    pub(in crate::hdf5) fn member_at(
        &self,
        source: &dyn MetadataSource,
        address: u64,
        name: &str,
    ) -> Result<Option<LinkTarget>, Error> {
        let fetcher = Fetcher::new(source, self.widths, Context::new("look into an HDF5 group of", &self.name));
        let header = ObjectHeader::read(&fetcher, address)?;
        let links = match dense_places(&fetcher, &header)? {
            Some(places) if header.find(MessageKind::SymbolTable).is_none() => {
                dense_link(&fetcher, places, name)?.into_iter().collect()
            }
            _ => self.group_at(source, address)?,
        };
        Ok(links.into_iter().find(|link| link.name == name).map(|link| link.member))
    }

    /// What the object is whose header is at `address`.
    ///
    /// # Errors
    /// When it is damaged or none of the three.
    pub fn kind_at(&self, source: &dyn MetadataSource, address: u64) -> Result<ObjectKind, Error> {
        let fetcher = Fetcher::new(source, self.widths, Context::new("read an object of HDF5 file", &self.name));
        let kind = ObjectHeader::read(&fetcher, address)?.kind();
        let none = || fetcher.context.corrupt(format!("an object at byte {address}"), "no known messages");
        kind.ok_or_else(none)
    }
}

/// A link and, where it is counted, when it was made.
pub(super) type Ordered = (Option<u64>, Link);

/// Link message.
pub(super) fn link(fields: &mut FieldReader) -> Result<Ordered, Error> {
    fields.version(1..=1)?;
    let flags = fields.byte()?;
    let kind = if flags & 8 != 0 { fields.byte()? } else { 0 };
    let order = if flags & 4 != 0 { Some(fields.number(8)?) } else { None };
    if flags & 16 != 0 {
        fields.skip(1)?;
    }
    let name_bytes = fields.number(1 << (flags & 3))?;
    let name = text(fields.take(name_bytes)?);
    let member = match kind {
        0 => LinkTarget::Object(fields.place()?),
        1 => {
            let bytes = fields.two()?;
            LinkTarget::Soft(text(fields.take(bytes.into())?))
        }
        64 => {
            let bytes = fields.two()?;
            let mut inside = FieldReader { rest: fields.take(bytes.into())?, ..*fields };
            inside.skip(1)?;
            LinkTarget::External { file: text(inside.until_zero()?), path: text(inside.rest) }
        }
        other => LinkTarget::Unknown(other),
    };
    Ok((order, Link { name, member }))
}

/// Where the links of a group lie that are in a heap.
pub(super) fn dense_places(fetcher: &Fetcher, header: &ObjectHeader) -> Result<Option<DensePlaces>, Error> {
    let Some(info) = header.find(MessageKind::LinkInfo) else { return Ok(None) };
    let mut fields = fetcher.fields(&info.body, "link info message");
    fields.version(0..=0)?;
    let flags = fields.byte()?;
    fields.skip(if flags & 1 != 0 { 8 } else { 0 })?;
    let (heap, names) = (fields.address()?, fields.address()?);
    let orders = if flags & 2 != 0 { fields.address()? } else { None };
    Ok(heap.zip(names).map(|(heap, names)| DensePlaces { heap, names, orders }))
}

/// The link of this name that lies in a heap, found by the hash of its name.
pub(super) fn dense_link(
    fetcher: &Fetcher,
    DensePlaces { heap, names, .. }: DensePlaces,
    name: &str,
) -> Result<Option<Link>, Error> {
    struct Named<'a> {
        fetcher: &'a Fetcher<'a>,
        heap: FractalHeap<'a>,
        name: &'a str,
        hash: u32,
        found: Option<Link>,
    }
    fn hash_of(record: &[u8]) -> u32 {
        record.first_chunk().map_or(0, |hash| u32::from_le_bytes(*hash))
    }
    impl VisitV2 for Named<'_> {
        fn wants(&mut self, before: Option<&[u8]>, behind: Option<&[u8]>) -> Result<bool, Error> {
            let hash = self.hash;
            Ok(before.is_none_or(|before| hash_of(before) <= hash)
                && behind.is_none_or(|behind| hash <= hash_of(behind)))
        }
        fn record(&mut self, record: &[u8]) -> Result<(), Error> {
            if hash_of(record) != self.hash || self.found.is_some() {
                return Ok(());
            }
            let id = record.get(4..).unwrap_or_default();
            let object = self.heap.object(id)?;
            let (_, link) = link(&mut self.fetcher.fields(&object, "link message"))?;
            self.found = Some(link).filter(|link| link.name == self.name);
            Ok(())
        }
    }
    let heap = FractalHeap::read(fetcher, heap)?;
    let tree = TreeV2::read(fetcher, names)?;
    if tree.kind != 5 || tree.record_bytes != 4 + heap.id_bytes() {
        return Err(fetcher.context.corrupt("a tree of names", format!("one of type {}", tree.kind)));
    }
    let mut named = Named { fetcher, heap, name, hash: lookup3(name.as_bytes()), found: None };
    tree.visit(&mut named)?;
    Ok(named.found)
}

/// Messages of links that lie in a heap, to which records of a tree lead.
pub(super) fn dense_links(fetcher: &Fetcher, header: &ObjectHeader) -> Result<Vec<Vec<u8>>, Error> {
    let Some(DensePlaces { heap, names, .. }) = dense_places(fetcher, header)? else { return Ok(Vec::new()) };
    let heap = FractalHeap::read(fetcher, heap)?;
    let (_, records) = all_records(fetcher, names, &[5])?;
    let mut found = Vec::with_capacity(records.len());
    for record in &records {
        let mut fields = fetcher.fields(record, "record of a link");
        // A hash of the name.
        fields.skip(4)?;
        found.push(heap.object(fields.take(heap.id_bytes())?)?.to_vec());
    }
    Ok(found)
}

/// Links of an old group: a tree whose leaves lead to tables of symbols, with names in a heap.
pub(super) fn old_links(fetcher: &Fetcher, table: &[u8]) -> Result<Vec<Link>, Error> {
    let mut fields = fetcher.fields(table, "symbol table message");
    let (tree, heap) = (fields.place()?, fields.place()?);
    let mut all = OldLinks { fetcher, heap: LocalHeap::read(fetcher, heap)?, links: Vec::new() };
    TreeV1 { fetcher, kind: 0, key_bytes: fetcher.widths.length.into() }.visit(tree, &mut all)?;
    Ok(all.links)
}

struct OldLinks<'a> {
    fetcher: &'a Fetcher<'a>,
    heap: LocalHeap,
    links: Vec<Link>,
}

impl VisitV1 for OldLinks<'_> {
    fn wants(&mut self, _: FieldReader, _: FieldReader) -> Result<bool, Error> {
        Ok(true)
    }

    fn entry(&mut self, _: FieldReader, child: u64) -> Result<(), Error> {
        let fetcher = self.fetcher;
        fetcher.enter(child)?;
        let entry_bytes = 24 + 2 * u64::from(fetcher.widths.offset);
        // Tables have room for eight symbols unless the file was set up otherwise.
        let guess = fetcher.bytes_at_most(child, 8 + 8 * entry_bytes)?;
        fetcher.check_signature(child, &guess, b"SNOD")?;
        let mut fields = fetcher.fields(&guess, "symbol table");
        fields.skip(4)?;
        fields.version(1..=1)?;
        fields.skip(1)?;
        let count = fields.two()?;
        let block = fetcher.extended(child, guess, 8 + u64::from(count) * entry_bytes)?;
        let mut fields = fetcher.fields(&block[8..], "symbol table");
        for _ in 0..count {
            let link = self.symbol(&mut fields)?;
            self.links.push(link);
        }
        Ok(())
    }
}

impl OldLinks<'_> {
    fn symbol(&self, fields: &mut FieldReader) -> Result<Link, Error> {
        let name_at = fields.number(fields.widths.offset)?;
        let object = fields.address()?;
        let kept = fields.four()?;
        fields.skip(4)?;
        let target = fields.four()?;
        fields.skip(12)?;
        let name = self.heap.text(self.fetcher, name_at)?;
        let member = match (kept, object) {
            (2, _) => LinkTarget::Soft(self.heap.text(self.fetcher, target.into())?),
            (_, Some(at)) => LinkTarget::Object(at),
            (_, None) => return Err(fields.wrong("the address of an object", format!("none of `{name}`"))),
        };
        Ok(Link { name, member })
    }
}
