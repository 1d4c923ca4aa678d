//! NumPy's `.npy` files: a header that says what the array is, then its elements.
//!
//! ```text
//! | \x93NUMPY | major minor | length of text, 2 or 4 B | text of a Python dictionary, padded | elements |
//! ```

pub(crate) mod literal;

use crate::error::{Context, Error, excerpt};
use crate::fields::{FieldType, fields_of, structured};
use crate::raw::Order;
use crate::size::{NDIM_MAX, array_bytes};
use hyperslab_layout::{ElementType, Kind, tuple};
use literal::Literal;

/// Bytes \[B\] from the start of a file that [`prefix_bytes_needed`] wants to see.
pub const PREFIX_BYTES: u64 = 12;

/// Largest header \[B\] that is read. What NumPy writes for plain arrays has 128 B, or few more.
pub const HEADER_BYTES_MAX: u64 = 1 << 20;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Digits that NumPy leaves room for, so that the axis along which an array may be appended to can grow in place.
const GROWTH_DIGITS: usize = 21;

/// What a `.npy` file says of its array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NpyHeader {
    /// What one stored element is.
    pub element: ElementType,
    /// Whether the first dimension varies fastest.
    pub fortran_order: bool,
    /// Length of each dimension; empty for a 0-d array.
    pub shape: Vec<u64>,
}

/// Size \[B\] of the whole header, known from the first [`PREFIX_BYTES`] bytes of the file (fewer when it has no more);
/// `name` is the name of the file in errors.
pub fn prefix_bytes_needed(prefix: &[u8], name: &str) -> Result<u64, Error> {
    let (start, length) = text_extent(prefix, Context::new("read npy header of", name))?;
    Ok(start + length)
}

impl NpyHeader {
    /// Parses the header at the start of `bytes`, which may be longer; also returns where the elements begin \[B\].
    ///
    /// Reads versions 1.0, 2.0 and 3.0. Elements are numbers, dates, plain bytes, or structured of these and of texts with a
    /// fixed length; others are refused by name.
    pub fn parse(bytes: &[u8], name: &str) -> Result<(Self, u64), Error> {
        let context = Context::new("read npy header of", name);
        let (start, length) = text_extent(bytes, context)?;
        let Some(text) = bytes.get(start as usize..(start + length) as usize) else {
            let found = format!("{} B", bytes.len());
            return Err(context.corrupt(format!("a header of {} B", start + length), found));
        };
        // Versions 1 and 2 are in Latin-1, version 3 in UTF-8.
        let text = match bytes[6] {
            3 => String::from_utf8(text.to_vec())
                .map_err(|cause| context.corrupt("a header of text", format!("other bytes ({cause})")))?,
            _ => text.iter().copied().map(char::from).collect(),
        };
        let items = literal::dictionary(&text)
            .map_err(|wrong| context.corrupt("a Python dictionary", format!("\"{}\" ({wrong})", excerpt(&text))))?;
        let header = NpyHeader::from_items(items, context)?;
        Ok((header, start + length))
    }

    fn from_items(items: Vec<(String, Literal)>, context: Context) -> Result<Self, Error> {
        let (mut element, mut fortran_order, mut shape) = (None, None, None);
        for (key, value) in items {
            match (key.as_str(), value) {
                ("descr", value) => element = Some(element_type(value, context)?),
                ("fortran_order", Literal::Bool(value)) => fortran_order = Some(value),
                ("shape", Literal::Sequence(lengths)) => shape = Some(shape_of(&lengths, context)?),
                (key @ ("fortran_order" | "shape"), value) => {
                    let expected = if key == "shape" { "shape as a tuple" } else { "fortran_order True or False" };
                    return Err(context.corrupt(expected, excerpt(&format!("{value:?}"))));
                }
                (other, _) => {
                    let found = format!("'{}'", excerpt(other));
                    return Err(context.corrupt("only 'descr', 'fortran_order' and 'shape'", found));
                }
            }
        }
        let missing = |key: &str| context.corrupt(format!("a member '{key}'"), "none");
        let header = NpyHeader {
            element: element.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        };
        header.checked_data_bytes(context)?;
        Ok(header)
    }

