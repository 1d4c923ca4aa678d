//! Kernels that change the kind of number.

use hyperslab_layout::{Kind, Loop};

use crate::bfloat16::BFloat16;
use crate::float16::Float16;
use crate::number::{Complex, Number, Truth};
use crate::shape::Plane;

/// Converts the elements of one plane; the flags say whose bytes are in the other order. Tells whether a NaN was to
/// become an integer.
///
/// # Safety
/// All elements of the plane must be readable from the first address on, and writable from the second on.
pub(crate) type Convert = unsafe fn(*const u8, *mut u8, &Plane, swap_from: bool, swap_to: bool) -> bool;

/// The kernel from one kind to another.
pub(crate) fn kernel(from: Kind, to: Kind) -> Convert {
    match from {
        Kind::Bool => to_kind::<Truth>(to),
        Kind::Int8 => to_kind::<i8>(to),
        Kind::Int16 => to_kind::<i16>(to),
        Kind::Int32 => to_kind::<i32>(to),
        Kind::Int64 => to_kind::<i64>(to),
        Kind::UInt8 => to_kind::<u8>(to),
        Kind::UInt16 => to_kind::<u16>(to),
        Kind::UInt32 => to_kind::<u32>(to),
        Kind::UInt64 => to_kind::<u64>(to),
        Kind::Float16 => to_kind::<Float16>(to),
        Kind::BFloat16 => to_kind::<BFloat16>(to),
        Kind::Float32 => to_kind::<f32>(to),
        Kind::Float64 => to_kind::<f64>(to),
        Kind::Complex64 => to_kind::<Complex<f32>>(to),
        Kind::Complex128 => to_kind::<Complex<f64>>(to),
        Kind::Opaque(_) => unreachable!("what is opaque is never converted"),
    }
}

fn to_kind<F: Number>(to: Kind) -> Convert {
    match to {
        Kind::Bool => plane::<F, Truth>,
        Kind::Int8 => plane::<F, i8>,
        Kind::Int16 => plane::<F, i16>,
        Kind::Int32 => plane::<F, i32>,
        Kind::Int64 => plane::<F, i64>,
        Kind::UInt8 => plane::<F, u8>,
        Kind::UInt16 => plane::<F, u16>,
        Kind::UInt32 => plane::<F, u32>,
        Kind::UInt64 => plane::<F, u64>,
        Kind::Float16 => plane::<F, Float16>,
        Kind::BFloat16 => plane::<F, BFloat16>,
        Kind::Float32 => plane::<F, f32>,
        Kind::Float64 => plane::<F, f64>,
        Kind::Complex64 => plane::<F, Complex<f32>>,
        Kind::Complex128 => plane::<F, Complex<f64>>,
        Kind::Opaque(_) => unreachable!("what is opaque is never converted"),
    }
}

/// # Safety
/// As for [`Convert`].
unsafe fn plane<F: Number, T: Number>(
    from: *const u8,
    to: *mut u8,
    plane: &Plane,
    swap_from: bool,
    swap_to: bool,
) -> bool {
    let Plane { rows, columns } = *plane;
    let contiguous = columns.a == F::BYTES as i64 && columns.b == T::BYTES as i64;
    let mut nan = false;
    for row in 0..rows.count as isize {
        let from = from.wrapping_offset(row * rows.a as isize);
        let to = to.wrapping_offset(row * rows.b as isize);
        // SAFETY: the caller promises that every element of the plane may be accessed, and so those of this row.
        unsafe {
            if contiguous && !swap_from && !swap_to {
                nan |= contiguous_row::<F, T>(from, to, columns.count as usize);
            } else {
                nan |= strided_row::<F, T>(from, to, columns, swap_from, swap_to);
            }
        }
    }
    nan
}

/// Apart from the strided row because it vectorises only when the steps are constants.
///
/// # Safety
/// `count` elements must be readable at `from` and writable at `to`.
#[inline(always)]
unsafe fn contiguous_row<F: Number, T: Number>(from: *const u8, to: *mut u8, count: usize) -> bool {
    let mut nan = false;
    for i in 0..count {
        // SAFETY: `i` is less than `count`.
        unsafe {
            let value = F::read(from.add(i * F::BYTES), false);
            nan |= T::INTEGER && value.is_nan();
            value.give::<T>().write(to.add(i * T::BYTES), false);
        }
    }
    nan
}

/// # Safety
/// All elements of the row must be readable at `from` and writable at `to`.
#[inline(always)]
unsafe fn strided_row<F: Number, T: Number>(
    from: *const u8,
    to: *mut u8,
    columns: Loop,
    swap_from: bool,
    swap_to: bool,
) -> bool {
    let (mut from, mut to) = (from, to);
    let mut nan = false;
    for _ in 0..columns.count {
        // SAFETY: both addresses are those of an element of this row; after the last they are only computed.
        unsafe {
            let value = F::read(from, swap_from);
            nan |= T::INTEGER && value.is_nan();
            value.give::<T>().write(to, swap_to);
        }
        from = from.wrapping_offset(columns.a as isize);
        to = to.wrapping_offset(columns.b as isize);
    }
    nan
}
