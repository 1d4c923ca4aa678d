//! Whether the HP 97560 as a whole has the rates that Kotz published (1997, sections 5 and 6). MB are 2^20 B, as his
//! are.

use super::Hp97560;
use super::access::Disk;
use super::geometry::{CYLINDER_SKEW, HEADS, SECTOR_BYTES, SECTORS, TRACK_SECTORS, TRACK_SKEW};

const BLOCK: u64 = 8192;
/// A block crosses the bus, 10 MB/s, with its command \[ns\].
const BUS_NS: u64 = 820_000;
const MB: f64 = 1_048_576.0;
const DISKS: usize = 16;
/// Blocks of a disk; 10 MB on all.
const BLOCKS: u64 = 80;

/// Small and good enough (Marsaglia 2003).
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn phase(&mut self) -> f64 {
        self.below(1 << 20) as f64 / MB
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Read,
    Write,
}

/// When each request is ready if the host sends the next as soon as the bus is free \[ns\].
fn run(disk: &mut Hp97560, way: Way, blocks: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let mut now = 0;
    let mut one = |block: u64| match way {
        Way::Read => {
            let ready = disk.read(now, block * BLOCK, BLOCK).ready_ns;
            now = ready + BUS_NS;
            ready
        }
        Way::Write => {
            now = disk.write(now + BUS_NS, block * BLOCK, BLOCK).ready_ns;
            now
        }
    };
    blocks.into_iter().map(&mut one).collect()
}

/// Time until all blocks have crossed the bus or are on the medium \[ns\].
fn total_ns(phase: f64, way: Way, blocks: Vec<u64>) -> u64 {
    let mut disk = Hp97560::new(phase);
    let last = run(&mut disk, way, blocks).last().copied().unwrap_or(0);
    if way == Way::Read { last + BUS_NS } else { disk.settled_ns() }
}

/// Rate of 16 disks, each with blocks of its own, of which the slowest counts; mean time of 20 trials \[MB/s\].
fn rate(way: Way, blocks: impl Fn(&mut Xorshift) -> Vec<u64>) -> f64 {
    const TRIALS: u64 = 20;
    let mut random = Xorshift(0x9E37_79B9_7F4A_7C15);
    let mut trial = |_| {
        let mut one = || total_ns(random.phase(), way, blocks(&mut random));
        (0..DISKS).map(|_| one()).max().unwrap_or(0)
    };
    let sum_ns: u64 = (0..TRIALS).map(&mut trial).sum();
    let bytes = TRIALS * BLOCKS * BLOCK * DISKS as u64;
    bytes as f64 / MB / (sum_ns as f64 / 1e9)
}

fn unsorted(random: &mut Xorshift) -> Vec<u64> {
    (0..BLOCKS).map(|_| random.below(SECTORS * SECTOR_BYTES / BLOCK)).collect()
}

fn sorted(random: &mut Xorshift) -> Vec<u64> {
    let mut blocks = unsorted(random);
    blocks.sort_unstable();
    blocks
}

#[track_caller]
fn assert_near(found: f64, expected: f64, fraction: f64) {
    println!("{found:.4}, expected {expected}");
    assert!((found / expected - 1.0).abs() <= fraction, "{found:.4} is not within {fraction} of {expected}");
}

/// Rate from one block of a sequential run to another, when the disk is in full swing \[MB/s\].
fn stream(way: Way, first: u64, from: usize, to: usize) -> f64 {
    let mut disk = Hp97560::new(0.6);
    let ready = run(&mut disk, way, (first..).take(to + 1));
    (to - from) as f64 * BLOCK as f64 / MB / ((ready[to] - ready[from]) as f64 / 1e9)
}

/// First block of cylinder 11, and on an edge of blocks.
const ALIGNED: u64 = (10 * 19 - 4) * 72 / 16;
/// Blocks of two tracks, the fewest that are whole.
const TWO_TRACKS: usize = 9;

#[test]
fn streams_lose_no_revolution_within_a_cylinder() {
    // 36,864 B in the time of 80 sectors: Kotz's "2.11 MB/s".
    let analytic = 72.0 / 80.0 * 2_458_829.0 / MB;
    assert_near(analytic, 2.1104, 1e-4);
    assert_near(stream(Way::Read, ALIGNED, 0, 8 * TWO_TRACKS), analytic, 0.005);
    // Writes are accepted ahead of the medium until the fence is full.
    assert_near(stream(Way::Write, ALIGNED, 3 * TWO_TRACKS, 9 * TWO_TRACKS), analytic, 0.005);
}

#[test]
fn streams_lose_no_revolution_across_cylinders() {
    let sectors = HEADS * TRACK_SECTORS;
    let turned = sectors + (HEADS - 1) * TRACK_SKEW + CYLINDER_SKEW;
    let analytic = sectors as f64 / turned as f64 * 2_458_829.0 / MB;
    assert_near(analytic, 2.0966, 1e-4);
    for way in [Way::Read, Way::Write] {
        assert_near(stream(way, ALIGNED, 171, 171 * 21), analytic, 0.005);
    }
    // Through all three regions.
    assert_near(stream(Way::Read, 0, 0, 165_441), analytic, 0.005);
}

#[test]
fn sorted_reads() {
    assert_near(rate(Way::Read, sorted), 6.3, 0.03);
}

#[test]
fn sorted_writes() {
    assert_near(rate(Way::Write, sorted), 7.35, 0.03);
}

#[test]
fn unsorted_reads() {
    assert_near(rate(Way::Read, unsorted), 4.43, 0.03);
}

/// Kotz's traditional caching is "never faster than 5 MB/s".
#[test]
fn unsorted_writes() {
    assert_near(rate(Way::Write, unsorted), 5.01, 0.03);
}

/// Kotz measured 31.4 MB/s, with messages.
#[test]
fn contiguous_reads() {
    assert_near(rate(Way::Read, |_| (0..BLOCKS).collect()), 31.4, 0.03);
}
