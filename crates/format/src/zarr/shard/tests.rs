//! Shards against an element-by-element oracle, and damaged ones.

use super::*;
use fastrand::Rng;

const FILL: [u8; 2] = [7, 0];

fn extents(random: &mut Rng, ndim: usize) -> Vec<u64> {
    (0..ndim).map(|_| random.u64(1..4)).collect()
}

fn permutation(random: &mut Rng, ndim: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ndim).collect();
    random.shuffle(&mut order);
    order
}

fn any_chain(random: &mut Rng) -> Vec<BytesCodec> {
    let zstd = BytesCodec::Zstd { level: 1, checksum: false };
    let all = [BytesCodec::Crc32c, zstd, BytesCodec::Gzip { level: 1 }];
    (0..random.usize(0..3)).map(|_| all[random.usize(0..3)]).collect()
}

fn any_codecs(random: &mut Rng, chunk: &[u64], depth: u32) -> (Codecs, Vec<u64>) {
    let order = permutation(random, chunk.len());
    let chain = any_chain(random);
    if depth == 0 {
        return (Codecs { order, chain, ..Codecs::plain(false) }, chunk.to_vec());
    }
    let (inner, chunk) = any_codecs(random, chunk, depth - 1);
    let shard: Vec<u64> = extents(random, chunk.len()).iter().zip(&chunk).map(|(n, chunk)| n * chunk).collect();
    let sharding = Sharding {
        index_at_end: random.bool(),
        index_endian: if random.bool() { ByteOrder::Big } else { ByteOrder::Little },
        index_checksum: random.bool(),
        ..Sharding::new(&chunk, inner)
    };
    // The shape before its dimensions are transposed.
    let mut before = vec![0; shard.len()];
    order.iter().zip(&shard).for_each(|(&d, &extent)| before[d] = extent);
    (Codecs { order, chain, ..Codecs::sharded(sharding) }, before)
}

/// Elements of a shard, of which some chunks may be all fill.
fn elements(random: &mut Rng, count: u64) -> Vec<u8> {
    let spread = random.u16(1..5);
    (0..count).flat_map(|_| (7 + random.u16(0..spread)).to_le_bytes()).collect()
}

#[test]
fn shards_compress_where_anything_in_or_around_them_does() {
    let (plain, zstd) = (Codecs::plain(true), Codecs::zstd(1, true));
    let shards_of = |chunk: u64, inner: Codecs| Codecs::sharded(Sharding::new(&[chunk], inner));
    let compresses = |codecs: &Codecs| codecs.shard_codec(&[8], &FILL).unwrap().compresses();
    assert!(!compresses(&shards_of(2, plain.clone())) && !compresses(&shards_of(4, shards_of(2, plain.clone()))));
    assert!(compresses(&shards_of(2, zstd.clone())) && compresses(&shards_of(4, shards_of(2, zstd.clone()))));
    assert!(compresses(&Codecs { chain: zstd.chain, ..shards_of(2, plain) }));
}

#[test]
fn shards_round_trip_within_their_bound() {
    let mut random = Rng::with_seed(11);
    for _ in 0..400 {
        let (ndim, depth) = (random.usize(0..4), random.u32(1..3));
        let chunk = extents(&mut random, ndim);
        let (codecs, shard) = any_codecs(&mut random, &chunk, depth);
        let codec = codecs.shard_codec(&shard, &FILL).unwrap();
        let plain = elements(&mut random, shard.iter().product());
        let stored = codec.encode(&plain, "c/0").unwrap();
        assert!(stored.len() as u64 <= codec.encoded_bytes_max(plain.len() as u64), "{codec:?}");
        assert_eq!(codec.decode(&stored, plain.len() as u64, "c/0").unwrap(), plain, "{codec:?}");
        assert_eq!(ShardCodec::from_bytes(&codec.to_bytes()), Some(codec));
    }
}

