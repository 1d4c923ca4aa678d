//! Kernels that move bytes without looking at them, or only to reverse their order.

use crate::shape::Plane;
use hyperslab_layout::Loop;

/// Moves the items of one plane; each has `bytes` bytes, which the kernel may know already.
///
/// # Safety
/// All items of the plane must be readable from the first address on, and writable from the second on.
pub(crate) type Move = unsafe fn(*const u8, *mut u8, &Plane, bytes: usize);

/// The kernel that moves items of `bytes` contiguous bytes.
///
/// Items are whole runs, not only single elements: three interleaved doubles move as one item of 24 bytes. Sizes
/// that occur often are compiled in, because a call of `memcpy` costs more than the copying of so few bytes.
pub(crate) fn mover(bytes: u64) -> Move {
    match bytes {
        1 => small::<1>,
        2 => small::<2>,
        3 => words::<3>,
        4 => words::<4>,
        6 => words::<6>,
        8 => words::<8>,
        12 => words::<12>,
        16 => words::<16>,
        20 => words::<20>,
        24 => words::<24>,
        32 => words::<32>,
        40 => words::<40>,
        48 => words::<48>,
        64 => words::<64>,
        96 => words::<96>,
        128 => words::<128>,
        256 => words::<256>,
        _ => runs,
    }
}

/// The kernel that reverses the bytes of items of 2, 4 or 8 bytes; `None` for other sizes.
pub(crate) fn swapper(bytes: u64) -> Option<Move> {
    match bytes {
        2 => Some(swaps::<u16>),
        4 => Some(swaps::<u32>),
        8 => Some(swaps::<u64>),
        _ => None,
    }
}

/// # Safety
/// As for [`Move`].
unsafe fn words<const N: usize>(from: *const u8, to: *mut u8, plane: &Plane, _bytes: usize) {
    let columns = plane.columns;
    // SAFETY: the caller promises that all items may be accessed. A step that equals the item's size is passed as a
    // constant, which lets the compiler address that side by an index and unroll.
    unsafe {
        if columns.b == N as i64 {
            plane_of::<N>(from, to, plane, columns.a as isize, N as isize);
        } else if columns.a == N as i64 {
            plane_of::<N>(from, to, plane, N as isize, columns.b as isize);
        } else {
            plane_of::<N>(from, to, plane, columns.a as isize, columns.b as isize);
        }
    }
}

/// Moves items of one or two bytes: where rows lie together on one side and columns on the other, in square blocks, which
/// are transposed in registers.
///
/// # Safety
/// As for [`Move`].
unsafe fn small<const N: usize>(from: *const u8, to: *mut u8, plane: &Plane, bytes: usize) {
    let Plane { rows, columns } = *plane;
    let side = const { (WORD / N) as u64 };
    // SAFETY: all parts together are the plane.
    unsafe {
        if rows.a != N as i64 || columns.b != N as i64 || rows.count.min(columns.count) < side {
            return words::<N>(from, to, plane, bytes);
        }
        let whole = (rows.count - rows.count % side, columns.count - columns.count % side);
        let part = |rows: Loop, columns: Loop| Plane { rows, columns };
        blocks::<N>(from, to, &part(Loop { count: whole.0, ..rows }, Loop { count: whole.1, ..columns }));
        let beside = part(Loop { count: whole.0, ..rows }, Loop { count: columns.count - whole.1, ..columns });
        let at = whole.1 as isize;
        let (a, b) = (at * columns.a as isize, at * columns.b as isize);
        words::<N>(from.wrapping_offset(a), to.wrapping_offset(b), &beside, bytes);
        let at = whole.0 as isize;
        let (a, b) = (at * rows.a as isize, at * rows.b as isize);
        let below = part(Loop { count: rows.count - whole.0, ..rows }, columns);
        words::<N>(from.wrapping_offset(a), to.wrapping_offset(b), &below, bytes);
    }
}

