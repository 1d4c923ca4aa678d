//! Half precision, in software.
//!
//! Written so that loops over it vectorise on any processor (selections instead of branches), and so that it never
//! computes with subnormal single-precision numbers: numerical programs often run with flush-to-zero switched on.

/// Bits of an IEEE 754 binary16 number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct Float16(pub(crate) u16);

impl Float16 {
    /// The same value in single precision, which holds every half exactly.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let magnitude = u32::from(self.0 & 0x7fff) << 13;
        let exponent = magnitude & 0x0f80_0000;
        let normal = magnitude + ((127 - 15) << 23);
        let special = normal + ((128 - 16) << 23);
        // A subnormal half is a multiple of 2^-24: put it behind the leading bit of 2^-14, then take that away.
        let subnormal = (f32::from_bits(normal + (1 << 23)) - f32::from_bits((127 - 14) << 23)).to_bits();
        let finite = if exponent == 0 { subnormal } else { normal };
        f32::from_bits(sign | if exponent == 0x0f80_0000 { special } else { finite })
    }

    /// The nearest half, ties to even; too large becomes infinite.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> Float16 {
        let sign = (value.to_bits() >> 16) as u16 & 0x8000;
        let magnitude = value.to_bits() & 0x7fff_ffff;
        let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
        // Adding 0.5, whose last place is 2^-24, lets the addition itself round to the spacing of subnormal halves.
        let half = 0.5f32;
        let subnormal = (f32::from_bits(magnitude) + half).to_bits().wrapping_sub(half.to_bits()) as u16;
        // Rounding by an addition that carries into the kept bits; it may carry into the exponent, as it should.
        let odd = (magnitude >> 13) & 1;
        let rounded = magnitude.wrapping_add(0xfff + odd).wrapping_sub((127 - 15) << 23);
        let normal = (rounded >> 13) as u16;
        let finite = if magnitude < (127 - 14) << 23 { subnormal } else { normal };
        Float16(sign | if magnitude >= (127 + 16) << 23 { special } else { finite })
    }

    /// The nearest half, ties to even, rounded once.
    #[inline(always)]
    pub(crate) fn from_f64(value: f64) -> Float16 {
        Float16::from_f32(rounded_to_odd(value))
    }
}

/// Rounds to single precision such that a second rounding, to a shorter format, gives what one rounding would.
///
/// Rounding to nearest twice would not. So the first step rounds to odd: a value that is not exact keeps its last bit
/// set, and the second step sees on which side of a tie it was.
#[inline(always)]
pub(crate) fn rounded_to_odd(value: f64) -> f32 {
    let near = value as f32;
    let back = f64::from(near);
    let beyond = u32::from(back.abs() > value.abs());
    let odd = (near.to_bits() - beyond) | 1;
    // NaN must not be changed, only passed on.
    let inexact = back != value && !value.is_nan();
    f32::from_bits(if inexact { odd } else { near.to_bits() })
}

#[cfg(test)]
mod tests {
    use super::Float16;

    #[test]
    fn every_half_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (Float16(bits).to_f32(), half::f16::from_bits(bits).to_f32());
            assert!(
                ours == theirs && ours.is_sign_positive() == theirs.is_sign_positive()
                    || ours.is_nan() && theirs.is_nan()
            );
            if !ours.is_nan() {
                assert_eq!(Float16::from_f32(ours), Float16(bits));
                assert_eq!(Float16::from_f64(f64::from(ours)), Float16(bits));
            }
        }
        assert_eq!(Float16::from_f32(f32::NAN).0 & 0x7fff, 0x7e00);
        assert_eq!(Float16::from_f64(-f64::NAN).0, 0xfe00);
    }

    #[test]
    fn singles_round_as_the_crate_half_rounds_them() {
        // Every sign and exponent, with mantissas around all ties.
        for top in 0..=u16::MAX {
            for low in [0u32, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0xf000, 0xffff] {
                let value = f32::from_bits(u32::from(top) << 16 | low);
                if !value.is_nan() {
                    let theirs = half::f16::from_f32_const(value).to_bits();
                    assert_eq!(Float16::from_f32(value).0, theirs, "{value:e}");
                }
            }
        }
    }

    #[test]
    fn doubles_are_rounded_once() {
        for bits in 0..0x7bffu16 {
            let (low, high) = (Float16(bits).to_f32(), Float16(bits + 1).to_f32());
            let tie = (f64::from(low) + f64::from(high)) / 2.0;
            let even = if bits % 2 == 0 { bits } else { bits + 1 };
            for sign in [0, 0x8000u16] {
                let signed = |x: f64| if sign == 0 { x } else { -x };
                assert_eq!(Float16::from_f64(signed(tie)).0, sign | even);
                assert_eq!(Float16::from_f64(signed(tie.next_up())).0, sign | (bits + 1));
                assert_eq!(Float16::from_f64(signed(tie.next_down())).0, sign | bits);
            }
        }
        for (value, bits) in [(65519.999, 0x7bff), (65520.0, 0x7c00), (1e300, 0x7c00), (-f64::INFINITY, 0xfc00)] {
            assert_eq!(Float16::from_f64(value).0, bits);
        }
        assert_eq!((Float16::from_f64(5e-324).0, Float16::from_f64(-0.0).0), (0, 0x8000));
    }
}
