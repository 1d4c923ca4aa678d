//! Arrays in memory, and the chunks that suit them on disk.

use crate::holding::Ownership;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{Distribution, ElementType, Loop, Nest, Region, TextParts, View, cut, tuple};
use hyperslab_pack::{Memory, MemoryKind, tidy_texts};
use hyperslab_plan::MemoryLayout;
use hyperslab_world::{Computation, Exposed, Fault, FaultKind};
use std::sync::Arc;

/// Most bytes of a chunk when the user does not say \[B\].
pub const CHUNK_BYTES_MAX: u64 = 32 << 20;

/// A rank's part of an array, in its memory.
#[derive(Clone, Debug)]
pub struct LocalArray {
    /// The memory that holds it, from its lowest to its highest address.
    pub memory: Memory,
    /// Type of the elements.
    pub element: ElementType,
    /// Extents of the part, without halo.
    pub shape: Vec<u64>,
    /// Distance between neighbours along each dimension, perhaps negative \[B\].
    pub strides: Vec<i64>,
    /// Where the first element lies in the memory \[B\].
    pub offset: i64,
}

impl LocalArray {
    /// A row-major array of these values.
    ///
    /// # Panics
    /// When there are not as many values as the shape says.
    pub fn from_f64(shape: &[u64], values: &[f64]) -> LocalArray {
        assert_eq!(volume(shape), Some(values.len() as u64), "values for shape {shape:?}");
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let element = ElementType::native(hyperslab_layout::Kind::Float64);
        let order: Vec<usize> = (0..shape.len()).collect();
        let strides = hyperslab_layout::dense_strides(shape, &order, 8);
        LocalArray { memory: Memory::from_vec(bytes), element, shape: shape.to_vec(), strides, offset: 0 }
    }

    /// The values of a dense array of 64-bit floating-point numbers, in the order of its memory.
    ///
    /// # Panics
    /// When elements are of another type.
    pub fn to_f64(&self) -> Vec<f64> {
        assert_eq!(self.element, ElementType::native(hyperslab_layout::Kind::Float64), "float64 elements");
        let bytes = self.memory.to_vec(0, 8 * volume(&self.shape).unwrap_or(0));
        bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().expect("8 bytes"))).collect()
    }

    /// Takes part in a transfer as the part that `rank` holds.
    ///
    /// # Errors
    /// When the shape is not that of the part, or elements lie outside of the memory.
    pub(crate) fn expose(
        &self,
        name: &str,
        distribution: &Distribution,
        (rank, size): (u32, u32),
    ) -> Result<Exposed, Fault> {
        check_ranks(name, distribution, size)?;
        let owned = distribution.owned(rank);
        // Ranks beyond the mesh hold nothing, in whatever shape.
        let nothing = u64::from(rank) >= distribution.ranks();
        let mine = volume(&self.shape).unwrap_or(u64::MAX);
        if (nothing && mine != 0 && !self.shape.is_empty()) || (!nothing && self.shape != owned.shape()) {
            let expected = match nothing {
                true => "nothing (the rank is beyond the mesh)".into(),
                false => format!("shape {}", tuple(&owned.shape())),
            };
            let what = format!("the local part of '{name}' does not fit distribution {distribution}");
            return Err(Fault::new(FaultKind::Invalid, what)
                .expected(expected, format!("shape {}", tuple(&self.shape)))
                .hint("give an array of the shape that local_shape(rank) returns; leave out its halo with halo or by slicing"));
        }
        self.check(name)?;
        let owned = if nothing {
            Region { dims: distribution.shape().iter().map(|_| Default::default()).collect() }
        } else {
            owned
        };
        let view = View::held(&owned, self.offset, &self.strides, self.element);
        Ok(Exposed { memory: self.memory.clone(), view: Arc::new(view) })
    }

    /// Whether only the memory is another one.
    pub(crate) fn lies_as(&self, other: &LocalArray) -> bool {
        (self.element, self.offset) == (other.element, other.offset)
            && self.shape == other.shape
            && self.strides == other.strides
    }

    /// How it lies in its memory, for the model.
    pub(crate) fn laid(&self) -> MemoryLayout {
        let dims: Vec<(u64, i64)> = self.shape.iter().copied().zip(self.strides.iter().copied()).collect();
        MemoryLayout::new(&dims, self.element.bytes())
    }

    /// Makes zeros of what lies behind the values of texts.
    pub(crate) fn tidy(&self, texts: &TextParts) -> Result<(), Fault> {
        let loops = self.shape.iter().zip(&self.strides).map(|(&count, &a)| Loop { count, a, b: 0 }).collect();
        let nest = Nest { a: self.offset, b: 0, loops };
        tidy_texts(&nest, &self.memory, self.element.bytes(), texts)
            .map_err(|error| Fault::new(FaultKind::Invalid, error.to_string()))
    }

    /// Bytes of the elements \[B\].
    pub fn bytes(&self) -> u64 {
        volume(&self.shape).unwrap_or(u64::MAX).saturating_mul(self.element.bytes())
    }

    /// A dense copy in memory of this library, in the same order of dimensions, made at once.
    ///
    /// # Errors
    /// When there is no memory for it, or elements lie outside of the memory.
    pub fn copied(&self, name: &str) -> Result<LocalArray, Fault> {
        self.check(name)?;
        let bytes = self.bytes();
        let memory = Memory::allocate(bytes.max(1)).map_err(|_| {
            Fault::no_memory(format_args!("a copy of '{name}' of {bytes} B"))
                .hint("give staged=False, which needs no copy")
        })?;
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        order.sort_by_key(|&d| std::cmp::Reverse(self.strides[d].unsigned_abs()));
        let strides = hyperslab_layout::dense_strides(&self.shape, &order, self.element.bytes());
        let section = hyperslab_layout::Section::whole(&self.shape);
        let region = Region { dims: section.dims.iter().map(hyperslab_layout::Triplet::set).collect() };
        let from = View::held(&region, self.offset, &self.strides, self.element);
        let to = View::held(&region, 0, &strides, self.element);
        let part = |memory: &Memory, view| Exposed { memory: memory.clone(), view: Arc::new(view) };
        let copy = Computation::Copy { region, from: part(&self.memory, from), to: part(&memory, to) };
        copy.run().map_err(|fault| fault.context(format!("copying '{name}'")))?;
        Ok(LocalArray { memory, element: self.element, shape: self.shape.clone(), strides, offset: 0 })
    }

    pub(crate) fn check(&self, name: &str) -> Result<(), Fault> {
        if self.memory.kind() == MemoryKind::Device {
            let text = format!("'{name}' is in {} memory, and only host memory can be moved", self.memory.kind());
            let hint = "copy the array to the memory of the host first";
            return Err(Fault::new(FaultKind::Unsupported, text).hint(hint));
        }
        if self.strides.len() != self.shape.len() {
            return Err(Fault::new(
                FaultKind::Invalid,
                format!("'{name}' has {} strides for {} dimensions", self.strides.len(), self.shape.len()),
            ));
        }
        if self.shape.contains(&0) {
            return Ok(());
        }
        let (mut low, mut high) = (self.offset, self.offset + self.element.bytes() as i64);
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            let reach = (extent as i64 - 1) * stride;
            low += reach.min(0);
            high += reach.max(0);
        }
        if low < 0 || high as u64 > self.memory.bytes() {
            let text = format!("'{name}' reaches bytes {low}..{high} of a memory of {} B", self.memory.bytes());
            return Err(Fault::new(FaultKind::Invalid, text));
        }
        Ok(())
    }

    /// A new row-major array.
    pub(crate) fn fresh(shape: Vec<u64>, element: ElementType) -> Result<LocalArray, Fault> {
        let bytes = volume(&shape).unwrap_or(u64::MAX).saturating_mul(element.bytes());
        let memory = Memory::allocate(bytes.max(element.bytes()))
            .map_err(|_| Fault::no_memory(format_args!("a local part of {bytes} B")))?;
        let order: Vec<usize> = (0..shape.len()).collect();
        let strides = hyperslab_layout::dense_strides(&shape, &order, element.bytes());
        Ok(LocalArray { memory, element, shape, strides, offset: 0 })
    }
}

