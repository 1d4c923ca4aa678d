//! Where a rank's part of an array lies: the memory of a caller, without a copy.

use crate::foreign::{element, maybe_numbers, numbers, several};
use crate::options::CMemory;
use hyperslab::binding::tuple;
use hyperslab::{ElementType, Error, LocalArray, Memory};

impl CMemory {
    /// This rank's part of an array: of this shape, or of that of the memory.
    ///
    /// # Safety
    /// Pointers are what the header asks for, and the memory stays until the call that uses it is over.
    pub(crate) unsafe fn local(&self, part: Option<&[u64]>) -> Result<LocalArray, Error> {
        // SAFETY: as the caller says, here and below.
        let element = unsafe { element(self.kind, self.code) }?;
        let shape = match (self.ndim, part) {
            (-1, Some(part)) => part.to_vec(),
            (-1, None) => {
                let text = "a memory needs its shape where no distribution says what this rank has";
                return Err(Error::invalid(text).with_hint("use hyperslab_inside(), or give a distribution"));
            }
            // SAFETY: as above.
            (ndim, _) => unsafe { numbers("the shape of a memory", self.shape, ndim.into()) }?,
        };
        let part = part.unwrap_or(&shape);
        // SAFETY: as above.
        let offsets = unsafe { maybe_numbers("the offsets of a memory", self.offsets, shape.len()) }?;
        let offsets = offsets.unwrap_or_else(|| vec![0; shape.len()]);
        let reach = |(offset, extent): (&u64, &u64)| offset.checked_add(*extent);
        let ends: Option<Vec<u64>> = offsets.iter().zip(part).map(reach).collect();
        let fits = ends.is_some_and(|ends| ends.iter().zip(&shape).all(|(end, extent)| end <= extent));
        if part.len() != shape.len() || !fits {
            let text = format!(
                "a memory of shape {} does not have room for {} at {}",
                tuple(&shape),
                tuple(part),
                tuple(&offsets)
            );
            return Err(Error::invalid(text)
                .with_hint("its shape is that of all of it, with the halo; offsets say where the part begins"));
        }
        let strides = match self.strides.is_null() {
            true => dense(&shape, element.bytes())?,
            // SAFETY: as above.
            false => unsafe { several("the strides of a memory", self.strides, shape.len() as i64) }?.to_vec(),
        };
        // SAFETY: as above.
        unsafe { self.reaching(element, part, (&strides, &offsets)) }
    }

    /// The same, with all that it reaches.
    ///
    /// # Safety
    /// As above.
    unsafe fn reaching(
        &self,
        element: ElementType,
        part: &[u64],
        (strides, offsets): (&[i64], &[u64]),
    ) -> Result<LocalArray, Error> {
        let (shape, strides) = (part.to_vec(), strides.to_vec());
        if shape.contains(&0) {
            return Ok(LocalArray { memory: Memory::from_vec(Vec::new()), element, shape, strides, offset: 0 });
        }
        if self.data.is_null() {
            return Err(Error::invalid(format!("the memory of a part of shape {} is a null pointer", tuple(&shape))));
        }
        let along = |number: u64, stride: i64| i128::from(number) * i128::from(stride);
        let first: i128 = offsets.iter().zip(&strides).map(|(offset, stride)| along(*offset, *stride)).sum();
        let reaches = || shape.iter().zip(&strides).map(|(extent, stride)| along(extent - 1, *stride));
        let low = first + reaches().map(|reach| reach.min(0)).sum::<i128>();
        let high = first + reaches().map(|reach| reach.max(0)).sum::<i128>() + i128::from(element.bytes());
        let address = self.data as usize as i128 + low;
        let (Ok(address), Ok(bytes), Ok(offset)) =
            (usize::try_from(address), u64::try_from(high - low), i64::try_from(first - low))
        else {
            return Err(Error::invalid(format!(
                "a memory of strides {} is not one that this machine has",
                tuple(&strides)
            )));
        };
        let address = self.data.with_addr(address).cast::<u8>();
        // SAFETY: the caller says that the part lies there, and stays until the call is over.
        let memory = unsafe { Memory::foreign(address, bytes, Box::new(())) };
        Ok(LocalArray { memory, element, shape, strides, offset })
    }
}

/// Strides of a dense memory in the order of C \[B\].
fn dense(shape: &[u64], element_bytes: u64) -> Result<Vec<i64>, Error> {
    let too_large = || Error::invalid(format!("a memory of shape {} is larger than any machine's", tuple(shape)));
    let mut stride = element_bytes as i64;
    let mut strides = vec![0; shape.len()];
    for (each, extent) in strides.iter_mut().zip(shape).rev() {
        *each = stride;
        // An extent of 0 leaves nothing to reach.
        let extent = i64::try_from((*extent).max(1)).map_err(|_| too_large())?;
        stride = stride.checked_mul(extent).ok_or_else(too_large)?;
    }
    Ok(strides)
}
