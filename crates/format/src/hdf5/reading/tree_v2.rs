//! Trees of version 2: names in heaps, huge objects, and chunks of several unlimited dimensions (section III.A.2).

use super::fetch::Fetcher;
use super::fields::FieldReader;
use crate::error::Error;
use crate::hdf5::policy::TREE_DEPTH_MAX;

/// What a tree is used for: its records, in order.
pub(super) trait VisitV2 {
    /// Whether something between two records is wanted; nothing stands for no bound.
    fn wants(&mut self, before: Option<&[u8]>, behind: Option<&[u8]>) -> Result<bool, Error>;

    /// A record.
    fn record(&mut self, record: &[u8]) -> Result<(), Error>;
}

/// A tree.
pub(super) struct TreeV2<'a> {
    fetcher: &'a Fetcher<'a>,
    /// Type of its records.
    pub(super) kind: u8,
    node_bytes: u64,
    /// Size of a record \[B\].
    pub(super) record_bytes: u64,
    /// For each level from the leaves on.
    levels: Vec<TreeLevel>,
    root: Option<u64>,
    root_records: u64,
    /// Records of all nodes.
    all: u64,
}

/// What nodes of a level have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hdf5) struct TreeLevel {
    pub(in crate::hdf5) records_max: u64,
    /// Width of the number of records below a node, itself included \[B\].
    pub(in crate::hdf5) all_width: u8,
}

/// A node, as the one above it tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::hdf5) struct ChildNode {
    pub(in crate::hdf5) at: u64,
    pub(in crate::hdf5) records: u64,
    /// Records of it and of all below.
    pub(in crate::hdf5) all: u64,
    pub(in crate::hdf5) level: usize,
}

/// What is in a node: between two records lies a child, where the node is no leaf.
pub(in crate::hdf5) struct StoredNode {
    pub(in crate::hdf5) records: Vec<Vec<u8>>,
    pub(in crate::hdf5) children: Vec<ChildNode>,
}

/// Signature, version, type and checksum.
const AROUND_BYTES: u64 = 10;

/// How many bytes a number up to this one needs.
pub(in crate::hdf5) fn width(most: u64) -> u8 {
    (most.max(1).ilog2() / 8 + 1) as u8
}

/// How many records nodes of each level can have, from which follows how wide numbers in them are; sizes of nodes, records and
/// addresses \[B\].
pub(in crate::hdf5) fn tree_levels(
    (node_bytes, record_bytes, offset): (u64, u64, u8),
    depth: usize,
) -> Option<Vec<TreeLevel>> {
    let room = node_bytes.checked_sub(AROUND_BYTES)?;
    let leaf = (room / record_bytes).checked_sub(1)? + 1;
    let mut levels = vec![TreeLevel { records_max: leaf, all_width: 0 }];
    let mut all = leaf;
    for below in 0..depth {
        let pointer = u64::from(offset) + u64::from(width(leaf)) + u64::from(levels[below].all_width);
        let most = room.checked_sub(pointer)? / (record_bytes + pointer);
        let most = most.checked_sub(1)? + 1;
        // Wider than any number that is stored: such trees are only possible in files that lie.
        all = (most + 1).checked_mul(all)?.checked_add(most)?;
        levels.push(TreeLevel { records_max: most, all_width: width(all) });
    }
    Some(levels)
}