/// Refuses a distribution over ranks that do not exist: nobody would move their part.
pub(crate) fn check_ranks(name: &str, distribution: &Distribution, size: u32) -> Result<(), Fault> {
    if distribution.ranks() <= u64::from(size) {
        return Ok(());
    }
    let text = format!(
        "the distribution of '{name}' is over {} ranks (mesh {}), but the communicator has {size}",
        distribution.ranks(),
        tuple(distribution.mesh())
    );
    Err(Fault::new(FaultKind::Invalid, text).hint(
        "make the distribution for as many ranks as the communicator has, also after a restart on another number",
    ))
}

/// Chunks that lie on the distribution's edges and have a moderate size: what a rank holds, cut along its slowest
/// dimensions first (Panda calls it natural chunking).
pub fn natural_chunks(holding: &Ownership, element_bytes: u64) -> Vec<u64> {
    match holding.regular() {
        Some(distribution) => hyperslab_layout::natural_chunks(distribution, element_bytes, CHUNK_BYTES_MAX),
        None => cut(holding.shape().iter().map(|&extent| extent.max(1)).collect(), element_bytes, CHUNK_BYTES_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Dim;

    #[test]
    fn natural_chunks_are_the_blocks_cut_small() {
        let d = Distribution::new(&[512, 512, 256], &[2, 2, 2], &[const { Dim::Block }; 3]).unwrap();
        assert_eq!(natural_chunks(&d.into(), 8), [128, 256, 128]);
        let small = Distribution::new(&[40], &[16], &[Dim::Block]).unwrap();
        assert_eq!(natural_chunks(&small.into(), 8), [3]);
        let scalar = Distribution::new(&[], &[2], &[]).unwrap();
        assert_eq!(natural_chunks(&scalar.into(), 8), [0u64; 0]);
        let empty = Distribution::new(&[0, 5], &[2], &[Dim::Block, Dim::Whole]).unwrap();
        assert_eq!(natural_chunks(&empty.into(), 8), [1, 5]);
    }
}
