//! Conversion of one number, for kernels: every kind reads, writes, and gives its value to every other kind.
//!
//! Instead of one rule per pair of kinds, a kind hands over its value in the widest exact form (`give`), and the
//! other accepts each of those forms (`from_*`). After inlining nothing of the detour remains.

use crate::bfloat16::BFloat16;
use crate::float16::Float16;

/// A value of one of the 15 kinds.
pub(crate) trait Number: Copy {
    /// Size \[B\].
    const BYTES: usize;
    /// Whether it is an integer, with or without a sign, which NaN cannot become.
    const INTEGER: bool = false;

    /// Reads from native byte order, or from the other one when `swap` is set.
    ///
    /// # Safety
    /// `BYTES` bytes at `at` must be readable; they need no alignment.
    unsafe fn read(at: *const u8, swap: bool) -> Self;

    /// Writes in native byte order, or in the other one when `swap` is set.
    ///
    /// # Safety
    /// `BYTES` bytes at `at` must be writable; they need no alignment.
    unsafe fn write(self, at: *mut u8, swap: bool);

    /// The same value as another kind.
    fn give<T: Number>(self) -> T;

    /// Whether it is NaN, or has a part that is.
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }

    fn from_i64(value: i64) -> Self;
    fn from_u64(value: u64) -> Self;
    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;

    /// Takes the real part unless it can do better.
    #[inline(always)]
    fn from_complex64(re: f32, _im: f32) -> Self {
        Self::from_f32(re)
    }

    /// Takes the real part unless it can do better.
    #[inline(always)]
    fn from_complex128(re: f64, _im: f64) -> Self {
        Self::from_f64(re)
    }
}

/// Reading and writing by way of an unsigned integer of the same size.
macro_rules! access {
    ($bits:ty, |$b:ident| $from:expr, |$v:ident| $to:expr) => {
        const BYTES: usize = size_of::<$bits>();

        #[inline(always)]
        unsafe fn read(at: *const u8, swap: bool) -> Self {
            // SAFETY: the caller promises that these bytes are readable.
            let $b = unsafe { at.cast::<$bits>().read_unaligned() };
            let $b = if swap { $b.swap_bytes() } else { $b };
            $from
        }

        #[inline(always)]
        unsafe fn write(self, at: *mut u8, swap: bool) {
            let $v = self;
            let bits: $bits = $to;
            // SAFETY: the caller promises that these bytes are writable.
            unsafe { at.cast::<$bits>().write_unaligned(if swap { bits.swap_bytes() } else { bits }) }
        }
    };
}

/// Integers and native floats accept everything by `as`: integers wrap, floats round to nearest even, and a float
/// that does not fit an integer becomes its nearest value (NaN becomes 0).
macro_rules! primitive {
    ($($t:ty, $bits:ty, $form:ident, $wide:ty, $integer:expr;)*) => {$(
        impl Number for $t {
            const INTEGER: bool = $integer;

            access!(
                $bits,
                |bits| <$t>::from_ne_bytes(bits.to_ne_bytes()),
                |value| <$bits>::from_ne_bytes(value.to_ne_bytes())
            );

            #[inline(always)]
            fn give<T: Number>(self) -> T {
                T::$form(self as $wide)
            }

            // Only NaN differs from itself.
            #[inline(always)]
            #[allow(clippy::eq_op)]
            fn is_nan(self) -> bool {
                self != self
            }

            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $t
            }

            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as $t
            }

            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                value as $t
            }

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $t
            }
        }
    )*};
}

primitive! {
    i8, u8, from_i64, i64, true;
    i16, u16, from_i64, i64, true;
    i32, u32, from_i64, i64, true;
    i64, u64, from_i64, i64, true;
    u8, u8, from_u64, u64, true;
    u16, u16, from_u64, u64, true;
    u32, u32, from_u64, u64, true;
    u64, u64, from_u64, u64, true;
    f32, u32, from_f32, f32, false;
    f64, u64, from_f64, f64, false;
}

impl Number for Float16 {
    access!(u16, |bits| Float16(bits), |value| value.0);

    #[inline(always)]
    fn give<T: Number>(self) -> T {
        T::from_f32(self.to_f32())
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.to_f32().is_nan()
    }

    // By way of single precision, which is exact wherever the result is finite.
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Float16::from_f32(value as f32)
    }

    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        Float16::from_f32(value as f32)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Float16::from_f32(value)
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Float16::from_f64(value)
    }
}

impl Number for BFloat16 {
    access!(u16, |bits| BFloat16(bits), |value| value.0);

    #[inline(always)]
    fn give<T: Number>(self) -> T {
        T::from_f32(self.to_f32())
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.to_f32().is_nan()
    }

    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        BFloat16::from_i64(value)
    }

    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        BFloat16::from_u64(value)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        BFloat16::from_f32(value)
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        BFloat16::from_f64(value)
    }
}

/// A truth value: one byte, false when 0.
#[derive(Clone, Copy)]
pub(crate) struct Truth(bool);

impl Number for Truth {
    access!(u8, |bits| Truth(bits != 0), |value| u8::from(value.0));

    #[inline(always)]
    fn give<T: Number>(self) -> T {
        T::from_u64(u64::from(self.0))
    }

    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Truth(value != 0)
    }

    #[inline(always)]
    fn from_u64(value: u64) -> Self {
        Truth(value != 0)
    }

    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Truth(value != 0.0)
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Truth(value != 0.0)
    }

    #[inline(always)]
    fn from_complex64(re: f32, im: f32) -> Self {
        Truth(re != 0.0 || im != 0.0)
    }

    #[inline(always)]
    fn from_complex128(re: f64, im: f64) -> Self {
        Truth(re != 0.0 || im != 0.0)
    }
}

/// A complex number: real part, then imaginary part.
#[derive(Clone, Copy)]
pub(crate) struct Complex<R>(R, R);

macro_rules! complex {
    ($($r:ty, $form:ident;)*) => {$(
        impl Number for Complex<$r> {
            const BYTES: usize = 2 * size_of::<$r>();

            #[inline(always)]
            unsafe fn read(at: *const u8, swap: bool) -> Self {
                // SAFETY: the caller promises that both halves are readable.
                unsafe { Complex(<$r>::read(at, swap), <$r>::read(at.add(size_of::<$r>()), swap)) }
            }

            #[inline(always)]
            unsafe fn write(self, at: *mut u8, swap: bool) {
                // SAFETY: the caller promises that both halves are writable.
                unsafe {
                    self.0.write(at, swap);
                    self.1.write(at.add(size_of::<$r>()), swap);
                }
            }

            #[inline(always)]
            fn give<T: Number>(self) -> T {
                T::$form(self.0, self.1)
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                self.0.is_nan() || self.1.is_nan()
            }

            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                Complex(value as $r, 0.0)
            }

            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                Complex(value as $r, 0.0)
            }

            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                Complex(value as $r, 0.0)
            }

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                Complex(value as $r, 0.0)
            }

            #[inline(always)]
            fn from_complex64(re: f32, im: f32) -> Self {
                Complex(re as $r, im as $r)
            }

            #[inline(always)]
            fn from_complex128(re: f64, im: f64) -> Self {
                Complex(re as $r, im as $r)
            }
        }
    )*};
}

complex! {
    f32, from_complex64;
    f64, from_complex128;
}
