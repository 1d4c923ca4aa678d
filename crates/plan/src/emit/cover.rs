//! What is read and written for the sake of short runs: the shortest contiguous part of a file that covers them.

use crate::transfer::{Ask, Stored};
use crate::units::Unit;
use hyperslab_layout::{Axis, Region, Triplet, View, dense_strides};

/// A box of a stored array that is contiguous in the file.
pub(crate) struct Cover {
    pub(crate) low: Vec<u64>,
    pub(crate) extent: Vec<u64>,
}

impl Cover {
    /// The smallest that holds a piece of a unit.
    pub(crate) fn of(ask: &Ask, unit: &Unit, region: &Region) -> Cover {
        Cover::of_all(ask, unit, std::iter::once(region))
    }

    /// The smallest that holds these pieces of a unit.
    pub(crate) fn of_all<'a>(ask: &Ask, unit: &Unit, regions: impl Iterator<Item = &'a Region> + Clone) -> Cover {
        let (mut low, mut extent) = (unit.low.clone(), unit.extent.clone());
        for &d in &ask.stored.order {
            let hulls = regions.clone().filter_map(|region| region.dims[d].hull());
            let Some((a, b)) = hulls.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))) else { break };
            let triplet = ask.section.dims[d];
            let (first, last) = (triplet.select(a), triplet.select(b - 1));
            (low[d], extent[d]) = (first, last + 1 - first);
            // Behind the slowest dimension that varies, only whole rows are contiguous.
            if extent[d] > 1 {
                break;
            }
        }
        Cover { low, extent }
    }

    pub(crate) fn elements(&self) -> u64 {
        self.extent.iter().product()
    }

    /// The box as its own index space.
    pub(crate) fn whole(&self) -> Region {
        Region::whole(&self.extent)
    }

    /// That index space in the file.
    pub(crate) fn in_file(&self, stored: &Stored, offset: u64) -> View {
        self.inside(stored, &stored.shape, &vec![0; self.low.len()], offset)
    }

    /// That index space in a slot that holds all of a unit from this byte on.
    pub(crate) fn in_unit(&self, stored: &Stored, unit: &Unit, base: u64) -> View {
        self.inside(stored, &unit.extent, &unit.low, base)
    }

    /// That index space where a box of this shape, from this index on, is stored densely.
    fn inside(&self, stored: &Stored, shape: &[u64], from: &[u64], base: u64) -> View {
        let strides = dense_strides(shape, &stored.order, stored.element.bytes());
        let steps = self.low.iter().zip(from).zip(&strides);
        let first: i64 = steps.map(|((&low, &from), stride)| (low - from) as i64 * stride).sum();
        let axes = self.extent.iter().zip(strides).map(|(&n, stride)| (Axis::Selected(Triplet::whole(n), 0), stride));
        View { base: base as i64 + first, axes: axes.collect(), element: stored.element }
    }
}
