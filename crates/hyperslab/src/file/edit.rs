//! What may be changed of what a file says.

use hyperslab_format::attribute::{AttributeEdit, Attributes};
use hyperslab_world::{Fault, FaultKind};

/// A change of what a file says of its arrays and groups, whose names are paths.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Edit {
    /// Attributes of an array or a group, or of the file where the name is empty.
    Attributes { of: String, edit: AttributeEdit },
    /// An array, or a group with all that is in it, goes.
    Delete(String),
    /// It gets another path.
    Rename { from: String, to: String },
    /// An array gets another shape.
    Resize { name: String, shape: Vec<u64> },
    /// There is a group, with those above it.
    Group { name: String, attributes: Attributes, may_exist: bool },
    /// What is written to this group from now on is seen when it is published.
    Begin(String),
    /// What was written to this group is seen.
    Publish { step: String, attributes: Attributes },
    /// It never was.
    GiveUp(String),
}

impl Edit {
    /// What is changed that is there already, where that is one thing.
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Edit::Attributes { of: path, .. }
            | Edit::Delete(path)
            | Edit::Rename { from: path, .. }
            | Edit::Resize { name: path, .. }
            | Edit::Group { name: path, .. } => Some(path),
            Edit::Begin(_) | Edit::Publish { .. } | Edit::GiveUp(_) => None,
        }
    }

    /// Why files without a table of contents refuse it.
    pub(super) fn refused(&self) -> Fault {
        let (doing, hint) = match self {
            Edit::Attributes { .. } => (
                "changing attributes",
                "give attributes= when the file or the array is made; a Zarr store or an HDF5 file can change them",
            ),
            Edit::Delete(_) => ("deleting an array", "write a new file with the others"),
            Edit::Rename { .. } => ("renaming an array", "write a new file with the new name"),
            Edit::Resize { .. } => {
                ("resizing an array", "append() adds records to a NetCDF file; a Zarr array can be resized")
            }
            Edit::Group { .. } | Edit::Begin(_) | Edit::Publish { .. } | Edit::GiveUp(_) => {
                let text = "the file has no groups and no steps";
                let hint = "open a Zarr store or an HDF5 file for them, by a path that ends in .zarr or .h5";
                return Fault::new(FaultKind::Unsupported, text).hint(hint);
            }
        };
        let text = format!("{doing} would move what lies behind it in the file");
        Fault::new(FaultKind::Unsupported, text).hint(hint)
    }
}
