//! Shuffle: the first bytes of all elements, then the second ones; what is less than an element stays behind them.

/// The bytes of elements of this size, one after another.
pub(crate) fn shuffled(bytes: &[u8], element: usize) -> Vec<u8> {
    let Some(count) = bytes.len().checked_div(element).filter(|&count| element > 1 && count > 1) else {
        return bytes.to_vec();
    };
    let mut out = bytes.to_vec();
    for (number, plane) in out[..count * element].chunks_exact_mut(count).enumerate() {
        plane.iter_mut().zip(bytes[number..].iter().step_by(element)).for_each(|(to, from)| *to = *from);
    }
    out
}

/// The reverse of [`shuffled`].
pub(crate) fn unshuffled(bytes: &[u8], element: usize) -> Vec<u8> {
    let Some(count) = bytes.len().checked_div(element).filter(|&count| element > 1 && count > 1) else {
        return bytes.to_vec();
    };
    let mut out = bytes.to_vec();
    for (number, plane) in bytes[..count * element].chunks_exact(count).enumerate() {
        out[number..].iter_mut().step_by(element).zip(plane).for_each(|(to, from)| *to = *from);
    }
    out
}
