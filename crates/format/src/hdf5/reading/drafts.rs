//! Headers of objects as they shall be: read as lists of messages, changed, and made into bytes again.
//!
//! An object keeps its address, since links and references lead there. Its messages go to a new block behind the end of the
//! file, and its first block is overwritten by one that leads there and is empty otherwise: one write, of as many bytes as the
//! first block has, replaces them all.

use super::attributes::{attribute_name, dense_attributes};
use super::dense::DensePlaces;
use super::fetch::Fetcher;
use super::groups::{Ordered, dense_link, dense_links, dense_places, link as parsed, old_links};
use super::header::{HeaderMessage, MessageKind, ObjectHeader, ObjectKind};
use super::slots::ChangedBlock;
use super::superblock::Hdf5File;
use crate::error::{Context, Error};
use crate::hdf5::content::{Dataset, Link, LinkTarget, MetadataSource, NOWHERE};
use crate::hdf5::lookup3::checked;
use crate::hdf5::policy::{NOTHING_BYTES_MAX, SOFT_LINKS_DEEP_MAX};
use crate::hdf5::writing::{GROUP_INFO_BODY, MESSAGE_BYTES_MAX, NO_COORDINATE, link, link_message};

/// A header that is being changed.
#[derive(Debug)]
pub(in crate::hdf5) struct HeaderDraft {
    pub(in crate::hdf5) at: u64,
    header: ObjectHeader,
    /// Links of a group of the oldest format, which lie in a table.
    pub(in crate::hdf5) table: Option<Vec<Link>>,
    /// Where links lie in a heap, and those that it gets: names and messages, which have no order yet.
    pub(in crate::hdf5) dense: Option<DensePlaces>,
    pub(in crate::hdf5) added: Vec<(String, u64)>,
    /// Whether the header itself changes.
    changed: bool,
}

impl HeaderDraft {
    /// The header at this address, where all that belongs to the object is a message in it.
    pub(in crate::hdf5) fn read(file: &Hdf5File, source: &dyn MetadataSource, at: u64) -> Result<HeaderDraft, Error> {
        let fetcher = Fetcher::new(source, file.widths, Context::new("change an object of HDF5 file", file.name()));
        let mut header = ObjectHeader::read(&fetcher, at)?;
        header.messages.retain(|message| !message.is(MessageKind::Nothing));
        let attributes = dense_attributes(&fetcher, &header)?;
        let table =
            header.find(MessageKind::SymbolTable).map(|message| old_links(&fetcher, &message.body)).transpose()?;
        let dense = if table.is_some() { None } else { dense_places(&fetcher, &header)? };
        let mut draft = HeaderDraft { at, header, table, dense, added: Vec::new(), changed: false };
        for attribute in attributes {
            if attribute.shared {
                return Err(fetcher
                    .context
                    .unsupported("attributes of their own", "one in a table of shared messages"));
            }
            draft.push(MessageKind::Attribute, attribute.order.unwrap_or(0) as u16, attribute.body);
        }
        draft.forget_heap(MessageKind::AttributeInfo, 2);
        draft.changed = false;
        Ok(draft)
    }

    /// Says that what lay in a heap is in the header now; a number of so many bytes may come before its address.
    fn forget_heap(&mut self, info: MessageKind, before: usize) {
        for body in self.body(info).into_iter() {
            let begin = 2 + if body.get(1).is_some_and(|flags| flags & 1 != 0) { before } else { 0 };
            body.iter_mut().skip(begin).for_each(|byte| *byte = 0xff);
        }
    }

    /// Takes all links into the header, wherever they lie.
    pub(in crate::hdf5) fn collapse(&mut self, file: &Hdf5File, source: &dyn MetadataSource) -> Result<(), Error> {
        let fetcher = Fetcher::new(source, file.widths, Context::new("change an object of HDF5 file", file.name()));
        if let Some(table) = self.table.take() {
            self.changed = true;
            self.header.messages.retain(|message| !message.is(MessageKind::SymbolTable));
            self.push(MessageKind::LinkInfo, 0, [vec![0, 0], vec![0xff; 16]].concat());
            self.push(MessageKind::GroupInfo, 0, GROUP_INFO_BODY.to_vec());
            for Link { name, member } in table {
                self.push(MessageKind::Link, 0, link_message(&name, &member));
            }
        }
        if self.dense.take().is_none() {
            return Ok(());
        }
        for body in dense_links(&fetcher, &self.header)? {
            self.push(MessageKind::Link, 0, body);
        }
        self.forget_heap(MessageKind::LinkInfo, 8);
        for (name, at) in std::mem::take(&mut self.added) {
            self.link(&name, at);
        }
        Ok(())
    }

