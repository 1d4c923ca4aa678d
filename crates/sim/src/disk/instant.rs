//! A disk that takes no time.

use super::access::{Access, Disk};

/// A disk that takes no time, to see what all else costs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Instant {
    settled_ns: u64,
}

impl Disk for Instant {
    fn read(&mut self, now_ns: u64, _offset: u64, _bytes: u64) -> Access {
        Access { ready_ns: now_ns, ..Access::default() }
    }

    fn write(&mut self, now_ns: u64, _offset: u64, _bytes: u64) -> Access {
        self.settled_ns = self.settled_ns.max(now_ns);
        Access { ready_ns: now_ns, ..Access::default() }
    }

    fn settled_ns(&self) -> u64 {
        self.settled_ns
    }

    fn depth(&self) -> u32 {
        u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_end_when_they_begin() {
        let mut disk = Instant::default();
        assert_eq!(disk.write(7, 0, 1 << 40), Access { ready_ns: 7, ..Access::default() });
        assert_eq!(disk.read(9, 0, 1 << 40).ready_ns, 9);
        assert_eq!(disk.settled_ns(), 7);
    }
}
