//! Expressions over arrays in the memory of one rank.

use super::source::refusal;
use crate::error::Error;
use hyperslab_filter::{BLOCK, BoxPlace, Column, Expression, Parameter};
use hyperslab_layout::Kind;
use hyperslab_layout::mesh::volume;

/// Evaluates an expression for all elements of arrays of one shape: names, types, and their bytes in row-major order and the byte
/// order of this machine. Gives the type of the values, and their bytes. Local.
///
/// # Errors
/// When the expression is refused, or an array has not as many bytes as the shape says.
pub fn evaluate(
    expression: &str,
    arrays: &[(&str, Kind, &[u8])],
    shape: &[u64],
    parameters: &[(&str, Parameter)],
) -> Result<(Kind, Vec<u8>), Error> {
    let count = volume(shape).and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    for (name, kind, bytes) in arrays {
        let expected = count.checked_mul(kind.bytes() as usize);
        if expected != Some(bytes.len()) {
            return Err(Error::invalid(format!("'{name}' has {} B, which is no array of that shape", bytes.len())));
        }
    }
    let columns: Vec<(&str, Kind)> = arrays.iter().map(|(name, kind, _)| (*name, *kind)).collect();
    let parsed = Expression::parse(expression).and_then(|parsed| parsed.typed(&columns, shape.len(), parameters));
    let typed = parsed.map_err(|refused| Error::from(refusal(&refused)))?;
    let (mut evaluator, mut values, origin) = (typed.evaluator(), Vec::new(), vec![0; shape.len()]);
    for first in (0..count).step_by(BLOCK) {
        let count = BLOCK.min(count - first);
        let mut columns = Vec::with_capacity(arrays.len());
        for &(_, kind, bytes) in arrays {
            let size = kind.bytes() as usize;
            columns.push(Column::dense(&bytes[first * size..(first + count) * size], kind));
        }
        let place = BoxPlace { origin: &origin, shape, first: first as u64 };
        let lane = evaluator.evaluate(&columns, place, count).map_err(|refused| Error::from(refusal(&refused)))?;
        lane.append_to(typed.kind(), &mut values);
    }
    Ok((typed.kind(), values))
}
