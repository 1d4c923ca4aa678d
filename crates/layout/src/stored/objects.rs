//! Which object holds what of an array.

use crate::codec::{Codec, Stretch};
use crate::mesh::volume;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

/// An object in storage: a name below a root. What a root is, a directory of some place or one object alone, those know who
/// hand it to a store; here it is a number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Object {
    /// Number of the root, among those of the transfer.
    pub root: u32,
    /// The name below it, with `/` between its parts; empty where the root is the object itself.
    pub name: Arc<str>,
}

impl Object {
    /// The object of this name below the root of this number.
    pub fn new(root: u32, name: impl Into<Arc<str>>) -> Object {
        Object { root, name: name.into() }
    }
}

/// The first root's, as where there is only one.
impl From<&str> for Object {
    fn from(name: &str) -> Object {
        Object::new(0, name)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The objects of an array, by their names below its root.
#[derive(Clone, Debug)]
pub enum Objects {
    /// One holds all elements.
    One {
        /// Its name.
        name: Arc<str>,
        /// Where the first element begins in it \[B\].
        offset: u64,
    },
    /// One holds all chunks, which lie one after another in the order of the grid, each with room for all its elements.
    Grid {
        /// Its name.
        name: Arc<str>,
        /// Where the first chunk begins in it \[B\].
        offset: u64,
    },
    /// One gets all chunks, each where there is room for it once its bytes are known: rank 0 gives out space, as much as they
    /// need. To be written only: where they lie then, rank 0 hears.
    Allotted {
        /// From here on there is room in the object \[B\].
        from: u64,
        /// Which object it is, and where chunks lie that are there already: their new ones get other room.
        known: Arc<Table>,
    },
    /// Each chunk is an object of its own, whose name follows from its place in the grid.
    Keyed(Keys),
    /// A table says where each chunk begins, in which object. It is a fact, learned by each rank for the chunks that it
    /// touches; a chunk that is not in it does not exist.
    Table(Arc<Table>),
    /// Chunks lie in shards, whose indexes say where. To be read only: who writes moves shards as they are.
    Shards(Arc<Shards>),
}

/// How the name of a chunk's object is made of its coordinates in the grid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    /// What all names begin with, such as `rho/`.
    pub prefix: Arc<str>,
    /// What follows it in all of them, such as `c`; may be empty.
    pub head: Arc<str>,
    /// What stands between coordinates, and behind the head if there is one.
    pub separator: char,
    /// What stands for the coordinates of the only chunk of an array without dimensions, if there is no head.
    pub single: Arc<str>,
}

impl Keys {
    /// Names as `PREFIXc/0/1`.
    pub fn nested(prefix: impl Into<Arc<str>>) -> Keys {
        Keys { prefix: prefix.into(), head: "c".into(), separator: '/', single: "0".into() }
    }

    /// The name of the chunk at these coordinates.
    pub fn name(&self, at: &[u64]) -> String {
        let mut name = String::with_capacity(self.prefix.len() + self.head.len() + 4 * at.len() + 2);
        name.push_str(&self.prefix);
        name.push_str(&self.head);
        for &coordinate in at {
            if name.len() > self.prefix.len() {
                name.push(self.separator);
            }
            write!(name, "{coordinate}").expect("a String takes what is written to it");
        }
        if name.len() == self.prefix.len() {
            name.push_str(&self.single);
        }
        name
    }
}

/// Where a chunk lies in the object of its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// Its number in the grid ([`Stored::chunk_number`](super::Stored::chunk_number)).
    pub number: u64,
    /// Its first byte \[B\].
    pub offset: u64,
    /// How many bytes are stored; 0 where they are those of its elements \[B\].
    pub bytes: u64,
}

impl Address {
    /// That of a chunk whose bytes are its elements.
    pub fn plain(number: u64, offset: u64) -> Address {
        Address { number, offset, bytes: 0 }
    }
}

/// Where chunks lie in an object: of those that this rank asked for, all that exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// The name of the object.
    pub name: Arc<str>,
    /// In the order of their numbers.
    chunks: Vec<Address>,
    /// Codecs of those that went through another than the rest, by their numbers.
    pub others: BTreeMap<u64, OtherCodec>,
}

