//! NaN, which no integer can stand for.

use std::error::Error;
use std::fmt;

use hyperslab_layout::{ElementType, Kind, Loop, Nest};

use crate::bfloat16::BFloat16;
use crate::bounds::{OutOfBounds, Side, check_memory};
use crate::float16::Float16;
use crate::memory::{Memory, MemoryKind};
use crate::number::{Complex, Number};
use crate::shape::{Plane, Walk, canonical};

/// A NaN was to become an integer, or what is no number at all something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotANumber {
    /// Kind of the elements.
    pub from: Kind,
    /// Kind that they were to become.
    pub to: Kind,
}

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opaque = self.from.is_opaque() || self.to.is_opaque();
        write!(f, "{}{} cannot become {}", if opaque { "" } else { "a NaN of " }, self.from, self.to)
    }
}

impl Error for NotANumber {}

/// Why a copy failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyError {
    /// An element lies outside of its memory; nothing was copied.
    OutOfBounds(OutOfBounds),
    /// Among the elements is a NaN, which cannot become an integer; all elements were copied, and those are zero. Or they are
    /// opaque, and nothing was copied.
    NotANumber(NotANumber),
    /// The processor cannot touch memory of this kind; nothing was copied.
    OutOfReach(MemoryKind),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::OutOfBounds(error) => error.fmt(f),
            CopyError::NotANumber(error) => error.fmt(f),
            CopyError::OutOfReach(kind) => write!(f, "the processor cannot touch {kind} memory"),
        }
    }
}

impl Error for CopyError {}

impl From<OutOfBounds> for CopyError {
    fn from(error: OutOfBounds) -> CopyError {
        CopyError::OutOfBounds(error)
    }
}

impl From<NotANumber> for CopyError {
    fn from(error: NotANumber) -> CopyError {
        CopyError::NotANumber(error)
    }
}

/// Whether a copy from one kind to another has to look for NaN.
pub(crate) fn matters(from: Kind, to: Kind) -> bool {
    from.has_nan() && to.is_integer()
}

/// Where the first NaN is among the elements that side `a` of a nest visits, in the order of its loops: how often each
/// loop has run before. A complex number is NaN where one of its parts is.
///
/// Reads each element once if there is none, and at most twice more if there is one.
///
/// # Errors
/// [`CopyError::OutOfBounds`] when an element lies outside of the memory, [`CopyError::OutOfReach`] when that is not of this host.
pub fn first_nan(nest: &Nest, memory: &Memory, element: ElementType) -> Result<Option<Vec<u64>>, CopyError> {
    check_memory(nest, Side::From, element.bytes(), memory)?;
    let Some(scan) = scanner(element.kind) else { return Ok(None) };
    let swap = element != ElementType::native(element.kind);
    let found = |start: i64, loops: &[Loop]| {
        let loops = loops.iter().map(|l| Loop { b: l.a, ..*l }).collect();
        let Some(nest) = canonical(&Nest { a: start, b: start, loops }) else { return false };
        let mut found = false;
        Walk::new(nest, element.bytes()).for_each_plane(|a, _, plane| {
            // SAFETY: all elements were checked to lie within the memory, which is alive.
            found = found || unsafe { scan(memory.pointer().wrapping_offset(a as isize), plane, swap) };
        });
        found
    };
    if !found(nest.a, &nest.loops) {
        return Ok(None);
    }
    let (mut start, mut index) = (nest.a, Vec::with_capacity(nest.loops.len()));
    for (dim, &Loop { count, a, .. }) in nest.loops.iter().enumerate() {
        // There is one at index `low` or later; halve what is left until only that is.
        let (mut low, mut left) = (0, count);
        while left > 1 {
            let half = left / 2;
            let first = [&[Loop { count: half, a, b: 0 }], &nest.loops[dim + 1..]].concat();
            if found(start + low as i64 * a, &first) {
                left = half;
            } else {
                (low, left) = (low + half, left - half);
            }
        }
        index.push(low);
        start += low as i64 * a;
    }
    Ok(Some(index))
}

/// Whether there is a NaN in a plane; the flag says that bytes are in the other order.
///
/// # Safety
/// All elements of side `a` of the plane must be readable from the address on.
type Scan = unsafe fn(*const u8, &Plane, bool) -> bool;

fn scanner(kind: Kind) -> Option<Scan> {
    match kind {
        Kind::Float16 => Some(scan::<Float16>),
        Kind::BFloat16 => Some(scan::<BFloat16>),
        Kind::Float32 => Some(scan::<f32>),
        Kind::Float64 => Some(scan::<f64>),
        Kind::Complex64 => Some(scan::<Complex<f32>>),
        Kind::Complex128 => Some(scan::<Complex<f64>>),
        _ => None,
    }
}

