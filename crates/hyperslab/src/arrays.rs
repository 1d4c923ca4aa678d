//! What is open and holds arrays, whatever its format: doors of languages are written once over it.

use crate::comm::Unready;
use crate::error::Error;
use crate::options::{ReadOptions, WriteOptions};
use crate::raw::RawFile;
use crate::request::Request;
use crate::zarr::{Store, WriteAsk};
use hyperslab_collective::{LocalArray, Report};
use std::path::PathBuf;

/// What is open and holds arrays: a Zarr group, a step of one, a file. The methods are those of [`Store`] and [`RawFile`].
pub trait Arrays: Send {
    /// Its absolute path, or name in memory. Local.
    fn path(&self) -> PathBuf;
    /// What dead owners left and opening removed. Local.
    fn removed(&self) -> &[String];
    /// What an update began to change and did not end. Local.
    fn unfinished(&self) -> &[String];
    /// Writes arrays, or sections of some that are there. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn write(&self, asks: &[WriteAsk], options: &WriteOptions) -> Result<Report, Error>;
    /// The same, but returns at once. Collective.
    fn write_later(&self, asks: Vec<WriteAsk>, options: WriteOptions, staged: bool) -> Request;
    /// Reads arrays, or a section of each. Collective.
    ///
    /// # Errors
    /// The same on all ranks.
    fn read(&self, names: &[&str], options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error>;
    /// The same, but returns at once. Collective.
    fn read_later(&self, names: Vec<String>, options: ReadOptions) -> Request;
    /// Reads an array, or a section of it, by this rank alone. Local.
    ///
    /// # Errors
    /// This rank's own.
    fn read_local(&self, name: &str, options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error>;
    /// A request that fails on all ranks, since this one cannot make its call. Collective.
    fn attend_later(&self, what: &str, why: Unready) -> Request;
}

macro_rules! arrays {
    ($($type:ty),*) => {$(
        impl Arrays for $type {
            fn path(&self) -> PathBuf {
                <$type>::path(self)
            }

            fn removed(&self) -> &[String] {
                <$type>::removed(self)
            }

            fn unfinished(&self) -> &[String] {
                <$type>::unfinished(self)
            }

            fn write(&self, asks: &[WriteAsk], options: &WriteOptions) -> Result<Report, Error> {
                <$type>::write(self, asks, options)
            }

            fn write_later(&self, asks: Vec<WriteAsk>, options: WriteOptions, staged: bool) -> Request {
                <$type>::write_later(self, asks, options, staged)
            }

            fn read(&self, names: &[&str], options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error> {
                <$type>::read(self, names, options)
            }

            fn read_later(&self, names: Vec<String>, options: ReadOptions) -> Request {
                <$type>::read_later(self, names, options)
            }

            fn read_local(&self, name: &str, options: ReadOptions) -> Result<(Vec<LocalArray>, Report), Error> {
                <$type>::read_local(self, name, options)
            }

            fn attend_later(&self, what: &str, why: Unready) -> Request {
                <$type>::attend_later(self, what, why)
            }
        }
    )*};
}

arrays!(Store, RawFile);
