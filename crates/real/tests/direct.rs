//! Direct requests against a model in memory, mixed with others, on a disk and on a file system that has none.

mod common;

use common::{Place, Rows, Told, Waited, seeds};
use hyperslab_layout::Durability;
use hyperslab_pack::Memory;
use hyperslab_world::{FaultKind, Outcome, Request, Store as _};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where a direct request may like its memory to begin, and where not.
fn base(random: &mut fastrand::Rng) -> u64 {
    match random.u8(0..4) {
        0 | 1 => 0,
        2 => 512 * random.u64(1..8),
        _ => random.u64(1..5000),
    }
}

/// Some bytes of `start..end`, which has some.
fn rows(random: &mut fastrand::Rng, start: u64, end: u64) -> Rows {
    let base = base(random);
    if random.bool() {
        return Rows::run(start, end - start, base);
    }
    let length = random.u64(1..=end - start);
    let step = length + random.u64(0..=length);
    let rows = (end - start - length) / step + 1;
    let memory_step = length + if random.bool() { 0 } else { random.u64(0..=length) };
    Rows { offset: start, rows, length, step, base, memory_step }
}

/// Points of a file, at multiples of pages and sectors and between them, in rising order.
fn points(random: &mut fastrand::Rng, length: u64, count: usize) -> Vec<u64> {
    let mut points = vec![0, length];
    for _ in 0..count {
        let unit = *random.choice(&[1, 512, 4096, 65536, 1 << 20]).unwrap();
        points.push(random.u64(0..=length) / unit * unit);
    }
    points.sort_unstable();
    points.dedup();
    points
}

/// Writes at once that do not overlap, but share pages.
fn writes(random: &mut fastrand::Rng, model: &mut [u8]) -> Vec<Request> {
    let count = random.usize(0..12);
    let points = points(random, model.len() as u64, count);
    let mut requests = Vec::new();
    for pair in points.windows(2) {
        if random.u8(0..4) == 0 {
            continue;
        }
        let rows = rows(random, pair[0], pair[1]);
        let memory = Memory::allocate(rows.memory_bytes()).unwrap();
        let mut bytes = vec![0; rows.memory_bytes() as usize];
        random.fill(&mut bytes);
        memory.write_bytes(0, &bytes);
        for (here, there) in rows.ranges() {
            model[there].copy_from_slice(&bytes[here]);
        }
        requests.push(Request::Write {
            object: "file".into(),
            moves: rows.moves(&memory),
            direct: random.bool(),
            durability: Durability::Soon,
        });
    }
    random.shuffle(&mut requests);
    requests
}

/// Reads some of the file at once, and compares.
fn compare(random: &mut fastrand::Rng, store: &mut Waited, model: &[u8]) {
    let mut wanted = Vec::new();
    for _ in 0..random.usize(1..8) {
        let points = points(random, model.len() as u64, 2);
        let at = random.usize(0..points.len() - 1);
        let rows = rows(random, points[at], points[at + 1]);
        wanted.push((Memory::allocate(rows.memory_bytes()).unwrap(), rows));
    }
    let read = |(memory, rows): &(Memory, Rows), direct| {
        memory.write_bytes(0, &vec![0xEE; memory.bytes() as usize]);
        Request::Read { object: "file".into(), moves: rows.moves(memory), direct }
    };
    let requests = wanted.iter().map(|wanted| read(wanted, random.bool())).collect();
    store.well(requests);
    for (memory, rows) in wanted {
        // What lies between the rows must have stayed, too.
        let mut expected = vec![0xEE; memory.bytes() as usize];
        for (here, there) in rows.ranges() {
            expected[here].copy_from_slice(&model[there]);
        }
        assert!(memory.to_vec(0, memory.bytes()) == expected, "{rows:?} of {} B", model.len());
    }
}

fn mixed(place: &Place, seed: u64) {
    let _told = Told(seed);
    let mut random = fastrand::Rng::with_seed(seed);
    let path = place.0.join("file");
    let mut model = vec![0; random.usize(1..4 << 20)];
    let file = File::create(&path).unwrap();
    file.set_len(model.len() as u64).unwrap();
    let mut store = Waited::new(&place.0);
    for _ in 0..random.usize(1..6) {
        let mut requests = writes(&mut random, &mut model);
        if random.bool() {
            requests.push(Request::Sync { below: ["file".into()].into() });
        }
        store.well(requests);
        if random.u8(0..3) == 0 {
            // Somebody else changes some bytes, through the cache.
            let at = random.usize(0..model.len());
            let end = model.len().min(at + random.usize(1..200_000));
            random.fill(&mut model[at..end]);
            fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(&model[at..end], at as u64).unwrap();
        }
        compare(&mut random, &mut store, &model);
        if random.u8(0..3) == 0 {
            assert!(fs::read(&path).unwrap() == model, "what others see is not what was written");
        }
        if random.u8(0..4) == 0 {
            store.store.release();
        }
    }
    assert!(fs::read(&path).unwrap() == model, "the file is not what was written");
}

#[test]
fn direct_and_cached_requests_agree_on_a_disk() {
    let place = Place::on_disk("mixed");
    seeds(60).for_each(|seed| mixed(&place, seed));
}

