//! What is read and written for the sake of short runs: the shortest contiguous part of a file that covers them.

use crate::transfer::TransferArray;
use crate::units::Unit;
use hyperslab_layout::{Region, Stored, View};

/// A box of a stored array that is contiguous in the file.
pub(crate) struct Cover {
    pub(crate) low: Vec<u64>,
    pub(crate) extent: Vec<u64>,
}

impl Cover {
    /// The smallest that holds a piece of a unit.
    pub(crate) fn of(ask: &TransferArray, unit: &Unit, region: &Region) -> Cover {
        Cover::of_all(ask, unit, std::iter::once(region))
    }

    /// The smallest that holds these pieces of a unit.
    pub(crate) fn of_all<'a>(
        ask: &TransferArray,
        unit: &Unit,
        regions: impl Iterator<Item = &'a Region> + Clone,
    ) -> Cover {
        let (mut low, mut extent) = (unit.low.clone(), unit.extent.clone());
        for &d in ask.stored.order() {
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
    pub(crate) fn in_file(&self, stored: &Stored) -> View {
        stored.part_of_object(&self.low, &self.extent)
    }

    /// That index space in a slot that holds all of a unit from this byte on.
    pub(crate) fn in_unit(&self, stored: &Stored, unit: &Unit, base: u64) -> View {
        let low: Vec<u64> = self.low.iter().zip(&unit.low).map(|(&low, &from)| low - from).collect();
        stored.part_of_box(&low, &self.extent, &unit.extent, base)
    }
}
