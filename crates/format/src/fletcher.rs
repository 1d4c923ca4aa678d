//! The Fletcher checksum of chunks: two sums of 16-bit words, modulo 65535, over big-endian words.

use crate::error::{Context, Error};

/// The checksum of these bytes. A last single byte counts as the upper half of a word.
pub(crate) fn fletcher32(bytes: &[u8]) -> u32 {
    let (words, last) = bytes.as_chunks::<2>();
    let (mut one, mut two) = (0u64, 0u64);
    // So many words cannot overflow, even of sums that were not reduced.
    for group in words.chunks(1 << 16) {
        for word in group {
            one += u64::from(u16::from_be_bytes(*word));
            two += one;
        }
        (one, two) = (folded(one), folded(two));
    }
    if let [byte] = last {
        one += u64::from(*byte) << 8;
        two += one;
    }
    (folded(two) as u32) << 16 | folded(one) as u32
}

/// A sum modulo 65535, where zero is only that of nothing: 65535 stays as it is.
fn folded(mut sum: u64) -> u64 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// How many bytes are before the checksum at the end, which is verified.
pub(crate) fn verified(bytes: &[u8], context: Context) -> Result<usize, Error> {
    let Some((body, stored)) = bytes.split_last_chunk::<4>() else {
        return Err(context.corrupt("at least a checksum of 4 B", format!("{} B", bytes.len())));
    };
    let computed = fletcher32(body);
    let [a, b, c, d] = *stored;
    // HDF5 1.6.2 and older exchanged the bytes of each half.
    if computed == u32::from_le_bytes(*stored) || computed == u32::from_le_bytes([b, a, d, c]) {
        return Ok(body.len());
    }
    let expected = format!("fletcher32 checksum {:#010x} as stored", u32::from_le_bytes(*stored));
    let error = context.corrupt(expected, format!("{computed:#010x} of its {} B", body.len()));
    Err(error.with_hint("the chunk was damaged or changed by other means: restore it from another copy"))
}
