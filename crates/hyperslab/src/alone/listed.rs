//! Elements of an array that a list names, in any order: each chunk is read and decoded once, and its elements go right to where
//! they shall lie.

use super::resting::{FindChunks, Resting, contents, in_parallel};
use super::selected::{PlacedPart, SelectedParts, TouchedUnit};
use super::sight::{Sight, WantedSection};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::stored::{Stored, Strides};
use hyperslab_layout::{Loop, Nest, Region, View};
use hyperslab_pack::{Memory, copy, gather};
use hyperslab_world::FileReader;
use std::ops::Range;

/// What counts as a unit of an array that is not in chunks \[B\].
const STRETCH_BYTES: u64 = 1 << 20;
/// Of units that are not decoded, those of which so many bytes are wanted of each element are read element by element \[B\].
const APART_BYTES: u64 = 4 << 10;

/// Elements that a list names, by their numbers in the array, of which the last dimension is the fastest.
pub(crate) struct WantedElements<'a> {
    pub(crate) numbers: &'a [u64],
    /// Whether the user wants to stop.
    pub(crate) stop: &'a dyn Fn() -> bool,
}

/// Elements by the units in which they lie.
struct SortedElements {
    /// Coordinates of each unit, and which of the elements lie in it.
    units: Vec<(Vec<u64>, Range<usize>)>,
    /// Where each lies in its unit, and where it shall lie, in elements.
    from_at: Vec<u32>,
    to_at: Vec<u32>,
}

/// Units of an array: of one that is not in chunks, stretches of it as if it had one dimension.
struct UnitGrid<'a> {
    shape: &'a [u64],
    unit: Vec<u64>,
    counts: Vec<u64>,
    /// Distances between elements in a unit.
    strides: Vec<u64>,
}

impl<'a> UnitGrid<'a> {
    fn new(shape: &'a [u64], unit: Vec<u64>, order: &[usize]) -> Option<UnitGrid<'a>> {
        let mut strides = vec![0; unit.len()];
        let mut elements: u64 = 1;
        for &d in order.iter().rev() {
            strides[d] = elements;
            elements = elements.checked_mul(unit[d])?;
        }
        u32::try_from(elements).ok()?;
        let counts = shape.iter().zip(&unit).map(|(extent, unit)| extent.div_ceil(*unit)).collect();
        Some(UnitGrid { shape, unit, counts, strides })
    }

    /// The number of the unit in which an element lies, and where in it.
    fn place(&self, mut number: u64) -> (u64, u32) {
        let (mut unit, mut at, mut step) = (0, 0, 1);
        for d in (0..self.shape.len()).rev() {
            let index = number % self.shape[d];
            number /= self.shape[d];
            unit += index / self.unit[d] * step;
            at += index % self.unit[d] * self.strides[d];
            step *= self.counts[d];
        }
        (unit, at as u32)
    }

    fn coordinates(&self, mut number: u64) -> Vec<u64> {
        let mut at = vec![0; self.counts.len()];
        for d in (0..at.len()).rev() {
            at[d] = number % self.counts[d];
            number /= self.counts[d];
        }
        at
    }

    /// Sorts elements by their units; nothing where one lies outside.
    fn sorted(&self, numbers: &[u64]) -> Option<SortedElements> {
        let total = volume(self.shape)?;
        if numbers.iter().any(|number| *number >= total) || u32::try_from(numbers.len()).is_err() {
            return None;
        }
        let places: Vec<(u64, u32)> = numbers.iter().map(|number| self.place(*number)).collect();
        let to_at = in_order(&places, self.counts.iter().product());
        let from_at: Vec<u32> = to_at.iter().map(|at| places[*at as usize].1).collect();
        let (mut units, mut first) = (Vec::new(), 0);
        for each in to_at.chunk_by(|one, next| places[*one as usize].0 == places[*next as usize].0) {
            units.push((self.coordinates(places[each[0] as usize].0), first..first + each.len()));
            first += each.len();
        }
        Some(SortedElements { units, from_at, to_at })
    }
}

/// The numbers of elements in the order of the units in which they lie, of which there are so many.
fn in_order(places: &[(u64, u32)], units: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..places.len() as u32).collect();
    if places.is_sorted_by_key(|(unit, _)| *unit) {
        return order;
    }
    if units > 4 * places.len() as u64 {
        order.sort_by_key(|at| places[*at as usize].0);
        return order;
    }
    // Where those of each unit begin.
    let mut next = vec![0_u32; units as usize + 1];
    places.iter().for_each(|(unit, _)| next[*unit as usize + 1] += 1);
    (1..next.len()).for_each(|unit| next[unit] += next[unit - 1]);
    for (number, (unit, _)) in places.iter().enumerate() {
        let to = &mut next[*unit as usize];
        order[*to as usize] = number as u32;
        *to += 1;
    }
    order
}

