//! The orders of bytes in a block of Blosc: by the bytes of elements, and by their bits.

/// The first bytes of all elements, then the second ones; what is less than an element stays behind them.
pub(super) fn by_bytes(block: &[u8], element: usize) -> Vec<u8> {
    let count = block.len() / element;
    let mut out = block.to_vec();
    for (j, plane) in out.chunks_exact_mut(count.max(1)).take(element).enumerate() {
        plane.iter_mut().zip(block[j..].iter().step_by(element)).for_each(|(to, from)| *to = *from);
    }
    out[count * element..].copy_from_slice(&block[count * element..]);
    out
}

/// The reverse of [`by_bytes`].
pub(super) fn from_bytes(ordered: &[u8], element: usize, out: &mut [u8]) {
    let count = ordered.len() / element;
    out.copy_from_slice(ordered);
    for (j, plane) in ordered.chunks_exact(count.max(1)).take(element).enumerate() {
        out[j..].iter_mut().step_by(element).zip(plane).for_each(|(to, from)| *to = *from);
    }
    out[count * element..].copy_from_slice(&ordered[count * element..]);
}

/// The first bits of all elements, then the second ones. Blocks whose elements are no groups of eight stay as they are.
pub(super) fn by_bits(block: &[u8], element: usize) -> Vec<u8> {
    let mut out = block.to_vec();
    for_each_group(block.len(), element, |inside, planes| {
        let bits = transposed(u64::from_le_bytes(inside.map(|at| block[at])));
        planes.into_iter().zip(bits.to_le_bytes()).for_each(|(at, byte)| out[at] = byte);
    });
    out
}

/// The reverse of [`by_bits`].
pub(crate) fn from_bits(ordered: &[u8], element: usize, out: &mut [u8]) {
    out.copy_from_slice(ordered);
    for_each_group(ordered.len(), element, |inside, planes| {
        let bits = transposed(u64::from_le_bytes(planes.map(|at| ordered[at])));
        inside.into_iter().zip(bits.to_le_bytes()).for_each(|(at, byte)| out[at] = byte);
    });
}

/// For each byte of elements in groups of eight: where the bytes of a group lie, and where those of their bits do.
fn for_each_group(bytes: usize, element: usize, mut group: impl FnMut([usize; 8], [usize; 8])) {
    let count = bytes / element;
    if !count.is_multiple_of(8) {
        return;
    }
    let groups = count / 8;
    for byte in 0..element {
        for number in 0..groups {
            let inside = std::array::from_fn(|i| (8 * number + i) * element + byte);
            group(inside, std::array::from_fn(|bit| (8 * byte + bit) * groups + number));
        }
    }
}

/// Eight rows of eight bits, with rows and columns exchanged.
fn transposed(mut rows: u64) -> u64 {
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
        let different = (rows ^ (rows >> shift)) & mask;
        rows ^= different ^ (different << shift);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_those_of_bytes_and_bits() {
        assert_eq!(by_bytes(&[1, 2, 3, 4, 5, 6, 7], 3), [1, 4, 2, 5, 3, 6, 7]);
        let mut back = [0; 7];
        from_bytes(&by_bytes(&[1, 2, 3, 4, 5, 6, 7], 3), 3, &mut back);
        assert_eq!(back, [1, 2, 3, 4, 5, 6, 7]);
        // Eight elements of one byte, of which the third alone has its lowest bit.
        assert_eq!(by_bits(&[0, 0, 1, 0, 0, 0, 0, 0x80], 1), [0b100, 0, 0, 0, 0, 0, 0, 0x80]);
        assert_eq!(by_bits(&[9; 7], 1), [9; 7], "no group of eight");
        for element in 1..5 {
            let block: Vec<u8> = (0..8 * 3 * element as u8).map(|at| at.wrapping_mul(37)).collect();
            let mut back = vec![0; block.len()];
            from_bits(&by_bits(&block, element), element, &mut back);
            assert_eq!(back, block);
        }
    }
}
