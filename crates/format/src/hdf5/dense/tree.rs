//! Trees of version 2 that grow (section III.A.2 of the specification): a record that is added changes the leaf where it comes and the
//! nodes on the way there, which are made anew; all others stay where they are.

use super::behind::BehindEnd;
use super::policy::{LEVELS, MERGE_PERCENT, NODE_BYTES};
use crate::error::Error;
use crate::hdf5::content::NOWHERE;
use crate::hdf5::lookup3::checked;
use crate::hdf5::reading::{ChildNode, StoredNode, TreeLevel, tree_levels, width};
use std::cmp::Ordering;

/// A tree that grows.
pub(super) struct GrowingTree {
    /// Type of its records, and how many bytes they have \[B\].
    kind: u8,
    record_bytes: usize,
    levels: Vec<TreeLevel>,
    root: Option<GrowingNode>,
    /// Levels below the root.
    depth: usize,
}

/// A node as it lies in the file, or as it will be.
enum GrowingNode {
    Stored(ChildNode),
    Open(NodeInMemory),
}

#[derive(Default)]
struct NodeInMemory {
    records: Vec<Vec<u8>>,
    children: Vec<GrowingNode>,
}

/// What comes out of a node that was full: the record behind what stays, and the node behind that.
type NodeSplit = Option<(Vec<u8>, GrowingNode)>;

/// How nodes of the file are read.
pub(super) type Load<'a> = &'a dyn Fn(ChildNode) -> Result<StoredNode, Error>;

impl GrowingTree {
    /// An empty tree.
    pub(super) fn new(kind: u8, record_bytes: usize) -> GrowingTree {
        let levels = tree_levels((NODE_BYTES as u64, record_bytes as u64, 8), LEVELS).unwrap_or_default();
        GrowingTree { kind, record_bytes, levels, root: None, depth: 0 }
    }

    /// One that lies in the file below this root.
    pub(super) fn stored(kind: u8, record_bytes: usize, root: Option<ChildNode>) -> GrowingTree {
        let depth = root.map_or(0, |root| root.level);
        GrowingTree { root: root.map(GrowingNode::Stored), depth, ..GrowingTree::new(kind, record_bytes) }
    }

    /// Whether a tree of so many levels below its root can grow here.
    pub(super) fn can_grow(depth: usize) -> bool {
        depth + 1 < LEVELS
    }

    /// The last record.
    pub(super) fn last(&mut self, load: Load) -> Result<Option<Vec<u8>>, Error> {
        let Some(mut node) = self.root.as_mut() else { return Ok(None) };
        loop {
            let NodeInMemory { records, children } = node.opened(load)?;
            match children.last_mut() {
                Some(child) => node = child,
                None => return Ok(records.last().cloned()),
            }
        }
    }

    /// Adds a record; `order` says where one of the tree lies beside it.
    pub(super) fn insert(
        &mut self,
        record: Vec<u8>,
        order: &dyn Fn(&[u8]) -> Result<Ordering, Error>,
        load: Load,
    ) -> Result<(), Error> {
        debug_assert_eq!(record.len(), self.record_bytes);
        let Some(mut root) = self.root.take() else {
            self.root = Some(GrowingNode::Open(NodeInMemory { records: vec![record], children: Vec::new() }));
            return Ok(());
        };
        let split = root.insert(record, order, (&self.levels, self.depth), load)?;
        self.root = Some(match split {
            None => root,
            Some((middle, right)) => {
                self.depth += 1;
                GrowingNode::Open(NodeInMemory { records: vec![middle], children: vec![root, right] })
            }
        });
        Ok(())
    }

    /// Puts the nodes that are new behind; gives the head, which leads to them.
    pub(super) fn made(&self, behind: &mut BehindEnd) -> Vec<u8> {
        let root = self.root.as_ref().map(|root| self.put(root, self.depth, behind));
        let (at, records, all) = root.map_or((NOWHERE, 0, 0), |root| (root.at, root.records, root.all));
        let mut head = b"BTHD\0".to_vec();
        head.push(self.kind);
        head.extend((NODE_BYTES as u32).to_le_bytes());
        head.extend((self.record_bytes as u16).to_le_bytes());
        head.extend((self.depth as u16).to_le_bytes());
        // When nodes are split and merged, in per cent: as libraries do it.
        head.extend([100, MERGE_PERCENT as u8]);
        head.extend(at.to_le_bytes());
        head.extend((records as u16).to_le_bytes());
        head.extend(all.to_le_bytes());
        checked(head)
    }

    fn put(&self, node: &GrowingNode, level: usize, behind: &mut BehindEnd) -> ChildNode {
        let NodeInMemory { records, children } = match node {
            GrowingNode::Stored(stored) => return *stored,
            GrowingNode::Open(open) => open,
        };
        let below: Vec<ChildNode> = children.iter().map(|child| self.put(child, level - 1, behind)).collect();
        let mut bytes = if level == 0 { b"BTLF\0".to_vec() } else { b"BTIN\0".to_vec() };
        bytes.push(self.kind);
        records.iter().for_each(|record| bytes.extend_from_slice(record));
        for child in &below {
            bytes.extend(child.at.to_le_bytes());
            bytes.extend(&child.records.to_le_bytes()[..width(self.levels[0].records_max).into()]);
            bytes.extend(&child.all.to_le_bytes()[..self.levels[level - 1].all_width.into()]);
        }
        let mut bytes = checked(bytes);
        bytes.resize(NODE_BYTES, 0);
        let count = records.len() as u64;
        let all = count + below.iter().map(|child| child.all).sum::<u64>();
        ChildNode { at: behind.put(&bytes), records: count, all, level }
    }
}

impl GrowingNode {
    fn opened(&mut self, load: Load) -> Result<&mut NodeInMemory, Error> {
        if let GrowingNode::Stored(stored) = self {
            let StoredNode { records, children } = load(*stored)?;
            let children = children.into_iter().map(GrowingNode::Stored).collect();
            *self = GrowingNode::Open(NodeInMemory { records, children });
        }
        match self {
            GrowingNode::Open(open) => Ok(open),
            GrowingNode::Stored(_) => unreachable!("it was opened"),
        }
    }

    fn insert(
        &mut self,
        record: Vec<u8>,
        order: &dyn Fn(&[u8]) -> Result<Ordering, Error>,
        (levels, level): (&[TreeLevel], usize),
        load: Load,
    ) -> Result<NodeSplit, Error> {
        let open = self.opened(load)?;
        let (mut low, mut high) = (0, open.records.len());
        while low < high {
            let middle = (low + high) / 2;
            match order(&open.records[middle])? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal | Ordering::Greater => high = middle,
            }
        }
        if level == 0 {
            open.records.insert(low, record);
        } else if let Some((middle, right)) = open.children[low].insert(record, order, (levels, level - 1), load)? {
            open.records.insert(low, middle);
            open.children.insert(low + 1, right);
        }
        let count = open.records.len();
        if count as u64 <= levels[level].records_max {
            return Ok(None);
        }
        // Where records come in their order, more stay than go. Libraries that remove some count on as many in each node as they merge.
        let goes = count * MERGE_PERCENT / 100 + 1;
        let stays = if low + 1 >= count { count - 1 - goes } else { count / 2 };
        let records = open.records.split_off(stays + 1);
        let middle = open.records.pop().expect("two records stay or more");
        let children = if level == 0 { Vec::new() } else { open.children.split_off(stays + 1) };
        Ok(Some((middle, GrowingNode::Open(NodeInMemory { records, children }))))
    }
}
