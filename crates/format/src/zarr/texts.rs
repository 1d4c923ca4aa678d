//! Texts of variable length: the data type `string` with the codec `vlen-utf8`, which v2 has as a filter of objects (`|O`).
//!
//! A chunk is the number of its elements, and then each one: its length and its UTF-8. Numbers have 4 B and are little-endian. All
//! that the specification of shards and of codecs of bytes says holds for these bytes:
//! <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8>.

use super::bytes_codec::BytesCodec;
use super::chain::{CHECKSUM_BYTES, decode_within, without_checksum};
use super::codecs::{Codecs, Sharding};
use super::metadata::ArrayMetadata;
use super::policy::TEXTS_BYTES_MAX;
use super::slots::spans;
use super::text_type::is_texts;
use crate::error::{Context, Error};
use hyperslab_layout::mesh::{ravel, unravel, volume};
use hyperslab_layout::{ByteOrder, ElementType, Kind, Opaque, slot_of};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A text that is wanted: its coordinates in what is decoded, and its place among all that are wanted.
type WantedText = (Vec<u64>, usize);

impl ArrayMetadata {
    /// Whether its elements are texts of variable length, of which chunks hold the values alone.
    pub fn has_texts(&self) -> bool {
        is_texts(self.element)
    }

    /// The same array as it is written, in slots of the size of these elements, from which its codecs make texts.
    pub fn in_slots(&self, of: ElementType) -> ArrayMetadata {
        match of.kind {
            Kind::Opaque(slots) if self.has_texts() && slots.is_slot() => {
                ArrayMetadata { element: of.kind, ..self.clone() }
            }
            _ => self.clone(),
        }
    }

    /// The slots that its elements are in as they are written, if they are texts.
    fn slots(&self) -> Option<Opaque> {
        match self.element {
            Kind::Opaque(slots) if slots.is_slot() => Some(slots),
            _ => None,
        }
    }

    /// Its codecs as chunks go through them.
    pub(super) fn running_codecs(&self) -> Cow<'_, Codecs> {
        match self.slots() {
            Some(slots) => Cow::Owned(self.codecs.of_slots(slots.bytes())),
            None => Cow::Borrowed(&self.codecs),
        }
    }

    /// One element that was never written, as it is written: that of texts in a slot, empty where it has no place in one. Then
    /// whole chunks are written, so that readers see none of it.
    pub fn slot_of_fill(&self) -> Option<Vec<u8>> {
        let bytes = self.slots()?.bytes() as usize;
        slot_of(&self.fill_value, bytes).or_else(|| slot_of(&[], bytes))
    }

    /// The number in the grid of the chunk that holds an element, and its number there; all are row-major.
    pub fn place_of(&self, number: u64) -> (u64, u64) {
        let (mut rest, mut place, mut strides) = (number, (0, 0), (1, 1));
        for (extent, chunk) in self.shape.iter().zip(&self.chunk_shape).rev() {
            let extent = (*extent).max(1);
            let at = rest % extent;
            rest /= extent;
            place = (place.0 + at / chunk * strides.0, place.1 + at % chunk * strides.1);
            strides = (strides.0 * extent.div_ceil(*chunk), strides.1 * chunk);
        }
        place
    }

    /// Texts with these numbers in a chunk of the grid, in their order, from its stored bytes; `object` names it in errors.
    pub fn texts_in(&self, stored: &[u8], wanted: &[u64], object: &str) -> Result<Vec<Vec<u8>>, Error> {
        let mut found = vec![self.fill_value.clone(); wanted.len()];
        let context = Context::new("decode chunk", object);
        let numbers = wanted.iter().copied().zip(0..);
        if self.codecs.order.is_empty() && self.codecs.shards.is_none() {
            let bytes = decoded(&self.codecs, stored, context)?;
            fill(&bytes, volume(&self.chunk_shape), numbers, &mut found, context)?;
        } else {
            let wanted = numbers.map(|(number, place)| (unravel(number, &self.chunk_shape), place)).collect();
            decode(&self.codecs, &self.chunk_shape, stored, wanted, &mut found, context)?;
        }
        Ok(found)
    }
}

