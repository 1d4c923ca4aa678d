//! How new datasets are cut into chunks, where the chunks of a call lie, and what a file says of those that got room.

use super::by_path::ByPath;
use super::contents::Hdf5Array;
use super::elements::{Cut, ElementsAt, grid};
use super::policy::{CHUNKS_MAX, GROWING_BYTES_MIN, USUAL_BYTES_MAX};
use super::told::Bytes;
use crate::array_write::ArrayWrite;
use crate::error::format_fault;
use crate::file::form::{ListStored, NewPlaces, StoredUnits, TouchedPart};
use crate::file::texts::is_text;
use crate::options::WriteOptions;
use hyperslab_collective::{Ownership, natural_chunks};
use hyperslab_format::hdf5::{ChangedDataset, ChunkPlace, DatasetStorage, Hdf5Edit, Hdf5File, Pipeline};
use hyperslab_format::zarr::{BytesCodec, Codecs};
use hyperslab_layout::mesh::{ravel, unravel, volume};
use hyperslab_layout::stored::{Address, Objects, OtherCodec, Table};
use hyperslab_layout::{ElementType, Section, Stored, cut, tuple};
use hyperslab_walk::PlacedChunk;
use hyperslab_world::{Fault, FaultKind, Names};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// How a new array is cut into chunks, if it is: where chunks or filters are asked for, or it may grow, or elements that nobody
/// writes are not zero, since a stretch has room for all of them from the start, which reads as zeros.
pub(super) fn new_chunks(
    (ask, element): (&ArrayWrite, ElementType),
    options: &WriteOptions,
    limits: &[Option<u64>],
    fill: &[u8],
) -> Result<Option<Cut>, Fault> {
    let (shape, bytes) = (ask.shape(), element.bytes());
    let codecs = options.codecs.as_ref().map(|codecs| match is_text(element) {
        true => without_sum(codecs.clone()),
        false => codecs.clone(),
    });
    let filters = codecs.as_ref().map(|codecs| Pipeline::of_codecs(codecs, bytes, &ask.name)).transpose();
    let filters = filters.map_err(|error| format_fault(error).as_kind(FaultKind::Unsupported))?.unwrap_or_default();
    let grows = limits.iter().zip(shape).any(|(limit, extent)| limit.is_none_or(|limit| limit > *extent));
    let unlike_zero = !is_all_written(ask) && fill.iter().any(|byte| *byte != 0);
    let cut_up = options.chunks.is_some() || !filters.is_plain() || grows || unlike_zero;
    if !cut_up || shape.is_empty() || shape.contains(&0) && !grows {
        return Ok(None);
    }
    let chunk = match &options.chunks {
        Some(given) => given.clone(),
        None => usual(ask, bytes, limits),
    };
    if chunk.len() != shape.len() || chunk.contains(&0) {
        let text = format!("chunks {} do not fit array '{}'", tuple(&chunk), ask.name);
        let expected = format!("{} extents of at least 1", shape.len());
        return Err(Fault::new(FaultKind::Invalid, text).expected(expected, tuple(&chunk).to_string()));
    }
    // HDF5 has no chunks that are longer than the array can be.
    let most = |d: usize| limits.get(d).copied().unwrap_or(Some(shape[d])).unwrap_or(u64::MAX);
    let chunk: Vec<u64> = chunk.iter().enumerate().map(|(d, &extent)| extent.min(most(d).max(1))).collect();
    let in_room = !filters.is_plain() || grows || unlike_zero;
    Ok(Some(Cut { chunk, filters, in_room }))
}

/// Without the checksum that chunks have if nothing else is said, which HDF5 does not allow for texts of any length.
fn without_sum(mut codecs: Codecs) -> Codecs {
    codecs.chain.retain(|codec| *codec != BytesCodec::Crc32c);
    codecs
}

/// Whether the ranks together have all elements.
pub(super) fn is_all_written(ask: &ArrayWrite) -> bool {
    matches!(ask.holding.as_deref(), None | Some(Ownership::Regular(_)))
}

