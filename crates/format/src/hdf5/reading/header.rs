//! Headers of objects: lists of messages, in a first block and continuations (section IV.A).

use super::fetch::Fetcher;
use super::fields::FieldReader;
use crate::error::{Context, Error};
use crate::hdf5::policy::{HEADER_BYTES_LIKELY, MESSAGE_KIND_LAST};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

/// What an object is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ObjectKind {
    /// A group.
    Group,
    /// A dataset.
    Dataset,
    /// A type that has a name, which others may share.
    Datatype,
}

/// Kinds of messages that are read here, by their numbers (sections IV.A.2.a to y).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub(in crate::hdf5) enum MessageKind {
    Nothing = 0x00,
    Dataspace = 0x01,
    LinkInfo = 0x02,
    Datatype = 0x03,
    FillOld = 0x04,
    Fill = 0x05,
    Link = 0x06,
    External = 0x07,
    Layout = 0x08,
    GroupInfo = 0x0a,
    Filters = 0x0b,
    Attribute = 0x0c,
    Continuation = 0x10,
    SymbolTable = 0x11,
    TreeSizes = 0x13,
    DriverInfo = 0x14,
    AttributeInfo = 0x15,
}

/// A message.
#[derive(Clone, Debug)]
pub(in crate::hdf5) struct HeaderMessage {
    pub(in crate::hdf5) kind: u16,
    pub(super) flags: u8,
    /// When it was made, among others of its kind, where the header counts that.
    pub(super) order: Option<u16>,
    pub(in crate::hdf5) body: Vec<u8>,
    /// Where the body is in the file \[B\].
    pub(super) at: u64,
    /// The block that has it, which ends with its checksum where headers have them: its first byte, and how many \[B\].
    pub(super) block: (u64, u64),
}

impl HeaderMessage {
    pub(in crate::hdf5) fn is(&self, kind: MessageKind) -> bool {
        self.kind == kind as u16
    }

    /// Whether the body says where else the message is.
    pub(super) fn is_shared(&self) -> bool {
        self.flags & 2 != 0
    }
}

/// The messages of an object.
#[derive(Debug)]
pub(super) struct ObjectHeader {
    pub(super) messages: Vec<HeaderMessage>,
    /// Version of its form, 1 or 2.
    pub(super) version: u8,
    /// Whether messages say when they were made.
    pub(super) counted: bool,
    /// The first block as it is in the file, and how many bytes come before its messages.
    pub(super) first: (Vec<u8>, usize),
}

impl ObjectHeader {
    /// Reads the header at this address.
    pub(super) fn read(fetcher: &Fetcher, at: u64) -> Result<ObjectHeader, Error> {
        let guess = fetcher.bytes_at_most(at, HEADER_BYTES_LIKELY)?;
        let (version, entered) = (if guess.starts_with(b"OHDR") { 2 } else { 1 }, RefCell::default());
        let parts = HeaderBlocks { fetcher, version, flags: 0, entered };
        if parts.version == 2 { parts.read_new(at, guess) } else { parts.read_old(at, guess) }
    }

    /// The first message of a kind.
    pub(super) fn find(&self, kind: MessageKind) -> Option<&HeaderMessage> {
        self.messages.iter().find(|message| message.is(kind))
    }

    /// What object has these messages.
    pub(super) fn kind(&self) -> Option<ObjectKind> {
        let has = |kind| self.find(kind).is_some();
        if has(MessageKind::SymbolTable) || has(MessageKind::LinkInfo) || has(MessageKind::GroupInfo) {
            Some(ObjectKind::Group)
        } else if has(MessageKind::Datatype) && has(MessageKind::Dataspace) {
            Some(ObjectKind::Dataset)
        } else {
            has(MessageKind::Datatype).then_some(ObjectKind::Datatype)
        }
    }

    /// Refuses files that are parts of others.
    pub(super) fn check_extension(&self, context: Context) -> Result<(), Error> {
        match self.find(MessageKind::DriverInfo) {
            Some(_) => Err(context.unsupported("a file by itself", "one of several files that belong together")),
            None => Ok(()),
        }
    }
}

/// What blocks of a header have in common.
struct HeaderBlocks<'a> {
    fetcher: &'a Fetcher<'a>,
    version: u8,
    flags: u8,
    /// Continuations, each of which may be there once. Types with names may have attributes of themselves, so that a
    /// whole header may be read more often than that.
    entered: RefCell<BTreeSet<u64>>,
}

