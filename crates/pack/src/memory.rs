//! Registered memory: what copies, messages and files read from and write to.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// Alignment of allocated memory \[B\]: a page, which direct I/O asks for.
const ALIGNMENT: usize = 4096;

/// From this size on \[B\], memory asks for huge pages: strided copies visit a new page so often that translating
/// addresses costs more than moving the bytes, and first touches cost a fault per page.
const HUGE: usize = 4 << 20;

/// Where the bytes of a memory are, and so who can touch them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum MemoryKind {
    /// In the memory of this host: the processor, the kernel and neighbours can.
    Host,
    /// In that of an accelerator: nobody here can, yet.
    Device,
    /// Nowhere: in a simulation, in which only lengths matter.
    Imagined,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryKind::Host => "host",
            MemoryKind::Device => "device",
            MemoryKind::Imagined => "imagined",
        })
    }
}

/// Registered memory: where it is, a base address, a length, and what keeps it alive. The address is given to those who ask
/// for one of this host, and only if it is one ([`Memory::host_address`]).
///
/// It never turns into a Rust slice, because peers, the kernel or MPI may touch it at any time; bytes go in and out
/// by copying. Cloning gives another handle to the same bytes, which live until the last handle is dropped. Who
/// reads what another handle writes at the same moment gets some mixture of old and new bytes: callers order their
/// accesses, as the steps of a program do.
#[derive(Clone)]
pub struct Memory(Arc<Region>);

struct Region {
    /// Of this host, or what a device calls so.
    address: *mut u8,
    kind: MemoryKind,
    bytes: u64,
    keep: Keep,
}

/// What must happen, or merely exist, for the bytes to stay where they are.
enum Keep {
    /// Allocated with this base and layout by the global allocator.
    Allocated(*mut u8, Layout),
    /// Owned by somebody else, who is kept alive by this value.
    Foreign { _owner: Box<dyn Any + Send + Sync> },
    /// These memories have the bytes from here to there, and what lies between belongs to somebody else.
    Together { ranges: Box<[(u64, u64)]>, _memories: Box<[Memory]> },
    /// No bytes, nothing to keep.
    Nothing,
}

// SAFETY: a region is an address that is only ever accessed through raw copies whose ordering the callers answer for
// (see `Memory`); what it owns is either plain allocated bytes or `Send`.
unsafe impl Send for Region {}
// SAFETY: as above; no method hands out a reference to the bytes, and the kept owner is `Sync`.
unsafe impl Sync for Region {}

