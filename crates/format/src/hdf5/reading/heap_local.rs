//! Local heaps: the names of an old group (section III.D).

use super::fetch::Fetcher;
use super::fields::text;
use crate::error::Error;

/// The names of a group.
pub(super) struct LocalHeap(Vec<u8>);

impl LocalHeap {
    pub(super) fn read(fetcher: &Fetcher, at: u64) -> Result<LocalHeap, Error> {
        let widths = fetcher.widths;
        let bytes = 8 + 2 * u64::from(widths.length) + u64::from(widths.offset);
        let block = fetcher.block(at, bytes, b"HEAP")?;
        let mut fields = fetcher.fields(&block[4..], "local heap");
        fields.version(0..=0)?;
        fields.skip(3)?;
        let bytes = fields.length()?;
        fields.length()?;
        Ok(LocalHeap(fetcher.bytes(fields.place()?, bytes)?))
    }

    /// The text at an offset. Texts may share their ends, so that each is counted.
    pub(super) fn text(&self, fetcher: &Fetcher, offset: u64) -> Result<String, Error> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let rest = rest.ok_or_else(|| {
            fetcher.context.corrupt(format!("a name within {} B", self.0.len()), format!("one at byte {offset}"))
        })?;
        let name = fetcher.fields(rest, "local heap").until_zero()?;
        fetcher.spend(name.len() as u64)?;
        Ok(text(name))
    }
}
