//! Versions of the format, and the types that elements and attributes may have.

use hyperslab_layout::{ByteOrder, ElementType, Kind, Opaque};

/// Version of the format: how wide numbers of the header are, and which types there are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// CDF-1, the first: no variable may begin behind 2 GiB.
    Classic,
    /// CDF-2: variables, or their slabs of one record, of up to 4 GiB each.
    Offset64,
    /// CDF-5: any size; also unsigned and 64-bit integers.
    Data64,
}

impl Version {
    /// From the oldest to the newest.
    pub const ALL: [Version; 3] = [Version::Classic, Version::Offset64, Version::Data64];

    /// The byte behind `CDF` at the start of a file.
    pub fn code(self) -> u8 {
        match self {
            Version::Classic => 1,
            Version::Offset64 => 2,
            Version::Data64 => 5,
        }
    }

    /// What netCDF4-python and `ncdump -k` call it, in capital letters.
    pub fn name(self) -> &'static str {
        match self {
            Version::Classic => "NETCDF3_CLASSIC",
            Version::Offset64 => "NETCDF3_64BIT_OFFSET",
            Version::Data64 => "NETCDF3_64BIT_DATA",
        }
    }

    /// The version with this name; `NETCDF3_64BIT`, as xarray and older programs say, is the second.
    pub fn named(name: &str) -> Option<Version> {
        let alias = (name == "NETCDF3_64BIT").then_some(Version::Offset64);
        alias.or_else(|| Version::ALL.into_iter().find(|version| version.name() == name))
    }

    /// Whether lengths and numbers of things are 8 B wide in the header.
    pub(super) fn is_wide(self) -> bool {
        self == Version::Data64
    }

    /// Where variables may begin at most \[B\].
    pub(super) fn begin_max(self) -> u64 {
        if self == Version::Classic { i32::MAX as u64 } else { i64::MAX as u64 }
    }

    /// Length of a dimension, or number of records, at most.
    pub(super) fn length_max(self) -> u64 {
        if self.is_wide() { i64::MAX as u64 } else { i32::MAX as u64 }
    }

    /// Bytes of a variable, or of its slab of a record, at most \[B\].
    pub(super) fn slab_bytes_max(self) -> u64 {
        match self {
            Version::Classic => i32::MAX as u64 - 3,
            Version::Offset64 => u64::from(u32::MAX) - 3,
            Version::Data64 => i64::MAX as u64 - 3,
        }
    }
}

/// A character, as NumPy has it.
fn character() -> Kind {
    Opaque::from_code("S1").map_or(Kind::UInt8, Kind::Opaque)
}

/// What an element is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// `NC_BYTE`, signed.
    Byte,
    /// `NC_CHAR`, a byte of text.
    Char,
    /// `NC_SHORT`, 16 bits, signed.
    Short,
    /// `NC_INT`, 32 bits, signed.
    Int,
    /// `NC_FLOAT`, 32 bits.
    Float,
    /// `NC_DOUBLE`, 64 bits.
    Double,
    /// `NC_UBYTE`, of CDF-5 only, as all that follow.
    UByte,
    /// `NC_USHORT`.
    UShort,
    /// `NC_UINT`.
    UInt,
    /// `NC_INT64`.
    Int64,
    /// `NC_UINT64`.
    UInt64,
}

impl Type {
    /// In the order of their codes, which begin with 1.
    pub const ALL: [Type; 11] = [
        Type::Byte,
        Type::Char,
        Type::Short,
        Type::Int,
        Type::Float,
        Type::Double,
        Type::UByte,
        Type::UShort,
        Type::UInt,
        Type::Int64,
        Type::UInt64,
    ];

    /// Its number in headers.
    pub(super) fn code(self) -> u32 {
        self as u32 + 1
    }

    pub(super) fn of_code(code: u32) -> Option<Type> {
        Type::ALL.get(code.checked_sub(1)? as usize).copied()
    }

    /// Whether netCDF had it from the start: it is one of the classic model.
    pub fn is_classic(self) -> bool {
        self.since() == Version::Classic
    }

    /// Bytes of an element \[B\].
    pub fn bytes(self) -> u64 {
        self.kind().bytes()
    }

    /// The kind of element; text is single characters.
    pub fn kind(self) -> Kind {
        match self {
            Type::Byte => Kind::Int8,
            Type::Char => character(),
            Type::UByte => Kind::UInt8,
            Type::Short => Kind::Int16,
            Type::Int => Kind::Int32,
            Type::Float => Kind::Float32,
            Type::Double => Kind::Float64,
            Type::UShort => Kind::UInt16,
            Type::UInt => Kind::UInt32,
            Type::Int64 => Kind::Int64,
            Type::UInt64 => Kind::UInt64,
        }
    }

    /// Elements in a file: big-endian.
    pub fn element(self) -> ElementType {
        ElementType { kind: self.kind(), order: ByteOrder::Big }
    }

    /// The type that holds numbers of a kind as they are.
    pub fn of(kind: Kind) -> Option<Type> {
        match kind {
            Kind::Int8 => Some(Type::Byte),
            Kind::Int16 => Some(Type::Short),
            Kind::Int32 => Some(Type::Int),
            Kind::Float32 => Some(Type::Float),
            Kind::Float64 => Some(Type::Double),
            Kind::UInt8 => Some(Type::UByte),
            Kind::UInt16 => Some(Type::UShort),
            Kind::UInt32 => Some(Type::UInt),
            Kind::Int64 => Some(Type::Int64),
            Kind::UInt64 => Some(Type::UInt64),
            other => (other == character()).then_some(Type::Char),
        }
    }

    /// The first version that has it.
    pub fn since(self) -> Version {
        if self.code() > Type::Double.code() { Version::Data64 } else { Version::Classic }
    }

    /// What C calls it, as in `ncdump`.
    pub fn name(self) -> &'static str {
        match self {
            Type::Byte => "byte",
            Type::Char => "char",
            Type::Short => "short",
            Type::Int => "int",
            Type::Float => "float",
            Type::Double => "double",
            Type::UByte => "ubyte",
            Type::UShort => "ushort",
            Type::UInt => "uint",
            Type::Int64 => "int64",
            Type::UInt64 => "uint64",
        }
    }

    /// One element, big-endian, for what nobody wrote, as `netcdf.h` has it (`NC_FILL_DOUBLE` and so on).
    pub fn usual_fill(self) -> Vec<u8> {
        let real = 9.969_209_968_386_869e36_f64;
        match self {
            Type::Byte => (-127_i8).to_be_bytes().to_vec(),
            Type::Char => vec![0],
            Type::Short => (-32_767_i16).to_be_bytes().to_vec(),
            Type::Int => (-2_147_483_647_i32).to_be_bytes().to_vec(),
            Type::Float => (real as f32).to_be_bytes().to_vec(),
            Type::Double => real.to_be_bytes().to_vec(),
            Type::UByte => vec![u8::MAX],
            Type::UShort => u16::MAX.to_be_bytes().to_vec(),
            Type::UInt => u32::MAX.to_be_bytes().to_vec(),
            Type::Int64 => (i64::MIN + 2).to_be_bytes().to_vec(),
            Type::UInt64 => (u64::MAX - 1).to_be_bytes().to_vec(),
        }
    }
}
