//! Buffers kept from one transfer to the next, because fresh pages are slow.

use hyperslab_pack::{Memory, OutOfMemory};

/// Buffers that nobody uses. Together with those in use they stay below a limit: what a transfer with small chunks leaves
/// behind must not come on top of what one with large chunks needs.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Vec<Memory>,
    /// Most bytes of buffers, free and in use \[B\].
    bytes_max: u64,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { free: Vec::new(), bytes_max: u64::MAX }
    }
}

impl Pool {
    /// Sets the limit, and frees the largest buffers as long as there are more bytes \[B\].
    pub(crate) fn limit(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
        self.free.sort_unstable_by_key(Memory::bytes);
        while self.bytes() > bytes_max {
            self.free.pop();
        }
    }

    /// A buffer of at least these bytes, while `used` bytes of buffers are in use and `still` are to be taken after it:
    /// the smallest that fits, or a fresh one, for which kept ones make room.
    pub(crate) fn take(&mut self, bytes: u64, used: u64, still: u64) -> Result<Memory, OutOfMemory> {
        let room = self.bytes_max.saturating_sub(used).saturating_sub(still);
        let fits = |memory: &Memory| bytes <= memory.bytes() && (memory.bytes() <= room || memory.bytes() == bytes);
        let smallest = (0..self.free.len()).filter(|&i| fits(&self.free[i])).min_by_key(|&i| self.free[i].bytes());
        if let Some(at) = smallest {
            return Ok(self.free.swap_remove(at));
        }
        self.free.sort_unstable_by_key(|memory| std::cmp::Reverse(memory.bytes()));
        while !self.free.is_empty() && used.saturating_add(bytes).saturating_add(self.bytes()) > self.bytes_max {
            // The smallest is the least use later.
            self.free.pop();
        }
        Memory::allocate(bytes)
    }

    /// Keeps buffers that are no longer in use.
    pub(crate) fn give(&mut self, buffers: impl IntoIterator<Item = Memory>) {
        self.free.extend(buffers);
    }

    /// Keeps nothing and frees nothing: operations in flight may still use the buffers.
    pub(crate) fn leak(&mut self) {
        self.free.drain(..).for_each(std::mem::forget);
    }

    fn bytes(&self) -> u64 {
        self.free.iter().map(Memory::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `count` buffers as a transfer does; the bytes in use.
    fn transfer(pool: &mut Pool, count: u64, bytes: u64) -> u64 {
        let mut used = Vec::new();
        for i in 0..count {
            let in_use = used.iter().map(Memory::bytes).sum();
            used.push(pool.take(bytes, in_use, (count - i - 1) * bytes).unwrap());
            assert!(used.iter().map(Memory::bytes).sum::<u64>() + pool.bytes() <= pool.bytes_max, "{count} of {bytes}");
        }
        let all = used.iter().map(Memory::bytes).sum();
        pool.give(used);
        all
    }

    #[test]
    fn buffers_of_many_sizes_stay_below_the_limit() {
        let mut pool = Pool::default();
        pool.limit(1000);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let count = random.u64(1..6);
            transfer(&mut pool, count, random.u64(1..=1000 / count));
            assert!(pool.bytes() <= 1000);
        }
    }

    #[test]
    fn what_fits_is_used_again() {
        let mut pool = Pool::default();
        pool.limit(1000);
        transfer(&mut pool, 2, 400);
        let kept: Vec<usize> = pool.free.iter().map(Memory::address).collect();
        transfer(&mut pool, 2, 10);
        transfer(&mut pool, 1, 200);
        transfer(&mut pool, 2, 400);
        assert_eq!(pool.bytes(), 800);
        assert!(pool.free.iter().all(|memory| kept.contains(&memory.address())));
    }

    #[test]
    fn a_lower_limit_frees() {
        let mut pool = Pool::default();
        transfer(&mut pool, 3, 100);
        pool.limit(250);
        assert_eq!(pool.bytes(), 200);
        pool.limit(50);
        assert_eq!(pool.bytes(), 0);
    }
}
