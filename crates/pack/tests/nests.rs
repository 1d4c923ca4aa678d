//! Copies and runs of any nest agree with element-by-element walks: all small nests, and thousands of random ones.

use std::collections::{HashMap, HashSet};

use hyperslab_layout::{ByteOrder, ElementType, Kind, Loop, Nest};
use hyperslab_pack::{CopyError, Memory, OutOfBounds, copy, for_each_run, run_bytes, safe};

/// Pairs of addresses that a nest visits, by counting as its definition says.
fn visits(nest: &Nest) -> Vec<(i64, i64)> {
    let mut pairs = vec![(nest.a, nest.b)];
    for l in &nest.loops {
        let steps = 0..l.count as i64;
        pairs = pairs.iter().flat_map(|&(a, b)| steps.clone().map(move |i| (a + i * l.a, b + i * l.b))).collect();
    }
    pairs
}

/// Moves the first addresses up so that the lowest are `margin`; returns the bytes that either side then needs.
fn place(nest: &mut Nest, from: u64, to: u64, margin: i64) -> (usize, usize) {
    nest.a = margin - nest.hull_a(from).map_or(0, |(low, _)| low);
    nest.b = margin - nest.hull_b(to).map_or(0, |(low, _)| low);
    let end = |hull: Option<(i64, i64)>| (hull.map_or(0, |(_, high)| high) + margin) as usize;
    (end(nest.hull_a(from)), end(nest.hull_b(to)))
}

fn check_bytes(nest: &mut Nest) {
    let byte = ElementType::native(Kind::UInt8);
    let (a_bytes, b_bytes) = place(nest, 1, 1, 1);
    let from: Vec<u8> = (0..a_bytes as u8).collect();
    let to = Memory::from_vec(vec![0xee; b_bytes]);
    copy(nest, &Memory::from_vec(from), byte, &to, byte).unwrap();
    let pairs = visits(nest);
    // Where several elements go to one address, any of them may be there.
    let mut candidates: HashMap<i64, Vec<u8>> = HashMap::new();
    pairs.iter().for_each(|&(a, b)| candidates.entry(b).or_default().push(a as u8));
    for (b, found) in to.to_vec(0, b_bytes as u64).into_iter().enumerate() {
        let legal = candidates.get(&(b as i64)).is_some_and(|c| c.contains(&found));
        assert!(legal || (found == 0xee && !candidates.contains_key(&(b as i64))), "{nest:?}: {found} at {b}");
    }
    check_runs(nest, 1, &pairs);
}

/// The runs cover the visited pairs, each distinct pair once, and none could have been joined to the next.
fn check_runs(nest: &Nest, bytes: u64, pairs: &[(i64, i64)]) {
    let mut seen = Vec::new();
    let mut end = None;
    for_each_run(nest, bytes, |a, b, length| {
        assert!(length > 0 && length.is_multiple_of(run_bytes(nest, bytes)), "{nest:?}: run of {length}");
        assert_ne!(end, Some((a, b)), "{nest:?}: runs that touch");
        end = Some((a + length as i64, b + length as i64));
        seen.extend((0..length as i64).step_by(bytes as usize).map(|i| (a + i, b + i)));
    });
    let (expected, found): (HashSet<_>, HashSet<_>) = (pairs.iter().copied().collect(), seen.iter().copied().collect());
    assert_eq!(found, expected, "{nest:?}");
    if expected.len() == pairs.len() {
        assert_eq!(seen.len(), pairs.len(), "{nest:?}: visited more than once");
    }
}

#[test]
fn all_nests_of_two_small_loops() {
    let steps = || -3..=3i64;
    for counts in 0..16u64 {
        for (a0, b0) in steps().flat_map(|a| steps().map(move |b| (a, b))) {
            for (a1, b1) in steps().flat_map(|a| steps().map(move |b| (a, b))) {
                let loops = vec![Loop { count: counts / 4, a: a0, b: b0 }, Loop { count: counts % 4, a: a1, b: b1 }];
                check_bytes(&mut Nest { a: 0, b: 0, loops: loops.into() });
            }
        }
    }
}

#[test]
fn nests_of_three_small_loops() {
    const A: [i64; 4] = [-3, 0, 1, 2];
    const B: [i64; 4] = [-2, 1, 3, 6];
    for code in 0..8 * 64 * 64usize {
        let pick = |i: usize| (code >> (2 * i)) % 4;
        let count = |i: usize| 2 + (code >> (12 + i)) as u64 % 2;
        let loops = (0..3).map(|i| Loop { count: count(i), a: A[pick(i)], b: B[pick(3 + i)] }).collect();
        check_bytes(&mut Nest { a: 0, b: 0, loops });
    }
}

/// Steps that keep the elements of one side apart, for loops of these counts nested in a random order.
fn steps(counts: &[u64], bytes: u64, order: &[usize], rng: &mut fastrand::Rng) -> Vec<i64> {
    let mut steps = vec![0; counts.len()];
    let mut extent = bytes;
    for &i in order {
        // Often dense, so that loops merge; sometimes with a gap that leaves elements unaligned.
        extent += if rng.u8(..3) == 0 { rng.u64(..20) } else { 0 };
        steps[i] = extent as i64 * if rng.u8(..4) == 0 { -1 } else { 1 };
        extent *= counts[i].max(1);
    }
    steps
}

