//! A stored array, what the oracle knows to be in it, and its bytes.

use super::oracle;
use hyperslab_format::zarr::{BytesCodec, Chain};
use hyperslab_layout::stored::{Address, Coding, Objects, Table};
use hyperslab_layout::{Distribution, ElementType, Object, Section};
use hyperslab_plan::{Direction, Spread, Stored, TransferArray};
use hyperslab_world::{MemoryStore, Root, Store};
use std::collections::BTreeMap;

/// Objects of a store and their bytes.
pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

/// A stored array and what the oracle knows to be in it.
pub(crate) struct Array {
    pub(crate) number: usize,
    pub(crate) stored: Stored,
    /// Values in row-major order of the array.
    pub(crate) values: Vec<u64>,
    /// Keys and lowest indices of chunks that exist.
    pub(crate) chunks: BTreeMap<String, Vec<u64>>,
    pub(crate) fill: u64,
    pub(crate) limit: u64,
    pub(crate) imaginary: bool,
    pub(crate) write: ElementType,
    pub(crate) read: ElementType,
}

impl Array {
    /// An array in which, but for chunks that are fresh, something is stored already.
    pub(crate) fn new(number: usize, stored: Stored, write: ElementType, read: ElementType) -> Array {
        let all = [stored.element, write, read];
        let limit = all.map(|e| oracle::limit(e.kind)).into_iter().min().unwrap_or(2);
        let imaginary = all.iter().all(|e| e.kind.is_complex());
        let fill = limit - 1;
        let values = vec![fill; stored.shape.iter().product::<u64>() as usize];
        let stored = Stored { fill: oracle::encode(fill, stored.element, imaginary).into(), ..stored };
        let mut array = Array { number, stored, values, chunks: BTreeMap::new(), fill, limit, imaginary, write, read };
        for index in oracle::indices(&array.stored.shape.clone()) {
            let exists = match (&array.stored.objects, array.stored.chunk()) {
                (Objects::Keyed(_), _) if array.stored.makes_objects() => false,
                (Objects::Keyed(_), chunk) => {
                    let at: Vec<u64> = index.iter().zip(chunk.unwrap()).map(|(&i, &c)| i / c).collect();
                    oracle::value(number, &at, 2, 3) > 0
                }
                _ => true,
            };
            if exists {
                array.set(&index, oracle::value(number, &index, 1, limit));
            }
        }
        array
    }

    /// Gives an element a value, and so makes its chunk.
    pub(crate) fn set(&mut self, index: &[u64], value: u64) {
        let row_major: Vec<usize> = (0..index.len()).collect();
        self.values[oracle::number(index, &self.stored.shape, &row_major)] = value;
        if let (Objects::Keyed(keys), Some(chunk)) = (&self.stored.objects, self.stored.chunk()) {
            let at: Vec<u64> = index.iter().zip(chunk).map(|(&i, &c)| i / c).collect();
            let key: String = at.iter().map(|c| format!("/{c}")).collect();
            let low = at.iter().zip(chunk).map(|(&a, &c)| a * c).collect();
            let name = format!("{}{}c{key}", root_of(&self.stored), keys.prefix);
            self.chunks.insert(name, low);
        }
    }

    /// The value that an element has.
    pub(crate) fn get(&self, index: &[u64]) -> u64 {
        let row_major: Vec<usize> = (0..index.len()).collect();
        self.values[oracle::number(index, &self.stored.shape, &row_major)]
    }

    /// The bytes of the box of elements that starts at `low`; fill values where it reaches beyond the array.
    pub(crate) fn dense(&self, low: &[u64], shape: &[u64]) -> Vec<u8> {
        let size = self.stored.element.bytes() as usize;
        let mut bytes = vec![0; shape.iter().product::<u64>() as usize * size];
        for inside in oracle::indices(shape) {
            let index: Vec<u64> = low.iter().zip(&inside).map(|(&a, &b)| a + b).collect();
            let beyond = index.iter().zip(&self.stored.shape).any(|(&i, &n)| i >= n);
            let value = if beyond { self.fill } else { self.get(&index) };
            let at = oracle::number(&inside, shape, &self.stored.strides.order) * size;
            bytes[at..at + size].copy_from_slice(&oracle::encode(value, self.stored.element, self.imaginary));
        }
        bytes
    }

    /// Puts what is stored of this array, but for compression, into `objects`.
    pub(crate) fn store(&self, objects: &mut Contents) {
        match &self.stored.objects {
            Objects::One { name, .. } => {
                let content = objects.entry(format!("{}{name}", root_of(&self.stored))).or_default();
                for index in oracle::indices(&self.stored.shape) {
                    let bytes = oracle::encode(self.get(&index), self.stored.element, self.imaginary);
                    put(content, byte_in_file(&self.stored, &index), &bytes);
                }
            }
            Objects::Keyed(_) => {
                for (key, low) in &self.chunks {
                    objects.insert(key.clone(), self.dense(low, self.stored.chunk().unwrap()));
                }
            }
            Objects::Table(table) => self.store_by(table, objects),
            Objects::Grid { name, .. } => {
                let grid: Vec<u64> =
                    self.stored.shape.iter().zip(self.stored.chunk().unwrap()).map(|(n, c)| n.div_ceil(*c)).collect();
                let address = |at: Vec<u64>| {
                    Address::plain(self.stored.chunk_number(&at), self.stored.extent_of(&at).unwrap().1.unwrap().0)
                };
                let chunks = oracle::indices(&grid).into_iter().map(address).collect();
                self.store_by(&Table::of(name.clone(), chunks), objects);
            }
            Objects::Allotted { .. } => panic!("whole calls give room"),
            Objects::Shards(_) => panic!("whole calls read shards, since a call learns where chunks lie"),
        }
    }

