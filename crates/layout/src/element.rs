//! Element types: what one element of an array is, in memory or on disk.

use crate::opaque::Opaque;
use std::fmt;

/// Kind of an element: a number, named as Zarr v3 names its data types, or bytes that mean something to others only.
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
    /// What moves as it is and becomes nothing else: structured types, dates, texts, floats of 8 bits, plain bytes.
    Opaque(Opaque),
}

impl Kind {
    /// All kinds of numbers, in the order of their declaration.
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
            Kind::Opaque(opaque) => opaque.bytes() as u64,
        }
    }

    /// Size \[B\] of the unit whose bytes a change of byte order reverses: half of a complex number, a character
    /// of text, one where there is no order.
    pub const fn swap_bytes(self) -> u64 {
        match self {
            Kind::Opaque(opaque) => opaque.swap_bytes() as u64,
            Kind::Complex64 | Kind::Complex128 => self.bytes() / 2,
            _ => self.bytes(),
        }
    }

    /// So many plain bytes.
    pub const fn opaque(bytes: u32) -> Kind {
        Kind::Opaque(Opaque::plain(bytes))
    }

    /// The Zarr v3 name, such as `float64`; of what is opaque, that it is so.
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
            Kind::Opaque(_) => "opaque",
        }
    }

    /// The kind of number with this Zarr v3 name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The NumPy type code without byte order, such as `f8`; of what is opaque, without its size. NumPy itself has none for bfloat16, which is called by the
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
            Kind::Opaque(_) => "V",
        }
    }

    /// Whether values of this kind are no numbers.
    pub const fn is_opaque(self) -> bool {
        matches!(self, Kind::Opaque(_))
    }

    /// Whether values of this kind are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, Kind::Complex64 | Kind::Complex128)
    }

    /// Whether values of this kind are integers, with or without a sign.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Unsigned | Class::Signed)
    }

    /// Whether a value of this kind may be NaN.
    pub const fn has_nan(self) -> bool {
        matches!(self.class(), Class::Real | Class::Complex)
    }

    /// What numbers of this kind are, whatever their size.
    const fn class(self) -> Class {
        match self {
            Kind::Bool => Class::Truth,
            Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => Class::Unsigned,
            Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => Class::Signed,
            Kind::Float16 | Kind::BFloat16 | Kind::Float32 | Kind::Float64 => Class::Real,
            Kind::Complex64 | Kind::Complex128 => Class::Complex,
            Kind::Opaque(_) => Class::Opaque,
        }
    }
}

/// Kinds of numbers, each of which can hold those before it, apart from size and precision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Truth,
    Unsigned,
    Signed,
    Real,
    Complex,
    /// No numbers: nothing else can hold them, nor they anything else.
    Opaque,
}

/// Which changes of the element type are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Casting {
    /// Those of [`same_kind`]: only size and precision may be lost.
    #[default]
    SameKind,
    /// All: a sign, a fraction or an imaginary part may be lost, too.
    Unsafe,
}

impl Casting {
    /// The rule that NumPy calls so, of those known here.
    pub fn from_name(name: &str) -> Option<Casting> {
        match name {
            "same_kind" => Some(Casting::SameKind),
            "unsafe" => Some(Casting::Unsafe),
            _ => None,
        }
    }

    /// NumPy's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Casting::SameKind => "same_kind",
            Casting::Unsafe => "unsafe",
        }
    }

    /// Whether it allows to convert from one kind to another.
    pub fn allows(self, from: Kind, to: Kind) -> bool {
        same_kind(from, to) || self == Casting::Unsafe && !from.is_opaque() && !to.is_opaque()
    }
}

/// Whether values keep what they are when they are converted so, apart from size and precision:
/// `numpy.can_cast(from, to, casting="same_kind")`.
///
/// Integers may become floats, and floats complex numbers, but not the other way round; integers without a sign may
/// get one, but not lose it; nothing else becomes a truth value. bfloat16 is a float like the others. What is opaque stays
/// what it is, but where texts lie may be read as plain bytes, of which their file makes the texts.
pub fn same_kind(from: Kind, to: Kind) -> bool {
    from == to || from.class() <= to.class() && !to.is_opaque() || is_place_of(from, to)
}

