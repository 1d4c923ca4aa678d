//! Pulls from and pushes into a real other process, against the same copy element by element.

use super::*;
use crate::forked::Forked;
use hyperslab_layout::{Kind, Loop};

/// Copies elements from the memory of `peer` to here; see [`Crossing`].
///
/// # Safety
/// As for [`Crossing::add`].
unsafe fn pull(
    peer: &Identity,
    nest: &Nest,
    peer_base: u64,
    peer_type: ElementType,
    local: *mut u8,
    local_type: ElementType,
) -> io::Result<()> {
    let mut crossing = Crossing::pull(peer);
    // SAFETY: as the caller vouches.
    let finished =
        unsafe { crossing.add(nest, (peer_base, peer_type), (local, local_type)).and_then(|()| crossing.finish()) };
    finished.map(|copied| copied.expect("no NaN"))
}

/// Copies elements from here to the memory of `peer`. Side `a` of the nest is relative to `local`, side `b` to the
/// absolute address `peer_base` in the peer; see [`Crossing`].
///
/// # Safety
/// As for [`Crossing::add`].
unsafe fn push(
    peer: &Identity,
    nest: &Nest,
    local: *const u8,
    local_type: ElementType,
    peer_base: u64,
    peer_type: ElementType,
) -> io::Result<()> {
    let mut crossing = Crossing::push(peer);
    let local = (local.cast_mut(), local_type);
    // SAFETY: as the caller vouches.
    let finished =
        unsafe { crossing.add(&nest.swapped(), (peer_base, peer_type), local).and_then(|()| crossing.finish()) };
    finished.map(|copied| copied.expect("no NaN"))
}

