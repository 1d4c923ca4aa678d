//! Objects that are files of trees in memory.

use super::lock::Locking;
use super::nodes::{Content, TreeFile, allocate, place};
use super::{MemoryTree, SCHEME, WeakTree, found_file, inner_of};
use crate::memory_store::{checksum_fault, got, length_fault, part_sum};
use crate::{Fault, FaultKind, Moved, Moves, Outcome, Request, Root, Store, Ticket};
use hyperslab_layout::{Loop, Nest};
use hyperslab_pack::{CopyError, Memory, copy};
use std::sync::Arc;

/// The files of trees in memory as objects, by their absolute names.
///
/// Requests are carried out as they are submitted, by the caller's thread. The store keeps no tree alive.
#[derive(Default)]
pub struct TreeStore {
    trees: Vec<WeakTree>,
    roots: Arc<[Root]>,
    done: Vec<(Ticket, Result<Outcome, Fault>)>,
}

impl TreeStore {
    /// Whether an object with this name would be in memory.
    pub fn is_for(object: &str) -> bool {
        object.starts_with(SCHEME)
    }

    /// Finds objects of this tree from now on, as long as somebody has it.
    pub fn mount(&mut self, tree: &MemoryTree) {
        self.trees.retain(|known| known.tree.strong_count() > 0 && known.label != tree.tree.label);
        self.trees.push(tree.weak());
    }

    /// The tree that holds an object of this absolute name, and the name in it.
    fn tree<'a>(&self, object: &'a str) -> Result<(MemoryTree, &'a str), Fault> {
        let of = |known: &WeakTree| {
            let (inner, witness) = (inner_of(&known.label, object)?, known.witness.clone());
            Some((MemoryTree { tree: known.tree.upgrade()?, root: String::new(), witness, pin: None }, inner))
        };
        self.trees.iter().find_map(of).ok_or_else(|| {
            Fault::new(FaultKind::Storage, format!("the memory that held '{object}' is gone"))
                .hint("keep the store in memory as long as something in it is open")
        })
    }

    fn carry_out(&self, request: Request) -> Result<Outcome, Fault> {
        let object = request.object().map(|object| Root::full_of(&self.roots, object)).unwrap_or_default();
        match request {
            Request::Write { moves, .. } => self.found(&object, true, |file| write(file, &moves, &object)),
            Request::WriteWhole { moves, checksum, .. } => {
                let bytes = moves.bytes() + if checksum { 4 } else { 0 };
                let memory = allocate(bytes).map_err(|why| why.fault("writing", &object))?;
                let content = Content { memory, bytes };
                put_in(&content, &moves).map_err(|error| outside(&object, &error))?;
                if checksum {
                    let sum = content.checksum(moves.bytes());
                    content.memory.write_bytes(moves.bytes(), &sum.to_le_bytes());
                }
                self.put(&object, content.memory, moves.bytes())
            }
            Request::Put { mut bytes, .. } => {
                // Whoever compressed them left room for the worst.
                bytes.shrink_to_fit();
                let length = bytes.len() as u64;
                self.put(&object, Memory::from_vec(bytes), length)
            }
            Request::Read { moves, .. } => self.found(&object, false, |file| read(&file.content(), &moves, &object)),
            Request::ReadPart { moves, total, .. } => self.found(&object, false, |file| {
                let content = file.content();
                let sum = part_sum((&moves, total), content.bytes, &object, |offset, bytes, add| {
                    add(&content.memory.to_vec(offset, bytes));
                })?;
                read(&content, &moves, &object).map(|_| sum)
            }),
            Request::ReadWhole { moves, checksum, .. } => {
                self.found(&object, false, |file| read_whole(&file.content(), &moves, checksum, &object))
            }
            Request::Get { within, bytes_max, .. } => self.found(&object, false, |file| {
                let (first, bytes) = got(&object, file.length(), within, bytes_max)?;
                let mut content = file.read(0, first + bytes);
                content.drain(..first as usize);
                Ok(Moved { bytes, calls: 1, content, first, ..Moved::default() })
            }),
            Request::Sync { .. } => Ok(Outcome::Done(Moved::default())),
        }
    }

    /// Runs on the file that is an object, if there is one.
    fn found(
        &self,
        object: &str,
        changes: bool,
        run: impl FnOnce(&TreeFile) -> Result<Moved, Fault>,
    ) -> Result<Outcome, Fault> {
        let (tree, inner) = self.tree(object)?;
        tree.told(if changes { "writing into" } else { "reading from" }, inner, changes)?;
        let Ok(file) = found_file(&tree.top(), inner) else { return Ok(Outcome::Absent) };
        let done = run(&file)?;
        if changes {
            file.touch(&tree.tree.numbers);
        }
        Ok(Outcome::Done(done))
    }

    /// Gives a whole object its place, which makes its directory: readers see the old one or this one.
    fn put(&self, object: &str, memory: Memory, bytes: u64) -> Result<Outcome, Fault> {
        let (tree, inner) = self.tree(object)?;
        tree.doing("writing", inner, |top, inner, numbers| {
            if let Some((above, _)) = inner.rsplit_once('/') {
                top.make(above, numbers)?;
            }
            place(top, inner, TreeFile::new(memory, numbers), numbers)
        })?;
        Ok(Outcome::Done(moved(bytes)))
    }
}

