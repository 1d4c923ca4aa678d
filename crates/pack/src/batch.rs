//! Copying batches: many short runs, each at places of its own.
//!
//! For a run of one element, to prepare a kernel costs ten times what moving it does. So the kernel is prepared once for all
//! runs of a batch, and what is left for each run are two comparisons and the move.

use crate::bounds::{OutOfBounds, Side};
use crate::convert;
use crate::copy::{copy, copy_raw, same_bits, swapped};
use crate::memory::{Memory, MemoryKind};
use crate::moves::{mover, swapper};
use crate::nan::{CopyError, NotANumber};
use crate::shape::{ONCE, Plane, take_run};
use hyperslab_layout::{ElementType, Joined, JoinedRun, Loop, Nest, Region, RunBatch, View, nests};

/// One side of a batch: what each run touches, from its address on.
struct BatchSide<'a> {
    memory: &'a Memory,
    side: Side,
    /// The lowest byte that an element of a run touches, and one past the highest, relative to its address.
    each: (i64, i64),
    step: i64,
}

impl<'a> BatchSide<'a> {
    fn new(
        memory: &'a Memory,
        side: Side,
        (hull, step): (Option<(i64, i64)>, i64),
    ) -> Result<BatchSide<'a>, CopyError> {
        if memory.kind() != MemoryKind::Host {
            return Err(CopyError::OutOfReach(memory.kind()));
        }
        Ok(BatchSide { memory, side, each: hull.unwrap_or((0, 0)), step })
    }

    /// That a run lies within the memory.
    #[inline]
    fn check(&self, at: i64, count: u64) -> Result<(), OutOfBounds> {
        let last = self.step.saturating_mul((count - 1) as i64);
        let low = at.saturating_add(self.each.0).saturating_add(last.min(0));
        let high = at.saturating_add(self.each.1).saturating_add(last.max(0));
        if low >= 0 && self.memory.holds(low as u64, high as u64) {
            return Ok(());
        }
        Err(OutOfBounds { side: self.side, low, high, bytes: self.memory.bytes() })
    }
}

/// Copies every element of a region from its address in one view to that in the other, as [`copy`](crate::copy()) does.
///
/// # Errors
/// As for [`copy`](crate::copy()).
pub fn copy_region(
    region: &Region,
    (from, here): (&Memory, &View),
    (to, there): (&Memory, &View),
) -> Result<(), CopyError> {
    if let Some(batch) = RunBatch::new(region, here, there) {
        return copy_batch(batch, (from, here.element), (to, there.element));
    }
    for nest in nests(region, here, there) {
        copy(&nest, from, here.element, to, there.element)?;
    }
    Ok(())
}