/// What a rank holds, cut small; of an array that grows, long enough to be worth an entry in an index.
fn usual(ask: &ArrayWrite, element_bytes: u64, limits: &[Option<u64>]) -> Vec<u64> {
    let whole = || ask.shape().iter().map(|extent| (*extent).max(1)).collect();
    let held = ask.holding.as_deref().map_or_else(whole, |holding| natural_chunks(holding, element_bytes));
    let mut chunk = cut(held, element_bytes, USUAL_BYTES_MAX);
    let bytes = volume(&chunk).unwrap_or(u64::MAX).saturating_mul(element_bytes).max(1);
    let growing = limits.iter().zip(ask.shape()).position(|(limit, extent)| limit.is_none_or(|limit| limit > *extent));
    if let Some(d) = growing.filter(|_| bytes < GROWING_BYTES_MIN) {
        chunk[d] *= GROWING_BYTES_MIN.div_ceil(bytes);
    }
    chunk
}

impl Hdf5Array {
    /// How it is stored, with where the chunks lie that a section touches. Where it is written, all that it touches are
    /// there already and plain, and change in place, or they get room.
    pub(super) fn located(
        &self,
        stored: Stored,
        TouchedPart { section, room, lengthens }: TouchedPart,
        (directory, name): (&dyn Names, &Arc<str>),
    ) -> Result<Stored, Fault> {
        if matches!(self.place, ElementsAt::Named | ElementsAt::InHeader) {
            return stretch(stored, &self.array.name, (directory, name));
        }
        let Some((chunk, filters)) = self.place.chunk() else { return Ok(stored) };
        let ranges = touched(&self.array.shape, chunk, section);
        let count = ranges.iter().map(|range| range.end - range.start).try_fold(1u64, u64::checked_mul);
        let too_many = || {
            let doing = if room.is_some() { "changes" } else { "reads" };
            let name = &self.array.name;
            let text = format!("a call {doing} at most {CHUNKS_MAX} chunks of an HDF5 dataset, and '{name}' has more");
            Fault::new(FaultKind::Unsupported, text).hint("take it in sections")
        };
        // Whether the dataset gets longer, which nothing but another index would tell.
        let mut is_longer = false;
        let table = match &self.place {
            // Nothing is there yet, however much that is.
            ElementsAt::InRoom { places, .. } if places.is_empty() => Table::of(name.clone(), Vec::new()),
            ElementsAt::InRoom { places, .. } => made(&self.array.shape, (chunk, places), &ranges, name),
            ElementsAt::Chunked { header, .. } => {
                if room.is_some() && count.is_none_or(|count| count > CHUNKS_MAX) {
                    return Err(too_many());
                }
                // Of those that are read, only as many count as are stored.
                let dataset = (*header, &*self.array.name);
                let found = found((&self.array.shape, chunk), (dataset, &filters), &ranges, (directory, name))?;
                let (table, own) = found.ok_or_else(too_many)?;
                is_longer = !lengthens && reaches_beyond(&own, &self.array.shape, section);
                table
            }
            _ => return Ok(stored),
        };
        let Some(from) = room else { return Ok(Stored { objects: Objects::Table(Arc::new(table)), ..stored }) };
        if !is_longer && filters.is_plain() && count.is_some_and(|count| count == table.chunks().len() as u64) {
            return Ok(Stored { objects: Objects::Table(Arc::new(table)), ..stored });
        }
        if let ElementsAt::Chunked { header, .. } = &self.place {
            filters.check_written(&self.array.name).map_err(format_fault)?;
            check_changeable((*header, &self.array.name), (directory, name))?;
        }
        let (shape, element, fill) = (&self.array.shape, self.array.element, stored.fill.clone());
        Ok(Stored { fill, ..Stored::in_room(shape, element, chunk, (from, table), Arc::new(filters)) })
    }
}

