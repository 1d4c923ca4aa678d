//! Short runs of a peer's memory go by way of a buffer, in which those of many pieces gather for one system call.

use std::cell::Cell;
use std::io;

use hyperslab_layout::reach::GAP_BYTES_MAX;
use hyperslab_layout::{ElementType, Nest};
use hyperslab_pack::{NotANumber, copy_raw};

use super::cross::{Batch, Direction};
use super::tiles::{Tile, Walk};

/// Size of the buffer \[B\]: it should stay in the second-level cache.
pub(super) const BUFFER_BYTES: u64 = 256 << 10;

/// Most tiles that wait in the buffer, so that what is noted of them stays as small as it, however short they are.
const WAITING_MAX: usize = BUFFER_BYTES as usize / size_of::<Waiting>();

thread_local! {
    /// The buffer of this thread, while nobody has it.
    static BUFFER: Cell<Vec<u128>> = const { Cell::new(Vec::new()) };
}

/// Elements of a pull that leave the buffer when the call has been made.
struct Waiting {
    elements: Nest,
    /// Where the tile begins in the buffer \[B\].
    at: usize,
    element: ElementType,
    local: (*mut u8, ElementType),
}

/// Tiles on their way between a peer and here.
pub(super) struct Staged {
    direction: Direction,
    batch: Batch,
    buffer: Vec<u128>,
    /// Bytes of the buffer that are in use, and where in the peer's memory the last of them end.
    used: usize,
    end: u64,
    waiting: Vec<Waiting>,
    /// What came of copies from and to the buffer.
    pub(super) copied: Result<(), NotANumber>,
}

impl Staged {
    /// Nothing yet, between here and the process `pid`.
    pub(super) fn new(pid: i32, direction: Direction) -> Staged {
        let batch = Batch::new(pid, direction);
        Staged { direction, batch, buffer: Vec::new(), used: 0, end: 0, waiting: Vec::new(), copied: Ok(()) }
    }

    /// Adds a tile, which fits the buffer, and moves what has gathered whenever that is full.
    ///
    /// # Safety
    /// As [`super::Crossing::add`] says; the elements of the tile are among those.
    pub(super) unsafe fn add(
        &mut self,
        tile: Tile,
        (base, element): (u64, ElementType),
        local: (*mut u8, ElementType),
    ) -> io::Result<()> {
        let bytes = (tile.spans.elements() * tile.span_bytes) as usize;
        let first = base.wrapping_add_signed(tile.spans.a);
        // A gap before it is read along, if the tile is one run and so can lie behind that in the buffer.
        let joins = self.direction == Direction::Pull && self.used > 0 && tile.spans.loops.is_empty();
        let mut gap = match first.checked_sub(self.end) {
            Some(gap) if joins && gap <= GAP_BYTES_MAX => gap as usize,
            _ => 0,
        };
        if self.used + gap + bytes > BUFFER_BYTES as usize || self.waiting.len() == WAITING_MAX {
            // SAFETY: what was added is as it was vouched for.
            unsafe { self.flush()? };
            gap = 0;
        }
        if self.buffer.is_empty() {
            self.buffer = BUFFER.take();
            self.buffer.resize(BUFFER_BYTES as usize / size_of::<u128>(), 0);
        }
        let buffer: *mut u8 = self.buffer.as_mut_ptr().cast();
        if gap > 0 {
            // SAFETY: there is room in the buffer, and pages that hold the ends of the gap hold all of it.
            unsafe { self.batch.add(buffer.wrapping_add(self.used), self.end, gap)? };
        }
        let at = self.used + gap;
        let place = buffer.wrapping_add(at);
        let Tile { spans, span_bytes, elements } = tile;
        if self.direction == Direction::Push {
            // SAFETY: the tile's elements fit the buffer, and are the caller's on the local side.
            let copied = unsafe { copy_raw(&elements.swapped(), local.0, local.1, place, element) };
            self.copied = self.copied.and(copied);
        }
        for (a, b) in Walk::new(&spans.loops, spans.a, spans.b) {
            let far = base.wrapping_add_signed(a);
            // SAFETY: the span lies in the buffer, and between the first and the last of the peer's elements.
            unsafe { self.batch.add(place.wrapping_offset(b as isize), far, span_bytes as usize)? };
            self.end = far + span_bytes;
        }
        self.used = at + bytes;
        if self.direction == Direction::Pull {
            self.waiting.push(Waiting { elements, at, element, local });
        }
        Ok(())
    }

    /// Moves what has gathered.
    ///
    /// # Safety
    /// As for [`Staged::add`].
    pub(super) unsafe fn flush(&mut self) -> io::Result<()> {
        // SAFETY: as the caller vouches.
        unsafe { self.batch.flush()? };
        let buffer: *const u8 = self.buffer.as_ptr().cast();
        for Waiting { elements, at, element, local } in self.waiting.drain(..) {
            // SAFETY: the elements are in the buffer now, and are the caller's on the local side.
            let copied = unsafe { copy_raw(&elements, buffer.wrapping_add(at), element, local.0, local.1) };
            self.copied = self.copied.and(copied);
        }
        self.used = 0;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            BUFFER.set(std::mem::take(&mut self.buffer));
        }
    }
}
