//! What a tree in memory consists of.

use crate::{Fault, FaultKind};
use hyperslab_pack::Memory;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Gives numbers to what is made in a tree, and to changes of it; each only once.
#[derive(Default)]
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Why something cannot be done, in the words of file systems.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    NotFound,
    Exists,
    NotDirectory,
    IsDirectory,
    /// One of the two names lies below the other.
    Inside,
    /// The system refused this many bytes.
    NoMemory(u64),
}

impl Why {
    pub(super) fn fault(self, verb: &str, name: &str) -> Fault {
        let why = match self {
            Why::NotFound => "no such file or directory".to_string(),
            Why::Exists => "the name is taken".into(),
            Why::NotDirectory => "not a directory".into(),
            Why::IsDirectory => "it is a directory".into(),
            Why::Inside => "one of the names lies below the other".into(),
            Why::NoMemory(bytes) => format!("the system has no {bytes} B of memory to give"),
        };
        let fault = Fault::new(FaultKind::Storage, format!("{verb} '{name}' failed: {why}"));
        match self {
            Why::NoMemory(_) => fault.hint("what is stored in memory must fit there beside the arrays; use a path"),
            _ => fault,
        }
    }
}

/// Zeroed memory.
pub(super) fn allocate(bytes: u64) -> Result<Memory, Why> {
    Memory::allocate(bytes).map_err(|refused| Why::NoMemory(refused.bytes))
}

/// A file. Whoever moves bytes has a share of the lock, whoever changes its length all of it.
pub(super) struct TreeFile {
    /// Tells it from any other of the tree.
    pub(super) number: u64,
    /// The number of its last change.
    changed: AtomicU64,
    content: RwLock<Content>,
}

pub(super) struct Content {
    /// At least as long as the file; zero beyond its end.
    pub(super) memory: Memory,
    /// Length of the file \[B\].
    pub(super) bytes: u64,
}

/// Bytes that are made zero, moved or summed at once: few enough to stay in the cache in between \[B\].
const BLOCK_BYTES: usize = 64 << 10;

impl TreeFile {
    pub(super) fn new(memory: Memory, numbers: &Numbers) -> Arc<TreeFile> {
        let (bytes, number) = (memory.bytes(), numbers.next());
        let content = RwLock::new(Content { memory, bytes });
        Arc::new(TreeFile { number, changed: number.into(), content })
    }

    /// What tells it, and what it holds, from what was before and comes after.
    pub(super) fn version(&self) -> String {
        format!("{}.{}", self.number, self.changed.load(Ordering::Relaxed))
    }

    /// Notes a change.
    pub(super) fn touch(&self, numbers: &Numbers) {
        self.changed.store(numbers.next(), Ordering::Relaxed);
    }

    pub(super) fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn length(&self) -> u64 {
        self.content().bytes
    }

    /// Bytes from this one on, as far as there are any.
    pub(super) fn read(&self, at: u64, bytes_max: u64) -> Vec<u8> {
        let content = self.content();
        let at = at.min(content.bytes);
        content.memory.to_vec(at, (content.bytes - at).min(bytes_max))
    }

    pub(super) fn resize(&self, bytes: u64) -> Result<(), Why> {
        self.content.write().unwrap_or_else(PoisonError::into_inner).resize(bytes)
    }

    /// Adds to the end.
    pub(super) fn append(&self, bytes: &[u8]) -> Result<(), Why> {
        let mut content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        let at = content.bytes;
        content.resize(at + bytes.len() as u64)?;
        content.memory.write_bytes(at, bytes);
        Ok(())
    }

    /// Overwrites bytes from this one on, as far as there are any.
    pub(super) fn overwrite(&self, at: u64, bytes: &[u8]) {
        let content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        let room = content.bytes.saturating_sub(at).min(bytes.len() as u64);
        if room > 0 {
            content.memory.write_bytes(at, &bytes[..room as usize]);
        }
    }

    /// Makes the file at least this long.
    pub(super) fn grow(&self, bytes: u64) -> Result<(), Why> {
        let mut content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        if bytes > content.bytes { content.resize(bytes) } else { Ok(()) }
    }
}