#[test]
fn direct_requests_are_harmless_where_there_is_no_disk() {
    let Some(place) = Place::in_memory("mixed") else { return };
    seeds(30).for_each(|seed| mixed(&place, seed));
}

/// A file in which two stores write their halves of each page at the same time, as ranks do.
#[test]
fn two_stores_share_pages() {
    let place = Place::on_disk("shared");
    for seed in seeds(15) {
        let _told = Told(seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let length = random.u64(1 << 20..3 << 20);
        let mut model = vec![0; length as usize];
        let file = File::create(place.0.join("file")).unwrap();
        file.set_len(length).unwrap();
        // Leaves large stretches of it in the cache.
        assert_eq!(fs::read(place.0.join("file")).unwrap(), model);
        let mut requests = writes(&mut random, &mut model);
        let second = requests.split_off(requests.len() / 2);
        let root = place.0.clone();
        let other = std::thread::spawn(move || {
            let mut store = Waited::new(&root);
            store.well(second);
            store.well(vec![Request::Sync { below: ["file".into()].into() }]);
        });
        let mut store = Waited::new(&place.0);
        store.well(requests);
        store.well(vec![Request::Sync { below: ["file".into()].into() }]);
        other.join().unwrap();
        assert!(fs::read(place.0.join("file")).unwrap() == model);
    }
}

#[test]
fn a_sync_ends_after_what_was_submitted_before_it() {
    let place = Place::on_disk("sync");
    File::create(place.0.join("file")).unwrap().set_len(64 << 20).unwrap();
    let mut store = Waited::new(&place.0);
    let memory = Memory::allocate(1 << 20).unwrap();
    for _ in 0..5 {
        let write = |number: u64| {
            let moves = Rows::run(number << 20, 1 << 20, 0).moves(&memory);
            Request::Write { object: "file".into(), moves, direct: true, durability: Durability::Soon }
        };
        let mut requests: Vec<Request> = (0..40).map(write).collect();
        requests.insert(20, Request::Sync { below: ["file".into()].into() });
        let order: Vec<u64> = store.all(requests).into_iter().map(|(ticket, _)| ticket).collect();
        let sync = order.iter().position(|&ticket| ticket == 20).unwrap();
        assert!((0..20).all(|before| order[..sync].contains(&before)), "{order:?}");
    }
}

/// Whether the system's cache holds the first page of a file.
fn cached(path: &Path) -> bool {
    let file = File::open(path).unwrap();
    let mut byte = 0u8;
    let piece = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the piece is one byte that lives through the call.
    let read = unsafe { libc::preadv2(file.as_raw_fd(), &piece, 1, 0, libc::RWF_NOWAIT) };
    read == 1
}

#[test]
fn direct_requests_leave_nothing_in_the_cache() {
    let place = Place::on_disk("cache");
    let path = place.0.join("file");
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let mut store = Waited::new(&place.0);
    let memory = Memory::allocate((1 << 20) + 1).unwrap();
    let write = |base, direct| {
        let moves = Rows::run(0, 1 << 20, base).moves(&memory);
        Request::Write { object: "file".into(), moves, direct, durability: Durability::Soon }
    };
    store.well(vec![write(0, false)]);
    if !cached(&path) {
        return println!("skipped: the file system does not tell what is in the cache");
    }
    store.well(vec![write(0, true)]);
    if cached(&path) {
        return println!("skipped: '{}' is on a file system without direct requests", path.display());
    }
    store.well(vec![write(0, false)]);
    assert!(cached(&path));
    // Memory that is not aligned is no hindrance.
    store.well(vec![write(1, true)]);
    assert!(!cached(&path), "it went through the cache");
}

#[test]
fn direct_requests_fail_as_others_do() {
    let place = Place::on_disk("failing");
    let mut store = Waited::new(&place.0);
    let memory = Memory::allocate(1 << 20).unwrap();
    let moves = |offset| Rows::run(offset, 1 << 20, 0).moves(&memory);
    for direct in [false, true] {
        let read = |offset| Request::Read { object: "file".into(), moves: moves(offset), direct };
        let write = Request::Write { object: "nothing".into(), moves: moves(0), direct, durability: Durability::Soon };
        assert_eq!(store.one(write), Ok(Outcome::Absent));
        fs::write(place.0.join("file"), vec![7; 700_001]).unwrap();
        let fault = store.one(read(0)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Corrupt);
        assert!(fault.text().contains("expected at least 1048576 B, found 700001 B"), "{fault}");
        let fault = store.one(read(4 << 20)).unwrap_err();
        assert!(fault.text().contains("expected at least 5242880 B, found 700001 B"), "{fault}");
        // Memory that is too small is told before anything is touched beyond it.
        let small = Memory::allocate(1000).unwrap();
        let moves = Rows::run(0, 1 << 20, 0).moves(&small);
        let fault = store
            .one(Request::Write { object: "file".into(), moves, direct, durability: Durability::Soon })
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::Invalid, "{fault}");
        assert_eq!(fs::read(place.0.join("file")).unwrap(), vec![7; 700_001]);
        fs::remove_file(place.0.join("file")).unwrap();
    }
}