impl Resting {
    /// Reads elements into a dense memory, in their order, if all that needs is at rest. `wanted` is all of the array.
    pub(crate) fn read_elements(
        &self,
        name: &str,
        (wanted, elements): (&WantedSection, &WantedElements),
        look: impl FnOnce() -> Option<Sight>,
        find: FindChunks,
    ) -> bool {
        self.sight(name, wanted, look).is_some_and(|sight| self.gather(&sight, wanted, elements, find).is_some())
    }

    fn gather(&self, sight: &Sight, wanted: &WantedSection, elements: &WantedElements, find: FindChunks) -> Option<()> {
        let (stored, into) = (&sight.stored, wanted.into);
        let (bytes, count) = (stored.element.bytes(), elements.numbers.len() as u64);
        let flat;
        let grid = match stored.chunk() {
            Some(chunk) => UnitGrid::new(&stored.shape, chunk.to_vec(), stored.order())?,
            None if stored.strides == Strides::row_major(stored.shape.len()) => {
                flat = [volume(&stored.shape)?];
                UnitGrid::new(&flat, vec![(STRETCH_BYTES / bytes).max(1)], &[0])?
            }
            None => return None,
        };
        let sorted = grid.sorted(elements.numbers)?;
        let whole = Region::whole(&stored.shape);
        // Where the elements shall lie is in the lists.
        let nowhere = View::held(&whole, 0, &vec![0; stored.shape.len()], into.element);
        let parts = SelectedParts { wanted, counts: &stored.shape, to: nowhere };
        let chunks = stored.chunk().is_some();
        let unit = |at: &Vec<u64>| TouchedUnit {
            low: if chunks { at.iter().zip(&grid.unit).map(|(at, unit)| at * unit).collect() } else { at.clone() },
            at: at.clone(),
            region: Region::empty(stored.shape.len()),
        };
        let units: Vec<TouchedUnit> = sorted.units.iter().map(|(at, _)| unit(at)).collect();
        let located = if chunks { sight.with_chunks(&units, find)? } else { stored.clone() };
        let jobs: Vec<_> = units.iter().zip(&sorted.units).map(|(unit, (_, range))| (unit, range.clone())).collect();
        // Some at a time, between which the user may want to stop.
        for some in jobs.chunks(2 * (wanted.hands as usize + 1)) {
            if (elements.stop)() {
                return None;
            }
            let done = in_parallel(some, wanted.hands, |(unit, range)| {
                let lists = (&sorted.from_at[range.clone()], &sorted.to_at[range.clone()]);
                self.gather_unit(sight, &located, &parts, unit, lists)
            });
            done.into_iter().collect::<Option<()>>()?;
        }
        if stored.element != into.element {
            let all =
                Nest { a: 0, b: 0, loops: [Loop { count, a: bytes as i64, b: bytes as i64 }].into_iter().collect() };
            copy(&all, &into.memory, stored.element, &into.memory, into.element).ok()?;
        }
        sight.was_so_all_along(wanted.names).then_some(())
    }

