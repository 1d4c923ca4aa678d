//! Bytes of registered memory on their way to and from files.
//!
//! Registered memory is never a Rust slice outside of one system call or one checksum, because a peer or the kernel
//! may touch it at any time; this is the one place where the store makes slices of it.

use hyperslab_pack::{CopyError, Memory};
use hyperslab_world::{Fault, FaultKind, Moves};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are written or read and checksummed while they are in the cache.
pub(crate) const CHECKED_BLOCK_BYTES: u64 = 256 << 10;
/// Objects whose bytes are put in order in memory that is kept for the next one \[B\].
const KEPT_BYTES_MAX: u64 = 8 << 20;

/// A contiguous run of registered memory.
#[derive(Clone, Copy)]
pub(super) struct Source {
    address: *mut u8,
    bytes: usize,
}

/// The address that the kernel is given.
fn host_address(memory: &Memory) -> Result<usize, Fault> {
    memory.host_address().ok_or_else(|| Fault::of_copy(CopyError::OutOfReach(memory.kind()), None))
}

impl Source {
    /// The `bytes` bytes at `offset` of the memory of `moves`, if they lie inside it.
    pub(super) fn new(moves: &Moves, offset: i64, bytes: u64) -> Result<Source, Fault> {
        let inside = offset >= 0 && moves.memory.holds(offset as u64, offset as u64 + bytes);
        if !inside {
            let text = format!(
                "bytes {offset}..{} lie outside of an array of {} B",
                offset + bytes as i64,
                moves.memory.bytes()
            );
            return Err(Fault::new(FaultKind::Invalid, text).hint("the array is smaller than its declared part"));
        }
        let address = host_address(&moves.memory)?;
        Ok(Source { address: (address + offset as usize) as *mut u8, bytes: bytes as usize })
    }

    /// The first bytes of a memory, which must outlive the value.
    pub(super) fn of_memory(memory: &Memory, bytes: u64) -> Result<Source, Fault> {
        let inside = bytes <= memory.bytes();
        let lies = || Fault::new(FaultKind::Invalid, format!("{bytes} B do not fit into {} B", memory.bytes()));
        let address = host_address(memory)?;
        inside.then_some(Source { address: address as *mut u8, bytes: bytes as usize }).ok_or_else(lies)
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

    /// A run that was given to the system, which must be there still.
    pub(super) fn of_piece(piece: &libc::iovec) -> Source {
        Source { address: piece.iov_base.cast(), bytes: piece.iov_len }
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
    pub(super) fn copy_from(&self, buffer: &[u8]) {
        assert_eq!(buffer.len(), self.bytes);
        // SAFETY: the run was checked to lie inside the memory, which the request keeps alive; while the ticket is out,
        // the store alone writes to it. The buffer is not part of it.
        unsafe { std::ptr::copy_nonoverlapping(buffer.as_ptr(), self.address, self.bytes) }
    }

    /// Overwrites the run with what lies at an offset of other memory, which must not be part of it; `None` where that ends before.
    pub(super) fn copy_out_of(&self, memory: &Memory, offset: u64) -> Option<()> {
        let address = memory.holds(offset, offset + self.bytes as u64).then(|| memory.host_address())??;
        // SAFETY: both ranges were checked to lie inside memories that are kept alive; while the ticket is out, the store alone
        // writes to the run.
        unsafe { std::ptr::copy_nonoverlapping((address + offset as usize) as *const u8, self.address, self.bytes) }
        Some(())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the run was checked to lie inside the memory, which the request keeps alive; the contract of the
        // store says that nobody changes it before the ticket returns.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
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

/// Memory of the store's own between arrays and files, kept from one request to the next, because fresh pages are slow.
#[derive(Default)]
pub(super) struct Scratch {
    /// Bytes of short runs, one behind the other.
    pub(super) staged: Vec<u8>,
    /// Bytes of an object that is put in order.
    whole: Option<Memory>,
}

impl Scratch {
    /// Memory for all bytes of an object.
    pub(super) fn whole(&mut self, bytes: u64) -> Result<Memory, Fault> {
        if let Some(kept) = self.whole.as_ref().filter(|kept| kept.bytes() >= bytes) {
            return Ok(kept.clone());
        }
        let made =
            Memory::allocate(bytes).map_err(|_| Fault::no_memory(format_args!("{bytes} B that are put in order")))?;
        self.whole = (bytes <= KEPT_BYTES_MAX).then(|| made.clone());
        Ok(made)
    }
}
