//! A hash in which numbers count roughly: for transfers that differ in extents alone, and little.

use std::hash::{DefaultHasher, Hasher};

/// Takes numbers to four of each power of two, and small ones as they are.
#[derive(Default)]
pub(crate) struct Rough(DefaultHasher);

/// The number without all but its first three binary digits, and how many there are.
fn roughly(number: u64) -> u64 {
    let digits = u64::from(u64::BITS - number.leading_zeros());
    let more = digits.saturating_sub(3);
    more << 3 | number >> more
}

impl Hasher for Rough {
    /// Slices of numbers come as their bytes.
    fn write(&mut self, bytes: &[u8]) {
        let (numbers, rest) = bytes.as_chunks();
        numbers.iter().for_each(|&number| self.write_u64(u64::from_ne_bytes(number)));
        self.0.write(rest);
    }

    fn write_u64(&mut self, number: u64) {
        self.0.write_u64(roughly(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    /// Which of several it is, as it is.
    fn write_isize(&mut self, which: isize) {
        self.0.write_isize(which);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Kind;
    use std::collections::HashSet;
    use std::hash::Hash;

    fn finished(it: impl Hash) -> u64 {
        let mut rough = Rough::default();
        it.hash(&mut rough);
        rough.finish()
    }

    fn hashed(numbers: &[u64]) -> u64 {
        finished(numbers)
    }

    #[test]
    fn numbers_that_are_near_are_alike_and_small_ones_are_not() {
        assert!((0..8).all(|number| roughly(number) == number));
        assert_eq!((roughly(8), roughly(9), roughly(10)), (roughly(8), roughly(8), roughly(11)));
        let rising: Vec<u64> = (0..40).map(|digit| roughly(1 << digit)).collect();
        assert!(rising.is_sorted_by(|a, b| a < b));
        assert!((1..2000).all(|n| roughly(n) != roughly(n + n / 4 + 1)), "a quarter more is another number");
        assert_eq!(hashed(&[1000, 3]), hashed(&[1001, 3]));
        assert_ne!(hashed(&[1000, 3]), hashed(&[1000, 4]));
        assert_ne!(hashed(&[1000, 3]), hashed(&[3, 1000]));
    }

    #[test]
    fn types_are_not_alike() {
        let kinds: HashSet<u64> = Kind::ALL.into_iter().map(finished).collect();
        assert_eq!(kinds.len(), Kind::ALL.len());
    }
}
