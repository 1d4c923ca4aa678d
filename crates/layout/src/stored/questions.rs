//! What follows from how an array lies in storage.

use super::{Address, Change, Coding, Object, Objects, Shards, Stored, Stretch, Strides, Unit};
use crate::codec::Codec;
use crate::mesh::volume;
use crate::{Axis, Section, Triplet, View};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Units.
impl Stored {
    /// Shape of a chunk, where an array is not cut freely.
    pub fn chunk(&self) -> Option<&[u64]> {
        match &self.unit {
            Unit::Chunk(chunk) => Some(chunk),
            Unit::Free => None,
        }
    }

    /// Bytes of a chunk before it is encoded \[B\].
    pub fn chunk_bytes(&self) -> Option<u64> {
        self.chunk().map(|chunk| volume(chunk).unwrap_or(u64::MAX).saturating_mul(self.element.bytes()))
    }

    /// Shape of a unit: the chunk, or the largest box of at most `bytes` that is contiguous in the object; where chunks are
    /// read in parts, one that they can be cut into.
    pub fn unit_shape(&self, bytes: u64) -> Vec<u64> {
        let (whole, cuts) = match self.chunk() {
            Some(chunk) if self.summed_bytes().is_none() => return chunk.to_vec(),
            Some(chunk) => (chunk, true),
            None => (&*self.shape, false),
        };
        let mut unit = vec![1; whole.len()];
        let mut room = (bytes / self.element.bytes()).max(1);
        for &d in self.contiguous().iter().rev() {
            let extent = whole[d].max(1);
            unit[d] = if cuts { divisor_near(extent, room) } else { extent.min(room) };
            room /= extent;
            if room == 0 {
                break;
            }
        }
        unit
    }

    /// The dimensions along which all elements of a box of full extents follow each other in the object, from the slowest
    /// to the fastest: all but that of records.
    pub fn contiguous(&self) -> &[usize] {
        &self.strides.order[usize::from(self.strides.record.is_some()).min(self.strides.order.len())..]
    }

    /// Dimensions from the slowest to the fastest.
    pub fn order(&self) -> &[usize] {
        &self.strides.order
    }
}

/// Into parts of which extent a chunk is cut, of about so much: the largest that divides it, unless that is far smaller, as of a
/// prime; then the next larger one.
fn divisor_near(extent: u64, most: u64) -> u64 {
    let small = (1..=extent.isqrt()).filter(|part| extent.is_multiple_of(*part));
    let (mut below, mut above) = (1, extent);
    for part in small.flat_map(|part| [part, extent / part]) {
        if part <= most { below = below.max(part) } else { above = above.min(part) }
    }
    if extent <= most || below >= most / 4 { below } else { above }
}

/// Objects.
impl Stored {
    /// Whether one object holds all elements.
    pub fn is_in_one_object(&self) -> bool {
        matches!(self.objects, Objects::One { .. })
    }

    /// The object that holds all elements, and where the first one begins in it \[B\].
    pub fn object(&self) -> Option<(Object, u64)> {
        let (name, offset) = self.one()?;
        Some((self.named(name.clone()), offset))
    }

    /// The name of the object that holds all elements, and where the first one begins in it \[B\].
    fn one(&self) -> Option<(&Arc<str>, u64)> {
        match &self.objects {
            Objects::One { name, offset } => Some((name, *offset)),
            Objects::Grid { .. }
            | Objects::Allotted { .. }
            | Objects::Keyed(_)
            | Objects::Table(_)
            | Objects::Shards(_) => None,
        }
    }

    fn named(&self, name: Arc<str>) -> Object {
        Object { root: self.root, name }
    }

    /// What all its objects begin with.
    pub fn below(&self) -> Object {
        self.named(match &self.objects {
            Objects::One { name, .. } | Objects::Grid { name, .. } => name.clone(),
            Objects::Allotted { known, .. } => known.name.clone(),
            Objects::Keyed(keys) => keys.prefix.clone(),
            Objects::Table(table) => table.name.clone(),
            Objects::Shards(shards) => shards.keys.prefix.clone(),
        })
    }

    /// Whether each chunk is an object of its own.
    pub fn has_object_for_each_chunk(&self) -> bool {
        matches!(self.objects, Objects::Keyed(_))
    }

