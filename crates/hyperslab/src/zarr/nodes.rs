//! Nodes of a store by their paths: their metadata, which are said as those of Zarr v3, also where they are those of v2.

use crate::error::format_fault;
use hyperslab_collective::naming::{check_name, is_path};
use hyperslab_format::zarr::{ArrayMetadata, METADATA_KEY, NodeType, node_type, v2};
use hyperslab_world::{Fault, FaultKind, Names, Proof, fingerprint};

/// The name of an array that is the root of its store itself.
pub(super) const ROOT: &str = "/";

/// The metadata of a node.
pub(super) struct StoredNode {
    /// As those of v3.
    pub(super) metadata: Vec<u8>,
    /// The file that they come from, and what it contains.
    pub(super) proof: Proof,
    /// Whether they are those of v2, which is only read.
    pub(super) is_v2: bool,
}

/// The node in this directory below the home, if there is one.
pub(super) fn read_node(names: &dyn Names, at: &str) -> Result<Option<StoredNode>, Fault> {
    let key = |name: &str| if at.is_empty() { name.to_string() } else { format!("{at}/{name}") };
    let proof = |key: &str, bytes: &[u8]| Proof::Contents(names.full(key).into(), fingerprint(bytes));
    let v3 = key(METADATA_KEY);
    if let Some(metadata) = names.read(&v3)? {
        return Ok(Some(StoredNode { proof: proof(&v3, &metadata), metadata, is_v2: false }));
    }
    for (file, is_array) in [(v2::ARRAY_KEY, true), (v2::GROUP_KEY, false)] {
        let file = key(file);
        let Some(bytes) = names.read(&file)? else { continue };
        let full = names.full(&file);
        let attributes = names.read(&key(v2::ATTRIBUTES_KEY))?;
        let metadata = match is_array {
            true => v2::array(&bytes, attributes.as_deref(), &full).and_then(|array| array.to_json(&full)),
            false => v2::group(&bytes, attributes.as_deref(), &full).map(|group| group.to_json()),
        };
        return Ok(Some(StoredNode {
            metadata: metadata.map_err(format_fault)?,
            proof: proof(&file, &bytes),
            is_v2: true,
        }));
    }
    Ok(None)
}

/// What a node is, if it is one.
pub(super) fn kind_of(names: &dyn Names, at: &str) -> Result<Option<NodeType>, Fault> {
    let node = read_node(names, at)?;
    let full = || names.full(&format!("{at}/{METADATA_KEY}"));
    node.map(|node| node_type(&node.metadata, &full()).map_err(format_fault)).transpose()
}

/// The directory of a node, by the group that it lies in, which is empty or ends with `/`, and its path below it.
pub(super) fn place(group: &str, name: &str) -> String {
    if name == ROOT { group.trim_end_matches('/').into() } else { format!("{group}{name}") }
}

/// Refuses what cannot be the path of a node below a group.
pub(super) fn check_path(name: &str) -> Result<(), Fault> {
    // One with parts that cannot be is no name either.
    if name == ROOT || is_path(name) { Ok(()) } else { check_name(name) }
}

/// Refuses what cannot be the path of a node that is there: others call theirs as they like, but for what leads out of the group,
/// and what is hidden here.
pub(super) fn check_there(name: &str) -> Result<(), Fault> {
    if name == ROOT || name.split('/').all(is_shown) { Ok(()) } else { check_name(name) }
}

/// Whether a name may be one of a node, and is not of something that this library hides.
pub(super) fn is_shown(name: &str) -> bool {
    let hidden = name.starts_with('.') && name.contains("hyperslab");
    let leads_out = matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
    !(hidden || leads_out || name == METADATA_KEY)
}

/// An array, by its path below a group.
pub(super) fn read_array(directory: &dyn Names, group: &str, name: &str) -> Result<(ArrayMetadata, StoredNode), Fault> {
    check_there(name)?;
    let at = place(group, name);
    let node = read_node(directory, &at)?.ok_or_else(|| {
        let at = directory.full(group);
        Fault::new(FaultKind::NotFound, format!("there is no array '{name}' in '{at}'"))
            .hint("list the arrays with arrays()")
    })?;
    let key = directory.full(&format!("{at}/{METADATA_KEY}"));
    if node_type(&node.metadata, &key).map_err(format_fault)? == NodeType::Group {
        let text = format!("'{name}' in '{}' is a group, not an array", directory.full(group));
        return Err(Fault::new(FaultKind::NotFound, text).hint(format!("open it with group('{name}')")));
    }
    Ok((ArrayMetadata::parse(&node.metadata, &key).map_err(format_fault)?, node))
}

/// Refuses to change what is only read.
pub(super) fn check_changeable(name: &str, node: &StoredNode) -> Result<(), Fault> {
    match node.is_v2 {
        false => Ok(()),
        true => {
            Err(Fault::new(FaultKind::Unsupported, format!("'{name}' is an array of Zarr v2, which can only be read"))
                .hint("write it anew, which makes an array of Zarr v3"))
        }
    }
}

/// Refuses to change elements that are only read.
pub(super) fn check_elements_changeable(
    name: &str,
    (metadata, node): &(ArrayMetadata, StoredNode),
) -> Result<(), Fault> {
    check_changeable(name, node)?;
    metadata.codecs.only_read().map_or(Ok(()), |codec| {
        let text = format!("'{name}' has the codec '{codec}', which is only read");
        Err(Fault::new(FaultKind::Unsupported, text).hint("write a new array; zarr-python changes it on one rank"))
    })
}

/// Why elements of an array cannot be changed.
pub(super) fn has_texts(name: &str) -> Fault {
    let text = format!("'{name}' has texts of variable length");
    Fault::new(FaultKind::Unsupported, text).hint("write a new array; zarr-python changes it on one rank")
}
