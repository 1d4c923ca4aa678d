//! Files that were damaged at random are refused or read, without panic and within bounds of time and memory. Checksums are
//! not compared, so that damage gets behind them.
#![allow(clippy::disallowed_methods, reason = "tests may read files and clocks")]

mod old;
#[path = "../../../../tests/hdf5/whole.rs"]
mod whole;

use super::Hdf5File;
use crate::error::Error;
use crate::hdf5::content::{LinkTarget, StoredValue};
use fastrand::Rng;
use std::cell::Cell;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};
use whole::{InMemory, whole};

thread_local! {
    static IGNORED: Cell<bool> = const { Cell::new(false) };
}

/// Whether checksums are ignored in this thread.
pub(super) fn checksums_are_ignored() -> bool {
    IGNORED.get()
}

fn fixtures() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hdf5/fixtures");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
        bytes
    };
    paths.iter().map(read).collect()
}

/// Reads all of a file, up to some objects; how much of it was read without an error.
fn exercise(source: &InMemory) -> Result<u32, Error> {
    let file = Hdf5File::open(source, "x")?;
    let (mut waiting, mut read) = (vec![file.root()], 0);
    let mut left = 40;
    while let Some(at) = waiting.pop().filter(|_| left > 0) {
        left -= 1;
        let file_bytes = source.bytes.len();
        for (_, attribute) in file.attributes_at(source, at).unwrap_or_default() {
            let Ok(attribute) = attribute else { continue };
            let bytes = match &attribute.value {
                StoredValue::Elements(bytes) => bytes.len(),
                StoredValue::Texts(texts) => texts.iter().map(Vec::len).sum(),
                StoredValue::Lists(lists) => lists.iter().map(Vec::len).sum(),
            };
            assert!(bytes <= 4 * file_bytes + (1 << 20), "{bytes} B out of {file_bytes} B");
            read += 1;
        }
        let _ = file.kind_at(source, at);
        for link in file.group_at(source, at).unwrap_or_default() {
            if let LinkTarget::Object(member) = link.member {
                waiting.push(member);
            }
        }
        let Ok(dataset) = file.dataset_at(source, at) else { continue };
        assert!(dataset.fill.as_ref().is_none_or(|fill| fill.len() == dataset.datatype.bytes() as usize));
        let _ = dataset.datatype.element("x");
        read += u32::from(whole(&file, source, &dataset, 1 << 16).is_ok());
    }
    Ok(read)
}

/// A file with a few bytes changed, put in, taken out or exchanged with others.
fn mutated(random: &mut Rng, sources: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.choice(sources).unwrap().clone();
    for _ in 0..random.usize(1..6) {
        // Most of a file is empty: what is not is where damage tells.
        let mut at = random.usize(..bytes.len());
        while bytes[at] == 0 && random.u8(..16) != 0 {
            at = random.usize(..bytes.len());
        }
        match random.u8(..8) {
            0..3 => bytes[at] = random.u8(..),
            3 => bytes[at] ^= 1 << random.u8(..8),
            4 => bytes[at] = *random.choice(&[0, 1, 127, 128, 255, 8, 64][..]).unwrap(),
            5 => {
                let field = *random.choice(&[u64::MAX, 0, 1 << 63, 1 << 32, 800, u64::MAX - 7][..]).unwrap();
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&field.to_le_bytes()[..end - at]);
            }
            6 => {
                // A part of this file or of another one, put over something else.
                let from = random.choice(sources).unwrap();
                let length = random.usize(1..200).min(from.len()).min(bytes.len() - at);
                let begin = random.usize(..=from.len() - length);
                bytes[at..at + length].copy_from_slice(&from[begin..begin + length]);
            }
            _ if random.u8(..4) == 0 => bytes.truncate(at.max(1)),
            _ => {
                let gone = at + random.usize(1..9).min(bytes.len() - at);
                bytes.drain(at..gone);
                bytes.push(0);
            }
        }
    }
    bytes
}

/// How many cases were done, how many files of them were opened, and how much was read in them without an error.
fn run(cases: u64, seed: u64, most: Duration) -> (u64, u64, u64) {
    let (sources, mut random) = (fixtures(), Rng::with_seed(seed));
    let (begin, mut opened, mut done) = (Instant::now(), 0, 0);
    let mut all_read = 0;
    for case in 0..cases {
        IGNORED.set(case % 4 != 0);
        let bytes = mutated(&mut random, &sources);
        let (before, file_bytes) = (Instant::now(), bytes.len() as u64);
        let source = InMemory::new(bytes);
        if let Ok(read) = exercise(&source) {
            (opened, all_read) = (opened + 1, all_read + u64::from(read));
        }
        assert!(before.elapsed() < Duration::from_secs(5), "case {case} of seed {seed}: {:?}", before.elapsed());
        // 40 objects with 6 calls each, none of which may read more than so much.
        assert!(source.read.get() <= 240 * (5 * file_bytes + (1 << 20)), "case {case} of seed {seed}");
        done += 1;
        if begin.elapsed() > most {
            break;
        }
    }
    IGNORED.set(false);
    (done, opened, all_read)
}

#[test]
fn damaged_files_never_panic() {
    for source in fixtures() {
        exercise(&InMemory::new(source)).unwrap();
    }
    let (done, opened, read) = run(4000, 1, Duration::from_secs(8));
    assert!(opened > done / 2, "{opened} of {done}");
    assert!(read > opened, "{read} datasets and attributes of {opened} files");
}

/// By hand: `HYPERSLAB_SEED=2 cargo test --release -p hyperslab-format many_damaged -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn many_damaged_files_never_panic() {
    let seed = std::env::var("HYPERSLAB_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("{:?}: done, opened, and read of these", run(200_000, seed, Duration::from_secs(1200)));
}
