//! Memory that an input takes: a small multiple of it, and what any input may take.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What an input may take whatever its length \[B\].
const BYTES_MAX: usize = 48 << 20;
/// And how often its own length.
const TIMES_MAX: usize = 256;

/// The system's memory, counted.
struct CountedMemory;

static TAKEN: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

#[global_allocator]
static MEMORY: CountedMemory = CountedMemory;

/// Does something with an input of so many bytes, and ends the process if it takes too much memory.
pub(crate) fn limited(input_bytes: usize, work: impl FnOnce()) {
    LIMIT.store(TAKEN.load(Relaxed) + BYTES_MAX + TIMES_MAX * input_bytes, Relaxed);
    work();
    LIMIT.store(usize::MAX, Relaxed);
}

fn take(bytes: usize) {
    let taken = TAKEN.fetch_add(bytes, Relaxed) + bytes;
    if taken > LIMIT.load(Relaxed) {
        LIMIT.store(usize::MAX, Relaxed);
        // What tells of it takes memory, too, but no limit holds any more.
        panic!("{bytes} B more than {} B are too much for this input", taken - bytes);
    }
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for CountedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}
