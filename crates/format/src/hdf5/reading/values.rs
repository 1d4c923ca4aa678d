//! Elements of attributes and datasets that are lists and texts in heaps.

use super::fetch::Fetcher;
use super::heap_global;
use super::superblock::Hdf5File;
use crate::error::{Context, Error};
use crate::hdf5::content::{MetadataSource, StoredValue};
use crate::hdf5::datatype::Datatype;

/// So many elements of a type.
pub(super) fn value(fetcher: &Fetcher, datatype: &Datatype, count: u64, stored: &[u8]) -> Result<StoredValue, Error> {
    let bytes = count.checked_mul(datatype.bytes().into());
    let elements = bytes.and_then(|bytes| stored.get(..usize::try_from(bytes).ok()?));
    let elements = elements.ok_or_else(|| {
        let expected = format!("{count} elements of {} B", datatype.bytes());
        fetcher.context.corrupt(expected, format!("{} B", stored.len()))
    })?;
    let each = elements.chunks_exact(datatype.bytes() as usize);
    let content = |element, each| heap_global::value(fetcher, &mut fetcher.fields(element, "element"), each);
    match datatype {
        Datatype::VariableText { .. } => {
            let texts = each.map(|element| content(element, 1).map(before_zero));
            texts.collect::<Result<_, _>>().map(StoredValue::Texts)
        }
        Datatype::List(base) if !base.has_variable() => {
            let lists = each.map(|element| content(element, base.bytes().into()));
            lists.collect::<Result<_, _>>().map(StoredValue::Lists)
        }
        other if other.has_variable() => {
            let expected = "values of variable length by themselves";
            Err(fetcher.context.unsupported(expected, "values of variable length inside of other types"))
        }
        _ => Ok(StoredValue::Elements(elements.to_vec())),
    }
}

impl Hdf5File {
    /// The texts that lie where these elements of a dataset say.
    ///
    /// # Errors
    /// When they lie nowhere, or the file is damaged there.
    pub fn texts(&self, source: &dyn MetadataSource, elements: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let fetcher = Fetcher::new(source, self.widths, Context::new("read texts of HDF5 file", self.name()));
        let each = elements.chunks_exact(Datatype::VariableText { utf8: true }.bytes() as usize);
        let (mut texts, mut bytes) = (Vec::with_capacity(each.len()), 0);
        for element in each {
            let text = heap_global::value(&fetcher, &mut fetcher.fields(element, "element"), 1).map(before_zero)?;
            bytes += text.len() as u64;
            // Each element has a text of its own; where many name one long text, memory would grow far beyond the file.
            if bytes > self.end() {
                let most = format!("texts of at most {} B together, as long as the file", self.end());
                return Err(fetcher.context.corrupt(most, "more, which several elements share"));
            }
            texts.push(text);
        }
        Ok(texts)
    }
}

fn before_zero(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|&byte| byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    bytes
}

impl Datatype {
    /// Whether elements refer to what is stored elsewhere and has variable length.
    pub fn has_variable(&self) -> bool {
        match self {
            Datatype::VariableText { .. } | Datatype::List(_) => true,
            Datatype::Compound { fields, .. } => fields.iter().any(|field| field.datatype.has_variable()),
            Datatype::Array { base, .. } | Datatype::Enumeration { base, .. } | Datatype::Complex(base) => {
                base.has_variable()
            }
            Datatype::Unsupported { what, .. } => what.contains("variable length"),
            _ => false,
        }
    }
}
