//! Whether the elements that a nest visits lie within a memory.

use std::error::Error;
use std::fmt;

use crate::memory::{Memory, MemoryKind};
use crate::nan::CopyError;
use hyperslab_layout::Nest;

/// The side of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Side `a` of the nest: where elements come from.
    From,
    /// Side `b` of the nest: where they go to.
    To,
}

/// A nest visits bytes outside of the memory that it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfBounds {
    /// On which side.
    pub side: Side,
    /// Lowest byte visited, relative to the memory's base \[B\]; at the limit of `i64` when it lies beyond.
    pub low: i64,
    /// One past the highest byte visited \[B\].
    pub high: i64,
    /// Length of the memory \[B\].
    pub bytes: u64,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.side {
            Side::From => "source",
            Side::To => "target",
        };
        write!(
            f,
            "a copy would touch bytes {} to {} of its {what}, which has bytes 0 to {}; \
             hint: the local layout (base, strides, halo) must describe the memory that was passed",
            self.low, self.high, self.bytes
        )
    }
}

impl Error for OutOfBounds {}

/// Checks that all elements of `element` bytes on one side lie in a memory of `bytes` bytes. In wide arithmetic, so
/// that no nest, however absurd, passes by wrapping around.
pub(crate) fn check(nest: &Nest, side: Side, element: u64, bytes: u64) -> Result<(), OutOfBounds> {
    check_that(nest, side, element, bytes, |_, _| true)
}

/// As [`check`], of memory that may have gaps or be somewhere else than on this host.
pub(crate) fn check_memory(nest: &Nest, side: Side, element: u64, memory: &Memory) -> Result<(), CopyError> {
    if memory.kind() != MemoryKind::Host {
        return Err(CopyError::OutOfReach(memory.kind()));
    }
    Ok(check_that(nest, side, element, memory.bytes(), |low, high| memory.holds(low, high))?)
}

fn check_that(
    nest: &Nest,
    side: Side,
    element: u64,
    bytes: u64,
    holds: impl Fn(u64, u64) -> bool,
) -> Result<(), OutOfBounds> {
    let start = match side {
        Side::From => nest.a,
        Side::To => nest.b,
    };
    let (mut low, mut high) = (i128::from(start), i128::from(start) + i128::from(element));
    for l in &nest.loops {
        let Some(last) = l.count.checked_sub(1) else { return Ok(()) };
        let step = match side {
            Side::From => l.a,
            Side::To => l.b,
        };
        // At most 2^64 * 2^63, which fits; only the sum may not.
        let reach = i128::from(last) * i128::from(step);
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    if low >= 0 && high <= i128::from(bytes) && holds(low as u64, high as u64) {
        return Ok(());
    }
    let narrow = |x: i128| x.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    Err(OutOfBounds { side, low: narrow(low), high: narrow(high), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Loop;

    fn nest(a: i64, loops: &[(u64, i64)]) -> Nest {
        Nest { a, b: 0, loops: loops.iter().map(|&(count, a)| Loop { count, a, b: 0 }).collect() }
    }

    #[test]
    fn exact_fit_passes_and_one_byte_more_does_not() {
        let fits = nest(16, &[(3, -8), (2, 1)]);
        assert_eq!(check(&fits, Side::From, 8, 25), Ok(()));
        let error = check(&fits, Side::From, 8, 24).unwrap_err();
        assert_eq!(error, OutOfBounds { side: Side::From, low: 0, high: 25, bytes: 24 });
        assert_eq!(check(&nest(15, &[(3, -8)]), Side::From, 8, 99).unwrap_err().low, -1);
        assert_eq!(check(&fits, Side::To, 8, 8), Ok(()));
    }

    #[test]
    fn nothing_visited_is_never_out_of_bounds() {
        assert_eq!(check(&nest(-100, &[(5, i64::MAX), (0, 1)]), Side::From, 8, 0), Ok(()));
    }

    #[test]
    fn absurd_nests_do_not_wrap_around() {
        let error = check(&nest(0, &[(u64::MAX, i64::MAX); 4]), Side::From, 8, 64).unwrap_err();
        assert_eq!((error.low, error.high), (0, i64::MAX));
        let error = check(&nest(0, &[(u64::MAX, i64::MIN); 4]), Side::From, 8, 64).unwrap_err();
        assert_eq!((error.low, error.high), (i64::MIN, 8));
        assert!(error.to_string().contains("source"), "{error}");
    }
}
