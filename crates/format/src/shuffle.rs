//! Shuffle: the first bytes of all elements, then the second ones; what is less than an element stays behind them.

/// The bytes of elements of this size, one after another.
pub(crate) fn shuffled(bytes: &[u8], element: usize) -> Vec<u8> {
    let Some(count) = bytes.len().checked_div(element).filter(|&count| element > 1 && count > 1) else {
        return bytes.to_vec();
    };
    let mut out = bytes.to_vec();
    let (planes, whole) = (&mut out[..count * element], &bytes[..count * element]);
    let turned = match element {
        2 => shuffle::<2>(whole, planes),
        4 => shuffle::<4>(whole, planes),
        8 => shuffle::<8>(whole, planes),
        16 => shuffle::<16>(whole, planes),
        _ => 0,
    };
    for (number, plane) in planes.chunks_exact_mut(count).enumerate() {
        let from = whole[number..].iter().step_by(element).skip(turned);
        plane[turned..].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
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
    let turned = match element {
        2 => unshuffle::<2>(planes, whole),
        4 => unshuffle::<4>(planes, whole),
        8 => unshuffle::<8>(planes, whole),
        16 => unshuffle::<16>(planes, whole),
        _ => 0,
    };
    for (number, plane) in planes.chunks_exact(count).enumerate() {
        let to = whole[number..].iter_mut().step_by(element).skip(turned);
        to.zip(&plane[turned..]).for_each(|(to, from)| *to = *from);
    }
    out
}

/// Shuffles elements of a usual size, eight at a time; gives how many that were.
fn shuffle<const BYTES: usize>(whole: &[u8], planes: &mut [u8]) -> usize {
    let count = whole.len() / BYTES;
    for (number, block) in whole.chunks_exact(8 * BYTES).enumerate() {
        for first in (0..BYTES).step_by(8) {
            let mut rows = [0; 8];
            for (row, element) in rows.iter_mut().zip(block.chunks_exact(BYTES)) {
                *row = word(&element[first..BYTES.min(first + 8)]);
            }
            turn(&mut rows);
            for (byte, row) in rows.iter().enumerate().take(BYTES.min(8)) {
                let at = (first + byte) * count + number * 8;
                planes[at..at + 8].copy_from_slice(&row.to_le_bytes());
            }
        }
    }
    count / 8 * 8
}

/// The reverse of [`shuffle`].
fn unshuffle<const BYTES: usize>(planes: &[u8], whole: &mut [u8]) -> usize {
    let count = whole.len() / BYTES;
    for (number, block) in whole.chunks_exact_mut(8 * BYTES).enumerate() {
        for first in (0..BYTES).step_by(8) {
            let mut rows = [0; 8];
            for (byte, row) in rows.iter_mut().enumerate().take(BYTES.min(8)) {
                let at = (first + byte) * count + number * 8;
                *row = word(&planes[at..at + 8]);
            }
            turn(&mut rows);
            for (row, element) in rows.iter().zip(block.chunks_exact_mut(BYTES)) {
                let to = &mut element[first..BYTES.min(first + 8)];
                to.copy_from_slice(&row.to_le_bytes()[..to.len()]);
            }
        }
    }
    count / 8 * 8
}

/// At most eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Byte i of number k becomes byte k of number i: squares of 4, 2 and 1 bytes change places across the diagonal.
fn turn(rows: &mut [u64; 8]) {
    for (side, kept) in [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)] {
        for low in (0..8).filter(|row| row & side == 0) {
            let changed = ((rows[low] >> (8 * side)) ^ rows[low + side]) & kept;
            rows[low + side] ^= changed;
            rows[low] ^= changed << (8 * side);
        }
    }
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
