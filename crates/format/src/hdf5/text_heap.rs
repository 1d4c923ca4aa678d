//! Chunks of texts of any length: a global heap with the texts, and behind it the elements, which say where these lie.
//!
//! ```text
//! what is encoded:   | collection | collection | ... | element, 16 B | element | ... |
//! what an index has:                                 ^ the chunk, which HDF5 sees
//! ```

use super::policy::TEXT_ELEMENT_BYTES;
use super::writing::Heap;
use hyperslab_layout::{Codec, CodecError, Numbering, PlacedBytes, ShardIndex, text_of_slot};

/// What makes such chunks of slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextHeap {
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// How many elements a chunk has.
    pub elements: u64,
}

/// What the bytes of one begin with, which those of no other codec do.
const TAG: &[u8] = b"texts of hdf5";

impl TextHeap {
    /// The elements of an encoded chunk in its object, which begins there and has so many bytes: where they begin, and their bytes.
    pub fn elements_of(&self, at: u64, bytes: u64) -> (u64, u64) {
        let own = self.elements * TEXT_ELEMENT_BYTES;
        (at + bytes.saturating_sub(own), own)
    }

    /// What [`Codec::to_bytes`] told of; nothing if it is none.
    pub fn from_bytes(bytes: &[u8]) -> Option<TextHeap> {
        let (slot_bytes, elements) = bytes.strip_prefix(TAG)?.split_first_chunk()?;
        let elements = u64::from_le_bytes(elements.try_into().ok()?);
        let slot_bytes = u32::from_le_bytes(*slot_bytes);
        (slot_bytes > 0).then_some(TextHeap { slot_bytes, elements })
    }
}

impl Codec for TextHeap {
    fn encode(&self, plain: &[u8], _object: &str) -> Result<Vec<u8>, CodecError> {
        let mut heap = Heap::default();
        let each = plain.chunks_exact(self.slot_bytes as usize).map(text_of_slot);
        let elements: Vec<u8> = each.flat_map(|text| heap.keep(text, text.len() as u32, 0)).collect();
        Ok([heap.bytes(), elements].concat())
    }

    fn decode(&self, _stored: &[u8], _plain_bytes: u64, object: &str) -> Result<Vec<u8>, CodecError> {
        let text = format!("'{object}' has texts of variable length, which change as whole chunks only");
        Err(CodecError { text, is_damage: false })
    }

    fn encoded_bytes_max(&self, plain_bytes: u64) -> u64 {
        Heap::bytes_max(plain_bytes / u64::from(self.slot_bytes), plain_bytes)
            .saturating_add(self.elements * TEXT_ELEMENT_BYTES)
    }

    fn compresses(&self) -> bool {
        false
    }

    fn to_bytes(&self) -> Vec<u8> {
        [TAG, &self.slot_bytes.to_le_bytes(), &self.elements.to_le_bytes()].concat()
    }

    fn index(&self) -> Option<&dyn ShardIndex> {
        None
    }

    fn numbering(&self) -> Option<&Numbering> {
        None
    }

    fn places(&self) -> Option<&dyn PlacedBytes> {
        Some(self)
    }
}

impl PlacedBytes for TextHeap {
    fn place(&self, encoded: &mut [u8], at: u64) {
        let own = (self.elements * TEXT_ELEMENT_BYTES) as usize;
        let begin = encoded.len().saturating_sub(own);
        for element in encoded[begin..].as_chunks_mut::<{ TEXT_ELEMENT_BYTES as usize }>().0 {
            let [a, b, c, d, address @ ..] = element;
            // What is empty lies nowhere.
            if [*a, *b, *c, *d] != [0; 4]
                && let Some(address) = address.first_chunk_mut()
            {
                *address = (u64::from_le_bytes(*address) + at).to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::slot_of;

    #[test]
    fn elements_lead_to_their_texts_wherever_the_chunk_lies() {
        let texts: Vec<String> = (0..3000).map(|number| "é".repeat(number % 600)).collect();
        let slots: Vec<u8> = texts.iter().flat_map(|text| slot_of(text.as_bytes(), 1200).unwrap()).collect();
        let codec = TextHeap { slot_bytes: 1200, elements: 3000 };
        let mut chunk = codec.encode(&slots, "a").unwrap();
        assert!(chunk.len() as u64 <= codec.encoded_bytes_max(slots.len() as u64));
        assert!(chunk.len() > 1 << 20, "several collections");
        assert!(chunk.len().is_multiple_of(8));
        codec.place(&mut chunk, 4096);
        let (begin, bytes) = codec.elements_of(4096, chunk.len() as u64);
        assert_eq!(begin + bytes, 4096 + chunk.len() as u64);
        for (text, element) in texts.iter().zip(chunk[(begin - 4096) as usize..].as_chunks::<16>().0) {
            let number = |at: usize| u32::from_le_bytes(*element[at..].first_chunk().unwrap());
            assert_eq!(number(0) as usize, text.len());
            if !text.is_empty() {
                let at = u64::from_le_bytes(*element[4..].first_chunk().unwrap()) as usize - 4096;
                assert_eq!(&chunk[at..at + 4], b"GCOL");
                let mut object = at + 16;
                while u16::from_le_bytes([chunk[object], chunk[object + 1]]) != number(12) as u16 {
                    let bytes = u64::from_le_bytes(*chunk[object + 8..].first_chunk().unwrap()) as usize;
                    object += 16 + bytes.next_multiple_of(8);
                }
                assert_eq!(&chunk[object + 16..object + 16 + text.len()], text.as_bytes());
            }
        }
        let empty = TextHeap { slot_bytes: 1, elements: 7 };
        let chunk = empty.encode(&[0xff; 7], "a").unwrap();
        assert_eq!(chunk, [0; 7 * 16]);
        assert_eq!(TextHeap::from_bytes(&codec.to_bytes()), Some(codec));
        assert_eq!(TextHeap::from_bytes(&codec.to_bytes()[1..]), None);
    }
}
