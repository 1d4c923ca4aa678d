//! What a tree in memory consists of.

use crate::{Fault, FaultKind};
use hyperslab_pack::Memory;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

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
pub(super) struct TreeFile(RwLock<Content>);

pub(super) struct Content {
    /// At least as long as the file; zero beyond its end.
    pub(super) memory: Memory,
    /// Length of the file \[B\].
    pub(super) bytes: u64,
}

/// Bytes that are made zero, moved or summed at once: few enough to stay in the cache in between \[B\].
const BLOCK_BYTES: usize = 64 << 10;

impl TreeFile {
    pub(super) fn new(memory: Memory) -> Arc<TreeFile> {
        let bytes = memory.bytes();
        Arc::new(TreeFile(RwLock::new(Content { memory, bytes })))
    }

    pub(super) fn content(&self) -> RwLockReadGuard<'_, Content> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
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
        self.0.write().unwrap_or_else(PoisonError::into_inner).resize(bytes)
    }

    /// Overwrites bytes from this one on, as far as there are any.
    pub(super) fn overwrite(&self, at: u64, bytes: &[u8]) {
        let content = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let room = content.bytes.saturating_sub(at).min(bytes.len() as u64);
        if room > 0 {
            content.memory.write_bytes(at, &bytes[..room as usize]);
        }
    }

    /// Makes the file at least this long.
    pub(super) fn grow(&self, bytes: u64) -> Result<(), Why> {
        let mut content = self.0.write().unwrap_or_else(PoisonError::into_inner);
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

/// A directory or a file.
pub(super) enum Node {
    Directory(BTreeMap<String, Node>),
    File(Arc<TreeFile>),
}

impl Node {
    pub(super) fn directory() -> Node {
        Node::Directory(BTreeMap::new())
    }

    /// What has this name below the node; the empty name is the node itself.
    pub(super) fn find(&self, name: &str) -> Option<&Node> {
        parts(name).try_fold(self, |node, part| match node {
            Node::Directory(nodes) => nodes.get(part),
            Node::File(_) => None,
        })
    }

    /// The directory that holds a name, and the last part of the name.
    pub(super) fn parent<'a, 'b>(
        &'a mut self,
        name: &'b str,
    ) -> Result<(&'a mut BTreeMap<String, Node>, &'b str), Why> {
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        if last.is_empty() {
            return Err(Why::IsDirectory);
        }
        let mut node = self;
        for part in parts(above) {
            node = match node {
                Node::Directory(nodes) => nodes.get_mut(part).ok_or(Why::NotFound)?,
                Node::File(_) => return Err(Why::NotDirectory),
            };
        }
        match node {
            Node::Directory(nodes) => Ok((nodes, last)),
            Node::File(_) => Err(Why::NotDirectory),
        }
    }

    /// Makes a directory and those above it.
    pub(super) fn make(&mut self, name: &str) -> Result<(), Why> {
        let mut node = self;
        for part in parts(name) {
            node = match node {
                Node::Directory(nodes) => nodes.entry(part.to_string()).or_insert_with(Node::directory),
                Node::File(_) => return Err(Why::NotDirectory),
            };
        }
        if matches!(node, Node::File(_)) { Err(Why::Exists) } else { Ok(()) }
    }

    /// Takes out what has this name; of the whole tree, what is in it.
    pub(super) fn take(&mut self, name: &str) -> Option<Node> {
        if name.is_empty() {
            return Some(std::mem::replace(self, Node::directory()));
        }
        let (nodes, last) = self.parent(name).ok()?;
        nodes.remove(last)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), Why> {
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
        let node = self.take(from).ok_or(Why::NotFound)?;
        let (nodes, last) = self.parent(to)?;
        nodes.insert(last.to_string(), node);
        Ok(())
    }

    pub(super) fn exchange(&mut self, a: &str, b: &str) -> Result<(), Why> {
        if is_inside(a, b) || is_inside(b, a) {
            return if a == b { Ok(()) } else { Err(Why::Inside) };
        }
        if self.find(a).is_none() || self.find(b).is_none() {
            return Err(Why::NotFound);
        }
        let (Some(at_a), Some(at_b)) = (self.take(a), self.take(b)) else { return Err(Why::NotFound) };
        for (name, node) in [(a, at_b), (b, at_a)] {
            let (nodes, last) = self.parent(name)?;
            nodes.insert(last.to_string(), node);
        }
        Ok(())
    }

    /// Collects the files, with their names after `prefix`.
    pub(super) fn files(&self, prefix: &str, found: &mut Vec<(String, Arc<TreeFile>)>) {
        match self {
            Node::File(file) => found.push((prefix.to_string(), file.clone())),
            Node::Directory(nodes) => {
                for (name, node) in nodes {
                    let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
                    node.files(&name, found);
                }
            }
        }
    }
}

/// Puts a file under a name, in a directory that exists; an older file is replaced.
pub(super) fn place(top: &mut Node, name: &str, file: Arc<TreeFile>) -> Result<(), Why> {
    let (nodes, last) = top.parent(name)?;
    if matches!(nodes.get(last), Some(Node::Directory(_))) {
        return Err(Why::IsDirectory);
    }
    nodes.insert(last.to_string(), Node::File(file));
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
