//! Values of a block in memory, in the widest type of their class. What is computed is made narrow again: integers wrap and
//! floats are rounded, which is what the narrow types do.

use crate::promotion::{NumberClass, class};
use half::f16;
use hyperslab_layout::Kind;

/// Values, one after another.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockValues {
    /// Truth values.
    Truths(Vec<bool>),
    /// Integers with a sign, of any size.
    Signed(Vec<i64>),
    /// Integers without a sign, of any size.
    Unsigned(Vec<u64>),
    /// Floats of 16 and 32 bits.
    Singles(Vec<f32>),
    /// Floats of 64 bits.
    Doubles(Vec<f64>),
}

/// Carries something out on the values of a lane, whatever they are.
macro_rules! of_each {
    ($lane:expr, $values:ident => $what:expr) => {
        match $lane {
            BlockValues::Truths($values) => $what,
            BlockValues::Signed($values) => $what,
            BlockValues::Unsigned($values) => $what,
            BlockValues::Singles($values) => $what,
            BlockValues::Doubles($values) => $what,
        }
    };
}

impl BlockValues {
    /// No values, with room for those of this kind.
    pub(crate) fn empty(kind: Kind, room: usize) -> BlockValues {
        match (class(kind), kind) {
            (Some(NumberClass::Unsigned), _) => BlockValues::Unsigned(Vec::with_capacity(room)),
            (Some(NumberClass::Signed), _) => BlockValues::Signed(Vec::with_capacity(room)),
            (Some(NumberClass::Real), Kind::Float64) => BlockValues::Doubles(Vec::with_capacity(room)),
            (Some(NumberClass::Real), _) => BlockValues::Singles(Vec::with_capacity(room)),
            (Some(NumberClass::Truth) | None, _) => BlockValues::Truths(Vec::with_capacity(room)),
        }
    }