/// Copies every element of a batch, side `a` in `from` to side `b` in `to`, as [`copy`](crate::copy()) does with those of a nest.
///
/// # Errors
/// As for [`copy`](crate::copy()); of what lies out of bounds, the runs before it have been copied.
fn copy_batch(
    batch: RunBatch<'_>,
    (from, from_type): (&Memory, ElementType),
    (to, to_type): (&Memory, ElementType),
) -> Result<(), CopyError> {
    let RunBatch { mut each, runs } = batch;
    let step = runs.step();
    let sides = (
        BatchSide::new(from, Side::From, (each.hull_a(from_type.bytes()), step.0))?,
        BatchSide::new(to, Side::To, (each.hull_b(to_type.bytes()), step.1))?,
    );
    let base = (from.pointer().wrapping_offset(each.a as isize), to.pointer().wrapping_offset(each.b as isize));
    (each.a, each.b) = (0, 0);
    let mut all = All { runs, sides, base };
    let swaps = (swapped(from_type), swapped(to_type));
    let same = same_bits(from_type.kind, to_type.kind);
    let item = if same && swaps.0 == swaps.1 { whole(&each, from_type.bytes()) } else { None };
    match (item, each.loops.is_empty()) {
        (Some(1), _) => all.items::<1>(step),
        (Some(2), _) => all.items::<2>(step),
        (Some(4), _) => all.items::<4>(step),
        (Some(8), _) => all.items::<8>(step),
        (Some(12), _) => all.items::<12>(step),
        (Some(16), _) => all.items::<16>(step),
        (Some(24), _) => all.items::<24>(step),
        (Some(bytes), _) => {
            let kernel = mover(bytes);
            // SAFETY: of each run both sides were checked, and the memories are alive.
            all.each(step, |from, to, plane| unsafe { kernel(from, to, plane, bytes as usize) })
        }
        (None, true) if same && swaps.0 != swaps.1 && swap_unit(from_type).is_some() => {
            let unit = from_type.bytes();
            let kernel = swapper(unit).expect("just asked for");
            // SAFETY: as above.
            all.each(step, |from, to, plane| unsafe { kernel(from, to, plane, unit as usize) })
        }
        (None, true) if !same && !from_type.kind.is_opaque() && !to_type.kind.is_opaque() => {
            let (kernel, mut nan) = (convert::kernel(from_type.kind, to_type.kind), false);
            all.each(step, |from, to, plane| {
                // SAFETY: as above.
                nan |= unsafe { kernel(from, to, plane, swaps.0, swaps.1) };
            })?;
            if nan { Err(NotANumber { from: from_type.kind, to: to_type.kind }.into()) } else { Ok(()) }
        }
        _ => all.as_nests(&each, step, (from_type, to_type)),
    }
}

/// The bytes that an element of a run has, with all that belongs to it, where these lie together on both sides.
fn whole(each: &Nest, bytes: u64) -> Option<u64> {
    let mut rest = each.clone();
    let run = take_run(&mut rest, bytes);
    rest.loops.is_empty().then_some(run)
}

/// The bytes of elements that are turned round whole.
fn swap_unit(element: ElementType) -> Option<u64> {
    let unit = element.kind.swap_bytes();
    (unit == element.bytes()).then_some(unit).filter(|&unit| swapper(unit).is_some())
}

/// The runs, and where both sides begin.
struct All<'a> {
    runs: Joined<'a>,
    sides: (BatchSide<'a>, BatchSide<'a>),
    base: (*mut u8, *mut u8),
}

