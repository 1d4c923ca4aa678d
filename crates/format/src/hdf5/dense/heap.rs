//! Fractal heaps that grow (section III.G of the specification): what is added goes to the end of the last block, which is made anew
//! with the tables on the way there; all other blocks stay where they are.
//!
//! Two blocks are in a row of a table. All blocks of objects have one size, so that the number of a block follows from an offset.

use super::behind::BehindEnd;
use super::policy::{BLOCK_BYTES, ID_BYTES, OBJECT_BYTES_MAX, OFFSET_BITS, ROOM_BYTES, WIDTH};
use crate::error::Error;
use crate::hdf5::content::NOWHERE;
use crate::hdf5::lookup3::{checked, lookup3};
use crate::hdf5::reading::StoredHeap;
use std::collections::BTreeMap;

/// A heap that grows.
#[derive(Default)]
pub(super) struct GrowingHeap {
    /// Address of the root table, and its rows.
    root: Option<u64>,
    rows: u64,
    /// How many blocks of objects there are, and how many bytes the last one has left \[B\].
    blocks: u64,
    left: u64,
    objects: u64,
    /// Blocks that are new or change, by their numbers.
    open: BTreeMap<u64, Vec<u8>>,
}

/// How the file is read: tables of so many rows, and blocks.
pub(super) trait HeapParts {
    fn table(&self, at: u64, rows: u64) -> Result<Vec<u64>, Error>;
    fn block(&self, at: u64) -> Result<Vec<u8>, Error>;
}

impl GrowingHeap {
    /// One that lies in the file; `None` where it is not such as is made here.
    pub(super) fn stored(head: &StoredHeap) -> Option<GrowingHeap> {
        let usual = head.fixed == fixed() && head.object_bytes_max == OBJECT_BYTES_MAX as u64 && head.is_plain;
        let blocks = head.next / BLOCK_BYTES as u64;
        let rows = rows_of(blocks);
        let covered = 1u64.checked_shl(rows as u32)?;
        let left = head.free.checked_sub(covered.checked_sub(blocks)? * ROOM_BYTES)?;
        let fits = head.next.is_multiple_of(BLOCK_BYTES as u64)
            && head.next == head.given
            && head.all == covered * BLOCK_BYTES as u64;
        let is_such = usual && fits && blocks > 0 && head.rows == rows && left <= ROOM_BYTES;
        let heap = || GrowingHeap { root: head.root, rows, blocks, left, objects: head.objects, open: BTreeMap::new() };
        (is_such && head.root.is_some()).then(heap)
    }

    /// Whether no object of so many bytes has a place any more.
    pub(super) fn is_full(&self) -> bool {
        self.blocks >= (1 << OFFSET_BITS) / BLOCK_BYTES as u64 - 1
    }

    /// Keeps an object; gives what it is found by.
    pub(super) fn keep(&mut self, object: &[u8], parts: Option<&dyn HeapParts>) -> Result<[u8; ID_BYTES], Error> {
        debug_assert!(object.len() <= OBJECT_BYTES_MAX);
        let bytes = object.len() as u64;
        if self.blocks > 0 && bytes <= self.left && !self.open.contains_key(&(self.blocks - 1)) {
            let block = self.load(self.blocks - 1, parts)?;
            let is_free =
                block.len() == BLOCK_BYTES && block.iter().rev().take(self.left as usize).all(|byte| *byte == 0);
            // What somebody else has put there stays.
            self.left = if is_free { self.left } else { 0 };
            if is_free {
                self.open.insert(self.blocks - 1, block);
            }
        }
        if self.blocks == 0 || bytes > self.left {
            self.open.insert(self.blocks, vec![0; BLOCK_BYTES]);
            (self.blocks, self.left) = (self.blocks + 1, ROOM_BYTES);
        }
        let number = self.blocks - 1;
        let within = BLOCK_BYTES - self.left as usize;
        let block = self.open.get_mut(&number).expect("the last block is open");
        block[within..within + object.len()].copy_from_slice(object);
        self.left -= bytes;
        self.objects += 1;
        let mut id = [0; ID_BYTES];
        id[1..5].copy_from_slice(&((number * BLOCK_BYTES as u64) as u32 + within as u32).to_le_bytes());
        id[5..].copy_from_slice(&(bytes as u16).to_le_bytes());
        Ok(id)
    }

    /// An object that lies in a block that is new or changes.
    pub(super) fn open_object(&self, id: &[u8]) -> Option<&[u8]> {
        let offset = u32::from_le_bytes(*id.get(1..5)?.first_chunk()?) as usize;
        let bytes = u16::from_le_bytes(*id.get(5..7)?.first_chunk()?) as usize;
        let block = self.open.get(&((offset / BLOCK_BYTES) as u64))?;
        block.get(offset % BLOCK_BYTES..offset % BLOCK_BYTES + bytes)
    }

