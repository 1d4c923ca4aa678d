//! Conversion of single values without `unsafe`: the oracle of the kernels, and a door for fill values.
//!
//! Shares no line with them: values go through integers of 128 bits and double precision, and half precision is
//! decoded and rounded by integer arithmetic.

use hyperslab_layout::{ByteOrder, ElementType, Kind};

/// A value of any kind. Every kind fits one variant exactly.
#[derive(Clone, Copy)]
enum Value {
    Integer(i128),
    Real(f64),
    Complex(f64, f64),
}

/// Converts one number, given as its bytes; the result begins with the bytes of the converted element and ends with
/// zeros.
///
/// Conversion is that of [`copy`](crate::copy); a NaN becomes the integer zero without an error, and what is opaque becomes zero. Bytes missing at the end of `bytes` count as zero.
pub fn convert_scalar(bytes: &[u8], from: ElementType, to: ElementType) -> [u8; 16] {
    let mut raw = [0; 16];
    let given = bytes.len().min(from.bytes() as usize).min(raw.len());
    raw[..given].copy_from_slice(&bytes[..given]);
    let little = reorder(raw, from);
    // Decoding and encoding would make a signalling NaN quiet, which a plain copy must not.
    let converted = if from.kind == to.kind { little } else { encode(decode(little, from.kind), to.kind) };
    reorder(converted, to)
}

/// Whether an element, given as its bytes, is NaN or has a part that is.
pub(crate) fn is_nan(bytes: &[u8], element: ElementType) -> bool {
    let mut raw = [0; 16];
    raw[..bytes.len()].copy_from_slice(bytes);
    match decode(reorder(raw, element), element.kind) {
        Value::Integer(_) => false,
        Value::Real(re) => re.is_nan(),
        Value::Complex(re, im) => re.is_nan() || im.is_nan(),
    }
}

/// Brings bytes from the element's order to little-endian, or back.
fn reorder(mut raw: [u8; 16], element: ElementType) -> [u8; 16] {
    if element.order == ByteOrder::Big {
        let unit = element.kind.swap_bytes() as usize;
        raw[..element.bytes().min(16) as usize].chunks_exact_mut(unit).for_each(<[u8]>::reverse);
    }
    raw
}

fn decode(little: [u8; 16], kind: Kind) -> Value {
    let wide = u128::from_le_bytes(little);
    let double = |shift: u32| f64::from_bits((wide >> shift) as u64);
    let single = |shift: u32| f64::from(f32::from_bits((wide >> shift) as u32));
    match kind {
        Kind::Bool => Value::Integer(i128::from(wide != 0)),
        Kind::Int8 => Value::Integer(i128::from(wide as i8)),
        Kind::Int16 => Value::Integer(i128::from(wide as i16)),
        Kind::Int32 => Value::Integer(i128::from(wide as i32)),
        Kind::Int64 => Value::Integer(i128::from(wide as i64)),
        Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => Value::Integer(wide as i128),
        Kind::Float16 => Value::Real(half_to_double(wide as u16)),
        Kind::BFloat16 => Value::Real(f64::from(f32::from_bits((wide as u32) << 16))),
        Kind::Float32 => Value::Real(single(0)),
        Kind::Float64 => Value::Real(double(0)),
        Kind::Complex64 => Value::Complex(single(0), single(32)),
        Kind::Complex128 => Value::Complex(double(0), double(64)),
        Kind::Opaque(_) => Value::Integer(0),
    }
}

