//! Global heaps: where values of variable length lie (section III.E of the specification).

/// Bytes of the head of a collection, and of that of an object in it \[B\].
const HEAD_BYTES: u64 = 16;
/// Bytes that a collection has at least \[B\].
const LEAST_BYTES: u64 = 4096;
/// Bytes after which another collection begins \[B\], and objects.
const FULL_BYTES: u64 = 1 << 20;
const FULL_OBJECTS: u16 = 60_000;

/// Collections, one after another.
#[derive(Default)]
pub(in crate::hdf5) struct Heap {
    /// Those that are full.
    full: Vec<u8>,
    /// Objects of the last one.
    last: Vec<u8>,
    objects: u16,
}

impl Heap {
    /// Keeps a value; gives what stands for it in an element, where the heap begins at this address.
    pub(in crate::hdf5) fn keep(&mut self, value: &[u8], count: u32, heap_at: u64) -> Vec<u8> {
        if count == 0 {
            return [count.to_le_bytes().as_slice(), &[0; 12]].concat();
        }
        if self.objects == FULL_OBJECTS || self.last.len() as u64 > FULL_BYTES {
            self.close();
        }
        self.objects += 1;
        self.last.extend(self.objects.to_le_bytes());
        self.last.extend(1u16.to_le_bytes());
        self.last.extend([0; 4]);
        self.last.extend((value.len() as u64).to_le_bytes());
        self.last.extend_from_slice(value);
        self.last.resize(self.last.len().next_multiple_of(8), 0);
        let collection = heap_at + self.full.len() as u64;
        let number = u32::from(self.objects);
        [&count.to_le_bytes()[..], &collection.to_le_bytes(), &number.to_le_bytes()].concat()
    }

    fn close(&mut self) {
        self.full.extend(collection(&self.last));
        self.last.clear();
        self.objects = 0;
    }

    /// All collections.
    pub(in crate::hdf5) fn bytes(&self) -> Vec<u8> {
        let last = if self.objects > 0 { collection(&self.last) } else { Vec::new() };
        [&self.full[..], &last].concat()
    }
}

/// A collection of these objects. What is left of it is an object, too, of number 0, which has the length of the rest.
fn collection(objects: &[u8]) -> Vec<u8> {
    let used = HEAD_BYTES + objects.len() as u64;
    let bytes = (used + HEAD_BYTES).max(LEAST_BYTES);
    let mut made = b"GCOL\x01\0\0\0".to_vec();
    made.extend(bytes.to_le_bytes());
    made.extend_from_slice(objects);
    made.extend([0; 8]);
    made.extend((bytes - used).to_le_bytes());
    made.resize(bytes as usize, 0);
    made
}
