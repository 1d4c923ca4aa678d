//! A B-tree of chunks that gets some entries: only the nodes on the way to them are made anew, behind the end of the file.
//!
//! ```text
//!          root                         root'
//!        /   |   \        becomes      /   |   \        where a and b stay, and b gets c' as its right neighbour
//!       a    b    c                   a    b    c' - d'
//! ```
//!
//! The tree is read from its root on, so that what leads to the old root sees the old entries. The neighbours of a node are
//! for those who go through a level; they are changed in place, by 8 bytes each.

use super::content::NOWHERE;
use super::reading::{ChunkNodes, TreeNode};
use super::writing::{CHILDREN_MAX, TreeChild, node, node_bytes};
use crate::error::Error;
use std::cmp::Ordering;
use std::ops::Range;

/// What becomes of a tree.
pub(super) struct PatchedTree {
    /// New nodes, from the given address on.
    pub(super) behind: Vec<u8>,
    pub(super) root: u64,
    /// Places of addresses of neighbours, with what is there, and what shall be.
    pub(super) neighbours: Vec<(u64, u64, u64)>,
}

/// A node that is made.
struct MadeNode {
    level: u8,
    children: Vec<TreeChild>,
    /// The key behind its last child.
    end: Vec<u8>,
    left: u64,
    right: u64,
}

/// Nodes that take the place of one.
struct NodeRun {
    old: u64,
    left: Option<u64>,
    right: Option<u64>,
    /// Their numbers among those that are made.
    made: Range<usize>,
}

/// Nodes that are made anew.
struct TreePatch<'a> {
    nodes: &'a ChunkNodes<'a>,
    /// The key behind the last entry, given that.
    past: &'a dyn Fn(&[u8]) -> Vec<u8>,
    at: u64,
    made: Vec<MadeNode>,
    /// What takes the place of nodes of each level, from the left to the right.
    runs: Vec<Vec<NodeRun>>,
}

/// The tree with this root and these entries besides, in their order; an entry with the key of one that is there takes its place.
pub(super) fn patched(
    nodes: &ChunkNodes,
    root: u64,
    entries: &[TreeChild],
    past: &dyn Fn(&[u8]) -> Vec<u8>,
    at: u64,
) -> Result<PatchedTree, Error> {
    let mut patch = TreePatch { nodes, past, at, made: Vec::new(), runs: Vec::new() };
    let (mut top, end, mut level) = patch.replaced(root, None, entries)?;
    while top.len() > 1 {
        level += 1;
        top = patch.make(level, &top, &end).1;
    }
    let root = top.first().map_or(root, |child| child.at);
    let neighbours = patch.linked()?;
    let key_bytes = end.len();
    let made = patch.made.iter().flat_map(|made| {
        let mut bytes = node(made.level, &made.children, &made.end, (made.left, made.right));
        bytes.resize(node_bytes(key_bytes), 0);
        bytes
    });
    Ok(PatchedTree { behind: made.collect(), root, neighbours })
}

/// The order of keys is that of the first elements of chunks, behind their sizes and filters.
fn order(one: &[u8], other: &[u8]) -> Ordering {
    let places = |key: &[u8]| -> Vec<u64> {
        key[8..].as_chunks::<8>().0.iter().map(|place| u64::from_le_bytes(*place)).collect()
    };
    places(one).cmp(&places(other))
}

fn later(one: Vec<u8>, other: Vec<u8>) -> Vec<u8> {
    if order(&one, &other) == Ordering::Less { other } else { one }
}

