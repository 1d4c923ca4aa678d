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
        let why = why_not(name);
        return Err(Fault::new(FaultKind::Invalid, format!("'{name}' cannot be the name of an array or step: {why}"))
            .hint("choose another name, of which no part is empty or begins with '.' or '__'"));
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

/// What keeps a name from being one.
fn why_not(name: &str) -> &'static str {
    match name {
        "" => "it is empty",
        _ if KEPT.contains(&name) => "it is reserved for metadata",
        _ if name.split('/').any(|part| part == "..") => "it leads out of the group",
        _ if name.starts_with('.') || name.starts_with("__") => "names that begin so are hidden",
        _ => "it has a part that cannot be a name",
    }
}

/// Whether each part of a path can be the name of a node.
pub fn is_path(name: &str) -> bool {
    name.split('/').all(|part| check_name(part).is_ok())
}
