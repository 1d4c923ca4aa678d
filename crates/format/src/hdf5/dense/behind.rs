//! What is made anew of a heap and trees.

/// What is put behind the end of a file, from an address on.
pub(super) struct BehindEnd {
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

impl BehindEnd {
    /// Puts bytes there, at a multiple of 8; gives their address.
    pub(super) fn put(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.at + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        at
    }
}
