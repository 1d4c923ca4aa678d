//! Deflate in its two wrappings, zlib's and gzip's: by libdeflate, which takes half as long, and by flate2 where that cannot.
//!
//! Shuffled floats of 1 MiB, MB/s of flate2 (miniz_oxide), zlib-rs, libdeflate: decoded 300, 325, 510; encoded at level 1
//! 193, 107, 128, at level 4 41, 54, 97, at level 6 40, 50, 87. So level 1 stays with flate2. libdeflate has no streams: it
//! wants room for all that comes, and says less of what is wrong. Damage is therefore decoded again by flate2, for its words.

use flate2::Compression;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use std::cell::RefCell;
use std::io::{Error, Write};

/// How the stream is wrapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wrapped {
    Zlib,
    Gzip,
}

/// The highest level at which flate2 is the faster one.
const QUICK_LEVEL: u32 = 1;

thread_local! {
    /// Of this thread, with the level that it was made for.
    static COMPRESSOR: RefCell<Option<(u32, Compressor)>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

/// Encodes at a level from 0 to 9.
pub(crate) fn deflated(bytes: &[u8], wrapped: Wrapped, level: u32) -> Result<Vec<u8>, Error> {
    match i32::try_from(level).ok().and_then(|level| CompressionLvl::new(level).ok()) {
        Some(known) if level > QUICK_LEVEL => COMPRESSOR.with_borrow_mut(|kept| {
            let usable = kept.take().filter(|(of, _)| *of == level);
            let (_, compressor) = kept.insert(usable.unwrap_or_else(|| (level, Compressor::new(known))));
            at_once(compressor, bytes, wrapped)
        }),
        _ => {
            let level = Compression::new(level);
            match wrapped {
                Wrapped::Zlib => {
                    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                    encoder.write_all(bytes).and_then(|()| encoder.finish())
                }
                Wrapped::Gzip => {
                    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                    encoder.write_all(bytes).and_then(|()| encoder.finish())
                }
            }
        }
    }
}

fn at_once(compressor: &mut Compressor, bytes: &[u8], wrapped: Wrapped) -> Result<Vec<u8>, Error> {
    let bound = match wrapped {
        Wrapped::Zlib => compressor.zlib_compress_bound(bytes.len()),
        Wrapped::Gzip => compressor.gzip_compress_bound(bytes.len()),
    };
    let mut out = vec![0; bound];
    let length = match wrapped {
        Wrapped::Zlib => compressor.zlib_compress(bytes, &mut out),
        Wrapped::Gzip => compressor.gzip_compress(bytes, &mut out),
    };
    out.truncate(length.map_err(Error::other)?);
    Ok(out)
}

/// Decodes the first stream into `out`; how many bytes it had. Nothing where it is damaged, or there is no room for it.
pub(crate) fn inflate_into(bytes: &[u8], wrapped: Wrapped, out: &mut [u8]) -> Option<usize> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = kept.get_or_insert_with(Decompressor::new);
        match wrapped {
            Wrapped::Zlib => decompressor.zlib_decompress(bytes, out).ok(),
            Wrapped::Gzip => decompressor.gzip_decompress(bytes, out).ok(),
        }
    })
}

/// The same into a buffer of its own, with room for `bound` bytes.
pub(crate) fn inflated(bytes: &[u8], wrapped: Wrapped, bound: u64) -> Option<Vec<u8>> {
    let mut out = vec![0; usize::try_from(bound).ok()?];
    let length = inflate_into(bytes, wrapped, &mut out)?;
    out.truncate(length);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn samples() -> Vec<Vec<u8>> {
        let mut random = fastrand::Rng::with_seed(7);
        let noise: Vec<u8> = (0..5000).map(|_| random.u8(..)).collect();
        let few: Vec<u8> = (0..70_000).map(|_| random.u8(..3)).collect();
        vec![Vec::new(), vec![7], vec![0; 100_000], noise, few]
    }

    /// By the other library, whichever has encoded.
    fn read(bytes: &[u8], wrapped: Wrapped) -> Vec<u8> {
        let mut out = Vec::new();
        let read = match wrapped {
            Wrapped::Zlib => flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut out),
            Wrapped::Gzip => flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out),
        };
        read.expect("what was encoded");
        out
    }

    #[test]
    fn each_library_reads_what_the_other_wrote() {
        for sample in samples() {
            for wrapped in [Wrapped::Zlib, Wrapped::Gzip] {
                for level in 0..=9 {
                    let packed = deflated(&sample, wrapped, level).unwrap();
                    assert_eq!(read(&packed, wrapped), sample);
                    assert_eq!(inflated(&packed, wrapped, sample.len() as u64).as_ref(), Some(&sample));
                    assert_eq!(inflated(&packed, wrapped, sample.len() as u64 + 9).as_ref(), Some(&sample));
                    // Bytes behind its end do not matter.
                    let longer = [&*packed, b"more"].concat();
                    assert_eq!(inflated(&longer, wrapped, sample.len() as u64).as_ref(), Some(&sample));
                }
            }
        }
    }

    #[test]
    fn damage_and_want_of_room_give_nothing() {
        for sample in samples().into_iter().filter(|sample| sample.len() > 1) {
            let packed = deflated(&sample, Wrapped::Zlib, 6).unwrap();
            assert_eq!(inflated(&packed, Wrapped::Zlib, sample.len() as u64 - 1), None);
            for cut in [1, packed.len() / 2, packed.len() - 1] {
                assert_eq!(inflated(&packed[..cut], Wrapped::Zlib, sample.len() as u64), None);
            }
            let mut wrong = packed.clone();
            *wrong.last_mut().unwrap() ^= 1;
            assert_eq!(inflated(&wrong, Wrapped::Zlib, sample.len() as u64), None);
        }
    }
}
