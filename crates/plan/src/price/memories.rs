//! Where elements lie on ranks, and what of it stays in the processor's cache.

use super::classes::Class;
use super::moved::Moved;
use super::stretches::LINE_BYTES;
use super::terms::{Memory, MemoryLayout, Priced};
use super::tiles::Tiles;
use crate::transfer::{Direction, Spread, Transfer, TransferArray};
use hyperslab_layout::{Axis, Region, View, dense_strides};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Arrays up to this size, and buffers, those of all ranks that share a core together, stay in the processor's cache from one
/// round to the next \[B\].
pub(super) const CACHED_BYTES: u64 = 4 << 20;

/// Where elements lie on ranks.
pub(super) struct Memories {
    pub(super) transfer: Arc<Transfer>,
    /// By array.
    laid: Vec<Option<MemoryLayout>>,
    /// Ranks that share a core.
    pub(super) sharers: u64,
    /// Whether reads may be mapped.
    pub(super) maps_files: bool,
    /// Whether each array has one chunk.
    pub(super) single: bool,
    pub(super) tiles: Vec<Option<Tiles>>,
    known: RefCell<BTreeMap<(u32, u32), Arc<View>>>,
}

impl Memories {
    pub(super) fn new(class: &Class, memory: Memory<'_>, priced: Priced<'_>) -> Memories {
        let (transfer, tiles) = (class.some.clone(), class.tiles.clone());
        let laid = class.members.iter().map(|&number| memory(number)).collect();
        let one = |ask: &TransferArray| {
            let chunk = ask.stored.chunk().filter(|_| ask.stored.has_object_for_each_chunk());
            chunk.is_some_and(|chunk| chunk.iter().zip(&ask.stored.shape).all(|(chunk, extent)| chunk >= extent))
        };
        let single = transfer.asks.iter().all(one);
        let machine = priced.machine;
        let sharers = machine.ranks_per_node.min(transfer.ranks).div_ceil(machine.cores_per_node.max(1));
        let sharers = u64::from(sharers.max(1));
        Memories { transfer, laid, sharers, maps_files: machine.maps_files, single, tiles, known: RefCell::default() }
    }

    /// A rank's part up to this size stays in the processor's cache \[B\].
    pub(super) fn cached_bytes(&self) -> u64 {
        CACHED_BYTES / self.sharers
    }

    /// Lines of a user's array of which a copy of a rank's own moves a part, of an array that does not stay in the cache; of lines
    /// that are only read, half as many. What copies touch may stay until later ones move the rest of the lines.
    pub(super) fn part_lines(&self, moved: &Moved, region: &Region, (rank, array): (u32, u32)) -> u64 {
        if self.part_bytes(rank, array) <= self.cached_bytes() {
            return 0;
        }
        let stay = |lines: u64| lines * LINE_BYTES + moved.bytes <= self.cached_bytes();
        let all = if stay(moved.array_lines) { self.all_and_pass(region, rank, array) } else { None };
        let part = match all.filter(|(_, pass)| stay(pass.array_lines)) {
            Some((all, _)) => all.array_part_lines() * moved.array_bytes / all.array_bytes.max(1),
            None => moved.array_part_lines(),
        };
        if self.transfer.direction == Direction::Write { part.div_ceil(2) } else { part }
    }

    /// What a rank moves of an array, all of it at once; and what it moves from a copy to that which moves the neighbours in memory of
    /// the same elements: dimensions that are faster in storage than the one along which these lie have been gone through. Nothing
    /// where pieces have no closed form.
    fn all_and_pass(&self, region: &Region, rank: u32, array: u32) -> Option<(Moved, Moved)> {
        let ask = self.transfer.asks.get(array as usize)?;
        let owned = ask.spread.regular()?.owned(rank);
        let view = self.view(rank, array)?;
        let several = |&d: &usize| owned.dims[d].len() > 1;
        let nearest = (0..owned.ndim()).filter(several).min_by_key(|&d| view.axes[d].1.unsigned_abs())?;
        let faster = ask.stored.order().iter().skip_while(|&&d| d != nearest).skip(1);
        let mut pass = region.clone();
        faster.for_each(|&d| pass.dims[d] = owned.dims[d].clone());
        let lines = |region: &Region| {
            let mut moved = Moved::nothing(rank);
            moved.add(region, &view, (&view, true));
            moved
        };
        Some((lines(&owned), lines(&pass)))
    }

    /// How much memory a rank's part takes of an array, with what is interleaved \[B\].
    fn part_bytes(&self, rank: u32, array: u32) -> u64 {
        let held = |axis: &Axis| match axis {
            Axis::Owned(set) | Axis::Folded(set, _) => set.len(),
            Axis::Listed(list) => list.iter().map(|entry| entry.term.elements()).sum(),
            Axis::Scattered(places) => places.elements(),
            Axis::Selected(..) => 1,
        };
        // Those of tiles are of the whole array.
        let parts = if self.tiles(array).is_some() { u64::from(self.transfer.ranks.max(1)) } else { 1 };
        self.view(rank, array).map_or(0, |view| {
            let elements = view.axes.iter().map(|(axis, _)| held(axis)).fold(1, u64::saturating_mul);
            let spans = view.axes.iter().map(|(axis, stride)| held(axis).saturating_mul(stride.unsigned_abs()));
            spans.max().unwrap_or(0).max(elements.saturating_mul(view.element.bytes())) / parts
        })
    }

    /// Those of all arrays of a rank.
    pub(super) fn of(&self, rank: u32) -> Vec<Arc<View>> {
        (0..self.transfer.asks.len() as u32).filter_map(|array| self.view(rank, array)).collect()
    }

    pub(super) fn tiles(&self, array: u32) -> Option<&Tiles> {
        self.tiles.get(array as usize).and_then(Option::as_ref)
    }

    /// The view of an array on a rank.
    pub(super) fn view(&self, rank: u32, array: u32) -> Option<Arc<View>> {
        let ask = self.transfer.asks.get(array as usize)?;
        if let Some(tiles) = self.tiles(array) {
            return Some(tiles.view.clone());
        }
        let make = || {
            let region = match &ask.spread {
                Spread::Regular(distribution) => distribution.owned(rank),
                Spread::Explicit => Region::empty(ask.section.dims.len()),
            };
            let laid = self.laid.get(array as usize).and_then(Option::as_ref);
            let laid = laid.filter(|laid| laid.order.len() == region.ndim());
            let shape = region.shape();
            let dense = || dense_strides(&shape, &Vec::from_iter(0..shape.len()), ask.memory.bytes());
            let strides = laid.map_or_else(dense, |laid| laid.strides(&shape));
            Arc::new(View::held(&region, 0, &strides, ask.memory))
        };
        Some(self.known.borrow_mut().entry((rank, array)).or_insert_with(make).clone())
    }
}
