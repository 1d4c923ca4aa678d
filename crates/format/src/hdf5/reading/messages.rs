//! Small messages: dataspaces, fill values, filters, and messages that are elsewhere (section IV.A.2).

use super::fetch::Fetcher;
use super::fields::{FieldReader, text};
use super::header::{HeaderMessage, MessageKind, ObjectHeader};
use crate::error::Error;
use crate::hdf5::content::Filter;
use crate::hdf5::policy::FILTERS_MAX;
use crate::size::NDIM_MAX;
use std::borrow::Cow;

/// The body of a message, or of that which it shares (section III.F and IV.A.1).
pub(super) fn body<'a>(fetcher: &Fetcher, message: &'a HeaderMessage) -> Result<Cow<'a, [u8]>, Error> {
    if !message.is_shared() {
        return Ok(Cow::Borrowed(&message.body));
    }
    let mut fields = fetcher.fields(&message.body, "shared message");
    Ok(Cow::Owned(committed(&mut fields)?.read(fetcher)?))
}

/// Where a type with a name is.
pub(super) struct Committed(u64);

/// What a shared message says.
pub(super) fn committed(fields: &mut FieldReader) -> Result<Committed, Error> {
    let version = fields.version(1..=3)?;
    let kind = fields.byte()?;
    if version == 1 {
        // Reserved, and a place in a heap of names.
        fields.skip(6 + u64::from(fields.widths.length))?;
    } else if version == 3 && kind != 2 {
        return Err(fields.context.unsupported("messages in headers of objects", "a table of shared messages"));
    }
    Ok(Committed(fields.place()?))
}

impl Committed {
    /// The type's message in its own header.
    pub(super) fn read(&self, fetcher: &Fetcher) -> Result<Vec<u8>, Error> {
        let kept = fetcher.kept(self.0, || {
            let mut messages = ObjectHeader::read(fetcher, self.0)?.messages;
            let own = messages.iter().position(|found| found.is(MessageKind::Datatype) && !found.is_shared());
            let own = own.ok_or_else(|| {
                fetcher.context.corrupt(format!("a type with a name at byte {}", self.0), "an object without one")
            })?;
            Ok(messages.swap_remove(own).body)
        })?;
        fetcher.spend(kept.len() as u64)?;
        Ok(kept.to_vec())
    }
}

/// A shape and how far it may grow.
#[derive(Debug)]
pub(super) struct Dataspace {
    /// Nothing for a null dataspace.
    pub(super) shape: Option<Vec<u64>>,
    pub(super) limits: Vec<Option<u64>>,
}

/// Dataspace message, versions 1 and 2.
pub(super) fn dataspace(fields: &mut FieldReader) -> Result<Dataspace, Error> {
    let version = fields.version(1..=2)?;
    let ndim = usize::from(fields.byte()?);
    let flags = fields.byte()?;
    let kind = fields.byte()?;
    if version == 1 {
        fields.skip(4)?;
    }
    if ndim > NDIM_MAX {
        return Err(fields.context.unsupported(format!("at most {NDIM_MAX} dimensions"), ndim.to_string()));
    }
    let mut extents = || (0..ndim).map(|_| fields.length()).collect::<Result<Vec<u64>, Error>>();
    let shape = extents()?;
    let most = if flags & 1 != 0 { extents()? } else { shape.clone() };
    if shape.iter().zip(&most).any(|(extent, most)| extent > most) {
        return Err(fields.wrong("extents within their limits", format!("{shape:?} beyond {most:?}")));
    }
    // The same bits mean "without limit" whatever the width.
    let endless = u64::MAX >> (64 - 8 * u32::from(fields.widths.length));
    let limits = most.into_iter().map(|most| (most != endless).then_some(most)).collect();
    let null = version == 2 && kind == 2;
    Ok(Dataspace { shape: (!null).then_some(shape), limits })
}

/// The fill value of a dataset as stored: message 5 in any version, or else message 4.
pub(super) fn fill(fetcher: &Fetcher, header: &ObjectHeader) -> Result<Option<Vec<u8>>, Error> {
    let (message, new) = match (header.find(MessageKind::Fill), header.find(MessageKind::FillOld)) {
        (Some(new), _) => (new, true),
        (None, Some(old)) => (old, false),
        (None, None) => return Ok(None),
    };
    let body = body(fetcher, message)?;
    let mut fields = fetcher.fields(&body, "fill value message");
    let has_value = if !new {
        true
    } else if fields.version(1..=3)? == 3 {
        fields.byte()? & 32 != 0
    } else {
        // When space is allocated, and when the value is written.
        fields.skip(2)?;
        fields.byte()? != 0
    };
    if !has_value {
        return Ok(None);
    }
    let bytes = fields.four()?;
    // Old libraries wrote -1 for a value that is undefined.
    if bytes == 0 || bytes == u32::MAX {
        return Ok(None);
    }
    fields.take(bytes.into()).map(|value| Some(value.to_vec()))
}

/// Filter pipeline message, versions 1 and 2.
pub(super) fn filters(fields: &mut FieldReader) -> Result<Vec<Filter>, Error> {
    let version = fields.version(1..=2)?;
    let count = usize::from(fields.byte()?);
    if count > FILTERS_MAX {
        return Err(fields.wrong(&format!("at most {FILTERS_MAX} filters"), count.to_string()));
    }
    if version == 1 {
        fields.skip(6)?;
    }
    (0..count).map(|_| filter(fields, version)).collect()
}

fn filter(fields: &mut FieldReader, version: u8) -> Result<Filter, Error> {
    let number = fields.two()?;
    // Version 2 leaves out the names of filters that the library has itself.
    let name_bytes = if version == 1 || number >= 256 { fields.two()? } else { 0 };
    let flags = fields.two()?;
    let count = fields.two()?;
    let padded = if version == 1 { u64::from(name_bytes).next_multiple_of(8) } else { name_bytes.into() };
    let name = text(fields.take(padded)?);
    let values = (0..count).map(|_| fields.four()).collect::<Result<_, _>>()?;
    if version == 1 && count % 2 == 1 {
        fields.skip(4)?;
    }
    Ok(Filter { number, name, optional: flags & 1 != 0, values })
}