/// A copy of this process, whose memory stays as it was at the fork.
struct Child(Identity, #[expect(dead_code, reason = "ends it when it is dropped")] Forked);

impl Child {
    fn new() -> Child {
        let mine = Identity::mine();
        let forked = Forked::new();
        Child(Identity { pid: forked.0, ..mine }, forked)
    }
}

/// Random steps for these counts: some order of the loops, some padding, perhaps backwards. Gives the first offset, the
/// steps, and the bytes needed.
fn place(rng: &mut fastrand::Rng, counts: &[u64], bytes: u64) -> (i64, Vec<i64>, usize) {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    rng.shuffle(&mut order);
    let (mut step, mut first, mut steps) = (bytes as i64, 0, vec![0; counts.len()]);
    if rng.u8(..4) == 0 {
        step *= rng.i64(2..100);
    }
    for dimension in order {
        let backwards = rng.u8(..5) == 0;
        steps[dimension] = if backwards { -step } else { step };
        first += if backwards { step * (counts[dimension] as i64 - 1) } else { 0 };
        step *= counts[dimension] as i64;
        step += if rng.bool() { bytes as i64 * rng.i64(0..9) } else { 0 };
    }
    (first, steps, step as usize + bytes as usize)
}

/// A random nest, side `a` for elements of `a_bytes`, side `b` for those of `b_bytes`; and the bytes of both sides.
fn random_nest(rng: &mut fastrand::Rng, a_bytes: u64, b_bytes: u64) -> (Nest, usize, usize) {
    let longest = [40, 300, 6000, 60_000][rng.usize(..4)];
    let mut left = longest;
    let mut counts: Vec<u64> = Vec::new();
    while counts.len() < 4 && rng.u8(..4) > 0 {
        counts.push(rng.u64(1..=left));
        left /= counts[counts.len() - 1];
    }
    let ((a, a_steps, a_size), (b, b_steps, b_size)) = (place(rng, &counts, a_bytes), place(rng, &counts, b_bytes));
    let steps = a_steps.into_iter().zip(b_steps);
    let loops = counts.iter().zip(steps).map(|(&count, (a, b))| Loop { count, a, b }).collect();
    (Nest { a, b, loops }, a_size, b_size)
}

/// Memory full of small numbers of one type, so that all conversions are exact.
fn numbers(rng: &mut fastrand::Rng, kind: ElementType, bytes: usize) -> Vec<u8> {
    let count = bytes / kind.bytes() as usize + 1;
    let number = |value: u8| match kind.kind {
        Kind::Float32 => f32::from(value).to_ne_bytes().to_vec(),
        Kind::Float64 => f64::from(value).to_ne_bytes().to_vec(),
        _ => vec![value; kind.bytes() as usize],
    };
    (0..count).flat_map(|_| number(rng.u8(1..))).collect()
}

/// The same copy, an element at a time.
fn expected(nest: &Nest, from: &[u8], from_type: ElementType, to: &mut [u8], to_type: ElementType) {
    for (a, b) in Walk::new(&nest.loops, nest.a, nest.b) {
        let one = Nest { a, b, loops: Vec::new().into() };
        // SAFETY: the nests of these tests stay inside their memories, which are as large as the nests say.
        unsafe { copy_raw(&one, from.as_ptr(), from_type, to.as_mut_ptr(), to_type) }.unwrap();
    }
}

const TYPES: [(Kind, Kind); 5] = [
    (Kind::Float64, Kind::Float64),
    (Kind::UInt8, Kind::UInt8),
    (Kind::Float32, Kind::Float64),
    (Kind::Float64, Kind::Float32),
    (Kind::Complex128, Kind::Complex128),
];

#[test]
fn random_nests_arrive_from_and_at_another_process() {
    let mut rng = fastrand::Rng::with_seed(7);
    for case in 0..60 {
        let (from, to) = TYPES[rng.usize(..TYPES.len())];
        let (from, to) = (ElementType::native(from), ElementType::native(to));
        let (nest, from_bytes, to_bytes) = random_nest(&mut rng, from.bytes(), to.bytes());
        let source = numbers(&mut rng, from, from_bytes);
        let before = numbers(&mut rng, to, to_bytes);
        let mut after = before.clone();
        expected(&nest, &source, from, &mut after, to);

        // The child has both memories as they are now; afterwards they are different here.
        let (mut far_source, far_target) = (source.clone(), before.clone());
        let child = Child::new();
        far_source.fill(0);
        let peer = &child.0;
        assert_eq!(reach(peer), Reach::Neighbour);

        let mut local = before.clone();
        // SAFETY: the child keeps its memory until it is dropped, and all elements are inside these vectors.
        unsafe { pull(peer, &nest, far_source.as_ptr().addr() as u64, from, local.as_mut_ptr(), to) }.unwrap();
        assert!(local == after, "pull, case {case}: {nest:?} of {from} to {to}");

        let base = far_target.as_ptr().addr() as u64;
        // SAFETY: as above; nothing runs in the child.
        unsafe { push(peer, &nest, source.as_ptr(), from, base, to) }.unwrap();
        let whole = Nest { a: 0, b: 0, loops: vec![Loop { count: before.len() as u64, a: 1, b: 1 }].into() };
        let byte = ElementType::native(Kind::UInt8);
        local.fill(0);
        // SAFETY: as above.
        unsafe { pull(peer, &whole, base, byte, local.as_mut_ptr(), byte) }.unwrap();
        assert!(local == after, "push, case {case}: {nest:?} of {from} to {to}");
        assert!(far_target == before, "the parent's own memory is not touched");
    }
}

#[test]
fn many_short_pieces_gather_and_all_arrive() {
    let mut rng = fastrand::Rng::with_seed(11);
    for case in 0..12 {
        let (from, to) = TYPES[rng.usize(..TYPES.len())];
        let (from, to) = (ElementType::native(from), ElementType::native(to));
        // Pieces one behind another on both sides, as far apart as it comes.
        let (mut pieces, mut from_bytes, mut to_bytes) = (Vec::new(), 0, 0);
        for _ in 0..rng.usize(1..6000) {
            let (rows, row) = (rng.u64(1..6), rng.u64(1..20));
            let pitch = row + rng.u64(..4);
            let row_of = |pitch: u64, bytes: u64| (pitch * bytes) as i64;
            let loops = vec![
                Loop { count: rows, a: row_of(row, from.bytes()), b: row_of(pitch, to.bytes()) },
                Loop { count: row, a: from.bytes() as i64, b: to.bytes() as i64 },
            ];
            pieces.push(Nest { a: from_bytes as i64, b: to_bytes as i64, loops: loops.into() });
            let apart = [0, 0, 3, 300, 5000][rng.usize(..5)];
            from_bytes += rows * row * from.bytes() + apart * from.bytes();
            to_bytes += rows * pitch * to.bytes();
        }
        if rng.bool() {
            rng.shuffle(&mut pieces);
        }
        let source = numbers(&mut rng, from, from_bytes as usize);
        let before = numbers(&mut rng, to, to_bytes as usize);
        let mut after = before.clone();
        pieces.iter().for_each(|piece| expected(piece, &source, from, &mut after, to));

        let (mut far_source, far_target) = (source.clone(), before.clone());
        let child = Child::new();
        far_source.fill(0);
        let (peer, mut local) = (&child.0, before.clone());
        let mut pulling = Crossing::pull(peer);
        for piece in &pieces {
            let (base, here) = (far_source.as_ptr().addr() as u64, local.as_mut_ptr());
            // SAFETY: the child keeps its memory until it is dropped, and all elements are inside these vectors.
            unsafe { pulling.add(piece, (base, from), (here, to)) }.unwrap();
        }
        // SAFETY: as above.
        unsafe { pulling.finish() }.unwrap().unwrap();
        assert!(local == after, "pull, case {case}: {} pieces of {from} to {to}", pieces.len());

        let mut pushing = Crossing::push(peer);
        for piece in &pieces {
            let (base, here) = (far_target.as_ptr().addr() as u64, source.as_ptr().cast_mut());
            // SAFETY: as above; nothing runs in the child.
            unsafe { pushing.add(&piece.swapped(), (base, to), (here, from)) }.unwrap();
        }
        // SAFETY: as above.
        unsafe { pushing.finish() }.unwrap().unwrap();
        let whole = Nest { a: 0, b: 0, loops: vec![Loop { count: before.len() as u64, a: 1, b: 1 }].into() };
        let byte = ElementType::native(Kind::UInt8);
        local.fill(0);
        // SAFETY: as above.
        unsafe { pull(peer, &whole, far_target.as_ptr().addr() as u64, byte, local.as_mut_ptr(), byte) }.unwrap();
        assert!(local == after, "push, case {case}: {} pieces of {from} to {to}", pieces.len());
    }
}

#[test]
fn own_memory_is_copied_without_the_kernel() {
    let mine = Identity::mine();
    assert_eq!(reach(&mine), Reach::SameProcess);
    let kind = ElementType::native(Kind::Float64);
    let nest = Nest { a: 8, b: 0, loops: vec![Loop { count: 3, a: 16, b: 8 }].into() };
    let (mut source, mut target) = ([0.0f64, 1.0, 2.0, 3.0, 4.0, 5.0], [0.0f64; 3]);
    let base = (&raw mut source).expose_provenance() as u64;
    // SAFETY: the elements are inside these arrays, which live here.
    unsafe { pull(&mine, &nest, base, kind, target.as_mut_ptr().cast(), kind) }.unwrap();
    assert_eq!(target, [1.0, 3.0, 5.0]);
    let target = [7.0f64, 8.0, 9.0];
    // SAFETY: as above.
    unsafe { push(&mine, &nest.swapped(), target.as_ptr().cast(), kind, base, kind) }.unwrap();
    assert_eq!(source, [0.0, 7.0, 2.0, 8.0, 4.0, 9.0]);
}

/// One NaN among numbers of a kind that no buffer is needed for, and that is converted by way of one, in either direction.
#[test]
fn a_nan_for_an_integer_is_told_when_all_is_copied() {
    let (real, whole) = (ElementType::native(Kind::Float64), ElementType::native(Kind::Int32));
    let nest = Nest { a: 0, b: 0, loops: vec![Loop { count: 100, a: 8, b: 4 }].into() };
    let mut source = [3.0f64; 100];
    let mut far = [0i32; 100];
    for nan in [None, Some(42)] {
        source.fill(3.0);
        if let Some(at) = nan {
            source[at] = f64::NAN;
        }
        let expected = if nan.is_some() { Err(NotANumber { from: Kind::Float64, to: Kind::Int32 }) } else { Ok(()) };
        let child = Child::new();
        for peer in [child.0, Identity::mine()] {
            let mut target = [0i32; 100];
            let mut pulling = Crossing::pull(&peer);
            let (base, here) = ((&raw mut source).expose_provenance() as u64, target.as_mut_ptr().cast());
            // SAFETY: the child keeps its memory until it is dropped, and all elements are inside these arrays.
            let copied = unsafe { pulling.add(&nest, (base, real), (here, whole)).and_then(|()| pulling.finish()) };
            assert_eq!(copied.unwrap(), expected);
            let zeros = target.iter().filter(|&&x| x == 0).count();
            assert_eq!((zeros, target[0], target[99]), (usize::from(nan.is_some()), 3, 3));
            let mut pushing = Crossing::push(&peer);
            let (base, here) = ((&raw mut far).expose_provenance() as u64, (&raw mut source).cast());
            // SAFETY: as above.
            let copied =
                unsafe { pushing.add(&nest.swapped(), (base, whole), (here, real)).and_then(|()| pushing.finish()) };
            assert_eq!(copied.unwrap(), expected);
        }
    }
}

#[test]
fn who_is_not_what_he_says_is_remote() {
    let child = Child::new();
    assert_eq!(reach(&child.0), Reach::Neighbour);
    let elsewhere = Identity { host: child.0.host ^ 1, ..child.0 };
    assert_eq!(reach(&elsewhere), Reach::Remote);
    let another = Identity { probe_value: child.0.probe_value ^ 1, ..child.0 };
    assert_eq!(reach(&another), Reach::Remote);
    let unmapped = Identity { probe_address: 8, ..child.0 };
    assert_eq!(reach(&unmapped), Reach::Remote);
    let gone = child.0;
    drop(child);
    assert_eq!(reach(&gone), Reach::Remote);
}

#[test]
fn identities_travel_as_bytes() {
    let mine = Identity { pid: -3, ..Identity::mine() };
    assert_eq!(Identity::from_bytes(&mine.to_bytes()), mine);
}

#[test]
fn unmapped_memory_is_an_error_that_names_it() {
    let child = Child::new();
    let kind = ElementType::native(Kind::UInt8);
    let nest = Nest { a: 0, b: 0, loops: vec![Loop { count: 600, a: 1, b: 1 }].into() };
    let mut place = [0u8; 600];
    // SAFETY: the local side is valid; the far one is not, which gives an error.
    let error = unsafe { pull(&child.0, &nest, 4096, kind, place.as_mut_ptr(), kind) }.unwrap_err();
    let expected =
        format!("reading the memory of process {} (1 runs from address 0x1000 on, 600 bytes left)", child.0.pid);
    assert!(error.to_string().starts_with(&expected), "{error}");
}