impl HeaderBlocks<'_> {
    /// Version 1: no signature, no checksum.
    fn read_old(&self, at: u64, guess: Vec<u8>) -> Result<ObjectHeader, Error> {
        let mut fields = self.fetcher.fields(&guess, "object header");
        fields.version(1..=1)?;
        // Reserved, number of messages, and of links to the object.
        fields.skip(7)?;
        let bytes = u64::from(fields.four()?);
        let block = self.fetcher.extended(at, guess, bytes + 16)?;
        let messages = self.follow(self.messages(&block[16..], (at, 16, block.len()))?)?;
        Ok(ObjectHeader { messages, version: 1, counted: false, first: (block, 16) })
    }

    /// Version 2.
    fn read_new(mut self, at: u64, guess: Vec<u8>) -> Result<ObjectHeader, Error> {
        let mut fields = self.fetcher.fields(&guess, "object header");
        fields.skip(4)?;
        fields.version(2..=2)?;
        self.flags = fields.byte()?;
        // Four times of 4 B, then two limits of 2 B.
        fields.skip(if self.flags & 32 != 0 { 16 } else { 0 } + if self.flags & 16 != 0 { 4 } else { 0 })?;
        let bytes = fields.number(1 << (self.flags & 3))?;
        let begin = guess.len() - fields.rest.len();
        let whole = bytes.checked_add(begin as u64 + 4);
        let whole = whole.ok_or_else(|| self.fetcher.context.corrupt("a header in the file", format!("{bytes} B")))?;
        let block = self.fetcher.extended(at, guess, whole)?;
        let body = self.fetcher.verified(at, &block)?;
        let messages = self.follow(self.messages(&body[begin..], (at, begin, block.len()))?)?;
        Ok(ObjectHeader { messages, version: 2, counted: self.flags & 4 != 0, first: (block, begin) })
    }

    /// Adds the messages of continuations, and of theirs.
    fn follow(&self, first: Vec<HeaderMessage>) -> Result<Vec<HeaderMessage>, Error> {
        let (mut all, mut waiting) = (Vec::new(), VecDeque::from([first]));
        while let Some(messages) = waiting.pop_front() {
            for message in messages {
                if message.is(MessageKind::Continuation) {
                    waiting.push_back(self.continuation(&message.body)?);
                } else {
                    all.push(message);
                }
            }
        }
        Ok(all)
    }

    fn continuation(&self, body: &[u8]) -> Result<Vec<HeaderMessage>, Error> {
        let mut fields = self.fetcher.fields(body, "continuation message");
        let (at, bytes) = (fields.place()?, fields.length()?);
        if !self.entered.borrow_mut().insert(at) {
            return Err(fields.wrong("each continuation once", format!("that at byte {at} twice")));
        }
        if self.version == 1 {
            return self.messages(&self.fetcher.bytes(at, bytes)?, (at, 0, bytes as usize));
        }
        let block = self.fetcher.block(at, bytes, b"OCHK")?;
        let body = self.fetcher.verified(at, &block)?;
        self.messages(body.get(4..).unwrap_or_default(), (at, 4, block.len()))
    }

    /// The messages of a block that is at this place, has something before them and so many bytes in all. What is too short
    /// for one is a gap at the end.
    fn messages(&self, block: &[u8], (at, before, all): (u64, usize, usize)) -> Result<Vec<HeaderMessage>, Error> {
        let counted = self.version == 2 && self.flags & 4 != 0;
        let begin = if self.version == 1 { 8 } else { 4 + if counted { 2 } else { 0 } };
        let mut fields = self.fetcher.fields(block, "object header");
        let mut messages = Vec::new();
        while fields.rest.len() >= begin {
            let mut message = self.message(&mut fields, counted)?;
            let end = before + block.len() - fields.rest.len();
            message.at = at + (end - message.body.len()) as u64;
            message.block = (at, all as u64);
            let must_be_known = message.flags & 128 != 0;
            if must_be_known && message.kind > MESSAGE_KIND_LAST {
                let found = format!("one of kind {:#06x}", message.kind);
                return Err(fields.context.unsupported("messages that are known here", found));
            }
            messages.push(message);
        }
        Ok(messages)
    }

    fn message(&self, fields: &mut FieldReader, counted: bool) -> Result<HeaderMessage, Error> {
        let kind = if self.version == 1 { fields.two()? } else { fields.byte()?.into() };
        let bytes = fields.two()?;
        let flags = fields.byte()?;
        if self.version == 1 {
            fields.skip(3)?;
        }
        let order = if counted { Some(fields.two()?) } else { None };
        Ok(HeaderMessage { kind, flags, order, body: fields.take(bytes.into())?.to_vec(), at: 0, block: (0, 0) })
    }
}
