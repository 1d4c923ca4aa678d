//! Filters of numcodecs that make other numbers of the elements of a chunk, as they are read: delta, fixedscaleoffset, quantize,
//! astype, bitround and packbits. See <https://numcodecs.readthedocs.io/>.
//!
//! An example of one in v2: `{"id": "delta", "dtype": "<i8", "astype": "<i1"}`; in v3 its name is `numcodecs.delta`, and the rest
//! its configuration. What they wrote is read as numcodecs does it: floats are computed in the type that NumPy computes them in.

use crate::error::{Context, Error};
use half::f16;
use hyperslab_layout::{ByteOrder, ElementType, Kind};

/// A filter, and the numbers on both of its sides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ArrayFilter {
    /// What it does.
    pub does: Filtering,
    /// What is stored.
    pub stored: FilterNumber,
    /// What it was made of.
    pub plain: FilterNumber,
}

/// What a filter does to numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Filtering {
    /// Stores differences.
    Delta,
    /// Takes an offset off and multiplies by a scale: bits of both, as doubles.
    Scale {
        /// What is taken off.
        offset: u64,
        /// What it is multiplied by.
        scale: u64,
    },
    /// Rounds to so many decimal digits.
    Quantize {
        /// Digits behind the point; may be below zero.
        digits: i32,
    },
    /// Changes the type.
    Astype,
    /// Keeps so many bits of the mantissa.
    Round {
        /// Bits that are kept.
        bits: u32,
    },
    /// Makes bits of truth values, eight a byte, behind a byte that says how many of the last byte are none.
    Pack,
}

/// A type of numbers that filters know, with its byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FilterNumber {
    kind: Kind,
    order: ByteOrder,
}

/// A number on its way from one type to another.
#[derive(Clone, Copy, Debug)]
enum FilterValue {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl FilterNumber {
    /// The type that NumPy calls so, by its code or name, if filters know it.
    pub fn of_numpy(code: &str) -> Option<FilterNumber> {
        let named = Kind::from_name(code).map(ElementType::native);
        let ElementType { kind, order } = named.or_else(|| ElementType::from_numpy(code))?;
        let known = !kind.is_opaque() && !kind.is_complex() && kind != Kind::BFloat16;
        let order = if kind.swap_bytes() == 1 { ByteOrder::Little } else { order };
        known.then_some(FilterNumber { kind, order })
    }

    /// Its code.
    pub fn numpy(self) -> String {
        ElementType { kind: self.kind, order: self.order }.numpy()
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// As a byte.
    pub(super) fn to_byte(self) -> u8 {
        let place = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or(0);
        place as u8 | if self.order == ByteOrder::Big { 0x80 } else { 0 }
    }

    /// What [`FilterNumber::to_byte`] gave.
    pub(super) fn of_byte(byte: u8) -> Option<FilterNumber> {
        let kind = *Kind::ALL.get(usize::from(byte & 0x7f))?;
        let order = if byte & 0x80 == 0 { ByteOrder::Little } else { ByteOrder::Big };
        FilterNumber::of_numpy(&ElementType { kind, order }.numpy())
    }

    fn bytes(self) -> usize {
        self.kind.bytes() as usize
    }

    fn read(self, bytes: &[u8]) -> FilterValue {
        let mut raw = [0; 8];
        match self.order {
            ByteOrder::Little => raw[..bytes.len()].copy_from_slice(bytes),
            ByteOrder::Big => raw.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from),
        }
        let bits = u64::from_le_bytes(raw);
        match self.kind {
            Kind::Bool => FilterValue::Unsigned(u64::from(bits != 0)),
            Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => {
                let unused = 64 - 8 * bytes.len() as u32;
                FilterValue::Signed(((bits << unused) as i64) >> unused)
            }
            Kind::Float16 => FilterValue::Float(f16::from_bits(bits as u16).into()),
            Kind::Float32 => FilterValue::Float(f32::from_bits(bits as u32).into()),
            Kind::Float64 => FilterValue::Float(f64::from_bits(bits)),
            _ => FilterValue::Unsigned(bits),
        }
    }

