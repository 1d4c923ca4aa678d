//! Trees of version 1: old groups, and chunks of files for all libraries (section III.A.1).

use super::fetch::Fetcher;
use super::fields::FieldReader;
use super::superblock::Hdf5File;
use crate::error::{Context, Error};
use crate::hdf5::content::MetadataSource;
use crate::hdf5::policy::TREE_DEPTH_MAX;

/// A tree of one type of nodes.
pub(super) struct TreeV1<'a> {
    pub(super) fetcher: &'a Fetcher<'a>,
    /// 0 for groups, 1 for chunks.
    pub(super) kind: u8,
    pub(super) key_bytes: u64,
}

/// What a leaf says, or whether to go on below a child: the key before it, the child, and the key behind it.
pub(super) trait VisitV1 {
    /// Whether something between two keys is wanted.
    fn wants(&mut self, before: FieldReader, behind: FieldReader) -> Result<bool, Error>;

    /// An entry of a leaf.
    fn entry(&mut self, key: FieldReader, child: u64) -> Result<(), Error>;
}

impl TreeV1<'_> {
    /// Visits what is wanted of the tree with this root, in order.
    pub(super) fn visit(&self, root: u64, visit: &mut dyn VisitV1) -> Result<(), Error> {
        self.node(root, None, visit)
    }

    /// A node, which is at a lower level than the one above it.
    fn node(&self, at: u64, above: Option<u8>, visit: &mut dyn VisitV1) -> Result<(), Error> {
        let (fetcher, key_bytes) = (self.fetcher, self.key_bytes);
        let OpenNode { level, count, begin, block } = self.opened(at, above)?;
        let mut fields = fetcher.fields(&block[begin..], "B-tree node");
        for _ in 0..count {
            let before = FieldReader { rest: fields.take(key_bytes)?, ..fields };
            let child = fields.place()?;
            let behind = FieldReader { rest: FieldReader { ..fields }.take(key_bytes)?, ..fields };
            if level == 0 {
                visit.entry(before, child)?;
            } else if visit.wants(before, behind)? {
                self.node(child, Some(level), visit)?;
            }
        }
        Ok(())
    }

    /// The bytes of a node, which may be met once, with what its head says.
    fn opened(&self, at: u64, above: Option<u8>) -> Result<OpenNode, Error> {
        let (fetcher, key_bytes) = (self.fetcher, self.key_bytes);
        fetcher.enter(at)?;
        let begin = 8 + 2 * u64::from(fetcher.widths.offset);
        let entry_bytes = key_bytes + u64::from(fetcher.widths.offset);
        // Nodes have room for 64 entries unless the file was set up otherwise.
        let guess = fetcher.bytes_at_most(at, begin + 64 * entry_bytes + key_bytes)?;
        fetcher.check_signature(at, &guess, b"TREE")?;
        let mut fields = fetcher.fields(&guess, "B-tree node");
        fields.skip(4)?;
        let (kind, level, count) = (fields.byte()?, fields.byte()?, fields.two()?);
        if kind != self.kind {
            return Err(fields.wrong(&format!("nodes of type {}", self.kind), format!("type {kind} at byte {at}")));
        }
        let is_lower = above.is_none_or(|above| above.checked_sub(1) == Some(level));
        if !is_lower || u32::from(level) > TREE_DEPTH_MAX {
            return Err(fields.wrong("levels that go down by one", format!("level {level} at byte {at}")));
        }
        let block = fetcher.extended(at, guess, begin + u64::from(count) * entry_bytes + key_bytes)?;
        Ok(OpenNode { level, count, begin: begin as usize, block })
    }

    /// A node as a whole.
    pub(super) fn whole(&self, at: u64, above: Option<u8>) -> Result<TreeNode, Error> {
        let OpenNode { level, count, begin, block } = self.opened(at, above)?;
        let mut fields = self.fetcher.fields(&block[8..], "B-tree node");
        let (left, right) = (fields.address()?, fields.address()?);
        let mut fields = self.fetcher.fields(&block[begin..], "B-tree node");
        let mut children = Vec::with_capacity(count.into());
        for _ in 0..count {
            let key = fields.take(self.key_bytes)?.to_vec();
            children.push((key, fields.place()?));
        }
        let end = fields.take(self.key_bytes)?.to_vec();
        Ok(TreeNode { level, left, right, children, end })
    }
}

/// The bytes of a node.
struct OpenNode {
    level: u8,
    count: u16,
    /// Where its first key is.
    begin: usize,
    block: Vec<u8>,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::hdf5) struct TreeNode {
    pub(in crate::hdf5) level: u8,
    /// Its neighbours of the same level, where there are any.
    pub(in crate::hdf5) left: Option<u64>,
    pub(in crate::hdf5) right: Option<u64>,
    /// What is below it, each with the key before it.
    pub(in crate::hdf5) children: Vec<(Vec<u8>, u64)>,
    /// The key behind the last.
    pub(in crate::hdf5) end: Vec<u8>,
}

/// The nodes of a tree of chunks, each of which is asked for once.
pub(in crate::hdf5) struct ChunkNodes<'a> {
    fetcher: Fetcher<'a>,
    key_bytes: u64,
}

impl<'a> ChunkNodes<'a> {
    /// Those of a dataset of so many dimensions.
    pub(in crate::hdf5) fn of(file: &'a Hdf5File, source: &'a dyn MetadataSource, ndim: usize) -> ChunkNodes<'a> {
        let context = Context::new("change chunks of an HDF5 dataset in", file.name());
        ChunkNodes { fetcher: Fetcher::new(source, file.widths, context), key_bytes: 8 + 8 * (ndim as u64 + 1) }
    }

    /// The node at this address, below one of that level.
    pub(in crate::hdf5) fn node(&self, at: u64, above: Option<u8>) -> Result<TreeNode, Error> {
        TreeV1 { fetcher: &self.fetcher, kind: 1, key_bytes: self.key_bytes }.whole(at, above)
    }

    /// What a node of this level begins with, up to its children.
    pub(in crate::hdf5) fn head(&self, at: u64, level: u8) -> Result<Vec<u8>, Error> {
        let head = self.fetcher.block(at, 24, b"TREE")?;
        match head[4..6] == [1, level] {
            true => Ok(head),
            false => Err(self.damaged(format!("a node of level {level} at byte {at}"), "another one")),
        }
    }

    /// That the tree is not such.
    pub(in crate::hdf5) fn damaged(&self, expected: impl Into<String>, found: impl Into<String>) -> Error {
        self.fetcher.context.corrupt(expected, found)
    }
}