    /// The object that holds the unit at these coordinates, whose first element is at index `low`; and, of a section of the
    /// array, the view of its index space there. Nothing for a chunk that does not exist.
    pub fn place(&self, section: &Section, at: &[u64], low: &[u64]) -> Option<(Object, View)> {
        let chunk = || self.chunk().unwrap_or(&self.shape);
        let (name, view) = match &self.objects {
            Objects::One { name, offset } => (name.clone(), self.object_view(section, *offset)),
            Objects::Grid { name, .. } => {
                (name.clone(), self.box_view(section, low, chunk(), self.offset_in_grid(at).unwrap_or(0)))
            }
            Objects::Allotted { from, known } => (known.name.clone(), self.box_view(section, low, chunk(), *from)),
            Objects::Keyed(keys) => match self.chunk().filter(|_| self.summed_bytes().is_some()) {
                // The unit is a part of a chunk.
                Some(chunk) => {
                    let at: Vec<u64> = low.iter().zip(chunk).map(|(low, chunk)| low / chunk).collect();
                    let first: Vec<u64> = at.iter().zip(chunk).map(|(at, chunk)| at * chunk).collect();
                    (keys.name(&self.coordinates(&at)).into(), self.box_view(section, &first, chunk, 0))
                }
                None => (keys.name(&self.coordinates(at)).into(), self.box_view(section, low, chunk(), 0)),
            },
            Objects::Table(table) => {
                let Address { offset, .. } = *table.get(self.chunk_number(at))?;
                (table.name.clone(), self.box_view(section, low, chunk(), offset))
            }
            Objects::Shards(shards) => {
                let (name, (first, _)) = shards.place(at)?;
                (name, self.box_view(section, low, chunk(), first))
            }
        };
        Some((self.named(name), view))
    }

    /// The object that holds the chunk at these coordinates, and, where it holds others too, the first byte and the number of
    /// bytes of this one as it is stored. Nothing for a chunk that does not exist.
    pub fn extent_of(&self, at: &[u64]) -> Option<(Object, Option<Stretch>)> {
        let (name, stretch) = match &self.objects {
            Objects::One { name, .. } => (name.clone(), None),
            Objects::Grid { name, .. } => {
                let stretch = self.offset_in_grid(at).map(|first| (first, self.chunk_bytes().unwrap_or(0)));
                (name.clone(), stretch)
            }
            Objects::Keyed(keys) => (keys.name(&self.coordinates(at)).into(), None),
            Objects::Table(table) | Objects::Allotted { known: table, .. } => {
                let Address { offset, bytes, .. } = *table.get(self.chunk_number(at))?;
                let bytes = if bytes == 0 { self.chunk_bytes().unwrap_or(0) } else { bytes };
                (table.name.clone(), Some((offset, bytes)))
            }
            Objects::Shards(shards) => {
                let (name, stretch) = shards.place(at)?;
                (name, Some(stretch))
            }
        };
        Some((self.named(name), stretch))
    }

    /// Where a chunk lies among those that follow each other in one object \[B\].
    fn offset_in_grid(&self, at: &[u64]) -> Option<u64> {
        let Objects::Grid { offset, .. } = &self.objects else { return None };
        Some(offset.saturating_add(self.chunk_number(at).saturating_mul(self.chunk_bytes().unwrap_or(0))))
    }

    /// The number of a chunk in its grid, of which the last dimension is the fastest.
    pub fn chunk_number(&self, at: &[u64]) -> u64 {
        let Some(chunk) = self.chunk() else { return 0 };
        let counts = self.shape.iter().zip(chunk).map(|(extent, chunk)| extent.div_ceil(*chunk));
        counts.zip(at).fold(0, |number: u64, (count, at)| number.saturating_mul(count).saturating_add(*at))
    }

    /// From which byte on chunks get room as they are encoded, if they do \[B\].
    pub fn allotted_from(&self) -> Option<u64> {
        match &self.objects {
            Objects::Allotted { from, .. } => Some(*from),
            _ => None,
        }
    }

    /// Whether a table says where its chunks lie, or an index.
    pub fn has_table(&self) -> bool {
        matches!(self.objects, Objects::Table(_) | Objects::Shards(_))
    }