impl Store for TreeStore {
    fn submit(&mut self, ticket: Ticket, request: Request) {
        let result = self.carry_out(request);
        self.done.push((ticket, result));
    }

    fn enter(&mut self, roots: Arc<[Root]>) {
        self.roots = roots;
    }

    fn roots(&self) -> Arc<[Root]> {
        self.roots.clone()
    }

    fn poll(&mut self, done: &mut Vec<(Ticket, Result<Outcome, Fault>)>) {
        done.append(&mut self.done);
    }

    fn advance(&self) -> u64 {
        0
    }
}

fn moved(bytes: u64) -> Moved {
    Moved { bytes, calls: 1, ..Moved::default() }
}

/// The failure of elements that lie outside of the user's memory.
fn outside(object: &str, error: &CopyError) -> Fault {
    Fault::new(FaultKind::Invalid, format!("moving '{object}': {error}"))
}

/// One past the last byte of the object that elements take \[B\].
fn end(moves: &Moves) -> u64 {
    let last = |nest: &Nest| {
        let reach = |l: &Loop| (l.count.saturating_sub(1) as i64).saturating_mul(l.b.max(0));
        nest.loops.iter().fold(nest.b, |at, l| at.saturating_add(reach(l)))
    };
    let ends = moves.nests().filter(|nest| nest.elements() > 0).map(|nest| last(&nest).max(0) as u64);
    ends.max().map_or(0, |last| last + moves.there.element.bytes())
}

/// Copies elements into a file that is long enough.
fn put_in(content: &Content, moves: &Moves) -> Result<(), CopyError> {
    let element = moves.there.element;
    moves.nests().try_for_each(|nest| copy(&nest, &moves.memory, element, &content.memory, element))
}

fn write(file: &TreeFile, moves: &Moves, object: &str) -> Result<Moved, Fault> {
    let end = end(moves);
    if end > file.length() {
        file.grow(end).map_err(|why| why.fault("writing", object))?;
    }
    put_in(&file.content(), moves).map_err(|error| outside(object, &error))?;
    Ok(moved(moves.bytes()))
}

fn read(content: &Content, moves: &Moves, object: &str) -> Result<Moved, Fault> {
    let end = end(moves);
    if end > content.bytes {
        return Err(length_fault(object, &format!("at least {end} B"), content.bytes));
    }
    let element = moves.there.element;
    for nest in moves.nests() {
        let copied = copy(&nest.swapped(), &content.memory, element, &moves.memory, element);
        copied.map_err(|error| outside(object, &error))?;
    }
    Ok(moved(moves.bytes()))
}

