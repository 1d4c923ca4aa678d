//! Bitshuffle (filter 32008): blocks of elements, whose bits are put one behind another, and which are then compressed.
//!
//! Size of all and of a block, big-endian; then blocks of a multiple of eight elements, each behind its length; then what is
//! less than eight elements, as it was.

use super::FilterStep;
use crate::error::{Context, Error};
use crate::zarr::unshuffle_bits;

/// What compresses blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum InnerCodec {
    Lz4 = 2,
    Zstd = 3,
}

/// The filter with these values: two of a version, the size of an element, that of a block, what compresses.
pub(super) fn of_values(values: &[u32]) -> Option<u32> {
    let &[_, _, element, _, inside, ..] = values else { return None };
    (1..1 << 24).contains(&element).then_some(element | inside << 24)
}

/// The filter that one number stands for: what compresses, and the size of an element.
pub(super) fn of_value(value: u32) -> Option<FilterStep> {
    let inside = match value >> 24 {
        2 => InnerCodec::Lz4,
        3 => InnerCodec::Zstd,
        _ => return None,
    };
    let element = value & 0x00ff_ffff;
    (element > 0).then_some(FilterStep::Bitshuffle(element, inside))
}

/// Elements of this size, of at most `bound` bytes.
pub(super) fn decode(
    stored: &[u8],
    element: u32,
    inside: InnerCodec,
    bound: u64,
    context: Context,
) -> Result<Vec<u8>, Error> {
    let wrong = || context.corrupt(format!("bitshuffle data of at most {bound} B"), format!("{} B", stored.len()));
    let (all, rest) = stored.split_first_chunk::<8>().ok_or_else(wrong)?;
    let (block, mut rest) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
    let (all, block, element) = (u64::from_be_bytes(*all), u32::from_be_bytes(*block) as usize, element as usize);
    let group = 8 * element;
    if all > bound || !(all as usize).is_multiple_of(element) || block == 0 || !block.is_multiple_of(group) {
        return Err(wrong());
    }
    let mut out = Vec::new();
    let mut left = all as usize;
    while left >= group {
        let bytes = block.min(left / group * group);
        let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (packed, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(wrong)?;
        let mut ordered = vec![0; bytes];
        let unpacked = match inside {
            InnerCodec::Lz4 => lz4_flex::block::decompress_into(packed, &mut ordered).ok(),
            InnerCodec::Zstd => zstd::bulk::decompress_to_buffer(packed, &mut ordered).ok(),
        };
        if unpacked != Some(bytes) {
            return Err(wrong());
        }
        let begin = out.len();
        out.resize(begin + bytes, 0);
        unshuffle_bits(&ordered, element, &mut out[begin..]);
        (rest, left) = (behind, left - bytes);
    }
    out.extend_from_slice(rest.get(..left).ok_or_else(wrong)?);
    Ok(out)
}
