//! Writing one value to every element of a nest.

use hyperslab_layout::{Loop, Nest};

use crate::bounds::{Side, check_memory};
use crate::memory::Memory;
use crate::nan::CopyError;
use crate::shape::{Plane, Walk, canonical, take_run};

/// Writes `value`, the bytes of one element as they shall lie in memory, to every element of side `b`.
///
/// Side `a` of the nest is ignored. See [`convert_scalar`](crate::convert_scalar) for a value of another type.
///
/// # Errors
/// [`CopyError::OutOfBounds`] when an element lies outside of the memory, [`CopyError::OutOfReach`] when that is not of this
/// host; nothing has been written then.
pub fn fill(nest: &Nest, to: &Memory, value: &[u8]) -> Result<(), CopyError> {
    check_memory(nest, Side::To, value.len() as u64, to)?;
    // Both sides get the steps of `b`, so that contiguous runs are found as in a copy.
    let loops = nest.loops.iter().map(|l| Loop { a: l.b, ..*l }).collect();
    let Some(mut nest) = canonical(&Nest { a: nest.b, b: nest.b, loops }) else { return Ok(()) };
    let run = if value.is_empty() { return Ok(()) } else { take_run(&mut nest, value.len() as u64) };
    let per_run = run / value.len() as u64;
    let kernel: Kernel = match value.len() {
        1 => words::<1>,
        2 => words::<2>,
        4 => words::<4>,
        8 => words::<8>,
        16 => words::<16>,
        _ => bytes,
    };
    Walk::new(nest, run).for_each_plane(|_, b, plane| {
        // SAFETY: all elements were checked to lie within the memory, which is alive.
        unsafe { kernel(to.pointer().wrapping_offset(b as isize), plane, per_run as usize, value) }
    });
    Ok(())
}

/// Writes the runs of one plane, each of that many elements.
///
/// # Safety
/// All bytes of all runs must be writable.
type Kernel = unsafe fn(*mut u8, &Plane, usize, &[u8]);

/// # Safety
/// As for [`Kernel`].
unsafe fn words<const N: usize>(to: *mut u8, plane: &Plane, per_run: usize, value: &[u8]) {
    let Some(&value) = value.first_chunk::<N>() else { return };
    for_each_item(plane, |b| {
        let to = to.wrapping_offset(b).cast::<[u8; N]>();
        for i in 0..per_run {
            // SAFETY: the caller promises that the run is writable; arrays of bytes need no alignment.
            unsafe { to.add(i).write(value) }
        }
    });
}

/// # Safety
/// As for [`Kernel`].
unsafe fn bytes(to: *mut u8, plane: &Plane, per_run: usize, value: &[u8]) {
    for_each_item(plane, |b| {
        let to = to.wrapping_offset(b);
        for i in 0..per_run {
            // SAFETY: the caller promises that the run is writable; a value on the stack of the caller of `fill` or in
            // the same memory is all the same to `copy`.
            unsafe { std::ptr::copy(value.as_ptr(), to.add(i * value.len()), value.len()) }
        }
    });
}

#[inline(always)]
fn for_each_item(plane: &Plane, mut f: impl FnMut(isize)) {
    for row in 0..plane.rows.count as isize {
        let mut b = row * plane.rows.b as isize;
        for _ in 0..plane.columns.count {
            f(b);
            b += plane.columns.b as isize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutOfBounds;

    fn filled(nest: &Nest, value: &[u8], bytes: usize) -> Vec<u8> {
        let memory = Memory::from_vec(vec![0xee; bytes]);
        fill(nest, &memory, value).unwrap();
        memory.to_vec(0, bytes as u64)
    }

    #[test]
    fn every_size_of_value_in_runs_and_strides() {
        for size in 1..=17usize {
            let value: Vec<u8> = (1..=size as u8).collect();
            let step = size as i64;
            for steps in [[4 * step, step], [step, -4 * step], [3 * step, -12 * step], [step, 0], [-5 * step, 2 * step]]
            {
                let loops = [4, 3].iter().zip(steps).map(|(&count, b)| Loop { count, a: 1 << 40, b }).collect();
                let nest = Nest { a: -77, b: 40 * step, loops };
                let mut expected = vec![0xee; 80 * size];
                for (i, j) in (0..4).flat_map(|i| (0..3).map(move |j| (i, j))) {
                    let at = (40 * step + i * steps[0] + j * steps[1]) as usize;
                    expected[at..at + size].copy_from_slice(&value);
                }
                assert_eq!(filled(&nest, &value, 80 * size), expected, "{size} {steps:?}");
            }
        }
    }

    #[test]
    fn nothing_to_fill() {
        let empty = Nest { a: 0, b: 99, loops: vec![Loop { count: 0, a: 0, b: 8 }].into() };
        assert_eq!(filled(&empty, &[1; 8], 4), [0xee; 4]);
        assert_eq!(filled(&Nest { a: 0, b: 2, loops: vec![].into() }, &[], 4), [0xee; 4]);
        assert_eq!(filled(&Nest { a: 0, b: 2, loops: vec![].into() }, &[7], 4), [0xee, 0xee, 7, 0xee]);
    }

    #[test]
    fn beyond_the_end_nothing_is_written() {
        let memory = Memory::from_vec(vec![0; 15]);
        let nest = Nest { a: 0, b: 0, loops: vec![Loop { count: 2, a: 0, b: 8 }].into() };
        let error = fill(&nest, &memory, &[1; 8]).unwrap_err();
        assert_eq!(error, CopyError::OutOfBounds(OutOfBounds { side: Side::To, low: 0, high: 16, bytes: 15 }));
        assert_eq!(memory.to_vec(0, 15), [0; 15]);
    }
}
