//! Shards of Zarr, and their indexes.

use super::Input;
use super::chunk::{both_ways, chain};
use hyperslab_format::zarr::{Codecs, ShardCodec, Sharding};
use hyperslab_layout::{ByteOrder, Codec};

/// Elements that are stored \[B\].
const ELEMENT_BYTES_MAX: u64 = 1 << 11;

/// A shard, and how many bytes its elements have.
fn shard(input: &mut Input, depth: u64) -> (Codecs, Vec<u64>) {
    let ndim = 1 + input.below(2) as usize;
    let mut shape: Vec<u64> = (0..ndim).map(|_| 1 + input.below(4)).collect();
    let inner = if depth > 0 && input.flag() {
        let (inner, chunk) = shard(input, depth - 1);
        shape = chunk;
        inner
    } else {
        Codecs { chain: chain(input), ..Codecs::plain(false) }
    };
    let mut sharding = Sharding::new(&shape, inner);
    sharding.index_at_end = input.flag();
    sharding.index_checksum = input.flag();
    sharding.index_endian = if input.flag() { ByteOrder::Big } else { ByteOrder::Little };
    let mut outer: Vec<u64> = shape.iter().map(|extent| extent * (1 + input.below(4))).collect();
    let mut codecs = Codecs::sharded(sharding);
    if input.below(4) == 3 {
        codecs.chain = chain(input);
    }
    if shape.len() == 2 && input.flag() {
        codecs.order = vec![1, 0];
        // The shape is told in the order of the array, chunks inside in that of the shard.
        outer.reverse();
    }
    (codecs, outer)
}

pub(super) fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (codecs, shape) = shard(&mut input, 2);
    let fill = vec![input.byte(); input.one_of(&[1, 2, 4, 8])];
    let repairs = input.flag();
    let Some(codec) = codecs.shard_codec(&shape, &fill) else { return };
    assert_eq!(ShardCodec::from_bytes(&codec.to_bytes()), Some(codec.clone()));
    let plain_bytes = shape.iter().product::<u64>() * fill.len() as u64;
    let mut stored = input.rest().to_vec();
    if let Some(index) = codec.index() {
        let (length, index_bytes) = (stored.len(), index.bytes() as usize);
        let first = if index.is_at_end() { length.saturating_sub(index_bytes) } else { 0 };
        let sharding = codecs.shards.as_ref().expect("it is a shard");
        if repairs && sharding.index_checksum && index_bytes <= length {
            let checksum = crc32c::crc32c(&stored[first..first + index_bytes - 4]).to_le_bytes();
            stored[first + index_bytes - 4..first + index_bytes].copy_from_slice(&checksum);
        }
        let part = &stored[first..(first + index_bytes).min(length)];
        if let Ok(stretches) = index.stretches(part, first as u64, "s") {
            let count: u64 = shape.iter().product::<u64>() / sharding.chunk_shape.iter().product::<u64>();
            assert_eq!(stretches.len() as u64, count);
            let mut sorted: Vec<_> = stretches.into_iter().filter(|stretch| stretch.1 > 0).collect();
            sorted.sort_unstable();
            assert!(sorted.is_sorted_by(|one, other| one.0.checked_add(one.1).is_some_and(|end| end <= other.0)));
            let index_end = if index.is_at_end() { u64::MAX } else { index.bytes() };
            assert!(sorted.iter().all(|one| one.0 + one.1 <= first as u64 || one.0 >= index_end));
        }
    }
    both_ways(&codec, &stored, plain_bytes);
    if plain_bytes <= ELEMENT_BYTES_MAX && !stored.is_empty() {
        let elements: Vec<u8> = stored.iter().copied().cycle().take(plain_bytes as usize).collect();
        both_ways(&codec, &elements, plain_bytes);
    }
}