    /// Lets a group have an object under this name.
    pub(in crate::hdf5) fn link(&mut self, name: &str, at: u64) {
        if let Some(table) = &mut self.table {
            self.changed = true;
            return table.push(Link { name: name.into(), member: LinkTarget::Object(at) });
        }
        if self.dense.is_some() {
            return self.added.push((name.into(), at));
        }
        let order = self.count(MessageKind::LinkInfo);
        self.push(MessageKind::Link, 0, link(name, order, at));
    }

    /// What a group has under a name, or will have.
    pub(in crate::hdf5) fn member(
        &self,
        file: &Hdf5File,
        source: &dyn MetadataSource,
        name: &str,
    ) -> Result<Option<LinkTarget>, Error> {
        if let Some(places) = self.dense {
            let added = self.added.iter().find(|(added, _)| added == name);
            let fetcher = Fetcher::new(source, file.widths, Context::new("look into a group of", file.name()));
            return match added {
                Some((_, at)) => Ok(Some(LinkTarget::Object(*at))),
                None => Ok(dense_link(&fetcher, places, name)?.map(|link| link.member)),
            };
        }
        Ok(self.links(file, source)?.into_iter().find(|link| link.name == name).map(|link| link.member))
    }

    /// Bodies of the messages of links that lie in the header.
    pub(in crate::hdf5) fn link_messages(&self) -> impl Iterator<Item = &[u8]> {
        self.header.messages.iter().filter(|message| message.is(MessageKind::Link)).map(|message| &message.body[..])
    }

    /// Lets the header say that all links lie there; if it counts them, that the next one has at most this number.
    pub(in crate::hdf5) fn lead_to(&mut self, places: DensePlaces, next: Option<u64>) {
        self.header.messages.retain(|message| !message.is(MessageKind::Link));
        let Some(body) = self.body(MessageKind::LinkInfo).filter(|body| body.len() >= 2) else { return };
        let flags = body[1];
        body.truncate(2 + if flags & 1 != 0 { 8 } else { 0 });
        if let Some(next) = next.filter(|_| flags & 1 != 0 && body.len() == 10) {
            body[2..10].copy_from_slice(&next.to_le_bytes());
        }
        body.extend(places.heap.to_le_bytes());
        body.extend(places.names.to_le_bytes());
        if flags & 2 != 0 {
            body.extend(places.orders.unwrap_or(NOWHERE).to_le_bytes());
        }
    }

    /// What the header says of its links: whether they are counted, and whether that can be looked up; and the number that the next
    /// one has at most.
    pub(in crate::hdf5) fn link_order(&self) -> (bool, bool, u64) {
        let body = self.header.find(MessageKind::LinkInfo).map_or(&[][..], |info| &info.body);
        let flags = body.get(1).copied().unwrap_or(0);
        let next = body.get(2..10).and_then(|bytes| bytes.first_chunk()).map_or(0, |next| u64::from_le_bytes(*next));
        (flags & 1 != 0, flags & 3 == 3, if flags & 1 != 0 { next } else { 0 })
    }

    /// Whether the header is made anew.
    pub(in crate::hdf5) fn is_changed(&self) -> bool {
        self.changed
    }

    /// What object it is of.
    pub(in crate::hdf5) fn kind(&self) -> Option<ObjectKind> {
        self.header.kind()
    }

    /// Whether it is of the older form, whose messages take multiples of 8 bytes.
    fn is_old(&self) -> bool {
        self.header.version == 1
    }

