//! Texts of any length that are written: a heap with the texts, and elements that say where in it these lie.
//!
//! ```text
//! a rank's heap:   | collection | collection | ...        its elements:   | length, address, number | ...
//!                     ^-----------------------------------------------------------------'
//! ```

use super::policy::TEXT_ELEMENT_BYTES;
use super::writing::Heap;

/// Texts, one after another, that get a place in a file later.
#[derive(Default)]
pub struct TextHeap(Heap);

impl TextHeap {
    /// Keeps a text; gives its element, where the heap is the begin of the file.
    pub fn keep(&mut self, text: &[u8]) -> Vec<u8> {
        self.0.keep(text, text.len() as u32, 0)
    }

    /// What is written of it: a multiple of 8 B, and nothing if all texts are empty.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.bytes()
    }

    /// Moves the texts of these elements, with their heap, to this place in the file, a multiple of 8 \[B\].
    pub fn place(elements: &mut [u8], at: u64) {
        for element in elements.as_chunks_mut::<{ TEXT_ELEMENT_BYTES as usize }>().0 {
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

    #[test]
    fn elements_lead_to_their_texts_wherever_the_heap_lies() {
        let texts: Vec<String> = (0..3000).map(|number| "é".repeat(number % 600)).collect();
        let mut heap = TextHeap::default();
        let mut elements: Vec<u8> = texts.iter().flat_map(|text| heap.keep(text.as_bytes())).collect();
        let bytes = heap.bytes();
        assert!(bytes.len() > 1 << 20, "several collections");
        assert!(bytes.len().is_multiple_of(8));
        TextHeap::place(&mut elements, 4096);
        assert_eq!(elements.len(), 3000 * 16);
        for (text, element) in texts.iter().zip(elements.as_chunks::<16>().0) {
            let number = |at: usize| u32::from_le_bytes(*element[at..].first_chunk().unwrap());
            assert_eq!(number(0) as usize, text.len());
            if !text.is_empty() {
                let at = u64::from_le_bytes(*element[4..].first_chunk().unwrap()) as usize - 4096;
                assert_eq!(&bytes[at..at + 4], b"GCOL");
                let mut object = at + 16;
                while u16::from_le_bytes([bytes[object], bytes[object + 1]]) != number(12) as u16 {
                    let length = u64::from_le_bytes(*bytes[object + 8..].first_chunk().unwrap()) as usize;
                    object += 16 + length.next_multiple_of(8);
                }
                assert_eq!(&bytes[object + 16..object + 16 + text.len()], text.as_bytes());
            }
        }
        let mut empty = TextHeap::default();
        assert_eq!((empty.keep(b""), empty.bytes()), (vec![0; 16], Vec::new()));
    }
}
