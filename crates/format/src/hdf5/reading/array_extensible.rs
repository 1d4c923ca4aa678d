//! Extensible arrays: an index of chunks with one unlimited dimension (section VII.D).
//!
//! The first elements are in the index block itself, those behind them in data blocks, which the index block or super blocks
//! lead to. Super block `n` has `2^(n/2)` data blocks of `2^((n+1)/2)` times the smallest size. Large data blocks are cut into
//! pages, each with a checksum; the super block says which pages exist.

use super::array_fixed::bit;
use super::fetch::Fetcher;
use super::grid::WantedChunks;
use super::search::ChunkSearch;
use crate::error::Error;

/// An extensible array.
pub(super) struct ExtensibleArray {
    filtered: bool,
    element_bytes: u64,
    /// Width of numbers of elements in blocks \[B\].
    number_width: u64,
    /// Elements in the index block.
    first_elements: u64,
    /// Elements in the smallest data block.
    block_elements: u64,
    /// Data blocks to which a super block must lead at least.
    pointers_min: u64,
    page_elements: u64,
    super_blocks: u32,
    index: Option<u64>,
}

/// A super block, which may be one in name only.
struct SuperBlock {
    /// Its data blocks, how many elements each has, and the number of the first.
    blocks: u64,
    elements: u64,
    first: u64,
}

impl ExtensibleArray {
    /// Reads the header of an array.
    pub(super) fn read(fetcher: &Fetcher, at: u64) -> Result<ExtensibleArray, Error> {
        let widths = fetcher.widths;
        let block = fetcher.block(at, 16 + u64::from(widths.offset) + 6 * u64::from(widths.length), b"EAHD")?;
        let mut fields = fetcher.fields(&fetcher.verified(at, &block)?[4..], "extensible array");
        fields.version(0..=0)?;
        let filtered = fields.byte()? != 0;
        let element_bytes = fields.byte()?.into();
        let (bits, first_elements) = (fields.byte()?, fields.byte()?.into());
        let (block_elements, pointers_min) = (u64::from(fields.byte()?), u64::from(fields.byte()?));
        let page_bits = fields.byte()?;
        fields.skip(6 * u64::from(widths.length))?;
        let sized = block_elements.is_power_of_two() && pointers_min.is_power_of_two();
        let super_blocks = if sized { u32::from(bits).checked_sub(block_elements.ilog2()) } else { None };
        let page_elements = 1u64.checked_shl(page_bits.into());
        let Some((super_blocks, page_elements)) = super_blocks.zip(page_elements).filter(|_| bits <= 64) else {
            let found =
                format!("blocks of {block_elements}, {pointers_min} pointers, pages of 2^{page_bits}, {bits} bits");
            return Err(fields.wrong("sizes that are powers of two", found));
        };
        Ok(ExtensibleArray {
            filtered,
            element_bytes,
            number_width: u64::from(bits).div_ceil(8),
            first_elements,
            block_elements,
            pointers_min,
            page_elements,
            super_blocks: super_blocks + 1,
            index: fields.address()?,
        })
    }

    /// Super blocks whose data blocks the index block leads to by itself.
    fn short_cuts(&self) -> u32 {
        (2 * self.pointers_min.ilog2()).min(self.super_blocks)
    }

    /// What super block `number` has; nothing behind what can be numbered.
    fn super_block(&self, number: u32) -> Option<SuperBlock> {
        let blocks = 1u64.checked_shl(number / 2)?;
        let elements = 1u64.checked_shl(number.div_ceil(2))?.checked_mul(self.block_elements)?;
        // Elements of the super blocks before: 2^0 + 2^1 + ... times the smallest size.
        let before = (1u64.checked_shl(number)? - 1).checked_mul(self.block_elements)?;
        Some(SuperBlock { blocks, elements, first: before.checked_add(self.first_elements)? })
    }