    fn gather_unit(
        &self,
        sight: &Sight,
        stored: &Stored,
        parts: &SelectedParts,
        unit: &TouchedUnit,
        (from_at, to_at): (&[u32], &[u32]),
    ) -> Option<()> {
        let (to, bytes) = (&parts.wanted.into.memory, stored.element.bytes());
        let filled = || {
            let fill = Memory::from_vec(stored.fill.to_vec());
            gather((&fill, &vec![0; to_at.len()]), (to, to_at), bytes).ok()
        };
        if stored.chunk().is_none() {
            let (_, offset) = stored.object()?;
            let first = unit.low.first()? * (STRETCH_BYTES / bytes).max(1) * bytes;
            return read_apart(&**sight.file.as_ref()?, offset.checked_add(first)?, (from_at, to_at), (to, bytes));
        }
        let Some(found) = self.find(sight, stored, parts, unit)? else { return filled() };
        if stored.is_read_whole() {
            let Some(elements) = self.elements(sight, stored, &found, unit, parts)? else { return filled() };
            return gather((&elements, from_at), (to, to_at), bytes).ok();
        }
        let first = found.first();
        match &sight.file {
            Some(file) => read_apart(&**file, first, (from_at, to_at), (to, bytes)),
            None => match parts.wanted.names.reader(&found.name).ok()? {
                Some((_, file)) => read_apart(&*file, first, (from_at, to_at), (to, bytes)),
                None => filled(),
            },
        }
    }

    /// The elements of a chunk, remembered or decoded now; `None` inside where it is not there.
    fn elements(
        &self,
        sight: &Sight,
        stored: &Stored,
        found: &PlacedPart,
        unit: &TouchedUnit,
        parts: &SelectedParts,
    ) -> Option<Option<Memory>> {
        match self.remembered(found) {
            Some(elements) => Some(Some(elements)),
            None => self.decoded(sight, stored, found, unit, parts.wanted.names),
        }
    }
}

/// Reads elements whose bytes lie as they are, from this byte of a file on: one by one, or all from the first to the last.
fn read_apart(
    file: &dyn FileReader,
    first: u64,
    (from_at, to_at): (&[u32], &[u32]),
    (to, bytes): (&Memory, u64),
) -> Option<()> {
    let (low, high) = (u64::from(*from_at.iter().min()?), u64::from(*from_at.iter().max()?) + 1);
    let all = (high - low) * bytes;
    if all / from_at.len() as u64 > APART_BYTES {
        for (&from, &to_at) in from_at.iter().zip(to_at) {
            let at = first.checked_add(u64::from(from) * bytes)?;
            let read = file.read_into(at, to, u64::from(to_at) * bytes, bytes).ok()?;
            (read == bytes).then_some(())?;
        }
        return Some(());
    }
    let between = Memory::from_vec(contents(file, (first.checked_add(low * bytes)?, all))?);
    let from_here: Vec<u32> = from_at.iter().map(|at| at - low as u32).collect();
    gather((&between, &from_here), (to, to_at), bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_sorted_by_their_units() {
        let mut random = fastrand::Rng::with_seed(20_261_130);
        for _ in 0..300 {
            let ndim = random.usize(1..4);
            let shape: Vec<u64> = (0..ndim).map(|_| random.u64(1..12)).collect();
            let unit: Vec<u64> = (0..ndim).map(|_| random.u64(1..6)).collect();
            let mut order: Vec<usize> = (0..ndim).collect();
            random.shuffle(&mut order);
            let total: u64 = shape.iter().product();
            let numbers: Vec<u64> = (0..random.usize(1..50)).map(|_| random.u64(0..total)).collect();
            let sorted = UnitGrid::new(&shape, unit.clone(), &order).unwrap().sorted(&numbers).unwrap();
            let mut seen = vec![false; numbers.len()];
            for (at, range) in &sorted.units {
                for i in range.clone() {
                    let to = sorted.to_at[i] as usize;
                    assert!(!std::mem::replace(&mut seen[to], true));
                    let (mut left, mut index) = (numbers[to], vec![0; ndim]);
                    for d in (0..ndim).rev() {
                        (index[d], left) = (left % shape[d], left / shape[d]);
                    }
                    let expected = order.iter().fold(0, |place, &d| place * unit[d] + index[d] % unit[d]);
                    assert_eq!(u64::from(sorted.from_at[i]), expected);
                    assert!((0..ndim).all(|d| at[d] == index[d] / unit[d]));
                }
            }
            assert!(seen.iter().all(|seen| *seen));
            assert!(UnitGrid::new(&shape, unit, &order).unwrap().sorted(&[total]).is_none(), "it lies outside");
        }
    }
}
