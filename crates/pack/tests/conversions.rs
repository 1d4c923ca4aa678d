//! Every pair of element types converts as documented, contiguous or not, compared with code that the crate does not
//! use: Rust's `as`, the crate half, and the safe twin.

use hyperslab_layout::{ByteOrder, ElementType, Kind, Loop, Nest};
use hyperslab_pack::{CopyError, Memory, NotANumber, convert_scalar, copy, safe};

/// All element types: each kind in both byte orders.
fn types() -> impl Iterator<Item = ElementType> {
    let orders = [ByteOrder::Little, ByteOrder::Big];
    Kind::ALL.into_iter().flat_map(move |kind| orders.map(|order| ElementType { kind, order }))
}

/// Elements of one type: random bits, and values at which conversions change their behaviour.
fn samples(element: ElementType, count: usize, rng: &mut fastrand::Rng) -> Vec<u8> {
    let reals = [
        0.0,
        -0.0,
        0.5,
        -0.99,
        1.5,
        127.5,
        255.9,
        -129.0,
        65504.0,
        65520.0,
        2048.5,
        2049.0,
        1e-7,
        6e-8,
        3e38,
        1e39,
        257.0,
        259.0,
        1.00390625,
        3.3961775e38,
        1e-40,
    ];
    let integers = [
        0u64,
        1,
        127,
        257,
        (1 << 56) + (1 << 48) + 1,
        128,
        255,
        256,
        1 << 24 | 1,
        1 << 31,
        1 << 53 | 1,
        1 << 63,
        u64::MAX,
    ];
    let size = element.bytes() as usize;
    let special = |x: f64, from: Kind| convert_scalar(&x.to_ne_bytes(), ElementType::native(from), element);
    let mut bytes = Vec::with_capacity(count * size);
    for _ in 0..count {
        let raw = match rng.u8(..4) {
            0 => special(rng.choice(reals).unwrap(), Kind::Float64),
            1 => special(f64::from_bits(rng.choice(integers).unwrap()), Kind::UInt64),
            // Values of middling size, which random bits of a double hardly ever are.
            2 => special((rng.f64() - 0.5) * 10f64.powi(rng.i32(-8..20)), Kind::Float64),
            _ => rng.u128(..).to_ne_bytes(),
        };
        bytes.extend_from_slice(&raw[..size]);
    }
    bytes
}

/// Whether two elements are the same, where any NaN is as good as any other.
fn same(x: &[u8], y: &[u8], element: ElementType) -> bool {
    let part = match element.kind {
        Kind::Complex64 => Kind::Float32,
        Kind::Complex128 => Kind::Float64,
        kind => kind,
    };
    let float = matches!(part, Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64);
    let part = ElementType { kind: part, ..element };
    let nan = |bytes: &[u8]| {
        let wide = convert_scalar(bytes, part, ElementType::native(Kind::Float64));
        f64::from_ne_bytes(wide[..8].try_into().unwrap()).is_nan()
    };
    let size = part.bytes() as usize;
    x.chunks(size).zip(y.chunks(size)).all(|(x, y)| x == y || (float && nan(x) && nan(y)))
}

#[test]
fn every_pair_of_types_agrees_with_the_safe_twin() {
    let mut rng = fastrand::Rng::with_seed(7);
    for (from_type, to_type) in types().flat_map(|f| types().map(move |t| (f, t))) {
        let (f, t) = (from_type.bytes() as i64, to_type.bytes() as i64);
        let bytes = samples(from_type, 300, &mut rng);
        let shapes = [
            vec![Loop { count: 300, a: f, b: t }],
            vec![Loop { count: 300, a: f, b: 2 * t }],
            vec![Loop { count: 100, a: 3 * f, b: t }],
            vec![Loop { count: 15, a: f, b: 20 * t }, Loop { count: 20, a: 15 * f, b: t }],
        ];
        for loops in shapes {
            let nest = Nest { a: 0, b: 0, loops: loops.into() };
            let mut expected = vec![0xee; 600 * t as usize];
            let safely = safe::copy(&nest, &bytes, from_type, &mut expected, to_type);
            let to = Memory::from_vec(vec![0xee; expected.len()]);
            let copied = copy(&nest, &Memory::from_vec(bytes.clone()), from_type, &to, to_type);
            assert_eq!(copied, safely, "{from_type} to {to_type}");
            let found = to.to_vec(0, to.bytes());
            for (i, (x, y)) in found.chunks(t as usize).zip(expected.chunks(t as usize)).enumerate() {
                assert!(same(x, y, to_type), "{from_type} to {to_type}, element {i}: {x:?} instead of {y:?}");
            }
        }
    }
}

