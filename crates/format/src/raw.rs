//! Raw files: a header of the user's own, then arrays one after another, as Fortran stream I/O writes them.
//!
//! ```text
//! | header | array 0 | array 1 | ...      no padding, no marks between records
//! ```
//!
//! Nothing in such a file says what it holds; the only check that it allows is that of its size.

use crate::error::{Context, Error};
use crate::size::{ARRAY_BYTES_MAX, NDIM_MAX, array_bytes};
use hyperslab_layout::{ElementType, tuple};

/// In which order the elements of an array lie in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The last dimension varies fastest, as in C.
    RowMajor,
    /// The first dimension varies fastest, as in Fortran.
    ColumnMajor,
}

impl Order {
    /// So many dimensions from the slowest to the fastest.
    pub fn of_dimensions(self, ndim: usize) -> Vec<usize> {
        match self {
            Order::RowMajor => (0..ndim).collect(),
            Order::ColumnMajor => (0..ndim).rev().collect(),
        }
    }

    /// Distance \[B\] between neighbours along each dimension of an array of `shape`, whose size must have been
    /// checked.
    pub fn strides(self, shape: &[u64], element_bytes: u64) -> Vec<u64> {
        let mut strides = vec![0; shape.len()];
        let mut stride = element_bytes;
        let mut step = |dimension: usize| {
            strides[dimension] = stride;
            stride *= shape[dimension].max(1);
        };
        match self {
            Order::RowMajor => (0..shape.len()).rev().for_each(&mut step),
            Order::ColumnMajor => (0..shape.len()).for_each(&mut step),
        }
        strides
    }
}

/// One array of a raw file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawArray {
    /// Name by which the user knows it; the file does not.
    pub name: String,
    /// Length of each dimension.
    pub shape: Vec<u64>,
    /// What one stored element is.
    pub element: ElementType,
}

/// What a raw file holds, as its user says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawLayout {
    header_bytes: u64,
    order: Order,
    arrays: Vec<RawArray>,
    /// Where each array begins, and where the last one ends \[B\].
    offsets: Vec<u64>,
}

impl RawLayout {
    /// A file of `header_bytes` and then `arrays`, all in `order`; `name` is the name of the file in errors.
    pub fn new(name: &str, header_bytes: u64, order: Order, arrays: Vec<RawArray>) -> Result<Self, Error> {
        let context = Context::new("describe raw file", name);
        let mut offsets = vec![header_bytes];
        let mut end = header_bytes;
        for (index, array) in arrays.iter().enumerate() {
            if array.shape.len() > NDIM_MAX {
                let found = format!("{} of array '{}'", array.shape.len(), array.name);
                return Err(context.unsupported(format!("at most {NDIM_MAX} dimensions"), found));
            }
            if arrays[..index].iter().any(|earlier| earlier.name == array.name) {
                return Err(context.invalid("arrays of different names", format!("'{}' twice", array.name)));
            }
            let bytes = array_bytes(&array.shape, array.element.bytes());
            end = bytes.and_then(|bytes| end.checked_add(bytes)).filter(|&end| end <= ARRAY_BYTES_MAX).ok_or_else(
                || {
                    let found = format!("array '{}' of shape {} at byte {end}", array.name, tuple(&array.shape));
                    context.invalid("a file of less than 2^63 B", found)
                },
            )?;
            offsets.push(end);
        }
        Ok(RawLayout { header_bytes, order, arrays, offsets })
    }

    /// Size of the header \[B\].
    pub fn header_bytes(&self) -> u64 {
        self.header_bytes
    }

    /// Order of the elements of all arrays.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The arrays, in their order in the file.
    pub fn arrays(&self) -> &[RawArray] {
        &self.arrays
    }

