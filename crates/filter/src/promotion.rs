//! Which type two types become together, as NumPy has it.

use hyperslab_layout::Kind;

/// What numbers of a kind are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum NumberClass {
    Truth,
    Unsigned,
    Signed,
    Real,
}

/// The class of a kind that expressions compute with.
pub(crate) fn class(kind: Kind) -> Option<NumberClass> {
    Some(match kind {
        Kind::Bool => NumberClass::Truth,
        Kind::UInt8 | Kind::UInt16 | Kind::UInt32 | Kind::UInt64 => NumberClass::Unsigned,
        Kind::Int8 | Kind::Int16 | Kind::Int32 | Kind::Int64 => NumberClass::Signed,
        Kind::Float16 | Kind::Float32 | Kind::Float64 => NumberClass::Real,
        Kind::BFloat16 | Kind::Complex64 | Kind::Complex128 | Kind::Opaque(_) => return None,
    })
}

/// The type of an array that holds what arrays of these types hold: `numpy.promote_types`. Nothing where expressions do not
/// compute with one of them.
pub fn promoted(a: Kind, b: Kind) -> Option<Kind> {
    let ((low, small), (high, large)) = {
        let (of_a, of_b) = ((class(a)?, a), (class(b)?, b));
        if of_a.0 <= of_b.0 { (of_a, of_b) } else { (of_b, of_a) }
    };
    Some(match (low, high) {
        _ if low == high => {
            if small.bytes() > large.bytes() {
                small
            } else {
                large
            }
        }
        (NumberClass::Truth, _) => large,
        (NumberClass::Unsigned, NumberClass::Signed) => match small.bytes() {
            bytes if bytes < large.bytes() => large,
            1 => Kind::Int16,
            2 => Kind::Int32,
            4 => Kind::Int64,
            _ => Kind::Float64,
        },
        // Floats that hold integers of so many bytes.
        _ => {
            let holds = match small.bytes() {
                1 => Kind::Float16,
                2 => Kind::Float32,
                _ => Kind::Float64,
            };
            if holds.bytes() > large.bytes() { holds } else { large }
        }
    })
}

/// The floating-point type in which `sqrt` of a type is computed: the smallest that holds it.
pub(crate) fn real_of(kind: Kind) -> Option<Kind> {
    promoted(kind, Kind::Float16)
}

/// The least and the greatest integer of a kind of integers.
pub(crate) fn bounds(kind: Kind) -> Option<(i128, i128)> {
    let bits = 8 * kind.bytes();
    match class(kind)? {
        NumberClass::Unsigned => Some((0, (1 << bits) - 1)),
        NumberClass::Signed => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        NumberClass::Truth | NumberClass::Real => None,
    }
}
