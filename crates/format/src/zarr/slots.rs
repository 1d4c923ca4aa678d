//! Chunks of texts of any length, as `vlen-utf8` has them, from the slots in which texts move, and back.

use crate::error::{Context, Error};
use hyperslab_layout::{slot_of, text_of_slot};

/// Most bytes that a chunk of slots becomes \[B\].
pub(super) fn encoded_bytes_max(bytes: u64, slot_bytes: u32) -> u64 {
    // Of each slot, a byte at least is no text, and 4 are its length.
    bytes.saturating_add(4).saturating_add(3 * (bytes / u64::from(slot_bytes.max(1))))
}

/// A chunk of the texts in these slots.
pub(super) fn of_slots(slots: &[u8], slot_bytes: u32, context: Context) -> Result<Vec<u8>, Error> {
    let each = slots.chunks_exact(slot_bytes as usize);
    let count = u32::try_from(each.len());
    let count = count.map_err(|_| context.unsupported("less than 2^32 texts in a chunk", each.len().to_string()))?;
    let mut chunk = count.to_le_bytes().to_vec();
    for text in each.map(text_of_slot) {
        chunk.extend((text.len() as u32).to_le_bytes());
        chunk.extend_from_slice(text);
    }
    Ok(chunk)
}

/// The slots of a chunk of texts, which are at most so many bytes.
pub(super) fn to_slots(chunk: &[u8], slot_bytes: u32, bound: u64, context: Context) -> Result<Vec<u8>, Error> {
    let mut slots = Vec::new();
    for (first, end) in spans(chunk, bound / u64::from(slot_bytes.max(1)), context)? {
        let text = &chunk[first as usize..end as usize];
        let slot = slot_of(text, slot_bytes as usize).ok_or_else(|| {
            context.unsupported(format!("texts of at most {} B", slot_bytes - 1), format!("one of {} B", text.len()))
        })?;
        slots.extend(slot);
    }
    Ok(slots)
}

/// Where each text of a chunk lies.
pub(super) fn spans(bytes: &[u8], elements: u64, context: Context) -> Result<Vec<(u32, u32)>, Error> {
    let cut = |what: String| context.corrupt(what, format!("{} B", bytes.len()));
    let number = |at: usize| bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number));
    let count = number(0).ok_or_else(|| cut("the number of texts, 4 B".into()))?;
    if u64::from(count) != elements {
        return Err(context.corrupt(format!("{elements} texts"), count.to_string()));
    }
    if u32::try_from(bytes.len()).is_err() {
        return Err(context.unsupported("texts of less than 4 GiB in a chunk", format!("{} B", bytes.len())));
    }
    let (mut spans, mut at) = (Vec::with_capacity((count as usize).min(bytes.len() / 4)), 4);
    for text in 0..count {
        let first = at + 4;
        let end = number(at).map(|length| first as u64 + u64::from(length));
        let Some(end) = end.filter(|end| *end <= bytes.len() as u64) else {
            return Err(cut(format!("text {text} of {count} from byte {at} on")));
        };
        spans.push((first as u32, end as u32));
        at = end as usize;
    }
    Ok(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_become_chunks_and_come_back() {
        let texts = ["", "a", "a\0", "größe"];
        let slots: Vec<u8> = texts.iter().flat_map(|text| slot_of(text.as_bytes(), 9).unwrap()).collect();
        let context = Context::new("encode chunk", "c");
        let chunk = of_slots(&slots, 9, context).unwrap();
        assert_eq!(chunk.len(), 4 + 4 * 4 + 1 + 2 + 7);
        assert!(chunk.len() as u64 <= encoded_bytes_max(slots.len() as u64, 9));
        assert_eq!(to_slots(&chunk, 9, 36, context).unwrap(), slots);
        assert!(to_slots(&chunk, 7, 28, context).unwrap_err().is_unsupported(), "too long for a slot");
        assert!(to_slots(&chunk, 9, 27, context).unwrap_err().is_corrupt(), "more texts than the chunk has");
        assert!(to_slots(&chunk[..chunk.len() - 1], 9, 36, context).unwrap_err().is_corrupt());
        // Full slots of one byte, which hold nothing, take the most.
        let empty = slot_of(b"", 1).unwrap().repeat(5);
        assert_eq!(of_slots(&empty, 1, context).unwrap().len() as u64, encoded_bytes_max(5, 1));
    }
}
