//! The units in which a region lies.

use super::{Grid, Unit};
use hyperslab_layout::{IndexSet, Region};
use smallvec::SmallVec;
use std::sync::Arc;

/// Units of one array that hold something of a region, in rising order of their numbers, each with its part of the region.
///
/// The units along each dimension turn like the wheels of an odometer, and only what a turned one holds is computed anew.
/// There is no list of them, whatever the region is.
#[derive(Clone, Debug)]
pub struct Touched {
    grid: Arc<Grid>,
    array: u32,
    owned: Region,
    /// One for each dimension.
    wheels: SmallVec<[Wheel; 4]>,
    /// Whether there is a current unit.
    left: bool,
}

/// The units along one dimension.
#[derive(Clone, Debug)]
struct Wheel {
    /// Number of the first that holds something, and of the current one.
    first: u64,
    number: u64,
    /// What the current one holds of the region.
    set: IndexSet,
}

impl Touched {
    pub(super) fn new(grid: Arc<Grid>, array: u32, owned: Region) -> Touched {
        let left = grid.count > 0 && !owned.is_empty();
        let mut touched = Touched { grid, array, owned, wheels: SmallVec::new(), left };
        if left {
            touched.mount();
        }
        touched
    }

    /// Sets all wheels to their first unit.
    fn mount(&mut self) {
        for (axis, owned) in self.grid.axes.iter().zip(&self.owned.dims) {
            let Some(first) = axis.touched(owned, 0) else {
                self.left = false;
                return;
            };
            self.wheels.push(Wheel { first, number: first, set: IndexSet::empty() });
        }
        (0..self.wheels.len()).for_each(|d| self.set(d, self.wheels[d].first));
    }

    /// Turns a wheel to this unit.
    fn set(&mut self, d: usize, number: u64) {
        let (low, high) = self.grid.axes[d].positions(number);
        self.wheels[d].number = number;
        self.wheels[d].set = self.owned.dims[d].within(low, high);
    }

    /// Turns wheels back to their first units: those of dimensions from place `from` in the order of storage on.
    fn rewind(&mut self, from: usize) {
        for place in from..self.wheels.len() {
            let d = self.grid.order[place];
            if self.wheels[d].number != self.wheels[d].first {
                self.set(d, self.wheels[d].first);
            }
        }
    }

    /// Turns the last wheel that can be, of those before place `before` in the order of storage, and rewinds all behind it.
    fn turn(&mut self, before: usize) {
        for place in (0..before).rev() {
            let d = self.grid.order[place];
            let next = self.grid.axes[d].touched(&self.owned.dims[d], self.wheels[d].number + 1);
            if let Some(next) = next {
                self.set(d, next);
                self.rewind(place + 1);
                return;
            }
        }
        self.left = false;
    }

    /// Number, among all units, of the current one; `None` behind the last.
    pub fn number(&self) -> Option<u64> {
        let offset = |(wheel, weight): (&Wheel, &u64)| wheel.number * weight;
        self.left.then(|| self.grid.first + self.wheels.iter().zip(&self.grid.weights).map(offset).sum::<u64>())
    }

    /// The current unit.
    pub fn unit(&self) -> Option<Unit> {
        let number = self.number()?;
        let numbers: SmallVec<[u64; 4]> = self.wheels.iter().map(|wheel| wheel.number).collect();
        Some(self.grid.make(number, self.array, &numbers))
    }

    /// What the current unit holds of the region.
    pub fn region(&self) -> Region {
        Region { dims: self.wheels.iter().map(|wheel| wheel.set.clone()).collect() }
    }

    /// Goes on to the next unit.
    pub fn advance(&mut self) {
        self.turn(self.wheels.len());
    }

    /// Goes on, or back, to the first unit whose number is at least this.
    pub fn seek(&mut self, number: u64) {
        self.left = self.wheels.len() == self.grid.axes.len() && !self.owned.is_empty() && self.grid.count > 0;
        if !self.left {
            return;
        }
        let mut rest = number.saturating_sub(self.grid.first);
        if rest >= self.grid.count {
            self.left = false;
            return;
        }
        for place in 0..self.wheels.len() {
            let d = self.grid.order[place];
            let digit = rest / self.grid.weights[d];
            rest %= self.grid.weights[d];
            match self.grid.axes[d].touched(&self.owned.dims[d], digit) {
                Some(found) => {
                    self.set(d, found);
                    if found > digit {
                        self.rewind(place + 1);
                        return;
                    }
                }
                None => {
                    self.rewind(place);
                    self.turn(place);
                    return;
                }
            }
        }
    }
}

