//! What nodes may be called.

use hyperslab_format::zarr::METADATA_KEY;
use hyperslab_world::{Fault, FaultKind};

/// Names are single path components that no tool hides or takes for something else.
pub(crate) fn check_name(name: &str) -> Result<(), Fault> {
    let bad = name.is_empty()
        || name.starts_with('.')
        || name.starts_with("__")
        || name.contains(['/', '\\', '\0'])
        || name == METADATA_KEY;
    if bad {
        return Err(Fault::new(FaultKind::Invalid, format!("'{name}' cannot be the name of an array or step"))
            .hint("names are not empty, do not begin with '.' or '__', and contain no '/'"));
    }
    Ok(())
}

/// Whether each part of a path can be the name of a node.
pub(crate) fn is_path(name: &str) -> bool {
    name.split('/').all(|part| check_name(part).is_ok())
}