/// Chunks of a file that exists, by their numbers in an array of this shape and these chunks, and the dataset's own shape; nothing
/// where there are too many.
fn found(
    (shape, chunk): (&[u64], &[u64]),
    (at, filters): ((Option<u64>, &str), &Pipeline),
    ranges: &[Range<u64>],
    (directory, name): (&dyn Names, &Arc<str>),
) -> Result<Option<(Table, Vec<u64>)>, Fault> {
    let length = directory.length(name).unwrap_or(0);
    let source = Bytes::of(directory, name, length);
    let look = || -> Result<_, hyperslab_format::Error> {
        let file = Hdf5File::open(&source, &directory.full(name))?;
        let dataset = file.dataset_named(&source, at)?;
        // A variable of netCDF-4 may be shorter in the file than its dimensions are.
        let shape = dataset.shape.clone().unwrap_or_default();
        let own = self::grid(&shape, chunk);
        let within = |(range, own): (&Range<u64>, &u64)| range.start.min(*own)..range.end.min(*own);
        let ranges: Vec<_> = ranges.iter().zip(&own).map(within).collect();
        Ok((file.chunks_at_most(&source, &dataset, &ranges, CHUNKS_MAX as usize)?, shape))
    };
    let (grid, mut others) = (grid(shape, chunk), BTreeMap::new());
    let (Some(chunks), own) = look().map_err(format_fault)? else { return Ok(None) };
    let found = chunks.into_iter().map(|found| {
        let (number, own) = (ravel(&within(found.coordinates, grid.len()), &grid), filters.without(found.lacks));
        if own != *filters {
            others.insert(number, OtherCodec(Arc::new(own)));
        }
        Address { number, offset: found.at, bytes: if filters.is_plain() { 0 } else { found.bytes } }
    });
    let chunks = found.collect();
    Ok(Some((Table::of(name.clone(), chunks).with_others(others), own)))
}

/// Coordinates in a grid of so many dimensions, which has one chunk along each that the dataset itself does not have.
fn within(mut coordinates: Vec<u64>, ndim: usize) -> Vec<u64> {
    coordinates.resize(ndim, 0);
    coordinates
}

/// How it is found out which chunks of an array are stored, of a file that exists; nothing of what lies in one stretch.
pub(super) fn stored_units(array: &Hdf5Array) -> Option<ListStored> {
    let (shape, path) = (array.array.shape.clone(), array.array.name.clone());
    let (chunk, header) = match &array.place {
        ElementsAt::Nowhere => return Some(Box::new(|_, _, _| Ok(StoredUnits::default()))),
        ElementsAt::Chunked { chunk, header, .. } => (chunk.clone(), *header),
        _ => return None,
    };
    Some(Box::new(move |after, most, (directory, name)| {
        let source = Bytes::of(directory, name, directory.length(name).unwrap_or(0));
        let ranges: Vec<Range<u64>> = grid(&shape, &chunk).into_iter().map(|extent| 0..extent).collect();
        let look = || -> Result<_, hyperslab_format::Error> {
            let file = Hdf5File::open(&source, &directory.full(name))?;
            let dataset = file.dataset_named(&source, (header, &path))?;
            let own = dataset.shape.as_ref().map_or(0, Vec::len).min(ranges.len());
            file.next_chunks(&source, &dataset, &ranges[..own], (after.map(|after| &after[..own]), most))
        };
        let found = look().map_err(format_fault)?;
        let more = found.len() == most;
        Ok(StoredUnits {
            coordinates: found.into_iter().flat_map(|chunk| within(chunk.coordinates, ranges.len())).collect(),
            more,
        })
    }))
}

/// The elements of a dataset that lie in one stretch.
fn stretch(stored: Stored, path: &str, (directory, name): (&dyn Names, &Arc<str>)) -> Result<Stored, Fault> {
    let source = Bytes::of(directory, name, directory.length(name).unwrap_or(0));
    let dataset = Hdf5File::open(&source, &directory.full(name))
        .and_then(|file| file.dataset_named(&source, (None, path)))
        .map_err(format_fault)?;
    match dataset.storage {
        DatasetStorage::Contiguous { at: Some(at), .. } | DatasetStorage::Compact { at, .. } => {
            let there = Stored::in_file(&stored.shape, stored.element, name.clone(), at);
            Ok(Stored { fill: stored.fill, ..there })
        }
        _ => {
            let text = format!("'{path}' lies elsewhere than where it was written");
            Err(Fault::new(FaultKind::Busy, text).hint("somebody else has changed the file: open it again"))
        }
    }
}

