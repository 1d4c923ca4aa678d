//! What headers consist of (section IV.A.2 of the specification).

use super::datatypes;
use super::new::{CHUNK_BYTES_MAX, ChunkPlace, NewDataset, NewStorage};
use super::scales::NewAttribute;
use crate::error::{Context, Error};
use crate::hdf5::content::{Filter, LinkTarget, NOWHERE};
use crate::hdf5::reading::DensePlaces;
use crate::size::array_bytes;
use hyperslab_layout::tuple;

pub(super) const LINK_INFO: u8 = 0x02;
pub(super) const LINK: u8 = 0x06;
pub(super) const GROUP_INFO: u8 = 0x0a;
pub(super) const ATTRIBUTE: u8 = 0x0c;
pub(super) const ATTRIBUTE_INFO: u8 = 0x15;

/// Most dimensions of a dataset; of one in chunks, one less.
const NDIM_MAX: usize = 32;

/// Refuses a dataset for which there is no place.
pub(super) fn check(dataset: &NewDataset, context: &Context) -> Result<(), Error> {
    let NewDataset { shape, limits, datatype, fill, storage, .. } = dataset;
    let element = u64::from(datatype.bytes());
    if shape.len() > NDIM_MAX {
        return Err(context.invalid(format!("at most {NDIM_MAX} dimensions"), shape.len().to_string()));
    }
    if element == 0 || array_bytes(shape, element).is_none() {
        let found = format!("shape {} with elements of {element} B", tuple(shape));
        return Err(context.invalid("an array of less than 2^63 B", found));
    }
    let limited = limits.iter().zip(shape).all(|(limit, extent)| limit.is_none_or(|limit| limit >= *extent));
    if !(limits.is_empty() || limits.len() == shape.len()) || !limited {
        let found = format!("{} limits for shape {}", limits.len(), tuple(shape));
        return Err(context.invalid("a limit for each dimension, none below its extent", found));
    }
    if let Some(fill) = fill.as_ref().filter(|fill| fill.len() as u64 != element) {
        return Err(context.invalid(format!("a fill value of {element} B"), format!("{} B", fill.len())));
    }
    match storage {
        NewStorage::Contiguous(_) if dataset.grows() || !dataset.filters.is_empty() => {
            Err(context.invalid("chunks, since it grows or has filters", "one stretch"))
        }
        NewStorage::Contiguous(_) => Ok(()),
        NewStorage::Chunked { chunk, places } => check_chunks(shape, chunk, places, element, context),
    }
}

fn check_chunks(
    shape: &[u64],
    chunk: &[u64],
    places: &[ChunkPlace],
    element: u64,
    context: &Context,
) -> Result<(), Error> {
    let bytes = chunk.iter().try_fold(element, |bytes, extent| bytes.checked_mul(*extent));
    let fits = bytes.is_some_and(|bytes| bytes > 0 && bytes <= CHUNK_BYTES_MAX);
    if chunk.is_empty() || chunk.len() >= NDIM_MAX || chunk.len() != shape.len() || !fits {
        let expected = format!("chunks of 1 to {} dimensions, as many as the array, and 1 to 2^32 - 1 B", NDIM_MAX - 1);
        let found = format!("chunks {} of shape {}", tuple(chunk), tuple(shape));
        return Err(context.invalid(expected, found));
    }
    let count = shape.iter().zip(chunk).try_fold(1u64, |count, (s, c)| count.checked_mul(s.div_ceil(*c)));
    let count = count.unwrap_or(u64::MAX);
    let beyond = places.last().filter(|last| last.number >= count);
    let wrong = places.windows(2).find(|pair| pair[0].number >= pair[1].number).map(|pair| &pair[1]);
    match wrong.or(beyond) {
        None => Ok(()),
        Some(place) => {
            let expected = format!("places for some of {count} chunks, in their order");
            Err(context.invalid(expected, format!("one for chunk {}", place.number)))
        }
    }
}

/// Section IV.A.2.b, version 2; without a shape, of no elements at all.
pub(super) fn dataspace(shape: Option<&[u64]>, limits: &[Option<u64>]) -> Vec<u8> {
    let Some(shape) = shape else { return vec![2, 0, 0, 2] };
    let mut bytes = vec![2, shape.len() as u8, u8::from(!limits.is_empty()), u8::from(!shape.is_empty())];
    shape.iter().for_each(|extent| bytes.extend(extent.to_le_bytes()));
    limits.iter().for_each(|limit| bytes.extend(limit.unwrap_or(u64::MAX).to_le_bytes()));
    bytes
}

/// Section IV.A.2.f, version 3: space is given when it is needed, and filled if there is a value.
pub(super) fn fill(dataset: &NewDataset) -> Vec<u8> {
    const IF_SET: u8 = 2 << 2;
    let given = match dataset.storage {
        NewStorage::Contiguous(_) => 2,
        NewStorage::Chunked { .. } => 3,
    };
    match &dataset.fill {
        None => vec![3, IF_SET | given],
        Some(value) => {
            let mut bytes = vec![3, IF_SET | given | 1 << 5];
            bytes.extend((value.len() as u32).to_le_bytes());
            bytes.extend_from_slice(value);
            bytes
        }
    }
}

