//! What operations make of two values, as NumPy's loops have it.

use crate::lanes::BlockValues;
use crate::tree::{Binary, Comparison};
use hyperslab_layout::Kind;
use std::cmp::Ordering;

/// Why values cannot be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cannot {
    /// An integer to a negative power, which would be no integer.
    NegativePower,
}

/// Floors, and so has the sign of the divisor in the remainder.
pub(crate) trait Floor: Sized {
    /// Quotient and remainder.
    fn floor_divided(self, by: Self) -> (Self, Self);
}

macro_rules! floor_of_floats {
    ($($float:ty),*) => {$(
        impl Floor for $float {
            fn floor_divided(self, by: $float) -> ($float, $float) {
                let rest = self % by;
                if by == 0.0 {
                    return (self / by, rest);
                }
                // What is left is exact, so that this is nearly an integer.
                let mut quotient = (self - rest) / by;
                let rest = if rest == 0.0 {
                    (0.0 as $float).copysign(by)
                } else if (rest < 0.0) != (by < 0.0) {
                    quotient -= 1.0;
                    rest + by
                } else {
                    rest
                };
                if quotient == 0.0 {
                    return ((0.0 as $float).copysign(self / by), rest);
                }
                let floor = quotient.floor();
                (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, rest)
            }
        }
    )*};
}

floor_of_floats!(f32, f64);

impl Floor for i64 {
    fn floor_divided(self, by: i64) -> (i64, i64) {
        if by == 0 {
            return (0, 0);
        }
        let (quotient, rest) = (self.wrapping_div(by), self.wrapping_rem(by));
        if rest != 0 && (rest < 0) != (by < 0) { (quotient - 1, rest + by) } else { (quotient, rest) }
    }
}

impl Floor for u64 {
    fn floor_divided(self, by: u64) -> (u64, u64) {
        (self.checked_div(by).unwrap_or(0), self.checked_rem(by).unwrap_or(0))
    }
}

macro_rules! power {
    ($base:expr, $exponent:expr) => {{
        let (mut base, mut exponent, mut product) = ($base, $exponent, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                product = base.wrapping_mul(product);
            }
            base = base.wrapping_mul(base);
            exponent >>= 1;
        }
        product
    }};
}

fn zip<T: Copy>(a: &mut [T], b: &[T], of: impl Fn(T, T) -> T) {
    a.iter_mut().zip(b).for_each(|(a, &b)| *a = of(*a, b));
}

/// Makes each value of `a` that of the operation on it and the one of `b`, both of one kind of lane.
pub(crate) fn combine(operation: Binary, a: &mut BlockValues, b: &BlockValues) -> Result<(), Cannot> {
    match (a, b) {
        (BlockValues::Truths(a), BlockValues::Truths(b)) => match operation {
            Binary::Add | Binary::BitOr | Binary::Or => zip(a, b, |a, b| a | b),
            Binary::Multiply | Binary::BitAnd | Binary::And => zip(a, b, |a, b| a & b),
            _ => zip(a, b, |a, b| a ^ b),
        },
        (BlockValues::Signed(a), BlockValues::Signed(b)) => match operation {
            Binary::Add => zip(a, b, i64::wrapping_add),
            Binary::Subtract => zip(a, b, i64::wrapping_sub),
            Binary::Multiply => zip(a, b, i64::wrapping_mul),
            Binary::FloorDivide => zip(a, b, |a, b| a.floor_divided(b).0),
            Binary::Remainder => zip(a, b, |a, b| a.floor_divided(b).1),
            Binary::Power if b.iter().any(|&exponent| exponent < 0) => return Err(Cannot::NegativePower),
            Binary::Power => zip(a, b, |a, b| power!(a, b)),
            Binary::BitAnd => zip(a, b, |a, b| a & b),
            Binary::BitOr => zip(a, b, |a, b| a | b),
            _ => zip(a, b, |a, b| a ^ b),
        },
        (BlockValues::Unsigned(a), BlockValues::Unsigned(b)) => match operation {
            Binary::Add => zip(a, b, u64::wrapping_add),
            Binary::Subtract => zip(a, b, u64::wrapping_sub),
            Binary::Multiply => zip(a, b, u64::wrapping_mul),
            Binary::FloorDivide => zip(a, b, |a, b| a.floor_divided(b).0),
            Binary::Remainder => zip(a, b, |a, b| a.floor_divided(b).1),
            Binary::Power => zip(a, b, |a, b| power!(a, b)),
            Binary::BitAnd => zip(a, b, |a, b| a & b),
            Binary::BitOr => zip(a, b, |a, b| a | b),
            _ => zip(a, b, |a, b| a ^ b),
        },
        (BlockValues::Singles(a), BlockValues::Singles(b)) => match operation {
            Binary::Add => zip(a, b, |a, b| a + b),
            Binary::Subtract => zip(a, b, |a, b| a - b),
            Binary::Multiply => zip(a, b, |a, b| a * b),
            Binary::FloorDivide => zip(a, b, |a, b| a.floor_divided(b).0),
            Binary::Remainder => zip(a, b, |a, b| a.floor_divided(b).1),
            Binary::Power => zip(a, b, f32::powf),
            _ => zip(a, b, |a, b| a / b),
        },
        (BlockValues::Doubles(a), BlockValues::Doubles(b)) => match operation {
            Binary::Add => zip(a, b, |a, b| a + b),
            Binary::Subtract => zip(a, b, |a, b| a - b),
            Binary::Multiply => zip(a, b, |a, b| a * b),
            Binary::FloorDivide => zip(a, b, |a, b| a.floor_divided(b).0),
            Binary::Remainder => zip(a, b, |a, b| a.floor_divided(b).1),
            Binary::Power => zip(a, b, f64::powf),
            _ => zip(a, b, |a, b| a / b),
        },
        // Both were made of one kind.
        _ => {}
    }
    Ok(())
}

