//! The brain floating-point format: single precision without its lower half.

use crate::float16::rounded_to_odd;

/// Bits of a bfloat16 number: sign, 8 bits of exponent, 7 of fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct BFloat16(pub(crate) u16);

impl BFloat16 {
    /// The same value in single precision.
    #[inline(always)]
    pub(crate) fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    /// The nearest value, ties to even; too large becomes infinite.
    #[inline(always)]
    pub(crate) fn from_f32(value: f32) -> BFloat16 {
        let bits = value.to_bits();
        let odd = (bits >> 16) & 1;
        // May carry into the exponent, up to that of infinity, as it should.
        let rounded = (bits.wrapping_add(0x7fff + odd) >> 16) as u16;
        let nan = (bits >> 16) as u16 & 0x8000 | 0x7fc0;
        BFloat16(if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded })
    }

    /// The nearest value, ties to even, rounded once.
    #[inline(always)]
    pub(crate) fn from_f64(value: f64) -> BFloat16 {
        BFloat16::from_f32(rounded_to_odd(value))
    }

    /// The nearest value, ties to even, rounded once.
    #[inline(always)]
    pub(crate) fn from_u64(value: u64) -> BFloat16 {
        BFloat16::from_f64(held_exactly(value))
    }

    /// The nearest value, ties to even, rounded once.
    #[inline(always)]
    pub(crate) fn from_i64(value: i64) -> BFloat16 {
        let magnitude = held_exactly(value.unsigned_abs());
        BFloat16::from_f64(if value < 0 { -magnitude } else { magnitude })
    }
}

/// An integer in double precision that rounds to the same bfloat16. Where not all bits fit, the lowest are gathered
/// in one, far below those that are kept, which still says on which side of a tie the integer was.
#[inline(always)]
fn held_exactly(value: u64) -> f64 {
    let low = value & 0xfff;
    let gathered = (value - low) | u64::from(low != 0) << 12;
    (if value >> 53 == 0 { value } else { gathered }) as f64
}

#[cfg(test)]
mod tests {
    use super::BFloat16;

    #[test]
    fn every_value_survives_the_way_there_and_back() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (BFloat16(bits).to_f32(), half::bf16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan());
            let back = if ours.is_nan() { bits & 0x8000 | 0x7fc0 } else { bits };
            assert_eq!((BFloat16::from_f32(ours).0, BFloat16::from_f64(f64::from(ours)).0), (back, back));
        }
    }

    #[test]
    fn singles_round_as_the_crate_half_rounds_them() {
        for top in 0..=u16::MAX {
            for low in [0u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(top) << 16 | low);
                if !value.is_nan() {
                    assert_eq!(BFloat16::from_f32(value).0, half::bf16::from_f32(value).to_bits(), "{value:e}");
                }
            }
        }
    }

    #[test]
    fn doubles_and_integers_are_rounded_once() {
        for bits in 0..0x7f7fu16 {
            let (low, high) = (f64::from(BFloat16(bits).to_f32()), f64::from(BFloat16(bits + 1).to_f32()));
            let tie = (low + high) / 2.0;
            let even = bits + bits % 2;
            for sign in [0, 0x8000u16] {
                let signed = |x: f64| if sign == 0 { x } else { -x };
                assert_eq!(BFloat16::from_f64(signed(tie)).0, sign | even);
                assert_eq!(BFloat16::from_f64(signed(tie.next_up())).0, sign | (bits + 1));
                assert_eq!(BFloat16::from_f64(signed(tie.next_down())).0, sign | bits);
            }
            if (256.0..9e18).contains(&tie) && tie.fract() == 0.0 {
                let tie = tie as u64;
                let all = [BFloat16::from_u64(tie - 1).0, BFloat16::from_u64(tie).0, BFloat16::from_u64(tie + 1).0];
                assert_eq!(all, [bits, even, bits + 1], "{tie}");
                assert_eq!(BFloat16::from_i64(-(tie as i64) - 1).0, 0x8000 | (bits + 1), "{tie}");
            }
        }
        assert_eq!(BFloat16::from_f64(1e300).0, 0x7f80);
        assert_eq!((BFloat16::from_u64(u64::MAX).0, BFloat16::from_i64(i64::MIN).0), (0x5f80, 0xdf00));
    }
}
