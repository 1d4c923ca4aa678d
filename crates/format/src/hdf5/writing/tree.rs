//! Where chunks lie: a B-tree of version 1 (section III.A.1 of the specification, node type 1).
//!
//! ```text
//! node = head | key 0 | child 0 | key 1 | child 1 | ... | key n
//! key  = bytes of the chunk | filters that it lacks | its first index in each dimension | 0
//! ```
//!
//! The last key of a node is that of the node on its right; behind the last chunk, one that is larger in every dimension.

use super::new::ChunkPlace;
use crate::hdf5::content::NOWHERE;
use hyperslab_layout::mesh;

/// Children of a node that is full: twice 32, what libraries assume unless a superblock says something else.
pub(in crate::hdf5) const CHILDREN_MAX: usize = 64;

/// A node, or a chunk, as a node above sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::hdf5) struct TreeChild {
    pub(in crate::hdf5) key: Vec<u8>,
    pub(in crate::hdf5) at: u64,
}

/// Bytes of a node whose keys have so many \[B\].
pub(in crate::hdf5) fn node_bytes(key_bytes: usize) -> usize {
    24 + (CHILDREN_MAX + 1) * key_bytes + CHILDREN_MAX * 8
}

/// The tree over these chunks of elements of so many bytes, from this address on, with its root first; no bytes where there is
/// no chunk.
pub(in crate::hdf5) fn index(
    shape: &[u64],
    (chunk, element): (&[u64], u64),
    places: &[ChunkPlace],
    at: u64,
) -> Vec<u8> {
    let mut children = chunks(shape, chunk, places);
    let Some(last) = children.last() else { return Vec::new() };
    let end = past(&last.key, chunk, element);
    let key_bytes = end.len();
    let node_bytes = node_bytes(key_bytes);
    // The root is first, so that its address does not depend on how much there is below it.
    let nodes = node_counts(children.len(), CHILDREN_MAX);
    let mut tree = vec![0; nodes.iter().sum::<usize>() * node_bytes];
    for (level, &count) in nodes.iter().enumerate() {
        let first: usize = nodes[level + 1..].iter().sum();
        let place = |number: usize| at + ((first + number) * node_bytes) as u64;
        let mut above = Vec::with_capacity(count);
        for (number, some) in children.chunks(CHILDREN_MAX).enumerate() {
            let next = children.get((number + 1) * CHILDREN_MAX).map_or(&end, |child| &child.key);
            let left = number.checked_sub(1).map_or(NOWHERE, place);
            let right = if number + 1 < count { place(number + 1) } else { NOWHERE };
            let node = node(level as u8, some, next, (left, right));
            let begin = (first + number) * node_bytes;
            tree[begin..begin + node.len()].copy_from_slice(&node);
            above.push(TreeChild { key: some[0].key.clone(), at: place(number) });
        }
        children = above;
    }
    tree
}

/// How many nodes of at most so many children each level has over these leaves, from the lowest to the root.
pub(super) fn node_counts(leaves: usize, children_max: usize) -> Vec<usize> {
    let mut counts = vec![leaves.div_ceil(children_max)];
    while let Some(&count) = counts.last().filter(|&&count| count > 1) {
        counts.push(count.div_ceil(children_max));
    }
    counts
}

/// A node of these children, with the key behind the last, and its neighbours.
pub(in crate::hdf5) fn node(level: u8, children: &[TreeChild], next: &[u8], (left, right): (u64, u64)) -> Vec<u8> {
    let mut bytes = b"TREE".to_vec();
    bytes.extend([1, level]);
    bytes.extend((children.len() as u16).to_le_bytes());
    bytes.extend(left.to_le_bytes());
    bytes.extend(right.to_le_bytes());
    for child in children {
        bytes.extend_from_slice(&child.key);
        bytes.extend(child.at.to_le_bytes());
    }
    bytes.extend_from_slice(next);
    bytes
}

/// The chunks that exist.
pub(in crate::hdf5) fn chunks(shape: &[u64], chunk: &[u64], places: &[ChunkPlace]) -> Vec<TreeChild> {
    let grid: Vec<u64> = shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect();
    let one = |place: &ChunkPlace| {
        let mut key = Vec::with_capacity(16 + 8 * grid.len());
        key.extend(place.bytes.to_le_bytes());
        key.extend(place.lacks.to_le_bytes());
        let at = mesh::unravel(place.number, &grid);
        at.iter().zip(chunk).for_each(|(at, chunk)| key.extend((at * chunk).to_le_bytes()));
        key.extend([0; 8]);
        TreeChild { key, at: place.at }
    };
    places.iter().map(one).collect()
}

/// A key that is larger in every dimension than this one. The last dimension is that of the bytes of an element \[B\].
pub(in crate::hdf5) fn past(key: &[u8], chunk: &[u64], element: u64) -> Vec<u8> {
    let mut past = vec![0; 8];
    for (index, chunk) in key[8..].as_chunks::<8>().0.iter().zip(chunk.iter().chain([&element])) {
        past.extend((u64::from_le_bytes(*index) + chunk).to_le_bytes());
    }
    past
}
