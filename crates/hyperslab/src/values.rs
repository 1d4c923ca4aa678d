//! Slices of numbers in, vectors of numbers out: the calls for one array of which each rank holds a dense part.

use crate::array_write::ArrayWrite;
use crate::error::Error;
use crate::file::File;
use crate::options::{ReadOptions, WriteOptions};
use crate::zarr::Store;
use hyperslab_collective::{Element, LocalArray, Report};
use hyperslab_layout::Distribution;
use hyperslab_world::Fault;

/// The same calls for all that holds arrays.
macro_rules! calls_with_values {
    ($($holder:ident),*) => {$(
        impl $holder {
            /// Writes a new array, of which this rank holds these values, row-major; with a section, over a part of one
            /// that is there. Collective. The values are copied.
            ///
            /// # Errors
            /// As its method `write`; also when a rank has another number of values than its part has elements.
            pub fn write_values<T: Element>(
                &self,
                name: &str,
                values: &[T],
                distribution: &Distribution,
                options: &WriteOptions,
            ) -> Result<Report, Error> {
                let part = distribution.owned(self.comm().rank()).shape();
                self.write_made(name, LocalArray::from_values(&part, values), distribution, options)
            }

            /// Writes what was made of this rank's part, or lets all ranks hear why that could not be.
            pub(crate) fn write_made(
                &self,
                name: &str,
                made: Result<LocalArray, Fault>,
                distribution: &Distribution,
                options: &WriteOptions,
            ) -> Result<Report, Error> {
                match made {
                    Ok(local) => self.write(&[ArrayWrite::new(name, local, distribution.clone())], options),
                    Err(fault) => Err(self.comm().attend_with(&format!("write of '{name}'"), fault)),
                }
            }

            /// Reads this rank's part of an array, row-major. Collective.
            ///
            /// # Errors
            /// As its method `read`, which converts; also when the elements are of another type.
            pub fn read_values<T: Element>(&self, name: &str, distribution: &Distribution) -> Result<Vec<T>, Error> {
                let (arrays, _) = self.read(&[name], ReadOptions::default().holding(distribution.clone()))?;
                Ok(arrays[0].to_values()?)
            }
        }
    )*};
}

calls_with_values!(Store, File);