/// A shard of 4 x 6 elements in chunks of 2 x 3, and its chunk at [1, 0] by the index.
#[test]
fn the_index_says_where_each_chunk_is() {
    let plain: Vec<u8> = (0..24u16).flat_map(u16::to_le_bytes).collect();
    for at_end in [false, true] {
        let sharding = Sharding { index_at_end: at_end, ..Sharding::new(&[2, 3], Codecs::plain(false)) };
        let codec = Codecs::sharded(sharding).shard_codec(&[4, 6], &FILL).unwrap();
        let stored = codec.encode(&plain, "c").unwrap();
        let index = codec.index().unwrap();
        assert_eq!((index.bytes(), index.is_at_end()), (4 * 16 + 4, at_end));
        let first = if at_end { stored.len() - 68 } else { 0 };
        let stretches = index.stretches(&stored[first..first + 68], first as u64, "c").unwrap();
        let (begin, bytes) = stretches[2];
        let chunk = &stored[begin as usize..(begin + bytes) as usize];
        let expected: Vec<u8> = [12u16, 13, 14, 18, 19, 20].into_iter().flat_map(u16::to_le_bytes).collect();
        assert_eq!(chunk, expected);
    }
}

#[test]
fn chunks_of_fill_are_left_out() {
    let codec = Codecs::sharded(Sharding::new(&[2], Codecs::plain(true))).shard_codec(&[8], &FILL).unwrap();
    let mut plain = FILL.repeat(8);
    assert_eq!(codec.encode(&plain, "c").unwrap().len(), 4 * 16 + 4);
    plain[5] = 1;
    let stored = codec.encode(&plain, "c").unwrap();
    assert_eq!(stored.len(), 4 + 4 + 4 * 16 + 4);
    assert_eq!(codec.decode(&stored, 16, "c").unwrap(), plain);
}

fn with_index(codec: &ShardCodec, bytes: usize, entries: &[IndexEntry]) -> Vec<u8> {
    let mut stored = vec![1; bytes];
    stored.extend(codec.index_of(entries));
    stored
}

#[test]
fn hostile_indexes_are_refused_with_the_reason() {
    let codec = Codecs::sharded(Sharding::new(&[2], Codecs::plain(false))).shard_codec(&[8], &FILL).unwrap();
    let none = NO_CHUNK;
    let refused =
        |entries: [IndexEntry; 4]| codec.decode(&with_index(&codec, 16, &entries), 16, "c/9").unwrap_err().to_string();
    for (entries, said) in [
        ([[0, 4], [2, 4], none, none], "overlap"),
        ([[0, 4], [0, 4], none, none], "overlap"),
        ([[14, 4], none, none, none], "between its bytes 0 and 16"),
        ([[u64::MAX - 1, 4], none, none, none], "between its bytes 0 and 16"),
        ([[0, u64::MAX], none, none, none], "4 to 4 B"),
        ([[u64::MAX, 4], none, none, none], "between"),
        ([[0, 3], none, none, none], "found 3 B"),
        ([[0, 0], none, none, none], "found 0 B"),
    ] {
        let message = refused(entries);
        assert!(message.contains(said) && message.contains("c/9"), "{message}");
    }
    let good = with_index(&codec, 16, &[[4, 4], none, [0, 4], none]);
    assert!(codec.decode(&good, 16, "c").is_ok());
    for cut in 0..good.len() {
        assert!(codec.decode(&good[..cut], 16, "c").is_err(), "{cut}");
    }
    let mut bent = good.clone();
    bent[20] ^= 1;
    assert!(codec.decode(&bent, 16, "c").unwrap_err().to_string().contains("CRC-32C"));
}

#[test]
fn damaged_shards_never_panic() {
    let mut random = Rng::with_seed(3);
    for _ in 0..3000 {
        let depth = random.u32(1..3);
        let (codecs, shard) = any_codecs(&mut random, &[2, 2], depth);
        let codec = codecs.shard_codec(&shard, &FILL).unwrap();
        let plain = elements(&mut random, shard.iter().product());
        let mut stored = codec.encode(&plain, "c").unwrap();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..stored.len());
            stored[at] = random.u8(..);
        }
        stored.truncate(random.usize(stored.len() / 2..=stored.len()));
        let _ = codec.decode(&stored, plain.len() as u64, "c");
        let mut told = codec.to_bytes();
        let at = random.usize(..told.len());
        told[at] = random.u8(..);
        if let Some(heard) = ShardCodec::from_bytes(&told) {
            let _ = heard.decode(&stored, plain.len() as u64, "c");
        }
    }
}