impl Iterator for Touched {
    type Item = (Unit, Region);

    fn next(&mut self) -> Option<(Unit, Region)> {
        let unit = self.unit()?;
        let region = self.region();
        self.advance();
        Some((unit, region))
    }
}

#[cfg(test)]
mod tests {
    use crate::transfer::{Direction, Spread, Transfer, TransferArray};
    use crate::units::Units;
    use hyperslab_layout::stored::{Coding, Keys, Stored};
    use hyperslab_layout::{ElementType, IndexSet, Kind, Policies, Region, Section, Triplet};

    fn random_set(random: &mut fastrand::Rng, extent: u64) -> IndexSet {
        let mut runs = Vec::new();
        let (mut at, same) = (random.u64(0..4), random.bool().then(|| (random.u64(1..3), random.u64(0..6))));
        loop {
            let (len, gap) = same.unwrap_or_else(|| (random.u64(1..4), random.u64(0..9)));
            if at + len > extent {
                return IndexSet::of_runs(runs).unwrap();
            }
            runs.push((at, len));
            at += len + gap;
        }
    }

    fn random_ask(random: &mut fastrand::Rng) -> TransferArray {
        let ndim = random.usize(0..4);
        let triplet = |random: &mut fastrand::Rng| {
            let block = random.u64(1..4);
            let (start, count) = (random.u64(0..4), random.u64(0..6));
            Triplet { start, stride: block + random.u64(0..6), count, block }
        };
        let section = Section { dims: (0..ndim).map(|_| triplet(random)).collect() };
        let end = |t: &Triplet| t.start + t.count * t.stride + t.block;
        let shape: Vec<u64> = section.dims.iter().map(|t| end(t) + random.u64(0..3)).collect();
        let mut order: Vec<usize> = (0..ndim).collect();
        random.shuffle(&mut order);
        let element = ElementType::native(Kind::Int32);
        let mut stored = if random.bool() {
            Stored::in_file(&shape, element, "a", 0)
        } else {
            let chunk: Vec<u64> = shape.iter().map(|_| random.u64(1..6)).collect();
            Stored::in_chunks(&shape, element, &chunk, Keys::nested("a/"), Coding::Plain)
        };
        if stored.is_in_one_object() && random.u8(0..3) == 0 {
            stored.strides.record = Some(1 << 20);
        }
        let stored = stored.ordered(order);
        TransferArray { name: "a".into(), section, spread: Spread::Explicit, memory: element, stored }
    }

    #[test]
    fn touched_units_are_those_that_meet_the_region() {
        let mut random = fastrand::Rng::with_seed(17);
        for _ in 0..3000 {
            let asks = vec![random_ask(&mut random), random_ask(&mut random)];
            let transfer = Transfer { direction: Direction::Write, asks, ranks: 1, policies: Policies::default() };
            let units = Units::new(&transfer, random.u64(4..400));
            for array in 0..2 {
                let shape = transfer.asks[array as usize].section.shape();
                let owned = Region { dims: shape.iter().map(|&n| random_set(&mut random, n)).collect() };
                let all = (0..units.count()).map(|number| units.unit(number)).filter(|unit| unit.array == array);
                let parts =
                    all.map(|unit| (owned.intersect(&unit.region()), unit)).map(|(region, unit)| (unit, region));
                let expected: Vec<_> = parts.filter(|(_, region)| !region.is_empty()).collect();
                assert_eq!(units.count_touched(array, &owned), expected.len() as u64, "{transfer:?} {owned:?}");
                let touched = units.touched(array, owned.clone());
                assert_eq!(touched.clone().collect::<Vec<_>>(), expected, "{transfer:?} {owned:?}");
                let mut at = touched;
                for number in (0..units.count() + 2).rev() {
                    at.seek(number);
                    let next = expected.iter().find(|(unit, _)| unit.number >= number);
                    assert_eq!(at.number(), next.map(|(unit, _)| unit.number), "{transfer:?} {owned:?} from {number}");
                    if let Some((_, region)) = next {
                        assert_eq!(&at.region(), region);
                    }
                }
            }
        }
    }
}
