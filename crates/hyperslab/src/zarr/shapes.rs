//! How new arrays are cut into chunks, where the user leaves it open.
//!
//! Chunks are what one rank holds (Panda's natural chunks), unless the model says that others are worth it: many small
//! arrays are better one chunk each, since files cost more than their bytes, and chunks of CYCLIC parts, which no rank
//! has for itself, are better few. Who says what is read later gets chunks that suit those requests
//! (Disk Resident Arrays), priced as often as they cover the array.

use super::stored::stored;
use crate::options::WriteOptions;
use hyperslab_collective::CHUNK_BYTES_MAX;
use hyperslab_format::zarr::{ArrayMetadata, Separator};
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Distribution, Policies, Section, Triplet, chunks_for_request, near_shapes, tuple};
use hyperslab_plan::{Direction, MemoryLayout, Preference, Spread, Transfer, TransferArray, Use};
use hyperslab_world::{Fault, FaultKind};
use std::sync::Arc;

/// Most chunks that lie in one directory.
const FLAT_CHUNKS_MAX: u64 = 1024;
/// Chunks are not cut smaller \[B\].
const CUT_BYTES_MIN: u64 = 1 << 20;
/// Limits of chunks that are tried for typical requests \[B\].
const FOR_REQUESTS: [u64; 4] = [CHUNK_BYTES_MAX, CHUNK_BYTES_MAX / 4, CHUNK_BYTES_MAX / 16, CHUNK_BYTES_MAX / 64];
/// Arrays of a call that are looked at; more of them cost more of the same.
const ARRAYS_MAX: usize = 8;

/// Chunks that are not too many for one directory lie beside their metadata: directories take longer to make than the
/// files in them, and are most of the time that thousands of small arrays take. An array that begins empty will grow, nobody
/// knows how far.
pub(super) fn separator(metadata: &ArrayMetadata) -> Separator {
    let chunks = volume(&metadata.grid_shape()).unwrap_or(u64::MAX);
    if (1..=FLAT_CHUNKS_MAX).contains(&chunks) { Separator::Dot } else { Separator::Slash }
}

impl WriteOptions {
    /// Checks what it says of an array of this shape.
    pub(super) fn check(&self, name: &str, shape: &[u64]) -> Result<(), Fault> {
        match &self.typical {
            Some(request) if request.len() != shape.len() => {
                let ndim = request.len();
                let text = format!(
                    "a typical request of {ndim} dimensions cannot be one of '{name}' of shape {shape}",
                    shape = tuple(shape)
                );
                Err(Fault::new(FaultKind::Invalid, text).hint("give an extent, or none, for each dimension"))
            }
            _ => Ok(()),
        }
    }
}

/// The same array in chunks of another shape.
pub(super) fn reshaped(metadata: &ArrayMetadata, chunk: Vec<u64>) -> ArrayMetadata {
    let mut metadata = ArrayMetadata { chunk_shape: chunk, ..metadata.clone() };
    metadata.key_encoding.separator = separator(&metadata);
    metadata
}

/// A new array of which the chunks are open.
pub(super) struct Open<'a> {
    /// What it is, in the chunks that it has unless others are better.
    pub(super) metadata: &'a ArrayMetadata,
    /// What of it is asked, in the same.
    pub(super) ask: TransferArray,
    /// How many arrays of the call are like it.
    pub(super) arrays: usize,
    /// How they lie in the memory of this rank.
    pub(super) laid: Option<MemoryLayout>,
    /// What is wanted of the call.
    pub(super) hints: Preference,
    /// Ranks of the call.
    pub(super) ranks: u32,
    pub(super) policies: Policies,
}