/// Makes each value of `a` the smaller or the greater one; NaN where one of both is NaN. Of equal ones it is the second,
/// of floats of 16 bits the first, which only the sign of zero can tell.
pub(crate) fn choose(greater: bool, kind: Kind, a: &mut BlockValues, b: &BlockValues) {
    let first = kind == Kind::Float16;
    macro_rules! choose {
        ($a:expr, $b:expr, $is_nan:expr) => {
            zip($a, $b, |a, b| {
                let better = if greater { a > b } else { a < b };
                if better || $is_nan(a) || first && a == b { a } else { b }
            })
        };
    }
    match (a, b) {
        (BlockValues::Truths(a), BlockValues::Truths(b)) => choose!(a, b, |_| false),
        (BlockValues::Signed(a), BlockValues::Signed(b)) => choose!(a, b, |_| false),
        (BlockValues::Unsigned(a), BlockValues::Unsigned(b)) => choose!(a, b, |_| false),
        (BlockValues::Singles(a), BlockValues::Singles(b)) => choose!(a, b, f32::is_nan),
        (BlockValues::Doubles(a), BlockValues::Doubles(b)) => choose!(a, b, f64::is_nan),
        _ => {}
    }
}

/// Compares value by value. Integers with and without a sign are compared as the numbers that they are.
pub(crate) fn compare(comparison: Comparison, a: &BlockValues, b: &BlockValues, truths: &mut Vec<bool>) {
    macro_rules! compare {
        ($a:expr, $b:expr) => {{
            let pairs = $a.iter().zip($b);
            match comparison {
                Comparison::Equal => truths.extend(pairs.map(|(a, b)| a == b)),
                Comparison::NotEqual => truths.extend(pairs.map(|(a, b)| a != b)),
                Comparison::Less => truths.extend(pairs.map(|(a, b)| a < b)),
                Comparison::LessEqual => truths.extend(pairs.map(|(a, b)| a <= b)),
                Comparison::Greater => truths.extend(pairs.map(|(a, b)| a > b)),
                Comparison::GreaterEqual => truths.extend(pairs.map(|(a, b)| a >= b)),
            }
        }};
    }
    let mixed = |a: i64, b: u64| u64::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b));
    match (a, b) {
        (BlockValues::Truths(a), BlockValues::Truths(b)) => compare!(a, b),
        (BlockValues::Signed(a), BlockValues::Signed(b)) => compare!(a, b),
        (BlockValues::Unsigned(a), BlockValues::Unsigned(b)) => compare!(a, b),
        (BlockValues::Singles(a), BlockValues::Singles(b)) => compare!(a, b),
        (BlockValues::Doubles(a), BlockValues::Doubles(b)) => compare!(a, b),
        (BlockValues::Signed(a), BlockValues::Unsigned(b)) => {
            truths.extend(a.iter().zip(b).map(|(&a, &b)| comparison.holds(Some(mixed(a, b)))));
        }
        (BlockValues::Unsigned(a), BlockValues::Signed(b)) => {
            truths.extend(a.iter().zip(b).map(|(&a, &b)| comparison.holds(Some(mixed(b, a).reverse()))));
        }
        _ => {}
    }
}

