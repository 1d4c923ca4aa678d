//! Arrays of Fortran, as a compiler describes them to C.

use crate::foreign::{given, number_of, room};
use crate::member::border;
use crate::options::CMemory;
use hyperslab::{ElementType, Error, Kind};
use std::ffi::{c_int, c_void};

/// `CFI_cdesc_t` of gfortran on machines of 64 bits, up to its dimensions.
#[repr(C)]
struct CDescriptor {
    base: *mut c_void,
    element_bytes: usize,
    version: c_int,
    rank: i8,
    attribute: i8,
    kind: i16,
}

/// `CFI_dim_t`.
#[repr(C)]
struct CExtent {
    low: isize,
    extent: isize,
    stride: isize,
}

impl CDescriptor {
    /// The type of its elements in the header; of what cannot be moved, its class below zero. A call that moves such an array is
    /// then refused on all ranks.
    fn number(&self) -> i32 {
        // The class is in the lower byte, and above it how many bytes a number has.
        let (class, bytes) = (i32::from(self.kind & 0xff), self.kind >> 8);
        let kind = match (class, bytes) {
            (1, 1) => Kind::Int8,
            (1, 2) => Kind::Int16,
            (1, 4) => Kind::Int32,
            (1, 8) => Kind::Int64,
            (3, 4) => Kind::Float32,
            (3, 8) => Kind::Float64,
            (4, 4) => Kind::Complex64,
            (4, 8) => Kind::Complex128,
            _ => return -class.max(1),
        };
        number_of(ElementType::native(kind))
    }
}

/// The memory that a descriptor says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hyperslab_memory_of_fortran(
    descriptor: *const c_void,
    compiler: c_int,
    memory: *mut CMemory,
    shape: *mut i64,
    strides: *mut i64,
) -> c_int {
    border(|| {
        if compiler != 1 || size_of::<usize>() != 8 {
            let text = "descriptors of this compiler of Fortran are not known";
            return Err(Error::unsupported(text).with_hint("compile hyperslab.F90 with gfortran").into());
        }
        // SAFETY: as the header asks, there is such a descriptor, with so many dimensions behind it, and room for them.
        unsafe {
            let found = given("the descriptor", descriptor.cast::<CDescriptor>())?;
            let (memory, ndim) = (room("the room for a memory", memory)?, usize::try_from(found.rank).unwrap_or(0));
            room("the room for a shape", shape)?;
            room("the room for strides", strides)?;
            for dim in 0..ndim.min(15) {
                let CExtent { extent, stride, .. } = &*std::ptr::from_ref(found).add(1).cast::<CExtent>().add(dim);
                // The first dimension of Fortran is the last of C.
                shape.add(ndim - 1 - dim).write(*extent as i64);
                strides.add(ndim - 1 - dim).write(*stride as i64);
            }
            *memory = CMemory::of(found.base, found.number(), ndim as i32, (shape, strides));
        }
        Ok(())
    })
}