    /// A block of the file.
    fn load(&self, number: u64, parts: Option<&dyn HeapParts>) -> Result<Vec<u8>, Error> {
        let (Some(parts), Some(mut at)) = (parts, self.root) else { return Ok(Vec::new()) };
        let (mut rows, mut first) = (self.rows, 0);
        loop {
            let table = parts.table(at, rows)?;
            let mut entries = entries(rows, first).zip(&table);
            let found = entries.find(|((begin, row), _)| (*begin..begin + span(*row)).contains(&number));
            let Some(((begin, row), &inner)) = found else { return Ok(Vec::new()) };
            if row < 2 {
                return parts.block(inner);
            }
            (at, rows, first) = (inner, row - 1, begin);
        }
    }

    /// Puts the blocks and tables that are new behind; gives the head of the heap, which lies at this address.
    pub(super) fn made(
        &self,
        at: u64,
        behind: &mut BehindEnd,
        parts: Option<&dyn HeapParts>,
    ) -> Result<Vec<u8>, Error> {
        let mut places = BTreeMap::new();
        for (number, block) in &self.open {
            let mut block = block.clone();
            block[..5].copy_from_slice(b"FHDB\0");
            block[5..13].copy_from_slice(&at.to_le_bytes());
            block[13..17].copy_from_slice(&((number * BLOCK_BYTES as u64) as u32).to_le_bytes());
            // The checksum counts as zero in itself.
            block[17..21].fill(0);
            let sum = lookup3(&block);
            block[17..21].copy_from_slice(&sum.to_le_bytes());
            places.insert(*number, behind.put(&block));
        }
        let rows = rows_of(self.blocks);
        let root = TablePass { heap: at, parts, places: &places, behind };
        let root = root.table((self.root, self.rows), rows, 0)?;
        Ok(self.head(root, rows))
    }

    fn head(&self, root: u64, rows: u64) -> Vec<u8> {
        let covered = 1 << rows;
        let block = BLOCK_BYTES as u64;
        let mut head = b"FRHP\0".to_vec();
        head.extend((ID_BYTES as u16).to_le_bytes());
        // No filters; blocks have checksums.
        head.extend([0, 0, 2]);
        head.extend((OBJECT_BYTES_MAX as u32).to_le_bytes());
        // Huge objects, and what is free: there is no list of it.
        let free = (covered - self.blocks) * ROOM_BYTES + self.left;
        for number in [0, NOWHERE, free, NOWHERE, covered * block, self.blocks * block, self.blocks * block] {
            head.extend(number.to_le_bytes());
        }
        for number in [self.objects, 0, 0, 0, 0] {
            head.extend(number.to_le_bytes());
        }
        head.extend(fixed());
        head.extend(root.to_le_bytes());
        head.extend((rows as u16).to_le_bytes());
        checked(head)
    }
}

/// What the heads of all heaps that are made here say of their tables.
fn fixed() -> Vec<u8> {
    let mut fixed = (WIDTH as u16).to_le_bytes().to_vec();
    fixed.extend((BLOCK_BYTES as u64).to_le_bytes());
    fixed.extend((BLOCK_BYTES as u64).to_le_bytes());
    fixed.extend(OFFSET_BITS.to_le_bytes());
    fixed.extend(1u16.to_le_bytes());
    fixed
}

/// How many rows a table of so many blocks has: with each row it has twice as many.
fn rows_of(blocks: u64) -> u64 {
    u64::from(blocks.max(2).next_power_of_two().ilog2())
}

/// How many blocks of objects lie below an entry of a row.
fn span(row: u64) -> u64 {
    1 << row.saturating_sub(1)
}

/// The entries of a table that begins with this block of objects: the first one below each, and the row.
fn entries(rows: u64, first: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut next = first;
    (0..rows * WIDTH).map(move |number| {
        let row = number / WIDTH;
        let begin = next;
        next += span(row);
        (begin, row)
    })
}

/// Makes the tables that lead to blocks which lie elsewhere now.
struct TablePass<'a, 'b> {
    heap: u64,
    parts: Option<&'a dyn HeapParts>,
    places: &'a BTreeMap<u64, u64>,
    behind: &'b mut BehindEnd,
}

impl TablePass<'_, '_> {
    fn table(self, old: (Option<u64>, u64), rows: u64, first: u64) -> Result<u64, Error> {
        let TablePass { heap, parts, places, behind } = self;
        let mut table = match (old, parts) {
            ((Some(at), rows), Some(parts)) => parts.table(at, rows)?,
            _ => Vec::new(),
        };
        table.resize((rows * WIDTH) as usize, NOWHERE);
        for ((begin, row), entry) in entries(rows, first).zip(&mut table) {
            if places.range(begin..begin + span(row)).next().is_none() {
                continue;
            }
            *entry = match row {
                0 | 1 => places[&begin],
                _ => {
                    let old = Some(*entry).filter(|at| *at != NOWHERE);
                    let inner = TablePass { heap, parts, places, behind: &mut *behind };
                    inner.table((old, row - 1), row - 1, begin)?
                }
            };
        }
        let mut bytes = b"FHIB\0".to_vec();
        bytes.extend(heap.to_le_bytes());
        bytes.extend(((first * BLOCK_BYTES as u64) as u32).to_le_bytes());
        table.iter().for_each(|at| bytes.extend(at.to_le_bytes()));
        Ok(behind.put(&checked(bytes)))
    }
}
