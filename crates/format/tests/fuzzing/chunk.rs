//! Chunks of Zarr, through chains of codecs.

use super::Input;
use hyperslab_format::zarr::{Blosc, BytesCodec, Chain, Compressor, Shuffle, codec_from_bytes};
use hyperslab_layout::Codec;

/// Codecs that metadata may ask for.
pub(super) fn chain(input: &mut Input) -> Vec<BytesCodec> {
    (0..input.below(4)).map(|_| codec(input)).collect()
}

fn codec(input: &mut Input) -> BytesCodec {
    match input.below(7) {
        0 => BytesCodec::Crc32c,
        1 => BytesCodec::Zstd { level: input.below(4) as i32, checksum: input.flag() },
        2 => BytesCodec::Gzip { level: input.below(3) as u32 },
        3 => BytesCodec::Zlib { level: input.below(3) as u32 },
        4 => BytesCodec::Blosc(Blosc {
            compressor: input.one_of(&Compressor::ALL),
            shuffle: input.one_of(&Shuffle::ALL),
            level: input.below(4) as u8,
            element_bytes: 1 + input.below(20) as u32,
            block_bytes: input.number() as u32,
        }),
        5 => BytesCodec::Shuffle { element_bytes: 1 + input.below(20) as u32 },
        _ => BytesCodec::Fletcher32,
    }
}

pub(super) fn check(bytes: &[u8]) {
    for told in
        [Chain::from_bytes(bytes).map(|chain| chain.to_bytes()), codec_from_bytes(bytes).map(|it| it.to_bytes())]
    {
        assert!(told.is_none_or(|told| codec_from_bytes(&told).is_some_and(|again| again.to_bytes() == told)));
    }
    let mut input = Input::new(bytes);
    let (chain, plain_bytes) = (Chain::of(&chain(&mut input)), input.number());
    assert_eq!(Chain::from_bytes(&chain.to_bytes()), Some(chain.clone()));
    let rest = input.rest();
    both_ways(&chain, rest, plain_bytes);
}

/// Reads bytes as what was stored, and stores them as elements.
pub(super) fn both_ways(codec: &dyn Codec, bytes: &[u8], plain_bytes: u64) {
    if let Ok(plain) = codec.decode(bytes, plain_bytes, "c") {
        assert_eq!(plain.len() as u64, plain_bytes);
        comes_back(codec, &plain);
    }
    comes_back(codec, bytes);
}

fn comes_back(codec: &dyn Codec, plain: &[u8]) {
    let Ok(stored) = codec.encode(plain, "c") else { return };
    assert!(
        stored.len() as u64 <= codec.encoded_bytes_max(plain.len() as u64),
        "{} B of {}",
        stored.len(),
        plain.len()
    );
    assert!(codec.decode(&stored, plain.len() as u64, "c").unwrap() == plain, "elements come back");
}
