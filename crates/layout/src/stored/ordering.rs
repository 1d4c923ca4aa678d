//! Arrays with their elements in the order of storage.

use super::order::{Along, StorageOrder};
use super::{Objects, Stored, Strides, Unit};
use crate::mesh::unravel;
use crate::{Section, Triplet};
use std::borrow::Cow;
use std::sync::Arc;

impl Stored {
    /// The same array with its elements in the order of storage, and how those of a section are numbered there. `None` where
    /// objects have several arrays that take turns, or where it is known only later what lies where; and of an array of one
    /// dimension, which is in that order.
    #[must_use]
    pub fn in_order(&self, section: &Section) -> Option<Stored> {
        let (ndim, mut from) = (self.shape.len(), 0);
        let mut dims: Vec<Along> = self
            .shape
            .iter()
            .zip(self.chunk().unwrap_or(&self.shape))
            .map(|(&extent, &chunk)| Along { extent, chunk: chunk.max(1), inside: 0, across: 0 })
            .collect();
        if let Some(d) = self.strides.of_records() {
            // Of one record, all that is wanted lies together.
            let record = section.dims.get(d).filter(|triplet| triplet.len() == 1)?.start;
            from = record.checked_mul(self.strides.record?)?;
            dims[d] = Along { extent: 1, chunk: 1, ..dims[d] };
        }
        if ndim < 2 || section.dims.len() != ndim || matches!(self.objects, Objects::Shards(_)) {
            return None;
        }
        let mut volume_of_chunk: u64 = 1;
        for &d in self.strides.order.iter().rev() {
            dims[d].inside = volume_of_chunk;
            volume_of_chunk = volume_of_chunk.checked_mul(dims[d].chunk)?;
        }
        let mut all = volume_of_chunk;
        for dim in dims.iter_mut().rev() {
            dim.across = all;
            all = all.checked_mul(dim.extent.div_ceil(dim.chunk))?;
        }
        let (unit, objects) = match (&self.unit, &self.objects) {
            (Unit::Free, Objects::One { name, offset }) => {
                (Unit::Free, Objects::One { name: name.clone(), offset: offset.checked_add(from)? })
            }
            (Unit::Chunk(_), objects) => (Unit::Chunk(vec![volume_of_chunk]), objects.clone()),
            (Unit::Free, _) => return None,
        };
        let mut section = section.clone();
        if let Some(d) = self.strides.of_records() {
            section.dims[d] = Triplet::whole(1);
        }
        let fastest = *self.strides.order.last()?;
        let (shape, strides) = (vec![all], Strides::row_major(1));
        let numbered = Some(Arc::new(StorageOrder { section, dims, fastest }));
        Some(Stored { shape, strides, unit, objects, numbered, ..self.clone() })
    }

    /// The coordinates of a chunk in its grid, where they are told by its number.
    pub(super) fn coordinates<'a>(&self, at: &'a [u64]) -> Cow<'a, [u64]> {
        match (at, &self.numbered) {
            (&[number], Some(order)) => unravel(number, &order.counts()).into(),
            _ => at.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Coding, Keys, Table};
    use super::*;
    use crate::{ElementType, Kind};

    const ELEMENT: ElementType = ElementType::native(Kind::Int32);

    fn random_section(dice: &mut fastrand::Rng) -> (Section, Vec<u64>) {
        let triplet = |dice: &mut fastrand::Rng| {
            let block = dice.u64(1..4);
            Triplet { start: dice.u64(0..4), stride: block + dice.u64(0..3), count: dice.u64(1..5), block }
        };
        let section = Section { dims: (0..dice.usize(2..4)).map(|_| triplet(dice)).collect() };
        let end = |t: &Triplet| t.start + (t.count - 1) * t.stride + t.block;
        let shape = section.dims.iter().map(|t| end(t) + dice.u64(0..3)).collect();
        (section, shape)
    }

    /// Each element of a section lies, by its number, at the byte of the object at which it lies by its indices.
    #[test]
    fn numbers_in_the_order_of_storage_lie_where_indices_do() {
        let mut dice = fastrand::Rng::with_seed(43);
        let mut kinds = [0; 4];
        for _ in 0..2000 {
            let (mut section, shape) = random_section(&mut dice);
            let mut order: Vec<usize> = (0..shape.len()).collect();
            dice.shuffle(&mut order);
            let chunk: Vec<u64> = shape.iter().map(|_| dice.u64(1..6)).collect();
            let kind = dice.usize(0..4);
            let stored = match kind {
                0 => Stored::in_chunks(&shape, ELEMENT, &chunk, Keys::nested("a/"), Coding::Plain),
                1 => Stored::in_grid(&shape, ELEMENT, &chunk, "f", 40),
                _ => Stored::in_file(&shape, ELEMENT, "f", 100),
            };
            let mut stored = stored.ordered(order.clone());
            if kind == 3 {
                stored.strides.record = Some(1 << 12);
                section.dims[order[0]] = Triplet::from(dice.u64(0..shape[order[0]]));
            }
            kinds[kind] += 1;
            let flat = stored.in_order(&section).unwrap();
            let numbered = flat.numbered.clone().unwrap();
            assert_eq!(flat.fault(), None);
            assert_eq!(flat.shape, [numbered.elements()]);
            // All runs of the section, in several pieces.
            let total = section.dims.iter().map(Triplet::len).product::<u64>();
            let (mut numbers, mut from) = (Vec::new(), 0);
            while from < total {
                let count = dice.u64(1..=total - from);
                numbered.runs(from, count, &mut |at, length| numbers.extend(at..at + length));
                from += count;
            }
            assert_eq!(numbers.len() as u64, total);
            let whole = Section { dims: vec![Triplet::whole(numbered.elements())] };
            for (number, &at) in numbers.iter().enumerate() {
                let place = unravel(number as u64, &section.shape());
                let index: Vec<u64> = place.iter().zip(&section.dims).map(|(&p, t)| t.select(p)).collect();
                assert_eq!(numbered.index_of(at), place);
                let unit: Vec<u64> = match stored.chunk() {
                    Some(chunk) => index.iter().zip(chunk).map(|(index, chunk)| index / chunk).collect(),
                    None => vec![0; shape.len()],
                };
                let low: Vec<u64> = match stored.chunk() {
                    Some(chunk) => unit.iter().zip(chunk).map(|(at, chunk)| at * chunk).collect(),
                    None => vec![0; shape.len()],
                };
                let there = stored.place(&section, &unit, &low).unwrap();
                let volume = flat.chunk().map_or(u64::MAX, |chunk| chunk[0]);
                let here = flat.place(&whole, &[at / volume], &[at / volume * volume.min(1 << 40)]).unwrap();
                assert_eq!((here.0, here.1.address(&[at])), (there.0, there.1.address(&place)), "{stored:?}");
            }
        }
        assert!(kinds.iter().all(|&count| count > 300), "{kinds:?}");
    }

    #[test]
    fn what_has_no_such_order_says_so() {
        let row = Stored::in_file(&[7], ELEMENT, "f", 0);
        assert!(row.in_order(&Section::whole(&[7])).is_none());
        let mut records = Stored::in_file(&[5, 3], ELEMENT, "f", 0);
        records.strides.record = Some(64);
        assert!(records.in_order(&Section::whole(&[5, 3])).is_none());
        let table = Stored::in_table(&[5, 3], ELEMENT, &[2, 2], Table::of("f", Vec::new()));
        assert!(table.in_order(&Section::whole(&[5, 3])).is_some_and(|flat| flat.chunk() == Some(&[4])));
    }
}