    fn write(self, number: FilterValue, out: &mut Vec<u8>) {
        let bits = match self.kind {
            Kind::Bool => u64::from(!matches!(
                number,
                FilterValue::Signed(0) | FilterValue::Unsigned(0) | FilterValue::Float(0.0)
            )),
            Kind::Float16 => f16::from_f64(number.as_float()).to_bits().into(),
            Kind::Float32 => (number.as_float() as f32).to_bits().into(),
            Kind::Float64 => number.as_float().to_bits(),
            Kind::UInt64 => match number {
                FilterValue::Float(float) => float as u64,
                other => other.as_bits(),
            },
            _ => number.as_bits(),
        };
        let (raw, length) = (bits.to_le_bytes(), self.bytes());
        match self.order {
            ByteOrder::Little => out.extend_from_slice(&raw[..length]),
            ByteOrder::Big => out.extend(raw[..length].iter().rev()),
        }
    }

    /// A float that this type can hold: the nearest one.
    fn rounded(self, float: f64) -> f64 {
        match self.kind {
            Kind::Float16 => f16::from_f64(float).into(),
            Kind::Float32 => (float as f32).into(),
            _ => float,
        }
    }

    fn is_float(self) -> bool {
        matches!(self.kind, Kind::Float16 | Kind::Float32 | Kind::Float64)
    }
}

impl FilterValue {
    fn as_float(self) -> f64 {
        match self {
            FilterValue::Signed(number) => number as f64,
            FilterValue::Unsigned(number) => number as f64,
            FilterValue::Float(number) => number,
        }
    }

    /// The bits of an integer; those of smaller types are the lower ones.
    fn as_bits(self) -> u64 {
        match self {
            FilterValue::Signed(number) => number as u64,
            FilterValue::Unsigned(number) => number,
            FilterValue::Float(number) => number as i64 as u64,
        }
    }
}

impl ArrayFilter {
    /// Most bytes \[B\] that it makes of so many.
    pub(super) fn encoded_bytes_max(self, bytes: u64) -> u64 {
        match self.does {
            Filtering::Pack => (bytes / 8).saturating_add(2),
            _ => (bytes / self.plain.bytes() as u64).saturating_mul(self.stored.bytes() as u64),
        }
    }