/// Refuses to change a dataset of a file that exists whose header has no place for another index.
fn check_changeable(at: (Option<u64>, &str), (directory, name): (&dyn Names, &Arc<str>)) -> Result<(), Fault> {
    let source = Bytes::of(directory, name, directory.length(name).unwrap_or(0));
    Hdf5File::open(&source, &directory.full(name))
        .and_then(|file| {
            Hdf5Edit::of(&file, &source, file.end().next_multiple_of(8))?.check(&file.dataset_named(&source, at)?)
        })
        .map_err(format_fault)
}

/// Chunks of a new file.
fn made(shape: &[u64], (chunk, places): (&[u64], &[ChunkPlace]), ranges: &[Range<u64>], name: &Arc<str>) -> Table {
    let grid = grid(shape, chunk);
    let lows: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let (first, last) =
        (ravel(&lows, &grid), ranges.iter().map(|range| range.end.saturating_sub(1)).collect::<Vec<_>>());
    let begin = places.partition_point(|place| place.number < first);
    let end = places.partition_point(|place| place.number <= ravel(&last, &grid));
    let all = places.get(begin..end).unwrap_or_default();
    let inside = |place: &&ChunkPlace| {
        let at = unravel(place.number, &grid);
        at.iter().zip(ranges).all(|(at, range)| range.contains(at))
    };
    let address = |place: &ChunkPlace| Address { number: place.number, offset: place.at, bytes: place.bytes.into() };
    Table::of(name.clone(), all.iter().filter(inside).map(address).collect())
}

/// Chunks that a section touches, or that lie between such.
fn touched(shape: &[u64], chunk: &[u64], section: Option<&Section>) -> Vec<Range<u64>> {
    let whole = Section::whole(shape);
    let dims = section.unwrap_or(&whole).dims.iter().zip(chunk);
    dims.map(|(triplet, chunk)| triplet.set().hull().map_or(0..0, |(low, high)| low / chunk..(high - 1) / chunk + 1))
        .collect()
}

/// Whether a section of an array of this shape has elements behind the end of its dataset, whose own shape this is.
fn reaches_beyond(own: &[u64], shape: &[u64], section: Option<&Section>) -> bool {
    let whole = Section::whole(shape);
    let dims = section.unwrap_or(&whole).dims.iter().zip(own);
    dims.into_iter().any(|(triplet, own)| triplet.set().hull().is_some_and(|(_, high)| high > *own))
}

/// Places of chunks as indexes have them.
fn of_index(placed: Vec<PlacedChunk>, lacks: u32) -> Result<Vec<ChunkPlace>, Fault> {
    let one = |PlacedChunk { chunk, at, bytes }: PlacedChunk| {
        let bytes = u32::try_from(bytes).map_err(|_| {
            Fault::new(FaultKind::Unsupported, format!("an encoded chunk has {bytes} B"))
                .expected("less than 4 GiB", "more")
        })?;
        Ok(ChunkPlace { number: chunk.number, at, bytes, lacks })
    };
    let mut all = placed.into_iter().map(one).collect::<Result<Vec<_>, Fault>>()?;
    all.sort_unstable_by_key(|place| place.number);
    Ok(all)
}

/// A dataset of a file that exists which changes: its header, where that is known, and its name.
type ChangedArray = (Option<u64>, String, ChangedDataset);

/// Notes where chunks of these arrays lie now; gives the datasets of a file that exists that change by that.
pub(super) fn put(arrays: &mut ByPath<Hdf5Array>, placed: NewPlaces) -> Result<Vec<ChangedArray>, Fault> {
    let mut changed = Vec::new();
    for (number, placed) in placed {
        let held = &mut arrays[number];
        let places = of_index(placed, held.place.chunk().map_or(0, |(_, filters)| filters.lacks()))?;
        match held.place {
            ElementsAt::Chunked { header, .. } => {
                let dataset = ChangedDataset { at: header.unwrap_or(0), shape: held.own_shape().to_vec(), places };
                changed.push((header, held.array.name.clone(), dataset));
            }
            _ => held.place.put(places),
        }
    }
    Ok(changed)
}
