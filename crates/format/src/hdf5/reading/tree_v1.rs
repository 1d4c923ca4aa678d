//! Trees of version 1: old groups, and chunks of files for all libraries (section III.A.1).

use super::fetch::Fetcher;
use super::fields::FieldReader;
use crate::error::Error;
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
        let mut fields = fetcher.fields(&block[begin as usize..], "B-tree node");
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
}
