//! What nodes may be called.

use hyperslab_world::{Fault, FaultKind};

/// Names that formats keep for what they say of the nodes around them.
const KEPT: [&str; 1] = ["zarr.json"];

/// Names are single path components that no tool hides or takes for something else.
///
/// # Errors
/// When this is none.
pub fn check_name(name: &str) -> Result<(), Fault> {
    if !is_plain(name) || KEPT.contains(&name) {
        return Err(Fault::new(FaultKind::Invalid, format!("'{name}' cannot be the name of an array or step"))
            .hint("names are not empty, and neither they nor any part of a path begin with '.' or '__'"));
    }
    Ok(())
}

/// Whether it is a single part of a path that nothing hides.
fn is_plain(name: &str) -> bool {
    !(name.is_empty() || name.starts_with('.') || name.starts_with("__") || name.contains(['/', '\\', '\0']))
}

/// Whether a path leads to a node, or to what a format says of one: neither out of the store nor to what is hidden in it.
pub fn is_path_of_data(name: &str) -> bool {
    name.split('/').all(is_plain)
}

/// Whether each part of a path can be the name of a node.
pub fn is_path(name: &str) -> bool {
    name.split('/').all(|part| check_name(part).is_ok())
}
