//! Small things by mimalloc, large ones by the C library.
//!
//! A third of the time of a call of hundreds of small arrays went into `malloc` and `free` of the C library. Large
//! things are few, and mimalloc keeps those that one thread allocated and another gave back, as encoded chunks are, for
//! good. So the size decides: it is known both when memory is taken and when it is given back. Of each thread mimalloc takes
//! 32 MiB of addresses at once. Where a system limits these and has no more, small things come from the C library, too.

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_zalloc};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cmp::min;
use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    /// Of mimalloc; the options have the numbers of `mi_option_t`, here of version 2. If they change, `test_budget.py` finds out.
    fn mi_option_set(option: c_int, value: c_long);
    /// Whether mimalloc has given it.
    fn mi_is_in_heap_region(base: *const c_void) -> bool;
}

/// Whether the C library has given something small. Whoever gives that back has seen this set: it was set before.
static SPILLED: AtomicBool = AtomicBool::new(false);

/// Lets mimalloc take address space as it is needed. It would take 1 GiB at once, which counts where a system limits that.
extern "C" fn reserve_nothing() {
    let arena_reserve = 23;
    // SAFETY: mimalloc allows it at any time.
    unsafe { mi_option_set(arena_reserve, 0) }
}

/// When the module is loaded: its first function allocates before it begins.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOADING: extern "C" fn() = reserve_nothing;

/// The allocator of the module.
pub(crate) struct BySize {
    /// Bytes up to which mimalloc allocates.
    pub(crate) small: usize,
}

impl BySize {
    /// Whether mimalloc allocates so many bytes: it aligns all to words, unasked.
    fn is_small(&self, bytes: usize, align: usize) -> bool {
        bytes <= self.small && align <= align_of::<usize>()
    }

    fn gives(&self, layout: Layout) -> bool {
        self.is_small(layout.size(), layout.align())
    }

    /// Whether mimalloc has given what lies here.
    fn has_given(&self, base: *mut u8, layout: Layout) -> bool {
        // SAFETY: any address may be asked for.
        self.gives(layout) && (!SPILLED.load(Ordering::Relaxed) || unsafe { mi_is_in_heap_region(base.cast()) })
    }
}

/// What mimalloc gives, or else the C library.
fn or_else(given: *mut c_void, other: impl FnOnce() -> *mut u8) -> *mut u8 {
    if given.is_null() {
        SPILLED.store(true, Ordering::Relaxed);
        return other();
    }
    given.cast()
}

// SAFETY: each of both allocators keeps what the trait asks for, and what one has given is never handed to the other: the
// layout of what is given back, or grows, is the one with which it was asked for.
unsafe impl GlobalAlloc for BySize {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that are asked for.
        let system = || unsafe { System.alloc(layout) };
        // SAFETY: as above.
        if self.gives(layout) { or_else(unsafe { mi_malloc(layout.size()) }, system) } else { system() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let system = || unsafe { System.alloc_zeroed(layout) };
        // SAFETY: as above.
        if self.gives(layout) { or_else(unsafe { mi_zalloc(layout.size()) }, system) } else { system() }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: as above; `base` came from the allocator that has given it.
        unsafe { if self.has_given(base, layout) { mi_free(base.cast()) } else { System.dealloc(base, layout) } }
    }

    unsafe fn realloc(&self, base: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let given = self.has_given(base, layout);
        if given && self.is_small(bytes, layout.align()) {
            // SAFETY: as above, and the new size stays with the same allocator; what that has no room for stays where it is.
            let grown = unsafe { mi_realloc(base.cast(), bytes) };
            if !grown.is_null() {
                return grown.cast();
            }
        }
        match (given, self.is_small(bytes, layout.align())) {
            // SAFETY: as above.
            (false, false) => unsafe { System.realloc(base, layout, bytes) },
            // SAFETY: the caller promises that `bytes`, rounded up, fits, and is not zero; both places are as long as what is
            // copied, and are not the same.
            _ => unsafe {
                let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(base, min(layout.size(), bytes));
                    self.dealloc(base, layout);
                }
                moved
            },
        }
    }
}
