//! What raw files hold.

use hyperslab_format::raw::Order;
use hyperslab_layout::ElementType;

/// What a file holds apart from the elements of its arrays.
#[derive(Clone, PartialEq, Debug)]
pub struct Contents {
    /// Order of the elements of each array.
    pub order: Order,
    /// What a new file begins with.
    pub header: Vec<u8>,
    /// How many bytes of an existing file come before its arrays \[B\].
    pub header_bytes: u64,
    /// The arrays of an existing file, each by a name of its own; empty for a new one.
    pub arrays: Vec<FileArray>,
}

/// Row-major, with no header and no arrays: those of a new file are added by writing them.
impl Default for Contents {
    fn default() -> Self {
        Contents { order: Order::RowMajor, header: Vec::new(), header_bytes: 0, arrays: Vec::new() }
    }
}

/// An array of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileArray {
    /// Its name; files do not hold it.
    pub name: String,
    /// Global shape.
    pub shape: Vec<u64>,
    /// Type of the stored elements.
    pub element: ElementType,
}