/// Bytes of a register.
const WORD: usize = size_of::<u64>();

/// Moves a plane whose rows lie together on the first side, and its columns on the second; both are multiples of as many
/// items of N bytes as a register holds.
///
/// # Safety
/// As for [`Move`].
unsafe fn blocks<const N: usize>(from: *const u8, to: *mut u8, plane: &Plane) {
    let Plane { rows, columns } = *plane;
    let side = const { WORD / N };
    for row in (0..rows.count as isize).step_by(side) {
        for column in (0..columns.count as isize).step_by(side) {
            let from = from.wrapping_offset(row * rows.a as isize + column * columns.a as isize);
            let to = to.wrapping_offset(row * rows.b as isize + column * columns.b as isize);
            let mut block = [0_u64; WORD];
            let (step, pitch) = (columns.a as isize, rows.b as isize);
            // SAFETY: each word is `side` items of the plane that lie together.
            unsafe {
                for (i, word) in block.iter_mut().take(side).enumerate() {
                    *word = u64::from_le(from.wrapping_offset(i as isize * step).cast::<u64>().read_unaligned());
                }
                turn_over::<N>(&mut block);
                for (i, word) in block.iter().take(side).enumerate() {
                    to.wrapping_offset(i as isize * pitch).cast::<u64>().write_unaligned(word.to_le());
                }
            }
        }
    }
}

/// Turns over a square of items of N bytes, a row of it in each of the first words: halves of the square first, then halves of
/// its quarters, and so on.
#[inline(always)]
fn turn_over<const N: usize>(block: &mut [u64; WORD]) {
    // Each by itself, so that the compiler knows all numbers and keeps the block in registers.
    turn_halves::<N, 4>(block);
    turn_halves::<N, 2>(block);
    turn_halves::<N, 1>(block);
}

/// Turns over the squares of HALF items at the corners of each square of twice as many.
#[inline(always)]
fn turn_halves<const N: usize, const HALF: usize>(block: &mut [u64; WORD]) {
    let side = const { WORD / N };
    if 2 * HALF > side {
        return;
    }
    let bits = 8 * N * HALF;
    // The lower half of each group of twice as many items.
    let lower = u64::MAX / ((1 << bits) + 1);
    for pair in 0..side / 2 {
        let row = pair / HALF * 2 * HALF + pair % HALF;
        let (low, high) = (block[row], block[row + HALF]);
        block[row] = (low & lower) | ((high & lower) << bits);
        block[row + HALF] = ((low >> bits) & lower) | (high & !lower);
    }
}

/// # Safety
/// As for [`Move`]; the last two arguments are the steps of the plane's columns.
#[inline(always)]
unsafe fn plane_of<const N: usize>(from: *const u8, to: *mut u8, plane: &Plane, from_step: isize, to_step: isize) {
    for row in 0..plane.rows.count as isize {
        let mut from = from.wrapping_offset(row * plane.rows.a as isize);
        let mut to = to.wrapping_offset(row * plane.rows.b as isize);
        for _ in 0..plane.columns.count {
            // SAFETY: both addresses are those of an item of the plane. The item is read as a whole before it is
            // written, so that overlapping sides are no more than unspecified values.
            unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
            from = from.wrapping_offset(from_step);
            to = to.wrapping_offset(to_step);
        }
    }
}

/// # Safety
/// As for [`Move`].
unsafe fn runs(from: *const u8, to: *mut u8, plane: &Plane, bytes: usize) {
    let columns = plane.columns;
    for row in 0..plane.rows.count as isize {
        let mut from = from.wrapping_offset(row * plane.rows.a as isize);
        let mut to = to.wrapping_offset(row * plane.rows.b as isize);
        for _ in 0..columns.count {
            // SAFETY: both addresses are those of a run of the plane.
            unsafe { run(from, to, bytes) }
            from = from.wrapping_offset(columns.a as isize);
            to = to.wrapping_offset(columns.b as isize);
        }
    }
}

