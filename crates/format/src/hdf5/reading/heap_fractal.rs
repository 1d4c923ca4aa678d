//! Fractal heaps: links and attributes of objects that have many (section III.G).
//!
//! A heap is a table of blocks, `width` in a row; those of the first two rows have the same size, those of each row behind
//! them have twice the size of those of the row before. Rows of blocks up to a limit hold objects, the others hold tables again.

use super::fetch::Fetcher;
use super::tree_v2::all_records;
use crate::error::Error;
use crate::hdf5::lookup3::lookup3;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A heap.
pub(super) struct FractalHeap<'a> {
    fetcher: &'a Fetcher<'a>,
    at: u64,
    id_bytes: u16,
    has_checksums: bool,
    huge_tree: Option<u64>,
    width: u64,
    first_bytes: u64,
    direct_bytes_max: u64,
    /// Width of offsets in the heap, and of lengths of objects \[B\].
    offset_width: u8,
    length_width: u8,
    root: Option<u64>,
    root_rows: u64,
    /// Huge objects: address and length, by number.
    huge: OnceCell<BTreeMap<u64, (u64, u64)>>,
}

/// How many bytes a number up to this one needs.
fn width_of(most: u64) -> u8 {
    (most.max(1).ilog2() / 8 + 1) as u8
}