impl Content {
    fn resize(&mut self, bytes: u64) -> Result<(), Why> {
        if bytes > self.memory.bytes() {
            // Pages cost nothing before they are touched, so a file that grows again and again gets room to.
            let roomy = self.memory.bytes().saturating_mul(2).max(bytes);
            let memory = allocate(roomy).or_else(|_| allocate(bytes))?;
            for (at, step) in blocks(0, self.bytes) {
                memory.write_bytes(at, &self.memory.to_vec(at, step));
            }
            self.memory = memory;
        }
        for (at, step) in blocks(bytes, self.bytes) {
            self.memory.write_bytes(at, &[0; BLOCK_BYTES][..step as usize]);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// CRC-32C of the first bytes.
    pub(super) fn checksum(&self, bytes: u64) -> u32 {
        blocks(0, bytes).fold(0, |sum, (at, step)| crc32c::crc32c_append(sum, &self.memory.to_vec(at, step)))
    }
}

/// Starts and lengths of blocks from one offset to another \[B\].
fn blocks(start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    (start..end).step_by(BLOCK_BYTES).map(move |at| (at, (end - at).min(BLOCK_BYTES as u64)))
}

/// Names, and what they mean.
pub(super) struct TreeDirectory {
    /// Tells it from any other of the tree.
    number: u64,
    /// The number of the last change of its names.
    changed: u64,
    pub(super) nodes: BTreeMap<String, Node>,
}

impl TreeDirectory {
    fn new(numbers: &Numbers) -> TreeDirectory {
        let number = numbers.next();
        TreeDirectory { number, changed: number, nodes: BTreeMap::new() }
    }

    fn insert(&mut self, name: &str, node: Node, numbers: &Numbers) {
        self.changed = numbers.next();
        self.nodes.insert(name.to_string(), node);
    }

    fn remove(&mut self, name: &str, numbers: &Numbers) -> Option<Node> {
        self.changed = numbers.next();
        self.nodes.remove(name)
    }
}

/// A directory or a file.
pub(super) enum Node {
    Directory(TreeDirectory),
    File(Arc<TreeFile>),
}

impl Node {
    pub(super) fn directory(numbers: &Numbers) -> Node {
        Node::Directory(TreeDirectory::new(numbers))
    }

    pub(super) fn number(&self) -> u64 {
        match self {
            Node::Directory(directory) => directory.number,
            Node::File(file) => file.number,
        }
    }

    /// What tells it, and the names in it or what it holds, from what was before and comes after.
    pub(super) fn version(&self) -> String {
        match self {
            Node::Directory(TreeDirectory { number, changed, .. }) => format!("{number}.{changed}"),
            Node::File(file) => file.version(),
        }
    }

    /// What has this name below the node; the empty name is the node itself.
    pub(super) fn find(&self, name: &str) -> Option<&Node> {
        parts(name).try_fold(self, |node, part| match node {
            Node::Directory(directory) => directory.nodes.get(part),
            Node::File(_) => None,
        })
    }

    /// The name below the node of what has this number.
    pub(super) fn name_of(&self, number: u64) -> Option<String> {
        let Node::Directory(directory) = self else { return None };
        directory.nodes.iter().find_map(|(name, node)| match node.number() == number {
            true => Some(name.clone()),
            false => node.name_of(number).map(|below| format!("{name}/{below}")),
        })
    }

    /// The directory that holds a name, and the last part of the name.
    pub(super) fn parent<'a, 'b>(&'a mut self, name: &'b str) -> Result<(&'a mut TreeDirectory, &'b str), Why> {
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        if last.is_empty() {
            return Err(Why::IsDirectory);
        }
        let mut node = self;
        for part in parts(above) {
            node = match node {
                Node::Directory(directory) => directory.nodes.get_mut(part).ok_or(Why::NotFound)?,
                Node::File(_) => return Err(Why::NotDirectory),
            };
        }
        match node {
            Node::Directory(directory) => Ok((directory, last)),
            Node::File(_) => Err(Why::NotDirectory),
        }
    }

    /// Makes a directory and those above it.
    pub(super) fn make(&mut self, name: &str, numbers: &Numbers) -> Result<(), Why> {
        let mut node = self;
        for part in parts(name) {
            let Node::Directory(directory) = node else { return Err(Why::NotDirectory) };
            if !directory.nodes.contains_key(part) {
                directory.insert(part, Node::directory(numbers), numbers);
            }
            node = directory.nodes.get_mut(part).ok_or(Why::NotFound)?;
        }
        if matches!(node, Node::File(_)) { Err(Why::Exists) } else { Ok(()) }
    }

    /// Takes out what has this name; of the whole tree, what is in it.
    pub(super) fn take(&mut self, name: &str, numbers: &Numbers) -> Option<Node> {
        if name.is_empty() {
            return Some(std::mem::replace(self, Node::directory(numbers)));
        }
        let (directory, last) = self.parent(name).ok()?;
        directory.remove(last, numbers)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, numbers: &Numbers) -> Result<(), Why> {
        let directory = matches!(self.find(from).ok_or(Why::NotFound)?, Node::Directory(_));
        if is_inside(to, from) {
            return Err(Why::Inside);
        }
        match self.find(to) {
            Some(Node::Directory(_)) => return Err(Why::Exists),
            Some(Node::File(_)) if directory => return Err(Why::NotDirectory),
            _ => {}
        }
        self.parent(to)?;
        let node = self.take(from, numbers).ok_or(Why::NotFound)?;
        let (directory, last) = self.parent(to)?;
        directory.insert(last, node, numbers);
        Ok(())
    }

    pub(super) fn exchange(&mut self, a: &str, b: &str, numbers: &Numbers) -> Result<(), Why> {
        if is_inside(a, b) || is_inside(b, a) {
            return if a == b { Ok(()) } else { Err(Why::Inside) };
        }
        if self.find(a).is_none() || self.find(b).is_none() {
            return Err(Why::NotFound);
        }
        let (at_a, at_b) = (self.take(a, numbers), self.take(b, numbers));
        let (Some(at_a), Some(at_b)) = (at_a, at_b) else { return Err(Why::NotFound) };
        for (name, node) in [(a, at_b), (b, at_a)] {
            let (directory, last) = self.parent(name)?;
            directory.insert(last, node, numbers);
        }
        Ok(())
    }

    /// Collects the files, with their names after `prefix`.
    pub(super) fn files(&self, prefix: &str, found: &mut Vec<(String, Arc<TreeFile>)>) {
        match self {
            Node::File(file) => found.push((prefix.to_string(), file.clone())),
            Node::Directory(directory) => {
                for (name, node) in &directory.nodes {
                    let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
                    node.files(&name, found);
                }
            }
        }
    }
}

/// Puts a file under a name, in a directory that exists; an older file is replaced.
pub(super) fn place(top: &mut Node, name: &str, file: Arc<TreeFile>, numbers: &Numbers) -> Result<(), Why> {
    let (directory, last) = top.parent(name)?;
    if matches!(directory.nodes.get(last), Some(Node::Directory(_))) {
        return Err(Why::IsDirectory);
    }
    directory.insert(last, Node::File(file), numbers);
    Ok(())
}

fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').filter(|part| !part.is_empty())
}

/// Whether a name is another one, or lies below it.
fn is_inside(name: &str, directory: &str) -> bool {
    let rest = name.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