fn read_whole(content: &Content, moves: &Moves, checksum: bool, object: &str) -> Result<Moved, Fault> {
    let expected = moves.bytes() + if checksum { 4 } else { 0 };
    if content.bytes != expected {
        return Err(length_fault(object, &format!("{expected} B"), content.bytes));
    }
    if checksum {
        let trailer = content.memory.to_vec(moves.bytes(), 4);
        let stored = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
        let sum = content.checksum(moves.bytes());
        if sum != stored {
            return Err(checksum_fault(object, stored, sum));
        }
    }
    read(content, moves, object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Names;
    use hyperslab_layout::{Durability, ElementType, Kind, Object, Region, View};
    use std::sync::Arc;

    #[test]
    fn it_keeps_the_contract_of_stores() {
        let tree = MemoryTree::new();
        let mut store = TreeStore::default();
        store.mount(&tree);
        crate::conformance::objects(&mut store, &tree.full("d"));
        assert_eq!(tree.list("").unwrap(), ["d"]);
    }

    #[test]
    fn it_keeps_no_tree_alive_and_says_so() {
        let (gone, there) = (MemoryTree::new(), MemoryTree::new());
        let mut store = TreeStore::default();
        for tree in [&gone, &there, &gone] {
            store.mount(tree);
        }
        assert_eq!(store.trees.len(), 2);
        let name = gone.full("x");
        drop(gone);
        store.enter([Root::new(&*name), Root::new(there.full(""))].into());
        store.submit(
            1,
            Request::Put { object: "".into(), bytes: vec![1], replace: false, durability: Durability::Soon },
        );
        store.submit(
            2,
            Request::Put { object: Object::new(1, "x"), bytes: vec![2], replace: false, durability: Durability::Soon },
        );
        let mut done = Vec::new();
        store.poll(&mut done);
        let fault = done[0].1.clone().unwrap_err();
        assert!(fault.text().contains(&name) && fault.text().contains("gone"), "{fault}");
        assert!(done[1].1.is_ok());
        assert_eq!(there.files(), [("x".to_string(), vec![2])]);
        store.mount(&there);
        assert_eq!(store.trees.len(), 1, "what is gone is forgotten");
    }

    /// Elements of one byte of which every `step`th, from `start` on, lies in the object.
    fn every(memory: &Memory, start: i64, step: i64) -> Moves {
        let count = memory.bytes();
        let region = Region::whole(&[count]);
        let element = ElementType::native(Kind::UInt8);
        let here = Arc::new(View::held(&region, 0, &[1], element));
        let there = Arc::new(View::held(&region, start, &[step], element));
        Moves { region, memory: memory.clone(), here, there }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "ranks that are threads write into one file at the same time")]
    fn threads_write_into_one_file_while_it_grows() {
        const RANKS: u64 = 4;
        const EACH: u64 = 20_000;
        let tree = MemoryTree::new();
        tree.create("f", b"", 1).unwrap();
        std::thread::scope(|scope| {
            for rank in 0..RANKS {
                let tree = &tree;
                scope.spawn(move || {
                    let mut store = TreeStore::default();
                    store.mount(tree);
                    store.enter([Root::new(tree.full(""))].into());
                    let mine = Memory::from_vec(vec![rank as u8 + 1; 1000]);
                    for turn in 0..EACH / 1000 {
                        let moves = every(&mine, (turn * 1000 * RANKS + rank) as i64, RANKS as i64);
                        store.submit(
                            turn,
                            Request::Write { object: "f".into(), moves, direct: false, durability: Durability::Soon },
                        );
                    }
                    let mut done = Vec::new();
                    store.poll(&mut done);
                    assert!(done.len() == 20 && done.iter().all(|one| one.1.is_ok()));
                });
            }
        });
        let found = tree.read_prefix("f", u64::MAX).unwrap().unwrap();
        assert_eq!(found.len() as u64, RANKS * EACH);
        assert!(found.chunks(4).all(|four| four == [1, 2, 3, 4]));
    }
}
