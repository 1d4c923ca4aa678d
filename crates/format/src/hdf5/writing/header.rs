//! Object headers, of version 2 (section IV.A.1.b of the specification).

use crate::error::{Context, Error};
use crate::hdf5::lookup3::checked;

/// Most bytes of a message: its length has 16 bits, and libraries use a little less.
pub(in crate::hdf5) const MESSAGE_BYTES_MAX: usize = 65_535 - 16;

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

    /// All of it.
    ///
    /// # Errors
    /// When a message is too long.
    pub(super) fn bytes(&self, context: &Context) -> Result<Vec<u8>, Error> {
        if self.longest > MESSAGE_BYTES_MAX {
            let expected = format!("names, types and fill values of at most {MESSAGE_BYTES_MAX} B");
            return Err(context.invalid(expected, format!("{} B", self.longest)));
        }
        let mut bytes = b"OHDR".to_vec();
        bytes.extend([2, FLAGS]);
        bytes.extend((self.messages.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.messages);
        Ok(checked(bytes))
    }
}
