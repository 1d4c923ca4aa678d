//! Attributes of an object that has large ones: more than 64 KiB do not go into its header (sections III.G and IV.A.2.v of the
//! specification).
//!
//! All attributes of such an object lie by themselves, as what a fractal heap calls huge objects, which have any size. A tree finds
//! them by their numbers, another by the hashes of their names, and perhaps a third by their order. Such a heap has no blocks; a
//! library that adds small attributes makes some.
//!
//! ```text
//! head of the heap | head of the tree of objects | of names | of order | messages, and nodes of the trees
//! ```

use super::behind::BehindEnd;
use super::policy::{
    ATTRIBUTE_BY_NAME, ATTRIBUTE_BY_ORDER, ATTRIBUTE_ID_BYTES, ATTRIBUTE_OBJECT_BYTES_MAX, HEAP_HEAD_BYTES, HUGE,
    TREE_HEAD_BYTES,
};
use super::tree::GrowingTree;
use crate::error::{Context, Error};
use crate::hdf5::content::NOWHERE;
use crate::hdf5::lookup3::{checked, lookup3};
use crate::hdf5::reading::DensePlaces;
use std::cmp::Ordering;

/// An attribute that is to lie in a heap.
pub(in crate::hdf5) struct LargeAttribute<'a> {
    pub(in crate::hdf5) name: &'a [u8],
    /// When it was made, where that is counted.
    pub(in crate::hdf5) order: u32,
    pub(in crate::hdf5) message: &'a [u8],
}

/// All of it, from this address on, with an index of the order if so, and where heads lie.
pub(in crate::hdf5) fn large_attributes(
    all: &[LargeAttribute],
    ordered: bool,
    at: u64,
) -> Result<(Vec<u8>, DensePlaces), Error> {
    let tree = |(kind, bytes): (u8, usize)| GrowingTree::new(kind, bytes);
    let (mut objects, mut names, mut orders) = (tree(HUGE), tree(ATTRIBUTE_BY_NAME), tree(ATTRIBUTE_BY_ORDER));
    let mut behind = BehindEnd { at, bytes: Vec::new() };
    let head = behind.put(&[0; HEAP_HEAD_BYTES]);
    let heads = [0; 3].map(|_| behind.put(&[0; TREE_HEAD_BYTES]));
    let nothing_stored = |_| Err(Context::new("make HDF5 attributes", "").corrupt("new nodes", "one of a file"));
    for (number, LargeAttribute { name, order, message }) in (1u64..).zip(all) {
        let place = behind.put(message);
        let number_of = |record: &[u8], from: usize| {
            record.get(from..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let object = [place, message.len() as u64, number].map(u64::to_le_bytes).concat();
        objects.insert(object, &|record| Ok(number_of(record, 16).cmp(&number)), &nothing_stored)?;
        // Its kind, and its number in seven bytes.
        let mut id = [0; ATTRIBUTE_ID_BYTES];
        id[0] = 1 << 4;
        id[1..].copy_from_slice(&number.to_le_bytes()[..7]);
        let known = [&id[..], &[0], &order.to_le_bytes()].concat();
        let hash = lookup3(name);
        let by_name = |record: &[u8]| -> Result<Ordering, Error> {
            let other =
                record.get(13..).and_then(|bytes| bytes.first_chunk()).map_or(0, |hash| u32::from_le_bytes(*hash));
            let named = all.get(((number_of(record, 0) >> 8) as usize).saturating_sub(1));
            Ok(other.cmp(&hash).then_with(|| named.map_or(&b""[..], |other| other.name).cmp(name)))
        };
        names.insert([&known[..], &hash.to_le_bytes()].concat(), &by_name, &nothing_stored)?;
        let by_order = |record: &[u8]| {
            let other =
                record.get(9..).and_then(|bytes| bytes.first_chunk()).map_or(0, |order| u32::from_le_bytes(*order));
            Ok(other.cmp(order))
        };
        orders.insert(known, &by_order, &nothing_stored)?;
    }
    let made = [objects.made(&mut behind), names.made(&mut behind), orders.made(&mut behind)];
    let bytes: u64 = all.iter().map(|one| one.message.len() as u64).sum();
    let mut behind = behind.bytes;
    for (place, bytes) in
        [(head, heap_head((all.len() as u64, bytes), heads[0]))].into_iter().chain(heads.into_iter().zip(made))
    {
        let from = (place - at) as usize;
        behind[from..from + bytes.len()].copy_from_slice(&bytes);
    }
    Ok((behind, DensePlaces { heap: head, names: heads[1], orders: ordered.then_some(heads[2]) }))
}

/// The head of a heap of so many huge objects, of so many bytes, that are found by the tree at this address.
fn heap_head((objects, bytes): (u64, u64), tree: u64) -> Vec<u8> {
    let mut head = b"FRHP\0".to_vec();
    head.extend((ATTRIBUTE_ID_BYTES as u16).to_le_bytes());
    // No filters; blocks have checksums.
    head.extend([0, 0, 2]);
    head.extend((ATTRIBUTE_OBJECT_BYTES_MAX as u32).to_le_bytes());
    // The last number, and the tree; what is free, and where that is managed; room in all, given, and where the next block begins;
    // objects in blocks; huge and tiny ones, with their bytes.
    for number in [objects, tree, 0, NOWHERE, 0, 0, 0, 0, bytes, objects, 0, 0] {
        head.extend(number.to_le_bytes());
    }
    // How blocks will be cut, as libraries do it for attributes: 4 in a row, from 1 to 64 KiB, offsets of 40 bits.
    head.extend(4u16.to_le_bytes());
    head.extend([1024, 65_536].map(u64::to_le_bytes).concat());
    head.extend([40u16, 1].map(u16::to_le_bytes).concat());
    head.extend(NOWHERE.to_le_bytes());
    head.extend(0u16.to_le_bytes());
    checked(head)
}