/// What becomes of each value by itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum ValueChange {
    Minus,
    Invert,
    Abs,
    Sqrt,
    /// A float to a power that is written as a plain number, one of [`SHORT_CUTS`].
    Raise(f64),
}

/// Powers that NumPy computes without its power function.
pub(crate) const SHORT_CUTS: [f64; 5] = [2.0, 1.0, 0.5, 0.0, -1.0];

/// Changes each value by itself. What a kind of values does not have, typing has refused.
pub(crate) fn change(change: ValueChange, values: &mut BlockValues) {
    fn each<T: Copy>(values: &mut [T], of: impl Fn(T) -> T) {
        values.iter_mut().for_each(|value| *value = of(*value));
    }
    macro_rules! floats {
        ($values:expr) => {
            match change {
                ValueChange::Minus => each($values, |value| -value),
                ValueChange::Abs => each($values, |value| value.abs()),
                ValueChange::Sqrt => each($values, |value| value.sqrt()),
                ValueChange::Raise(2.0) => each($values, |value| value * value),
                ValueChange::Raise(0.5) => each($values, |value| value.sqrt()),
                ValueChange::Raise(0.0) => each($values, |_| 1.0),
                ValueChange::Raise(-1.0) => each($values, |value| 1.0 / value),
                ValueChange::Raise(_) | ValueChange::Invert => {}
            }
        };
    }
    match (values, change) {
        (BlockValues::Truths(values), ValueChange::Invert) => each(values, |value| !value),
        (BlockValues::Signed(values), ValueChange::Minus) => each(values, i64::wrapping_neg),
        (BlockValues::Signed(values), ValueChange::Abs) => each(values, i64::wrapping_abs),
        (BlockValues::Signed(values), ValueChange::Invert) => each(values, |value| !value),
        (BlockValues::Unsigned(values), ValueChange::Minus) => each(values, u64::wrapping_neg),
        (BlockValues::Unsigned(values), ValueChange::Invert) => each(values, |value| !value),
        (BlockValues::Singles(values), _) => floats!(values),
        (BlockValues::Doubles(values), _) => floats!(values),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_floored_as_in_python() {
        let expected =
            [((7, 2), (3, 1)), ((-7, 2), (-4, 1)), ((7, -2), (-4, -1)), ((-7, -2), (3, -1)), ((7, 0), (0, 0))];
        for ((a, b), floored) in expected {
            assert_eq!(i64::floor_divided(a, b), floored, "{a} by {b}");
        }
        assert_eq!(i64::MIN.floor_divided(-1), (i64::MIN, 0));
        assert_eq!(7u64.floor_divided(0), (0, 0));
    }

    #[test]
    fn floats_are_floored_and_keep_signs_of_zero() {
        assert_eq!((-7.5f64).floor_divided(2.0), (-4.0, 0.5));
        let (quotient, rest) = (-0.0f64).floor_divided(3.0);
        assert!(quotient == 0.0 && quotient.is_sign_negative() && rest == 0.0 && rest.is_sign_positive());
        let (quotient, rest) = 1.0f64.floor_divided(0.0);
        assert!(quotient == f64::INFINITY && rest.is_nan());
    }

    #[test]
    fn integers_with_and_without_sign_are_compared_exactly() {
        let (a, b) = (BlockValues::Signed(vec![-1, 5, i64::MAX]), BlockValues::Unsigned(vec![u64::MAX, 5, 1 << 63]));
        let mut truths = Vec::new();
        compare(Comparison::Less, &a, &b, &mut truths);
        compare(Comparison::GreaterEqual, &b, &a, &mut truths);
        assert_eq!(truths, [true, false, true, true, true, true]);
    }
}