    /// The lane of values of this kind, without any.
    pub fn of_kind(kind: Kind) -> BlockValues {
        BlockValues::empty(kind, 0)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        of_each!(self, values => values.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which of the five it is.
    pub(crate) fn number(&self) -> usize {
        match self {
            BlockValues::Truths(_) => 0,
            BlockValues::Signed(_) => 1,
            BlockValues::Unsigned(_) => 2,
            BlockValues::Singles(_) => 3,
            BlockValues::Doubles(_) => 4,
        }
    }

    pub(crate) fn clear(&mut self) {
        of_each!(self, values => values.clear());
    }

    /// The truth values, if it has such.
    pub fn truths(&self) -> Option<&[bool]> {
        if let BlockValues::Truths(values) = self { Some(values) } else { None }
    }

    /// One of its values as a 64-bit integer, if it has integers and this one fits.
    pub fn integer(&self, at: usize) -> Option<i64> {
        match self {
            BlockValues::Signed(values) => values.get(at).copied(),
            BlockValues::Unsigned(values) => values.get(at).and_then(|&value| value.try_into().ok()),
            _ => None,
        }
    }

    /// One of its values as a 64-bit float, rounded if it must be.
    pub fn double(&self, at: usize) -> Option<f64> {
        match self {
            BlockValues::Truths(values) => values.get(at).map(|&value| f64::from(u8::from(value))),
            BlockValues::Signed(values) => values.get(at).map(|&value| value as f64),
            BlockValues::Unsigned(values) => values.get(at).map(|&value| value as f64),
            BlockValues::Singles(values) => values.get(at).map(|&value| value.into()),
            BlockValues::Doubles(values) => values.get(at).copied(),
        }
    }

    /// Appends the bytes of the values, as an array of this kind has them in the memory of this machine.
    pub fn append_to(&self, kind: Kind, bytes: &mut Vec<u8>) {
        macro_rules! append {
            ($values:expr, $to:ty) => {
                $values.iter().for_each(|&value| bytes.extend((value as $to).to_ne_bytes()))
            };
        }
        match (self, kind) {
            (BlockValues::Truths(values), _) => bytes.extend(values.iter().map(|&value| u8::from(value))),
            (BlockValues::Signed(values), Kind::Int8) => append!(values, i8),
            (BlockValues::Signed(values), Kind::Int16) => append!(values, i16),
            (BlockValues::Signed(values), Kind::Int32) => append!(values, i32),
            (BlockValues::Signed(values), _) => append!(values, i64),
            (BlockValues::Unsigned(values), Kind::UInt8) => append!(values, u8),
            (BlockValues::Unsigned(values), Kind::UInt16) => append!(values, u16),
            (BlockValues::Unsigned(values), Kind::UInt32) => append!(values, u32),
            (BlockValues::Unsigned(values), _) => append!(values, u64),
            (BlockValues::Singles(values), Kind::Float16) => {
                values.iter().for_each(|&value| bytes.extend(f16::from_f32(value).to_ne_bytes()));
            }
            (BlockValues::Singles(values), _) => append!(values, f32),
            (BlockValues::Doubles(values), _) => append!(values, f64),
        }
    }

    /// Appends `count` values of an array of this kind, whose bytes lie so far apart, in the byte order of this machine. Bytes
    /// that are not there are 0.
    pub(crate) fn load(&mut self, bytes: &[u8], kind: Kind, stride: usize, count: usize) {
        /// The bytes of value `i`.
        fn at<const N: usize>(bytes: &[u8], start: usize) -> [u8; N] {
            bytes.get(start..start + N).and_then(|found| found.try_into().ok()).unwrap_or([0; N])
        }
        macro_rules! load {
            ($values:expr, $from:ty, $lane:ty) => {{
                const SIZE: usize = size_of::<$from>();
                if stride == SIZE && bytes.len() >= SIZE * count {
                    let (each, _) = bytes[..SIZE * count].as_chunks::<SIZE>();
                    $values.extend(each.iter().map(|&one| <$lane>::from(<$from>::from_ne_bytes(one))));
                } else {
                    $values.extend((0..count).map(|i| <$lane>::from(<$from>::from_ne_bytes(at(bytes, i * stride)))));
                }
            }};
        }
        match (self, kind) {
            (BlockValues::Truths(values), _) => {
                values.extend((0..count).map(|i| bytes.get(i * stride).is_some_and(|&byte| byte != 0)));
            }
            (BlockValues::Signed(values), Kind::Int8) => load!(values, i8, i64),
            (BlockValues::Signed(values), Kind::Int16) => load!(values, i16, i64),
            (BlockValues::Signed(values), Kind::Int32) => load!(values, i32, i64),
            (BlockValues::Signed(values), _) => load!(values, i64, i64),
            (BlockValues::Unsigned(values), Kind::UInt8) => load!(values, u8, u64),
            (BlockValues::Unsigned(values), Kind::UInt16) => load!(values, u16, u64),
            (BlockValues::Unsigned(values), Kind::UInt32) => load!(values, u32, u64),
            (BlockValues::Unsigned(values), _) => load!(values, u64, u64),
            (BlockValues::Singles(values), Kind::Float16) => load!(values, f16, f32),
            (BlockValues::Singles(values), _) => load!(values, f32, f32),
            (BlockValues::Doubles(values), _) => load!(values, f64, f64),
        }
    }

    /// Makes the values such as this kind has: integers wrap, floats are rounded.
    pub(crate) fn narrow(&mut self, kind: Kind) {
        macro_rules! narrow {
            ($values:expr, $through:ty, $wide:ty) => {
                $values.iter_mut().for_each(|value| *value = <$wide>::from(*value as $through))
            };
        }
        match (self, kind) {
            (BlockValues::Signed(values), Kind::Int8) => narrow!(values, i8, i64),
            (BlockValues::Signed(values), Kind::Int16) => narrow!(values, i16, i64),
            (BlockValues::Signed(values), Kind::Int32) => narrow!(values, i32, i64),
            (BlockValues::Unsigned(values), Kind::UInt8) => narrow!(values, u8, u64),
            (BlockValues::Unsigned(values), Kind::UInt16) => narrow!(values, u16, u64),
            (BlockValues::Unsigned(values), Kind::UInt32) => narrow!(values, u32, u64),
            (BlockValues::Singles(values), Kind::Float16) => {
                values.iter_mut().for_each(|value| *value = f16::from_f32(*value).to_f32());
            }
            _ => {}
        }
    }

    /// Appends these values as those of another kind.
    pub(crate) fn append_cast(&mut self, from: &BlockValues) {
        macro_rules! cast {
            ($to:expr, $from:expr, $as:ty) => {
                $to.extend($from.iter().map(|&value| value as $as))
            };
        }
        macro_rules! from {
            ($to:expr, $as:ty) => {
                match from {
                    BlockValues::Truths(values) => $to.extend(values.iter().map(|&value| <$as>::from(u8::from(value)))),
                    BlockValues::Signed(values) => cast!($to, values, $as),
                    BlockValues::Unsigned(values) => cast!($to, values, $as),
                    BlockValues::Singles(values) => cast!($to, values, $as),
                    BlockValues::Doubles(values) => cast!($to, values, $as),
                }
            };
        }
        match self {
            BlockValues::Truths(to) => match from {
                BlockValues::Truths(values) => to.extend(values),
                BlockValues::Signed(values) => to.extend(values.iter().map(|&value| value != 0)),
                BlockValues::Unsigned(values) => to.extend(values.iter().map(|&value| value != 0)),
                BlockValues::Singles(values) => to.extend(values.iter().map(|&value| value != 0.0)),
                BlockValues::Doubles(values) => to.extend(values.iter().map(|&value| value != 0.0)),
            },
            BlockValues::Signed(to) => from!(to, i64),
            BlockValues::Unsigned(to) => from!(to, u64),
            BlockValues::Singles(to) => from!(to, f32),
            BlockValues::Doubles(to) => from!(to, f64),
        }
    }
}

/// Lanes that are not in use, so that blocks after the first allocate nothing.
#[derive(Default)]
pub(crate) struct Pool([Vec<BlockValues>; 5]);

impl Pool {
    /// An empty lane for values of this kind.
    pub(crate) fn take(&mut self, kind: Kind, room: usize) -> BlockValues {
        let fresh = BlockValues::empty(kind, 0);
        self.0[fresh.number()].pop().unwrap_or_else(|| BlockValues::empty(kind, room))
    }

    pub(crate) fn give(&mut self, mut lane: BlockValues) {
        lane.clear();
        self.0[lane.number()].push(lane);
    }
}