    /// The body of the first message of a kind.
    pub(in crate::hdf5) fn body(&mut self, kind: MessageKind) -> Option<&mut Vec<u8>> {
        self.changed = true;
        self.header.messages.iter_mut().find(|message| message.is(kind)).map(|message| &mut message.body)
    }

    /// Lets a dataset be another one: these messages say what it is, in place of those that did.
    pub(in crate::hdf5) fn describe(&mut self, messages: Vec<(MessageKind, Vec<u8>)>) {
        let said =
            [MessageKind::FillOld, MessageKind::Filters].into_iter().chain(messages.iter().map(|(kind, _)| *kind));
        let said: Vec<MessageKind> = said.collect();
        self.header.messages.retain(|message| !said.iter().any(|kind| message.is(*kind)));
        messages.into_iter().for_each(|(kind, body)| self.push(kind, 0, body));
    }

    /// Adds a message; `order` counts those of its kind.
    pub(in crate::hdf5) fn push(&mut self, kind: MessageKind, order: u16, body: Vec<u8>) {
        self.changed = true;
        let order = self.header.counted.then_some(order);
        self.header.messages.push(HeaderMessage { kind: kind as u16, flags: 0, order, body, at: 0, block: (0, 0) });
    }

    /// Lets attributes be counted where the header says that they are: that is not said again before there is one.
    pub(in crate::hdf5) fn count_attributes(&mut self) {
        if self.is_old() || self.body(MessageKind::AttributeInfo).is_some() {
            return;
        }
        // Whether their order is counted, and whether there is an index of it.
        let flags = self.header.first.0[5] >> 2 & 3;
        let counted = if flags & 1 != 0 { 2 } else { 0 };
        let addresses = if flags & 2 != 0 { 24 } else { 16 };
        self.push(MessageKind::AttributeInfo, 0, [vec![0, flags], vec![0; counted], vec![0xff; addresses]].concat());
    }

    /// Counts what is made of a kind, where the object does: gives the number for the next one.
    pub(in crate::hdf5) fn count(&mut self, info: MessageKind) -> Option<u64> {
        let width = if info == MessageKind::LinkInfo { 8 } else { 2 };
        let body = self.body(info).filter(|body| body.len() >= 2 + width && body[1] & 1 != 0)?;
        let mut number = [0; 8];
        number[..width].copy_from_slice(&body[2..2 + width]);
        let number = u64::from_le_bytes(number);
        body[2..2 + width].copy_from_slice(&number.saturating_add(1).to_le_bytes()[..width]);
        Some(number)
    }

    /// Links of a group, in any order.
    pub(in crate::hdf5) fn links(&self, file: &Hdf5File, source: &dyn MetadataSource) -> Result<Vec<Link>, Error> {
        if let Some(table) = &self.table {
            return Ok(table.clone());
        }
        let fetcher = Fetcher::new(source, file.widths, Context::new("list an HDF5 group of", file.name()));
        let links = self.header.messages.iter().filter(|message| message.is(MessageKind::Link));
        links.map(|message| Ok(parsed(&mut fetcher.fields(&message.body, "link message"))?.1)).collect()
    }

    /// Takes the link of this name away.
    pub(in crate::hdf5) fn unlink(
        &mut self,
        file: &Hdf5File,
        source: &dyn MetadataSource,
        name: &str,
    ) -> Result<(), Error> {
        self.changed = true;
        if let Some(table) = &mut self.table {
            table.retain(|link| link.name != name);
            return Ok(());
        }
        self.collapse(file, source)?;
        let fetcher = Fetcher::new(source, file.widths, Context::new("change an HDF5 group of", file.name()));
        let mut found = None;
        for (number, message) in self.header.messages.iter().enumerate() {
            if message.is(MessageKind::Link) {
                let (_, link): Ordered = parsed(&mut fetcher.fields(&message.body, "link message"))?;
                found = found.or((link.name == name).then_some(number));
            }
        }
        found.into_iter().for_each(|number| drop(self.header.messages.remove(number)));
        Ok(())
    }

