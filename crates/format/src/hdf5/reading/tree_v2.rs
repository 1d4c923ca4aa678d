//! Trees of version 2: names in heaps, huge objects, and chunks of several unlimited dimensions (section III.A.2).

use super::fetch::Fetcher;
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
}

/// What nodes of a level have.
struct TreeLevel {
    records_max: u64,
    /// Width of the number of records below a node, itself included \[B\].
    all_width: u8,
}

/// A node, as the one above it tells of it.
#[derive(Clone, Copy)]
struct ChildNode {
    at: u64,
    records: u64,
    level: usize,
}

/// Signature, version, type and checksum.
const AROUND_BYTES: u64 = 10;

/// How many bytes a number up to this one needs.
fn width(most: u64) -> u8 {
    (most.max(1).ilog2() / 8 + 1) as u8
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
        let (root, root_records) = (fields.address()?, u64::from(fields.two()?));
        let wrong = || fields.wrong("nodes with room", format!("{node_bytes} B for records of {record_bytes} B"));
        if u32::from(depth) > TREE_DEPTH_MAX || record_bytes == 0 {
            return Err(wrong());
        }
        let mut tree = TreeV2 { fetcher, kind, node_bytes, record_bytes, levels: Vec::new(), root, root_records };
        tree.levels = tree.count_levels(depth.into()).ok_or_else(wrong)?;
        Ok(tree)
    }

    /// How many records nodes of each level can have, from which follows how wide numbers in them are.
    fn count_levels(&self, depth: usize) -> Option<Vec<TreeLevel>> {
        let room = self.node_bytes.checked_sub(AROUND_BYTES)?;
        let leaf = (room / self.record_bytes).checked_sub(1)? + 1;
        let mut levels = vec![TreeLevel { records_max: leaf, all_width: 0 }];
        let mut all = leaf;
        for below in 0..depth {
            let pointer = self.pointer_bytes(width(leaf), levels[below].all_width);
            let most = room.checked_sub(pointer)? / (self.record_bytes + pointer);
            let most = most.checked_sub(1)? + 1;
            // Wider than any number that is stored: such trees are only possible in files that lie.
            all = (most + 1).checked_mul(all)?.checked_add(most)?;
            levels.push(TreeLevel { records_max: most, all_width: width(all) });
        }
        Some(levels)
    }

    fn pointer_bytes(&self, one: u8, all: u8) -> u64 {
        u64::from(self.fetcher.widths.offset) + u64::from(one) + u64::from(all)
    }

    /// Visits what is wanted, in order.
    pub(super) fn visit(&self, visit: &mut dyn VisitV2) -> Result<(), Error> {
        match self.root {
            Some(at) => {
                let root = ChildNode { at, records: self.root_records, level: self.levels.len() - 1 };
                self.node(root, [None, None], visit)
            }
            None => Ok(()),
        }
    }

    fn node(&self, node: ChildNode, bounds: [Option<&[u8]>; 2], visit: &mut dyn VisitV2) -> Result<(), Error> {
        let ChildNode { at, records, level } = node;
        let fetcher = self.fetcher;
        fetcher.enter(at)?;
        if records > self.levels[level].records_max {
            let expected = format!("at most {} records in a node", self.levels[level].records_max);
            return Err(fetcher.context.corrupt(expected, format!("{records} at byte {at}")));
        }
        let (one, all) =
            (width(self.levels[0].records_max), level.checked_sub(1).map(|below| self.levels[below].all_width));
        let pointer = all.map_or(0, |all| self.pointer_bytes(one, all));
        let bytes =
            AROUND_BYTES + records * self.record_bytes + if all.is_some() { (records + 1) * pointer } else { 0 };
        let block = fetcher.block(at, bytes, if level == 0 { b"BTLF" } else { b"BTIN" })?;
        let body = fetcher.verified(at, &block)?;
        let mut fields = fetcher.fields(&body[4..], "B-tree node");
        fields.version(0..=0)?;
        if fields.byte()? != self.kind {
            return Err(fields.wrong(&format!("records of type {}", self.kind), format!("others at byte {at}")));
        }
        let stored = fields.take(records * self.record_bytes)?;
        let record = |number: u64| stored.chunks_exact(self.record_bytes as usize).nth(number as usize);
        for number in 0..=records {
            if let Some(all) = all {
                let child = ChildNode { at: fields.place()?, records: fields.number(one)?, level: level - 1 };
                fields.number(all)?;
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
