//! Floats of 8 bits, as far as fill values need them: all 256 values of each are looked through.

use serde_json::Value;

/// How the bits of one are divided, and what the largest mean.
struct BitLayout {
    mantissa: u32,
    bias: i32,
    ends: Ends,
}

/// What the codes at the ends mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The largest exponent has infinities and NaNs, as in IEEE 754.
    Ieee,
    /// Only all ones are NaN.
    Finite,
    /// Only what would be minus zero is NaN.
    UnsignedZero,
    /// No sign, no zero; all ones are NaN.
    Powers,
}

fn layout_of(name: &str) -> Option<BitLayout> {
    let (mantissa, bias, ends) = match name {
        "float8_e3m4" => (4, 3, Ends::Ieee),
        "float8_e4m3" => (3, 7, Ends::Ieee),
        "float8_e4m3b11fnuz" => (3, 11, Ends::UnsignedZero),
        "float8_e4m3fn" => (3, 7, Ends::Finite),
        "float8_e4m3fnuz" => (3, 8, Ends::UnsignedZero),
        "float8_e5m2" => (2, 15, Ends::Ieee),
        "float8_e5m2fnuz" => (2, 16, Ends::UnsignedZero),
        "float8_e8m0fnu" => (0, 127, Ends::Powers),
        _ => return None,
    };
    Some(BitLayout { mantissa, bias, ends })
}

impl BitLayout {
    /// The code of NaN that Zarr means by this word.
    fn nan(&self) -> u8 {
        match self.ends {
            Ends::Ieee => (0x7f >> self.mantissa << self.mantissa) | 1 << (self.mantissa - 1),
            Ends::Finite => 0x7f,
            Ends::UnsignedZero => 0x80,
            Ends::Powers => 0xff,
        }
    }

    /// The value of a code without its sign.
    fn value(&self, code: u8) -> f64 {
        let (exponent, digits) = (i32::from(code >> self.mantissa), code & ((1 << self.mantissa) - 1));
        let top = i32::from(0x7f_u8 >> self.mantissa);
        let scale = f64::from(1_u32 << self.mantissa);
        match self.ends {
            Ends::Powers if code == 0xff => f64::NAN,
            Ends::Powers => f64::from(exponent - self.bias).exp2(),
            Ends::Ieee if exponent == top => {
                if digits == 0 {
                    f64::INFINITY
                } else {
                    f64::NAN
                }
            }
            Ends::Finite if code == 0x7f => f64::NAN,
            _ if exponent == 0 => f64::from(digits) / scale * f64::from(1 - self.bias).exp2(),
            _ => (1.0 + f64::from(digits) / scale) * f64::from(exponent - self.bias).exp2(),
        }
    }

    /// The code nearest to a number, ties to even; nothing where it is out of range.
    fn code(&self, number: f64) -> Option<u8> {
        if number.is_nan() {
            return Some(self.nan());
        }
        let (signed, last) = (self.ends != Ends::Powers, if self.ends == Ends::Powers { 0xfe } else { 0x7f });
        if number.is_sign_negative() && !signed {
            return None;
        }
        let known = (0..=last).map(|code: u8| (code, self.value(code))).filter(|(_, value)| !value.is_nan());
        let size = number.abs();
        let distance = |value: f64| if value == size { 0.0 } else { (value - size).abs() };
        let order =
            |a: &(u8, f64), b: &(u8, f64)| distance(a.1).total_cmp(&distance(b.1)).then((a.0 % 2).cmp(&(b.0 % 2)));
        let in_range = known.clone().any(|(_, value)| value >= size && value.is_infinite() == size.is_infinite());
        let (code, value) = known.filter(|(_, value)| value.is_infinite() == size.is_infinite()).min_by(order)?;
        let has_zero = signed || size >= value;
        let negative = number.is_sign_negative() && !(code == 0 && self.ends == Ends::UnsignedZero);
        (in_range && has_zero).then_some(code | u8::from(negative) << 7)
    }
}

/// The code of a number, a word or bits; nothing where it is out of range or none of these.
pub(super) fn parse(name: &str, value: &Value) -> Option<u8> {
    let layout = layout_of(name)?;
    let number = match value {
        Value::Number(number) => number.as_f64().filter(|number| number.is_finite())?,
        Value::String(word) => match word.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            bits => {
                let digits = bits.strip_prefix("0x").filter(|digits| digits.len() == 2 && !digits.starts_with('+'))?;
                return u8::from_str_radix(digits, 16).ok();
            }
        },
        _ => return None,
    };
    layout.code(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn codes_are_those_of_ml_dtypes() {
        for (name, value, code) in [
            ("float8_e4m3fn", json!(1.0), Some(0x38)),
            ("float8_e4m3fn", json!(448), Some(0x7e)),
            ("float8_e4m3fn", json!(500), None),
            ("float8_e4m3fn", json!("Infinity"), None),
            ("float8_e4m3fn", json!("NaN"), Some(0x7f)),
            ("float8_e4m3", json!("NaN"), Some(0x7c)),
            ("float8_e4m3", json!("-Infinity"), Some(0xf8)),
            ("float8_e3m4", json!("NaN"), Some(0x78)),
            ("float8_e3m4", json!(-0.015625), Some(0x81)),
            ("float8_e5m2", json!("NaN"), Some(0x7e)),
            ("float8_e5m2", json!(57344), Some(0x7b)),
            ("float8_e5m2", json!(1.1), Some(0x3c)),
            ("float8_e5m2fnuz", json!(1.0), Some(0x40)),
            ("float8_e5m2fnuz", json!(-0.0), Some(0)),
            ("float8_e4m3fnuz", json!("NaN"), Some(0x80)),
            ("float8_e4m3b11fnuz", json!(1.0), Some(0x58)),
            ("float8_e8m0fnu", json!(1.0), Some(0x7f)),
            ("float8_e8m0fnu", json!(0), None),
            ("float8_e8m0fnu", json!(-1), None),
            ("float8_e8m0fnu", json!("NaN"), Some(0xff)),
            ("float8_e4m3", json!(-0.0), Some(0x80)),
            ("float8_e4m3", json!("0xfe"), Some(0xfe)),
            ("float8_e4m3", json!("0x+1"), None),
            ("float8_e4m3", json!("0x1"), None),
            ("float8_e4m3", json!(true), None),
        ] {
            assert_eq!(parse(name, &value), code, "{name} {value}");
        }
    }
}
