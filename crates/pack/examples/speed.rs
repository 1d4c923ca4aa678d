//! Speed of copies in gigabytes per second, beside memcpy and a plain loop over elements.
//!
//! Run: `cargo run --release -p hyperslab-pack --example speed -- 64` (MiB of target; 64 by default).
//! Prints one line per kind of copy. "bytes" are those written; the plain loop's result is compared with ours.
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::time::Instant;

use hyperslab_layout::{ByteOrder, ElementType, Kind, Loop, Nest};
use hyperslab_pack::{Memory, convert_scalar, copy};

struct Case {
    name: &'static str,
    nest: Nest,
    from: ElementType,
    to: ElementType,
}

fn case(name: &'static str, from: ElementType, to: ElementType, loops: &[(u64, i64, i64)]) -> Case {
    let loops = loops.iter().map(|&(count, a, b)| Loop { count, a, b }).collect();
    Case { name, nest: Nest { a: 0, b: 0, loops }, from, to }
}

/// Copies whose targets have about `mebi` MiB.
fn cases(mebi: u64) -> Vec<Case> {
    let native = ElementType::native;
    let f8 = native(Kind::Float64);
    let (f4, f2, i1, i4) = (native(Kind::Float32), native(Kind::Float16), native(Kind::Int8), native(Kind::Int32));
    let swapped = ElementType { kind: Kind::Float64, order: ByteOrder::Big };
    let n = mebi << 17; // elements of 8 bytes
    let side = 1 << (mebi.ilog2() / 2 + 8);
    let (rows, s) = (n / side, 8 * side as i64);
    let odd = 8 * (side as i64 + 3);
    vec![
        case("contiguous", f8, f8, &[(n, 8, 8)]),
        case("runs of 1 MiB out of 2", f8, f8, &[(mebi, 2 << 20, 1 << 20), (1 << 17, 8, 8)]),
        case("runs of 16 KiB out of 32", f8, f8, &[(mebi << 6, 32 << 10, 16 << 10), (1 << 11, 8, 8)]),
        case("runs of 1 KiB out of 2", f8, f8, &[(mebi << 10, 2048, 1024), (128, 8, 8)]),
        case("runs of 64 B out of 128", f8, f8, &[(mebi << 14, 128, 64), (8, 8, 8)]),
        case("runs of 24 B out of 40", f8, f8, &[(n / 3, 40, 24), (3, 8, 8)]),
        case("gather every 2nd double", f8, f8, &[(n, 16, 8)]),
        case("gather every 4th double", f8, f8, &[(n, 32, 8)]),
        case("scatter every 2nd double", f8, f8, &[(n / 2, 8, 16)]),
        case("3 doubles of 3 arrays each", f8, f8, &[(n / 3, 8, 24), (3, 8 * (n / 3) as i64, 8)]),
        case("reversed doubles", f8, f8, &[(n, 8, -8)]),
        case("gather every 2nd byte", i1, i1, &[(mebi << 20, 2, 1)]),
        case("transpose, steps 2^k", f8, f8, &[(rows, 8, s), (side, 8 * rows as i64, 8)]),
        case("transpose, odd steps", f8, f8, &[(rows, 8, odd), (side, 8 * (rows as i64 + 3), 8)]),
        case("transpose float32", f4, f4, &[(2 * rows, 4, s / 2), (side, 8 * rows as i64, 4)]),
        case("float64 to float32", f8, f4, &[(2 * n, 8, 4)]),
        case("float32 to float64", f4, f8, &[(n, 4, 8)]),
        case("float32 to float16", f4, f2, &[(4 * n, 4, 2)]),
        case("float16 to float32", f2, f4, &[(2 * n, 2, 4)]),
        case("float64 to float32, every 2nd", f8, f4, &[(2 * n, 16, 4)]),
        case("float64 to int32", f8, i4, &[(2 * n, 8, 4)]),
        case("swapped doubles", swapped, f8, &[(n, 8, 8)]),
        case("swapped double to float32", swapped, f4, &[(2 * n, 8, 4)]),
    ]
}

