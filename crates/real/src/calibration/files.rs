//! Files as one rank finds them: through the store and the names that transfers use.

use super::copies::touched;
use super::turns::{Case, Effort, Series, Turns};
use crate::posix::{CHECKED_BLOCK_BYTES, passes_cache};
use crate::wire::Bell;
use crate::{Directory, PosixStore};
use hyperslab_layout::{Durability, ElementType, Kind, Object, Region, View};
use hyperslab_pack::Memory;
use hyperslab_world::{Fault, FaultKind, Moves, Names, Outcome, Request, Root, Store};
use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sizes of requests \[B\].
const REQUESTS: [u64; 7] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Most requests of one measurement.
const COUNT_MAX: u64 = 512;
/// Bytes of a request that gathers or scatters \[B\], and lengths of the runs.
const GATHER_BYTES: u64 = 1 << 20;
const GATHERED: [u64; 4] = [256, 1 << 10, 4 << 10, 32 << 10];
/// Ranges of one request that lie apart in the file: how many, how long \[B\], and how many lengths lie from one to the next,
/// so that reading what is between them would take longer. Whole pages, since a page is made once, whoever writes to it.
const RANGES: u64 = 256;
const RANGE_BYTES: u64 = 4 << 10;
const RANGES_APART: u64 = 3;
/// Direct requests \[B\]: the shortest that the store does not send through it, and one of a common subchunk.
const DIRECT_SHORT: u64 = 64 << 10;
const DIRECT_LONG: u64 = 2 << 20;
/// Shares of the bytes at most that are made durable at once.
const SYNCED: [u64; 3] = [1024, 16, 1];
const DIRECT_COUNT_MAX: u64 = 32;
/// Fewest bytes that make sense \[B\].
const BYTES_MIN: u64 = 1 << 20;
/// Bytes by which it is found out how fast files are \[B\]; files are at least as long.
const PROBE_BYTES: u64 = 4 << 20;
/// Into how many files' times the whole time is divided: cases, each in a few rounds.
const SHARES: f64 = 100.0;
/// Files that are made, opened, renamed and removed in a row, and their length, which is all holes \[B\].
const NAMES: u64 = 128;
const NAMED_BYTES: u64 = 4096;

/// How a file is moved.
#[derive(Clone, Copy)]
struct How {
    write: bool,
    direct: bool,
    /// Bytes of a request \[B\].
    request: u64,
    /// Length of the runs in memory, or in the file where they lie apart there \[B\].
    run: u64,
    /// How many lengths of a run lie from one to the next in the file.
    apart: u64,
    count: u64,
    /// Whether all requests are handed over at once, or each waits for the one before.
    at_once: bool,
    /// Whether all of them move the same memory, which then stays in the processor's cache.
    kept: bool,
}

impl How {
    fn cached(write: bool, request: u64, bytes: u64) -> How {
        let request = request.min(bytes);
        let count = (bytes / request).clamp(1, COUNT_MAX);
        How { write, direct: false, request, run: request, apart: 1, count, at_once: true, kept: false }
    }

    /// Requests of short ranges, as long as they all find room.
    fn ranged(write: bool, bytes: u64) -> How {
        let ranges = RANGES.min(bytes / RANGES_APART / RANGE_BYTES);
        let whole = How::cached(write, ranges * RANGE_BYTES, bytes / RANGES_APART);
        How { run: RANGE_BYTES, apart: RANGES_APART, ..whole }
    }

    /// Bytes of the file.
    fn bytes(&self) -> u64 {
        self.request * self.count * self.apart
    }
}

