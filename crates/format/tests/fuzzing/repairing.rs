//! A file in memory whose checksums are made right where they are wrong: otherwise what a fuzzer changes would be found by
//! them, and by nothing behind them.

use hyperslab_format::Error;
use hyperslab_format::hdf5::MetadataSource;
use std::cell::{Cell, RefCell};

#[path = "../../src/hdf5/lookup3.rs"]
#[allow(dead_code, unreachable_pub, reason = "one function is used here")]
mod lookup3;

/// Checksums that are repaired of one file: as many blocks are damaged by few changes.
const REPAIRS_MAX: u32 = 64;
/// Bytes of which checksums are taken to find where one is stored.
const SEARCHED_BYTES_MAX: usize = 1 << 18;
/// Most bytes of a block before its checksum, where that is none of the end of the block.
const HEAD_BYTES_MAX: usize = 48;

/// The file.
pub(super) struct RepairingFile {
    pub(super) bytes: RefCell<Vec<u8>>,
    read: Cell<u64>,
    repairs: Cell<u32>,
}

impl MetadataSource for RepairingFile {
    fn length(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    fn read(&self, at: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        self.read.set(self.read.get() + bytes as u64);
        // Whoever asks for bytes that the file does not have was told its length.
        Ok(self.bytes.borrow()[at as usize..at as usize + bytes].to_vec())
    }
}

impl RepairingFile {
    pub(super) fn new(bytes: &[u8]) -> RepairingFile {
        RepairingFile { bytes: RefCell::new(bytes.to_vec()), read: Cell::new(0), repairs: Cell::new(0) }
    }

    /// What is answered once no checksum is wrong; what is read for it is limited.
    pub(super) fn answered<T>(&self, ask: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            self.read.set(0);
            let answer = ask();
            let most = 16 * self.length() + (16 << 20);
            assert!(self.read.get() <= most, "{} B are read of {}", self.read.get(), self.length());
            match answer {
                Err(error) if self.is_repaired(&error) => {}
                other => return other,
            }
        }
    }

    /// Whether it was a checksum that was wrong, and is not any more.
    pub(super) fn is_repaired(&self, error: &Error) -> bool {
        let number = |text: &str| u32::from_str_radix(text.split_once("checksum 0x")?.1.get(..8)?, 16).ok();
        let at = error.expected().rsplit_once("for the block at byte ").and_then(|(_, at)| at.parse::<usize>().ok());
        let (Some(at), Some(stored), Some(computed)) = (at, number(error.expected()), number(error.found())) else {
            return false;
        };
        self.repairs.set(self.repairs.get() + 1);
        let mut bytes = self.bytes.borrow_mut();
        match place(&bytes, at, stored, computed).filter(|_| self.repairs.get() <= REPAIRS_MAX) {
            Some(place) => bytes[place..place + 4].copy_from_slice(&computed.to_le_bytes()),
            None => return false,
        }
        true
    }
}

/// Where the checksum of a block is stored.
fn place(bytes: &[u8], at: usize, stored: u32, computed: u32) -> Option<usize> {
    let block = bytes.get(at..)?;
    let mut left = SEARCHED_BYTES_MAX;
    let all = block.windows(4).enumerate().skip(4).filter(|(_, window)| *window == stored.to_le_bytes());
    for (end, _) in all.clone() {
        if lookup3::lookup3(&block[..end]) == computed {
            return Some(at + end);
        }
        left = left.checked_sub(end)?;
    }
    // Of blocks of a heap it is in their head, and counts as zero there.
    let head = all.take_while(|(end, _)| *end < HEAD_BYTES_MAX).last();
    head.map(|(end, _)| at + end)
}