impl Region {
    /// The bytes as a vector, if they were allocated as one.
    fn into_vec(mut self) -> Result<Vec<u8>, Region> {
        let Keep::Allocated(base, layout) = self.keep else { return Err(self) };
        if base != self.address || layout.align() != 1 {
            return Err(self);
        }
        self.keep = Keep::Nothing;
        // SAFETY: `base` came from the global allocator, with the layout of so many bytes one by one, of which `bytes` have
        // a value: all are zero or those of a vector at first. Nobody else frees them now.
        Ok(unsafe { Vec::from_raw_parts(base, self.bytes as usize, layout.size()) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Keep::Allocated(base, layout) = self.keep {
            // SAFETY: `base` came from the global allocator with exactly this layout, and this is the last handle.
            unsafe { dealloc(base, layout) }
        }
    }
}

impl Memory {
    /// New memory of `bytes` bytes, all zero, at a multiple of 4096.
    ///
    /// Large memories cost no time until touched: the operating system supplies zeroed pages one by one.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the allocator refuses, or when `bytes` is more than this machine can address.
    pub fn allocate(bytes: u64) -> Result<Memory, OutOfMemory> {
        if bytes == 0 {
            return Ok(Memory::nothing());
        }
        // Asking the allocator for page alignment makes it write the zeros itself, touching every page; one page
        // more at ordinary alignment keeps the lazy zeros of fresh pages.
        let refused = || OutOfMemory { bytes };
        let size = usize::try_from(bytes).ok().and_then(|b| b.checked_add(ALIGNMENT)).ok_or_else(refused)?;
        let layout = Layout::from_size_align(size, 16).map_err(|_| refused())?;
        // SAFETY: the layout has a size above zero.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            return Err(refused());
        }
        let skip = base.align_offset(ALIGNMENT);
        // SAFETY: `skip` is less than ALIGNMENT, by which the allocation is longer than `bytes`.
        let address = unsafe { base.add(skip) };
        if size >= HUGE {
            ask_for_huge_pages(address, size - ALIGNMENT);
        }
        Ok(Memory(Arc::new(Region { address, kind: MemoryKind::Host, bytes, keep: Keep::Allocated(base, layout) })))
    }

    /// A user's array: `bytes` bytes at `address`; `keep` is dropped with the last handle.
    ///
    /// # Safety
    /// The bytes must stay allocated, readable and writable until `keep` is dropped, and until then no Rust reference
    /// to them may be used while this crate accesses them. Memory that is only read may be read-only.
    pub unsafe fn foreign(address: *mut u8, bytes: u64, keep: Box<dyn Any + Send + Sync>) -> Memory {
        Memory(Arc::new(Region { address, kind: MemoryKind::Host, bytes, keep: Keep::Foreign { _owner: keep } }))
    }

    /// An array in the memory of a device: `bytes` bytes at what the device calls `address`; `keep` is dropped with the last
    /// handle. Nobody here touches it.
    pub fn on_device(address: u64, bytes: u64, keep: Box<dyn Any + Send + Sync>) -> Memory {
        let address = ptr::without_provenance_mut(address as usize);
        let keep = Keep::Foreign { _owner: keep };
        Memory(Arc::new(Region { address, kind: MemoryKind::Device, bytes, keep }))
    }

    /// Memory of which only the length is known \[B\]: what takes part in a simulation without payloads.
    pub fn imagined(bytes: u64) -> Memory {
        Memory(Arc::new(Region { address: ptr::null_mut(), kind: MemoryKind::Imagined, bytes, keep: Keep::Nothing }))
    }

    /// New memory of `bytes` bytes, all zero, that [`Memory::into_vec`] turns into a vector without copying them.
    ///
    /// # Errors
    /// As [`Memory::allocate`].
    pub fn for_vec(bytes: u64) -> Result<Memory, OutOfMemory> {
        if bytes == 0 {
            return Ok(Memory::nothing());
        }
        let refused = || OutOfMemory { bytes };
        let size = usize::try_from(bytes).map_err(|_| refused())?;
        let layout = Layout::array::<u8>(size).map_err(|_| refused())?;
        // SAFETY: the layout has a size above zero.
        let base = unsafe { alloc_zeroed(layout) };
        if base.is_null() {
            return Err(refused());
        }
        Ok(Memory(Arc::new(Region {
            address: base,
            kind: MemoryKind::Host,
            bytes,
            keep: Keep::Allocated(base, layout),
        })))
    }

    /// The bytes as a vector: without copying them, where they were made for that or out of one, and this is the only
    /// handle.
    pub fn into_vec(self) -> Vec<u8> {
        match Arc::try_unwrap(self.0).map(Region::into_vec) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(region)) => Memory(Arc::new(region)).copied(),
            Err(shared) => Memory(shared).copied(),
        }
    }

    fn copied(&self) -> Vec<u8> {
        self.to_vec(0, self.bytes())
    }

    /// Takes over the bytes of a vector without copying them.
    pub fn from_vec(bytes: Vec<u8>) -> Memory {
        let (length, capacity) = (bytes.len() as u64, bytes.capacity());
        let Ok(layout) = Layout::array::<u8>(capacity) else {
            unreachable!("a vector's capacity is a valid layout");
        };
        if capacity == 0 {
            return Memory::nothing();
        }
        let base = std::mem::ManuallyDrop::new(bytes).as_mut_ptr();
        Memory(Arc::new(Region {
            address: base,
            kind: MemoryKind::Host,
            bytes: length,
            keep: Keep::Allocated(base, layout),
        }))
    }

    /// Several memories of this host as one, which begins at the lowest address of them all and keeps them alive. What lies
    /// between them cannot be accessed. `None` where some are elsewhere.
    pub fn together(memories: &[Memory]) -> Option<Memory> {
        let mut full: Vec<&Memory> = memories.iter().filter(|memory| memory.bytes() > 0).collect();
        if full.iter().any(|memory| memory.kind() != MemoryKind::Host) {
            return None;
        }
        let address = |memory: &Memory| memory.pointer().addr();
        full.sort_unstable_by_key(|memory| address(memory));
        let Some(lowest) = full.first() else { return Some(Memory::nothing()) };
        let lowest = address(lowest);
        let mut ranges: Vec<(u64, u64)> = Vec::with_capacity(full.len());
        for memory in &full {
            let low = (memory.pointer().expose_provenance() - lowest) as u64;
            let high = low + memory.bytes();
            match ranges.last_mut() {
                // Views of one array overlap.
                Some(last) if low <= last.1 => last.1 = last.1.max(high),
                _ => ranges.push((low, high)),
            }
        }
        let (address, bytes) = (ptr::with_exposed_provenance_mut(lowest), ranges.last().map_or(0, |r| r.1));
        let keep = Keep::Together { ranges: ranges.into(), _memories: memories.into() };
        Some(Memory(Arc::new(Region { address, kind: MemoryKind::Host, bytes, keep })))
    }

    /// Whether these bytes are its own.
    pub fn holds(&self, low: u64, high: u64) -> bool {
        match &self.0.keep {
            Keep::Together { ranges, .. } if low < high => {
                let before = ranges.partition_point(|range| range.0 <= low);
                before.checked_sub(1).is_some_and(|last| high <= ranges[last].1)
            }
            _ => high <= self.0.bytes,
        }
    }

    fn nothing() -> Memory {
        let address = ptr::without_provenance_mut(ALIGNMENT);
        Memory(Arc::new(Region { address, kind: MemoryKind::Host, bytes: 0, keep: Keep::Nothing }))
    }

    /// Copies `bytes` bytes from `offset` on into a new vector.
    ///
    /// # Panics
    /// When the range does not lie within the memory.
    pub fn to_vec(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let length = self.check(offset, bytes);
        let mut copied = Vec::with_capacity(length);
        // SAFETY: the range was checked, the vector has the capacity, and the two cannot overlap; the length is set
        // after exactly that many bytes were written.
        unsafe {
            ptr::copy_nonoverlapping(self.pointer().add(offset as usize), copied.as_mut_ptr(), length);
            copied.set_len(length);
        }
        copied
    }

    /// Overwrites the bytes from `offset` on.
    ///
    /// # Panics
    /// When they do not fit within the memory.
    pub fn write_bytes(&self, offset: u64, bytes: &[u8]) {
        let length = self.check(offset, bytes.len() as u64);
        // SAFETY: the range was checked; `copy` allows that the source lies in the same memory.
        unsafe { ptr::copy(bytes.as_ptr(), self.pointer().add(offset as usize), length) }
    }

    /// Length \[B\].
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Where its bytes are.
    pub fn kind(&self) -> MemoryKind {
        self.0.kind
    }

    /// Base address as a number, for peers and the kernel, if it is memory of this host. A multiple of 4096 of what
    /// [`Memory::allocate`] made.
    pub fn host_address(&self) -> Option<usize> {
        (self.0.kind == MemoryKind::Host).then(|| self.0.address.addr())
    }

    /// The same for those who have checked that it is memory of this host.
    pub(crate) fn pointer(&self) -> *mut u8 {
        debug_assert_eq!(self.0.kind, MemoryKind::Host);
        self.0.address
    }

    fn check(&self, offset: u64, bytes: u64) -> usize {
        let end = offset.checked_add(bytes);
        assert!(self.0.kind == MemoryKind::Host, "access to {} memory", self.0.kind);
        assert!(
            end.is_some_and(|end| self.holds(offset, end)),
            "access to {bytes} bytes at offset {offset} of a memory of {} bytes",
            self.0.bytes
        );
        bytes as usize
    }
}

