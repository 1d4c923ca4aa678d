//! The contiguous byte ranges of a nest, for I/O.

use std::convert::Infallible;

use hyperslab_layout::{Loop, Nest};

use crate::shape::{ONCE, Odometer, canonical, take_run};

/// Calls `f(a, b, bytes)` for each run of bytes that is contiguous on both sides of a nest over elements of `bytes`
/// bytes: where the run begins on side `a`, on side `b`, and its length \[B\].
///
/// Runs are as long as they can be, and come in order of rising `b` (whatever the signs of the nest's steps) unless
/// they interleave on side `b`. Loops that visit the same pair of addresses again and again are visited once.
pub fn for_each_run(nest: &Nest, bytes: u64, mut f: impl FnMut(i64, i64, u64)) {
    let Ok(()) = try_for_each_run(nest, bytes, |a, b, length| {
        f(a, b, length);
        Ok::<(), Infallible>(())
    });
}

/// As [`for_each_run`], stopping at the first error.
///
/// # Errors
/// The first error of `f`.
pub fn try_for_each_run<E>(
    nest: &Nest,
    bytes: u64,
    mut f: impl FnMut(i64, i64, u64) -> Result<(), E>,
) -> Result<(), E> {
    let Some(mut nest) = canonical(nest) else { return Ok(()) };
    let run = take_run(&mut nest, bytes);
    let Loop { count, a: a_step, b: b_step } = nest.loops.pop().unwrap_or(ONCE);
    let mut odometer = Odometer::new((nest.a, nest.b), &nest.loops);
    // The loops merge into runs of equal length; where such runs happen to touch, a pending one grows.
    let mut pending = (odometer.at.0, odometer.at.1, 0);
    loop {
        let (mut a, mut b) = odometer.at;
        for _ in 0..count {
            let (start_a, start_b, length) = pending;
            if a == start_a + length as i64 && b == start_b + length as i64 {
                pending.2 += run;
            } else {
                f(start_a, start_b, length)?;
                pending = (a, b, run);
            }
            a += a_step;
            b += b_step;
        }
        if !odometer.advance() {
            return f(pending.0, pending.1, pending.2);
        }
    }
}

/// Length \[B\] of the runs into which the loops of a nest merge, 0 when nothing is visited. [`for_each_run`] calls
/// with this length, except where such runs happen to touch.
pub fn run_bytes(nest: &Nest, bytes: u64) -> u64 {
    canonical(nest).map_or(0, |mut nest| take_run(&mut nest, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(a: i64, b: i64, loops: &[(u64, i64, i64)], bytes: u64) -> Vec<(i64, i64, u64)> {
        let loops = loops.iter().map(|&(count, a, b)| Loop { count, a, b }).collect();
        let mut seen = Vec::new();
        for_each_run(&Nest { a, b, loops }, bytes, |a, b, length| seen.push((a, b, length)));
        seen
    }

    #[test]
    fn contiguous_loops_are_one_run() {
        assert_eq!(runs(8, 0, &[(3, 40, 40), (5, 8, 8)], 8), [(8, 0, 120)]);
        assert_eq!(runs(128, 112, &[(5, -8, -8), (3, -40, -40)], 8), [(16, 0, 120)]);
    }

    #[test]
    fn rows_of_a_block() {
        assert_eq!(runs(0, 4, &[(3, 16, 100), (4, 4, 4)], 4), [(0, 4, 16), (16, 104, 16), (32, 204, 16)]);
        assert_eq!(runs(0, 204, &[(4, 4, 4), (2, 16, -100)], 4), [(16, 104, 16), (0, 204, 16)]);
    }

    #[test]
    fn runs_that_happen_to_touch_grow() {
        assert_eq!(runs(0, 0, &[(2, 24, 24), (2, 16, 16)], 8), [(0, 0, 8), (16, 16, 16), (40, 40, 8)]);
    }

    #[test]
    fn one_element_and_none() {
        assert_eq!(runs(3, 5, &[], 2), [(3, 5, 2)]);
        assert_eq!(runs(3, 5, &[(7, 2, 2), (0, 1, 1)], 2), []);
        assert_eq!(run_bytes(&Nest::default(), 8), 8);
        let nest = Nest { a: 0, b: 0, loops: vec![Loop { count: 0, a: 8, b: 8 }].into() };
        assert_eq!(run_bytes(&nest, 8), 0);
    }

    #[test]
    fn the_first_error_stops() {
        let nest = Nest { a: 0, b: 0, loops: vec![Loop { count: 10, a: 16, b: 8 }].into() };
        let mut calls = 0;
        let stop = |_, b, _| {
            calls += 1;
            if b == 24 { Err(b) } else { Ok(()) }
        };
        assert_eq!(try_for_each_run(&nest, 8, stop), Err(24));
        assert_eq!(calls, 4);
    }
}
