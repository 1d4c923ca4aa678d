//! Reads of many runs by windows: a stretch of the file lies in memory, and the kernels that move data between arrays take what
//! is wanted out of it.

use super::coalescing::TINY_RUN_BYTES;
use super::content::{CHECKED_BLOCK_BYTES, Source};
use super::direct::Failure;
use super::lists::ListRead;
use super::sieve::GAP_BYTES_MAX;
use hyperslab_layout::{Loop, Nest};
use hyperslab_pack::{CopyError, Memory, copy};
use hyperslab_world::{Fault, Moves};
use std::fs::File;

/// Calls with parts of a nest whose sides `b` lie in a window of so many bytes each, if that can be, with the first byte of the
/// window and the one behind the last.
pub(super) fn each_window<E>(
    nest: &Nest,
    bytes: u64,
    most: u64,
    act: &mut impl FnMut(&Nest, (u64, u64)) -> Result<(), E>,
) -> Result<(), E> {
    let Some((low, high)) = nest.hull_b(bytes) else { return Ok(()) };
    let widest = nest.loops.iter().enumerate().filter(|(_, l)| l.count > 1).max_by_key(|(_, l)| l.b.unsigned_abs());
    let Some((at, &Loop { count, a, b })) = widest.filter(|_| (high - low) as u64 > most) else {
        return act(nest, (low.max(0) as u64, high as u64));
    };
    let once = |first: u64, count: u64| {
        let mut part = nest.clone();
        part.loops[at].count = count;
        (part.a, part.b) = (nest.a + first as i64 * a, nest.b + first as i64 * b);
        part
    };
    let inner = once(0, 1).hull_b(bytes).map_or(0, |(low, high)| (high - low) as u64);
    let together = 1 + most.saturating_sub(inner) / b.unsigned_abs().max(1);
    (0..count)
        .step_by(together as usize)
        .try_for_each(|first| each_window(&once(first, together.min(count - first)), bytes, most, act))
}

/// Copies a part of what moves out of a window that begins at this byte of the file.
pub(super) fn copy_out(part: &Nest, (begin, window): (u64, &Memory), moves: &Moves) -> Result<(), CopyError> {
    let mut from = part.swapped();
    from.a -= begin as i64;
    copy(&from, window, moves.there.element, &moves.memory, moves.here.element)
}

/// What a read is like.
#[derive(Default)]
pub(super) struct Survey {
    /// From the first byte that is wanted to the one behind the last.
    pub(super) hull: (u64, u64),
    nests: u64,
    pub(super) runs: u64,
    /// Bytes over which the nests go, each by itself.
    spanned: u64,
    /// Windows of this many bytes in which all lies.
    windows: u64,
}

impl Survey {
    /// That of windows of so many bytes.
    pub(super) fn of(moves: &Moves, most: u64) -> Survey {
        let bytes = moves.there.element.bytes();
        let mut survey = Survey { hull: (u64::MAX, 0), ..Survey::default() };
        let mut last = 0..0;
        for nest in moves.nests() {
            let Some((low, high)) = nest.hull_b(bytes) else { continue };
            let (low, high) = (low.max(0) as u64, high.max(0) as u64);
            survey.hull = (survey.hull.0.min(low), survey.hull.1.max(high));
            survey.nests += 1;
            survey.runs += nest.runs(bytes, bytes);
            survey.spanned += high - low;
            if !last.contains(&low) || high > last.end {
                survey.windows += ((high - low) / most + 1).min(nest.elements());
                last = low..low + most;
            }
        }
        survey
    }

    /// Whether much of each window is wanted: of each page of it, a line of the processor's cache.
    pub(super) fn is_dense(&self, bytes: u64, most: u64) -> bool {
        self.windows.saturating_mul(most / 64) <= bytes
    }

    /// Whether most runs are short, near each other, and many in a nest, so that they are copied faster out of a buffer than they
    /// are read into their places.
    fn has_short_runs(&self, bytes: u64) -> bool {
        let are_short = bytes < self.runs * TINY_RUN_BYTES && self.spanned <= bytes + self.runs * GAP_BYTES_MAX;
        are_short && self.nests * 64 <= self.runs
    }
}