/// A hints, which the system may refuse: then everything works as well, only slower.
fn ask_for_huge_pages(address: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: the range is part of one allocation and begins at a page; this advice changes no byte of it.
    unsafe {
        libc::madvise(address.cast(), bytes, libc::MADV_HUGEPAGE);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (address, bytes);
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} bytes of {} at {:#x})", self.bytes(), self.kind(), self.0.address.addr())
    }
}

/// The allocator would not give that much memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory {
    /// How much was asked for \[B\].
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot allocate a buffer of {} bytes: the system refused; hint: give a smaller memory budget",
            self.bytes
        )
    }
}

impl Error for OutOfMemory {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CopyError;

    #[test]
    fn bytes_of_a_vector_come_back_without_a_copy_as_long_as_nobody_else_has_them() {
        let memory = Memory::for_vec(100).unwrap();
        memory.write_bytes(98, &[1, 2]);
        let at = memory.host_address().unwrap();
        let bytes = memory.into_vec();
        assert_eq!((bytes.as_ptr().addr(), bytes.len(), &bytes[97..]), (at, 100, &[0, 1, 2][..]));
        let memory = Memory::from_vec(bytes);
        let other = memory.clone();
        let copied = memory.into_vec();
        assert_ne!(copied.as_ptr().addr(), at);
        assert_eq!(copied, [vec![0; 98], vec![1, 2]].concat());
        let bytes = other.into_vec();
        assert_eq!(bytes.as_ptr().addr(), at);
        // At a page, memory is no vector's.
        let aligned = Memory::allocate(3).unwrap();
        aligned.write_bytes(0, &[7, 8, 9]);
        assert_eq!(aligned.into_vec(), [7, 8, 9]);
        assert_eq!(Memory::for_vec(0).unwrap().into_vec(), []);
    }

    #[test]
    fn allocated_memory_is_aligned_and_zero() {
        for bytes in [0, 1, 7, 4096, 100_000, 3 << 20] {
            let memory = Memory::allocate(bytes).unwrap();
            assert_eq!(memory.bytes(), bytes);
            assert_eq!(memory.host_address().unwrap() % 4096, 0);
            assert!(memory.to_vec(0, bytes).iter().all(|&b| b == 0));
        }
    }

