//! What is looked for in an index of chunks, and what was found.

use super::fetch::Fetcher;
use super::grid::{WantedChunks, has_between};
use crate::error::{Context, Error};
use crate::hdf5::content::{Chunk, Dataset};
use std::ops::Range;

/// What is looked for, and what was found.
pub(super) struct ChunkSearch<'a> {
    pub(super) fetcher: &'a Fetcher<'a>,
    pub(super) dataset: &'a Dataset,
    pub(super) chunk: &'a [u64],
    /// Whether chunks that reach over the end of the dataset went through no filters.
    pub(super) plain_edges: bool,
    /// Size of a chunk before filters \[B\].
    pub(super) bytes: u64,
    pub(super) ranges: Vec<Range<u64>>,
    pub(super) found: Vec<Chunk>,
    /// Only those behind these coordinates are looked for, in the order of the index, and at most so many.
    pub(super) after: Option<&'a [u64]>,
    pub(super) most: usize,
    /// The last coordinates that a tree came to.
    pub(super) passed: Vec<u64>,
}

impl ChunkSearch<'_> {
    /// What is looked for in an array whose slowest dimension is `first`.
    pub(super) fn wanted(&self, first: usize) -> Result<WantedChunks, Error> {
        let most = self.dataset.limits.iter().zip(self.chunk);
        // Only the unlimited dimension has no end, and no stride depends on it.
        let most: Vec<u64> = most.map(|(most, chunk)| most.map_or(u64::MAX, |most| most.div_ceil(*chunk))).collect();
        let wanted = if most.len() == self.ranges.len() { WantedChunks::new(&self.ranges, &most, first) } else { None };
        let wanted = wanted.map(|wanted| self.after.map_or(wanted.clone(), |after| wanted.behind(after)));
        wanted.ok_or_else(|| self.fetcher.context.corrupt("an index of less than 2^64 chunks", format!("{most:?}")))
    }

    /// Adds a chunk, which must be in the file.
    pub(super) fn add(&mut self, coordinates: Vec<u64>, at: u64, bytes: u64, lacks: u32) -> Result<(), Error> {
        if at.checked_add(bytes).is_none_or(|end| end > self.fetcher.file_bytes()) {
            let found = format!("one of {bytes} B at byte {at}, of coordinates {coordinates:?}");
            let expected = format!("chunks in a file of {} B", self.fetcher.file_bytes());
            return Err(self.fetcher.context.corrupt(expected, found));
        }
        if self.dataset.filters.is_empty() && bytes != self.bytes {
            let expected = format!("chunks of {} B, since there are no filters", self.bytes);
            return Err(self.fetcher.context.corrupt(expected, format!("{bytes} B at {coordinates:?}")));
        }
        let lacks = if self.plain_edges && self.is_at_edge(&coordinates) { u32::MAX } else { lacks };
        self.found.push(Chunk { coordinates, at, bytes, lacks });
        Ok(())
    }

    /// Whether a chunk reaches over the end of the dataset.
    fn is_at_edge(&self, coordinates: &[u64]) -> bool {
        let shape = self.dataset.shape.iter().flatten();
        let ends = coordinates.iter().zip(self.chunk).map(|(at, chunk)| at.saturating_add(1).saturating_mul(*chunk));
        ends.zip(shape).any(|(end, extent)| end > *extent)
    }

    /// Notes that a tree came to these coordinates. They ascend: where they do not, some chunks would be found, and others not,
    /// by what is asked for.
    pub(super) fn pass(&mut self, coordinates: &[u64]) -> Result<(), Error> {
        if self.passed.as_slice() > coordinates {
            let expected = format!("chunks in order, behind {:?}", self.passed);
            return Err(self.fetcher.context.corrupt(expected, format!("one at {coordinates:?}")));
        }
        self.passed.clear();
        self.passed.extend_from_slice(coordinates);
        Ok(())
    }

    /// Adds those elements of an array that are asked for; the first has this number.
    pub(super) fn add_elements(
        &mut self,
        wanted: &WantedChunks,
        first: u64,
        stored: &[u8],
        each: u64,
    ) -> Result<(), Error> {
        let count = stored.len() as u64 / each.max(1);
        let mut number = first;
        while let Some((found, coordinates)) =
            wanted.from(number).filter(|(found, _)| found - first < count && !self.is_full())
        {
            let begin = ((found - first) * each) as usize;
            let mut fields = self.fetcher.fields(&stored[begin..begin + each as usize], "chunk index");
            if let Some(at) = fields.address()? {
                let width = (each as usize - usize::from(self.fetcher.widths.offset)).saturating_sub(4);
                let (bytes, lacks) =
                    if width == 0 { (self.bytes, 0) } else { (fields.number(width as u8)?, fields.four()?) };
                self.add(coordinates, at, bytes, lacks)?;
            }
            number = found + 1;
        }
        Ok(())
    }

    /// Refuses elements of an index that cannot be those of chunks: an address alone, or with a size and a mask.
    pub(super) fn check_element(&self, each: u64, filtered: bool) -> Result<(), Error> {
        let offset = u64::from(self.fetcher.widths.offset);
        let fits = if filtered { (offset + 5..=offset + 12).contains(&each) } else { each == offset };
        if fits {
            return Ok(());
        }
        Err(self.fetcher.context.corrupt("an index of chunks", format!("one of elements of {each} B")))
    }

    /// Whether as many were found as are looked for.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= self.most
    }

    /// Whether a tree has anything to be found from `low` to `high`, both included.
    pub(super) fn has_between(&self, low: &[u64], high: Option<&[u64]>) -> bool {
        let low = self.after.map_or(low, |after| low.max(after));
        !self.is_full() && has_between(&self.ranges, low, high)
    }

    pub(super) fn is_wanted(&self, coordinates: &[u64]) -> bool {
        !self.is_full()
            && self.after.is_none_or(|after| coordinates > after)
            && coordinates.iter().zip(&self.ranges).all(|(at, range)| range.contains(at))
    }
}

/// What was found, in order; each chunk may be there once.
pub(super) fn in_order(mut found: Vec<Chunk>, context: Context) -> Result<Vec<Chunk>, Error> {
    if !found.is_sorted_by(|one, other| one.coordinates < other.coordinates) {
        found.sort_unstable_by(|one, other| one.coordinates.cmp(&other.coordinates));
    }
    match found.windows(2).find(|pair| pair[0].coordinates == pair[1].coordinates) {
        Some(pair) => {
            let found = format!("two of coordinates {:?}", pair[0].coordinates);
            Err(context.corrupt("an index that has each chunk once", found))
        }
        None => Ok(found),
    }
}