    /// Whether an attribute has no place in a header, and then, whether an index of their order is promised. A header of the older
    /// form cannot lead elsewhere.
    pub(in crate::hdf5) fn has_large_attributes(&self) -> Option<bool> {
        let is_large =
            |message: &HeaderMessage| message.is(MessageKind::Attribute) && message.body.len() > MESSAGE_BYTES_MAX;
        let info = self.header.find(MessageKind::AttributeInfo)?;
        let found = self.header.messages.iter().any(is_large);
        found.then(|| info.body.get(1).is_some_and(|flags| flags & 2 != 0))
    }

    /// Takes all attributes out of the header: when each was made, and its message.
    pub(in crate::hdf5) fn take_attributes(&mut self) -> Vec<(u32, Vec<u8>)> {
        let is_own = |message: &HeaderMessage| message.is(MessageKind::Attribute);
        let (own, others) = std::mem::take(&mut self.header.messages).into_iter().partition(is_own);
        self.header.messages = others;
        let own: Vec<HeaderMessage> = own;
        own.into_iter().map(|message| (message.order.unwrap_or(0).into(), message.body)).collect()
    }

    /// Lets the header say that all attributes lie there.
    pub(in crate::hdf5) fn lead_attributes_to(&mut self, places: DensePlaces) {
        let Some(body) = self.body(MessageKind::AttributeInfo).filter(|body| body.len() >= 2) else { return };
        let flags = body[1];
        body.truncate(2 + if flags & 1 != 0 { 2 } else { 0 });
        let orders = places.orders.filter(|_| flags & 2 != 0);
        for place in [Some(places.heap), Some(places.names), orders.or((flags & 2 != 0).then_some(NOWHERE))] {
            place.into_iter().for_each(|place| body.extend(place.to_le_bytes()));
        }
    }

    /// Takes away the attributes whose names are such.
    pub(in crate::hdf5) fn drop_attributes(
        &mut self,
        file: &Hdf5File,
        source: &dyn MetadataSource,
        goes: &dyn Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let fetcher = Fetcher::new(source, file.widths, Context::new("change attributes of", file.name()));
        self.changed = true;
        let mut kept = Vec::with_capacity(self.header.messages.len());
        for message in std::mem::take(&mut self.header.messages) {
            // What is elsewhere has no name here.
            let is_own = message.is(MessageKind::Attribute) && !message.is_shared();
            if !is_own || !goes(&attribute_name(&fetcher, &message.body)?) {
                kept.push(message);
            }
        }
        self.header.messages = kept;
        Ok(())
    }

    /// The new block, for this address, and the first block, which leads to it.
    ///
    /// # Errors
    /// When the first block has no place for that.
    pub(in crate::hdf5) fn made(&self, at: u64, context: Context) -> Result<(Vec<u8>, ChangedBlock), Error> {
        let block = self.block(context)?;
        let (before, begin) = (&self.header.first.0, self.header.first.1);
        let end = before.len() - if self.is_old() { 0 } else { 4 };
        let leading = [at.to_le_bytes(), (block.len() as u64).to_le_bytes()].concat();
        let mut after = before[..begin].to_vec();
        let mut empty = 0;
        after.extend(self.message(MessageKind::Continuation as u16, 0, Some(0), &leading));
        if after.len() > end || self.is_old() && !(end - begin).is_multiple_of(8) {
            let expected = format!("a header of at least {} B", after.len());
            return Err(context.unsupported(expected, format!("one of {end} B at byte {}", self.at)));
        }
        let head = self.message(0, 0, Some(0), &[]).len();
        while end - after.len() >= head {
            let bytes = (end - after.len() - head).min(NOTHING_BYTES_MAX);
            after.extend(self.message(MessageKind::Nothing as u16, 0, Some(0), &vec![0; bytes]));
            empty += 1;
        }
        // What is too short for a message is a gap.
        after.resize(end, 0);
        if self.is_old() {
            let count = u16::try_from(self.header.messages.len() + 1 + empty);
            let count = count.map_err(|_| context.unsupported("at most 65535 messages in a header", "more"))?;
            after[2..4].copy_from_slice(&count.to_le_bytes());
        } else {
            after = checked(after);
        }
        Ok((block, ChangedBlock::of(self.at, before.clone(), after)))
    }