    /// The header as NumPy writes it: version 1.0, 2.0 when the text is too long for that, or 3.0 when it is not in ASCII; a
    /// multiple of 64 B.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}",
            self.described(),
            if self.fortran_order { "True" } else { "False" },
            tuple(&self.shape)
        );
        let growing = if self.fortran_order { self.shape.last() } else { self.shape.first() };
        if let Some(length) = growing {
            text.push_str(&" ".repeat(GROWTH_DIGITS - length.to_string().len()));
        }
        // NumPy always pads, with 64 spaces where none would do; so equal arrays make equal files.
        let padded = |prefix: usize| (prefix + text.len() + 2).next_multiple_of(64);
        let (version, prefix) = match text.is_ascii() {
            true if padded(10) - 10 <= usize::from(u16::MAX) => (1, 10),
            true => (2, 12),
            false => (3, 12),
        };
        let mut bytes = [MAGIC, &[version, 0]].concat();
        let text_bytes = padded(prefix) - prefix;
        match version {
            1 => bytes.extend_from_slice(&(text_bytes as u16).to_le_bytes()),
            _ => bytes.extend_from_slice(&(text_bytes as u32).to_le_bytes()),
        }
        bytes.extend_from_slice(text.as_bytes());
        bytes.resize(prefix + text_bytes - 1, b' ');
        bytes.push(b'\n');
        bytes
    }

    /// The type of its elements, as NumPy writes it.
    fn described(&self) -> String {
        let fields = if let Kind::Opaque(opaque) = self.element.kind { opaque.fields() } else { None };
        fields.map_or_else(|| format!("'{}'", self.element.numpy()), str::to_owned)
    }

    /// Order of the elements in the file.
    pub fn order(&self) -> Order {
        if self.fortran_order { Order::ColumnMajor } else { Order::RowMajor }
    }

    /// Size of the elements \[B\], or an error when it would not fit in 63 bits; `name` is the name of the file in
    /// errors.
    pub fn data_bytes(&self, name: &str) -> Result<u64, Error> {
        self.checked_data_bytes(Context::new("describe npy file", name))
    }

    /// Checks that a file called `name`, whose elements begin at `data_offset`, has the size that its header says.
    /// Bytes behind the array are allowed, as NumPy allows them.
    pub fn check_size(&self, data_offset: u64, actual: u64, name: &str) -> Result<(), Error> {
        let context = Context::new("use npy file", name);
        let expected = self.checked_data_bytes(context)?.saturating_add(data_offset);
        if actual >= expected {
            return Ok(());
        }
        let expected = format!("{expected} B for {} of shape {}", self.element, tuple(&self.shape));
        Err(context
            .corrupt(expected, format!("{actual} B"))
            .with_hint("wait if it is still being written; else restore it"))
    }

    fn checked_data_bytes(&self, context: Context) -> Result<u64, Error> {
        if self.shape.len() > NDIM_MAX {
            let found = self.shape.len().to_string();
            return Err(context.unsupported(format!("at most {NDIM_MAX} dimensions"), found));
        }
        let small = matches!(self.element.kind, Kind::Opaque(opaque) if opaque.float().is_some());
        if self.element.kind == Kind::BFloat16 || small {
            let name = self.element.to_string();
            let hint = format!("store it as float32, which holds every {name}, or in a Zarr store");
            return Err(context.unsupported("a type that NumPy's format has a code for", name).with_hint(hint));
        }
        if matches!(self.element.kind, Kind::Opaque(opaque) if opaque.is_reordered()) {
            let found = "fields in another order than that in which they lie";
            return Err(context.unsupported("a type that NumPy's format has a code for", found));
        }
        array_bytes(&self.shape, self.element.bytes()).ok_or_else(|| {
            let found = format!("shape {} of {}", tuple(&self.shape), self.element);
            context.corrupt("an array of less than 2^63 B", found)
        })
    }
}

/// Where the text of the header begins and how long it is \[B\].
fn text_extent(prefix: &[u8], context: Context) -> Result<(u64, u64), Error> {
    if !prefix.starts_with(MAGIC) {
        let quoted = |bytes: &[u8]| format!("b\"{}\" at the start", bytes.escape_ascii());
        let error = context.corrupt(quoted(MAGIC), quoted(&prefix[..prefix.len().min(MAGIC.len())]));
        return Err(error.with_hint("check the path; unpack .npz archives first"));
    }
    let short = || context.corrupt(format!("at least {PREFIX_BYTES} B"), format!("{} B", prefix.len()));
    let version = (*prefix.get(6).ok_or_else(short)?, *prefix.get(7).ok_or_else(short)?);
    let (start, length) = match version {
        (1, 0) => (10, u64::from(u16::from_le_bytes(*prefix[8..].first_chunk().ok_or_else(short)?))),
        (2 | 3, 0) => (12, u64::from(u32::from_le_bytes(*prefix[8..].first_chunk().ok_or_else(short)?))),
        (major, minor) => return Err(context.unsupported("version 1.0, 2.0 or 3.0", format!("{major}.{minor}"))),
    };
    if start + length > HEADER_BYTES_MAX {
        return Err(context.unsupported(format!("a header of at most {HEADER_BYTES_MAX} B"), format!("{length} B")));
    }
    Ok((start, length))
}

fn element_type(descr: Literal, context: Context) -> Result<ElementType, Error> {
    let expected = "numbers, dates, texts of a fixed length, plain bytes, or a structured type of these";
    let Literal::Text(code) = descr else {
        let kind = fields_of(&descr).and_then(|fields| structured(&fields)).map_err(|wrong| {
            let error = context.unsupported(expected, excerpt(&wrong));
            error.with_hint("save each field as an array of its own")
        })?;
        return Ok(ElementType::native(kind));
    };
    let known = FieldType::of_code(&code);
    if let Some(element) = known.as_ref().and_then(FieldType::as_text) {
        return Ok(element);
    }
    if let Some(FieldType::Element(element)) = known {
        return Ok(element);
    }
    let hint = match code.trim_start_matches(['<', '>', '=', '|']).bytes().next() {
        Some(b'O') => "save numbers: Python objects are pickled, and never loaded here",
        _ => "convert with array.astype to a supported type first",
    };
    Err(context.unsupported(expected, format!("type '{}'", excerpt(&code))).with_hint(hint))
}

fn shape_of(lengths: &[Literal], context: Context) -> Result<Vec<u64>, Error> {
    let length = |item: &Literal| match item {
        Literal::Number(length) => Ok(*length),
        other => Err(context.corrupt("a shape of numbers", excerpt(&format!("{other:?}")))),
    };
    lengths.iter().map(length).collect()
}

#[cfg(test)]
mod tests;