    /// Whether where a chunk lies is known only once it is encoded, or all that lies beside it is.
    pub fn is_placed_when_encoded(&self) -> bool {
        self.has_table() && self.is_read_whole() || self.shards().is_some()
    }

    /// The shards in which its chunks lie, where they do.
    pub fn shards(&self) -> Option<&Arc<Shards>> {
        match &self.objects {
            Objects::Shards(shards) => Some(shards),
            _ => None,
        }
    }

    /// Bytes of the indexes of all shards that a section touches, or that lie between such \[B\].
    pub fn index_bytes(&self, section: &Section) -> u64 {
        let Some((shards, chunk)) = self.shards().zip(self.chunk()) else { return 0 };
        let extents = shards.chunks.iter().zip(chunk).map(|(chunks, chunk)| chunks.saturating_mul(*chunk));
        let touched = touched(section, extents);
        let each = shards.codec.index().map_or(0, |index| index.bytes());
        touched.fold(each, u64::saturating_mul)
    }

    /// Bytes that all chunks may take that a section touches, or that lie between such, where they get room as they are
    /// encoded \[B\].
    pub fn room_bytes_max(&self, section: &Section) -> u64 {
        let (Some(chunk), Some(codec), Some(_)) = (self.chunk(), self.codec(), self.allotted_from()) else { return 0 };
        let touched = touched(section, chunk.iter().copied());
        let each = codec.encoded_bytes_max(self.chunk_bytes().unwrap_or(0));
        touched.fold(each, u64::saturating_mul)
    }

    /// Whether the unit at these coordinates has a place in an object: all have, but for chunks that no table knows.
    pub fn has_place(&self, at: &[u64]) -> bool {
        match &self.objects {
            Objects::Table(table) => table.get(self.chunk_number(at)).is_some(),
            Objects::Shards(shards) => shards.place(at).is_some(),
            Objects::One { .. } | Objects::Grid { .. } | Objects::Allotted { .. } | Objects::Keyed(_) => true,
        }
    }

    /// Offset of an element in the one object that holds all \[B\].
    pub fn offset_of(&self, at: &[u64]) -> Option<u64> {
        let (_, offset) = self.one()?;
        Some(offset.saturating_add(self.distance_of(at)))
    }

    /// How far behind the first element another one lies, where one object holds all \[B\].
    pub fn distance_of(&self, at: &[u64]) -> u64 {
        self.distance(|d| at[d])
    }

    fn distance(&self, at: impl Fn(usize) -> u64) -> u64 {
        let along = |before: u64, &d: &usize| before.saturating_mul(self.shape[d]).saturating_add(at(d));
        let dense = self.contiguous().iter().fold(0, along).saturating_mul(self.element.bytes());
        let records = self.strides.of_records().map_or(0, |d| at(d).saturating_mul(self.strides.record.unwrap_or(0)));
        dense.saturating_add(records)
    }

    /// Where the first element of a section, or of all of it, lies in the one object that holds all \[B\].
    pub fn begin_of(&self, section: Option<&Section>) -> Option<u64> {
        let (_, offset) = self.one()?;
        let at = |d: usize| section.map_or(0, |section| section.dims[d].start);
        Some(offset.saturating_add(self.distance(at)))
    }

    /// Lets the one object that holds all be another one, and all lie so many bytes further on in it, modulo 2^64.
    pub fn move_to(&mut self, object: &Arc<str>, by: u64) {
        if let Objects::One { name, offset } = &mut self.objects {
            name.clone_from(object);
            *offset = offset.wrapping_add(by);
        }
    }

    /// Where the last element ends in the one object that holds all \[B\].
    pub fn end(&self) -> Option<u64> {
        let (_, offset) = self.one()?;
        if self.shape.contains(&0) {
            return Some(offset);
        }
        let last: Vec<u64> = self.shape.iter().map(|&extent| extent - 1).collect();
        Some(offset.saturating_add(self.distance_of(&last)).saturating_add(self.element.bytes()))
    }

    /// The array that follows so many others of the same kind in one object, without anything between them.
    #[must_use]
    pub fn after(mut self, others: u64) -> Stored {
        let bytes = volume(&self.shape).unwrap_or(u64::MAX).saturating_mul(self.element.bytes());
        if let Objects::One { offset, .. } = &mut self.objects {
            *offset = offset.saturating_add(others.saturating_mul(bytes));
        }
        self
    }