fn random_nest(from: u64, to: u64, rng: &mut fastrand::Rng) -> Nest {
    let ndim = rng.usize(..=4);
    let largest = [200, 80, 14, 6][ndim.saturating_sub(1)];
    let counts: Vec<u64> = (0..ndim).map(|_| if rng.u8(..30) == 0 { 0 } else { 1 + rng.u64(..largest) }).collect();
    let mut order: Vec<usize> = (0..ndim).rev().collect();
    if rng.bool() {
        rng.shuffle(&mut order);
    }
    let b = steps(&counts, to, &order, rng);
    if rng.bool() {
        rng.shuffle(&mut order);
    }
    let mut a = steps(&counts, from, &order, rng);
    a.iter_mut().for_each(|a| *a *= i64::from(rng.u8(..10) != 0));
    let loops = (0..ndim).map(|i| Loop { count: counts[i], a: a[i], b: b[i] }).collect();
    Nest { a: 0, b: 0, loops }
}

#[test]
fn random_nests_agree_with_the_safe_twin() {
    let orders = [ByteOrder::Little, ByteOrder::Big];
    for seed in 0..6000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let kind = rng.choice(Kind::ALL).unwrap();
        // Equal kinds half of the time: most copies do not convert.
        let to_kind = if rng.bool() { kind } else { rng.choice(Kind::ALL).unwrap() };
        let from_type = ElementType { kind, order: rng.choice(orders).unwrap() };
        let to_type = ElementType { kind: to_kind, order: rng.choice(orders).unwrap() };
        let mut nest = random_nest(from_type.bytes(), to_type.bytes(), &mut rng);
        let (a_bytes, b_bytes) = place(&mut nest, from_type.bytes(), to_type.bytes(), rng.i64(0..9));
        // Small bytes make no NaN, whose bits may differ; conversions.rs knows about those.
        let from: Vec<u8> = (0..a_bytes).map(|_| if rng.u8(..4) == 0 { 0 } else { rng.u8(..0x70) }).collect();
        let mut expected = vec![0xee; b_bytes];
        let safely = safe::copy(&nest, &from, from_type, &mut expected, to_type);
        let to = Memory::from_vec(vec![0xee; b_bytes]);
        assert_eq!(copy(&nest, &Memory::from_vec(from), from_type, &to, to_type), safely);
        assert!(to.to_vec(0, b_bytes as u64) == expected, "seed {seed}: {from_type} to {to_type}, {nest:?}");
        if nest.elements() < 500 && from_type.bytes() == to_type.bytes() {
            check_runs(&nest, from_type.bytes(), &visits(&nest));
        }
    }
}

fn outside(copied: Result<(), CopyError>) -> OutOfBounds {
    match copied {
        Err(CopyError::OutOfBounds(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_byte_short_on_either_side_is_an_error_and_copies_nothing() {
    for seed in 0..500 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (from_type, to_type) = (ElementType::native(Kind::Float64), ElementType::native(Kind::Float32));
        let mut nest = random_nest(8, 4, &mut rng);
        if nest.elements() == 0 {
            continue;
        }
        let (a_bytes, b_bytes) = place(&mut nest, 8, 4, 0);
        for (short_a, short_b) in [(1, 0), (0, 1)] {
            let from = Memory::from_vec(vec![1; a_bytes - short_a]);
            let to = Memory::from_vec(vec![0xee; b_bytes - short_b]);
            let error = outside(copy(&nest, &from, from_type, &to, to_type));
            assert_eq!(error.high as u64, error.bytes + 1);
            assert!(to.to_vec(0, to.bytes()).iter().all(|&b| b == 0xee));
        }
        nest.b -= 1;
        let (from, to) = (Memory::from_vec(vec![1; a_bytes]), Memory::from_vec(vec![0xee; b_bytes]));
        assert_eq!(outside(copy(&nest, &from, from_type, &to, to_type)).low, -1);
    }
}

#[test]
fn both_sides_may_lie_in_one_memory() {
    let double = ElementType::native(Kind::Float64);
    let values: Vec<u8> = (0..40u64).flat_map(u64::to_ne_bytes).collect();
    let memory = Memory::from_vec(values);
    // The second column of a 10 x 4 array becomes a copy of the fourth.
    let column = Nest { a: 24, b: 8, loops: vec![Loop { count: 10, a: 32, b: 32 }].into() };
    copy(&column, &memory, double, &memory.clone(), double).unwrap();
    // And its second half moves down over its first.
    let half = Nest { a: 160, b: 0, loops: vec![Loop { count: 20, a: 8, b: 8 }].into() };
    copy(&half, &memory, double, &memory, double).unwrap();
    let rows = [5u64, 6, 7, 8, 9, 5, 6, 7, 8, 9].iter().flat_map(|r| [4 * r, 4 * r + 3, 4 * r + 2, 4 * r + 3]);
    assert_eq!(memory.to_vec(0, 320), rows.flat_map(u64::to_ne_bytes).collect::<Vec<u8>>());
}
