//! The scale-offset filter (number 6), undone: integers as their distance from the least one of a chunk, floats as such, rounded to
//! a number of decimal digits.
//!
//! ```text
//! what is stored:  | bits of a value, 4 B | 8 | least value, 8 B | 8 B of nothing | values, the highest bit first | ...
//! ```
//!
//! What its numbers mean is not in the specification, but in the library (`H5Zscaleoffset.c`).

use crate::error::{Context, Error};

/// Where values begin in a chunk \[B\].
const HEAD_BYTES: usize = 21;

/// How values were made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ScaleOffset {
    kind: ScaledKind,
    /// Bytes of a value: 1, 2, 4 or 8.
    bytes: u8,
    is_big: bool,
    /// What stands for the highest value, which is no distance: the fill value, in the low bytes.
    fill: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ScaledKind {
    Integer,
    /// Floats of 4 or 8 bytes, with so many digits behind the point.
    Float(i32),
}

impl ScaleOffset {
    /// What the numbers of the filter say: kind of scaling, digits or bits, elements of a chunk, class, bytes, sign, byte order,
    /// whether there is a fill value, and that.
    pub(super) fn of(values: &[u32]) -> Option<ScaleOffset> {
        let &[scaling, digits, _, class, bytes, _, order, filled, ref fill @ ..] = values else { return None };
        let kind = match (scaling, class) {
            (2, 0) => ScaledKind::Integer,
            (0, 1) if matches!(bytes, 4 | 8) => ScaledKind::Float(digits as i32),
            _ => return None,
        };
        let word = |at: usize| u64::from(fill.get(at).copied().unwrap_or(0));
        let mask = u64::MAX.checked_shr(64u32.checked_sub(8 * bytes)?)?;
        let fill = (filled == 1).then(|| (word(0) | word(1) << 32) & mask);
        let is_known = matches!(bytes, 1 | 2 | 4 | 8) && order < 2 && filled < 2;
        is_known.then_some(ScaleOffset { kind, bytes: bytes as u8, is_big: order == 1, fill })
    }

    /// The same numbers, as far as they matter.
    pub(super) fn values(self) -> Vec<u32> {
        let (scaling, digits, class) = match self.kind {
            ScaledKind::Integer => (2, 0, 0),
            ScaledKind::Float(digits) => (0, digits as u32, 1),
        };
        let (order, fill) = (u32::from(self.is_big), self.fill.unwrap_or(0));
        let filled = u32::from(self.fill.is_some());
        vec![scaling, digits, 0, class, self.bytes.into(), 0, order, filled, fill as u32, (fill >> 32) as u32]
    }

    /// Most bytes that are stored of so many \[B\].
    pub(super) fn bytes_max(bytes: u64) -> u64 {
        bytes.saturating_add(HEAD_BYTES as u64).saturating_add(1)
    }

    /// The elements of a chunk, which are so many bytes.
    pub(super) fn decode(self, stored: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
        let size = usize::from(self.bytes);
        let wrong = |found: String| context.corrupt("a chunk of the scale-offset filter", found);
        let (head, rest) = stored.split_at_checked(HEAD_BYTES).ok_or_else(|| wrong(format!("{} B", stored.len())))?;
        let bits = head.first_chunk().map_or(0, |bits| u32::from_le_bytes(*bits));
        let width = usize::from(head[4]).min(8);
        let mut least = [0; 8];
        least[..width].copy_from_slice(&head[5..5 + width]);
        let least = u64::from_le_bytes(least);
        let whole = 8 * u32::from(self.bytes);
        if bits > whole || !bound.is_multiple_of(u64::from(self.bytes)) {
            return Err(wrong(format!("values of {bits} bits in elements of {size} B")));
        }
        let count = bound / u64::from(self.bytes);
        // What is claimed is there, or all are the least value, which takes no bits.
        if (rest.len() as u64).saturating_mul(8) < count.saturating_mul(bits.into()) {
            return Err(wrong(format!("{} B for {count} values of {bits} bits", rest.len())));
        }
        let mut out = vec![0; usize::try_from(bound).map_err(|_| wrong(format!("{bound} B")))?];
        let mut values = Bits { bytes: rest, at: 0 };
        for element in out.chunks_exact_mut(size) {
            let value = if bits == whole { values.whole(size) } else { self.value(values.next(bits), bits, least) };
            element.copy_from_slice(&value.to_le_bytes()[..size]);
            if self.is_big {
                element.reverse();
            }
        }
        Ok(out)
    }

