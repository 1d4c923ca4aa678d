//! Elements that say which ones they are: what moves of an array whose values lie elsewhere and have no fixed length.
//!
//! Such an array has chunks like others, but nothing is stored of them: each element is made of its place. By ordinary transfers
//! each rank learns which elements it holds, in whatever way ranks hold them, and then reads their values where they lie.

use crate::mesh::volume;
use crate::policy::{NUMBER_BYTES, NUMBERS_MAX};

/// What makes the elements of chunks: 16 B, which are the number of an element in its array, row-major, and a mark of the array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Numbering {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    mark: u64,
    /// The first element of the chunk that it makes, in each dimension.
    corner: Vec<u64>,
}

/// What the bytes of one begin with, which those of no other codec do.
const TAG: &[u8] = b"\xfe";

impl Numbering {
    /// Of an array of this shape, in chunks of moderate size.
    pub fn new(shape: &[u64], mark: u64) -> Numbering {
        let (mut chunk, mut left) = (vec![1; shape.len()], NUMBERS_MAX);
        for (extent, of) in chunk.iter_mut().zip(shape).rev() {
            *extent = (*of).clamp(1, left);
            left /= *extent;
        }
        Numbering { shape: shape.to_vec(), chunk, mark, corner: vec![0; shape.len()] }
    }

    /// Shape of its chunks.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// That of the chunk with these coordinates in the grid.
    #[must_use]
    pub fn of_chunk(&self, at: &[u64]) -> Numbering {
        let corner = at.iter().zip(&self.chunk).map(|(at, extent)| at.wrapping_mul(*extent)).collect();
        Numbering { corner, ..self.clone() }
    }

    /// The elements of the chunk, row-major; those beyond the end of the array have numbers that mean nothing.
    pub fn elements(&self) -> Vec<u8> {
        let ndim = self.shape.len();
        let mut strides = vec![1_u64; ndim];
        (1..ndim).rev().for_each(|d| strides[d - 1] = strides[d].wrapping_mul(self.shape[d]));
        let corner = self.corner.iter().zip(&strides).map(|(at, stride)| at.wrapping_mul(*stride));
        let mut numbers = vec![corner.fold(0, u64::wrapping_add)];
        for (extent, stride) in self.chunk.iter().zip(&strides) {
            let along = |first: &u64| (0..*extent).map(|at| first.wrapping_add(at.wrapping_mul(*stride))).collect();
            numbers = numbers.iter().flat_map(|first| -> Vec<u64> { along(first) }).collect();
        }
        numbers.iter().flat_map(|number| [number.to_le_bytes(), self.mark.to_le_bytes()]).flatten().collect()
    }

    /// The number and the mark of an element that was made so.
    pub fn read(element: [u8; NUMBER_BYTES as usize]) -> (u64, u64) {
        let both = u128::from_le_bytes(element);
        (both as u64, (both >> 64) as u64)
    }

    /// What [`crate::Codec::to_bytes`] told of; nothing if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Numbering> {
        let (numbers, rest) = bytes.strip_prefix(TAG)?.as_chunks::<8>();
        let (mark, shape) = numbers.split_first()?;
        let shape: Vec<u64> = shape.iter().map(|number| u64::from_le_bytes(*number)).collect();
        (rest.is_empty() && volume(&shape).is_some()).then(|| Numbering::new(&shape, u64::from_le_bytes(*mark)))
    }

    /// What all ranks make the same of.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = std::iter::once(&self.mark).chain(&self.shape);
        TAG.iter().copied().chain(numbers.flat_map(|number| number.to_le_bytes())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::ravel;

    #[test]
    fn elements_say_which_ones_they_are() {
        let mut numbering = Numbering::new(&[5, 7, 3], 9);
        assert_eq!(numbering.chunk(), [5, 7, 3]);
        numbering.chunk = vec![2, 4, 3];
        for at in [[0, 0, 0], [2, 1, 0], [1, 1, 0]] {
            let made = numbering.of_chunk(&at).elements();
            let each = made.as_chunks::<16>().0.iter().map(|one| Numbering::read(*one));
            let mut each = each.collect::<Vec<_>>().into_iter();
            for place in (0..24).map(|place| crate::mesh::unravel(place, &[2, 4, 3])) {
                let global: Vec<u64> = (0..3).map(|d| at[d] * numbering.chunk[d] + place[d]).collect();
                let found = each.next().unwrap();
                let inside = global.iter().zip(&numbering.shape).all(|(at, extent)| at < extent);
                assert!(!inside || found == (ravel(&global, &numbering.shape), 9), "{global:?} {found:?}");
            }
        }
    }

    #[test]
    fn chunks_are_of_moderate_size_and_travel() {
        for (shape, chunk) in [
            (&[][..], &[][..]),
            (&[0], &[1]),
            (&[1 << 20], &[1 << 16]),
            (&[1 << 40, 300], &[218, 300]),
            (&[3, 1 << 17], &[1, 1 << 16]),
        ] {
            let numbering = Numbering::new(shape, 7);
            assert_eq!(numbering.chunk(), chunk);
            assert_eq!(numbering.elements().len() as u64, chunk.iter().product::<u64>() * NUMBER_BYTES);
            assert_eq!(Numbering::from_bytes(&numbering.to_bytes()), Some(numbering.clone()));
            assert_eq!(Numbering::from_bytes(&numbering.to_bytes()[1..]), None);
        }
        assert_eq!(Numbering::from_bytes(b"\xfe"), None);
    }
}