/// Whether plain bytes hold where such texts lie.
fn is_place_of(from: Kind, to: Kind) -> bool {
    matches!(from, Kind::Opaque(text) if text.is_reference() && to == Kind::opaque(text.bytes()))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Opaque(opaque) => opaque.fmt(f),
            number => f.write_str(number.name()),
        }
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

    /// What it is called: little or big.
    pub const fn name(self) -> &'static str {
        match self {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        }
    }
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

    /// Where one may begin that is looked at in place: at multiples of the largest power of two in its size, at most 16 \[B\].
    pub const fn alignment(self) -> u64 {
        let power = self.bytes().trailing_zeros();
        1 << if power < 4 { power } else { 4 }
    }

    /// Parses a NumPy type string: an optional `<`, `>`, `=` or `|`, then a code such as `f8`, or one of an [`Opaque`].
    pub fn from_numpy(text: &str) -> Option<Self> {
        let (order, code) = match text.as_bytes().first()? {
            b'<' => (ByteOrder::Little, &text[1..]),
            b'>' => (ByteOrder::Big, &text[1..]),
            b'=' | b'|' => (ByteOrder::NATIVE, &text[1..]),
            _ => (ByteOrder::NATIVE, text),
        };
        let number = Kind::ALL.into_iter().find(|kind| kind.numpy_code() == code);
        let kind = number.or_else(|| Opaque::from_code(code).map(Kind::Opaque))?;
        Some(ElementType { kind, order })
    }

    /// The NumPy type string, such as `<f8`, `|b1` or `|V12`.
    pub fn numpy(self) -> String {
        let order = match (self.kind.swap_bytes(), self.order) {
            (1, _) => '|',
            (_, ByteOrder::Little) => '<',
            (_, ByteOrder::Big) => '>',
        };
        match self.kind {
            Kind::Opaque(opaque) => format!("{order}{}", opaque.code()),
            number => format!("{order}{}", number.numpy_code()),
        }
    }
}

/// Byte order means nothing for one-byte and opaque elements, and so does not tell them apart.
impl PartialEq for ElementType {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && (self.order == other.order || self.kind.swap_bytes() == 1)
    }
}

impl Eq for ElementType {}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        if self.kind.swap_bytes() > 1 && self.order != ByteOrder::NATIVE {
            f.write_str(match self.order {
                ByteOrder::Little => " (little-endian)",
                ByteOrder::Big => " (big-endian)",
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_aligned_by_their_size() {
        let of = |code: &str| ElementType::from_numpy(code).unwrap().alignment();
        assert_eq!(["u1", "f4", "f8", "c16", "V12", "V3", "V64"].map(of), [1, 4, 8, 16, 4, 1, 16]);
    }

    /// What NumPy 2.4 says of `can_cast(row, column, casting="same_kind")`, in the order of [`Kind::ALL`]. bfloat16, which
    /// NumPy does not have, is what float16 is.
    const NUMPY: [(&str, &str); 15] = [
        ("bool", "111111111111111"),
        ("int8", "011110000111111"),
        ("int16", "011110000111111"),
        ("int32", "011110000111111"),
        ("int64", "011110000111111"),
        ("uint8", "011111111111111"),
        ("uint16", "011111111111111"),
        ("uint32", "011111111111111"),
        ("uint64", "011111111111111"),
        ("float16", "000000000111111"),
        ("bfloat16", "000000000111111"),
        ("float32", "000000000111111"),
        ("float64", "000000000111111"),
        ("complex64", "000000000000011"),
        ("complex128", "000000000000011"),
    ];

    #[test]
    fn same_kind_is_what_numpy_says() {
        for (from, (name, row)) in Kind::ALL.into_iter().zip(NUMPY) {
            assert_eq!(from.name(), name);
            assert_eq!(row.len(), Kind::ALL.len());
            for (to, expected) in Kind::ALL.into_iter().zip(row.bytes()) {
                assert_eq!(same_kind(from, to), expected == b'1', "{from} to {to}");
                assert_eq!(Casting::SameKind.allows(from, to), expected == b'1');
                assert!(Casting::Unsafe.allows(from, to));
            }
        }
    }

    #[test]
    fn what_is_opaque_becomes_nothing_else() {
        let (one, other) = (Kind::opaque(3), Kind::opaque(8));
        let date = ElementType::from_numpy(">M8[ns]").unwrap();
        assert_eq!((date.numpy().as_str(), date.kind.swap_bytes()), (">M8[ns]", 8));
        assert_ne!(date, ElementType { order: ByteOrder::Little, ..date });
        assert!(!Casting::Unsafe.allows(date.kind, other) && !Casting::Unsafe.allows(date.kind, Kind::Int64));
        assert!(Casting::SameKind.allows(one, one));
        for casting in [Casting::SameKind, Casting::Unsafe] {
            assert!(!casting.allows(one, other) && !casting.allows(other, one));
            assert!(
                Kind::ALL.into_iter().all(|number| !casting.allows(number, other) && !casting.allows(other, number))
            );
        }
        let text = ElementType::from_numpy("|O16").unwrap().kind;
        assert!(same_kind(text, Kind::opaque(16)) && !same_kind(Kind::opaque(16), text) && !same_kind(text, one));
        let element = ElementType { kind: other, order: ByteOrder::Big };
        assert_eq!(element, ElementType::native(other));
        assert_eq!((element.numpy().as_str(), element.to_string().as_str()), ("|V8", "opaque elements of 8 B"));
        assert_eq!(ElementType::from_numpy("|V8"), Some(element));
    }

    #[test]
    fn castings_have_the_names_of_numpy() {
        for casting in [Casting::SameKind, Casting::Unsafe] {
            assert_eq!(Casting::from_name(casting.name()), Some(casting));
        }
        assert_eq!(Casting::from_name("safe"), None);
        assert_eq!(Casting::default(), Casting::SameKind);
    }
}