    /// Puts chunks where a table says.
    fn store_by(&self, table: &Table, objects: &mut Contents) {
        let chunk = self.stored.chunk().unwrap();
        let grid: Vec<u64> = self.stored.shape.iter().zip(chunk).map(|(n, c)| n.div_ceil(*c)).collect();
        let places: BTreeMap<u64, Vec<u64>> =
            oracle::indices(&grid).into_iter().map(|at| (self.stored.chunk_number(&at), at)).collect();
        for address in table.chunks() {
            let low: Vec<u64> = places[&address.number].iter().zip(chunk).map(|(&a, &c)| a * c).collect();
            let content = objects.entry(format!("{}{}", root_of(&self.stored), table.name)).or_default();
            put(content, address.offset, &self.dense(&low, chunk));
        }
    }

    /// Compresses and sums (or the reverse, checking) the chunks of this array in `objects`.
    pub(crate) fn code(&self, objects: &mut Contents, encode: bool) {
        let Some(chunk) = self.stored.chunk() else { return };
        let raw = (chunk.iter().product::<u64>() * self.stored.element.bytes()) as usize;
        let mut chain = match &self.stored.coding {
            Coding::Plain => Vec::new(),
            Coding::Trailer | Coding::Summed => vec![BytesCodec::Crc32c],
            Coding::Encoded(codec) => Chain::from_bytes(&codec.to_bytes()).unwrap().codecs().to_vec(),
        };
        if !encode {
            chain.reverse();
        }
        for key in self.chunks.keys() {
            let Some(bytes) = objects.get_mut(key) else { continue };
            for codec in &chain {
                *bytes = match (codec, encode) {
                    (BytesCodec::Crc32c, true) => [bytes.as_slice(), &crc32c::crc32c(bytes).to_le_bytes()].concat(),
                    (BytesCodec::Crc32c, false) => {
                        let (body, sum) = bytes.split_at(bytes.len() - 4);
                        assert_eq!(sum, crc32c::crc32c(body).to_le_bytes(), "checksum of {key}");
                        body.to_vec()
                    }
                    (_, true) => zstd::bulk::compress(bytes, 1).expect("compresses"),
                    (_, false) => zstd::bulk::decompress(bytes, raw + 8).expect("decompresses"),
                };
            }
        }
    }

    /// A section of this array, in a distribution.
    pub(crate) fn ask(&self, section: Section, distribution: Distribution, direction: Direction) -> TransferArray {
        let memory = if direction == Direction::Write { self.write } else { self.read };
        let (name, spread) = (format!("a{}", self.number), Spread::Regular(distribution));
        TransferArray { name, section, spread, memory, stored: self.stored.clone() }
    }
}

/// The first byte of an element of an array in one file.
pub(crate) fn byte_in_file(stored: &Stored, index: &[u64]) -> u64 {
    let Objects::One { offset, .. } = &stored.objects else { panic!("not in one file") };
    let (strides, size) = (&stored.strides, stored.element.bytes());
    let Some(record) = strides.record else {
        return offset + oracle::number(index, &stored.shape, &strides.order) as u64 * size;
    };
    let slowest = strides.order[0];
    let mut inside = index.to_vec();
    inside[slowest] = 0;
    offset + index[slowest] * record + oracle::number(&inside, &stored.shape, &strides.order) as u64 * size
}

/// What the absolute names of an array's objects begin with.
fn root_of(stored: &Stored) -> String {
    if stored.root == 0 { String::new() } else { format!("root{}/", stored.root) }
}

/// The object with an absolute name.
pub(crate) fn object_of(name: &str) -> Object {
    let below = |number: &u32| name.strip_prefix(&format!("root{number}/"));
    let root = (1..8).find(|number| below(number).is_some());
    root.map_or_else(|| Object::from(name), |root| Object::new(root, below(&root).unwrap_or_default()))
}

/// A store over these objects, with a root for each array of a case, and one for what lies beside those.
pub(crate) fn rooted(objects: &hyperslab_world::Objects) -> MemoryStore {
    let root = |number: u32| Root::new(if number == 0 { String::new() } else { format!("root{number}") });
    let mut store = MemoryStore::new(objects.clone());
    store.enter((0..8).map(root).collect());
    store
}

fn put(content: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let (start, end) = (at as usize, at as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0x5A);
    }
    content[start..end].copy_from_slice(bytes);
}
