//! What is in a group: links in its header, or, in groups of the oldest format that exist, a table that is sorted by name.
//!
//! A header is searched from its begin, so that a thousand openings of a group of a thousand look at a million links: where there are
//! more, they lie in a heap (`dense`). The table (sections III.A.1, III.B and III.D of the specification) is a B-tree of nodes of
//! symbols, whose names lie in a local heap. It does not know in which order links were made.

use super::header::NewHeader;
use super::messages;
use super::tree::node_counts;
use crate::hdf5::content::{LinkTarget, NOWHERE};

/// Symbols of a node, and children of a node of the tree, that is full: what libraries assume.
const SYMBOLS_MAX: usize = 8;
const CHILDREN_MAX: usize = 32;
const SYMBOL_NODE_BYTES: usize = 8 + SYMBOLS_MAX * 40;
const TREE_NODE_BYTES: usize = 24 + (2 * CHILDREN_MAX + 1) * 8;
const HEAP_HEAD_BYTES: u64 = 32;

/// Adds links to a header, in the order in which they were made.
pub(super) fn compact(header: &mut NewHeader, all: &[(&str, u64)]) {
    header.message(messages::LINK_INFO, &messages::link_info(all.len() as u64, None));
    header.message(messages::GROUP_INFO, &messages::GROUP_INFO_BODY);
    for (order, (name, at)) in all.iter().enumerate() {
        header.message(messages::LINK, &messages::link(name, Some(order as u64), *at));
    }
}

/// The message of a table that begins at this address: its heap comes first.
pub(in crate::hdf5) fn table_message(at: u64) -> Vec<u8> {
    [(at + HEAP_HEAD_BYTES).to_le_bytes(), at.to_le_bytes()].concat()
}

/// Heap head, tree with its root first, symbols, names; from this address on. Links lead to objects, or are soft.
pub(in crate::hdf5) fn table(all: &[(&str, LinkTarget)], at: u64) -> Vec<u8> {
    let mut sorted = all.to_vec();
    sorted.sort_unstable_by_key(|(name, _)| name.as_bytes());
    // The root is there, also where it leads to nothing.
    let levels = node_counts(sorted.len().div_ceil(SYMBOLS_MAX).max(1), CHILDREN_MAX);
    let nodes: usize = levels.iter().sum();
    let tree_at = at + HEAP_HEAD_BYTES;
    let symbols_at = tree_at + (nodes * TREE_NODE_BYTES) as u64;
    let names_at = symbols_at + (sorted.len().div_ceil(SYMBOLS_MAX) * SYMBOL_NODE_BYTES) as u64;

    // The empty name is first: it is smaller than all.
    let mut names = vec![0; 8];
    let mut symbols = Vec::new();
    let mut children = Vec::new();
    for some in sorted.chunks(SYMBOLS_MAX) {
        let child_at = symbols_at + symbols.len() as u64;
        let (node, last) = symbol_node(some, &mut names);
        symbols.extend(node);
        children.push((child_at, last));
    }
    let mut made = b"HEAP\0\0\0\0".to_vec();
    // Nothing is free: the list of what is has the head 1.
    for number in [names.len() as u64, 1, names_at] {
        made.extend(number.to_le_bytes());
    }
    made.extend(tree(children, &levels, tree_at));
    [made, symbols, names].concat()
}

/// A node of these symbols, and where the name of the last lies in the heap.
fn symbol_node(some: &[(&str, LinkTarget)], names: &mut Vec<u8>) -> (Vec<u8>, u64) {
    let mut node = b"SNOD\x01\0".to_vec();
    node.extend((some.len() as u16).to_le_bytes());
    let mut last = 0;
    let mut keep = |text: &str| {
        let at = names.len() as u64;
        names.extend_from_slice(text.as_bytes());
        names.resize((names.len() + 1).next_multiple_of(8), 0);
        at
    };
    for (name, target) in some {
        last = keep(name);
        node.extend(last.to_le_bytes());
        match target {
            LinkTarget::Object(at) => node.extend([&at.to_le_bytes()[..], &[0; 24]].concat()),
            LinkTarget::Soft(path) => {
                let path = keep(path) as u32;
                node.extend([&NOWHERE.to_le_bytes()[..], &2u32.to_le_bytes(), &[0; 4]].concat());
                node.extend([&path.to_le_bytes()[..], &[0; 12]].concat());
            }
            LinkTarget::External { .. } | LinkTarget::Unknown(_) => unreachable!("such links lie in headers only"),
        }
    }
    node.resize(SYMBOL_NODE_BYTES, 0);
    (node, last)
}

/// The tree over these nodes, each of which has the last name in it as the key on its right.
fn tree(mut children: Vec<(u64, u64)>, levels: &[usize], at: u64) -> Vec<u8> {
    let mut tree = vec![0; levels.iter().sum::<usize>() * TREE_NODE_BYTES];
    for (level, &count) in levels.iter().enumerate() {
        let first: usize = levels[level + 1..].iter().sum();
        let place = |number: usize| at + ((first + number) * TREE_NODE_BYTES) as u64;
        let (mut above, mut before) = (Vec::with_capacity(count), 0);
        let nothing: &[(u64, u64)] = &[];
        let nodes = if children.is_empty() { vec![nothing] } else { children.chunks(CHILDREN_MAX).collect() };
        for (number, some) in nodes.into_iter().enumerate() {
            let mut node = b"TREE".to_vec();
            node.extend([0, level as u8]);
            node.extend((some.len() as u16).to_le_bytes());
            node.extend(number.checked_sub(1).map_or(NOWHERE, place).to_le_bytes());
            node.extend(if number + 1 < count { place(number + 1) } else { NOWHERE }.to_le_bytes());
            node.extend(u64::to_le_bytes(before));
            for (child, last) in some {
                node.extend(child.to_le_bytes());
                node.extend(last.to_le_bytes());
                before = *last;
            }
            let begin = (first + number) * TREE_NODE_BYTES;
            tree[begin..begin + node.len()].copy_from_slice(&node);
            above.push((place(number), before));
        }
        children = above;
    }
    tree
}
