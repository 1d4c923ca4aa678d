//! Reads of lists: many short runs in no order, each with a place of its own.
//!
//! What is made and looked at for one run takes longer than to copy it. So stretches of the file, with all that lies between the runs,
//! are had in memory, and each is taken apart as one batch.

use hyperslab_layout::{Axis, IndexSet, Region, View};
use hyperslab_pack::{CopyError, Memory, copy_region};
use hyperslab_world::Moves;
use std::sync::Arc;

/// How many times more than what is wanted a list may span, so that all of it is had in memory: of each line of the processor's
/// cache an element.
const SPREAD: u64 = 8;

/// What is read by a list.
pub(super) struct ListRead<'a> {
    moves: &'a Moves,
    set: &'a IndexSet,
    /// From the first byte that is wanted to the one behind the last.
    pub(super) hull: (u64, u64),
}

impl<'a> ListRead<'a> {
    /// What moves, if it is a list of one dimension whose runs lie near each other, at rising offsets.
    pub(super) fn of(moves: &'a Moves) -> Option<ListRead<'a>> {
        let ([set], [(there, step)], [(here, _)]) =
            (&moves.region.dims[..], &moves.there.axes[..], &moves.here.axes[..])
        else {
            return None;
        };
        let is_list = set.scattered_runs().is_some() || matches!(here, Axis::Scattered(_));
        let rises = match there {
            Axis::Owned(held) => held.as_range().is_some(),
            Axis::Selected(triplet, _) => triplet.block == 1 || triplet.count <= 1,
            Axis::Folded(..) | Axis::Listed(_) | Axis::Scattered(_) => false,
        };
        if !is_list || !rises || *step <= 0 {
            return None;
        }
        let (low, high) = set.hull()?;
        let list = ListRead { moves, set, hull: (0, 0) };
        let list = ListRead { hull: list.stretch(low, high), ..list };
        (list.hull.1 - list.hull.0 <= moves.bytes().saturating_mul(SPREAD)).then_some(list)
    }

    /// The bytes of the object from one index up to another, of which the first and the last are there.
    fn stretch(&self, low: u64, high: u64) -> (u64, u64) {
        let at = |index: u64| self.moves.there.address(&[index]).max(0) as u64;
        (at(low), at(high - 1) + self.moves.there.element.bytes())
    }

    /// Parts that span at most so many bytes each, unless an element is larger: from which byte to which.
    pub(super) fn parts(&self, most: u64) -> impl Iterator<Item = (Region, (u64, u64))> {
        let (low, high) = self.set.hull().unwrap_or_default();
        let each = (most * (high - low) / (self.hull.1 - self.hull.0).max(1)).max(1);
        (low..high).step_by(each as usize).filter_map(move |from| {
            let part = self.set.within(from, (from + each).min(high));
            let (low, high) = part.hull()?;
            Some((Region { dims: [part].into_iter().collect() }, self.stretch(low, high)))
        })
    }

    /// Copies a part out of a memory that begins at this byte of the object.
    pub(super) fn take(&self, part: &Region, (begin, window): (u64, &Memory)) -> Result<(), CopyError> {
        let View { base, axes, element } = &*self.moves.there;
        let there = View { base: base - begin as i64, axes: axes.clone(), element: *element };
        copy_region(part, (window, &there), (&self.moves.memory, &Arc::clone(&self.moves.here)))
    }
}