impl All<'_> {
    /// The next run, and its addresses.
    #[inline]
    fn next(&mut self) -> Result<Option<(*const u8, *mut u8, u64)>, OutOfBounds> {
        let Some(JoinedRun { a, b, count }) = self.runs.next() else { return Ok(None) };
        self.sides.0.check(a, count)?;
        self.sides.1.check(b, count)?;
        let (from, to) = (self.base.0.wrapping_offset(a as isize), self.base.1.wrapping_offset(b as isize));
        Ok(Some((from, to, count)))
    }

    /// Moves items of so many bytes.
    fn items<const N: usize>(&mut self, step: (i64, i64)) -> Result<(), CopyError> {
        let packed = step == (N as i64, N as i64);
        while let Some((from, to, count)) = self.next()? {
            // SAFETY: both sides of the run were checked, and the memories are alive; they may be one.
            unsafe {
                if count == 1 {
                    to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned());
                } else if packed {
                    std::ptr::copy(from, to, N * count as usize);
                } else {
                    let columns = Loop { count, a: step.0, b: step.1 };
                    mover(N as u64)(from, to, &Plane { rows: ONCE, columns }, N);
                }
            }
        }
        Ok(())
    }

    /// Calls a kernel for each run.
    fn each(&mut self, step: (i64, i64), mut kernel: impl FnMut(*const u8, *mut u8, &Plane)) -> Result<(), CopyError> {
        while let Some((from, to, count)) = self.next()? {
            kernel(from, to, &Plane { rows: ONCE, columns: Loop { count, a: step.0, b: step.1 } });
        }
        Ok(())
    }

    /// Copies run after run as a nest of its own.
    fn as_nests(
        &mut self,
        each: &Nest,
        step: (i64, i64),
        (from_type, to_type): (ElementType, ElementType),
    ) -> Result<(), CopyError> {
        let mut nan = Ok(());
        while let Some((from, to, count)) = self.next()? {
            let nest = RunBatch::nest(each, step, JoinedRun { a: 0, b: 0, count });
            // SAFETY: both sides of the run were checked, and the memories are alive.
            nan = nan.and(unsafe { copy_raw(&nest, from, from_type, to, to_type) });
        }
        Ok(nan?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{Axis, ByteOrder, IndexSet, Kind, Layer, layers};

    /// A list in random order, alone or beside columns, from and to memories of many types: the same bytes as nest by nest.
    #[test]
    fn batches_move_what_their_nests_move() {
        let mut dice = fastrand::Rng::with_seed(41);
        let kinds =
            [Kind::UInt8, Kind::Int16, Kind::Int32, Kind::Float32, Kind::Float64, Kind::Complex128, Kind::opaque(5)];
        let (mut batches, mut refused) = (0, 0);
        for _ in 0..1500 {
            let mut indices: Vec<u64> = (0..dice.u64(100..400)).map(|i| i * 2 + dice.u64(0..2)).collect();
            if dice.bool() {
                dice.shuffle(&mut indices);
            }
            let Layer { set, axis } =
                layers((0..).zip(&indices).map(|(at, &index)| (index, 1, at)), 1).unwrap().remove(0);
            let set = set.within(dice.u64(0..50), dice.u64(300..1000));
            let order = |dice: &mut fastrand::Rng| if dice.bool() { ByteOrder::Little } else { ByteOrder::Big };
            let one = ElementType { kind: *dice.choice(&kinds).unwrap(), order: order(&mut dice) };
            let kind = if dice.bool() { one.kind } else { *dice.choice(&kinds).unwrap() };
            let other = ElementType { kind, order: order(&mut dice) };
            let columns = dice.u64(1..4);
            let region = Region { dims: [set.clone(), IndexSet::range(0, columns)].into_iter().collect() };
            let packed = |element: ElementType| {
                let bytes = element.bytes() as i64;
                View::held(&region, 3, &[bytes * columns as i64, bytes], element)
            };
            let gap = dice.i64(0..2) * 7;
            let bytes = other.bytes() as i64;
            let inner = (Axis::Owned(IndexSet::range(0, columns)), bytes);
            let listed = View { base: 5, axes: vec![(axis, bytes * columns as i64 + gap), inner], element: other };
            let memory = |dice: &mut fastrand::Rng| Memory::from_vec((0..60_000).map(|_| dice.u8(0..100)).collect());
            let (from, to) = (memory(&mut dice), memory(&mut dice));
            let expected = Memory::from_vec(to.to_vec(0, 60_000));
            let here = packed(one);
            let Some(batch) = RunBatch::new(&region, &here, &listed) else { continue };
            let copied = copy_batch(batch, (&from, one), (&to, other));
            let mut nan = Ok(());
            for nest in nests(&region, &here, &listed) {
                nan = nan.and(copy(&nest, &from, one, &expected, other));
            }
            assert_eq!(copied, nan, "{one:?} to {other:?}");
            assert!(to.to_vec(0, 60_000) == expected.to_vec(0, 60_000), "{one:?} to {other:?}, {columns} columns");
            batches += 1;
            // One byte too few for the last of them.
            let hull = nests(&region, &here, &listed).filter_map(|nest| nest.hull_b(other.bytes())).map(|hull| hull.1);
            let short = Memory::from_vec(vec![0; hull.max().unwrap() as usize - 1]);
            let batch = RunBatch::new(&region, &here, &listed).unwrap();
            let outcome = copy_batch(batch, (&from, one), (&short, other));
            refused += usize::from(matches!(outcome, Err(CopyError::OutOfBounds(_))));
        }
        assert!(batches > 1000 && refused > 700, "{batches} batches, {refused} refused");
    }
}