fn encode(value: Value, kind: Kind) -> [u8; 16] {
    let single = |x: f64| u128::from((x as f32).to_bits());
    let bits = match kind {
        Kind::Bool => u128::from(value.is_true()),
        Kind::Int8 => value.integer(i8::MIN.into(), i8::MAX.into()) as u8 as u128,
        Kind::Int16 => value.integer(i16::MIN.into(), i16::MAX.into()) as u16 as u128,
        Kind::Int32 => value.integer(i32::MIN.into(), i32::MAX.into()) as u32 as u128,
        Kind::Int64 => value.integer(i64::MIN.into(), i64::MAX.into()) as u64 as u128,
        Kind::UInt8 => value.integer(0, u8::MAX.into()) as u8 as u128,
        Kind::UInt16 => value.integer(0, u16::MAX.into()) as u16 as u128,
        Kind::UInt32 => value.integer(0, u32::MAX.into()) as u32 as u128,
        Kind::UInt64 => value.integer(0, u64::MAX.into()) as u64 as u128,
        Kind::Float16 => u128::from(double_to_half(value.parts().0)),
        Kind::BFloat16 => u128::from(value.brain()),
        Kind::Float32 => value.single_bits(),
        Kind::Float64 => u128::from(value.parts().0.to_bits()),
        Kind::Complex64 => value.single_bits() | single(value.parts().1) << 32,
        Kind::Complex128 => u128::from(value.parts().0.to_bits()) | u128::from(value.parts().1.to_bits()) << 64,
        Kind::Opaque(_) => 0,
    };
    bits.to_le_bytes()
}

