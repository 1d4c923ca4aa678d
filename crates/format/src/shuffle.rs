//! Shuffle: the first bytes of all elements, then the second ones; what is less than an element stays behind them.

/// Elements whose planes are made at once: they stay in the processor's nearest cache until the last plane is made.
const BLOCK: usize = 1024;

/// The bytes of elements of this size, one after another.
pub(crate) fn shuffled(bytes: &[u8], element: usize) -> Vec<u8> {
    let Some(count) = bytes.len().checked_div(element).filter(|&count| element > 1 && count > 1) else {
        return bytes.to_vec();
    };
    let mut out = bytes.to_vec();
    let (planes, whole) = (&mut out[..count * element], &bytes[..count * element]);
    match element {
        2 => words::u16::shuffle(whole, planes),
        4 => words::u32::shuffle(whole, planes),
        8 => words::u64::shuffle(whole, planes),
        _ => {
            for (number, plane) in planes.chunks_exact_mut(count).enumerate() {
                let from = whole[number..].iter().step_by(element);
                plane.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
    }
    out
}

/// The reverse of [`shuffled`].
pub(crate) fn unshuffled(bytes: &[u8], element: usize) -> Vec<u8> {
    let Some(count) = bytes.len().checked_div(element).filter(|&count| element > 1 && count > 1) else {
        return bytes.to_vec();
    };
    let mut out = bytes.to_vec();
    let (whole, planes) = (&mut out[..count * element], &bytes[..count * element]);
    match element {
        2 => words::u16::unshuffle(planes, whole),
        4 => words::u32::unshuffle(planes, whole),
        8 => words::u64::unshuffle(planes, whole),
        _ => {
            for (number, plane) in planes.chunks_exact(count).enumerate() {
                let to = whole[number..].iter_mut().step_by(element);
                to.zip(plane).for_each(|(to, from)| *to = *from);
            }
        }
    }
    out
}

/// Elements of usual sizes as words, with loops that compilers turn into vector instructions: 4 to 10 GB/s, where moving byte
/// by byte reaches less than one.
mod words {
    use super::BLOCK;

    macro_rules! of_word {
        ($word:ident) => {
            pub(super) mod $word {
                use super::BLOCK;
                const BYTES: usize = size_of::<$word>();

                pub(in super::super) fn shuffle(whole: &[u8], planes: &mut [u8]) {
                    let (words, _) = whole.as_chunks::<BYTES>();
                    for (at, block) in words.chunks(BLOCK).enumerate() {
                        for byte in 0..BYTES {
                            let plane = &mut planes[byte * words.len() + at * BLOCK..][..block.len()];
                            for (to, word) in plane.iter_mut().zip(block) {
                                *to = ($word::from_le_bytes(*word) >> (8 * byte)) as u8;
                            }
                        }
                    }
                }

                pub(in super::super) fn unshuffle(planes: &[u8], whole: &mut [u8]) {
                    let (words, _) = whole.as_chunks_mut::<BYTES>();
                    let count = words.len();
                    let planes: [&[u8]; BYTES] = std::array::from_fn(|byte| &planes[byte * count..][..count]);
                    for (at, to) in words.iter_mut().enumerate() {
                        let word = (0..BYTES).fold(0, |word, byte| word | $word::from(planes[byte][at]) << (8 * byte));
                        *to = word.to_le_bytes();
                    }
                }
            }
        };
    }

    of_word!(u16);
    of_word!(u32);
    of_word!(u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Byte by byte, what the two say.
    #[test]
    fn planes_hold_one_byte_of_each_element() {
        let mut random = fastrand::Rng::with_seed(3);
        for element in (0..20).chain([32, 255]) {
            for length in [0, 1, 7, 16, 63, 64, 65, 500, 1001] {
                let bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                let made = shuffled(&bytes, element);
                let count = if element > 1 { length / element } else { 0 };
                let expected = |at: usize| match count {
                    2.. if at < count * element => bytes[at % count * element + at / count],
                    _ => bytes[at],
                };
                assert_eq!(made, (0..length).map(expected).collect::<Vec<_>>(), "{element} B, {length}");
                assert_eq!(unshuffled(&made, element), bytes, "{element} B, {length}");
            }
        }
    }
}