/// The loop that one would write by hand: every element by its indices, moved by its size.
fn naive(nest: &Nest, from: &[u8], to: &mut [u8], bytes: usize, convert: impl Fn(&[u8], &mut [u8])) {
    let inner = nest.loops.last().copied().unwrap_or(Loop { count: 1, a: 0, b: 0 });
    let outer = if nest.loops.len() > 1 { nest.loops[0] } else { Loop { count: 1, a: 0, b: 0 } };
    for i in 0..outer.count as i64 {
        for j in 0..inner.count as i64 {
            let a = (nest.a + i * outer.a + j * inner.a) as usize;
            let b = (nest.b + i * outer.b + j * inner.b) as usize;
            convert(&from[a..], &mut to[b..b + bytes]);
        }
    }
}

/// Memory as the library allocates it, so that all rivals but the plain loop work on the same sort of pages.
fn allocated(bytes: &[u8]) -> Memory {
    let memory = Memory::allocate(bytes.len() as u64).unwrap();
    memory.write_bytes(0, bytes);
    memory
}

/// Best of `times` runs \[s\].
fn best(times: usize, mut f: impl FnMut()) -> f64 {
    let one = |f: &mut dyn FnMut()| {
        let start = Instant::now();
        f();
        start.elapsed().as_secs_f64()
    };
    (0..times).map(|_| one(&mut f)).fold(f64::INFINITY, f64::min)
}

fn measure(mut case: Case, times: usize) {
    let low = case.nest.hull_b(case.to.bytes()).unwrap().0;
    case.nest.b -= low;
    let (a_bytes, b_bytes) = (
        case.nest.hull_a(case.from.bytes()).unwrap().1 as usize,
        case.nest.hull_b(case.to.bytes()).unwrap().1 as usize,
    );
    let mut rng = fastrand::Rng::with_seed(1);
    // Bytes below 0x40 make moderate numbers, and no NaN, in every kind.
    let source: Vec<u8> = (0..a_bytes).map(|_| rng.u8(..0x40)).collect();
    let from = allocated(&source);
    let to = allocated(&vec![0xee; b_bytes]);
    let ours = best(times, || copy(&case.nest, &from, case.from, &to, case.to).unwrap());

    let mut plain = vec![0xee; b_bytes];
    let mut loop_time = best(times.min(2), || {
        let size = case.to.bytes() as usize;
        match (size, case.from == case.to) {
            (1, true) => naive(&case.nest, &source, &mut plain, 1, |x, y| y[0] = x[0]),
            (4, true) => naive(&case.nest, &source, &mut plain, 4, |x, y| y.copy_from_slice(&x[..4])),
            (8, true) => naive(&case.nest, &source, &mut plain, 8, |x, y| y.copy_from_slice(&x[..8])),
            _ => naive(&case.nest, &source, &mut plain, size, |x, y| {
                y.copy_from_slice(&convert_scalar(&x[..case.from.bytes() as usize], case.from, case.to)[..size]);
            }),
        }
    });
    assert!(to.to_vec(0, b_bytes as u64) == plain, "{}: wrong result", case.name);
    if case.from != case.to {
        loop_time = f64::NAN; // an oracle, not a rival
    }

    let written = case.nest.elements() * case.to.bytes();
    let (block, target) = (allocated(&vec![1; written as usize]), allocated(&vec![0; written as usize]));
    let memcpy = best(times, || {
        let (block, target) = (block.address() as *const u8, target.address() as *mut u8);
        // SAFETY: both memories have that many bytes, are alive, and are two.
        unsafe { std::ptr::copy_nonoverlapping(block, target, written as usize) }
    });
    assert_eq!(target.to_vec(written - 1, 1), [1]);
    let speed = |seconds: f64| written as f64 / seconds / 1e9;
    println!("{:<32}{:>8.2}{:>8.2}{:>8.2}", case.name, speed(ours), speed(memcpy), speed(loop_time));
}

fn run(mebi: u64, times: usize) {
    println!("{:<32}{:>8}{:>8}{:>8}   GB/s written, {mebi} MiB", "", "ours", "memcpy", "loop");
    for case in cases(mebi) {
        measure(case, times);
    }
}

fn main() {
    let mebi = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(64);
    run(mebi, 5);
}

#[test]
fn runs_on_a_small_size() {
    run(1, 1);
}
