//! Global heaps: values of variable length (section III.E).

use super::fetch::Fetcher;
use super::fields::FieldReader;
use super::heap_kept::Collection;
use crate::error::Error;
use std::collections::HashMap;
use std::ops::Range;

/// The list or text that an element refers to: a number of elements of so many bytes, an address, and a number of an
/// object.
pub(super) fn value(fetcher: &Fetcher, element: &mut FieldReader, each: u64) -> Result<Vec<u8>, Error> {
    let bytes = u64::from(element.four()?) * each;
    let at = element.address()?;
    let number = element.four()?;
    let Some(at) = at.filter(|_| bytes > 0) else { return Ok(Vec::new()) };
    let mut heaps = fetcher.heaps.borrow_mut();
    let Collection { block, objects } = heaps.collection(at, || collection(fetcher, at))?;
    fetcher.spend(bytes)?;
    let object = u16::try_from(number).ok().and_then(|number| objects.get(&number));
    let found = object.filter(|object| object.len() as u64 >= bytes).ok_or_else(|| {
        let expected = format!("{bytes} B as object {number} of the global heap at byte {at}");
        fetcher.context.corrupt(expected, format!("{} B", object.map_or(0, Range::len)))
    })?;
    Ok(block[found.start..found.start + bytes as usize].to_vec())
}

/// Reads a collection.
fn collection(fetcher: &Fetcher, at: u64) -> Result<Collection, Error> {
    // Collections have 4 KiB or more.
    let guess = fetcher.bytes_at_most(at, 4096)?;
    fetcher.check_signature(at, &guess, b"GCOL")?;
    let mut fields = fetcher.fields(&guess, "global heap");
    fields.skip(4)?;
    fields.version(1..=1)?;
    fields.skip(3)?;
    let bytes = fields.length()?;
    let begin = 8 + usize::from(fetcher.widths.length);
    let block = fetcher.extended(at, guess, bytes)?;
    let mut fields = fetcher.fields(block.get(begin..).unwrap_or_default(), "global heap");
    let mut objects = HashMap::new();
    while fields.rest.len() >= begin {
        let number = fields.two()?;
        fields.skip(6)?;
        let bytes = fields.length()?;
        if number == 0 {
            break;
        }
        let from = block.len() - fields.rest.len();
        let object = fields.take(bytes)?;
        objects.insert(number, from..from + object.len());
        fields.skip_at_most(object.len().next_multiple_of(8) - object.len());
    }
    Ok(Collection { block, objects })
}