    #[test]
    fn too_much_is_an_error() {
        assert_eq!(Memory::allocate(u64::MAX).unwrap_err(), OutOfMemory { bytes: u64::MAX });
        let message = Memory::allocate(1 << 62).unwrap_err().to_string();
        assert!(message.contains("4611686018427387904") && message.contains("hint:"), "{message}");
    }

    #[test]
    fn handles_share_bytes() {
        let memory = Memory::from_vec(vec![1, 2, 3, 4]);
        let other = memory.clone();
        memory.write_bytes(1, &[9, 8]);
        drop(memory);
        assert_eq!(other.to_vec(0, 4), [1, 9, 8, 4]);
        assert_eq!(Memory::from_vec(Vec::new()).to_vec(0, 0), []);
    }

    #[test]
    fn foreign_memory_lives_as_long_as_its_handles() {
        let owner = Arc::new(());
        let mut array = vec![5u8; 16];
        // SAFETY: `array` outlives both handles and is not used while they exist.
        let memory = unsafe { Memory::foreign(array.as_mut_ptr(), 16, Box::new(Arc::clone(&owner))) };
        let other = memory.clone();
        drop(memory);
        assert_eq!(Arc::strong_count(&owner), 2);
        other.write_bytes(15, &[6]);
        drop(other);
        assert_eq!(Arc::strong_count(&owner), 1);
        assert_eq!(array[14..], [5, 6]);
    }

    #[test]
    fn memories_together_are_accessed_where_they_are() {
        let whole = Memory::from_vec((0..100).collect());
        // SAFETY: these are parts of memory that is kept alive, and no reference to it exists.
        let part = |at: usize, bytes| unsafe {
            Memory::foreign(whole.pointer().wrapping_add(at), bytes, Box::new(whole.clone()))
        };
        let together = Memory::together(&[part(60, 10), part(20, 8), part(24, 16), part(70, 5), part(20, 0)]).unwrap();
        assert_eq!((together.host_address().unwrap(), together.bytes()), (whole.host_address().unwrap() + 20, 55));
        for low in 0..60 {
            for high in low..60 {
                let inside = |from, to| from <= low && high <= to;
                let expected = (low == high && high <= 55) || inside(0, 20) || inside(40, 55);
                assert_eq!(together.holds(low, high), expected, "{low}..{high}");
            }
        }
        drop(whole);
        assert_eq!(together.to_vec(45, 3), [65, 66, 67]);
        assert_eq!(Memory::together(&[]).unwrap().bytes(), 0);
    }

    #[test]
    #[should_panic(expected = "access to 1 bytes at offset 2 of a memory of 5 bytes")]
    fn what_lies_between_memories_cannot_be_accessed() {
        let whole = Memory::from_vec(vec![0; 5]);
        // SAFETY: as above.
        let part = |at: usize| unsafe { Memory::foreign(whole.pointer().wrapping_add(at), 2, Box::new(whole.clone())) };
        Memory::together(&[part(0), part(3)]).unwrap().to_vec(2, 1);
    }

    #[test]
    #[should_panic(expected = "access to 2 bytes at offset 3 of a memory of 4 bytes")]
    fn reading_past_the_end_panics() {
        Memory::from_vec(vec![0; 4]).to_vec(3, 2);
    }

    #[test]
    fn memory_of_a_device_gives_no_address_and_is_never_touched() {
        let keep = Arc::new(());
        let device = Memory::on_device(0x1234, 64, Box::new(keep.clone()));
        let host = Memory::from_vec(vec![0; 64]);
        assert_eq!((device.kind(), device.host_address()), (MemoryKind::Device, None));
        assert_eq!((host.kind(), host.host_address().is_some()), (MemoryKind::Host, true));
        let nest = hyperslab_layout::Nest::default();
        let byte = hyperslab_layout::ElementType::native(hyperslab_layout::Kind::UInt8);
        let out_of_reach = CopyError::OutOfReach(MemoryKind::Device);
        assert_eq!(crate::copy(&nest, &device, byte, &host, byte), Err(out_of_reach));
        assert_eq!(crate::copy(&nest, &host, byte, &device, byte), Err(out_of_reach));
        assert_eq!(crate::fill(&nest, &device, &[1]), Err(out_of_reach));
        let real = hyperslab_layout::ElementType::native(hyperslab_layout::Kind::Float64);
        assert_eq!(crate::first_nan(&nest, &device, real), Err(out_of_reach));
        assert!(Memory::together(&[host, device.clone()]).is_none());
        drop(device);
        assert_eq!(Arc::strong_count(&keep), 1, "it is let go with the last handle");
    }
}
