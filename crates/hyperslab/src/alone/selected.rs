//! A section, unit by unit: what of it lies in which chunk, and where.

use super::chunk_cache::ChunkKey;
use super::sieved::{self, Between};
use super::sight::{Sight, WantedSection};
use hyperslab_layout::stored::{Stored, Stretch};
use hyperslab_layout::{ElementType, Region, View, nests};
use hyperslab_pack::{Memory, copy, copy_region};
use hyperslab_world::{FileReader, FileSeen};
use std::sync::Arc;

/// Most units that are read here: of more, a transfer reads some while it copies others.
const UNITS_MAX: u64 = 256;

/// A part of a section that lies in one unit.
pub(super) struct TouchedUnit {
    /// Coordinates of the unit.
    pub(super) at: Vec<u64>,
    /// Its first element.
    pub(super) low: Vec<u64>,
    /// What is wanted of it, in indices of the section.
    pub(super) region: Region,
}

/// Where a unit lies.
pub(super) struct PlacedPart {
    pub(super) name: Arc<str>,
    pub(super) stretch: Option<Stretch>,
    /// Where the elements of the section lie in the object.
    pub(super) view: View,
    /// What its file is, where that was looked at.
    pub(super) now: Option<FileSeen>,
}

impl PlacedPart {
    pub(super) fn first(&self) -> u64 {
        self.stretch.map_or(0, |(first, _)| first)
    }

    pub(super) fn key(&self) -> ChunkKey {
        (self.name.clone(), self.first())
    }
}

/// What is read, unit by unit.
pub(super) struct SelectedParts<'a> {
    pub(super) wanted: &'a WantedSection<'a>,
    pub(super) counts: &'a [u64],
    /// Where the elements of the section shall lie.
    pub(super) to: View,
}

impl SelectedParts<'_> {
    /// The units that the section touches, if they are few.
    pub(super) fn units(&self, stored: &Stored) -> Option<Vec<TouchedUnit>> {
        let ndim = self.counts.len();
        let Some(chunk) = stored.chunk() else {
            let origin = vec![0; ndim];
            return Some(vec![TouchedUnit { at: origin.clone(), low: origin, region: Region::whole(self.counts) }]);
        };
        let mut along = Vec::with_capacity(ndim);
        for (triplet, extent) in self.wanted.section.dims.iter().zip(chunk) {
            // An index, a range, or single indices at equal distances.
            let (step, count) = match (triplet.count, triplet.block) {
                (1, block) => (1, block),
                (count, 1) => (triplet.stride, count),
                _ => return None,
            };
            along.push(touched(triplet.start, step, count, *extent)?);
        }
        let total = along.iter().try_fold(1_u64, |total, each| total.checked_mul(each.len() as u64))?;
        if total > UNITS_MAX {
            return None;
        }
        let unit = |mut number: u64| {
            let (mut at, mut bounds) = (vec![0; ndim], vec![(0, 0); ndim]);
            for (d, each) in along.iter().enumerate().rev() {
                (at[d], bounds[d]) = each[(number % each.len() as u64) as usize];
                number /= each.len() as u64;
            }
            let (low, high): (Vec<u64>, Vec<u64>) = bounds.into_iter().unzip();
            let first = at.iter().zip(chunk).map(|(at, extent)| at * extent).collect();
            TouchedUnit { region: Region::boxed(&low, &high), at, low: first }
        };
        Some((0..total).map(unit).collect())
    }

    /// Where what is wanted of a unit lies in memory, as far as side `b` goes; side `a` is one element.
    pub(super) fn fill(&self, unit: &TouchedUnit, stored: &Stored) -> Option<()> {
        let fill = Memory::from_vec(stored.fill.to_vec());
        let one = View { base: 0, axes: self.to.axes.iter().map(|(axis, _)| (axis.clone(), 0)).collect(), ..self.to };
        for nest in nests(&unit.region, &one, &self.to) {
            copy(&nest, &fill, stored.element, &self.wanted.into.memory, self.to.element).ok()?;
        }
        Some(())
    }

    /// Copies out of a chunk that is in memory.
    pub(super) fn copy(&self, elements: &Memory, found: &PlacedPart, unit: &TouchedUnit) -> Option<()> {
        let view = View { base: found.view.base - found.first() as i64, ..found.view.clone() };
        copy_region(&unit.region, (elements, &view), (&self.wanted.into.memory, &self.to)).ok()
    }

    pub(super) fn cost_ns(&self, found: &PlacedPart, unit: &TouchedUnit, element: ElementType) -> Option<f64> {
        nests(&unit.region, &found.view, &self.to).map(|nest| sieved::cost_ns(&nest, element.bytes())).sum()
    }

    /// Reads what is wanted of a unit whose bytes are its elements.
    pub(super) fn read(
        &self,
        sight: &Sight,
        found: &PlacedPart,
        unit: &TouchedUnit,
        element: ElementType,
        between: &Between,
    ) -> Option<()> {
        let opened;
        let file: &dyn FileReader = match &sight.file {
            Some(file) => &**file,
            None => match self.wanted.names.reader(&found.name).ok()? {
                Some((_, file)) => {
                    opened = file;
                    &*opened
                }
                None => return self.fill(unit, &sight.stored),
            },
        };
        for nest in nests(&unit.region, &found.view, &self.to) {
            sieved::read(file, &nest, element, (&self.wanted.into.memory, self.to.element), between)?;
        }
        Some(())
    }
}

/// The chunks of this extent along a dimension in which indices of a progression lie, and which of these: coordinates and the
/// numbers of the first and behind the last.
fn touched(start: u64, step: u64, count: u64, extent: u64) -> Option<Vec<(u64, (u64, u64))>> {
    let mut found = Vec::new();
    let mut number = 0;
    while number < count {
        let at = (start + number * step) / extent;
        let behind = ((at + 1).saturating_mul(extent) - start).div_ceil(step).min(count);
        found.push((at, (number, behind)));
        if found.len() as u64 > UNITS_MAX {
            return None;
        }
        number = behind;
    }
    Some(found)
}
