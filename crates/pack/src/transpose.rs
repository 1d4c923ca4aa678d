//! Copies that transpose, one tile at a time.
//!
//! In a transposing plane one side is (nearly) contiguous along the rows and the other along the columns. Whichever
//! side is walked with long steps touches one cache line per item, and when the steps are a large power of two these
//! lines evict each other before their other items are used. So a tile is first read along its contiguous direction
//! into a small scratch, whose pitch is harmless, and then written along the other one.

use std::mem::MaybeUninit;

use hyperslab_layout::Loop;

use crate::moves::{Move, mover};
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

/// How the tiles of a plane are carried out. It is made once for all of them: a plane that is made anew for each tile is read
/// back at once, by loads that are wider than what was stored, and so waits until all stores before it are over, which miss
/// the cache. Measured with two variables of 24 that become wider in memory, read by 8 ranks: 24 ms; so 8.
pub(crate) struct ReadyTile {
    /// By way of a scratch: how items get there.
    staged: Option<(Move, Plane, usize)>,
    /// What the kernel is given, from the scratch on if there is one.
    plane: Plane,
}

impl ReadyTile {
    /// Of items that have `bytes` bytes on side `a`.
    pub(crate) fn new(tile: Plane, bytes: u64) -> ReadyTile {
        let Plane { rows, columns } = tile;
        if rows.count < STAGED.0 || columns.count < STAGED.1 {
            // All its lines are in the cache after the first turn, so the longer loop may as well be the inner one.
            let turned = Plane { rows: columns, columns: rows };
            return ReadyTile { staged: None, plane: if rows.count > columns.count { turned } else { tile } };
        }
        let line = rows.count * bytes;
        let (item, pitch) = (bytes as i64, (line + PAD) as i64);
        assert!(columns.count as usize * pitch as usize <= SCRATCH, "a tile of {} x {line} bytes", columns.count);
        let lines = Loop { count: columns.count, a: columns.a, b: pitch };
        let staged = if rows.a == item {
            (mover(line), Plane { rows: ONCE, columns: lines }, line as usize)
        } else {
            let items = Loop { count: rows.count, a: rows.a, b: item };
            (mover(bytes), Plane { rows: lines, columns: items }, bytes as usize)
        };
        let plane = Plane { rows: Loop { a: item, ..rows }, columns: Loop { a: pitch, ..columns } };
        ReadyTile { staged: Some(staged), plane }
    }

    /// Carries out one.
    ///
    /// # Safety
    /// All items of the tile must be readable from `from` on and writable from `to` on; `kernel` must access no more than
    /// the items of the plane that it is given.
    pub(crate) unsafe fn carry_out(&self, from: *const u8, to: *mut u8, kernel: &impl Fn(*const u8, *mut u8, &Plane)) {
        match self.staged {
            // SAFETY: as promised.
            Some((mover, ref plane, bytes)) => unsafe {
                self.by_scratch(from, to, |from, to| mover(from, to, plane, bytes), kernel)
            },
            None => kernel(from, to, &self.plane),
        }
    }

    /// Apart, since a scratch on the stack costs those who need none.
    ///
    /// # Safety
    /// As for [`ReadyTile::carry_out`]; `fetch` must write no more than the scratch has.
    #[inline(never)]
    unsafe fn by_scratch(
        &self,
        from: *const u8,
        to: *mut u8,
        fetch: impl Fn(*const u8, *mut u8),
        kernel: &impl Fn(*const u8, *mut u8, &Plane),
    ) {
        let mut scratch = MaybeUninit::<[u8; SCRATCH]>::uninit();
        let scratch = scratch.as_mut_ptr().cast::<u8>();
        fetch(from, scratch);
        kernel(scratch, to, &self.plane);
    }
}
