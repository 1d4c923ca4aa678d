//! Measures the store's direct requests, so many at once, beside its requests through the cache and beside plain
//! threads with plain calls, which are the limit:
//!
//!     cargo run --release -p hyperslab-real --example direct -- DIRECTORY [MiB] [rounds] ["write 4 MiB"]
//!
//! A write ends with the sync that makes it durable, into space that is reserved; a read begins with nothing of the
//! file in the cache of this system. Rounds take turns; printed are the median, the least and the greatest rate.

use hyperslab_layout::{Durability, ElementType, Kind, Object, Region, View};
use hyperslab_pack::Memory;
use hyperslab_real::PosixStore;
use hyperslab_real::wire::Bell;
use hyperslab_world::{Moves, Outcome, Request, Root, Store};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const NAME: &str = "hyperslab-direct-benchmark";
const LIMIT_THREADS: usize = 8;
/// Header of the file in which memory and file are out of step \[B\].
const SHIFT: u64 = 128;

#[derive(Clone, Copy, PartialEq)]
enum How {
    /// Threads that call the system themselves.
    Limit,
    /// The store, directly, with so many requests out.
    Direct(usize),
    /// The same in a file with a header, which brings memory and file out of step.
    Shifted(usize),
    /// The store, through the cache.
    Cached,
}

#[derive(Clone, Copy)]
struct Case {
    how: How,
    write: bool,
    request: u64,
    shuffled: bool,
}

impl Case {
    fn name(&self) -> String {
        let how = match self.how {
            How::Limit => format!("limit: {LIMIT_THREADS} threads, O_DIRECT"),
            How::Direct(depth) => format!("store, direct, {depth} at once"),
            How::Shifted(depth) => format!("store, {depth}, not aligned"),
            How::Cached => "store, through the cache".into(),
        };
        let (way, order) =
            (["read", "write"][usize::from(self.write)], ["rising", "shuffled"][usize::from(self.shuffled)]);
        format!("{way:5} {} MiB {order:8} {how}", self.request >> 20)
    }

    fn shift(&self) -> u64 {
        if matches!(self.how, How::Shifted(_)) { SHIFT } else { 0 }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(directory) = arguments.get(1) else {
        eprintln!("usage: direct DIRECTORY [MiB] [rounds] [what lines begin with]");
        std::process::exit(2);
    };
    let number = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let (bytes, rounds): (u64, usize) = (number(2, 512) << 20, number(3, 5) as usize);
    let path = Path::new(directory).join(NAME);
    let content: Vec<u8> = {
        let mut content = vec![0; bytes as usize];
        fastrand::Rng::with_seed(1).fill(&mut content);
        content
    };
    let memory = Memory::allocate(bytes).expect("memory");
    let mut cases = Vec::new();
    for write in [true, false] {
        for (request, shuffled) in [(1 << 20, false), (1 << 20, true), (4 << 20, false), (4 << 20, true)] {
            let depths = [1, 2, 4, 8].map(How::Direct);
            let hows = [How::Limit, How::Shifted(8), How::Cached];
            cases.extend(depths.into_iter().chain(hows).map(|how| Case { how, write, request, shuffled }));
        }
    }
    let only = arguments.get(4).map_or("", String::as_str);
    cases.retain(|case| case.name().starts_with(only));
    let mut rates = vec![Vec::new(); cases.len()];
    for _ in 0..=rounds {
        for (case, rates) in cases.iter().zip(&mut rates) {
            memory.write_bytes(0, if case.write { &content } else { &[] });
            prepare(&path, case, bytes, &content);
            let begun = Instant::now();
            let order = order(bytes / case.request, case.shuffled);
            match case.how {
                How::Limit => limit(&path, case, &memory, &order),
                How::Direct(depth) | How::Shifted(depth) => store(directory, case, &memory, &order, depth),
                How::Cached => store(directory, case, &memory, &order, 8),
            }
            rates.push(bytes as f64 / begun.elapsed().as_secs_f64() / 1e9);
            let shift = case.shift() as usize;
            let file = std::fs::read(&path).expect("a file");
            let arrived = if case.write { file[shift..].to_vec() } else { memory.to_vec(0, bytes) };
            assert!(arrived == content, "the bytes did not arrive");
        }
    }
    let _ = std::fs::remove_file(&path);
    println!("{} MiB, {rounds} rounds, GB/s: median (least, greatest)", bytes >> 20);
    for (case, rates) in cases.iter().zip(&mut rates) {
        // The first round warms up.
        let rates = &mut rates[1..];
        rates.sort_by(f64::total_cmp);
        let (median, least, most) = (rates[rates.len() / 2], rates[0], rates[rates.len() - 1]);
        println!("{:50} {median:5.2} ({least:.2}, {most:.2})", case.name());
    }
}

/// Reserves the space of a file, written to before or not, with nothing of it in the cache.
fn prepare(path: &Path, case: &Case, bytes: u64, content: &[u8]) {
    let _ = std::fs::remove_file(path);
    let file = File::create(path).expect("a file");
    // SAFETY: the descriptor belongs to the open file.
    unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, (bytes + case.shift()) as i64) };
    if !case.write {
        file.write_all_at(content, case.shift()).expect("room");
    }
    file.sync_all().expect("a disk");
    // SAFETY: as above.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