    /// What it made these bytes of, at most so many.
    pub(super) fn decode(self, bytes: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
        let (from, to) = (self.stored, self.plain);
        if self.does == Filtering::Pack {
            return unpacked(bytes, bound, context);
        }
        let elements = bytes.chunks_exact(from.bytes());
        let size = elements.len() as u64 * to.bytes() as u64;
        if !elements.remainder().is_empty() || size > bound {
            let expected = format!("at most {bound} B of {} as {}", to.numpy(), from.numpy());
            return Err(context.corrupt(expected, format!("{} B", bytes.len())));
        }
        let numbers = elements.map(|element| from.read(element));
        let mut out = Vec::with_capacity(size as usize);
        match self.does {
            Filtering::Delta => {
                let (mut sum, mut float) = (0_u64, 0_f64);
                for number in numbers {
                    let next = match to.is_float() {
                        true => {
                            float = to.rounded(float + to.rounded(number.as_float()));
                            FilterValue::Float(float)
                        }
                        false => {
                            sum = sum.wrapping_add(number.as_bits());
                            FilterValue::Unsigned(sum)
                        }
                    };
                    to.write(next, &mut out);
                }
            }
            Filtering::Scale { offset, scale } => {
                // NumPy computes floats in their own type, and integers as doubles.
                let round = |float: f64| if from.is_float() { from.rounded(float) } else { float };
                let (offset, scale) = (round(f64::from_bits(offset)), round(f64::from_bits(scale)));
                numbers.for_each(|number| {
                    to.write(FilterValue::Float(round(round(number.as_float() / scale) + offset)), &mut out);
                });
            }
            _ => numbers.for_each(|number| to.write(number, &mut out)),
        }
        Ok(out)
    }
}

/// Truth values out of bits, of which the first byte says how many of the last byte are none.
fn unpacked(bytes: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let counted = bytes.split_first().and_then(|(unused, bits)| {
        (8 * bits.len()).checked_sub(usize::from(*unused)).filter(|count| *count as u64 <= bound).zip(Some(bits))
    });
    let Some((count, bits)) = counted else {
        return Err(context.corrupt(format!("at most {bound} packed bits"), format!("{} B", bytes.len())));
    };
    Ok((0..count).map(|bit| bits[bit / 8] >> (7 - bit % 8) & 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { asked: "decode", object: "c/0" };

    fn filter(does: Filtering, stored: &str, plain: &str) -> ArrayFilter {
        let number = |code| FilterNumber::of_numpy(code).unwrap();
        ArrayFilter { does, stored: number(stored), plain: number(plain) }
    }

    #[test]
    fn numbers_come_back() {
        let delta = filter(Filtering::Delta, "|i1", ">i4");
        let decoded = delta.decode(&[5, 0xff, 3], 12, CONTEXT).unwrap();
        assert_eq!(decoded, [5_i32, 4, 7].iter().flat_map(|one| one.to_be_bytes()).collect::<Vec<_>>());
        assert_eq!(delta.encoded_bytes_max(12), 3);
        let floats: Vec<u8> = [0.1_f32, 0.2, 0.3].iter().flat_map(|one| one.to_le_bytes()).collect();
        let decoded = filter(Filtering::Delta, "<f4", "<f4").decode(&floats, 12, CONTEXT).unwrap();
        assert_eq!(decoded[8..], (0.1_f32 + 0.2 + 0.3).to_le_bytes());
        let does = Filtering::Scale { offset: 1000_f64.to_bits(), scale: 10_f64.to_bits() };
        let decoded = filter(does, "|u1", "<f8").decode(&[1, 20], 16, CONTEXT).unwrap();
        assert_eq!(decoded, [1000.1_f64, 1002.0].iter().flat_map(|one| one.to_le_bytes()).collect::<Vec<_>>());
        let astype = filter(Filtering::Astype, "<i8", "<u2");
        assert_eq!(astype.decode(&(-1_i64).to_le_bytes(), 2, CONTEXT).unwrap(), [0xff, 0xff]);
        let pack = filter(Filtering::Pack, "|u1", "|b1");
        assert_eq!(pack.decode(&[5, 0b1010_0000], 3, CONTEXT).unwrap(), [1, 0, 1]);
        assert!(pack.decode(&[0], 0, CONTEXT).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_theirs_is_refused() {
        let delta = filter(Filtering::Delta, "<i2", "<i8");
        assert!(delta.decode(&[0; 3], 100, CONTEXT).unwrap_err().is_corrupt());
        assert!(delta.decode(&[0; 4], 15, CONTEXT).unwrap_err().is_corrupt());
        let pack = filter(Filtering::Pack, "|u1", "|b1");
        for bytes in [&[][..], &[1], &[9, 0], &[0, 0, 0]] {
            assert!(pack.decode(bytes, 8, CONTEXT).unwrap_err().is_corrupt(), "{bytes:?}");
        }
        for code in ["<c8", "|S3", "<M8[s]", "bfloat16", "x"] {
            assert_eq!(FilterNumber::of_numpy(code), None, "{code}");
        }
        for code in ["|b1", "<f2", ">f8", "|u1", ">i4", "uint32"] {
            let number = FilterNumber::of_numpy(code).unwrap();
            assert_eq!(FilterNumber::of_byte(number.to_byte()), Some(number));
        }
        assert_eq!(FilterNumber::of_byte(0x7f), None);
    }
}
