//! Round trips, damage and the mask of filters.

use super::*;

fn filter(number: u16, values: &[u32]) -> Filter {
    Filter { number, name: "x".into(), optional: true, values: values.to_vec() }
}

fn pipelines() -> Vec<Pipeline> {
    let (deflate, shuffle, fletcher) = (filter(1, &[4]), filter(2, &[8]), filter(3, &[]));
    let (lz4, zstd) = (filter(32004, &[1000]), filter(32015, &[3]));
    [
        vec![],
        vec![deflate.clone()],
        vec![shuffle.clone(), deflate.clone(), fletcher.clone()],
        vec![fletcher, filter(2, &[3]), lz4.clone()],
        vec![shuffle, zstd, filter(32004, &[]), deflate],
        vec![lz4],
        // The length of each block has four times its size.
        vec![filter(32004, &[1]), filter(1, &[1])],
    ]
    .map(|filters| Pipeline::of(&filters, "d").unwrap())
    .into()
}

#[test]
fn filters_that_only_sum_or_move_bytes_do_not_compress() {
    let compresses = |filters: &[Filter]| Pipeline::of(filters, "d").unwrap().compresses();
    assert!(!compresses(&[]) && !compresses(&[filter(2, &[8]), filter(3, &[])]));
    let compressors = [filter(1, &[4]), filter(32004, &[1000]), filter(32015, &[3])];
    assert!(compressors.into_iter().all(|one| compresses(&[filter(2, &[8]), one, filter(3, &[])])));
}

#[test]
fn chunks_round_trip_within_their_bound() {
    let mut random = fastrand::Rng::with_seed(3);
    for pipeline in pipelines() {
        assert_eq!(Pipeline::from_bytes(&pipeline.to_bytes()), Some(pipeline.clone()));
        for bytes in [0, 1, 7, 4096, 70_001] {
            let noise: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
            for plain in [vec![9; bytes], noise] {
                let stored = pipeline.encode(&plain, "c").unwrap();
                assert!(stored.len() as u64 <= pipeline.encoded_bytes_max(bytes as u64), "{pipeline:?} {bytes}");
                assert_eq!(pipeline.decode(&stored, bytes as u64, "c").unwrap(), plain, "{pipeline:?} {bytes}");
                assert!(pipeline.decode(&stored, bytes as u64 + 1, "c").is_err());
            }
        }
    }
    assert_eq!(Pipeline::from_bytes(&[4, 0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(Pipeline::from_bytes(&[1, 0, 0]), None);
}

#[test]
fn filters_that_a_chunk_lacks_are_left_out() {
    let all = pipelines()[2].clone();
    let plain = [7; 64];
    for lacks in 0..8 {
        let stored = all.without(lacks).encode(&plain, "c").unwrap();
        assert_eq!(all.without(lacks).decode(&stored, 64, "c").unwrap(), plain);
    }
    assert!(all.without(7).is_plain() && all.without(u32::MAX).is_plain());
    assert_eq!(all.without(2), Pipeline::of(&[filter(2, &[8]), filter(3, &[])], "d").unwrap());
}

#[test]
fn others_are_refused_by_name() {
    let error = Pipeline::of(&[filter(4, &[])], "rho").unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("filter 4 (szip)"), "{error}");
    let powers = Pipeline::of(&[filter(6, &[1, 3, 20, 1, 4, 1, 0, 0])], "rho").unwrap_err();
    assert!(powers.is_unsupported() && powers.to_string().contains("powers of two"), "{powers}");
    assert!(Pipeline::of(&[filter(40_000, &[])], "rho").unwrap_err().to_string().contains("filter 40000 (x)"));
}

#[test]
fn damage_is_found_and_bounded() {
    let mut random = fastrand::Rng::with_seed(4);
    let plain: Vec<u8> = (0..3000u32).map(|at| (at / 9) as u8).collect();
    let mut cases: Vec<(Pipeline, Vec<u8>)> = Vec::new();
    for pipeline in pipelines() {
        let stored = pipeline.encode(&plain, "c").unwrap();
        cases.push((pipeline, stored));
    }
    let lzf = Pipeline::of(&[filter(32000, &[])], "d").unwrap();
    cases.push((lzf.clone(), b"\x02abc\xe0\xff\x02\x40\x01".repeat(9)));
    cases.push((
        Pipeline::of(&[filter(32001, &[])], "d").unwrap(),
        vec![2, 1, 33, 4, 9, 9, 0, 0, 9, 9, 0, 0, 20, 0, 0, 0],
    ));
    let bits = Pipeline::of(&[filter(32008, &[0, 3, 2, 0, 2])], "d").unwrap();
    // 17 elements of 2 B: a block of 16, of which LZ4 has 32 literals, and one behind it.
    let head = [&[0, 0, 0, 0, 0, 0, 0, 34, 0, 0, 0, 32, 0, 0, 0, 34, 0xf0, 17][..], &[0xff; 32], &[1, 2]].concat();
    assert_eq!(bits.decode(&head, 34, "c").unwrap(), [&[0xff; 32][..], &[1, 2]].concat());
    assert_eq!(Pipeline::from_bytes(&bits.to_bytes()), Some(bits.clone()));
    cases.push((bits, head));
    for _ in 0..10_000 {
        let (pipeline, mut bytes) = random.choice(&cases).unwrap().clone();
        for _ in 0..random.usize(0..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(bytes.len() / 2..=bytes.len()));
        let plain_bytes = if random.bool() { 3000 } else { 34 };
        if let Ok(decoded) = pipeline.decode(&bytes, plain_bytes, "c") {
            assert_eq!(decoded.len() as u64, plain_bytes);
        }
    }
    let checked = Pipeline::of(&[filter(3, &[])], "d").unwrap();
    let mut stored = checked.encode(&plain, "c").unwrap();
    stored[5] ^= 1;
    assert!(checked.decode(&stored, 3000, "c").unwrap_err().text.contains("fletcher32"));
}