    /// Whether it is what [`Stored::after`] makes of the one before it: of the same kind, and right behind it in one object.
    pub fn follows(&self, before: &Stored) -> bool {
        let (Some((name, offset)), Some((same, _))) = (self.one(), before.one()) else { return false };
        let next = || before.clone().after(1).one().is_some_and(|(_, next)| next == offset);
        (self.root, name) == (before.root, same)
            && before.strides.record.is_none()
            && self.is_like(before)
            && self.fill == before.fill
            && next()
    }

    /// This array and those that follow it so in one object, as one with a dimension more, the first.
    #[must_use]
    pub fn stacked(mut self, count: u64) -> Stored {
        debug_assert!(self.strides.record.is_none(), "records follow each other at distances of their own");
        self.shape.insert(0, count);
        let order = [0].into_iter().chain(self.strides.order.iter().map(|dim| dim + 1)).collect();
        self.strides = Strides { order, record: None };
        self
    }
}

/// How many units of these extents a section touches along each dimension, or has between such.
fn touched(section: &Section, extents: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    section.dims.iter().zip(extents).map(|(triplet, extent)| match triplet.set().hull() {
        Some((low, high)) => (high - 1) / extent - low / extent + 1,
        None => 0,
    })
}

/// Coding and change.
impl Stored {
    /// What of its parts does not go together, in words; nothing if all do.
    pub fn fault(&self) -> Option<&'static str> {
        let ndim = self.shape.len();
        let chunked = self.chunk().is_some_and(|chunk| chunk.len() == ndim && !chunk.contains(&0));
        let order = &self.strides.order;
        match &self.objects {
            _ if order.len() != ndim || !(0..ndim).all(|d| order.contains(&d)) => {
                Some("its order of dimensions is no permutation")
            }
            Objects::One { .. } if self.unit != Unit::Free => Some("chunks that lie in one object need a table"),
            Objects::Grid { .. }
            | Objects::Allotted { .. }
            | Objects::Keyed(_)
            | Objects::Table(_)
            | Objects::Shards(_)
                if !chunked =>
            {
                Some("objects of chunks need the shape of a chunk")
            }
            Objects::Grid { .. } if self.is_read_whole() => Some("only plain chunks have room before they are encoded"),
            Objects::Allotted { .. } if self.codec().is_none() => Some("only encoded chunks get room when they are"),
            Objects::Allotted { .. } if self.change == Change::InPlace => Some("chunks that get room are new"),
            Objects::Allotted { .. } if self.strides.record.is_some() => Some("only arrays in one object have records"),
            Objects::Allotted { .. } => None,
            Objects::Keyed(_) if self.change == Change::InPlace => Some("objects of chunks are made or replaced"),
            Objects::One { .. } if self.is_read_whole() => Some("only chunks are encoded"),
            Objects::Table(_) | Objects::Shards(_) if self.has_trailer() => {
                Some("only objects of chunks have checksums of their own")
            }
            Objects::Shards(shards) if !shards.fit(ndim) => Some("its shards have no chunks, or no index of them"),
            Objects::Keyed(_) if self.strides.record.is_some() => Some("only arrays in one object have records"),
            Objects::Keyed(_) => None,
            _ if self.change == Change::Replace => Some("only objects of chunks are replaced"),
            Objects::One { .. } => None,
            _ if self.strides.record.is_some() => Some("only arrays in one object have records"),
            _ => None,
        }
    }

    /// How a chunk's elements are encoded, where its bytes are not simply the elements.
    pub fn codec(&self) -> Option<&Arc<dyn Codec>> {
        match &self.coding {
            Coding::Encoded(codec) => Some(codec),
            Coding::Plain | Coding::Trailer | Coding::Summed => None,
        }
    }

    /// The same of the chunk at these coordinates, which may have gone through another codec than the rest.
    pub fn codec_at(&self, at: &[u64]) -> Option<&Arc<dyn Codec>> {
        let other = match &self.objects {
            Objects::Table(table) | Objects::Allotted { known: table, .. } => {
                table.others.get(&self.chunk_number(at)).map(|other| &other.0)
            }
            _ => None,
        };
        other.or_else(|| self.codec())
    }

    /// Whether the plain elements of a chunk are followed by their checksum.
    pub fn has_trailer(&self) -> bool {
        matches!(self.coding, Coding::Trailer)
    }

    /// Bytes of a chunk before its checksum, where it is read in parts that add up \[B\].
    pub fn summed_bytes(&self) -> Option<u64> {
        self.chunk_bytes().filter(|_| matches!(self.coding, Coding::Summed))
    }

    /// The same array, of which all is read, each element once: chunks with checksums do not have to be read whole then. Those
    /// that reach beyond its edges hold more than its elements.
    #[must_use]
    pub fn in_parts(self) -> Stored {
        let fits = |chunk: &[u64]| self.shape.iter().zip(chunk).all(|(extent, chunk)| extent.is_multiple_of(*chunk));
        let may = self.has_trailer() && self.has_object_for_each_chunk() && self.chunk().is_some_and(fits);
        if may { Stored { coding: Coding::Summed, ..self } } else { self }
    }

    /// The same array, whose chunks with checksums are read whole.
    #[must_use]
    pub fn whole(self) -> Stored {
        let coding = if matches!(self.coding, Coding::Summed) { Coding::Trailer } else { self.coding };
        Stored { coding, ..self }
    }

    /// Whether all of a unit is read, whatever is wanted of it: it is encoded, or its checksum covers it.
    pub fn is_read_whole(&self) -> bool {
        !matches!(self.coding, Coding::Plain | Coding::Summed)
    }

    /// Whether a unit is written whole, whatever is written of it: its object takes the place of another one, or is made.
    pub fn is_written_whole(&self) -> bool {
        self.is_read_whole() || self.has_object_for_each_chunk()
    }

    /// Whether a chunk that is written takes the place of one that readers may see.
    pub fn is_replaced(&self) -> bool {
        self.change == Change::Replace
    }

    /// Whether each of its chunks will be made as an object.
    pub fn makes_objects(&self) -> bool {
        self.change == Change::Fresh && self.has_object_for_each_chunk()
    }
}