    /// Index of the array with this name.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.arrays.iter().position(|array| array.name == name)
    }

    /// Where array `index` begins in the file \[B\].
    ///
    /// # Panics
    /// If there is no such array.
    pub fn offset(&self, index: usize) -> u64 {
        assert!(index < self.arrays.len(), "array {index} of {}", self.arrays.len());
        self.offsets[index]
    }

    /// Distance \[B\] in the file between neighbours along each dimension of array `index`.
    ///
    /// # Panics
    /// If there is no such array.
    pub fn strides(&self, index: usize) -> Vec<u64> {
        let array = &self.arrays[index];
        self.order.strides(&array.shape, array.element.bytes())
    }

    /// Size of the whole file \[B\].
    pub fn file_bytes(&self) -> u64 {
        self.offsets[self.arrays.len()]
    }

    /// Checks that the file called `name` really has the size that this layout says.
    pub fn check_size(&self, actual: u64, name: &str) -> Result<(), Error> {
        let expected = self.file_bytes();
        if actual == expected {
            return Ok(());
        }
        let payload = expected - self.header_bytes;
        let error = Context::new("use raw file", name).corrupt(
            format!(
                "{expected} B: a header of {} B and {} array(s) of {payload} B",
                self.header_bytes,
                self.arrays.len()
            ),
            format!("{actual} B"),
        );
        // Record marks of Fortran's sequential I/O are the usual reason for a few bytes too many.
        let records = 8 * (self.arrays.len() as u64 + u64::from(self.header_bytes > 0));
        Err(match actual.checked_sub(payload) {
            Some(extra) if extra == self.header_bytes.saturating_add(records) => {
                error.with_hint("Fortran record marks fit the difference: write the file with access=\"stream\"")
            }
            Some(header) => error.with_hint(format!(
                "a header of {header} B would fit; else check shapes, element types and number of arrays"
            )),
            None => error.with_hint("check shapes, element types and number of arrays; the file may be cut short"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_layout::Kind;

    fn array(name: &str, shape: &[u64], kind: Kind) -> RawArray {
        RawArray { name: name.into(), shape: shape.into(), element: ElementType::native(kind) }
    }

    fn sample() -> RawLayout {
        let arrays =
            vec![array("a", &[2, 3], Kind::Float64), array("e", &[0, 9], Kind::Int8), array("b", &[], Kind::Int32)];
        RawLayout::new("run.dat", 24, Order::ColumnMajor, arrays).unwrap()
    }

    #[test]
    fn arrays_follow_each_other() {
        let layout = sample();
        assert_eq!([0, 1, 2].map(|index| layout.offset(index)), [24, 72, 72]);
        assert_eq!(layout.file_bytes(), 76);
        assert_eq!(layout.strides(0), [8, 16]);
        assert_eq!(Order::RowMajor.strides(&[2, 3, 4], 8), [96, 32, 8]);
        assert_eq!(layout.index_of("b"), Some(2));
        assert_eq!(layout.index_of("c"), None);
        let header_only = RawLayout::new("h", 5, Order::RowMajor, vec![]).unwrap();
        assert_eq!(header_only.file_bytes(), 5);
    }

    #[test]
    fn wrong_sizes_are_told_with_both_values() {
        let layout = sample();
        layout.check_size(76, "run.dat").unwrap();
        for (actual, hint) in [(84, "header of 32 B"), (76 + 32, "record marks"), (40, "cut short")] {
            let text = layout.check_size(actual, "run.dat").unwrap_err().to_string();
            assert!(text.contains("expected 76 B") && text.contains(&format!("found {actual} B")), "{text}");
            assert!(text.contains("run.dat") && text.contains(hint), "{text}");
        }
    }

    #[test]
    fn overflow_and_double_names_are_refused() {
        let make = |header, arrays| RawLayout::new("x", header, Order::RowMajor, arrays);
        assert!(make(0, vec![array("a", &[1 << 62, 2], Kind::Int8)]).unwrap_err().is_invalid());
        assert!(make(u64::MAX, vec![array("a", &[1], Kind::Int8)]).unwrap_err().is_invalid());
        let halves = vec![array("a", &[1 << 62], Kind::Int8), array("b", &[1 << 62], Kind::Int8)];
        assert!(make(0, halves).unwrap_err().to_string().contains("'b'"));
        assert!(make(0, vec![array("a", &[1], Kind::Int8); 2]).unwrap_err().to_string().contains("'a' twice"));
    }
}
