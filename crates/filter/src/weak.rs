//! Plain numbers, as they are written in a text: they compute among themselves as numbers of Python do.

use crate::arithmetic::Floor;
use crate::tree::Binary;
use hyperslab_layout::Kind;
use std::cmp::Ordering;

/// Longest integers of texts, in bits of their absolute value.
const TOO_LARGE: &str = "the integer becomes too large";

/// A number without a type.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Weak {
    Integer(i128),
    Float(f64),
}

impl Weak {
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Weak::Float(_))
    }

    /// The type that an array of it would have.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Weak::Integer(value) if value > i64::MAX.into() && value <= u64::MAX.into() => Kind::UInt64,
            Weak::Integer(_) => Kind::Int64,
            Weak::Float(_) => Kind::Float64,
        }
    }

    pub(crate) fn double(self) -> f64 {
        match self {
            Weak::Integer(value) => value as f64,
            Weak::Float(value) => value,
        }
    }

    pub(crate) fn minus(self) -> Weak {
        match self {
            Weak::Integer(value) => Weak::Integer(value.wrapping_neg()),
            Weak::Float(value) => Weak::Float(-value),
        }
    }

    pub(crate) fn ordering(self, other: Weak) -> Option<Ordering> {
        match (self, other) {
            (Weak::Integer(a), Weak::Integer(b)) => Some(a.cmp(&b)),
            (a, b) => a.double().partial_cmp(&b.double()),
        }
    }
}

/// What Python makes of two plain numbers.
pub(crate) fn combine(operation: Binary, a: Weak, b: Weak) -> Result<Weak, String> {
    let zero = || "division by zero".to_string();
    if let (Weak::Integer(a), Weak::Integer(b)) = (a, b) {
        let found = match operation {
            Binary::Add => a.checked_add(b),
            Binary::Subtract => a.checked_sub(b),
            Binary::Multiply => a.checked_mul(b),
            Binary::FloorDivide | Binary::Remainder if b == 0 => return Err(zero()),
            Binary::FloorDivide => a.checked_div(b).map(|quotient| quotient - i128::from(floors(a.wrapping_rem(b), b))),
            Binary::Remainder => a.checked_rem(b).map(|rest| if floors(rest, b) { rest + b } else { rest }),
            Binary::Power if b >= 0 => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            Binary::BitAnd => Some(a & b),
            Binary::BitOr => Some(a | b),
            Binary::BitXor => Some(a ^ b),
            Binary::And | Binary::Or => return Err("a plain number is no truth value".into()),
            Binary::Divide if b == 0 => return Err(zero()),
            Binary::Divide | Binary::Power => return floats(operation, a as f64, b as f64),
        };
        return found.map(Weak::Integer).ok_or_else(|| TOO_LARGE.to_string());
    }
    floats(operation, a.double(), b.double())
}

/// Whether a quotient that leaves this rest is rounded down to the next integer.
fn floors(rest: i128, by: i128) -> bool {
    rest != 0 && (rest < 0) != (by < 0)
}

fn floats(operation: Binary, a: f64, b: f64) -> Result<Weak, String> {
    Ok(Weak::Float(match operation {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide | Binary::FloorDivide | Binary::Remainder if b == 0.0 => return Err("division by zero".into()),
        Binary::Divide => a / b,
        Binary::FloorDivide => a.floor_divided(b).0,
        Binary::Remainder => a.floor_divided(b).1,
        Binary::Power => a.powf(b),
        _ => return Err(format!("'{}' is not for plain floats", operation.sign())),
    }))
}
