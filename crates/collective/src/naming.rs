//! What nodes may be called.

use hyperslab_world::{Fault, FaultKind};

/// Names that formats keep for what they say of the nodes around them.
const KEPT: [&str; 1] = ["zarr.json"];

/// Names are single path components that no tool hides or takes for something else.
///
/// # Errors
/// When this is none.
pub fn check_name(name: &str) -> Result<(), Fault> {
    let bad = name.is_empty()
        || name.starts_with('.')
        || name.starts_with("__")
        || name.contains(['/', '\\', '\0'])
        || KEPT.contains(&name);
    if bad {
        return Err(Fault::new(FaultKind::Invalid, format!("'{name}' cannot be the name of an array or step"))
            .hint("names are not empty, and neither they nor any part of a path begin with '.' or '__'"));
    }
    Ok(())
}

/// Whether each part of a path can be the name of a node.
pub fn is_path(name: &str) -> bool {
    name.split('/').all(|part| check_name(part).is_ok())
}
