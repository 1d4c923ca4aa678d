//! Which changes of the element type a call may make, and that no NaN becomes an integer.

use crate::array::LocalArray;
use hyperslab_layout::{Casting, ElementType, Kind, Loop, Nest, tuple};
use hyperslab_pack::{MemoryKind, first_nan};
use hyperslab_world::{Fault, FaultKind};

/// Refuses a change of the element type of an array that the rule does not allow.
///
/// # Errors
/// When it does not, saying what of the values would be lost.
pub(crate) fn check_casting(name: &str, from: ElementType, to: ElementType, casting: Casting) -> Result<(), Fault> {
    let (from, to) = (from.kind, to.kind);
    if casting.allows(from, to) {
        return Ok(());
    }
    if from.is_opaque() || to.is_opaque() {
        return Err(Fault::new(FaultKind::Invalid, format!("elements of '{name}' cannot change from {from} to {to}"))
            .hint(hint_of(from, to)));
    }
    let text = format!(
        "elements of '{name}' cannot change from {from} to {to} with casting=\"{}\": {} would be lost",
        casting.name(),
        lost(from, to)
    );
    Err(Fault::new(FaultKind::Invalid, text)
        .hint(format!("convert the array first, or give casting=\"{}\"", Casting::Unsafe.name())))
}

/// What to do where numbers are no others' numbers.
fn hint_of(from: Kind, to: Kind) -> &'static str {
    match (from, to) {
        (Kind::BFloat16, _) | (_, Kind::BFloat16) => {
            "the package ml_dtypes has arrays of bfloat16; or convert from and to float32"
        }
        _ => "only numbers are converted: give an array of the same type",
    }
}

/// What of values other than size and precision does not survive.
fn lost(from: Kind, to: Kind) -> &'static str {
    if to == Kind::Bool {
        "all but whether they are zero"
    } else if from.is_complex() {
        "their imaginary parts"
    } else if from.has_nan() {
        "their fractions"
    } else {
        "their signs"
    }
}

/// Refuses to write local arrays whose elements the rule does not allow to become this type, or that have a NaN where
/// it is an integer. Reads the arrays only in that last case.
///
/// # Errors
/// On the rank that has them.
pub fn check_cast(name: &str, arrays: &[LocalArray], to: ElementType, casting: Casting) -> Result<(), Fault> {
    arrays.iter().try_for_each(|array| check_casting(name, array.element, to, casting))?;
    for (number, array) in arrays.iter().enumerate() {
        let imagined = array.memory.kind() == MemoryKind::Imagined;
        if imagined || !array.element.kind.has_nan() || !to.kind.is_integer() {
            continue;
        }
        array.check(name)?;
        let loops = array.shape.iter().zip(&array.strides).map(|(&count, &a)| Loop { count, a, b: 0 }).collect();
        let nest = Nest { a: array.offset, b: 0, loops };
        let found = first_nan(&nest, &array.memory, array.element)
            .map_err(|error| Fault::new(FaultKind::Invalid, format!("'{name}': {error}")))?;
        if let Some(index) = found {
            let which = if arrays.len() > 1 { format!(" in local array {number}") } else { String::new() };
            let text = format!(
                "'{name}' has a NaN, which cannot become {}: at local index {index}{which}",
                to.kind,
                index = tuple(&index)
            );
            return Err(
                Fault::new(FaultKind::Invalid, text).hint("store them as floats, or give each NaN a value first")
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_pack::Memory;

    const fn native(kind: Kind) -> ElementType {
        ElementType::native(kind)
    }

    fn told(from: Kind, to: Kind) -> String {
        check_casting("rho", native(from), native(to), Casting::SameKind).unwrap_err().to_string()
    }

    #[test]
    fn what_is_refused_says_what_would_be_lost_and_what_to_do() {
        assert_eq!(
            told(Kind::Float64, Kind::Int32),
            "elements of 'rho' cannot change from float64 to int32 with casting=\"same_kind\": their fractions would be \
             lost\n  hint: convert the array first, or give casting=\"unsafe\""
        );
        assert!(told(Kind::Complex64, Kind::Float64).contains("imaginary parts"));
        assert!(told(Kind::Complex64, Kind::Int8).contains("imaginary parts"));
        assert!(told(Kind::Int8, Kind::UInt64).contains("signs"));
        assert!(told(Kind::Int8, Kind::Bool).contains("whether they are zero"));
        let kind = |code| ElementType::from_numpy(code).unwrap().kind;
        assert_eq!(
            told(kind("M8[ns]"), Kind::Int64),
            "elements of 'rho' cannot change from datetime64[ns] to int64\n  hint: only numbers are converted: give an \
             array of the same type"
        );
        for (from, to) in [("M8[ns]", "M8[s]"), ("f8", "V8"), ("V8", "V8[('a', '<f8')]"), ("float8_e5m2", "f4")] {
            assert!(told(kind(from), kind(to)).contains("cannot change"));
        }
    }

    #[test]
    fn byte_order_is_no_change_and_unsafe_allows_all() {
        for from in Kind::ALL {
            let other = ElementType { order: hyperslab_layout::ByteOrder::Big, ..native(from) };
            assert_eq!(check_casting("rho", other, native(from), Casting::SameKind), Ok(()));
            for to in Kind::ALL {
                assert_eq!(check_casting("rho", other, native(to), Casting::Unsafe), Ok(()));
            }
        }
    }

    /// A column-major part of 3 x 2 within a larger memory.
    fn part(nan: Option<(u64, u64)>) -> LocalArray {
        let (strides, offset) = (vec![8, 32], 16);
        let mut values = [1.0f64; 10];
        if let Some((i, j)) = nan {
            values[2 + i as usize + 4 * j as usize] = f64::NAN;
        }
        let memory = Memory::from_vec(values.iter().flat_map(|x| x.to_ne_bytes()).collect());
        LocalArray { memory, element: native(Kind::Float64), shape: vec![3, 2], strides, offset }
    }

    #[test]
    fn a_nan_is_found_where_it_is() {
        let check = |arrays: &[LocalArray], to, casting| check_cast("rho", arrays, native(to), casting);
        for (i, j) in (0..3).flat_map(|i| (0..2).map(move |j| (i, j))) {
            let found = check(&[part(Some((i, j)))], Kind::Int16, Casting::Unsafe).unwrap_err();
            let text = format!("'rho' has a NaN, which cannot become int16: at local index ({i}, {j})");
            assert_eq!((found.kind, found.text()), (FaultKind::Invalid, text));
            let found = check(&[part(None), part(Some((i, j)))], Kind::UInt8, Casting::Unsafe).unwrap_err();
            assert!(found.text().contains(&format!("({i}, {j}) in local array 1")), "{found}");
        }
        assert_eq!(check(&[part(None)], Kind::Int16, Casting::Unsafe), Ok(()));
        assert_eq!(check(&[], Kind::Int16, Casting::SameKind), Ok(()));
    }

    #[test]
    fn a_nan_may_become_what_has_one_and_a_truth_value() {
        for to in [Kind::Float16, Kind::Float64, Kind::Complex64, Kind::Bool] {
            assert_eq!(check_cast("rho", &[part(Some((1, 1)))], native(to), Casting::Unsafe), Ok(()));
        }
        let refused = check_cast("rho", &[part(Some((1, 1)))], native(Kind::Int8), Casting::SameKind).unwrap_err();
        assert!(refused.text().contains("same_kind"), "the rule comes first: {refused}");
    }
}
