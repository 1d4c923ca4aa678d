//! Arrays in memory as vectors of numbers, which are copied: what a transfer may still touch is owned by it, so no slice of
//! the caller's is ever lent.

use crate::array::LocalArray;
use hyperslab_layout::mesh::volume;
use hyperslab_layout::{ElementType, Kind, dense_strides, tuple};
use hyperslab_pack::Memory;
use hyperslab_world::{Fault, FaultKind};

/// A type of Rust that elements of arrays may have.
pub trait Element: Copy + Send + sealed::Bytes + 'static {
    /// How the library calls it.
    const KIND: Kind;
}

mod sealed {
    /// A number and its bytes, in the order of this machine.
    pub trait Bytes: Sized {
        fn put(self, bytes: &mut Vec<u8>);
        fn get(bytes: &[u8]) -> Self;
    }
}

macro_rules! elements {
    ($($type:ty => $kind:ident,)*) => {$(
        impl sealed::Bytes for $type {
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_ne_bytes());
            }

            fn get(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("as many bytes as the type has"))
            }
        }

        impl Element for $type {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}

elements! {
    f32 => Float32,
    f64 => Float64,
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    u8 => UInt8,
    u16 => UInt16,
    u32 => UInt32,
    u64 => UInt64,
}

impl sealed::Bytes for bool {
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn get(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}

impl Element for bool {
    const KIND: Kind = Kind::Bool;
}

/// Complex numbers: the real and the imaginary part.
macro_rules! complex {
    ($($type:ty => $kind:ident,)*) => {$(
        impl sealed::Bytes for [$type; 2] {
            fn put(self, bytes: &mut Vec<u8>) {
                self.into_iter().for_each(|part| sealed::Bytes::put(part, bytes));
            }

            fn get(bytes: &[u8]) -> Self {
                let (real, imaginary) = bytes.split_at(size_of::<$type>());
                [sealed::Bytes::get(real), sealed::Bytes::get(imaginary)]
            }
        }

        impl Element for [$type; 2] {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}

complex! {
    f32 => Complex64,
    f64 => Complex128,
}

#[cfg(feature = "num-complex")]
macro_rules! complex_of_num {
    ($($type:ty => $kind:ident,)*) => {$(
        impl sealed::Bytes for num_complex::Complex<$type> {
            fn put(self, bytes: &mut Vec<u8>) {
                sealed::Bytes::put([self.re, self.im], bytes);
            }

            fn get(bytes: &[u8]) -> Self {
                let [re, im] = sealed::Bytes::get(bytes);
                num_complex::Complex { re, im }
            }
        }

        impl Element for num_complex::Complex<$type> {
            const KIND: Kind = Kind::$kind;
        }
    )*};
}

#[cfg(feature = "num-complex")]
complex_of_num! {
    f32 => Complex64,
    f64 => Complex128,
}

impl LocalArray {
    /// A row-major array of these values, which are copied.
    ///
    /// # Errors
    /// When there are not as many values as the shape says.
    pub fn from_values<T: Element>(shape: &[u64], values: &[T]) -> Result<LocalArray, Fault> {
        if volume(shape) != Some(values.len() as u64) {
            let text = "a local array needs as many values as its shape says";
            let expected = format!("values for shape {shape}", shape = tuple(shape));
            return Err(Fault::new(FaultKind::Invalid, text).expected(expected, format!("{} values", values.len())));
        }
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.put(&mut bytes));
        let order: Vec<usize> = (0..shape.len()).collect();
        let strides = dense_strides(shape, &order, size_of::<T>() as u64);
        let element = ElementType::native(T::KIND);
        Ok(LocalArray { memory: Memory::from_vec(bytes), element, shape: shape.to_vec(), strides, offset: 0 })
    }

    /// The values of a dense array, in the order of its memory, copied out.
    ///
    /// # Errors
    /// When elements are of another type.
    pub fn to_values<T: Element>(&self) -> Result<Vec<T>, Fault> {
        if self.element != ElementType::native(T::KIND) {
            let text = "a local array is asked for values of another type";
            let (expected, found) = (self.element.to_string(), ElementType::native(T::KIND).to_string());
            return Err(Fault::new(FaultKind::Invalid, text).expected(expected, found));
        }
        let one = size_of::<T>();
        let bytes = self.memory.to_vec(0, one as u64 * volume(&self.shape).unwrap_or(0));
        Ok(bytes.chunks_exact(one).map(T::get).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Element + PartialEq + std::fmt::Debug>(values: &[T]) {
        let array = LocalArray::from_values(&[values.len() as u64], values).unwrap();
        assert_eq!(array.to_values::<T>().unwrap(), values);
        assert_eq!(array.bytes(), size_of_val(values) as u64);
    }

    #[test]
    fn values_of_all_types_come_back() {
        round_trip(&[1.5f32, -0.0, f32::INFINITY]);
        round_trip(&[1.5f64, f64::MIN_POSITIVE]);
        round_trip(&[i8::MIN, 1]);
        round_trip(&[i16::MIN, 1]);
        round_trip(&[i32::MIN, 1]);
        round_trip(&[i64::MIN, 1]);
        round_trip(&[u8::MAX, 1]);
        round_trip(&[u16::MAX, 1]);
        round_trip(&[u32::MAX, 1]);
        round_trip(&[u64::MAX, 1]);
        round_trip(&[true, false, true]);
        round_trip(&[[1.0f32, -2.0]]);
        round_trip(&[[1.0f64, -2.0], [3.0, 4.0]]);
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let fault = LocalArray::from_values(&[2, 3], &[1.0f64]).unwrap_err();
        assert!(fault.text().contains("expected values for shape (2, 3), found 1 values"), "{}", fault.text());
        let array = LocalArray::from_values(&[1], &[1i32]).unwrap();
        let fault = array.to_values::<f64>().unwrap_err();
        assert!(fault.text().contains("expected int32, found float64"), "{}", fault.text());
    }
}