fn converted(bytes: &[u8], from: Kind, to: Kind) -> Vec<u8> {
    let count = bytes.len() as u64 / from.bytes();
    let memory = Memory::allocate(count * to.bytes()).unwrap();
    let loops = vec![Loop { count, a: from.bytes() as i64, b: to.bytes() as i64 }];
    let (from_type, to_type) = (ElementType::native(from), ElementType::native(to));
    match copy(
        &Nest { a: 0, b: 0, loops: loops.into() },
        &Memory::from_vec(bytes.to_vec()),
        from_type,
        &memory,
        to_type,
    ) {
        // Everything has been copied then, too.
        Ok(()) | Err(CopyError::NotANumber(_)) => {}
        Err(error @ (CopyError::OutOfBounds(_) | CopyError::OutOfReach(_))) => panic!("{error}"),
    }
    memory.to_vec(0, memory.bytes())
}

fn check_pair<F, T>(from: Kind, to: Kind, read: fn(&[u8]) -> F, rule: impl Fn(F) -> T, write: fn(T) -> Vec<u8>) {
    let bytes = samples(ElementType::native(from), 2000, &mut fastrand::Rng::with_seed(11));
    let found = converted(&bytes, from, to);
    let (f, t) = (from.bytes() as usize, to.bytes() as usize);
    for (source, found) in bytes.chunks(f).zip(found.chunks(t)) {
        let expected = write(rule(read(source)));
        assert!(same(found, &expected, ElementType::native(to)), "{from} to {to}: {source:?} gave {found:?}");
    }
}

/// Checks the conversions from one primitive type to the others in the list.
macro_rules! primitives {
    ($f:ident $from:ident: $($t:ident $to:ident)*) => {$(
        check_pair(
            Kind::$from,
            Kind::$to,
            |bytes| $f::from_ne_bytes(bytes.try_into().unwrap()),
            |value| value as $t,
            |value| value.to_ne_bytes().to_vec(),
        );
    )*};
    ($($f:ident $from:ident,)*) => {$(
        primitives!($f $from: i8 Int8 i16 Int16 i32 Int32 i64 Int64 u8 UInt8 u16 UInt16 u32 UInt32 u64 UInt64
            f32 Float32 f64 Float64);
    )*};
}

#[test]
fn primitives_convert_as_rust_does() {
    primitives!(
        i8 Int8, i16 Int16, i32 Int32, i64 Int64, u8 UInt8, u16 UInt16, u32 UInt32, u64 UInt64,
        f32 Float32, f64 Float64,
    );
}

#[test]
fn half_precision_converts_as_the_crate_half_does() {
    let single = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap());
    let half = |bytes: &[u8]| half::f16::from_ne_bytes(bytes.try_into().unwrap());
    check_pair(Kind::Float32, Kind::Float16, single, half::f16::from_f32_const, |h| h.to_ne_bytes().to_vec());
    check_pair(Kind::Float16, Kind::Float32, half, half::f16::to_f32, |x| x.to_ne_bytes().to_vec());
    check_pair(Kind::Float16, Kind::Float64, half, half::f16::to_f64, |x| x.to_ne_bytes().to_vec());
    check_pair(Kind::Float16, Kind::Int64, half, |h| h.to_f64() as i64, |x| x.to_ne_bytes().to_vec());
}

#[test]
fn bfloat16_converts_as_the_crate_half_does() {
    let single = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap());
    let brain = |bytes: &[u8]| half::bf16::from_ne_bytes(bytes.try_into().unwrap());
    check_pair(Kind::Float32, Kind::BFloat16, single, half::bf16::from_f32, |b| b.to_ne_bytes().to_vec());
    check_pair(Kind::BFloat16, Kind::Float32, brain, half::bf16::to_f32, |x| x.to_ne_bytes().to_vec());
    check_pair(Kind::BFloat16, Kind::Float64, brain, half::bf16::to_f64, |x| x.to_ne_bytes().to_vec());
    check_pair(Kind::BFloat16, Kind::Int64, brain, |b| b.to_f64() as i64, |x| x.to_ne_bytes().to_vec());
    // Integers just above a tie, which rounding by way of single or double precision would bring onto it.
    let integer = (1u64 << 56) + (1 << 48) + 1;
    assert_eq!(converted(&integer.to_ne_bytes(), Kind::UInt64, Kind::BFloat16), 0x5b81u16.to_ne_bytes());
    assert_eq!(converted(&(-(integer as i64)).to_ne_bytes(), Kind::Int64, Kind::BFloat16), 0xdb81u16.to_ne_bytes());
}

