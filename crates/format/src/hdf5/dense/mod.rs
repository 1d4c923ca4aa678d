//! Links of groups that have many: in a fractal heap, with a tree that finds them by their names, and one by the order in which they
//! were made (sections III.A.2, III.G and IV.A.2.c of the specification).
//!
//! ```text
//! root block = head of the heap | head of the tree of names | head of the tree of order     in one sector, stays where it is
//! behind     = blocks and tables of the heap, nodes of the trees                            never overwritten
//! ```
//!
//! A link that is added changes the last block of the heap, a leaf of each tree, and what leads there: a few KiB, however many there
//! are. All of it is made anew behind the end of the file. Then the root block is overwritten by one write that a disk carries out
//! whole or not at all, and so the link is there. The table of symbols of the oldest format could not grow so: its names lie in one
//! stretch, which is copied when it is full, and it does not know in which order links were made.

mod attributes;
mod behind;
mod heap;
mod policy;
mod tree;

use super::content::MetadataSource;
use super::lookup3::lookup3;
use super::policy::SECTOR_BYTES;
use super::reading::{ChildNode, DensePlaces, Hdf5File, StoredDense};
use crate::error::{Context, Error};
pub(super) use attributes::{LargeAttribute, large_attributes};
use behind::BehindEnd;
use heap::{GrowingHeap, HeapParts};
use policy::{BLOCK_BYTES, BY_NAME, BY_ORDER, NAMES_AT, NODE_BYTES, ORDERS_AT, ROOT_BYTES};
pub(super) use policy::{COMPACT_MAX, OBJECT_BYTES_MAX, ORDER_AHEAD};
use std::cmp::Ordering;
use tree::GrowingTree;

/// Links that are made so.
pub(super) struct DenseLinks<'a> {
    stored: Option<StoredDense<'a>>,
    heap: GrowingHeap,
    names: GrowingTree,
    orders: Option<GrowingTree>,
}

/// What was made of links.
pub(super) struct MadeLinks {
    /// What lies behind, from the given address on. Of links that are new, the root block is its beginning.
    pub(super) behind: Vec<u8>,
    pub(super) places: DensePlaces,
    /// The root block.
    pub(super) root: Vec<u8>,
}

