//! Types of elements, as files describe them.

use hyperslab_layout::{ByteOrder, Kind};

/// What is behind the text of a fixed string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TextEnd {
    /// A zero, always.
    Terminated,
    /// Zeros up to the end, perhaps none.
    Zeros,
    /// Spaces.
    Spaces,
}

/// A type of elements; `bytes` is the size of an element \[B\], `order` that of its bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "what fields are is said above, or with their variant")]
pub enum Datatype {
    /// An integer that fills all its bits.
    Integer { bytes: u32, signed: bool, order: ByteOrder },
    /// A float of IEEE 754 with 2, 4 or 8 bytes.
    Float { bytes: u32, order: ByteOrder },
    /// A float of another make that is known: bfloat16, or one of 8 bits.
    ShortFloat { kind: Kind, order: ByteOrder },
    /// A complex number of these floats, as HDF5 has them from 2.0 on. Older files have compounds of two fields instead.
    Complex(Box<Datatype>),
    /// A string of fixed length.
    Text { bytes: u32, end: TextEnd, utf8: bool },
    /// A string of variable length.
    VariableText { utf8: bool },
    /// A list of variable length.
    List(Box<Datatype>),
    /// Bytes, and a name for what they are.
    Opaque { bytes: u32, tag: String },
    /// Bits that count nothing.
    Bits { bytes: u32, order: ByteOrder },
    /// Fields with names.
    Compound { bytes: u32, fields: Vec<CompoundField> },
    /// Named values of an integer, as stored.
    Enumeration { base: Box<Datatype>, members: Vec<(String, Vec<u8>)> },
    /// An array of fixed shape.
    Array { shape: Vec<u32>, base: Box<Datatype> },
    /// The address of an object's header.
    ObjectReference,
    /// A region of a dataset.
    RegionReference,
    /// Something else of so many bytes, and what: floats of other makes, times, integers with padding, new references.
    Unsupported { bytes: u32, what: String },
}

impl Datatype {
    /// Size of an element \[B\]; what has variable length is stored elsewhere.
    pub fn bytes(&self) -> u32 {
        match self {
            Datatype::Integer { bytes, .. }
            | Datatype::Float { bytes, .. }
            | Datatype::Text { bytes, .. }
            | Datatype::Opaque { bytes, .. }
            | Datatype::Bits { bytes, .. }
            | Datatype::Compound { bytes, .. }
            | Datatype::Unsupported { bytes, .. } => *bytes,
            Datatype::ShortFloat { kind, .. } => kind.bytes() as u32,
            Datatype::Complex(base) => base.bytes().saturating_mul(2),
            Datatype::VariableText { .. } | Datatype::List(_) => 16,
            Datatype::Enumeration { base, .. } => base.bytes(),
            Datatype::Array { shape, base } => {
                shape.iter().fold(base.bytes(), |bytes, &extent| bytes.saturating_mul(extent))
            }
            Datatype::ObjectReference => 8,
            Datatype::RegionReference => 12,
        }
    }
}

/// A field of a compound.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CompoundField {
    /// Its name.
    pub name: String,
    /// Its first byte in the element \[B\].
    pub offset: u32,
    /// Its type.
    pub datatype: Datatype,
}