/// # Safety
/// As for [`Scan`].
unsafe fn scan<F: Number>(from: *const u8, plane: &Plane, swap: bool) -> bool {
    let Plane { rows, columns } = *plane;
    let mut found = false;
    for row in 0..rows.count as isize {
        let from = from.wrapping_offset(row * rows.a as isize);
        if columns.a == F::BYTES as i64 && !swap {
            for i in 0..columns.count as usize {
                // SAFETY: the caller promises that every element of the plane may be read.
                found |= unsafe { F::read(from.add(i * F::BYTES), false) }.is_nan();
            }
        } else {
            for i in 0..columns.count as isize {
                // SAFETY: as above.
                found |= unsafe { F::read(from.wrapping_offset(i * columns.a as isize), swap) }.is_nan();
            }
        }
        if found {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::convert_scalar;
    use hyperslab_layout::ByteOrder;

    /// 4 x 5 x 6 elements, with gaps between rows and the last dimension backwards.
    const COUNTS: [u64; 3] = [4, 5, 6];

    fn steps(size: i64) -> (i64, [i64; 3]) {
        (5 * size, [5 * 7 * size, 7 * size, -size])
    }

    fn scanned(values: &[f64], element: ElementType) -> Option<Vec<u64>> {
        let size = element.bytes();
        let bytes = values.iter().flat_map(|x| {
            convert_scalar(&x.to_ne_bytes(), ElementType::native(Kind::Float64), element)[..size as usize].to_vec()
        });
        let memory = Memory::from_vec(bytes.collect());
        let (a, steps) = steps(size as i64);
        let loops = COUNTS.into_iter().zip(steps).map(|(count, a)| Loop { count, a, b: 0 }).collect();
        first_nan(&Nest { a, b: 0, loops }, &memory, element).unwrap()
    }

    #[test]
    fn the_first_one_is_found_wherever_it_is() {
        let kinds = Kind::ALL.into_iter().filter(|kind| kind.has_nan());
        let mut tried = 0;
        for element in
            kinds.flat_map(|kind| [ByteOrder::Little, ByteOrder::Big].map(|order| ElementType { kind, order }))
        {
            let mut values = vec![1.5; 4 * 5 * 7];
            // What lies between rows is not looked at.
            values.iter_mut().skip(6).step_by(7).for_each(|gap| *gap = f64::NAN);
            assert_eq!(scanned(&values, element), None);
            for (i, j, k) in (0..4).flat_map(|i| (0..5).flat_map(move |j| (0..6).map(move |k| (i, j, k)))) {
                let mut values = values.clone();
                let at = |i: u64, j: u64, k: u64| ((i * 5 + j) * 7 + 5 - k) as usize;
                values[at(i, j, k)] = f64::NAN;
                // Later ones change nothing.
                values[at(3, 4, 5)] = f64::NAN;
                assert_eq!(scanned(&values, element), Some(vec![i, j, k]), "{element}");
                tried += 1;
            }
        }
        assert_eq!(tried, 6 * 2 * 120);
    }

    #[test]
    fn infinities_and_integers_are_numbers() {
        assert_eq!(scanned(&[f64::INFINITY; 140], ElementType::native(Kind::Float32)), None);
        assert_eq!(scanned(&[f64::NEG_INFINITY; 140], ElementType::native(Kind::Float16)), None);
        assert_eq!(scanned(&[-1.0; 140], ElementType::native(Kind::Int64)), None);
    }

    #[test]
    fn either_part_of_a_complex_number_counts() {
        for part in 0..2 {
            let mut parts = [0f32; 8];
            parts[4 + part] = f32::NAN;
            let memory = Memory::from_vec(parts.iter().flat_map(|x| x.to_ne_bytes()).collect());
            let nest = Nest { a: 0, b: 0, loops: vec![Loop { count: 4, a: 8, b: 0 }].into() };
            assert_eq!(first_nan(&nest, &memory, ElementType::native(Kind::Complex64)), Ok(Some(vec![2])));
        }
    }

    #[test]
    fn nothing_and_too_much() {
        let element = ElementType::native(Kind::Float64);
        let memory = Memory::from_vec(f64::NAN.to_ne_bytes().to_vec());
        let nest = |loops| Nest { a: 0, b: 0, loops };
        assert_eq!(first_nan(&nest(vec![].into()), &memory, element), Ok(Some(vec![])));
        assert_eq!(first_nan(&nest(vec![Loop { count: 0, a: 8, b: 0 }].into()), &memory, element), Ok(None));
        assert!(first_nan(&nest(vec![Loop { count: 2, a: 8, b: 0 }].into()), &memory, element).is_err());
    }
}
