//! The safe twin of [`copy`](crate::copy): plain loops, checked indices, one element at a time.
//!
//! Far slower, and meant as an oracle in tests: it shares neither the shaping of nests nor the kernels.

use hyperslab_layout::{ElementType, Nest};

use crate::bounds::{Side, check};
use crate::copy::same_bits;
use crate::nan::{CopyError, NotANumber, matters};
use crate::scalar::{convert_scalar, is_nan};

/// Copies every element of side `a`, in `from`, to side `b`, in `to`, in the order of the nest's loops. Conversion
/// is that of [`copy`](crate::copy).
///
/// # Errors
/// As of [`copy`](crate::copy).
pub fn copy(
    nest: &Nest,
    from: &[u8],
    from_type: ElementType,
    to: &mut [u8],
    to_type: ElementType,
) -> Result<(), CopyError> {
    check(nest, Side::From, from_type.bytes(), from.len() as u64)?;
    check(nest, Side::To, to_type.bytes(), to.len() as u64)?;
    let (from_bytes, to_bytes) = (from_type.bytes() as usize, to_type.bytes() as usize);
    let opaque = from_type.kind.is_opaque() || to_type.kind.is_opaque();
    if opaque && !same_bits(from_type.kind, to_type.kind) {
        return Err(NotANumber { from: from_type.kind, to: to_type.kind }.into());
    }
    let mut nan = false;
    for number in 0..nest.elements() {
        let (a, b) = element(nest, number);
        if opaque {
            to[b..b + to_bytes].copy_from_slice(&from[a..a + from_bytes]);
            if from_type.order != to_type.order {
                to[b..b + to_bytes].chunks_mut(to_type.kind.swap_bytes() as usize).for_each(<[u8]>::reverse);
            }
            continue;
        }
        let converted = convert_scalar(&from[a..a + from_bytes], from_type, to_type);
        nan |= matters(from_type.kind, to_type.kind) && is_nan(&from[a..a + from_bytes], from_type);
        to[b..b + to_bytes].copy_from_slice(&converted[..to_bytes]);
    }
    if nan { Err(NotANumber { from: from_type.kind, to: to_type.kind }.into()) } else { Ok(()) }
}

/// Addresses of one element, by its number in the order of the loops.
fn element(nest: &Nest, number: u64) -> (usize, usize) {
    let (mut rest, mut a, mut b) = (number, nest.a, nest.b);
    for l in nest.loops.iter().rev() {
        let index = (rest % l.count) as i64;
        rest /= l.count;
        a += index * l.a;
        b += index * l.b;
    }
    (a as usize, b as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::{Kind, Loop};

    #[test]
    fn a_transposed_block_is_narrowed() {
        let from: Vec<u8> = [1.5f64, 2.5, 3.5, 4.5, 5.5, 6.5].iter().flat_map(|x| x.to_ne_bytes()).collect();
        let mut to = [0xee; 8];
        let nest =
            Nest { a: 0, b: 1, loops: vec![Loop { count: 2, a: 24, b: 1 }, Loop { count: 3, a: 8, b: 2 }].into() };
        let (wide, narrow) = (ElementType::native(Kind::Float64), ElementType::native(Kind::Int8));
        copy(&nest, &from, wide, &mut to, narrow).unwrap();
        assert_eq!(to, [0xee, 1, 4, 2, 5, 3, 6, 0xee]);
        let Err(CopyError::OutOfBounds(error)) = copy(&nest, &from, wide, &mut to[..6], narrow) else {
            panic!("no error")
        };
        assert_eq!(error.high, 7);
    }
}
