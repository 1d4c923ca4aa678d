//! Room that arrays have left which were deleted, for arrays that come.

use std::collections::BTreeMap;
use std::ops::Range;

/// Stretches of a file that are free: where each begins and ends \[B\]. None touches another.
#[derive(Debug, Default)]
pub(super) struct FreeRoom(BTreeMap<u64, u64>);

impl FreeRoom {
    /// A stretch is free from now on.
    pub(super) fn put(&mut self, mut room: Range<u64>) {
        if room.is_empty() {
            return;
        }
        if let Some((&begin, &end)) = self.0.range(..=room.start).next_back().filter(|&(_, &end)| end >= room.start) {
            room = begin..end.max(room.end);
        }
        if let Some(end) = self.0.remove(&room.end) {
            room.end = end;
        }
        self.0.insert(room.start, room.end);
    }

    /// So many bytes of the first stretch that has them, from an address on that is a multiple of this.
    pub(super) fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        let fits = |(&begin, &end): (&u64, &u64)| {
            let at = begin.next_multiple_of(alignment);
            at.checked_add(bytes).is_some_and(|last| last <= end).then_some((begin, at, end))
        };
        let (begin, at, end) = self.0.iter().find_map(fits).filter(|_| bytes > 0)?;
        self.0.remove(&begin);
        self.put(begin..at);
        self.put(at + bytes..end);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside a map of each byte.
    #[test]
    fn what_is_taken_was_free() {
        let mut random = fastrand::Rng::with_seed(20_261_130);
        for _ in 0..200 {
            let (mut room, mut free) = (FreeRoom::default(), [false; 100]);
            for _ in 0..60 {
                let (at, bytes, alignment) = (random.usize(0..60), random.usize(0..20), 1 << random.u32(0..3));
                if random.bool() {
                    // What is put was taken before.
                    if free[at..at + bytes].iter().all(|is| !is) {
                        room.put(at as u64..(at + bytes) as u64);
                        free[at..at + bytes].fill(true);
                    }
                    continue;
                }
                let fits = |at: &usize| {
                    bytes > 0 && at.is_multiple_of(alignment) && free[*at..at + bytes].iter().all(|is| *is)
                };
                let first = (0..=100 - bytes).find(fits);
                assert_eq!(room.take(bytes as u64, alignment as u64), first.map(|at| at as u64));
                if let Some(at) = first {
                    free[at..at + bytes].fill(false);
                }
            }
        }
    }
}
