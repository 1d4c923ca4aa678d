//! Views of the crate ndarray in, its arrays out: the calls for one array of which each rank holds a part of any strides.

use crate::error::Error;
use crate::file::File;
use crate::options::{ReadOptions, WriteOptions};
use crate::zarr::Store;
use hyperslab_collective::{Element, LocalArray, Report};
use hyperslab_layout::Distribution;
use hyperslab_layout::tuple;
use hyperslab_world::{Fault, FaultKind};
use ndarray::{ArrayD, ArrayView, Dimension, IxDyn};

/// A dense copy of what is seen.
fn copied<T: Element, D: Dimension>(part: &[u64], view: ArrayView<'_, T, D>) -> Result<LocalArray, Fault> {
    let shape: Vec<u64> = view.shape().iter().map(|&extent| extent as u64).collect();
    if shape != part {
        let text = "a view needs the shape of this rank's part";
        return Err(Fault::new(FaultKind::Invalid, text).expected(tuple(part).to_string(), tuple(&shape).to_string()));
    }
    match view.as_slice() {
        Some(values) => LocalArray::from_values(part, values),
        None => LocalArray::from_values(part, &view.iter().copied().collect::<Vec<T>>()),
    }
}

/// The same calls for all that holds arrays.
macro_rules! calls_with_views {
    ($($holder:ident),*) => {$(
        impl $holder {
            /// Writes a new array, of which this rank holds what the view shows; with a section, over a part of one that is
            /// there. Collective. The elements are copied.
            ///
            /// # Errors
            /// As its method `write`; also when a rank's view has another shape than its part.
            pub fn write_view<'a, T: Element, D: Dimension>(
                &self,
                name: &str,
                view: impl Into<ArrayView<'a, T, D>>,
                distribution: &Distribution,
                options: &WriteOptions,
            ) -> Result<Report, Error> {
                let part = distribution.owned(self.comm().rank()).shape();
                self.write_made(name, copied(&part, view.into()), distribution, options)
            }

            /// Reads this rank's part of an array. Collective.
            ///
            /// # Errors
            /// As its method `read`, which converts; also when the elements are of another type.
            pub fn read_array<T: Element>(&self, name: &str, distribution: &Distribution) -> Result<ArrayD<T>, Error> {
                let (arrays, _) = self.read(&[name], ReadOptions::default().holding(distribution.clone()))?;
                let shape: Vec<usize> = arrays[0].shape.iter().map(|&extent| extent as usize).collect();
                let made = ArrayD::from_shape_vec(IxDyn(&shape), arrays[0].to_values()?);
                Ok(made.expect("as many values as the shape says"))
            }
        }
    )*};
}

calls_with_views!(Store, File);