impl Codecs {
    /// The same where chunks come as slots of texts.
    fn of_slots(&self, slot_bytes: u32) -> Codecs {
        let mut codecs = self.clone();
        match &mut codecs.shards {
            Some(sharding) => sharding.codecs = sharding.codecs.of_slots(slot_bytes),
            None => codecs.chain.insert(0, BytesCodec::Texts { slot_bytes }),
        }
        codecs
    }
}

/// Fills in those that a chunk or shard of this shape holds.
fn decode(
    codecs: &Codecs,
    extents: &[u64],
    stored: &[u8],
    wanted: Vec<WantedText>,
    found: &mut [Vec<u8>],
    context: Context,
) -> Result<(), Error> {
    let order = codecs.outer_order(extents.len());
    let turned = |each: &[u64]| -> Vec<u64> { order.iter().map(|&d| each[d]).collect() };
    let extents = turned(extents);
    let wanted: Vec<WantedText> = wanted.into_iter().map(|(at, place)| (turned(&at), place)).collect();
    let bytes = decoded(codecs, stored, context)?;
    let Some(sharding) = &codecs.shards else {
        let numbers = wanted.into_iter().map(|(at, place)| (ravel(&at, &extents), place));
        return fill(&bytes, volume(&extents), numbers, found, context);
    };
    let grid = sharding.chunks_in(&extents).unwrap_or_default();
    let mut by_chunk: BTreeMap<u64, Vec<WantedText>> = BTreeMap::new();
    for (at, place) in wanted {
        let chunk: Vec<u64> = at.iter().zip(&sharding.chunk_shape).map(|(at, extent)| at / extent).collect();
        let inside = at.iter().zip(&sharding.chunk_shape).map(|(at, extent)| at % extent).collect();
        by_chunk.entry(ravel(&chunk, &grid)).or_default().push((inside, place));
    }
    for (number, wanted) in by_chunk {
        if let Some(chunk) = chunk_in(sharding, &bytes, (number, volume(&grid).unwrap_or(0)), context)? {
            decode(&sharding.codecs, &sharding.chunk_shape, chunk, wanted, found, context)?;
        }
    }
    Ok(())
}

/// What codecs of bytes made the stored bytes of. Nothing says how long texts are, so that what they decode to has a limit.
fn decoded<'a>(codecs: &Codecs, stored: &'a [u8], context: Context) -> Result<Cow<'a, [u8]>, Error> {
    let bound = if codecs.chain.is_empty() { u64::MAX } else { TEXTS_BYTES_MAX };
    decode_within(&codecs.chain, Cow::Borrowed(stored), bound, context)
}

/// Fills in texts with these numbers in a chunk of so many, each at its place.
fn fill(
    bytes: &[u8],
    elements: Option<u64>,
    wanted: impl Iterator<Item = (u64, usize)>,
    found: &mut [Vec<u8>],
    context: Context,
) -> Result<(), Error> {
    let spans = spans(bytes, elements.unwrap_or(u64::MAX), context)?;
    for (number, place) in wanted {
        let (first, end) = spans[number as usize];
        let text = &bytes[first as usize..end as usize];
        if let Err(wrong) = std::str::from_utf8(text) {
            return Err(context.corrupt("texts in UTF-8", wrong.to_string()));
        }
        found[place] = text.to_vec();
    }
    Ok(())
}