/// Whether what moving one array costs, moving another one costs, too.
impl Stored {
    /// Whether all is the same but names and places in objects.
    pub fn is_like(&self, other: &Stored) -> bool {
        std::mem::discriminant(&self.objects) == std::mem::discriminant(&other.objects)
            && self.coding.is_like(&other.coding)
            && (&self.shape, self.element, &self.strides) == (&other.shape, other.element, &other.strides)
            && (&self.unit, self.changes_chunks()) == (&other.unit, other.changes_chunks())
            && self.texts == other.texts
    }

    /// Hashes all that [`Stored::is_like`] compares but the size and the order of the bytes of an element, and where texts end.
    pub fn hash_likeness(&self, hasher: &mut impl Hasher) {
        (&self.shape, self.element.kind, &self.strides, &self.unit, self.changes_chunks()).hash(hasher);
        (std::mem::discriminant(&self.objects), std::mem::discriminant(&self.coding)).hash(hasher);
        if let Some(codec) = self.codec() {
            codec.to_bytes().hash(hasher);
        }
    }

    /// What a write finds, where that makes a difference: whether an object is new or not is not seen by who writes into it.
    fn changes_chunks(&self) -> Option<Change> {
        self.chunk().map(|_| self.change)
    }
}

impl Coding {
    fn is_like(&self, other: &Coding) -> bool {
        match (self, other) {
            (Coding::Encoded(one), Coding::Encoded(other)) => {
                Arc::ptr_eq(one, other) || one.to_bytes() == other.to_bytes()
            }
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

/// Views.
impl Stored {
    /// The view of the section's index space in a dense box of the stored array that starts at index `low` and has
    /// this shape, when its first byte lies at `base`.
    pub fn box_view(&self, section: &Section, low: &[u64], shape: &[u64], base: u64) -> View {
        let strides = self.strides.dense(shape, self.element.bytes());
        let axes = section.dims.iter().zip(low).zip(strides);
        let axes = axes.map(|((&triplet, &low), stride)| (Axis::Selected(triplet, low), stride)).collect();
        View { base: base as i64, axes, element: self.element }
    }

    /// The view of the section's index space in the one object that holds all elements, the first at this byte.
    fn object_view(&self, section: &Section, offset: u64) -> View {
        let strides = self.strides.in_object(&self.shape, self.element.bytes());
        let axes = section.dims.iter().zip(strides).map(|(&triplet, stride)| (Axis::Selected(triplet, 0), stride));
        View { base: offset as i64, axes: axes.collect(), element: self.element }
    }

    /// The view of a dense box's own index space.
    pub fn dense_view(&self, shape: &[u64], base: u64) -> View {
        self.part_view(&vec![0; shape.len()], shape, &self.strides.dense(shape, self.element.bytes()), base)
    }

    /// The view of the own index space of a box of this extent that starts at index `low`, in the one object that holds all
    /// elements.
    pub fn part_of_object(&self, low: &[u64], extent: &[u64]) -> View {
        let offset = self.one().map_or(0, |(_, offset)| offset);
        self.part_view(low, extent, &self.strides.in_object(&self.shape, self.element.bytes()), offset)
    }

    /// The same in a dense box of this shape, inside of which it starts at index `low`, and whose first byte lies at `base`.
    pub fn part_of_box(&self, low: &[u64], extent: &[u64], shape: &[u64], base: u64) -> View {
        self.part_view(low, extent, &self.strides.dense(shape, self.element.bytes()), base)
    }

    fn part_view(&self, low: &[u64], extent: &[u64], strides: &[i64], base: u64) -> View {
        let first: i64 = low.iter().zip(strides).map(|(&low, stride)| low as i64 * stride).sum();
        let axes = extent.iter().zip(strides).map(|(&n, &stride)| (Axis::Selected(Triplet::whole(n), 0), stride));
        View { base: base as i64 + first, axes: axes.collect(), element: self.element }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Keys, Table};
    use super::*;
    use crate::{ElementType, Kind};
    use std::collections::hash_map::DefaultHasher;

    const ELEMENT: ElementType = ElementType::native(Kind::Float32);

    fn records() -> Stored {
        let mut stored = Stored::in_file(&[5, 3, 2], ELEMENT, "f", 100);
        stored.strides.record = Some(64);
        stored
    }

    #[test]
    fn units_of_records_hold_one_record_at_most() {
        let file = Stored::in_file(&[5, 3, 2], ELEMENT, "f", 100);
        assert_eq!(file.unit_shape(1 << 20), [5, 3, 2]);
        assert_eq!(file.unit_shape(50), [2, 3, 2]);
        assert_eq!(records().unit_shape(1 << 20), [1, 3, 2]);
        assert_eq!(records().unit_shape(8), [1, 1, 2]);
        assert_eq!((file.end(), records().end()), (Some(220), Some(100 + 4 * 64 + 24)));
        let columns = records().ordered(vec![2, 1, 0]);
        assert_eq!(columns.unit_shape(1 << 20), [5, 3, 1]);
    }

    /// Element by element: what one says of an offset, the other says as a view.
    #[test]
    fn offsets_and_views_agree() {
        let plain = Stored::in_file(&[5, 3, 2], ELEMENT, "f", 100);
        for stored in [plain.clone(), plain.ordered(vec![1, 2, 0]), records()] {
            let whole = Section::whole(&stored.shape);
            let (_, view) = stored.place(&whole, &[0, 0, 0], &[0, 0, 0]).unwrap();
            let part = stored.part_of_object(&[1, 2, 1], &[3, 1, 1]);
            for number in 0..30 {
                let at = crate::mesh::unravel(number, &stored.shape);
                assert_eq!(stored.offset_of(&at), Some(view.address(&at) as u64));
            }
            assert_eq!(part.address(&[2, 0, 0]) as u64, stored.offset_of(&[3, 2, 1]).unwrap());
        }
        assert_eq!(records().offset_of(&[2, 1, 1]), Some(100 + 2 * 64 + 12));
    }

    #[test]
    fn chunks_that_are_read_in_parts_are_cut_into_equal_ones_of_some_size() {
        let unit = |chunk: &[u64], bytes| {
            let keys = Keys::nested("a/");
            let shape: Vec<u64> = chunk.iter().map(|extent| 2 * extent).collect();
            let stored = Stored::in_chunks(&shape, ELEMENT, chunk, keys, Coding::Trailer).in_parts();
            assert_eq!(stored.summed_bytes(), Some(chunk.iter().product::<u64>() * ELEMENT.bytes()));
            stored.unit_shape(bytes * ELEMENT.bytes())
        };
        assert_eq!(unit(&[128, 64, 32], 8192), [4, 64, 32]);
        assert_eq!(unit(&[128, 64, 32], 1 << 20), [128, 64, 32]);
        assert_eq!(unit(&[96, 64], 64 * 33), [32, 64]);
        assert_eq!(unit(&[96, 64], 20), [1, 16]);
        // A prime has no parts, and millions of requests would be worse than a long one.
        assert_eq!(unit(&[1_000_003], 1 << 18), [1_000_003]);
        assert_eq!(unit(&[2 * 499_979], 1 << 18), [499_979]);
        assert_eq!(unit(&[1009, 8], 8 * 100), [1009, 8]);
    }

    #[test]
    fn parts_that_do_not_go_together_are_named() {
        let file = Stored::in_file(&[5, 3], ELEMENT, "f", 100);
        let chunks = Stored::in_chunks(&[5, 3], ELEMENT, &[2, 2], Keys::nested("a/"), Coding::Trailer);
        let table = Stored::in_table(&[5, 3], ELEMENT, &[2, 2], Table::of("h5", Vec::new()));
        assert!([&file, &chunks, &table].into_iter().all(|stored| stored.fault().is_none()));
        let wrong = [
            file.clone().ordered(vec![0, 0]),
            Stored { unit: chunks.unit.clone(), ..file.clone() },
            Stored { coding: Coding::Trailer, ..file.clone() },
            file.clone().changed(Change::Replace),
            Stored { unit: Unit::Free, ..chunks.clone() },
            Stored { unit: Unit::Chunk(vec![2, 0]), ..chunks.clone() },
            Stored {
                strides: records().strides,
                shape: vec![5, 3, 2],
                unit: Unit::Chunk(vec![2; 3]),
                ..chunks.clone()
            },
            chunks.changed(Change::InPlace),
            Stored { coding: Coding::Trailer, ..table },
        ];
        for stored in wrong {
            assert!(stored.fault().is_some(), "{stored:?}");
        }
    }

    #[test]
    fn tables_say_where_chunks_are() {
        let table = Table::of("h5", vec![Address::plain(2, 4096)]);
        let stored = Stored::in_table(&[4, 4], ELEMENT, &[2, 3], table);
        let whole = Section::whole(&stored.shape);
        let (object, view) = stored.place(&whole, &[1, 0], &[2, 0]).unwrap();
        assert_eq!((&*object.name, view.address(&[3, 1])), ("h5", 4096 + 4 * (3 + 1)));
        assert!(stored.place(&whole, &[0, 0], &[0, 0]).is_none(), "it does not exist");
        assert!(!stored.is_written_whole() && !stored.is_read_whole() && stored.object().is_none());
    }

    #[test]
    fn arrays_are_alike_whatever_they_are_called() {
        let hash = |stored: &Stored| {
            let mut hasher = DefaultHasher::new();
            stored.hash_likeness(&mut hasher);
            hasher.finish()
        };
        let file = Stored::in_file(&[5, 3], ELEMENT, "f", 100);
        let elsewhere = Stored::in_file(&[5, 3], ELEMENT, "g", 7).changed(Change::Fresh);
        assert!(file.is_like(&elsewhere) && hash(&file) == hash(&elsewhere));
        let chunks = |coding| Stored::in_chunks(&[5, 3], ELEMENT, &[2, 2], Keys::nested("a/"), coding);
        let (plain, replaced) = (chunks(Coding::Plain), chunks(Coding::Plain).changed(Change::Replace));
        let column_major = file.clone().ordered(vec![1, 0]);
        let all = [file, column_major, plain, replaced, chunks(Coding::Trailer)];
        for (one, a) in all.iter().enumerate() {
            for (other, b) in all.iter().enumerate() {
                assert_eq!((a.is_like(b), hash(a) == hash(b)), (one == other, one == other), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn arrays_that_follow_each_other_are_one() {
        let file = Stored::in_file(&[5, 3], ELEMENT, "f", 100).ordered(vec![1, 0]);
        let stacked = file.clone().stacked(4);
        assert_eq!(stacked.offset_of(&[3, 2, 1]), file.after(3).offset_of(&[2, 1]));
    }
}
