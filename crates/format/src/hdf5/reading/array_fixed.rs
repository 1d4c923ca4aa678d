//! Fixed arrays: an index of chunks without unlimited dimensions (section VII.C).
//!
//! All elements are in one data block; where they are many, it is cut into pages, each with a checksum.

use super::fetch::Fetcher;
use super::grid::WantedChunks;
use super::search::ChunkSearch;
use crate::error::Error;

/// A fixed array.
pub(super) struct FixedArray {
    filtered: bool,
    element_bytes: u64,
    page_elements: u64,
    elements: u64,
    block: Option<u64>,
}

impl FixedArray {
    /// Reads the header of an array.
    pub(super) fn read(fetcher: &Fetcher, at: u64) -> Result<FixedArray, Error> {
        let widths = fetcher.widths;
        let block = fetcher.block(at, 12 + u64::from(widths.offset) + u64::from(widths.length), b"FAHD")?;
        let mut fields = fetcher.fields(&fetcher.verified(at, &block)?[4..], "fixed array");
        fields.version(0..=0)?;
        let filtered = fields.byte()? != 0;
        let (element_bytes, page_bits) = (fields.byte()?.into(), fields.byte()?);
        let elements = fields.length()?;
        let page_elements = 1u64.checked_shl(page_bits.into());
        let page_elements = page_elements.ok_or_else(|| fields.wrong("pages", format!("of 2^{page_bits} elements")))?;
        Ok(FixedArray { filtered, element_bytes, page_elements, elements, block: fields.address()? })
    }

    /// Adds the chunks that are looked for.
    pub(super) fn search(&self, search: &mut ChunkSearch, wanted: &WantedChunks) -> Result<(), Error> {
        search.check_element(self.element_bytes, self.filtered)?;
        let Some(at) = self.block.filter(|_| !wanted.is_empty()) else { return Ok(()) };
        let fetcher = search.fetcher;
        let count = self.elements;
        // The block has all elements, so that the file limits how many there may be.
        let size = count.checked_mul(self.element_bytes).filter(|&size| size <= fetcher.file_bytes());
        let size = size.ok_or_else(|| fetcher.context.corrupt("an index in the file", format!("{count} elements")))?;
        let begin = 6 + u64::from(fetcher.widths.offset);
        if count <= self.page_elements {
            let block = fetcher.block(at, begin + size + 4, b"FADB")?;
            let body = fetcher.verified(at, &block)?;
            return search.add_elements(wanted, 0, &body[begin as usize..], self.element_bytes);
        }
        let pages = count.div_ceil(self.page_elements);
        let head_bytes = begin + pages.div_ceil(8) + 4;
        let head = fetcher.block(at, head_bytes, b"FADB")?;
        let exists = &fetcher.verified(at, &head)?[begin as usize..];
        let page_bytes = self.page_elements * self.element_bytes + 4;
        let mut first = 0;
        // From page to page that has a chunk asked for.
        while let Some((number, _)) = wanted.from(first).filter(|(number, _)| *number < count && !search.is_full()) {
            let page = number / self.page_elements;
            first = page * self.page_elements;
            if !bit(exists, page) {
                // Of many that do not exist, none is looked at by itself.
                let Some(page) = (page + 1..pages).find(|&page| bit(exists, page)) else { break };
                first = page * self.page_elements;
                continue;
            }
            let elements = self.page_elements.min(count - first);
            let place = at + head_bytes + page * page_bytes;
            let stored = fetcher.bytes(place, elements * self.element_bytes + 4)?;
            search.add_elements(wanted, first, fetcher.verified(place, &stored)?, self.element_bytes)?;
            first += elements;
        }
        Ok(())
    }
}

/// Whether a bit is set; the first is the highest of the first byte.
pub(super) fn bit(bits: &[u8], number: u64) -> bool {
    let byte = usize::try_from(number / 8).ok().and_then(|at| bits.get(at));
    byte.is_some_and(|byte| byte & (128 >> (number % 8)) != 0)
}