/// The stored bytes of a chunk in a shard, by its number among so many in the index; nothing where it was never written.
fn chunk_in<'a>(
    sharding: &Sharding,
    shard: &'a [u8],
    (number, count): (u64, u64),
    context: Context,
) -> Result<Option<&'a [u8]>, Error> {
    let bytes = count * 16 + if sharding.index_checksum { CHECKSUM_BYTES } else { 0 };
    let Some(behind) = (shard.len() as u64).checked_sub(bytes) else {
        return Err(context.corrupt(format!("an index of {bytes} B"), format!("a shard of {} B", shard.len())));
    };
    let first = if sharding.index_at_end { behind as usize } else { 0 };
    let mut index = Cow::Borrowed(&shard[first..first + bytes as usize]);
    if sharding.index_checksum {
        index = without_checksum(index, context)?;
    }
    let entry = index.as_chunks::<8>().0.as_chunks::<2>().0.get(number as usize);
    let entry = entry.ok_or_else(|| context.corrupt(format!("chunk {number} in an index"), format!("{count}")))?;
    let [first, length] = entry.map(|number| match sharding.index_endian {
        ByteOrder::Little => u64::from_le_bytes(number),
        ByteOrder::Big => u64::from_be_bytes(number),
    });
    if [first, length] == [u64::MAX; 2] {
        return Ok(None);
    }
    let end = first.checked_add(length).and_then(|end| usize::try_from(end).ok());
    let chunk = end.and_then(|end| shard.get(first as usize..end));
    chunk.map(Some).ok_or_else(|| {
        let expected = format!("chunk {number} of the shard in its {} B", shard.len());
        context.corrupt(expected, format!("{length} B from byte {first} on"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn array(shape: &[u64], codecs: Value) -> ArrayMetadata {
        let grid = json!({"name": "regular", "configuration": {"chunk_shape": shape}});
        let value = json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "string",
            "chunk_grid": grid, "chunk_key_encoding": "default", "codecs": codecs, "fill_value": "none"});
        let made = ArrayMetadata::parse(value.to_string().as_bytes(), "words").unwrap();
        assert_eq!(ArrayMetadata::parse(&made.to_json("words").unwrap(), "words").unwrap(), made);
        made
    }

    fn chunk(texts: &[&str]) -> Vec<u8> {
        let each = texts.iter().flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat());
        (texts.len() as u32).to_le_bytes().into_iter().chain(each).collect()
    }

    #[test]
    fn texts_are_found_by_their_places() {
        let words = array(&[2, 2], json!(["vlen-utf8"]));
        let stored = chunk(&["a", "", "größe", "end"]);
        let wanted = [2, 0, 1, 2];
        let found = words.texts_in(&stored, &wanted, "c/0").unwrap();
        assert_eq!(found, ["größe", "a", "", "größe"].map(|text| text.as_bytes().to_vec()));
        let order = json!({"name": "transpose", "configuration": {"order": [1, 0]}});
        let turned = array(&[2, 2], json!([order, {"name": "vlen-utf8", "configuration": {}}, "crc32c"]));
        let stored = Codecs::plain(true).encode(&stored, "c").unwrap();
        assert_eq!(turned.texts_in(&stored, &wanted[..1], "c/0").unwrap(), [b""]);
        assert_eq!(words.place_of(3), (0, 3));
        let cut = ArrayMetadata { shape: vec![5, 7], ..words };
        assert_eq!((cut.place_of(0), cut.place_of(34), cut.place_of(9)), ((0, 0), (11, 0), (1, 2)));
    }

    #[test]
    fn texts_in_shards_are_found_and_others_have_the_fill_value() {
        let inside = json!({"chunk_shape": [2], "codecs": ["vlen-utf8"], "index_codecs":
            [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]});
        let words = array(&[4], json!([{"name": "sharding_indexed", "configuration": inside}]));
        let first = chunk(&["x", "yy"]);
        let entries = [0, first.len() as u64, u64::MAX, u64::MAX];
        let index: Vec<u8> = entries.iter().flat_map(|number| number.to_le_bytes()).collect();
        let shard = [first, Codecs::plain(true).encode(&index, "c").unwrap()].concat();
        let found = words.texts_in(&shard, &[1, 3], "c/0").unwrap();
        assert_eq!(found, [b"yy".to_vec(), b"none".to_vec()]);
        for length in 0..shard.len() {
            assert!(words.texts_in(&shard[..length], &[1], "c/0").unwrap_err().is_corrupt());
        }
    }

    #[test]
    fn damage_is_found() {
        let words = array(&[3], json!(["vlen-utf8"]));
        let good = chunk(&["a", "bb", "ccc"]);
        for length in 0..good.len() {
            assert!(words.texts_in(&good[..length], &[0], "c/0").unwrap_err().is_corrupt());
        }
        for (at, byte) in [(0, 4), (4, 200), (7, 255), (8, 255)] {
            let mut bad = good.clone();
            bad[at] = byte;
            let error = words.texts_in(&bad, &[0], "words/c/0").unwrap_err();
            assert!(error.is_corrupt() && error.object() == "words/c/0", "{error}");
        }
        let huge = array(&[1 << 40], json!(["vlen-utf8"]));
        assert!(huge.texts_in(&good, &[0], "c/0").unwrap_err().to_string().contains("1099511627776 texts"));
    }
}
