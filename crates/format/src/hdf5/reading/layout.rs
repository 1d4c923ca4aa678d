//! Data layout messages, versions 1 to 5 (section IV.A.2.i).

use super::fields::FieldReader;
use crate::error::Error;
use crate::hdf5::content::{ChunkIndex, DatasetStorage};
use crate::size::NDIM_MAX;

/// Where the elements of a dataset lie, whose message is at `at`. `bytes` is the size of all of them, and `element_bytes` that of
/// one \[B\].
///
/// Version 5, of HDF5 2.0, is version 4 but for indexes of filtered chunks, which have wider sizes: they say so themselves.
pub(super) fn layout(
    fields: &mut FieldReader,
    at: u64,
    (bytes, element_bytes): (u64, u32),
) -> Result<DatasetStorage, Error> {
    let all = fields.rest.len();
    // What follows is in the header.
    let compact = |stored: u64, rest: &[u8]| {
        let at = at + (all - rest.len()) as u64;
        DatasetStorage::Compact { at, bytes: stored.min(rest.len() as u64) }
    };
    let version = fields.byte()?;
    match version {
        1 | 2 => oldest(fields, compact, (bytes, element_bytes)),
        3..=5 => {
            let class = fields.byte()?;
            match class {
                0 => {
                    let stored = fields.two()?;
                    Ok(compact(stored.into(), fields.rest))
                }
                1 => Ok(DatasetStorage::Contiguous { at: fields.address()?, bytes: fields.length()? }),
                2 if version == 3 => chunked(fields, element_bytes),
                2 => chunked_new(fields, element_bytes),
                3 => Ok(DatasetStorage::Unsupported("a virtual dataset".into())),
                other => Ok(DatasetStorage::Unsupported(format!("a layout of class {other}"))),
            }
        }
        other => Ok(DatasetStorage::Unsupported(format!("a layout of version {other}"))),
    }
}

/// Versions 1 and 2, whose sizes have only 32 bits: that of the array is right.
fn oldest(
    fields: &mut FieldReader,
    compact: impl Fn(u64, &[u8]) -> DatasetStorage,
    (bytes, element_bytes): (u64, u32),
) -> Result<DatasetStorage, Error> {
    let (ndim, class) = (fields.byte()?, fields.byte()?);
    fields.skip(5)?;
    match class {
        0 => {
            fields.skip(4 * u64::from(ndim))?;
            let stored = fields.four()?;
            Ok(compact(stored.into(), fields.rest))
        }
        1 => Ok(DatasetStorage::Contiguous { at: fields.address()?, bytes }),
        2 => {
            let at = fields.address()?;
            let chunk = chunk_shape(fields, ndim, 4, element_bytes)?;
            Ok(in_tree(chunk, at))
        }
        other => Ok(DatasetStorage::Unsupported(format!("a layout of class {other}"))),
    }
}

/// Version 3: always a tree of version 1.
fn chunked(fields: &mut FieldReader, element_bytes: u32) -> Result<DatasetStorage, Error> {
    let ndim = fields.byte()?;
    let at = fields.address()?;
    let chunk = chunk_shape(fields, ndim, 4, element_bytes)?;
    Ok(in_tree(chunk, at))
}

fn in_tree(chunk: Vec<u64>, at: Option<u64>) -> DatasetStorage {
    let index = at.map_or(ChunkIndex::Empty, |at| ChunkIndex::TreeV1 { at });
    DatasetStorage::Chunked { chunk, index, plain_edges: false }
}

/// Version 4: one of five indexes. What they were set up with is in their headers, too, which are read when they are used.
fn chunked_new(fields: &mut FieldReader, element_bytes: u32) -> Result<DatasetStorage, Error> {
    let flags = fields.byte()?;
    if flags & !3 != 0 {
        return Ok(DatasetStorage::Unsupported(format!("chunks with flags {flags:#04x}")));
    }
    let plain_edges = flags & 1 != 0;
    let (ndim, width) = (fields.byte()?, fields.byte()?);
    if !(1..=8).contains(&width) {
        return Err(fields.wrong("extents of 1 to 8 B", width.to_string()));
    }
    let chunk = chunk_shape(fields, ndim, width, element_bytes)?;
    let kind = fields.byte()?;
    let filtered = match kind {
        1 if flags & 2 != 0 => Some((fields.length()?, fields.four()?)),
        _ => None,
    };
    // How a fixed array, an extensible one and a tree were set up.
    fields.skip(match kind {
        3 => 1,
        4 => 5,
        5 => 6,
        _ => 0,
    })?;
    let Some(at) = fields.address()? else {
        return Ok(DatasetStorage::Chunked { chunk, index: ChunkIndex::Empty, plain_edges });
    };
    let index = match kind {
        1 => ChunkIndex::Single { at, filtered },
        2 => ChunkIndex::Implicit { at },
        3 => ChunkIndex::FixedArray { at },
        4 => ChunkIndex::ExtensibleArray { at },
        5 => ChunkIndex::TreeV2 { at },
        other => return Ok(DatasetStorage::Unsupported(format!("a chunk index of type {other}"))),
    };
    Ok(DatasetStorage::Chunked { chunk, index, plain_edges })
}

/// The shape of a chunk, behind whose extents is the size of an element.
fn chunk_shape(fields: &mut FieldReader, extents: u8, width: u8, element_bytes: u32) -> Result<Vec<u64>, Error> {
    if extents < 2 || usize::from(extents) > NDIM_MAX + 1 {
        return Err(fields.wrong(&format!("chunks of 1 to {NDIM_MAX} dimensions"), format!("{extents} extents")));
    }
    let chunk = (1..extents).map(|_| fields.number(width)).collect::<Result<Vec<_>, _>>()?;
    let stored = fields.number(width)?;
    if stored != u64::from(element_bytes) {
        return Err(fields.wrong(&format!("elements of {element_bytes} B"), format!("{stored} B")));
    }
    if chunk.contains(&0) || crate::size::array_bytes(&chunk, stored).is_none() {
        return Err(fields.wrong("chunks of some elements", format!("{chunk:?}")));
    }
    Ok(chunk)
}
