//! Shapes, and what else has a number for each dimension, as users of NumPy write them.

use std::fmt;

/// A number for each dimension, such as a shape; shown as `(3, 4)`, `(3,)`, `()`.
#[derive(Clone, Copy, Debug)]
pub struct Tuple<'a, T>(&'a [T]);

/// Shows numbers as a tuple: all messages write shapes so.
///
/// ```
/// # use hyperslab_layout::tuple;
/// assert_eq!(tuple(&[3, 4]).to_string(), "(3, 4)");
/// assert_eq!(tuple(&[3]).to_string(), "(3,)");
/// assert_eq!(tuple::<u64>(&[]).to_string(), "()");
/// ```
pub fn tuple<T>(numbers: &[T]) -> Tuple<'_, T> {
    Tuple(numbers)
}

impl<T: fmt::Display> fmt::Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (number, value) in self.0.iter().enumerate() {
            let before = if number > 0 { ", " } else { "" };
            write!(f, "{before}{value}")?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

impl<T: fmt::Display> From<Tuple<'_, T>> for String {
    fn from(tuple: Tuple<'_, T>) -> String {
        tuple.to_string()
    }
}