impl Table {
    /// Of these chunks in the object with this name. Of those with one number, the last one counts.
    pub fn of(name: impl Into<Arc<str>>, mut chunks: Vec<Address>) -> Table {
        // Most come in their order.
        chunks.sort_by_key(|chunk| chunk.number);
        chunks.dedup_by(|later, earlier| {
            let same = later.number == earlier.number;
            if same {
                *earlier = *later;
            }
            same
        });
        Table { name: name.into(), chunks, others: BTreeMap::new() }
    }

    /// The same, where chunks with these numbers went through other codecs than the rest.
    #[must_use]
    pub fn with_others(self, others: BTreeMap<u64, OtherCodec>) -> Table {
        Table { others, ..self }
    }

    /// Where the chunk with this number lies, if it exists.
    pub fn get(&self, number: u64) -> Option<&Address> {
        let at = self.chunks.binary_search_by_key(&number, |chunk| chunk.number).ok()?;
        self.chunks.get(at)
    }

    /// All chunks, in the order of their numbers.
    pub fn chunks(&self) -> &[Address] {
        &self.chunks
    }
}

/// The codec of a chunk that went through another than the rest.
#[derive(Clone, Debug)]
pub struct OtherCodec(pub Arc<dyn Codec>);

impl PartialEq for OtherCodec {
    fn eq(&self, other: &OtherCodec) -> bool {
        self.0.to_bytes() == other.0.to_bytes()
    }
}

impl Eq for OtherCodec {}

/// Where the chunks of shards lie, in the order of the index; no bytes where there is no chunk.
pub type Indexes = BTreeMap<Arc<str>, Arc<[Stretch]>>;

/// Objects that hold several chunks of a grid each, and an index of where these lie.
#[derive(Clone, Debug)]
pub struct Shards {
    /// Their names.
    pub keys: Keys,
    /// How many chunks a shard has along each dimension.
    pub chunks: Vec<u64>,
    /// The dimensions in which the index counts its chunks, from the slowest to the fastest.
    pub order: Vec<usize>,
    /// What makes shards; it has an index.
    pub codec: Arc<dyn Codec>,
    /// What the indexes say that this rank has read, by the names of the shards that exist: a fact, learned by each rank
    /// for the shards that it touches. Before, every chunk counts as there.
    pub known: Option<Arc<Indexes>>,
}

impl Shards {
    /// Whether its parts go together, for arrays of so many dimensions.
    pub(super) fn fit(&self, ndim: usize) -> bool {
        let permutation = self.order.len() == ndim && (0..ndim).all(|d| self.order.contains(&d));
        let counted = self.chunks.len() == ndim && !self.chunks.contains(&0) && volume(&self.chunks).is_some();
        permutation && counted && self.codec.index().is_some()
    }

    /// The coordinates of the shard that holds the chunk at these, and the chunk's number in the index.
    pub fn shard_of(&self, at: &[u64]) -> (Vec<u64>, usize) {
        let shard = at.iter().zip(&self.chunks).map(|(&at, &chunks)| at / chunks).collect();
        let number = self.order.iter().fold(0, |number, &d| number * self.chunks[d] + at[d] % self.chunks[d]);
        (shard, number as usize)
    }

    /// The name of the object that holds a chunk, and where; nothing for a chunk that does not exist. Before it is known where,
    /// no bytes at the beginning of its shard.
    pub(super) fn place(&self, at: &[u64]) -> Option<(Arc<str>, Stretch)> {
        let (shard, number) = self.shard_of(at);
        let name = self.keys.name(&shard);
        let Some(known) = &self.known else { return Some((name.into(), (0, 0))) };
        let (name, stretches) = known.get_key_value(name.as_str())?;
        let stretch = *stretches.get(number)?;
        (stretch.1 > 0).then(|| (name.clone(), stretch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_coordinates() {
        let keys = Keys::nested("rho/");
        assert_eq!((keys.name(&[0, 1]), keys.name(&[])), ("rho/c/0/1".into(), "rho/c".into()));
        let flat = Keys { head: "".into(), separator: '.', ..keys };
        assert_eq!((flat.name(&[10, 2]), flat.name(&[])), ("rho/10.2".into(), "rho/0".into()));
        assert_eq!(Keys { prefix: "".into(), ..flat }.name(&[3]), "3");
    }
}
