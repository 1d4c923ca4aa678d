//! The rules of the drive, one by one.

use super::*;

const BLOCK: u64 = 8192;
const REVOLUTION_NS: u64 = 14_992_503;
const SECTOR_NS: u64 = 208_229;

/// Place of the first sector of a cylinder of the first region \[B\].
fn cylinder(number: u64) -> u64 {
    ((number - 1) * 19 - 4) * 72 * 512
}

#[test]
fn a_first_read_pays_everything_once() {
    let mut disk = Hp97560::new(0.3);
    let access = disk.read(1_000_000, cylinder(101), BLOCK);
    assert_eq!((access.overhead_ns, access.seek_ns), (2_200_000, 7_240_000));
    assert!(access.rotate_ns < REVOLUTION_NS);
    assert_eq!(access.transfer_ns / 1000, 16 * SECTOR_NS / 1000);
    let parts = access.overhead_ns + access.seek_ns + access.rotate_ns + access.transfer_ns;
    assert_eq!(access.ready_ns, 1_000_000 + parts);
}

#[test]
fn what_is_in_the_buffer_costs_the_overhead_alone() {
    let mut disk = Hp97560::new(0.0);
    let first = disk.read(0, 0, BLOCK).ready_ns;
    let later = first + 100_000_000;
    for block in 1..16 {
        let access = disk.clone().read(later, block * BLOCK, BLOCK);
        assert_eq!((access.ready_ns, access.transfer_ns), (later + OVERHEAD_NS, 0), "block {block}");
    }
    // The buffer is full, so the next has not been read, and the heads wait for it to come again.
    let access = disk.read(later, 16 * BLOCK, BLOCK);
    assert!(access.ready_ns > later + OVERHEAD_NS && access.seek_ns == 0);
    assert!(access.ready_ns <= later + REVOLUTION_NS + 17 * SECTOR_NS);
}

#[test]
fn the_newest_stream_overwrites_the_oldest_data() {
    let mut disk = Hp97560::new(0.0);
    let mut now = 0;
    for block in 0..8 {
        now = disk.read(now, block * BLOCK, BLOCK).ready_ns;
    }
    now += 200_000_000;
    assert_eq!(disk.clone().read(now, 7 * BLOCK, BLOCK).ready_ns, now + OVERHEAD_NS);
    assert!(disk.read(now, 6 * BLOCK, BLOCK).ready_ns > now + OVERHEAD_NS);
}

#[test]
fn a_slow_reader_gets_every_block_from_the_buffer() {
    let mut disk = Hp97560::new(0.0);
    let mut now = disk.read(0, 0, BLOCK).ready_ns;
    for block in 1..200 {
        now += 30_000_000;
        let access = disk.read(now, block * BLOCK, BLOCK);
        assert_eq!(access.ready_ns, now + OVERHEAD_NS, "block {block}");
    }
}

#[test]
fn a_write_elsewhere_waits_for_the_one_before() {
    let mut disk = Hp97560::new(0.0);
    assert_eq!(disk.write(0, 0, BLOCK).ready_ns, OVERHEAD_NS);
    let settled = disk.settled_ns();
    assert_eq!(disk.write(OVERHEAD_NS, cylinder(9), BLOCK).ready_ns, settled);
    assert!(disk.settled_ns() > settled + arm::seek_ns(8));
}

#[test]
fn writes_in_a_row_fill_the_fence_at_once_and_then_wait() {
    let mut disk = Hp97560::new(0.0);
    let ready: Vec<u64> = (0..9).map(|block| disk.write(0, block * BLOCK, BLOCK).ready_ns).collect();
    assert!(ready[..8].iter().all(|&ns| ns == OVERHEAD_NS));
    assert_eq!(ready[8], disk.done_ns(16));
}

#[test]
fn a_long_write_is_accepted_when_the_rest_fits() {
    let mut disk = Hp97560::new(0.0);
    let access = disk.write(0, 0, 1 << 20);
    assert_eq!(access.ready_ns, disk.done_ns(2048 - 128));
    assert_eq!(disk.settled_ns(), disk.done_ns(2048));
}

#[test]
fn a_read_waits_for_writes() {
    let mut disk = Hp97560::new(0.0);
    disk.write(0, 0, BLOCK);
    let settled = disk.settled_ns();
    assert!(disk.read(OVERHEAD_NS, 0, BLOCK).ready_ns > settled);
    assert_eq!(disk.settled_ns(), settled);
}

#[test]
fn requests_of_64_kb_stream_as_well() {
    let (length, bus_ns) = (64 * 1024, 6_250_000);
    let (mut reader, mut writer) = (Hp97560::new(0.1), Hp97560::new(0.1));
    let (mut read_ns, mut written_ns) = (0, 0);
    for offset in (0..90 * length).step_by(64 * 1024) {
        read_ns = bus_ns + reader.read(read_ns, offset, length).ready_ns;
        written_ns = writer.write(written_ns + bus_ns, offset, length).ready_ns;
    }
    let sectors_ns = (arc(90 * 128) - arc(0)) * SECTOR_NS;
    assert!(read_ns < sectors_ns + OVERHEAD_NS + REVOLUTION_NS + bus_ns);
    assert!(writer.settled_ns() < sectors_ns + OVERHEAD_NS + REVOLUTION_NS + bus_ns);
}

#[test]
fn nothing_takes_the_overhead() {
    let mut disk = Hp97560::new(0.0);
    assert_eq!(disk.read(7, 512, 0).ready_ns, 7 + OVERHEAD_NS);
    assert_eq!(disk.write(7, 512, 0).ready_ns, 7 + OVERHEAD_NS);
    assert_eq!(disk.settled_ns(), 0);
}

#[test]
fn the_last_sector_can_be_read_and_read_ahead_ends_there() {
    let mut disk = Hp97560::new(0.0);
    let ready = disk.read(0, SECTORS * SECTOR_BYTES - BLOCK, BLOCK).ready_ns;
    assert!(disk.read(ready, 0, BLOCK).seek_ns > 20_000_000);
}

#[test]
fn places_beyond_the_end_are_taken_from_the_beginning() {
    let all = SECTORS * SECTOR_BYTES;
    assert_eq!(sectors(all + 512, BLOCK), sectors(512, BLOCK));
    assert_eq!(sectors(all - 512, BLOCK), (SECTORS - BLOCK / SECTOR_BYTES, SECTORS));
    assert_eq!(sectors(7, 3 * all), (0, SECTORS));
    assert_eq!(sectors(100, 500), (0, 2));
}