/// Section IV.A.2.i, version 3.
pub(super) fn layout(dataset: &NewDataset, index: u64) -> Vec<u8> {
    match &dataset.storage {
        NewStorage::Contiguous(at) => {
            let bytes = dataset.shape.iter().product::<u64>() * u64::from(dataset.datatype.bytes());
            [&[3, 1][..], &at.unwrap_or(NOWHERE).to_le_bytes(), &bytes.to_le_bytes()].concat()
        }
        NewStorage::Chunked { chunk, .. } => chunked_layout(chunk, dataset.datatype.bytes(), index),
    }
}

/// The same of chunks of elements of so many bytes, whose index lies there.
pub(in crate::hdf5) fn chunked_layout(chunk: &[u64], element: u32, index: u64) -> Vec<u8> {
    let mut bytes = vec![3, 2, chunk.len() as u8 + 1];
    bytes.extend(index.to_le_bytes());
    chunk.iter().for_each(|extent| bytes.extend((*extent as u32).to_le_bytes()));
    bytes.extend(element.to_le_bytes());
    bytes
}

/// Section IV.A.2.l, version 2: names of filters that everybody knows are left out.
pub(super) fn filters(filters: &[Filter]) -> Vec<u8> {
    let mut bytes = vec![2, filters.len() as u8];
    for filter in filters {
        bytes.extend(filter.number.to_le_bytes());
        let name = match filter.number {
            0..256 => Vec::new(),
            _ => [filter.name.as_bytes(), b"\0"].concat(),
        };
        if filter.number >= 256 {
            bytes.extend((name.len() as u16).to_le_bytes());
        }
        bytes.extend(u16::from(filter.optional).to_le_bytes());
        bytes.extend((filter.values.len() as u16).to_le_bytes());
        bytes.extend(name);
        filter.values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    }
    bytes
}

/// Section IV.A.2.c: links in the order in which they were made, of which the next one has this number or a smaller one; in the
/// header, or in a heap.
pub(in crate::hdf5) fn link_info(next: u64, places: Option<DensePlaces>) -> Vec<u8> {
    let mut bytes = vec![0, 0b11];
    let places = places.map_or([NOWHERE; 3], |places| [places.heap, places.names, places.orders.unwrap_or(NOWHERE)]);
    [next].into_iter().chain(places).for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

/// Section IV.A.2.k, with all as it is by default.
pub(in crate::hdf5) const GROUP_INFO_BODY: [u8; 2] = [0, 0];

/// Section IV.A.2.g: a hard link; `order` is when it was made, where the group counts that.
pub(in crate::hdf5) fn link(name: &str, order: Option<u64>, at: u64) -> Vec<u8> {
    // Two bytes of length, perhaps an order, and a character set.
    let mut bytes = vec![1, 0b1_0001 | u8::from(order.is_some()) << 2];
    order.into_iter().for_each(|order| bytes.extend(order.to_le_bytes()));
    bytes.push(1);
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend(at.to_le_bytes());
    bytes
}

/// The same of any link of a table, which has no order.
pub(in crate::hdf5) fn link_message(name: &str, member: &LinkTarget) -> Vec<u8> {
    let LinkTarget::Soft(path) = member else {
        let LinkTarget::Object(at) = member else { unreachable!("such links lie in headers only") };
        return link(name, None, *at);
    };
    // With its kind, a character set, and two bytes of length.
    let mut bytes = vec![1, 0b1_1001, 1, 1];
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend((path.len() as u16).to_le_bytes());
    bytes.extend_from_slice(path.as_bytes());
    bytes
}

/// Section IV.A.2.v: attributes in the order in which they were made, in the header, or in a heap.
pub(super) fn attribute_info(attributes: usize, places: Option<DensePlaces>) -> Vec<u8> {
    let mut bytes = vec![0, 0b11];
    bytes.extend((attributes as u16).to_le_bytes());
    let places = places.map_or([NOWHERE; 3], |places| [places.heap, places.names, places.orders.unwrap_or(NOWHERE)]);
    places.iter().for_each(|place| bytes.extend(place.to_le_bytes()));
    bytes
}

/// Section IV.A.2.m, version 3.
pub(super) fn attribute(attribute: &NewAttribute, elements: &[u8], context: &Context) -> Result<Vec<u8>, Error> {
    let name = [attribute.name.as_bytes(), b"\0"].concat();
    let datatype = datatypes::encoded(&attribute.datatype, context)?;
    let space = dataspace(attribute.shape.as_deref(), &[]);
    let mut bytes = vec![3, 0];
    for length in [name.len(), datatype.len(), space.len()] {
        let length =
            u16::try_from(length).map_err(|_| context.invalid("a part of at most 65535 B", length.to_string()));
        bytes.extend(length?.to_le_bytes());
    }
    bytes.push(1);
    Ok([bytes, name, datatype, space, elements.to_vec()].concat())
}