impl Value {
    fn is_true(self) -> bool {
        match self {
            Value::Integer(value) => value != 0,
            Value::Real(re) => re != 0.0,
            Value::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }

    /// Integers stay what they are, to be cut to size; floats are truncated and brought into the range.
    fn integer(self, low: i128, high: i128) -> i128 {
        match self {
            Value::Integer(value) => value,
            Value::Real(re) | Value::Complex(re, _) => (re as i128).clamp(low, high),
        }
    }

    fn parts(self) -> (f64, f64) {
        match self {
            Value::Integer(value) => (value as f64, 0.0),
            Value::Real(re) => (re, 0.0),
            Value::Complex(re, im) => (re, im),
        }
    }

    /// The real part in bfloat16. Integers that double precision may not hold are shortened first, where any bit that
    /// is lost sets the last one.
    fn brain(self) -> u16 {
        match self {
            Value::Integer(value) if value.unsigned_abs() >> 53 != 0 => {
                let magnitude = value.unsigned_abs();
                let short = magnitude >> 16 | u128::from(magnitude % 65536 != 0);
                double_to_brain(short as f64 * 65536.0 * value.signum() as f64)
            }
            _ => double_to_brain(self.parts().0),
        }
    }

    /// Bits of the real part in single precision; integers must not be rounded to double precision first.
    fn single_bits(self) -> u128 {
        let single = match self {
            Value::Integer(value) => value as f32,
            Value::Real(re) | Value::Complex(re, _) => re as f32,
        };
        u128::from(single.to_bits())
    }
}

fn half_to_double(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

fn double_to_half(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    if value.is_nan() {
        return sign | 0x7e00;
    }
    // Scaling by a power of two is exact, and so is splitting into whole and remainder below 2^53.
    let magnitude = value.abs();
    let exponent = (1..=30).rev().find(|e| magnitude >= 2f64.powi(e - 15)).unwrap_or(1);
    let scaled = magnitude * 2f64.powi(25 - exponent);
    if scaled >= 2048.0 * 2.0 {
        return sign | 0x7c00;
    }
    let (whole, rest) = (scaled.trunc() as u16, scaled.fract());
    let up = rest > 0.5 || (rest == 0.5 && whole % 2 == 1);
    // The leading bit of a normal number adds 1 to the exponent field; so does a carry out of the fraction.
    sign | ((exponent as u16 - 1) * 1024 + whole + u16::from(up)).min(0x7c00)
}

fn double_to_brain(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    if value.is_nan() {
        return sign | 0x7fc0;
    }
    let magnitude = value.abs();
    if magnitude >= 2f64.powi(128) {
        return sign | 0x7f80;
    }
    let exponent = (-126..=127).rev().find(|&e| magnitude >= 2f64.powi(e)).unwrap_or(-126);
    let scaled = magnitude * 2f64.powi(7 - exponent);
    let (whole, rest) = (scaled.trunc() as u16, scaled.fract());
    let up = rest > 0.5 || (rest == 0.5 && whole % 2 == 1);
    sign | ((exponent + 126) as u16 * 128 + whole + u16::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native<const N: usize>(bytes: [u8; N], from: Kind, to: Kind) -> u64 {
        let converted = convert_scalar(&bytes, ElementType::native(from), ElementType::native(to));
        u64::from_ne_bytes(converted[..8].try_into().unwrap())
    }

    /// What NumPy 2 answers for `np.array(value, dtype).astype(other)`.
    #[test]
    fn values_known_from_numpy() {
        assert_eq!(native((-1i8).to_ne_bytes(), Kind::Int8, Kind::UInt32), 0xffff_ffff);
        assert_eq!(native(0x1_2345_6789u64.to_ne_bytes(), Kind::UInt64, Kind::Int16), 0x6789);
        assert_eq!(native(((1u64 << 53) + 1).to_ne_bytes(), Kind::UInt64, Kind::Int64), (1 << 53) + 1);
        assert_eq!(native((-3.99f64).to_ne_bytes(), Kind::Float64, Kind::Int32), (-3i32) as u32 as u64);
        assert_eq!(native(0.1f64.to_ne_bytes(), Kind::Float64, Kind::Float32), 0x3dcc_cccd);
        assert_eq!(native(0.1f64.to_ne_bytes(), Kind::Float64, Kind::Float16), 0x2e66);
        assert_eq!(native(16_777_217u64.to_ne_bytes(), Kind::UInt64, Kind::Float32), 0x4b80_0000);
        assert_eq!(native(f64::NAN.to_ne_bytes(), Kind::Float64, Kind::Bool), 1);
        assert_eq!(native((-0.0f32).to_ne_bytes(), Kind::Float32, Kind::Bool), 0);
        assert_eq!(native([2], Kind::Bool, Kind::Int8), 1);
    }

    #[test]
    fn out_of_range_saturates() {
        assert_eq!(native(300.5f32.to_ne_bytes(), Kind::Float32, Kind::UInt8), 255);
        assert_eq!(native((-300.5f32).to_ne_bytes(), Kind::Float32, Kind::Int8), 0x80);
        assert_eq!(native(f64::INFINITY.to_ne_bytes(), Kind::Float64, Kind::UInt64), u64::MAX);
        assert_eq!(native(f64::NAN.to_ne_bytes(), Kind::Float64, Kind::Int64), 0);
        assert_eq!(native(70_000i32.to_ne_bytes(), Kind::Int32, Kind::Float16), 0x7c00);
    }

    #[test]
    fn byte_order_and_missing_bytes() {
        let big = |kind| ElementType { kind, order: ByteOrder::Big };
        let little = |kind| ElementType { kind, order: ByteOrder::Little };
        assert_eq!(convert_scalar(&[1, 2, 3, 4], big(Kind::UInt32), little(Kind::UInt32))[..4], [4, 3, 2, 1]);
        assert_eq!(convert_scalar(&[1, 2], little(Kind::Int64), big(Kind::Int16))[..3], [2, 1, 0]);
        let complex = convert_scalar(&1.0f32.to_be_bytes(), big(Kind::Float32), big(Kind::Complex128));
        assert_eq!(complex[..8], 1.0f64.to_be_bytes());
        assert_eq!(complex[8..], [0; 8]);
    }

    #[test]
    fn bfloat16_agrees_with_the_kernels() {
        use crate::bfloat16::BFloat16;
        for bits in 0..=u16::MAX {
            let value = f64::from(BFloat16(bits).to_f32());
            assert!(value.is_nan() || double_to_brain(value) == bits);
            for near in [value.next_up(), value.next_down(), value * 1.00390625, value * 1.001953125] {
                assert_eq!(double_to_brain(near), BFloat16::from_f64(near).0, "{near:e}");
            }
        }
    }

    #[test]
    fn half_precision_agrees_with_the_kernels() {
        use crate::float16::Float16;
        for bits in 0..=u16::MAX {
            let value = half_to_double(bits);
            assert!(value.is_nan() || double_to_half(value) == bits);
            for near in [value.next_up(), value.next_down(), value * 1.0004883, value * 1.00048828125] {
                assert_eq!(double_to_half(near), Float16::from_f64(near).0, "{near:e}");
            }
        }
    }
}