impl<'a> DenseLinks<'a> {
    /// None yet; where their order is counted and can be looked up, `ordered`.
    pub(super) fn new(ordered: bool) -> DenseLinks<'a> {
        let orders = ordered.then(|| GrowingTree::new(BY_ORDER.0, BY_ORDER.1));
        let names = GrowingTree::new(BY_NAME.0, BY_NAME.1);
        DenseLinks { stored: None, heap: GrowingHeap::default(), names, orders }
    }

    /// Those that lie in the file; `None` where they are not such as are made here, as those of other libraries.
    pub(super) fn stored(
        file: &Hdf5File,
        source: &'a dyn MetadataSource,
        places: DensePlaces,
    ) -> Result<Option<DenseLinks<'a>>, Error> {
        let DensePlaces { heap, names, orders } = places;
        let is_one = names == heap + NAMES_AT && orders.is_none_or(|orders| orders == heap + ORDERS_AT);
        if !is_one || heap / SECTOR_BYTES != (heap + ROOT_BYTES - 1) / SECTOR_BYTES {
            return Ok(None);
        }
        let stored = StoredDense::of(file, source, places);
        let Some(heap) = GrowingHeap::stored(&stored.heap()?).filter(|heap| !heap.is_full()) else { return Ok(None) };
        let tree = |at: u64, (kind, bytes): (u8, usize)| -> Result<Option<GrowingTree>, Error> {
            let head = stored.tree(at)?;
            let depth = head.root.map_or(0, |root| root.level);
            let is_such = (head.kind, head.record_bytes, head.node_bytes) == (kind, bytes as u64, NODE_BYTES as u64)
                && GrowingTree::can_grow(depth);
            Ok(is_such.then(|| GrowingTree::stored(kind, bytes, head.root)))
        };
        let Some(names) = tree(names, BY_NAME)? else { return Ok(None) };
        let orders = match orders.map(|at| tree(at, BY_ORDER)).transpose()? {
            Some(None) => return Ok(None),
            orders => orders.flatten(),
        };
        Ok(Some(DenseLinks { stored: Some(stored), heap, names, orders }))
    }

    /// The number of the next link, where the order can be looked up.
    pub(super) fn next_order(&mut self) -> Result<Option<u64>, Error> {
        let (stored, places) = (&self.stored, self.places());
        let load = |node: ChildNode| load(stored.as_ref(), places.and_then(|places| places.orders), node);
        let Some(orders) = &mut self.orders else { return Ok(None) };
        let last = orders.last(&load)?;
        let number = last.and_then(|record| record.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)));
        Ok(Some(number.map_or(0, |number| number.saturating_add(1))))
    }

    fn places(&self) -> Option<DensePlaces> {
        self.stored.as_ref().map(StoredDense::places)
    }

    /// Adds the message of a link, whose order is counted where that can be looked up.
    pub(super) fn add(&mut self, name: &[u8], order: Option<u64>, message: &[u8]) -> Result<(), Error> {
        let places = self.places();
        let stored = self.stored.as_ref();
        let id = self.heap.keep(message, stored.map(|stored| stored as &dyn HeapParts))?;
        let hash = lookup3(name);
        let heap = &self.heap;
        let by_name = |record: &[u8]| -> Result<Ordering, Error> {
            let known = record.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            if known != hash {
                return Ok(known.cmp(&hash));
            }
            // Of names with one hash, the smaller one comes first.
            let other = match (heap.open_object(&record[4..]), stored) {
                (Some(object), _) => object.to_vec(),
                (None, Some(stored)) => stored.object(&record[4..])?,
                (None, None) => Vec::new(),
            };
            Ok(link_name(&other).cmp(name))
        };
        let record = [&hash.to_le_bytes()[..], &id].concat();
        let names_at = places.map(|places| places.names);
        self.names.insert(record, &by_name, &|node| load(stored, names_at, node))?;
        if let (Some(orders), Some(order)) = (&mut self.orders, order) {
            let by_order =
                |record: &[u8]| Ok(record.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)).cmp(&order));
            let record = [&order.to_le_bytes()[..], &id].concat();
            let orders_at = places.and_then(|places| places.orders);
            orders.insert(record, &by_order, &|node| load(stored, orders_at, node))?;
        }
        Ok(())
    }

    /// All of it, from this address on, which begins a sector where links are new.
    pub(super) fn made(&self, at: u64) -> Result<MadeLinks, Error> {
        let mut behind = BehindEnd { at, bytes: Vec::new() };
        let heap = match &self.stored {
            Some(stored) => stored.places().heap,
            None => behind.put(&[0; ROOT_BYTES as usize]),
        };
        let parts = self.stored.as_ref().map(|stored| stored as &dyn HeapParts);
        let mut root = self.heap.made(heap, &mut behind, parts)?;
        root.resize(NAMES_AT as usize, 0);
        root.extend(self.names.made(&mut behind));
        if let Some(orders) = &self.orders {
            root.resize(ORDERS_AT as usize, 0);
            root.extend(orders.made(&mut behind));
        }
        let mut behind = behind.bytes;
        if self.stored.is_none() {
            behind[..root.len()].copy_from_slice(&root);
        }
        let orders = self.orders.as_ref().map(|_| heap + ORDERS_AT);
        Ok(MadeLinks { behind, places: DensePlaces { heap, names: heap + NAMES_AT, orders }, root })
    }
}

impl HeapParts for StoredDense<'_> {
    fn table(&self, at: u64, rows: u64) -> Result<Vec<u64>, Error> {
        self.heap_table(at, rows)
    }

    fn block(&self, at: u64) -> Result<Vec<u8>, Error> {
        self.heap_block(at, BLOCK_BYTES as u64)
    }
}

/// A node of the tree at this address.
fn load(stored: Option<&StoredDense>, tree: Option<u64>, node: ChildNode) -> Result<super::reading::StoredNode, Error> {
    match (stored, tree) {
        (Some(stored), Some(tree)) => stored.node(tree, node),
        _ => Err(Context::new("change an HDF5 group", "").corrupt("a tree in the file", "none")),
    }
}

/// When the link of a message was made, where it says that.
pub(super) fn link_order(message: &[u8]) -> Option<u64> {
    let flags = *message.get(1)?;
    let at = 2 + usize::from(flags & 8 != 0);
    (flags & 4 != 0).then(|| message.get(at..at + 8)?.first_chunk().map(|order| u64::from_le_bytes(*order)))?
}

/// The name in the message of a link.
pub(super) fn link_name(message: &[u8]) -> &[u8] {
    let name = || {
        let flags = *message.get(1)?;
        let optional = [(8, 1), (4, 8), (16, 1)].iter().filter(|(bit, _)| flags & bit != 0);
        let at = 2 + optional.map(|(_, bytes)| bytes).sum::<usize>();
        let width = 1 << (flags & 3);
        let length = message.get(at..at + width)?.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        message.get(at + width..)?.get(..length)
    };
    name().unwrap_or_default()
}
