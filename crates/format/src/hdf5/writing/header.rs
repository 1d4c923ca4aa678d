//! Object headers, of version 2 (section IV.A.1.b of the specification).

use crate::error::{Context, Error};
use crate::hdf5::lookup3::checked;
use crate::hdf5::policy::SECTOR_BYTES;

/// Most bytes of a message: its length has 16 bits, and libraries use a little less.
pub(in crate::hdf5) const MESSAGE_BYTES_MAX: usize = 65_535 - 16;

/// Bytes of a first block that leads to others and has no other message \[B\].
const SHORT_BYTES: u64 = 10 + 6 + 16 + 4;
const CONTINUATION: u8 = 0x10;

/// Bytes of the length of the header are counted with 32 bits; the order of attributes is kept, and an index of it promised.
const FLAGS: u8 = 0b0000_1110;

/// A header that is being made.
#[derive(Default)]
pub(super) struct NewHeader {
    messages: Vec<u8>,
    /// Bytes of the longest message.
    longest: usize,
}

impl NewHeader {
    /// Adds a message of this type.
    pub(super) fn message(&mut self, kind: u8, body: &[u8]) {
        self.ordered(kind, 0, body);
    }

    /// The same, which was made as this one among those of its kind.
    pub(super) fn ordered(&mut self, kind: u8, order: u16, body: &[u8]) {
        self.longest = self.longest.max(body.len());
        self.messages.push(kind);
        self.messages.extend((body.len() as u16).to_le_bytes());
        self.messages.push(0);
        self.messages.extend(order.to_le_bytes());
        self.messages.extend_from_slice(body);
    }

    /// All of it, where it lies at this address. What is too long for a sector is split: the first block is short and leads to the
    /// others, so that it can be replaced later by one write that a disk carries out whole or not at all.
    ///
    /// # Errors
    /// When a message is too long.
    pub(super) fn bytes(&self, context: &Context, at: u64) -> Result<Vec<u8>, Error> {
        if self.longest > MESSAGE_BYTES_MAX {
            let expected = format!("names, types and fill values of at most {MESSAGE_BYTES_MAX} B");
            return Err(context.invalid(expected, format!("{} B", self.longest)));
        }
        let first = |messages: &[u8]| {
            let mut bytes = b"OHDR".to_vec();
            bytes.extend([2, FLAGS]);
            bytes.extend((messages.len() as u32).to_le_bytes());
            bytes.extend_from_slice(messages);
            checked(bytes)
        };
        let whole = first(&self.messages);
        if whole.len() as u64 <= SECTOR_BYTES {
            return Ok(whole);
        }
        let others = checked([b"OCHK", &self.messages[..]].concat());
        let mut leading = NewHeader::default();
        let place = at + SHORT_BYTES.next_multiple_of(8);
        leading.message(CONTINUATION, &[place.to_le_bytes(), (others.len() as u64).to_le_bytes()].concat());
        let mut bytes = first(&leading.messages);
        debug_assert_eq!(bytes.len() as u64, SHORT_BYTES);
        bytes.resize((place - at) as usize, 0);
        bytes.extend(others);
        Ok(bytes)
    }
}

/// Bytes of the first block of a header of so many bytes, which must not lie on both sides of the end of a sector \[B\].
pub(super) fn first_block(bytes: u64) -> u64 {
    if bytes <= SECTOR_BYTES { bytes } else { SHORT_BYTES }
}
