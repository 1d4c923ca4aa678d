//! Bytes of registered memory on their way to and from files.
//!
//! Registered memory is never a Rust slice outside of one system call or one checksum, because a peer or the kernel
//! may touch it at any time; this is the one place where the store makes slices of it.

use super::files::Doing;
use hyperslab_pack::{copy, try_for_each_run};
use hyperslab_world::{Fault, FaultKind, Moved, Moves};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are written or read and checksummed while they are in the cache.
pub(super) const CHECKED_BLOCK_BYTES: u64 = 256 << 10;
/// Runs shorter than this are collected before they are written \[B\].
const SHORT_RUN_BYTES: u64 = 64 << 10;
/// What is collected at most \[B\].
const STAGED_BYTES: usize = 1 << 20;

/// A contiguous run of registered memory.
#[derive(Clone, Copy)]
pub(super) struct Source {
    address: *mut u8,
    bytes: usize,
}

impl Source {
    /// The `bytes` bytes at `offset` of the memory of `moves`, if they lie inside it.
    pub(super) fn new(moves: &Moves, offset: i64, bytes: u64) -> Result<Source, Fault> {
        let inside = offset >= 0 && offset as u64 + bytes <= moves.memory.bytes();
        if !inside {
            let text = format!(
                "bytes {offset}..{} lie outside of an array of {} B",
                offset + bytes as i64,
                moves.memory.bytes()
            );
            return Err(Fault::new(FaultKind::Invalid, text).hint("the array is smaller than its declared part"));
        }
        Ok(Source { address: (moves.memory.address() + offset as usize) as *mut u8, bytes: bytes as usize })
    }

    /// The same in blocks of at most this size, with their starts.
    pub(super) fn blocks(self, block: u64) -> impl Iterator<Item = (u64, Source)> {
        (0..self.bytes as u64).step_by(block as usize).map(move |start| {
            let address = self.address.wrapping_add(start as usize);
            (start, Source { address, bytes: (self.bytes - start as usize).min(block as usize) })
        })
    }

    pub(super) fn address(&self) -> *mut u8 {
        self.address
    }

    pub(super) fn length(&self) -> usize {
        self.bytes
    }

    /// A buffer of the store's own; it must outlive the value.
    pub(super) fn of(buffer: &mut [u8]) -> Source {
        Source { address: buffer.as_mut_ptr(), bytes: buffer.len() }
    }

    /// The first `bytes` bytes, and the others.
    pub(super) fn split_at(&self, bytes: usize) -> (Source, Source) {
        let first = self.bytes.min(bytes);
        let rest = Source { address: self.address.wrapping_add(first), bytes: self.bytes - first };
        (Source { address: self.address, bytes: first }, rest)
    }

    /// Whether another run begins where this one ends.
    pub(super) fn joins(&self, next: &Source) -> bool {
        self.address.wrapping_add(self.bytes) == next.address
    }

    /// This run and the one that begins where it ends.
    pub(super) fn joined(&self, next: &Source) -> Source {
        Source { address: self.address, bytes: self.bytes + next.bytes }
    }

    /// The run as the system wants it.
    pub(super) fn iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.address.cast(), iov_len: self.bytes }
    }

    /// Copies the run out; the buffer has its length.
    pub(super) fn copy_to(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(self.as_bytes());
    }

    /// Overwrites the run; the buffer has its length.
    pub(super) fn copy_from(&self, buffer: &mut [u8]) {
        assert_eq!(buffer.len(), self.bytes);
        // SAFETY: the run was checked to lie inside the memory, which the request keeps alive; while the ticket is out,
        // the store alone writes to it. The buffer is not part of it.
        unsafe { std::ptr::copy_nonoverlapping(buffer.as_ptr(), self.address, self.bytes) }
    }

    fn as_bytes(&self) -> &[u8] {
        // SAFETY: the run was checked to lie inside the memory, which the request keeps alive; the contract of the
        // store says that nobody changes it before the ticket returns.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }

    pub(super) fn write_at(&self, file: &File, offset: u64) -> io::Result<()> {
        file.write_all_at(self.as_bytes(), offset)
    }

    pub(super) fn read_at(&self, file: &File, offset: u64) -> io::Result<()> {
        // SAFETY: as in `as_bytes`; while the ticket is out, the store alone writes to the run.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) };
        file.read_exact_at(bytes, offset)
    }
}

