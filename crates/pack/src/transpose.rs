//! Copies that transpose, one tile at a time.
//!
//! In a transposing plane one side is (nearly) contiguous along the rows and the other along the columns. Whichever
//! side is walked with long steps touches one cache line per item, and when the steps are a large power of two these
//! lines evict each other before their other items are used. So a tile is first read along its contiguous direction
//! into a small scratch, whose pitch is harmless, and then written along the other one.

use std::mem::MaybeUninit;

use hyperslab_layout::Loop;

use crate::moves::mover;
use crate::shape::{ONCE, Plane, STRIP, TILE_BYTES, TILE_SIDES};

/// Added to the length of a line in the scratch, so that no two neighbours fall into one cache set.
const PAD: u64 = 16;

/// Tiles with fewer rows, or fewer columns, go without a scratch: so few lines hardly evict each other. Measured with 24 variables
/// of blocks with halo, 8 columns at a time: by way of a scratch in a third to a fifth of the time.
const STAGED: (u64, u64) = (6, 4);

/// Enough for any tile: the pads of the longest, and the items, of which the largest have `TILE_BYTES` bytes and the
/// smallest one.
const SCRATCH: usize = {
    let area = TILE_SIDES.1 * TILE_BYTES;
    let wide = TILE_SIDES.0 * TILE_SIDES.0 * TILE_BYTES;
    (STRIP * TILE_SIDES.1 * PAD + if area > wide { area } else { wide }) as usize
};

/// Carries out one tile, whose items have `bytes` bytes on side `a`.
///
/// # Safety
/// As for [`staged`].
pub(crate) unsafe fn tile(
    from: *const u8,
    to: *mut u8,
    tile: &Plane,
    bytes: u64,
    kernel: impl Fn(*const u8, *mut u8, &Plane),
) {
    let Plane { rows, columns } = *tile;
    if rows.count >= STAGED.0 && columns.count >= STAGED.1 {
        // SAFETY: as promised.
        unsafe { staged(from, to, tile, bytes, kernel) }
    } else if rows.count > columns.count {
        // All its lines are in the cache after the first turn, so the longer loop may as well be the inner one.
        kernel(from, to, &Plane { rows: columns, columns: rows });
    } else {
        kernel(from, to, tile);
    }
}

/// Carries out a tile by way of a scratch: moves there, then `kernel` from there.
///
/// # Safety
/// All items of the tile must be readable from `from` on and writable from `to` on; `kernel` must access no more than
/// the items of the plane that it is given.
unsafe fn staged(from: *const u8, to: *mut u8, tile: &Plane, bytes: u64, kernel: impl Fn(*const u8, *mut u8, &Plane)) {
    let Plane { rows, columns } = *tile;
    let line = rows.count * bytes;
    let (item, pitch) = (bytes as i64, (line + PAD) as i64);
    assert!(columns.count as usize * pitch as usize <= SCRATCH, "a tile of {} x {line} bytes", columns.count);
    let mut scratch = MaybeUninit::<[u8; SCRATCH]>::uninit();
    let scratch = scratch.as_mut_ptr().cast::<u8>();
    let lines = Loop { count: columns.count, a: columns.a, b: pitch };
    // SAFETY: the items of the tile are readable, and their images fit into the scratch, as just asserted.
    unsafe {
        if rows.a == item {
            mover(line)(from, scratch, &Plane { rows: ONCE, columns: lines }, line as usize);
        } else {
            let items = Loop { count: rows.count, a: rows.a, b: item };
            mover(bytes)(from, scratch, &Plane { rows: lines, columns: items }, bytes as usize);
        }
    }
    let rows = Loop { a: item, ..rows };
    kernel(scratch, to, &Plane { rows, columns: Loop { a: pitch, ..columns } });
}
