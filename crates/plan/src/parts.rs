//! Reading chunks with checksums in parts.
//!
//! Who reads all of a chunk to compare its checksum needs a slot for all of it, and others wait for their parts. Where all of an
//! array is read, each element once, ranks read only what they want, or what fits into a small slot, and tell what that
//! contributes to the checksums (`hyperslab_world::PartSum`). These are compared when the call ends.

use crate::transfer::{Direction, Transfer, TransferArray};
use crate::units::shared_chunk;
use hyperslab_layout::Distribution;

impl TransferArray {
    /// The same where each element of the stored array is read, once, and ranks share chunks: these do not have to be read whole.
    #[must_use]
    pub fn in_parts(self) -> TransferArray {
        let whole = self.section.dims.iter().zip(&self.stored.shape).all(|(triplet, &extent)| triplet.len() == extent);
        let share = |distribution: &Distribution| {
            let chunk = self.stored.chunk().filter(|_| distribution.replication() == 1);
            chunk.is_some_and(|chunk| shared_chunk(&self, distribution, chunk).is_some())
        };
        let parts = whole && self.spread.regular().is_some_and(share);
        if parts { TransferArray { stored: self.stored.in_parts(), ..self } } else { self }
    }
}

impl Transfer {
    /// The same where what is read whole, each element once, is read in parts, and checksums are compared at the end.
    #[must_use]
    pub fn in_parts(self) -> Transfer {
        if self.direction == Direction::Write {
            return self;
        }
        Transfer { asks: self.asks.into_iter().map(TransferArray::in_parts).collect(), ..self }
    }

    /// The same where chunks with checksums are read whole, if some are not.
    pub fn in_whole_chunks(&self) -> Option<Transfer> {
        let is_summed = |ask: &TransferArray| ask.stored.summed_bytes().is_some();
        self.asks.iter().any(is_summed).then(|| {
            let whole = |ask: &TransferArray| TransferArray { stored: ask.stored.clone().whole(), ..ask.clone() };
            Transfer { asks: self.asks.iter().map(whole).collect(), ..self.clone() }
        })
    }
}