/// A CRC-32C over bytes as they pass.
pub(super) struct Sum(crc_fast::Digest);

impl Default for Sum {
    fn default() -> Sum {
        Sum(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi))
    }
}

impl Sum {
    pub(super) fn add(&mut self, run: Source) {
        self.0.update(run.as_bytes());
    }

    pub(super) fn add_bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

/// Writes an object from its start to its end, summing its bytes.
pub(super) struct Sink<'a> {
    file: &'a File,
    doing: Doing<'a>,
    staged: Vec<u8>,
    offset: u64,
    /// The checksum so far, when one is wanted.
    sum: Option<Sum>,
    calls: u64,
    elements_bytes: u64,
}

impl<'a> Sink<'a> {
    pub(super) fn new(file: &'a File, doing: Doing<'a>, summed: bool) -> Sink<'a> {
        let sum = summed.then(Sum::default);
        Sink { file, doing, staged: Vec::new(), offset: 0, sum, calls: 0, elements_bytes: 0 }
    }

    /// Writes elements; where the walk does not go from the start of the object to its end, they are put in order first.
    pub(super) fn moves(&mut self, moves: &Moves) -> Result<(), Fault> {
        let mut next = self.offset as i64;
        let rising = moves.nests().all(|nest| {
            try_for_each_run(&nest, moves.there.element.bytes(), |_, offset, length| {
                let follows = offset == next;
                next = offset + length as i64;
                if follows { Ok(()) } else { Err(()) }
            })
            .is_ok()
        });
        if rising { self.stream(moves) } else { self.stream(&ordered(moves)?) }
    }

    fn stream(&mut self, moves: &Moves) -> Result<(), Fault> {
        for nest in moves.nests() {
            try_for_each_run(&nest, moves.there.element.bytes(), |memory, _, length| {
                let source = Source::new(moves, memory, length)?;
                if length < SHORT_RUN_BYTES {
                    return self.bytes(source.as_bytes());
                }
                self.flush()?;
                source.blocks(CHECKED_BLOCK_BYTES).try_for_each(|(_, block)| {
                    self.sum.iter_mut().for_each(|sum| sum.add(block));
                    self.put(block.as_bytes())
                })
            })?;
        }
        self.elements_bytes += moves.bytes();
        Ok(())
    }

    /// Appends bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.sum.iter_mut().for_each(|sum| sum.add_bytes(bytes));
        if self.staged.len() + bytes.len() > STAGED_BYTES {
            self.flush()?;
        }
        if bytes.len() > STAGED_BYTES {
            return self.put(bytes);
        }
        self.staged.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends the CRC-32C of everything so far, little-endian.
    pub(super) fn checksum(&mut self) -> Result<(), Fault> {
        match self.sum.take() {
            Some(sum) => self.bytes(&sum.value().to_le_bytes()),
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        let staged = std::mem::take(&mut self.staged);
        if !staged.is_empty() {
            self.put(&staged)?;
        }
        self.staged = staged;
        self.staged.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.file
            .write_all_at(bytes, self.offset)
            .map_err(|error| self.doing.failed(&format!(" ({} B at offset {})", bytes.len(), self.offset), &error))?;
        self.offset += bytes.len() as u64;
        self.calls += 1;
        Ok(())
    }

    pub(super) fn finish(&mut self) -> Result<Moved, Fault> {
        self.flush()?;
        let bytes = if self.elements_bytes > 0 { self.elements_bytes } else { self.offset };
        Ok(Moved { bytes, calls: self.calls, content: Vec::new() })
    }
}

/// The same elements in a memory of their own, in the order of the object.
fn ordered(moves: &Moves) -> Result<Moves, Fault> {
    let bytes = moves.bytes();
    let memory = hyperslab_pack::Memory::allocate(bytes)
        .map_err(|_| Fault::new(FaultKind::Storage, format!("no memory to put {bytes} B in order")))?;
    for nest in moves.nests() {
        copy(&nest, &moves.memory, moves.here.element, &memory, moves.there.element)
            .map_err(|error| Fault::new(FaultKind::Invalid, error.to_string()))?;
    }
    Ok(Moves { memory, here: moves.there.clone(), ..moves.clone() })
}
