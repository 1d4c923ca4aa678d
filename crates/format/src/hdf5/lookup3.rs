//! The checksum of metadata: Bob Jenkins' `lookup3`, his `hashlittle` with the initial value 0 (2006).

/// The checksum of these bytes.
pub(crate) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    if bytes.is_empty() {
        return start;
    }
    // The last group is never empty: it is what the final mixing is for.
    let whole = (bytes.len() - 1) / 12 * 12;
    for group in bytes[..whole].chunks_exact(12) {
        add(&mut state, group);
        mix(&mut state);
    }
    let mut last = [0; 12];
    last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
    add(&mut state, &last);
    finish(&mut state);
    state[2]
}

/// These bytes with their checksum behind them.
pub(crate) fn checked(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(lookup3(&bytes).to_le_bytes());
    bytes
}

fn add(state: &mut [u32; 3], group: &[u8]) {
    for (word, bytes) in state.iter_mut().zip(group.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: u32, turn| {
        *x = x.wrapping_sub(*y) ^ y.rotate_left(turn);
        *y = y.wrapping_add(z);
    };
    step(a, c, *b, 4);
    step(b, a, *c, 6);
    step(c, b, *a, 8);
    step(a, c, *b, 16);
    step(b, a, *c, 19);
    step(c, b, *a, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, turn| *x = (*x ^ y).wrapping_sub(y.rotate_left(turn));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_jenkins_published() {
        // From the self-test of lookup3.c.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