impl<'a> TreeV2<'a> {
    /// Reads the header of a tree.
    pub(super) fn read(fetcher: &'a Fetcher<'a>, at: u64) -> Result<TreeV2<'a>, Error> {
        let widths = fetcher.widths;
        let block = fetcher.block(at, 22 + u64::from(widths.offset) + u64::from(widths.length), b"BTHD")?;
        let body = fetcher.verified(at, &block)?;
        let mut fields = fetcher.fields(&body[4..], "B-tree header");
        fields.version(0..=0)?;
        let kind = fields.byte()?;
        let node_bytes = u64::from(fields.four()?);
        let record_bytes = u64::from(fields.two()?);
        let depth = fields.two()?;
        fields.skip(2)?;
        let (root, root_records, all) = (fields.address()?, u64::from(fields.two()?), fields.length()?);
        let wrong = || fields.wrong("nodes with room", format!("{node_bytes} B for records of {record_bytes} B"));
        if u32::from(depth) > TREE_DEPTH_MAX || record_bytes == 0 {
            return Err(wrong());
        }
        let levels = tree_levels((node_bytes, record_bytes, widths.offset), depth.into()).ok_or_else(wrong)?;
        Ok(TreeV2 { fetcher, kind, node_bytes, record_bytes, levels, root, root_records, all })
    }

    /// Visits what is wanted, in order.
    pub(super) fn visit(&self, visit: &mut dyn VisitV2) -> Result<(), Error> {
        match self.root {
            Some(_) => self.root().map_or(Ok(()), |root| self.node(root, [None, None], visit)),
            None => Ok(()),
        }
    }

    /// The node above all others.
    pub(super) fn root(&self) -> Option<ChildNode> {
        let (records, all, level) = (self.root_records, self.all, self.levels.len() - 1);
        self.root.map(|at| ChildNode { at, records, all, level })
    }

    /// Bytes of its nodes \[B\].
    pub(super) fn node_bytes(&self) -> u64 {
        self.node_bytes
    }

    /// What is in a node.
    pub(super) fn opened(&self, node: ChildNode) -> Result<StoredNode, Error> {
        let block = self.block(node)?;
        let mut fields = self.fetcher.fields(&block[6..block.len() - 4], "B-tree node");
        let stored = fields.take(node.records * self.record_bytes)?;
        let records = stored.chunks_exact(self.record_bytes as usize).map(<[u8]>::to_vec).collect();
        let mut children = Vec::new();
        if let Some(level) = node.level.checked_sub(1) {
            for _ in 0..=node.records {
                children.push(self.child(&mut fields, level)?);
            }
        }
        Ok(StoredNode { records, children })
    }

    /// What a node says of the next one below it, at this level.
    fn child(&self, fields: &mut FieldReader, level: usize) -> Result<ChildNode, Error> {
        let (at, records) = (fields.place()?, fields.number(width(self.levels[0].records_max))?);
        let all = fields.number(self.levels[level].all_width)?;
        Ok(ChildNode { at, records, all: all.max(records), level })
    }

    /// The bytes of a node, verified.
    fn block(&self, ChildNode { at, records, level, .. }: ChildNode) -> Result<Vec<u8>, Error> {
        let fetcher = self.fetcher;
        if records > self.levels[level].records_max {
            let expected = format!("at most {} records in a node", self.levels[level].records_max);
            return Err(fetcher.context.corrupt(expected, format!("{records} at byte {at}")));
        }
        let pointer = level.checked_sub(1).map_or(0, |below| {
            let widths = [width(self.levels[0].records_max), self.levels[below].all_width];
            u64::from(fetcher.widths.offset) + widths.map(u64::from).iter().sum::<u64>()
        });
        let bytes = AROUND_BYTES + records * self.record_bytes + (records + 1) * pointer;
        let block = fetcher.block(at, bytes, if level == 0 { b"BTLF" } else { b"BTIN" })?;
        let body = fetcher.verified(at, &block)?;
        let mut fields = fetcher.fields(&body[4..], "B-tree node");
        fields.version(0..=0)?;
        if fields.byte()? != self.kind {
            return Err(fields.wrong(&format!("records of type {}", self.kind), format!("others at byte {at}")));
        }
        Ok(block)
    }

    fn node(&self, node: ChildNode, bounds: [Option<&[u8]>; 2], visit: &mut dyn VisitV2) -> Result<(), Error> {
        let ChildNode { at, records, level, .. } = node;
        self.fetcher.enter(at)?;
        let block = self.block(node)?;
        let mut fields = self.fetcher.fields(&block[6..block.len() - 4], "B-tree node");
        let stored = fields.take(records * self.record_bytes)?;
        let record = |number: u64| stored.chunks_exact(self.record_bytes as usize).nth(number as usize);
        for number in 0..=records {
            if let Some(below) = level.checked_sub(1) {
                let child = self.child(&mut fields, below)?;
                let before = number.checked_sub(1).map_or(bounds[0], record);
                let behind = if number == records { bounds[1] } else { record(number) };
                if visit.wants(before, behind)? {
                    self.node(child, [before, behind], visit)?;
                }
            }
            if let Some(record) = record(number) {
                visit.record(record)?;
            }
        }
        Ok(())
    }
}

/// All records of the tree at this address, which is of one of these types; the type, and the records in order.
pub(super) fn all_records(fetcher: &Fetcher, at: u64, kinds: &[u8]) -> Result<(u8, Vec<Vec<u8>>), Error> {
    struct All(Vec<Vec<u8>>);
    impl VisitV2 for All {
        fn wants(&mut self, _: Option<&[u8]>, _: Option<&[u8]>) -> Result<bool, Error> {
            Ok(true)
        }
        fn record(&mut self, record: &[u8]) -> Result<(), Error> {
            self.0.push(record.to_vec());
            Ok(())
        }
    }
    let tree = TreeV2::read(fetcher, at)?;
    if !kinds.contains(&tree.kind) {
        let found = format!("type {} at byte {at}", tree.kind);
        return Err(fetcher.context.corrupt(format!("a B-tree of type {kinds:?}"), found));
    }
    let mut all = All(Vec::new());
    tree.visit(&mut all)?;
    Ok((tree.kind, all.0))
}