impl Open<'_> {
    /// Shapes to choose from beside the usual one, in ladders. None where too little is known of what they would cost:
    /// what encoding takes, and who holds pieces of its own.
    pub(super) fn ladders(&self, new: &WriteOptions) -> Vec<Vec<Vec<u64>>> {
        let ArrayMetadata { shape, chunk_shape: usual, .. } = self.metadata;
        let bytes = self.metadata.stored_element().bytes();
        let fixed = new.chunks.is_some() && new.typical.is_none();
        if fixed || !self.metadata.codecs.is_plain() || self.ask.spread.regular().is_none() {
            return Vec::new();
        }
        let Some(request) = &new.typical else {
            return near_shapes(shape, usual, bytes, (CUT_BYTES_MIN, CHUNK_BYTES_MAX)).into();
        };
        let mut smaller: Vec<Vec<u64>> =
            FOR_REQUESTS.map(|bytes_max| chunks_for_request(shape, request, bytes, bytes_max)).into();
        smaller.dedup();
        smaller.retain(|chunk| chunk != usual);
        vec![smaller]
    }

    /// A write of it, when it is stored so, and of those like it.
    pub(super) fn write(&self, metadata: &ArrayMetadata) -> Use {
        let some = self.arrays.min(ARRAYS_MAX) as u32;
        let asks =
            (0..some).map(|root| TransferArray { stored: stored(metadata, root, true), ..self.ask.clone() }).collect();
        let (direction, ranks, policies) = (Direction::Write, self.ranks, self.policies);
        Use {
            transfer: Arc::new(Transfer { direction, asks, ranks, policies }),
            times: self.arrays as f64 / some.max(1) as f64,
            hints: self.hints.clone(),
            laid: vec![self.laid.clone(); some as usize],
        }
    }

    /// What the array is for in chunks of this shape: it is written, and read as is typical.
    pub(super) fn uses(&self, new: &WriteOptions, chunk: &[u64]) -> Vec<Use> {
        let metadata = reshaped(self.metadata, chunk.to_vec());
        let write = self.write(&metadata);
        let Some(request) = &new.typical else { return vec![write] };
        let (section, times) = typical(&self.metadata.shape, request);
        let spread = Distribution::replicated(&section.shape(), 1).map_or(Spread::Explicit, Spread::Regular);
        let asks = vec![TransferArray { section, spread, stored: stored(&metadata, 0, false), ..self.ask.clone() }];
        let read = Use {
            transfer: Arc::new(Transfer { direction: Direction::Read, asks, ranks: 1, policies: Policies::default() }),
            times: times * self.arrays as f64,
            // Another program reads.
            hints: Preference { buffer_bytes_max: self.hints.buffer_bytes_max, ..Preference::default() },
            laid: Vec::new(),
        };
        vec![write, read]
    }
}

/// A request in the middle of an array, and how many cover all of it.
fn typical(shape: &[u64], request: &[Option<u64>]) -> (Section, f64) {
    let extent = |(&n, &hints): (&u64, &Option<u64>)| hints.unwrap_or(n).clamp(1, n.max(1));
    let extents: Vec<u64> = shape.iter().zip(request).map(extent).collect();
    let along = |(&n, &extent): (&u64, &u64)| {
        // The last one would end where the array does.
        let start = (n / extent / 2 * extent).min(n.saturating_sub(extent));
        Triplet { start, stride: extent, count: u64::from(n > 0), block: extent }
    };
    let section = Section { dims: shape.iter().zip(&extents).map(along).collect() };
    (section, shape.iter().zip(&extents).map(|(&n, &extent)| n as f64 / extent as f64).product())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_requests_cover_an_array() {
        let told = |shape: &[u64], request: &[Option<u64>]| {
            let (section, times) = typical(shape, request);
            section.check(shape).unwrap();
            (section.dims.iter().map(|dim| (dim.start, dim.block)).collect::<Vec<_>>(), times)
        };
        assert_eq!(told(&[1000, 360], &[Some(1), None]), (vec![(500, 1), (0, 360)], 1000.0));
        assert_eq!(told(&[100, 10], &[Some(30), Some(80)]), (vec![(30, 30), (0, 10)], 100.0 / 30.0));
        assert_eq!(told(&[0], &[Some(3)]).1, 0.0);
        assert_eq!(told(&[], &[]), (Vec::new(), 1.0));
    }
}