    /// All messages as a block of their own.
    fn block(&self, context: Context) -> Result<Vec<u8>, Error> {
        let mut block = if self.is_old() { Vec::new() } else { b"OCHK".to_vec() };
        for HeaderMessage { kind, flags, order, body, .. } in &self.header.messages {
            if body.len() > NOTHING_BYTES_MAX {
                let error = context
                    .unsupported("attributes of at most 65528 B in a header of this form", format!("{} B", body.len()));
                return Err(error.with_hint("copy the file with h5repack --low=1, or keep large values in a dataset"));
            }
            block.extend(self.message(*kind, *flags, *order, body));
        }
        Ok(if self.is_old() { block } else { checked(block) })
    }

    /// A message as a header of this form has it.
    fn message(&self, kind: u16, flags: u8, order: Option<u16>, body: &[u8]) -> Vec<u8> {
        let bytes = if self.is_old() { body.len().next_multiple_of(8) } else { body.len() };
        let mut made = kind.to_le_bytes()[..if self.is_old() { 2 } else { 1 }].to_vec();
        made.extend((bytes as u16).to_le_bytes());
        made.push(flags);
        match (self.is_old(), self.header.counted) {
            (true, _) => made.extend([0; 3]),
            (false, true) => made.extend(order.unwrap_or(0).to_le_bytes()),
            (false, false) => {}
        }
        made.extend_from_slice(body);
        made.resize(made.len() + bytes - body.len(), 0);
        made
    }
}

impl Hdf5File {
    /// The name in the message of an attribute.
    pub(in crate::hdf5) fn attribute_named(
        &self,
        source: &dyn MetadataSource,
        message: &[u8],
    ) -> Result<String, Error> {
        let context = Context::new("change attributes of", self.name());
        attribute_name(&Fetcher::new(source, self.widths, context), message)
    }

    /// The dataset with the header at this address, or else with this path.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn dataset_named(
        &self,
        source: &dyn MetadataSource,
        (at, path): (Option<u64>, &str),
    ) -> Result<Dataset, Error> {
        self.dataset_at(source, self.header_named(source, (at, path))?)
    }

    /// The address of the header with this address, or else with this path.
    pub(in crate::hdf5) fn header_named(
        &self,
        source: &dyn MetadataSource,
        (at, path): (Option<u64>, &str),
    ) -> Result<u64, Error> {
        let found = if at.is_some() { at } else { self.object_at(source, path)? };
        let context = Context::new("look into HDF5 file", self.name());
        found.ok_or_else(|| context.invalid(format!("an object '{path}'"), "none"))
    }

    /// The object that a path leads to, by hard links, and by soft ones within the file. Names are those that netCDF has: a variable
    /// that is called like a dimension and is none has a prefix in the file.
    ///
    /// # Errors
    /// When a group on the way is damaged.
    pub fn object_at(&self, source: &dyn MetadataSource, path: &str) -> Result<Option<u64>, Error> {
        if let Some((above, name)) = path.rsplit_once('/').or(Some(("", path)).filter(|_| !path.is_empty())) {
            let stored = format!("{above}/{NO_COORDINATE}{name}");
            if let Some(at) = self.object_below(source, self.root(), &stored, &mut SOFT_LINKS_DEEP_MAX.clone())? {
                return Ok(Some(at));
            }
        }
        self.object_below(source, self.root(), path, &mut SOFT_LINKS_DEEP_MAX.clone())
    }

    /// What a path leads to from a group, over at most so many soft links.
    fn object_below(
        &self,
        source: &dyn MetadataSource,
        group: u64,
        path: &str,
        soft_links: &mut usize,
    ) -> Result<Option<u64>, Error> {
        let mut at = if path.starts_with('/') { self.root() } else { group };
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            if self.kind_at(source, at)? != ObjectKind::Group {
                return Ok(None);
            }
            let inner = match self.member_at(source, at, name)? {
                Some(LinkTarget::Object(inner)) => Some(inner),
                Some(LinkTarget::Soft(target)) if *soft_links > 0 => {
                    *soft_links -= 1;
                    self.object_below(source, at, &target, soft_links)?
                }
                _ => None,
            };
            let Some(inner) = inner else { return Ok(None) };
            at = inner;
        }
        Ok(Some(at))
    }
}