/// Times of writes and reads of each size through the cache (`write`, `read`, at `bytes` in `runs`), of writes out of memory
/// that stays in the processor's cache (`write-kept`, at `bytes`), of such with short
/// ranges of the file (`write-ranges`, `read-ranges`, at `bytes` and `ranges`), of reads of what it has not (`cold`), past
/// it if the file system can (`direct-write`, `direct-read`, at `bytes` and `at_once`), of making durable (`sync`, at
/// `bytes`), and of names (`create`, `open`, `rename`, `remove`). All but `sync` are of one request or name.
///
/// Files are fresh, as those of transfers are, and lie in `directory`, which must exist; they are gone afterwards.
///
/// # Errors
/// When the directory cannot be written to, or somebody wants it to stop.
pub fn files(directory: &Path, effort: Effort, interrupted: &mut dyn FnMut() -> bool) -> Result<Vec<Series>, Fault> {
    let effort = Effort { bytes: effort.bytes.max(BYTES_MIN), ..effort };
    let mut bench = Bench::new(directory, effort.bytes)?;
    let bytes = bench.affordable(effort)?;
    bench.fresh(BYTES_MIN)?;
    let past_cache = passes_cache(Path::new(&bench.names.full("data")));
    let bench = &RefCell::new(bench);
    let mut cases = Vec::new();
    for request in REQUESTS.into_iter().filter(|&request| request <= bytes) {
        for write in [true, false] {
            let how = How::cached(write, request, bytes);
            let at = [("bytes", request as f64), ("runs", 1.0)];
            let kernel = if write { "write" } else { "read" };
            cases.push(Case::new(kernel, &at, move || bench.borrow_mut().cached(how)));
        }
    }
    for run in GATHERED {
        let request = GATHER_BYTES.min(bytes / 2);
        let at = [("bytes", request as f64), ("runs", (request / run) as f64)];
        for (kernel, write) in [("write", true), ("read", false)] {
            // Runs lie apart in memory, so half as many bytes fit.
            let how = How { run, ..How::cached(write, request, bytes / 2) };
            cases.push(Case::new(kernel, &at, move || bench.borrow_mut().cached(how)));
        }
    }
    // Out of memory that stays in the processor's cache.
    let how = How { kept: true, ..How::cached(true, CHECKED_BLOCK_BYTES, bytes) };
    let at = [("bytes", how.request as f64)];
    cases.push(Case::new("write-kept", &at, move || bench.borrow_mut().cached(how)));
    for (kernel, write) in [("write-ranges", true), ("read-ranges", false)] {
        let how = How::ranged(write, bytes);
        let at = [("bytes", how.request as f64), ("ranges", (how.request / how.run) as f64)];
        cases.push(Case::new(kernel, &at, move || bench.borrow_mut().cached(how)));
    }
    for share in SYNCED {
        let synced = (bytes / share).max(1);
        cases.push(Case::new("sync", &[("bytes", synced as f64)], move || bench.borrow_mut().synced(synced)));
    }
    let how = How::cached(false, 4 << 20, bytes);
    cases.push(Case::new("cold", &[("bytes", how.request as f64)], move || bench.borrow_mut().cold(how)));
    for write in [true, false].into_iter().filter(|_| past_cache) {
        for (request, at_once) in [(DIRECT_SHORT, false), (DIRECT_SHORT, true), (DIRECT_LONG, true)] {
            let how = How::cached(write, request, bytes);
            let how = How { direct: true, at_once, count: how.count.min(DIRECT_COUNT_MAX), ..how };
            let at = [("bytes", how.request as f64), ("at_once", f64::from(u8::from(at_once)))];
            let kernel = if write { "direct-write" } else { "direct-read" };
            cases.push(Case::new(kernel, &at, move || bench.borrow_mut().direct(how)));
        }
    }
    for (kernel, step) in [("create", 0), ("open", 1), ("rename", 2), ("remove", 3)] {
        cases.push(Case::new(kernel, &[], move || bench.borrow().names(step)));
    }
    let measured = Turns::new(effort.time).take(cases, interrupted);
    let mut bench = bench.borrow_mut();
    // After a failure, answers to other requests may still come.
    let closed = if measured.is_ok() { bench.let_go() } else { Ok(()) };
    let removed = bench.names.remove("");
    let series = measured?;
    closed.and(removed).map(|()| series)
}

/// A directory to measure in.
struct Bench {
    store: PosixStore,
    bell: Bell,
    names: Directory,
    memory: Memory,
    ticket: u64,
}

