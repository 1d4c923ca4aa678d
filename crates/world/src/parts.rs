//! Checksums of objects that are read in parts, perhaps by several ranks: what the parts add up to tells whether all is as it
//! was written.
//!
//! A CRC is linear: that of bytes that follow each other is the exclusive or of what each of them contributes, which is its own
//! CRC, moved along by as many zeros as there are bytes behind it. So whoever reads a part tells what it contributes, whoever
//! reads the end the checksum that is stored there, too; and the exclusive or of all is 0.

use crc_fast::{CrcAlgorithm, Digest};

/// The product of two polynomials, of which the lowest bit stands for the highest power, modulo that of CRC-32C (Castagnoli;
/// RFC 3720, section 12.1).
fn times(a: u32, mut b: u32) -> u32 {
    let (mut product, polynomial) = (0, 0x82f6_3b78);
    for power in (0..32).rev() {
        product ^= if a >> power & 1 == 1 { b } else { 0 };
        b = b >> 1 ^ if b & 1 == 1 { polynomial } else { 0 };
    }
    product
}

/// x to this power.
fn power(mut exponent: u64) -> u32 {
    // 1, and x.
    let (mut power, mut square) = (1 << 31, 1 << 30);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = times(power, square);
        }
        square = times(square, square);
        exponent >>= 1;
    }
    power
}

/// What parts of an object add up to, made another number for each object: what is wrong with two objects in the same way, as
/// where both are nothing but zeros, would else not be seen in the exclusive or of both. `object` stands for the object.
pub fn told_apart(sum: u32, object: u64) -> u32 {
    if sum == 0 { 0 } else { times(sum, power(object)) }
}

/// What a part of an object contributes, run by run.
pub struct PartSum {
    /// Bytes of the object before its checksum.
    total: u64,
    /// The stretch that is being added to, and where it goes on.
    stretch: Option<Digest>,
    next: u64,
    /// What stretches before it add up to, where the last of them ends.
    before: u32,
    end: u64,
    sum: u32,
    /// Bytes by which the CRC of a stretch was moved along last, and the factor: most parts are regular.
    moved: (u64, u32),
}

impl PartSum {
    /// Of an object with so many bytes before its checksum.
    pub fn new(total: u64) -> PartSum {
        PartSum { total, stretch: None, next: 0, before: 0, end: 0, sum: 0, moved: (0, power(0)) }
    }

    /// Adds bytes that lie there in the object. Those that follow each other cost least.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        if self.stretch.is_none() || offset != self.next {
            self.end_stretch();
            if offset < self.end {
                self.settle();
            }
            self.next = offset;
        }
        let digest = self.stretch.get_or_insert_with(|| Digest::new(CrcAlgorithm::Crc32Iscsi));
        digest.update(bytes);
        self.next += bytes.len() as u64;
    }

    fn end_stretch(&mut self) {
        let Some(stretch) = self.stretch.take() else { return };
        let before = self.moved_along(self.before, self.next - self.end.min(self.next));
        (self.before, self.end) = (before ^ stretch.finalize() as u32, self.next);
    }

    fn moved_along(&mut self, crc: u32, bytes: u64) -> u32 {
        if crc == 0 {
            return 0;
        }
        if self.moved.0 != bytes {
            self.moved = (bytes, power(bytes.saturating_mul(8)));
        }
        times(crc, self.moved.1)
    }

    /// Adds what stretches add up to so far.
    fn settle(&mut self) {
        let before = std::mem::take(&mut self.before);
        self.sum ^= self.moved_along(before, self.total - self.end.min(self.total));
        self.end = 0;
    }

    /// Adds the checksum that is stored behind the object.
    pub fn add_stored(&mut self, checksum: [u8; 4]) {
        self.sum ^= u32::from_le_bytes(checksum);
    }

    /// What all contributes.
    pub fn value(mut self) -> u32 {
        self.end_stretch();
        self.settle();
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_any_order_and_cut_add_up_to_nothing() {
        let mut random = fastrand::Rng::with_seed(29);
        for _ in 0..300 {
            let length = random.usize(1..5000);
            let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
            let stored = crc32c::crc32c(&bytes);
            let mut cuts: Vec<usize> = (0..random.usize(0..6)).map(|_| random.usize(0..=bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut runs: Vec<(usize, usize)> = cuts.windows(2).map(|pair| (pair[0], pair[1])).collect();
            random.shuffle(&mut runs);
            // Two ranks, of which one reads the end.
            let mut parts = [PartSum::new(bytes.len() as u64), PartSum::new(bytes.len() as u64)];
            for &(low, high) in &runs {
                parts[random.usize(0..2)].add(low as u64, &bytes[low..high]);
            }
            parts[random.usize(0..2)].add_stored(stored.to_le_bytes());
            assert_eq!(parts.map(PartSum::value).into_iter().fold(0, |all, one| all ^ one), 0);
            // One byte that is another, in any part.
            let mut wrong = PartSum::new(bytes.len() as u64);
            let at = random.usize(0..bytes.len());
            let other = [bytes[at] ^ random.u8(1..)];
            wrong.add(0, &bytes[..at]);
            wrong.add(at as u64, &other);
            wrong.add(at as u64 + 1, &bytes[at + 1..]);
            wrong.add_stored(stored.to_le_bytes());
            let wrong = wrong.value();
            assert_ne!(wrong, 0);
            // Objects that are wrong in the same way.
            let objects = [(); 2].map(|()| random.u64(..));
            let [one, other] = objects.map(|object| told_apart(wrong, object));
            assert!(one != other && one != 0 && other != 0);
        }
    }
}