/// Length of the pieces in which shorter runs are copied \[B\]: a cache line.
const PIECE: usize = 64;

/// Runs of fewer bytes \[B\] are copied here, longer ones by the system. Measured on Zen 4 with glibc, from memory that
/// is not in the cache: the system copies runs of 1 to 2 KiB at two thirds of this speed, and from 4 KiB on faster.
const LONG: usize = 4 << 10;

/// # Safety
/// That many bytes must be readable and writable.
#[inline(always)]
unsafe fn run(from: *const u8, to: *mut u8, bytes: usize) {
    if !(PIECE..LONG).contains(&bytes) {
        // SAFETY: as promised. `copy` because both sides may lie in one memory; where it counts it is as fast as the
        // copy that forbids overlap.
        unsafe { std::ptr::copy(from, to, bytes) }
        return;
    }
    let piece = |at: usize| {
        // SAFETY: no piece begins later than `PIECE` bytes before the end.
        unsafe { to.add(at).cast::<[u8; PIECE]>().write(from.add(at).cast::<[u8; PIECE]>().read()) }
    };
    let last = bytes - PIECE;
    for at in (0..last).step_by(PIECE) {
        piece(at);
    }
    // It overlaps the one before where the length is no multiple.
    piece(last);
}

/// An unsigned integer whose bytes can be reversed.
trait Word: Copy {
    fn swapped(self) -> Self;
}

macro_rules! word {
    ($($t:ty)*) => {$(
        impl Word for $t {
            #[inline(always)]
            fn swapped(self) -> Self {
                self.swap_bytes()
            }
        }
    )*};
}

word!(u16 u32 u64);

/// # Safety
/// As for [`Move`].
unsafe fn swaps<W: Word>(from: *const u8, to: *mut u8, plane: &Plane, _bytes: usize) {
    let size = size_of::<W>();
    let columns = plane.columns;
    for row in 0..plane.rows.count as isize {
        let mut from = from.wrapping_offset(row * plane.rows.a as isize);
        let mut to = to.wrapping_offset(row * plane.rows.b as isize);
        if columns.a == size as i64 && columns.b == size as i64 {
            for i in 0..columns.count as usize {
                // SAFETY: this row is contiguous on both sides and has more than `i` items. Constant steps vectorise.
                unsafe {
                    let word = from.add(i * size).cast::<W>().read_unaligned();
                    to.add(i * size).cast::<W>().write_unaligned(word.swapped());
                }
            }
            continue;
        }
        for _ in 0..columns.count {
            // SAFETY: both addresses are those of an item of the plane.
            unsafe { to.cast::<W>().write_unaligned(from.cast::<W>().read_unaligned().swapped()) }
            from = from.wrapping_offset(columns.a as isize);
            to = to.wrapping_offset(columns.b as isize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_turned_over() {
        let bytes: [u64; WORD] =
            std::array::from_fn(|row| u64::from_le_bytes(std::array::from_fn(|c| (8 * row + c) as u8)));
        let mut turned = bytes;
        turn_over::<1>(&mut turned);
        for (row, word) in turned.iter().enumerate() {
            assert_eq!(word.to_le_bytes(), std::array::from_fn(|c| (8 * c + row) as u8));
        }
        turn_over::<1>(&mut turned);
        assert_eq!(turned, bytes);
        let mut pairs: [u64; WORD] =
            [0x0003_0002_0001_0000, 0x0013_0012_0011_0010, 0x0023_0022_0021_0020, 0x0033_0032_0031_0030, 0, 0, 0, 0];
        turn_over::<2>(&mut pairs);
        assert_eq!(
            pairs[..4],
            [0x0030_0020_0010_0000, 0x0031_0021_0011_0001, 0x0032_0022_0012_0002, 0x0033_0023_0013_0003]
        );
    }
}