    /// Adds the chunks that are looked for.
    pub(super) fn search(&self, search: &mut ChunkSearch, wanted: &WantedChunks) -> Result<(), Error> {
        search.check_element(self.element_bytes, self.filtered)?;
        let Some(at) = self.index.filter(|_| !wanted.is_empty()) else { return Ok(()) };
        let fetcher = search.fetcher;
        let offset = u64::from(fetcher.widths.offset);
        let direct: u64 = (0..self.short_cuts()).map(|number| 1 << (number / 2)).sum();
        let tables = u64::from(self.super_blocks - self.short_cuts());
        let elements = self.first_elements * self.element_bytes;
        let block = fetcher.block(at, 6 + offset + elements + (direct + tables) * offset + 4, b"EAIB")?;
        let body = &fetcher.verified(at, &block)?[6 + offset as usize..];
        let (stored, addresses) = body.split_at(elements as usize);
        search.add_elements(wanted, 0, stored, self.element_bytes)?;
        let mut fields = fetcher.fields(addresses, "extensible array");
        for number in 0..self.short_cuts() {
            let Some(inside) = self.super_block(number) else { return Ok(()) };
            for block in 0..inside.blocks {
                if let Some(at) = fields.address()? {
                    self.data_block(search, wanted, at, &inside, block, None)?;
                }
            }
        }
        for number in self.short_cuts()..self.super_blocks {
            let Some(inside) = self.super_block(number) else { return Ok(()) };
            if let Some(at) = fields.address()? {
                self.table(search, wanted, at, &inside)?;
            }
        }
        Ok(())
    }

    /// A super block: which pages of its data blocks exist, and where those are.
    fn table(
        &self,
        search: &mut ChunkSearch,
        wanted: &WantedChunks,
        at: u64,
        inside: &SuperBlock,
    ) -> Result<(), Error> {
        let fetcher = search.fetcher;
        let last = inside.blocks.checked_mul(inside.elements).and_then(|count| inside.first.checked_add(count));
        if search.is_full() || !wanted.touches(inside.first..last.unwrap_or(u64::MAX)) {
            return Ok(());
        }
        fetcher.enter(at)?;
        let offset = u64::from(fetcher.widths.offset);
        let begin = 6 + offset + self.number_width;
        let bits = if inside.elements > self.page_elements { self.pages(inside).div_ceil(8) } else { 0 };
        let sizes = inside.blocks.checked_mul(bits).zip(inside.blocks.checked_mul(offset));
        let bytes = sizes.and_then(|(bits, addresses)| bits.checked_add(addresses)?.checked_add(begin + 4));
        let bytes = bytes.ok_or_else(|| fetcher.context.corrupt("an index in the file", "a larger one"))?;
        let block = fetcher.block(at, bytes, b"EASB")?;
        let body = &fetcher.verified(at, &block)?[begin as usize..];
        let (exists, addresses) = body.split_at((inside.blocks * bits) as usize);
        let mut fields = fetcher.fields(addresses, "extensible array");
        for block in 0..inside.blocks {
            if let Some(at) = fields.address()? {
                self.data_block(search, wanted, at, inside, block, Some(exists))?;
            }
        }
        Ok(())
    }

    /// How many pages a data block has.
    fn pages(&self, inside: &SuperBlock) -> u64 {
        inside.elements / self.page_elements
    }

    /// Data block number `block` of a super block.
    fn data_block(
        &self,
        search: &mut ChunkSearch,
        wanted: &WantedChunks,
        at: u64,
        inside: &SuperBlock,
        block: u64,
        exists: Option<&[u8]>,
    ) -> Result<(), Error> {
        let fetcher = search.fetcher;
        let far = || fetcher.context.corrupt("an index in the file", format!("elements without numbers at byte {at}"));
        let first = block.checked_mul(inside.elements).and_then(|before| before.checked_add(inside.first));
        let first = first.ok_or_else(far)?;
        let end = first.checked_add(inside.elements).ok_or_else(far)?;
        if search.is_full() || !wanted.touches(first..end) {
            return Ok(());
        }
        fetcher.enter(at)?;
        let begin = 6 + u64::from(fetcher.widths.offset) + self.number_width;
        let bytes = inside.elements.checked_mul(self.element_bytes).filter(|&bytes| bytes <= fetcher.file_bytes());
        let bytes = bytes.ok_or_else(far)?;
        if inside.elements <= self.page_elements {
            let stored = fetcher.block(at, begin + bytes + 4, b"EADB")?;
            let body = fetcher.verified(at, &stored)?;
            return search.add_elements(wanted, first, &body[begin as usize..], self.element_bytes);
        }
        let head = fetcher.block(at, begin + 4, b"EADB")?;
        fetcher.verified(at, &head)?;
        let page_bytes = self.page_elements * self.element_bytes + 4;
        for page in 0..self.pages(inside) {
            let number = first + page * self.page_elements;
            // Bits of all data blocks follow each other, whole bytes or not.
            let is_there = exists.is_some_and(|bits| bit(bits, block * self.pages(inside) + page));
            if is_there && !search.is_full() && wanted.touches(number..number + self.page_elements) {
                let place = at + begin + 4 + page * page_bytes;
                let stored = fetcher.bytes(place, page_bytes)?;
                search.add_elements(wanted, number, fetcher.verified(place, &stored)?, self.element_bytes)?;
            }
        }
        Ok(())
    }
}
