//! Copying every element of a nest from one memory to another.

use std::cell::Cell;

use hyperslab_layout::{ElementType, Kind, Loop, Nest};

use crate::bounds::{Side, check_memory};
use crate::convert;
use crate::memory::Memory;
use crate::moves::{mover, swapper};
use crate::nan::{CopyError, NotANumber};
use crate::shape::{Plane, Walk, canonical, take_run};
use crate::transpose::ReadyTile;

/// Copies every element of side `a`, in `from`, to side `b`, in `to`, converting where the element types differ.
///
/// Values convert as NumPy's `astype(casting="unsafe")` does where that is defined:
/// integers wrap to fewer bits; integers become the nearest float, ties to even, as do floats of lower precision;
/// floats truncate to integers; complex numbers lose their imaginary part, real numbers gain one of 0; everything is
/// true but zero, and true is one. Where NumPy leaves it to the processor, a float outside of an integer's range
/// becomes the integer nearest to it, and NaN becomes zero and is an error. Elements of equal kind keep their bits, so that NaNs keep
/// their payload.
///
/// Where several elements go to one address, or an element is read after it was overwritten (both sides may lie in
/// one memory), which value arrives is not specified.
///
/// # Errors
/// [`CopyError::OutOfBounds`] when an element on either side lies outside of its memory, [`CopyError::OutOfReach`] when
/// a memory is not of this host; nothing has been copied then.
/// [`CopyError::NotANumber`] when a NaN was to become an integer; everything has been copied then; or what is opaque
/// anything else, when nothing has.
pub fn copy(
    nest: &Nest,
    from: &Memory,
    from_type: ElementType,
    to: &Memory,
    to_type: ElementType,
) -> Result<(), CopyError> {
    check_memory(nest, Side::From, from_type.bytes(), from)?;
    check_memory(nest, Side::To, to_type.bytes(), to)?;
    // SAFETY: all elements of both sides lie within their memories, as just checked, and those are alive.
    Ok(unsafe { copy_raw(nest, from.pointer(), from_type, to.pointer(), to_type) }?)
}

/// As [`copy`], between two base addresses and without checks: for regions of other threads and scratch memory.
///
/// # Errors
/// [`NotANumber`] as for [`copy`].
///
/// # Safety
/// Every element of side `a`, relative to `from`, must be readable, and every element of side `b`, relative to `to`,
/// must be writable. No Rust reference to the bytes written may be used meanwhile.
pub unsafe fn copy_raw(
    nest: &Nest,
    from: *const u8,
    from_type: ElementType,
    to: *mut u8,
    to_type: ElementType,
) -> Result<(), NotANumber> {
    let Some(nest) = canonical(nest) else { return Ok(()) };
    let (swap_from, swap_to) = (swapped(from_type), swapped(to_type));
    // SAFETY: in all branches, the nest visits what the caller has promised to be accessible.
    unsafe {
        if !same_bits(from_type.kind, to_type.kind) {
            if from_type.kind.is_opaque() || to_type.kind.is_opaque() {
                return Err(NotANumber { from: from_type.kind, to: to_type.kind });
            }
            let kernel = convert::kernel(from_type.kind, to_type.kind);
            let sizes = (from_type.bytes(), to_type.bytes());
            let nan = Cell::new(false);
            drive(nest, from, to, sizes, |from, to, plane| {
                nan.set(kernel(from, to, plane, swap_from, swap_to) | nan.get());
            });
            if nan.get() {
                return Err(NotANumber { from: from_type.kind, to: to_type.kind });
            }
        } else if swap_from == swap_to {
            move_items(nest, from, to, from_type.bytes());
        } else {
            swap_items(nest, from, to, from_type);
        }
    }
    Ok(())
}

/// # Safety
/// As for [`copy_raw`], for elements of `bytes` bytes on both sides.
unsafe fn move_items(mut nest: Nest, from: *const u8, to: *mut u8, bytes: u64) {
    let run = take_run(&mut nest, bytes);
    let kernel = mover(run);
    // SAFETY: runs consist of elements, which the caller has promised to be accessible.
    unsafe { drive(nest, from, to, (run, run), |from, to, plane| kernel(from, to, plane, run as usize)) }
}

/// # Safety
/// As for [`copy_raw`], for elements of type `element` on both sides.
unsafe fn swap_items(mut nest: Nest, from: *const u8, to: *mut u8, element: ElementType) {
    let unit = element.kind.swap_bytes();
    let Some(kernel) = swapper(unit) else {
        unreachable!("elements of {unit} bytes have no byte order");
    };
    let parts = element.bytes() / unit;
    if parts > 1 {
        // The halves of a complex number are swapped one by one: one more loop, which may continue the innermost.
        nest.loops.push(Loop { count: parts, a: unit as i64, b: unit as i64 });
        nest = nest.normalised();
    }
    // SAFETY: units are parts of elements, which the caller has promised to be accessible.
    unsafe { drive(nest, from, to, (unit, unit), |from, to, plane| kernel(from, to, plane, unit as usize)) }
}

/// Calls the kernel for all planes of a canonical nest over items of `sizes` bytes on the two sides.
///
/// # Safety
/// All items that the nest visits must be readable and writable; the kernel must access no more than the items of the
/// plane that it is given.
unsafe fn drive(
    nest: Nest,
    from: *const u8,
    to: *mut u8,
    sizes: (u64, u64),
    kernel: impl Fn(*const u8, *mut u8, &Plane),
) {
    let walk = Walk::new(nest, sizes.0.max(sizes.1));
    let at = |a: i64, b: i64| (from.wrapping_offset(a as isize), to.wrapping_offset(b as isize));
    if !walk.transposes() {
        return walk.for_each_plane(|a, b, plane| {
            let (from, to) = at(a, b);
            kernel(from, to, plane);
        });
    }
    walk.with(|plane| ReadyTile::new(plane, sizes.0)).for_each_plane(|a, b, tile| {
        let (from, to) = at(a, b);
        // SAFETY: tiles consist of items of the nest.
        unsafe { tile.carry_out(from, to, &kernel) }
    });
}

pub(crate) fn swapped(element: ElementType) -> bool {
    element != ElementType::native(element.kind)
}

/// Whether converting leaves all bits as they are, apart from byte order.
pub(crate) fn same_bits(from: Kind, to: Kind) -> bool {
    let integer = |kind: Kind| (Kind::Int8..=Kind::UInt64).contains(&kind);
    // What opaque bytes mean is compared before they move, and is not told to neighbours.
    if from.is_opaque() && to.is_opaque() {
        return (from.bytes(), from.swap_bytes()) == (to.bytes(), to.swap_bytes());
    }
    from == to || (integer(from) && integer(to) && from.bytes() == to.bytes())
}
