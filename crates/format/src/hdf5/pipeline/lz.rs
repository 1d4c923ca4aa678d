//! LZ4 as filter 32004 stores it, and LZF as h5py does (filter 32000).

use crate::error::{Context, Error};
use crate::hdf5::policy::LZ4_BLOCK_BYTES;

/// Size of all and of a block, big-endian; then blocks, each behind its length. One that did not get shorter is as it was.
pub(super) fn encode_lz4(plain: &[u8], block: u32, context: Context) -> Result<Vec<u8>, Error> {
    let block = block_bytes(block).min(plain.len());
    let stored_block = u32::try_from(block).map_err(|_| context.invalid("blocks of 1 GiB", "larger ones"))?;
    let mut out = [&(plain.len() as u64).to_be_bytes()[..], &stored_block.to_be_bytes()].concat();
    for one in plain.chunks(block.max(1)) {
        let packed = lz4_flex::block::compress(one);
        let shorter = if packed.len() < one.len() { &packed } else { one };
        out.extend_from_slice(&(shorter.len() as u32).to_be_bytes());
        out.extend_from_slice(shorter);
    }
    Ok(out)
}

/// The size of a block that a pipeline asks for \[B\].
fn block_bytes(asked: u32) -> usize {
    if asked == 0 { LZ4_BLOCK_BYTES } else { (asked as usize).min(LZ4_BLOCK_BYTES) }
}

/// What the lengths of blocks take, which may be as small as a byte \[B\].
pub(super) fn lengths_bytes(bytes: u64, asked: u32) -> u64 {
    bytes.div_ceil(block_bytes(asked) as u64).saturating_mul(4)
}

/// The reverse of [`encode_lz4`], of at most `bound` bytes.
pub(super) fn decode_lz4(stored: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let wrong = || context.corrupt("LZ4 data", format!("{} B that do not decode", stored.len()));
    let (bytes, rest) = stored.split_first_chunk::<8>().ok_or_else(wrong)?;
    let (block, mut rest) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
    let (bytes, block) = (u64::from_be_bytes(*bytes), u32::from_be_bytes(*block));
    // LZ4 makes at most 255 bytes of one, so that nothing is allocated for what cannot come.
    if bytes > bound || bytes > (stored.len() as u64).saturating_mul(256) || (block == 0 && bytes > 0) {
        return Err(context.corrupt(format!("at most {bound} B from LZ4"), format!("{bytes} B in its head")));
    }
    let mut out = vec![0; bytes as usize];
    for one in out.chunks_mut((block as usize).max(1)) {
        let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
        let (packed, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(wrong)?;
        if packed.len() == one.len() {
            one.copy_from_slice(packed);
        } else if lz4_flex::block::decompress_into(packed, one).ok() != Some(one.len()) {
            return Err(wrong());
        }
        rest = behind;
    }
    Ok(out)
}

/// LZF: runs of bytes, and references to at most 8 KiB before, until the end. The result has at most `bound` bytes.
pub(super) fn decode_lzf(stored: &[u8], bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let mut bytes = stored.iter().copied();
    let step = |out: &mut Vec<u8>, first: u8, bytes: &mut dyn Iterator<Item = u8>| -> Option<()> {
        if first < 32 {
            for _ in 0..=first {
                out.push(bytes.next()?);
            }
            return Some(());
        }
        let short = usize::from(first >> 5);
        let length = 2 + if short == 7 { 7 + usize::from(bytes.next()?) } else { short };
        let back = (usize::from(first & 31) << 8 | usize::from(bytes.next()?)) + 1;
        let from = out.len().checked_sub(back)?;
        // What is copied may be what was just written.
        for at in from..from + length {
            out.push(out[at]);
        }
        Some(())
    };
    while let Some(first) = bytes.next() {
        let fits = step(&mut out, first, &mut bytes).is_some() && out.len() as u64 <= bound;
        if !fits {
            let found = format!("{} B that do not decode to {bound} B", stored.len());
            return Err(context.corrupt("LZF data", found));
        }
    }
    Ok(out)
}
