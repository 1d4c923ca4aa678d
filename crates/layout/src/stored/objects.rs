//! Which object holds what of an array.

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
    /// Each chunk is an object of its own, whose name follows from its place in the grid.
    Keyed(Keys),
    /// A table says where each chunk begins, in which object. It is a fact, learned by each rank for the chunks that it
    /// touches; a chunk that is not in it does not exist.
    Table(Arc<Table>),
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

/// Where a chunk lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The name of the object.
    pub name: Arc<str>,
    /// Its first byte there \[B\].
    pub offset: u64,
    /// How many bytes are stored, where the chunk is encoded; else they are those of its elements \[B\].
    pub bytes: Option<u64>,
}

impl Address {
    /// That of a chunk whose bytes are its elements.
    pub fn plain(name: impl Into<Arc<str>>, offset: u64) -> Address {
        Address { name: name.into(), offset, bytes: None }
    }
}

/// Where chunks lie, by their coordinates in the grid.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Table {
    /// What the names of all its objects begin with.
    pub below: Arc<str>,
    /// The chunks that exist, of those that this rank asked for.
    pub chunks: BTreeMap<Vec<u64>, Address>,
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