fn order(count: u64, shuffled: bool) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    if shuffled {
        fastrand::Rng::with_seed(2).shuffle(&mut order);
    }
    order
}

/// The store, with so many requests out at any time.
fn store(directory: &str, case: &Case, memory: &Memory, order: &[u64], depth: usize) {
    let bell = Bell::default();
    let mut store = PosixStore::new(bell.clone());
    store.enter([Root::new(directory)].into());
    let mut left = order.iter();
    let mut out = 0;
    let mut done = Vec::new();
    loop {
        while let Some(&number) = if out < depth { left.next() } else { None } {
            let (object, direct) = (Object::from(NAME), case.how != How::Cached);
            let moves = moves(memory, number * case.request, case.request, case.shift());
            let request = match case.write {
                true => Request::Write { object, moves, direct, durability: Durability::Soon },
                false => Request::Read { object, moves, direct },
            };
            store.submit(number, request);
            out += 1;
        }
        if out == 0 {
            break;
        }
        wait(&mut store, &bell, &mut done);
        out -= done.drain(..).count();
    }
    if case.write {
        store.submit(0, Request::Sync { below: [NAME.into()].into() });
        wait(&mut store, &bell, &mut done);
    }
}

fn wait(store: &mut PosixStore, bell: &Bell, done: &mut Vec<(u64, Result<Outcome, hyperslab_world::Fault>)>) {
    while done.is_empty() {
        bell.wait(Duration::from_secs(60));
        store.poll(done);
    }
    assert!(done.iter().all(|(_, result)| matches!(result, Ok(Outcome::Done(_)))), "{done:?}");
}

fn moves(memory: &Memory, offset: u64, bytes: u64, shift: u64) -> Moves {
    let region = Region::whole(&[bytes]);
    let view = |base| Arc::new(View::held(&region, base as i64, &[1], ElementType::native(Kind::UInt8)));
    let (here, there) = (view(offset), view(offset + shift));
    Moves { region: region.clone(), memory: memory.clone(), here, there }
}

/// Threads that take the next request and make the call.
fn limit(path: &Path, case: &Case, memory: &Memory, order: &[u64]) {
    let next = AtomicUsize::new(0);
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).expect("a file");
    let base = memory.host_address().expect("memory of this host");
    std::thread::scope(|scope| {
        for _ in 0..LIMIT_THREADS {
            scope.spawn(|| {
                while let Some(&number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = number * case.request;
                    let address = (base + at as usize) as *mut u8;
                    // SAFETY: the memory has the length of the file, lives through the scope, and each thread has
                    // parts of its own.
                    let bytes = unsafe { std::slice::from_raw_parts_mut(address, case.request as usize) };
                    match case.write {
                        true => file.write_all_at(bytes, at).expect("a disk"),
                        false => file.read_exact_at(bytes, at).expect("a disk"),
                    }
                }
            });
        }
    });
    if case.write {
        file.sync_data().expect("a disk");
    }
}
