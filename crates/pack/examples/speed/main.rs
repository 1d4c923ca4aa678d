//! Speed of copies, beside what the same bytes cost otherwise.
//!
//! Run: `cargo run --release -p hyperslab-pack --example speed -- [WORDS]`; only cases whose names contain one of the
//! words are measured. Each line shows the bytes written per second [GB/s], and how many times faster the copy was
//! than
//!
//! - `lines`: reading one word of every cache line from which elements come, and writing every cache line to which
//!   they go, each in rising order ([`lines`]): the traffic that no copy can avoid. 1.00 is as fast as that.
//! - `memcpy`: one `memcpy` of as many bytes (none for conversions that change the size).
//! - `NumPy`: `target[...] = source` with the same strides, in a Python process beside (`PYTHON`, or `python3`).
//!
//! Rivals take turns, each round beginning with another; figures are medians over the rounds, ratios medians of the
//! ratios within a round. The result of each case is compared with the safe twin's.
#![allow(clippy::disallowed_methods, reason = "it measures time, and starts a Python beside")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use hyperslab_layout::Nest;
use hyperslab_pack::{Memory, copy, safe};

use crate::cases::Case;
use crate::lines::Traffic;
use crate::numpy::NumPy;

mod cases;
mod lines;
mod numpy;

/// How long to measure each case.
#[derive(Clone, Copy)]
struct Effort {
    time: Duration,
    rounds_min: usize,
    rounds_max: usize,
}

/// The memories between which a case copies, and those of the `memcpy` beside.
struct Arena {
    from: Memory,
    to: Memory,
}

impl Arena {
    fn new(case: &Case) -> Arena {
        let (a_bytes, b_bytes) = case.memory_bytes();
        // Small numbers, and no NaN, in every kind; the bytes of whole lines, since lines are touched as wholes.
        let source: Vec<u8> = (0..a_bytes.next_multiple_of(64)).map(|i| (i * 7 % 61) as u8).collect();
        Arena { from: allocated(&source), to: allocated(&vec![0xee; b_bytes.next_multiple_of(64) as usize]) }
    }
}

/// Memory as the library allocates it.
fn allocated(bytes: &[u8]) -> Memory {
    let memory = Memory::allocate(bytes.len() as u64).unwrap();
    memory.write_bytes(0, bytes);
    memory
}

/// The nest of a case, moved to one of its pieces.
fn moved(case: &Case, piece: usize) -> Nest {
    let (a, b) = case.pieces[piece];
    Nest { a: case.nest.a + a, b: case.nest.b + b, loops: case.nest.loops.clone() }
}

fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

/// Copies as many bytes as the case writes, from one contiguous block to another, both as warm or cold as the case's.
fn memcpy(case: &Case, arena: &Arena, piece: usize) {
    let bytes = case.bytes_written();
    let place = |memory: &Memory, moves: bool| {
        let room = memory.bytes() - bytes;
        memory.host_address().expect("memory of this host")
            + if moves && room > 0 { piece as u64 * bytes % room / 64 * 64 } else { 0 } as usize
    };
    let (moves_a, moves_b) = case.moving_sides();
    let (from, to) = (place(&arena.from, moves_a) as *const u8, place(&arena.to, moves_b) as *mut u8);
    // SAFETY: both blocks lie within memories that are alive, and those are two.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes as usize) }
}

fn check(case: &Case, arena: &Arena) {
    let nest = moved(case, case.pieces.len() - 1);
    let from = arena.from.to_vec(0, arena.from.bytes());
    let mut expected = vec![0xee; arena.to.bytes() as usize];
    safe::copy(&nest, &from, case.from, &mut expected, case.to).unwrap();
    copy(&nest, &arena.from, case.from, &arena.to, case.to).unwrap();
    assert!(arena.to.to_vec(0, arena.to.bytes()) == expected, "{}: wrong result", case.name);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(case: &Case, numpy: Option<&mut NumPy>, effort: Effort) {
    let arena = Arena::new(case);
    check(case, &arena);
    let traffic: Vec<Traffic> = (0..case.pieces.len()).map(|piece| Traffic::of(&moved(case, piece), case)).collect();
    let with_memcpy = case.from.bytes() == case.to.bytes();
    let mut numpy = numpy;
    if let Some(numpy) = numpy.as_deref_mut() {
        numpy.prepare(case);
    }
    let mut times: Vec<[f64; 4]> = Vec::new();
    let start = Instant::now();
    while times.len() < effort.rounds_min || (times.len() < effort.rounds_max && start.elapsed() < effort.time) {
        let round = times.len();
        let mut taken = [f64::NAN; 4];
        for turn in 0..4 {
            let rival = (round + turn) % 4;
            // Each turn takes the next piece, so that nobody finds in the cache what the one before has fetched.
            let piece = (4 * round + turn) % case.pieces.len();
            let nest = moved(case, piece);
            taken[rival] = match rival {
                0 => seconds(|| copy(&nest, &arena.from, case.from, &arena.to, case.to).unwrap()),
                1 => seconds(|| {
                    black_box(traffic[piece].cause(&arena.from, &arena.to));
                }),
                2 if with_memcpy => seconds(|| memcpy(case, &arena, piece)),
                3 => numpy.as_deref_mut().map_or(f64::NAN, |numpy| numpy.seconds(piece)),
                _ => f64::NAN,
            };
        }
        times.push(taken);
    }
    let speed = case.bytes_written() as f64 / median(times.iter().map(|t| t[0]).collect()) / 1e9;
    let ratio = |rival: usize| median(times.iter().map(|t| t[rival] / t[0]).collect());
    let shown = |x: f64| if x.is_nan() { "-".to_owned() } else { format!("{x:.2}") };
    println!("{:<44}{speed:>8.2}{:>8}{:>8}{:>8}", case.name, shown(ratio(1)), shown(ratio(2)), shown(ratio(3)));
}

fn run(mebi: u64, words: &[String], effort: Effort) {
    let mut numpy = NumPy::start();
    if let Some(version) = numpy.as_ref().map(NumPy::version) {
        println!("NumPy {version}");
    }
    println!("{:<44}{:>8}{:>8}{:>8}{:>8}", "", "GB/s", "/lines", "/memcpy", "/NumPy");
    for case in cases::all(mebi) {
        if words.is_empty() || words.iter().any(|word| case.name.contains(word.as_str())) {
            measure(&case, numpy.as_mut(), effort);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    run(64, &words, Effort { time: Duration::from_millis(1500), rounds_min: 9, rounds_max: 201 });
}

#[test]
fn runs_on_a_small_size() {
    run(1, &[], Effort { time: Duration::ZERO, rounds_min: 2, rounds_max: 2 });
}
