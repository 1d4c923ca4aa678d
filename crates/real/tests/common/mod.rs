//! What tests of the store share: a store that is waited for, elements in memory, places to test in, seeds.
#![allow(dead_code, unreachable_pub)] // each test uses its part

use hyperslab_layout::{ElementType, Kind, Region, View};
use hyperslab_pack::Memory;
use hyperslab_real::PosixStore;
use hyperslab_real::wire::Bell;
use hyperslab_world::{Fault, Moves, Outcome, Request, Root, Store, Ticket};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub const BYTE: ElementType = ElementType::native(Kind::UInt8);

/// A store, and how to wait for it.
pub struct Waited {
    pub store: PosixStore,
    bell: Bell,
    next: Ticket,
}

impl Waited {
    pub fn new(root: &Path) -> Waited {
        let bell = Bell::default();
        let mut store = PosixStore::new(bell.clone());
        store.enter([Root::new(root.to_string_lossy())].into());
        Waited { store, bell, next: 0 }
    }

    /// Submits all at once; gives tickets, counted from 0, and outcomes in the order in which they came.
    pub fn all(&mut self, requests: Vec<Request>) -> Vec<(Ticket, Result<Outcome, Fault>)> {
        let (first, count) = (self.next, requests.len());
        for request in requests {
            self.store.submit(self.next, request);
            self.next += 1;
        }
        let mut done = Vec::new();
        while done.len() < count {
            self.store.poll(&mut done);
            if done.len() < count && !self.bell.wait(Duration::from_secs(60)) {
                panic!("only {} of {count} requests ended", done.len());
            }
        }
        done.into_iter().map(|(ticket, result)| (ticket - first, result)).collect()
    }

    /// Submits all at once, and expects that nothing fails.
    pub fn well(&mut self, requests: Vec<Request>) {
        for (ticket, result) in self.all(requests) {
            match result {
                Ok(Outcome::Done(_)) => {}
                other => panic!("request {ticket}: {other:?}"),
            }
        }
    }

    /// Submits one.
    pub fn one(&mut self, request: Request) -> Result<Outcome, Fault> {
        self.all(vec![request]).remove(0).1
    }
}

/// Bytes of a file, in rows, and the same bytes in memory.
#[derive(Clone, Debug)]
pub struct Rows {
    pub offset: u64,
    pub rows: u64,
    /// Bytes of a row.
    pub length: u64,
    /// From row to row in the file.
    pub step: u64,
    /// Where the first row begins in memory, and from row to row.
    pub base: u64,
    pub memory_step: u64,
}

impl Rows {
    /// One run.
    pub fn run(offset: u64, length: u64, base: u64) -> Rows {
        Rows { offset, rows: 1, length, step: length, base, memory_step: length }
    }

    pub fn memory_bytes(&self) -> u64 {
        self.base + (self.rows - 1) * self.memory_step + self.length
    }

    pub fn moves(&self, memory: &Memory) -> Moves {
        let region = Region::whole(&[self.rows, self.length]);
        let view = |base: u64, step: u64| Arc::new(View::held(&region, base as i64, &[step as i64, 1], BYTE));
        let (here, there) = (view(self.base, self.memory_step), view(self.offset, self.step));
        Moves { region: region.clone(), memory: memory.clone(), here, there }
    }

    /// Ranges of memory and file, row by row.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let at = |start: u64, length: u64| start as usize..(start + length) as usize;
        let rows = self.clone();
        (0..self.rows).map(move |row| {
            (at(rows.base + row * rows.memory_step, rows.length), at(rows.offset + row * rows.step, rows.length))
        })
    }
}

/// A directory that is removed in the end.
pub struct Place(pub PathBuf);

impl Place {
    /// On the disk that holds the target directory, which is a real one.
    pub fn on_disk(name: &str) -> Place {
        Place::below(Path::new(env!("CARGO_TARGET_TMPDIR")), name)
    }

    /// In memory, where there is such a file system.
    pub fn in_memory(name: &str) -> Option<Place> {
        let shared = Path::new("/dev/shm");
        if !shared.is_dir() {
            println!("skipped on tmpfs: there is no /dev/shm");
            return None;
        }
        Some(Place::below(shared, name))
    }

    fn below(parent: &Path, name: &str) -> Place {
        let path = parent.join(format!("hyperslab-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Says which seed to run again when a test panics.
pub struct Told(pub u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failing case: run again with HYPERSLAB_SEED={}", self.0);
        }
    }
}

/// The seeds to try: the one that HYPERSLAB_SEED names, or `count` of them, HYPERSLAB_TIMES as many where it is set: how long
/// a seed takes differs from test to test, so one number for all would suit none.
pub fn seeds(count: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("HYPERSLAB_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count * number("HYPERSLAB_TIMES").unwrap_or(1),
    }
}