impl Bench {
    /// A directory of its own below another.
    fn new(directory: &Path, bytes: u64) -> Result<Bench, Fault> {
        if !directory.is_dir() {
            let text = format!("measuring files: '{}' is no directory", directory.display());
            return Err(
                Fault::new(FaultKind::NotFound, text).hint("name a directory on the file system to be measured")
            );
        }
        let memory = touched(bytes)?;
        let root = directory.join(format!(".hyperslab-calibrate-{}", std::process::id()));
        let bell = Bell::default();
        let names = Directory::new(&root);
        let names = Directory::new(names.resolve()?);
        names.make("")?;
        let mut store = PosixStore::new(bell.clone());
        store.enter([Root::new(names.full(""))].into());
        store.sends_on(false);
        store.reads_by_calls();
        Ok(Bench { store, bell, names, memory, ticket: 0 })
    }

    /// How large files may be, so that a few rounds fit into the time also where files are slow \[B\].
    fn affordable(&mut self, effort: Effort) -> Result<u64, Fault> {
        let probe = PROBE_BYTES.min(effort.bytes);
        let begun = Instant::now();
        self.synced(probe)?;
        let rate = probe as f64 / begun.elapsed().as_secs_f64();
        let share = (rate * effort.time.as_secs_f64() / SHARES) as u64;
        let halved = std::iter::successors(Some(effort.bytes), |bytes| Some(bytes / 2));
        Ok(halved.into_iter().find(|&bytes| bytes <= share.max(probe)).unwrap_or(probe))
    }

    fn object(&self) -> Object {
        "data".into()
    }

    /// Lets the store close its files, since one that is removed while it is open keeps its pages, and its directory on
    /// file systems of a network.
    fn let_go(&mut self) -> Result<(), Fault> {
        self.store.release();
        // It is over when the store has come so far.
        self.submit(Request::Sync { below: [].into() });
        self.wait(1)
    }

    /// Makes a file of this length in place of the last one, whose pages are free again.
    fn fresh(&mut self, bytes: u64) -> Result<(), Fault> {
        self.let_go()?;
        self.names.remove("data")?;
        self.names.create("data", &[], bytes)
    }

    /// Carries out requests; gives the time of one \[s\].
    fn moved(&mut self, how: How) -> Result<f64, Fault> {
        let begun = Instant::now();
        for number in 0..how.count {
            let request = self.request(how, number);
            self.submit(request);
            if !how.at_once {
                self.wait(1)?;
            }
        }
        if how.at_once {
            self.wait(how.count)?;
        }
        Ok(begun.elapsed().as_secs_f64() / how.count as f64)
    }

    fn request(&self, how: How, number: u64) -> Request {
        let runs = how.request / how.run;
        let region = Region::whole(&[runs, how.run]);
        let element = ElementType::native(Kind::UInt8);
        let apart = if runs > 1 && how.apart == 1 { 2 * how.run } else { how.run };
        let place = if how.kept { 0 } else { number };
        let here = View::held(&region, (place * runs * apart) as i64, &[apart as i64, 1], element);
        let there =
            View::held(&region, (number * how.request * how.apart) as i64, &[(how.run * how.apart) as i64, 1], element);
        let (here, there) = (Arc::new(here), Arc::new(there));
        let moves = Moves { region, memory: self.memory.clone(), here, there };
        let (object, direct) = (self.object(), how.direct);
        if how.write {
            Request::Write { object, moves, direct, durability: Durability::Soon }
        } else {
            Request::Read { object, moves, direct }
        }
    }

    fn submit(&mut self, request: Request) {
        self.ticket += 1;
        self.store.submit(self.ticket, request);
    }

    fn wait(&mut self, mut count: u64) -> Result<(), Fault> {
        let mut done = Vec::new();
        while count > 0 {
            self.store.poll(&mut done);
            count = count.saturating_sub(done.len() as u64);
            for (_, result) in done.drain(..) {
                if result? == Outcome::Absent {
                    return Err(Fault::new(FaultKind::NotFound, "measuring: somebody has removed the file"));
                }
            }
            if count > 0 {
                self.bell.wait(Duration::from_secs(1));
            }
        }
        Ok(())
    }