#[test]
fn truth_and_complex_numbers() {
    let doubles = |values: &[f64]| values.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
    let complex = doubles(&[0.0, 0.0, 0.0, 2.0, -3.7, 9.0, f64::NAN, 0.0]);
    assert_eq!(converted(&complex, Kind::Complex128, Kind::Bool), [0, 1, 1, 1]);
    assert_eq!(converted(&complex, Kind::Complex128, Kind::Int8), [0, 0, 0xfd, 0]);
    assert_eq!(converted(&complex[..48], Kind::Complex128, Kind::Float64), doubles(&[0.0, 0.0, -3.7]));
    assert_eq!(converted(&[0, 1, 7], Kind::Bool, Kind::Complex128), doubles(&[0.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
    let narrow: Vec<u8> = [0.1f32, -2.5].iter().flat_map(|x| x.to_ne_bytes()).collect();
    assert_eq!(converted(&doubles(&[0.1, -2.5]), Kind::Complex128, Kind::Complex64), narrow);
}

/// One NaN among 40 numbers, at each place, is found by copies of every shape, where and only where the target is an
/// integer.
#[test]
fn a_nan_among_numbers_is_an_error_for_integers() {
    for (from_type, to_type) in types().flat_map(|f| types().map(move |t| (f, t))) {
        let (f, t) = (from_type.bytes() as i64, to_type.bytes() as i64);
        let raw = |x: f64| convert_scalar(&x.to_ne_bytes(), ElementType::native(Kind::Float64), from_type);
        let (one, nan) = (raw(1.0), raw(f64::NAN));
        let shapes = [
            vec![Loop { count: 40, a: f, b: t }],
            vec![Loop { count: 40, a: f, b: 2 * t }],
            vec![Loop { count: 5, a: f, b: 16 * t }, Loop { count: 8, a: 5 * f, b: t }],
        ];
        let expected = NotANumber { from: from_type.kind, to: to_type.kind };
        let expected =
            if from_type.kind.has_nan() && to_type.kind.is_integer() { Err(expected.into()) } else { Ok(()) };
        for loops in shapes {
            let nest = Nest { a: 0, b: 0, loops: loops.into() };
            for place in 0..40 {
                let values = (0..40).flat_map(|i| if i == place { nan } else { one }[..f as usize].to_vec());
                let (from, to) = (Memory::from_vec(values.collect()), Memory::from_vec(vec![0; 80 * t as usize]));
                assert_eq!(copy(&nest, &from, from_type, &to, to_type), expected, "{from_type} to {to_type}");
            }
            let ones = Memory::from_vec(one[..f as usize].repeat(40));
            let to = Memory::from_vec(vec![0; 80 * t as usize]);
            assert_eq!(copy(&nest, &ones, from_type, &to, to_type), Ok(()));
        }
    }
}

#[test]
fn equal_kinds_keep_their_bits() {
    let mut rng = fastrand::Rng::with_seed(3);
    for from_type in types() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let to_type = ElementType { order, ..from_type };
            let mut bytes = samples(from_type, 50, &mut rng);
            // Signalling NaNs in single and double precision.
            bytes.truncate(from_type.bytes() as usize * 48);
            bytes.extend([0x7f, 0xa0, 0, 1].repeat(8));
            let count = bytes.len() as u64 / from_type.bytes();
            let step = from_type.bytes() as i64;
            let nest = Nest { a: 0, b: 0, loops: vec![Loop { count, a: step, b: step }].into() };
            let to = Memory::allocate(bytes.len() as u64).unwrap();
            copy(&nest, &Memory::from_vec(bytes.clone()), from_type, &to, to_type).unwrap();
            if from_type.order != order {
                bytes.chunks_exact_mut(from_type.kind.swap_bytes() as usize).for_each(<[u8]>::reverse);
            }
            assert_eq!(to.to_vec(0, to.bytes()), bytes, "{from_type} to {to_type}");
        }
    }
}