impl TreePatch<'_> {
    /// Replaces a node and what is below it on the way to some entries; gives the nodes in its place, the key behind them, and
    /// their level.
    fn replaced(
        &mut self,
        at: u64,
        above: Option<u8>,
        entries: &[TreeChild],
    ) -> Result<(Vec<TreeChild>, Vec<u8>, u8), Error> {
        let TreeNode { level, left, right, children, mut end } = self.nodes.node(at, above)?;
        let mut all = Vec::with_capacity(children.len() + entries.len());
        if level == 0 {
            all = with(children, entries);
            if let Some(last) = all.last() {
                end = later((self.past)(&last.key), end);
            }
        } else if children.is_empty() {
            return Err(self
                .nodes
                .damaged("a node with children", format!("one of level {level} without, at byte {at}")));
        } else {
            let mut rest = entries;
            let keys: Vec<Vec<u8>> = children.iter().skip(1).map(|(key, _)| key.clone()).collect();
            for (number, (key, child)) in children.into_iter().enumerate() {
                let is_before =
                    |entry: &TreeChild| keys.get(number).is_none_or(|next| order(&entry.key, next) == Ordering::Less);
                let (here, others) = rest.split_at(rest.partition_point(is_before));
                rest = others;
                if here.is_empty() {
                    all.push(TreeChild { key, at: child });
                    continue;
                }
                let (inner, inner_end, _) = self.replaced(child, Some(level), here)?;
                all.extend(inner);
                if number == keys.len() {
                    end = later(inner_end, end);
                }
            }
        }
        let (made, top) = self.make(level, &all, &end);
        let levels = self.runs.len().max(usize::from(level) + 1);
        self.runs.resize_with(levels, Vec::new);
        self.runs[usize::from(level)].push(NodeRun { old: at, left, right, made });
        Ok((top, end, level))
    }

    fn address(&self, number: usize, key_bytes: usize) -> u64 {
        self.at + (number * node_bytes(key_bytes)) as u64
    }

    /// Makes nodes of these children, and gives their numbers, and what a node above them has.
    fn make(&mut self, level: u8, children: &[TreeChild], end: &[u8]) -> (Range<usize>, Vec<TreeChild>) {
        let (first, count) = (self.made.len(), children.len().div_ceil(CHILDREN_MAX));
        let place = |number: usize| self.at + (number * node_bytes(end.len())) as u64;
        let (mut made, mut above) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (number, some) in children.chunks(CHILDREN_MAX).enumerate() {
            let next = children.get((number + 1) * CHILDREN_MAX).map_or(end, |child| &child.key);
            let left = if number > 0 { place(first + number - 1) } else { NOWHERE };
            let right = if number + 1 < count { place(first + number + 1) } else { NOWHERE };
            made.push(MadeNode { level, children: some.to_vec(), end: next.to_vec(), left, right });
            above.push(TreeChild { key: some[0].key.clone(), at: place(first + number) });
        }
        self.made.extend(made);
        (first..first + count, above)
    }

    /// Tells nodes who is beside them now; gives what is changed of nodes that stay.
    fn linked(&mut self) -> Result<Vec<(u64, u64, u64)>, Error> {
        let key_bytes = self.made.first().map_or(0, |made| made.end.len());
        let mut changed = Vec::new();
        for (level, runs) in std::mem::take(&mut self.runs).into_iter().enumerate() {
            let runs: Vec<NodeRun> = runs.into_iter().filter(|run| !run.made.is_empty()).collect();
            for (number, run) in runs.iter().enumerate() {
                let (first, last) = (run.made.start, run.made.end - 1);
                let before = number.checked_sub(1).map(|number| &runs[number]);
                self.made[first].left = match (run.left, before) {
                    (Some(left), Some(other)) if left == other.old => self.address(other.made.end - 1, key_bytes),
                    (Some(left), _) => {
                        changed.push(self.neighbour(left, level, 16, self.address(first, key_bytes))?);
                        left
                    }
                    (None, _) => NOWHERE,
                };
                self.made[last].right = match (run.right, runs.get(number + 1)) {
                    (Some(right), Some(other)) if right == other.old => self.address(other.made.start, key_bytes),
                    (Some(right), _) => {
                        changed.push(self.neighbour(right, level, 8, self.address(last, key_bytes))?);
                        right
                    }
                    (None, _) => NOWHERE,
                };
            }
        }
        Ok(changed)
    }

    /// A neighbour of a node that stays: the place of its address, what it is, and what it shall be.
    fn neighbour(&self, at: u64, level: usize, place: u64, new: u64) -> Result<(u64, u64, u64), Error> {
        let head = self.nodes.head(at, level as u8)?;
        let before = head[place as usize..].first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Ok((at + place, before, new))
    }
}

/// Both in order; of entries with the same key, the new one.
fn with(old: Vec<(Vec<u8>, u64)>, new: &[TreeChild]) -> Vec<TreeChild> {
    let mut all = Vec::with_capacity(old.len() + new.len());
    let mut new = new.iter().peekable();
    for (key, at) in old {
        while let Some(entry) = new.next_if(|entry| order(&entry.key, &key) == Ordering::Less) {
            all.push(entry.clone());
        }
        if new.peek().is_none_or(|entry| order(&entry.key, &key) != Ordering::Equal) {
            all.push(TreeChild { key, at });
        }
    }
    all.extend(new.cloned());
    all
}