    /// Writes a fresh file, or reads it again.
    fn cached(&mut self, how: How) -> Result<f64, Fault> {
        self.fresh(how.bytes())?;
        if how.write {
            return self.moved(how);
        }
        // All of it, so that no range is a hole.
        let request = if how.apart > 1 { how.request * how.apart } else { 1 << 20 };
        self.moved(How::cached(true, request, how.bytes().max(request)))?;
        self.moved(how)
    }

    fn sync(&mut self) -> Result<(), Fault> {
        self.submit(Request::Sync { below: [self.object()].into() });
        self.wait(1)
    }

    fn synced(&mut self, bytes: u64) -> Result<f64, Fault> {
        self.fresh(bytes)?;
        self.moved(How::cached(true, bytes.min(4 << 20), bytes))?;
        let begun = Instant::now();
        self.sync()?;
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Reads what the cache has not.
    fn cold(&mut self, how: How) -> Result<f64, Fault> {
        self.fresh(how.bytes())?;
        self.moved(How { write: true, ..how })?;
        self.sync()?;
        self.dropped()?;
        self.moved(how)
    }

    /// Lets the cache forget the file.
    fn dropped(&self) -> Result<(), Fault> {
        let path = self.names.full("data");
        let file = File::open(&path).map_err(|error| crate::posix_fault("opening", Path::new(&path), &error))?;
        // SAFETY: the descriptor belongs to the open file; no memory is touched.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        Ok(())
    }

    /// Past the cache: writes into reserved space, as transfers do, or reads what lies on the device.
    fn direct(&mut self, how: How) -> Result<f64, Fault> {
        self.fresh(how.bytes())?;
        self.names.reserve("data", how.bytes())?;
        if how.write {
            return self.moved(how);
        }
        self.moved(How { write: true, at_once: true, ..how })?;
        self.sync()?;
        self.dropped()?;
        self.moved(how)
    }

    /// Makes, opens, renames and removes some files; gives the time of one such step for one file \[s\].
    fn names(&self, step: usize) -> Result<f64, Fault> {
        let all = |one: &dyn Fn(String, String) -> Result<(), Fault>| {
            let begun = Instant::now();
            (0..NAMES).try_for_each(|number| one(format!("a{number}"), format!("b{number}")))?;
            Ok::<f64, Fault>(begun.elapsed().as_secs_f64() / NAMES as f64)
        };
        let seconds = [
            all(&|a, _| self.names.create(&a, &[], NAMED_BYTES))?,
            all(&|a, _| self.names.read_prefix(&a, 1).map(|_| ()))?,
            all(&|a, b| self.names.rename(&a, &b))?,
            all(&|_, b| self.names.remove(&b))?,
        ];
        Ok(seconds[step])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_measures_and_leaves_nothing_behind() {
        let place = std::env::temp_dir().join(format!("hyperslab-measured-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        let effort = Effort { time: Duration::ZERO, bytes: 4 << 20 };
        let series = files(&place, effort, &mut || false).unwrap();
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        for kernel in [
            "write",
            "read",
            "write-kept",
            "write-ranges",
            "read-ranges",
            "cold",
            "direct-write",
            "direct-read",
            "sync",
            "create",
            "open",
            "rename",
            "remove",
        ] {
            let mut of = series.iter().filter(|series| series.kernel == kernel).peekable();
            assert!(of.peek().is_some(), "{kernel}");
            // Three rounds, fewer while the disk is busy with others.
            let taken = |series: &Series| (1..=3).contains(&series.seconds.len());
            assert!(of.all(|series| taken(series) && series.seconds.iter().all(|&s| s > 0.0)), "{kernel}");
        }
        let stopped = files(&place, effort, &mut || true).unwrap_err();
        assert_eq!(stopped.kind, FaultKind::Interrupted);
        std::fs::remove_dir(&place).unwrap();
        let lost = files(&place, effort, &mut || false).unwrap_err();
        assert_eq!(lost.kind, FaultKind::NotFound);
    }
}
