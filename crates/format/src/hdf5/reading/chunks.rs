//! Where the chunks of a dataset lie (section III.A to C, VII).
//!
//! Only the part of an index is read that has chunks asked for: of arrays by arithmetic, of trees on the way down.

use super::array_extensible::ExtensibleArray;
use super::array_fixed::FixedArray;
use super::fetch::Fetcher;
use super::fields::FieldReader;
use super::search::{ChunkSearch, in_order};
use super::superblock::Hdf5File;
use super::tree_v1::{TreeV1, VisitV1};
use super::tree_v2::{TreeV2, VisitV2};
use crate::error::{Context, Error};
use crate::hdf5::content::{Chunk, ChunkIndex, Dataset, DatasetStorage, MetadataSource};
use crate::size::array_bytes;
use std::ops::Range;

impl Hdf5File {
    /// The chunks that exist of a dataset within `ranges` of its grid, one for each dimension; what the ranges have beyond
    /// the grid counts as empty. They come in row-major order.
    ///
    /// # Errors
    /// When the dataset has no chunks, or its index is damaged.
    pub fn chunks(
        &self,
        source: &dyn MetadataSource,
        dataset: &Dataset,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Chunk>, Error> {
        Ok(self.chunks_at_most(source, dataset, ranges, usize::MAX)?.unwrap_or_default())
    }

    /// The same, unless there are more than so many.
    ///
    /// # Errors
    /// As [`Hdf5File::chunks`].
    pub fn chunks_at_most(
        &self,
        source: &dyn MetadataSource,
        dataset: &Dataset,
        ranges: &[Range<u64>],
        most: usize,
    ) -> Result<Option<Vec<Chunk>>, Error> {
        let found = self.next_chunks(source, dataset, ranges, (None, most.saturating_add(1)))?;
        let context = Context::new("find chunks of an HDF5 dataset in", &self.name);
        (found.len() <= most).then(|| in_order(found, context)).transpose()
    }

    /// The next of those chunks, in the order of the index that has them: those behind `after`, the coordinates of the last one
    /// that was found before, and at most so many.
    ///
    /// # Errors
    /// As [`Hdf5File::chunks`].
    pub fn next_chunks(
        &self,
        source: &dyn MetadataSource,
        dataset: &Dataset,
        ranges: &[Range<u64>],
        (after, most): (Option<&[u64]>, usize),
    ) -> Result<Vec<Chunk>, Error> {
        let context = Context::new("find chunks of an HDF5 dataset in", &self.name);
        let fetcher = Fetcher::new(source, self.widths, context);
        let DatasetStorage::Chunked { chunk, index, plain_edges } = &dataset.storage else {
            return Err(context.invalid("a dataset in chunks", "one that is stored otherwise"));
        };
        let shape = dataset.shape.as_deref().unwrap_or_default();
        if ranges.len() != chunk.len()
            || shape.len() != chunk.len()
            || after.is_some_and(|after| after.len() != chunk.len())
        {
            return Err(context.invalid(format!("{} ranges", chunk.len()), format!("{} ranges", ranges.len())));
        }
        let bytes = array_bytes(chunk, dataset.datatype.bytes().into());
        let bytes = bytes.ok_or_else(|| context.corrupt("chunks of less than 2^63 B", format!("{chunk:?}")))?;
        let grid = shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk));
        let ranges = ranges.iter().zip(grid).map(|(range, grid)| range.start..range.end.min(grid)).collect();
        let (found, passed) = (Vec::new(), Vec::new());
        let plain_edges = *plain_edges;
        let mut search =
            ChunkSearch { fetcher: &fetcher, dataset, chunk, plain_edges, bytes, ranges, found, after, most, passed };
        search.look_into(index)?;
        Ok(search.found)
    }
}

