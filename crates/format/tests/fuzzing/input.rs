//! Choices and numbers out of the bytes that a fuzzer gives.

/// Takes from the front of some bytes; behind their end all is zero.
pub(super) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number of two bytes.
    pub(super) fn number(&mut self) -> u64 {
        u64::from(u16::from_le_bytes([self.byte(), self.byte()]))
    }

    /// One of 0 to `count - 1`.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        u64::from(self.byte()) % count
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// All that is left.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }
}