    /// The value, in the low bytes, that is stored as this distance.
    fn value(self, stored: u64, bits: u32, least: u64) -> u64 {
        match self.fill {
            Some(fill) if stored == (1u64 << bits) - 1 => return fill,
            _ => {}
        }
        match self.kind {
            ScaledKind::Integer => least.wrapping_add(stored),
            ScaledKind::Float(digits) if self.bytes == 4 => {
                let (stored, least) = (stored as u32 as i32 as f32, f32::from_bits(least as u32));
                u64::from((stored / 10f32.powf(digits as f32) + least).to_bits())
            }
            ScaledKind::Float(digits) => {
                let (stored, least) = (stored as i64 as f64, f64::from_bits(least));
                (stored / 10f64.powf(f64::from(digits)) + least).to_bits()
            }
        }
    }
}

/// Values of some bits each, one behind another.
struct Bits<'a> {
    bytes: &'a [u8],
    /// The next bit.
    at: usize,
}

impl Bits<'_> {
    /// The next value, of at most 64 bits.
    fn next(&mut self, bits: u32) -> u64 {
        let (mut value, mut left) = (0u64, bits);
        while left > 0 {
            let inside = (self.at % 8) as u32;
            let taken = left.min(8 - inside);
            let byte = u64::from(self.bytes[self.at / 8]) >> (8 - inside - taken);
            value = value << taken | byte & ((1 << taken) - 1);
            self.at += taken as usize;
            left -= taken;
        }
        value
    }

    /// The next value that was stored as it is, in the order of the machine that wrote it, which was little-endian.
    fn whole(&mut self, size: usize) -> u64 {
        let begin = self.at / 8;
        self.at += 8 * size;
        self.bytes[begin..begin + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_become_values() {
        let context = Context::new("decode chunk", "c");
        // 16-bit integers from -3 on, of 3 bits, of which 7 stands for the fill value.
        let filter = ScaleOffset::of(&[2, 0, 4, 0, 2, 1, 0, 1, 99]).unwrap();
        assert_eq!(ScaleOffset::of(&filter.values()), Some(filter));
        let head = [&3u32.to_le_bytes()[..], &[8], &(-3i64).to_le_bytes(), &[0; 8]].concat();
        // 0, 1, 7 and 6.
        let stored = [&head[..], &[0b0000_0111, 0b1110_0000]].concat();
        let values: Vec<u8> = [-3i16, -2, 99, 3].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(filter.decode(&stored, 8, context).unwrap(), values);
        assert!(filter.decode(&stored, 16, context).unwrap_err().is_corrupt(), "more than is stored");
        assert!(filter.decode(&stored[..20], 8, context).unwrap_err().is_corrupt());
        assert!(filter.decode(&stored, 7, context).unwrap_err().is_corrupt());
        // Big-endian floats of one digit.
        let filter = ScaleOffset::of(&[0, 1, 2, 1, 4, 0, 1, 0]).unwrap();
        let head = [&4u32.to_le_bytes()[..], &[8], &u64::from(2.5f32.to_bits()).to_le_bytes(), &[0; 8]].concat();
        let values: Vec<u8> = [2.5f32, 4.0].iter().flat_map(|value| value.to_be_bytes()).collect();
        assert_eq!(filter.decode(&[&head[..], &[0x0f]].concat(), 8, context).unwrap(), values);
        // Scaling by powers of two is what no library has, and other sizes are none.
        for wrong in [&[1, 1, 2, 1, 4, 0, 1, 0][..], &[2, 0, 4, 0, 3, 1, 0, 0], &[2, 0, 4, 0, 9, 1, 0, 0], &[2, 0]] {
            assert_eq!(ScaleOffset::of(wrong), None);
        }
    }
}
