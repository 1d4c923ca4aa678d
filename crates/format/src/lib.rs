//! What bytes mean: raw files, `.npy` files, NetCDF classic and Zarr v3, in memory only.
//!
//! This crate names objects and byte extents, builds and parses metadata, and encodes and decodes whole chunks. It
//! opens no file; the caller brings the bytes and carries them away. Everything parsed may be hostile: sizes are
//! checked before anything is allocated from them, and the answer to nonsense is an [`Error`], never a panic.
#![forbid(unsafe_code)]

// Tests of the crate include what those from outside use.
#[cfg(test)]
extern crate self as hyperslab_format;

pub mod attribute;
mod base64;
mod deflate;
mod error;
mod fields;
mod fletcher;
pub mod hdf5;
pub mod netcdf;
pub mod npy;
pub mod raw;
mod shuffle;
mod size;
mod words;
pub mod zarr;

pub use error::Error;
pub use size::NDIM_MAX;
pub use words::from_text as json_from_text;
