//! Texts of any length on their way to storage: in slots of one size on all ranks, that of the longest text.

use crate::array_write::ArrayWrite;
use crate::comm::Comm;
use crate::error::Error;
use crate::options::WriteOptions;
use crate::policy::TEXT_BYTES_MAX;
use hyperslab_collective::LocalArray;
use hyperslab_layout::mesh::{unravel, volume};
use hyperslab_layout::{ElementType, Kind, Opaque, text_of_slot};
use hyperslab_pack::Memory;
use hyperslab_walk::{Question, Votes};
use hyperslab_world::{Fault, FaultKind};

/// The slots that elements are, if they are such.
pub(crate) fn slots(element: Option<ElementType>) -> Option<Opaque> {
    match element?.kind {
        Kind::Opaque(opaque) if opaque.is_slot() => Some(opaque),
        _ => None,
    }
}

/// Whether texts of any length are written, as far as this rank knows.
pub(crate) fn has_slots(asks: &[ArrayWrite], options: &WriteOptions) -> bool {
    let of = |(number, ask): (usize, &ArrayWrite)| slots(ask.element()).or(slots(options.of(number).element)).is_some();
    asks.iter().enumerate().any(of)
}

/// Why texts of any length are not written to files.
pub(crate) fn no_slots(asks: &[ArrayWrite]) -> Fault {
    let name = asks.iter().find(|ask| slots(ask.element()).is_some()).map_or("", |ask| &ask.name);
    let text = format!("'{name}' has texts of variable length, which are not written so");
    Fault::new(FaultKind::Unsupported, text)
        .hint("give texts a length, as with array.astype(\"S8\"); arrays of Zarr, HDF5 and netCDF-4 have any")
}

impl Comm {
    /// What is written with all texts of any length in slots of one size; nothing where there are none. Collective where there
    /// are: ranks agree on the size.
    ///
    /// # Errors
    /// The same on all ranks, when a text is too long.
    pub(crate) fn in_slots(
        &self,
        what: &str,
        (asks, options): (&[ArrayWrite], &WriteOptions),
    ) -> Result<Option<(Vec<ArrayWrite>, WriteOptions)>, Error> {
        if !has_slots(asks, options) {
            return Ok(None);
        }
        let most = (0..asks.len()).map(|number| needed(&asks[number], options.of(number))).max().unwrap_or(1);
        let fault = (most > TEXT_BYTES_MAX + 1).then(|| {
            let text = format!("{what}: a text has {} B", most - 1);
            Fault::new(FaultKind::Unsupported, text)
                .expected(format!("texts of at most {TEXT_BYTES_MAX} B"), (most - 1).to_string())
                .hint("store long texts as bytes, with their lengths in another array")
        });
        let fault = fault.or_else(|| asks.iter().find_map(not_unicode).map(|fault| fault.context(what)));
        let fields = vec![("operation".to_string(), "write of texts of variable length".to_string())];
        let votes = Votes { reach: Some((0, most)), ..Votes::default() };
        let question = Question { votes, ..Question::opening(what, fields, fault) };
        let told = self.agree_by(
            question,
            Box::new(|votes| {
                let most = votes.reach.map_or(1, |(_, most)| most);
                (Box::new(move || Ok(most.to_le_bytes().to_vec())), true)
            }),
        )?;
        let bytes = told.first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes)) as u32;
        let element = ElementType::native(Kind::Opaque(Opaque::slots(bytes)));
        let widened = asks.iter().map(|ask| {
            let arrays = ask.arrays.iter().map(|array| widened(&ask.name, array, element));
            Ok(ArrayWrite { arrays: arrays.collect::<Result<_, Fault>>()?, ..ask.clone() })
        });
        let options = options.but_element(|of| slots(of).map_or(of, |_| Some(element)));
        Ok(Some((self.all_have(what, widened.collect())?, options)))
    }

    /// What this rank has made, where all ranks have. Collective only where one has not: that ends the call that all make next.
    fn all_have<T>(&self, what: &str, made: Result<T, Fault>) -> Result<T, Error> {
        made.map_err(|fault| self.attend_with(what, fault))
    }
}

/// Why the texts of an array cannot be stored as UTF-8, if one is none.
fn not_unicode(ask: &ArrayWrite) -> Option<Fault> {
    let found = found_text(ask, |text| std::str::from_utf8(text).is_err())?;
    let text = format!("a text of '{}' is not UTF-8", ask.name);
    let shown = shown_text(&found);
    Some(
        Fault::new(FaultKind::Invalid, text)
            .expected("UTF-8", shown)
            .hint("decode bytes first, as with .decode(\"latin-1\")"),
    )
}

/// The first text of an array of which that holds.
pub(crate) fn found_text(ask: &ArrayWrite, holds: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let mut found = None;
    for array in ask.arrays.iter().filter(|array| slots(Some(array.element)).is_some()) {
        each_slot(array, |slot| {
            let text = text_of_slot(slot);
            if found.is_none() && holds(text) {
                found = Some(text.to_vec());
            }
        });
    }
    found
}

/// The begin of a text, for messages.
pub(crate) fn shown_text(text: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
    format!("{shown:?}")
}

/// Goes through the slots of an array, row by row.
pub(crate) fn each_slot(array: &LocalArray, mut each: impl FnMut(&[u8])) {
    for number in 0..volume(&array.shape).unwrap_or(0) {
        let place = unravel(number, &array.shape);
        let at = place.iter().zip(&array.strides).fold(array.offset, |at, (i, stride)| at + *i as i64 * stride);
        each(&array.memory.to_vec(at as u64, array.element.bytes()));
    }
}

/// How large slots must be for the texts of an array, as this rank holds it.
fn needed(ask: &ArrayWrite, options: &WriteOptions) -> u64 {
    let own = ask.arrays.iter().filter_map(|array| slots(Some(array.element)));
    let own = own.chain(slots(options.element)).map(|slots| u64::from(slots.bytes())).max();
    let fill = options.fill_value.as_ref().and_then(|value| value.as_str()).map_or(0, str::len);
    own.map_or(1, |own| own.max(fill as u64 + 1))
}

/// A copy of an array of texts in larger slots; any other array as it is.
fn widened(name: &str, array: &LocalArray, element: ElementType) -> Result<LocalArray, Fault> {
    if slots(Some(array.element)).is_none() || array.element == element {
        return Ok(array.clone());
    }
    let (count, bytes) = (volume(&array.shape).unwrap_or(u64::MAX), element.bytes());
    let mut all = Vec::new();
    let length = usize::try_from(count.saturating_mul(bytes)).unwrap_or(usize::MAX);
    all.try_reserve_exact(length).map_err(|_| Fault::no_memory(format_args!("the texts of '{name}', {length} B")))?;
    each_slot(array, |slot| {
        let end = all.len() + bytes as usize;
        all.extend_from_slice(slot);
        all.resize(end, 0);
    });
    let order: Vec<usize> = (0..array.shape.len()).collect();
    let strides = hyperslab_layout::dense_strides(&array.shape, &order, bytes);
    Ok(LocalArray { memory: Memory::from_vec(all), element, shape: array.shape.clone(), strides, offset: 0 })
}