impl<'a> FractalHeap<'a> {
    /// Reads the header of a heap.
    pub(super) fn read(fetcher: &'a Fetcher<'a>, at: u64) -> Result<FractalHeap<'a>, Error> {
        let (offset, length) = (u64::from(fetcher.widths.offset), u64::from(fetcher.widths.length));
        let block = fetcher.block(at, 26 + 3 * offset + 12 * length, b"FRHP")?;
        let mut fields = fetcher.fields(&block[4..], "fractal heap");
        fields.version(0..=0)?;
        let (id_bytes, filter_bytes, flags) = (fields.two()?, fields.two()?, fields.byte()?);
        if filter_bytes != 0 {
            return Err(fetcher.context.unsupported("links and attributes without filters", "a filtered heap"));
        }
        let object_bytes_max = u64::from(fields.four()?);
        fields.length()?;
        let huge_tree = fields.address()?;
        // Free space, and how much there is of everything.
        fields.skip(offset + 9 * length)?;
        let width = u64::from(fields.two()?);
        let (first_bytes, direct_bytes_max) = (fields.length()?, fields.length()?);
        let bits = fields.two()?;
        fields.skip(2)?;
        let (root, root_rows) = (fields.address()?, u64::from(fields.two()?));
        fetcher.verified(at, &block)?;
        let sizes = [width, first_bytes, direct_bytes_max];
        if !sizes.iter().all(|size| size.is_power_of_two()) || first_bytes > direct_bytes_max || bits > 64 || bits == 0
        {
            let found = format!("{width} blocks of {first_bytes} B to {direct_bytes_max} B, {bits} bits");
            return Err(fields.wrong("sizes that are powers of two", found));
        }
        let direct_width = direct_bytes_max.ilog2().div_ceil(8) as u8;
        Ok(FractalHeap {
            fetcher,
            at,
            id_bytes,
            has_checksums: flags & 2 != 0,
            huge_tree,
            width,
            first_bytes,
            direct_bytes_max,
            offset_width: bits.div_ceil(8) as u8,
            length_width: direct_width.min(width_of(object_bytes_max)),
            root,
            root_rows,
            huge: OnceCell::new(),
        })
    }

    /// Size of a heap ID \[B\].
    pub(super) fn id_bytes(&self) -> u64 {
        self.id_bytes.into()
    }

    /// The object with this ID.
    pub(super) fn object(&self, id: &[u8]) -> Result<Vec<u8>, Error> {
        let mut fields = self.fetcher.fields(id, "heap ID");
        let first = fields.byte()?;
        match first >> 4 & 3 {
            _ if first >> 6 != 0 => {
                Err(fields.context.unsupported("heap IDs of version 0", format!("version {}", first >> 6)))
            }
            0 => {
                let (offset, bytes) = (fields.number(self.offset_width)?, fields.number(self.length_width)?);
                self.managed(offset, bytes)
            }
            1 => self.huge(id),
            2 => {
                let short = self.id_bytes <= 17;
                let more = if short { 0 } else { u64::from(fields.byte()?) };
                let bytes = if short { u64::from(first & 15) } else { u64::from(first & 15) << 8 | more };
                fields.take(bytes + 1).map(<[u8]>::to_vec)
            }
            kind => Err(fields.wrong("a known kind of object", format!("kind {kind}"))),
        }
    }

    fn wrong(&self, expected: &str, found: String) -> Error {
        self.fetcher.context.corrupt(format!("{expected} in the fractal heap at byte {}", self.at), found)
    }

    /// Where objects are in blocks.
    fn managed(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let missing = || self.wrong("an object", format!("none of {bytes} B at offset {offset}"));
        let mut at = self.root.ok_or_else(missing)?;
        let (mut rows, mut base, mut block_bytes) = (self.root_rows, 0, self.first_bytes);
        let mut levels = 64;
        while rows > 0 {
            levels = i32::checked_sub(levels, 1).filter(|&left| left > 0).ok_or_else(missing)?;
            let (row, column, begin) =
                self.position(offset - base).filter(|found| found.0 < rows).ok_or_else(missing)?;
            let table = self.table(at, rows)?;
            let mut fields = self.fetcher.fields(&table, "fractal heap");
            fields.skip((row * self.width + column) * u64::from(self.fetcher.widths.offset))?;
            at = fields.address()?.ok_or_else(missing)?;
            base += begin;
            block_bytes = self.block_bytes(row).ok_or_else(missing)?;
            rows =
                if block_bytes <= self.direct_bytes_max { 0 } else { self.rows_of(block_bytes).ok_or_else(missing)? };
        }
        let block = self.direct(at, block_bytes)?;
        let inside = usize::try_from(offset - base).ok().zip(usize::try_from(bytes).ok());
        let object = inside.and_then(|(from, bytes)| block.get(from..from.checked_add(bytes)?));
        self.fetcher.spend(bytes)?;
        object.map(<[u8]>::to_vec).ok_or_else(missing)
    }

    /// Size of blocks in a row \[B\].
    fn block_bytes(&self, row: u64) -> Option<u64> {
        let doubled = u32::try_from(row.saturating_sub(1)).ok()?;
        self.first_bytes.checked_mul(1u64.checked_shl(doubled)?)
    }

    /// Row and column of the block with this offset in a table, and where the block begins.
    fn position(&self, offset: u64) -> Option<(u64, u64, u64)> {
        let row_bytes = self.first_bytes.checked_mul(self.width)?;
        let row = if offset < row_bytes { 0 } else { u64::from((offset / row_bytes).ilog2()) + 1 };
        let begin = if row == 0 { 0 } else { row_bytes.checked_mul(1u64.checked_shl(row as u32 - 1)?)? };
        let column = (offset - begin) / self.block_bytes(row)?;
        Some((row, column, begin + column * self.block_bytes(row)?))
    }

    /// How many rows a table has that stands for a block of so many bytes.
    fn rows_of(&self, block_bytes: u64) -> Option<u64> {
        let rows = block_bytes.ilog2().checked_sub((self.first_bytes.checked_mul(self.width)?).ilog2())? + 1;
        Some(rows.into())
    }

    /// The addresses in a table of blocks.
    pub(super) fn table(&self, at: u64, rows: u64) -> Result<Rc<[u8]>, Error> {
        let begin = 5 + u64::from(self.fetcher.widths.offset) + u64::from(self.offset_width);
        let entries = (rows * self.width).checked_mul(self.fetcher.widths.offset.into());
        let bytes = entries.and_then(|bytes| bytes.checked_add(begin + 4));
        let bytes = bytes.ok_or_else(|| self.wrong("tables within the file", format!("{rows} rows")))?;
        self.fetcher.kept(at, || {
            let block = self.fetcher.block(at, bytes, b"FHIB")?;
            self.fetcher.verified(at, &block).map(|body| body[begin as usize..].to_vec())
        })
    }

    /// A block of objects, whose checksum is in its head and counts as zero.
    pub(super) fn direct(&self, at: u64, bytes: u64) -> Result<Rc<[u8]>, Error> {
        self.fetcher.kept(at, || {
            let mut block = self.fetcher.block(at, bytes, b"FHDB")?;
            let begin = 5 + usize::from(self.fetcher.widths.offset) + usize::from(self.offset_width);
            if let Some(field) = block.get_mut(begin..begin + 4).filter(|_| self.has_checksums) {
                let stored = field.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte));
                field.fill(0);
                self.fetcher.compare(at, stored, lookup3(&block))?;
            }
            Ok(block)
        })
    }

    /// Objects too large for blocks, each by itself.
    fn huge(&self, id: &[u8]) -> Result<Vec<u8>, Error> {
        let widths = self.fetcher.widths;
        let mut fields = self.fetcher.fields(id, "heap ID");
        fields.skip(1)?;
        if u64::from(widths.offset) + u64::from(widths.length) < self.id_bytes() {
            let (at, bytes) = (fields.place()?, fields.length()?);
            return self.fetcher.bytes(at, bytes);
        }
        let number = fields.number((id.len() - 1).min(8) as u8)?;
        let all = match self.huge.get() {
            Some(known) => known,
            None => {
                let read = self.huge_records()?;
                self.huge.get_or_init(|| read)
            }
        };
        let found = all.get(&number);
        let &(at, bytes) = found.ok_or_else(|| self.wrong("a huge object", format!("none of number {number}")))?;
        self.fetcher.bytes(at, bytes)
    }

    fn huge_records(&self) -> Result<BTreeMap<u64, (u64, u64)>, Error> {
        let tree = self.huge_tree.ok_or_else(|| self.wrong("a tree of huge objects", "none".into()))?;
        let (_, records) = all_records(self.fetcher, tree, &[1])?;
        let one = |record: &Vec<u8>| {
            let mut fields = self.fetcher.fields(record, "record of a huge object");
            let (at, bytes) = (fields.place()?, fields.length()?);
            Ok((fields.length()?, (at, bytes)))
        };
        records.iter().map(one).collect()
    }
}