/// Whether a read is [faster by way of a buffer](Survey::has_short_runs).
pub(super) fn are_worth_it(moves: &Moves) -> bool {
    ListRead::of(moves).is_some() || Survey::of(moves, CHECKED_BLOCK_BYTES).has_short_runs(moves.bytes())
}

/// Reads by way of a small buffer; tells how many calls that took.
pub(super) fn read(file: &File, moves: &Moves, failed: impl Fn(Failure) -> Fault) -> Result<u64, Fault> {
    let (mut calls, mut buffer) = (0, Memory::from_vec(Vec::new()));
    if let Some(list) = ListRead::of(moves) {
        let most = list.parts(CHECKED_BLOCK_BYTES).map(|(_, (low, high))| high - low).max().unwrap_or(0);
        let buffer = Memory::from_vec(vec![0; most as usize]);
        for (part, (low, high)) in list.parts(CHECKED_BLOCK_BYTES) {
            let window = Source::of_memory(&buffer, high - low)?;
            window.read_at(file, low).map_err(|error| failed((error, high)))?;
            calls += 1;
            list.take(&part, (low, &buffer)).map_err(|error| Fault::of_copy(error, Some(&moves.region)))?;
        }
        return Ok(calls);
    }
    for nest in moves.nests() {
        let (low, high) = nest.hull_a(moves.here.element.bytes()).unwrap_or_default();
        Source::new(moves, low, (high - low) as u64)?;
        each_window(&nest, moves.there.element.bytes(), CHECKED_BLOCK_BYTES, &mut |part, (low, high)| {
            if buffer.bytes() < high - low {
                buffer = Memory::from_vec(vec![0; (high - low).max(CHECKED_BLOCK_BYTES) as usize]);
            }
            let window = Source::of_memory(&buffer, high - low)?;
            window.read_at(file, low).map_err(|error| failed((error, high)))?;
            calls += 1;
            copy_out(part, (low, &buffer), moves).map_err(|error| Fault::of_copy(error, Some(&moves.region)))
        })?;
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn addresses(nest: &Nest) -> Vec<(i64, i64)> {
        nest.loops.iter().fold(vec![(nest.a, nest.b)], |found, l| {
            let steps = |(a, b): (i64, i64)| (0..l.count as i64).map(move |step| (a + step * l.a, b + step * l.b));
            found.into_iter().flat_map(steps).collect()
        })
    }

    #[test]
    fn windows_have_all_elements_once_and_are_no_larger_than_allowed() {
        let mut rng = Rng::with_seed(28);
        for _ in 0..500 {
            let dims: Vec<u64> = (0..rng.usize(1..4)).map(|_| rng.u64(1..6)).collect();
            let mut strides = (8, Vec::new());
            for &count in &dims {
                strides.1.push(if rng.u8(0..4) == 0 { -strides.0 } else { strides.0 });
                strides.0 *= count as i64 + rng.i64(0..3);
            }
            let mut loops: Vec<Loop> =
                dims.iter().zip(&strides.1).map(|(&count, &b)| Loop { count, a: rng.i64(-9..9) * 8, b }).collect();
            rng.shuffle(&mut loops);
            let nest = Nest { a: 0, b: strides.0 + 80, loops: loops.into() };
            let most = rng.u64(1..40) * 8;
            let mut found = Vec::new();
            let each = each_window(&nest, 8, most, &mut |part, (low, high)| {
                assert!(high - low <= most.max(8), "{nest:?} in {most}: {low}..{high}");
                let inside = |&(_, b): &(i64, i64)| low as i64 <= b && b + 8 <= high as i64;
                let part = addresses(part);
                assert!(part.iter().all(inside), "{nest:?} in {most}: {part:?} not in {low}..{high}");
                found.extend(part);
                Ok::<(), ()>(())
            });
            assert_eq!(each, Ok(()));
            let mut expected = addresses(&nest);
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{nest:?} in {most}");
        }
    }
}
