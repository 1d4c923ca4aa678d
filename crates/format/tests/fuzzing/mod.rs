//! What must hold of each parser whatever bytes it gets: the bodies of the targets in `fuzz/`, which an ordinary test carries
//! out with the cases that were saved.

mod chunk;
mod hdf5_edit;
mod hdf5_filters;
mod hdf5_model;
mod hdf5_read;
mod input;
mod netcdf;
mod npy;
mod repairing;
mod shard;
mod zarr_edit;
mod zarr_meta;

use input::Input;

/// A target, and what is asserted of any input.
pub(crate) type FuzzTarget = (&'static str, fn(&[u8]));

/// The targets, by the names of their folders.
pub(crate) const TARGETS: &[FuzzTarget] = &[
    ("npy", npy::check),
    ("netcdf", netcdf::check),
    ("zarr_meta", zarr_meta::check),
    ("zarr_edit", zarr_edit::check),
    ("zarr_chunk", chunk::check),
    ("zarr_shard", shard::check),
    ("hdf5_filters", hdf5_filters::check),
    ("hdf5_read", hdf5_read::check),
    ("hdf5_edit", hdf5_edit::check),
    ("hdf5_model", hdf5_model::check),
];
