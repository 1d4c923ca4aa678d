//! Element types: what one element of an array is, in memory or on disk.

use std::fmt;

/// Kind of an element, named as Zarr v3 names its data types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
#[allow(missing_docs)] // each variant's name is its documentation
pub enum Kind {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

impl Kind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [Kind; 15] = [
        Kind::Bool,
        Kind::Int8,
        Kind::Int16,
        Kind::Int32,
        Kind::Int64,
        Kind::UInt8,
        Kind::UInt16,
        Kind::UInt32,
        Kind::UInt64,
        Kind::Float16,
        Kind::BFloat16,
        Kind::Float32,
        Kind::Float64,
        Kind::Complex64,
        Kind::Complex128,
    ];

    /// Size of one element \[B\].
    pub const fn bytes(self) -> u64 {
        match self {
            Kind::Bool | Kind::Int8 | Kind::UInt8 => 1,
            Kind::Int16 | Kind::UInt16 | Kind::Float16 | Kind::BFloat16 => 2,
            Kind::Int32 | Kind::UInt32 | Kind::Float32 => 4,
            Kind::Int64 | Kind::UInt64 | Kind::Float64 | Kind::Complex64 => 8,
            Kind::Complex128 => 16,
        }
    }

    /// Size \[B\] of the unit whose bytes a change of byte order reverses: half of a complex number.
    pub const fn swap_bytes(self) -> u64 {
        match self {
            Kind::Complex64 | Kind::Complex128 => self.bytes() / 2,
            _ => self.bytes(),
        }
    }

    /// The Zarr v3 name, such as `float64`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Bool => "bool",
            Kind::Int8 => "int8",
            Kind::Int16 => "int16",
            Kind::Int32 => "int32",
            Kind::Int64 => "int64",
            Kind::UInt8 => "uint8",
            Kind::UInt16 => "uint16",
            Kind::UInt32 => "uint32",
            Kind::UInt64 => "uint64",
            Kind::Float16 => "float16",
            Kind::BFloat16 => "bfloat16",
            Kind::Float32 => "float32",
            Kind::Float64 => "float64",
            Kind::Complex64 => "complex64",
            Kind::Complex128 => "complex128",
        }
    }

    /// The kind with this Zarr v3 name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The NumPy type code without byte order, such as `f8`. NumPy itself has none for bfloat16, which is called by the
    /// name that it has in the package ml_dtypes.
    pub const fn numpy_code(self) -> &'static str {
        match self {
            Kind::Bool => "b1",
            Kind::Int8 => "i1",
            Kind::Int16 => "i2",
            Kind::Int32 => "i4",
            Kind::Int64 => "i8",
            Kind::UInt8 => "u1",
            Kind::UInt16 => "u2",
            Kind::UInt32 => "u4",
            Kind::UInt64 => "u8",
            Kind::Float16 => "f2",
            Kind::BFloat16 => "bfloat16",
            Kind::Float32 => "f4",
            Kind::Float64 => "f8",
            Kind::Complex64 => "c8",
            Kind::Complex128 => "c16",
        }
    }

    /// Whether values of this kind are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, Kind::Complex64 | Kind::Complex128)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of the machine that runs this program.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };
}

/// What one element is: its kind and, where it has more than one byte, the order of its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ElementType {
    /// Kind of number.
    pub kind: Kind,
    /// Order of its bytes.
    pub order: ByteOrder,
}

impl ElementType {
    /// An element type in the byte order of this machine.
    pub const fn native(kind: Kind) -> Self {
        ElementType { kind, order: ByteOrder::NATIVE }
    }

    /// Size of one element \[B\].
    pub const fn bytes(self) -> u64 {
        self.kind.bytes()
    }

    /// Parses a NumPy type string: an optional `<`, `>`, `=` or `|`, then a code such as `f8`.
    pub fn from_numpy(text: &str) -> Option<Self> {
        let (order, code) = match text.as_bytes().first()? {
            b'<' => (ByteOrder::Little, &text[1..]),
            b'>' => (ByteOrder::Big, &text[1..]),
            b'=' | b'|' => (ByteOrder::NATIVE, &text[1..]),
            _ => (ByteOrder::NATIVE, text),
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.numpy_code() == code)?;
        Some(ElementType { kind, order })
    }

    /// The NumPy type string, such as `<f8` or `|b1`.
    pub fn numpy(self) -> String {
        let order = match (self.bytes(), self.order) {
            (1, _) => '|',
            (_, ByteOrder::Little) => '<',
            (_, ByteOrder::Big) => '>',
        };
        format!("{order}{}", self.kind.numpy_code())
    }
}

/// Byte order means nothing for one-byte elements, and so does not tell them apart.
impl PartialEq for ElementType {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && (self.order == other.order || self.kind.bytes() == 1)
    }
}

impl Eq for ElementType {}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if self.bytes() > 1 && self.order != ByteOrder::NATIVE {
            f.write_str(match self.order {
                ByteOrder::Little => " (little-endian)",
                ByteOrder::Big => " (big-endian)",
            })?;
        }
        Ok(())
    }
}