impl ChunkSearch<'_> {
    fn look_into(&mut self, index: &ChunkIndex) -> Result<(), Error> {
        if self.ranges.iter().any(Range::is_empty) {
            return Ok(());
        }
        match *index {
            ChunkIndex::Empty => Ok(()),
            ChunkIndex::Single { at, filtered } => {
                let (bytes, lacks) = filtered.unwrap_or((self.bytes, 0));
                let zeros = vec![0; self.chunk.len()];
                if self.ranges.iter().any(|range| range.start > 0) || self.after.is_some() {
                    return Ok(());
                }
                self.add(zeros, at, bytes, lacks)
            }
            ChunkIndex::Implicit { at } => self.implicit(at),
            ChunkIndex::FixedArray { at } => {
                let wanted = self.wanted(0)?;
                FixedArray::read(self.fetcher, at)?.search(self, &wanted)
            }
            ChunkIndex::ExtensibleArray { at } => {
                let first = self.dataset.limits.iter().position(Option::is_none).unwrap_or(0);
                let wanted = self.wanted(first)?;
                ExtensibleArray::read(self.fetcher, at)?.search(self, &wanted)
            }
            ChunkIndex::TreeV1 { at } => {
                let fetcher = self.fetcher;
                let key_bytes = 8 + 8 * (self.chunk.len() as u64 + 1);
                TreeV1 { fetcher, kind: 1, key_bytes }.visit(at, self)
            }
            ChunkIndex::TreeV2 { at } => {
                let tree = TreeV2::read(self.fetcher, at)?;
                let coordinates = 8 * self.chunk.len() as u64;
                let begin = u64::from(self.fetcher.widths.offset);
                let size_width = match tree.kind {
                    10 => (tree.record_bytes == begin + coordinates).then_some(0),
                    11 => {
                        tree.record_bytes.checked_sub(begin + coordinates + 4).filter(|width| (1..=8).contains(width))
                    }
                    _ => None,
                };
                let size_width = size_width.ok_or_else(|| {
                    let found = format!("type {} with records of {} B", tree.kind, tree.record_bytes);
                    self.fetcher.context.corrupt("a B-tree of chunks", found)
                })? as u8;
                tree.visit(&mut Records { search: self, size_width })
            }
        }
    }

    /// All chunks exist, one after another.
    fn implicit(&mut self, at: u64) -> Result<(), Error> {
        let wanted = self.wanted(0)?;
        let mut number = 0;
        while let Some((found, coordinates)) = wanted.from(number).filter(|_| !self.is_full()) {
            let place = found.checked_mul(self.bytes).and_then(|bytes| bytes.checked_add(at));
            let place = place.ok_or_else(|| self.fetcher.context.corrupt("chunks in the file", "others"))?;
            self.add(coordinates, place, self.bytes, 0)?;
            number = found + 1;
        }
        Ok(())
    }
}

impl ChunkSearch<'_> {
    /// Size, mask and coordinates of a key of a tree of version 1, which has its first element instead.
    fn key(&self, fields: &mut FieldReader) -> Result<(u64, u32, Vec<u64>, bool), Error> {
        let (bytes, lacks) = (fields.four()?, fields.four()?);
        let (mut coordinates, mut exact) = (Vec::with_capacity(self.chunk.len()), true);
        for &chunk in self.chunk {
            let first = fields.number(8)?;
            exact &= first.is_multiple_of(chunk);
            coordinates.push(first / chunk);
        }
        Ok((bytes.into(), lacks, coordinates, exact))
    }
}

impl VisitV1 for ChunkSearch<'_> {
    fn wants(&mut self, mut before: FieldReader, mut behind: FieldReader) -> Result<bool, Error> {
        let (low, high) = (self.key(&mut before)?.2, self.key(&mut behind)?.2);
        self.pass(&low)?;
        if high < low {
            return Err(behind.wrong("keys in order", format!("{high:?} behind {low:?}")));
        }
        Ok(self.has_between(&low, Some(&high)))
    }

    fn entry(&mut self, mut key: FieldReader, child: u64) -> Result<(), Error> {
        let (bytes, lacks, coordinates, exact) = self.key(&mut key)?;
        if !exact {
            return Err(key.wrong("chunks of one grid", format!("one at chunk {coordinates:?} and a part")));
        }
        self.pass(&coordinates)?;
        if self.is_wanted(&coordinates) { self.add(coordinates, child, bytes, lacks) } else { Ok(()) }
    }
}

/// Records of trees of version 2.
struct Records<'a, 'b> {
    search: &'a mut ChunkSearch<'b>,
    /// Width of the size of a filtered chunk; 0 where chunks are not filtered.
    size_width: u8,
}

impl Records<'_, '_> {
    fn parse(&self, record: &[u8]) -> Result<(Option<u64>, u64, u32, Vec<u64>), Error> {
        let mut fields = self.search.fetcher.fields(record, "record of a chunk");
        let at = fields.address()?;
        let (bytes, lacks) = match self.size_width {
            0 => (self.search.bytes, 0),
            width => (fields.number(width)?, fields.four()?),
        };
        let coordinates = (0..self.search.chunk.len()).map(|_| fields.number(8)).collect::<Result<_, _>>()?;
        Ok((at, bytes, lacks, coordinates))
    }
}

impl VisitV2 for Records<'_, '_> {
    fn wants(&mut self, before: Option<&[u8]>, behind: Option<&[u8]>) -> Result<bool, Error> {
        let place = |record: Option<&[u8]>| record.map(|record| self.parse(record)).transpose();
        let low = place(before)?.map_or_else(|| vec![0; self.search.chunk.len()], |record| record.3);
        let high = place(behind)?.map(|record| record.3);
        Ok(self.search.has_between(&low, high.as_deref()))
    }

    fn record(&mut self, record: &[u8]) -> Result<(), Error> {
        let (at, bytes, lacks, coordinates) = self.parse(record)?;
        self.search.pass(&coordinates)?;
        match at.filter(|_| self.search.is_wanted(&coordinates)) {
            Some(at) => self.search.add(coordinates, at, bytes, lacks),
            None => Ok(()),
        }
    }
}
